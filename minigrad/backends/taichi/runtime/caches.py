"""Caches of what was written, planned or compiled for an architecture: they are emptied when that changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import _lru_cache_wrapper, lru_cache
from typing import Any, TypeVar

from minigrad.backends.taichi.runtime import driver

__all__ = ["Remembered", "cached", "forget"]

T = TypeVar("T")

_caches: list[Callable[[], object]] = []  # what empties each


def cached(maxsize: int | None = None) -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """`functools.lru_cache` of what a function returns for the architecture that Taichi runs on."""

    def wrap(function: Callable[..., T]) -> _lru_cache_wrapper[T]:
        made = lru_cache(maxsize)(function)
        _caches.append(made.cache_clear)
        return made

    return wrap


class Remembered(dict[Any, Any]):
    """What is remembered for the architecture that Taichi runs on, by what it is for."""

    def __init__(self) -> None:
        _caches.append(self.clear)


def forget() -> None:
    """Empty all caches."""
    for empty in _caches:
        empty()


driver.on_change(forget)
