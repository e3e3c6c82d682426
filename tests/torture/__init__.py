"""What is tried on purpose to break minigrad, and how often: each campaign is a function of a case's number.

A case is made from its number alone, so one that fails can be run again by itself. Cases run in child processes, which
may die or hang: both are failures of the case that was running. `make nightly` runs all cases, `make test` the first.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Campaign", "Skip", "campaigns"]


class Skip(Exception):
    """Raised by a campaign's function where this machine lacks what the case needs; its text says what."""


@dataclass(frozen=True)
class Campaign:
    """Many cases of one kind of trouble.

    Args:
        name: a short name, as in `python -m torture --only NAME`.
        what: what is tried, for the table: a phrase that begins in lower case.
        case: tries the case of a number, and returns what is wrong in a sentence, or None. What it raises is wrong too.
            It is a function of the module that has the campaign in its `CAMPAIGNS`: a child process imports it there.
        many: cases of `make nightly`, or a function that counts them where that takes long; `count` says how many.
        few: cases of `make test`; 0 leaves the campaign to `make nightly`.
        seconds: a case that takes longer hangs, and its process is killed.
        environment: what the child's environment has besides, for instance the device.
        needs: what every case needs, by the names of the table in tests/helpers/needs.py.
    """

    name: str
    what: str
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
    """All campaigns, by theme: each module of this folder is a theme, and has them as `CAMPAIGNS`."""
    themes = sorted(found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_"))
    return {theme: importlib.import_module(f"{__name__}.{theme}").CAMPAIGNS for theme in themes}
