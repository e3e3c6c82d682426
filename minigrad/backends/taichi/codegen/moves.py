"""Copies of numbers that lie by rows, 64 bytes at once where that may be, or fewer: whatever they mean."""

from __future__ import annotations

from typing import Any

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.kernel import compiled

__all__ = ["UNITS", "moving", "unit_of"]

UNITS = 64, 32, 16, 8  # bytes


@cached(4096)
def unit_of(dims: int, numbers: tuple[int, ...], itemsize: int, aligned: int) -> tuple[int, tuple[int, ...]] | None:
    """The bytes that can be moved at once, more than those of one number, and the walk in such units; None if none."""
    strides, sizes = numbers[: 2 * dims], numbers[2 * dims :]
    if strides[dims - 1 :: dims] != (1, 1):
        return None
    whole = [by for k, by in enumerate(strides) if (k + 1) % dims] + [sizes[-1]]
    for unit in UNITS:
        count = unit // itemsize
        if count > 1 and aligned % unit == 0 and not any(by % count for by in whole):
            steps = [by // count if (k + 1) % dims else by for k, by in enumerate(strides)]
            return unit, (*steps, *sizes[:-1], sizes[-1] // count)
    return None


@cached()
def moving(dims: int, unit: int, serial: bool) -> Any:
    """The kernel that copies `unit` bytes at once, as vectors of float32, in so many dimensions."""
    takes = (source.Taken("a", "a", "float32"),)
    text = source.strided("move", "a", takes, "float32", "float32", dims, serial, (1,), unit // 4)
    return compiled("move", *text)
