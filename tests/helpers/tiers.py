"""The tiers of the suite: `make test` runs for minutes; `make nightly` runs the rest.

``MINIGRAD_NIGHTLY=all`` runs every test with every case; ``MINIGRAD_NIGHTLY=3/40`` the third of forty slices of that,
without the tests marked ``nightly(whole=True)``, each of which takes longer than a slice may. If it is not set, tests
marked ``nightly`` are deselected, and each test takes a few of its similar cases.
"""

import os
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, TypeVar
from zlib import crc32

import pytest

__all__ = ["NIGHTLY", "child_tier", "choose_cases", "cross", "mark_nightly", "select"]

NIGHTLY = bool(os.environ.get("MINIGRAD_NIGHTLY"))
T = TypeVar("T")


def choose_cases(cases: Sequence[T], key: str, limit: int) -> list[T]:
    """Return all cases; in `make test` at most `limit` of them, starting at a position that depends on `key`."""
    start = 0 if NIGHTLY else crc32(key.encode())
    return [cases[(start + k) % len(cases)] for k in range(len(cases) if NIGHTLY else min(limit, len(cases)))]


def mark_nightly(cases: Iterable[Any], daily: Iterable[Any]) -> list[Any]:
    """Return the cases as parameters; those that are not in `daily` are marked ``nightly``."""
    daily = list(daily)
    return [pytest.param(one, marks=[] if one in daily else [pytest.mark.nightly]) for one in cases]


def cross(limit: int, **axes: Iterable[Any]) -> pytest.MarkDecorator:
    """Parametrise by the product of the axes; `make test` takes at most `limit` values of the last axis for each
    row."""
    *others, last = map(list, axes.values())
    rows = [(*row, one) for row in product(*others) for one in choose_cases(last, repr(row), limit)]
    return pytest.mark.parametrize(tuple(axes), rows, ids=["-".join(map(str, row)) for row in rows])


def select(items: Iterable[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests of the active tier, and those that are deselected."""
    selected: list[pytest.Item] = []
    deselected: list[pytest.Item] = []
    for item in items:
        (selected if _is_selected(item) else deselected).append(item)
    return selected, deselected


def child_tier() -> str:
    """Return ``MINIGRAD_NIGHTLY`` for test files in a child process: in a slice they use the cases of `make test`."""
    return "all" if os.environ.get("MINIGRAD_NIGHTLY") == "all" else ""


def _is_selected(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("nightly")
    part, _, count = os.environ.get("MINIGRAD_NIGHTLY", "").partition("/")
    if not NIGHTLY or not count:
        return NIGHTLY or mark is None
    is_whole = mark is not None and mark.kwargs.get("whole", False)
    return not is_whole and crc32(item.nodeid.encode()) % int(count) == int(part) % int(count)
