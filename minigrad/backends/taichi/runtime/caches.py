"""Caches of generated, planned or compiled code, which are cleared when the architecture changes."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import _lru_cache_wrapper, lru_cache
from typing import Any, TypeVar

from minigrad.backends.taichi.runtime import driver

__all__ = ["ArchDict", "arch_cache", "clear_caches"]

T = TypeVar("T")

_clear_functions: list[Callable[[], object]] = []  # functions that clear the caches


def arch_cache(maxsize: int | None = None) -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """Return a `functools.lru_cache` decorator whose cache is cleared when the architecture changes."""

    def wrap(function: Callable[..., T]) -> _lru_cache_wrapper[T]:
        cached_function = lru_cache(maxsize)(function)
        _clear_functions.append(cached_function.cache_clear)
        return cached_function

    return wrap


class ArchDict(dict[Any, Any]):
    """Dictionary that is cleared when the architecture changes."""

    def __init__(self) -> None:
        _clear_functions.append(self.clear)


def clear_caches() -> None:
    for clear in _clear_functions:
        clear()


driver.on_change(clear_caches)
os.register_at_fork(after_in_child=clear_caches)  # the child then reaches the launch of a kernel, which raises
