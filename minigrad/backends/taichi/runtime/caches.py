"""Caches of generated, planned or compiled code, which are cleared when the architecture changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import _lru_cache_wrapper, lru_cache
from typing import Any, TypeVar

from minigrad.backends.taichi.runtime import driver

__all__ = ["Remembered", "cached", "forget"]

T = TypeVar("T")

_caches: list[Callable[[], object]] = []  # functions that clear the caches


def cached(maxsize: int | None = None) -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """Return `functools.lru_cache` for results that depend on the current architecture."""

    def wrap(function: Callable[..., T]) -> _lru_cache_wrapper[T]:
        made = lru_cache(maxsize)(function)
        _caches.append(made.cache_clear)
        return made

    return wrap


class Remembered(dict[Any, Any]):
    """A dict of results that depend on the current architecture."""

    def __init__(self) -> None:
        _caches.append(self.clear)


def forget() -> None:
    """Clear all caches."""
    for empty in _caches:
        empty()


driver.on_change(forget)
