"""How thoroughly is tested: by `make test` in minutes; by `make exhaustive`, in hours on a slow machine, with 500
random programs, and each type in each layout on each device."""

import os
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, TypeVar
from zlib import crc32

import pytest

EXHAUSTIVE = bool(os.environ.get("MINIGRAD_EXHAUSTIVE"))
T = TypeVar("T")


def chosen(cases: Sequence[T], key: str, most: int) -> list[T]:
    """All of the cases; in `make test` only so many, beginning with another one for each key."""
    start = 0 if EXHAUSTIVE else crc32(key.encode())
    return [cases[(start + k) % len(cases)] for k in range(len(cases) if EXHAUSTIVE else min(most, len(cases)))]


def crossed(most: int, **axes: Iterable[Any]) -> pytest.MarkDecorator:
    """A test for each combination of arguments; in `make test` with only so many of those of the last axis."""
    *others, last = map(list, axes.values())
    rows = [(*row, one) for row in product(*others) for one in chosen(last, repr(row), most)]
    return pytest.mark.parametrize(tuple(axes), rows, ids=["-".join(map(str, row)) for row in rows])
