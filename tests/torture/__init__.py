"""Stress-test campaigns against minigrad: each is a function of a case's number.

A case is determined by its number, so a failing one can be rerun separately. Cases run in child processes, which may
crash or hang: both count as failures of the running case. `make nightly` runs all cases, `make test` the first few.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Campaign", "Skip", "campaigns"]


class Skip(Exception):
    """Raised by a campaign's function if this machine lacks what the case needs; the message names it."""


@dataclass(frozen=True)
class Campaign:
    """Many cases of one kind of trouble.

    Args:
        name: a short name, as in `python -m torture --only NAME`.
        description: what is tested, for the table: a phrase that begins in lower case.
        case: runs the case of a number; returns what is wrong in a sentence, or None. An exception is a failure too.
            It must be a function of the module that lists the campaign in `CAMPAIGNS`: a child process imports it.
        many: the number of cases in `make nightly`, or a function that computes it if that is slow; see `count`.
        few: the number of cases in `make test`; 0 leaves the campaign to `make nightly`.
        seconds: the time limit of a case, after which its process is killed.
        environment: additional environment variables of the child, for instance the device.
        needs: the requirements of every case, by name in the table of tests/helpers/needs.py.
    """

    name: str
    description: str
    case: Callable[[int], str | None]
    many: int | Callable[[], int]
    few: int
    seconds: float = 60.0
    environment: tuple[tuple[str, str], ...] = ()
    needs: tuple[str, ...] = ()

    def count(self) -> int:
        """Return how many cases `make nightly` runs."""
        return self.many() if callable(self.many) else self.many


def campaigns() -> dict[str, list[Campaign]]:
    """Return all campaigns by theme: each public module of this package is a theme with a list `CAMPAIGNS`."""
    themes = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    return {theme: importlib.import_module(f"{__name__}.{theme}").CAMPAIGNS for theme in themes}
