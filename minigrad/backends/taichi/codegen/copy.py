"""Copies of arrays by rows, in units of up to 64 bytes, regardless of dtype."""

from __future__ import annotations

from typing import Any

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import get_kernel

__all__ = ["COPY_UNITS", "copy_kernel", "copy_unit"]

COPY_UNITS = 64, 32, 16, 8  # bytes


@arch_cache(4096)
def copy_unit(dims: int, numbers: tuple[int, ...], itemsize: int, aligned: int) -> tuple[int, tuple[int, ...]] | None:
    """Return the largest unit, in bytes, for copying rows, and the strides and sizes in units; None if no unit fits."""
    strides, sizes = numbers[: 2 * dims], numbers[2 * dims :]
    if strides[dims - 1 :: dims] != (1, 1):
        return None
    row_strides = [by for k, by in enumerate(strides) if (k + 1) % dims] + [sizes[-1]]
    for unit in COPY_UNITS:
        count = unit // itemsize
        if count > 1 and aligned % unit == 0 and not any(by % count for by in row_strides):
            steps = [by // count if (k + 1) % dims else by for k, by in enumerate(strides)]
            return unit, (*steps, *sizes[:-1], sizes[-1] // count)
    return None


@arch_cache()
def copy_kernel(dims: int, unit: int, serial: bool) -> Any:
    """Return the kernel that copies `unit` bytes at a time, as vectors of float32, in `dims` dimensions."""
    arguments = (source.KernelArgument("a", "a", "float32"),)
    text = source.strided_kernel("copy_rows", "a", arguments, "float32", "float32", dims, serial, (1,), unit // 4)
    return get_kernel("copy_rows", *text)
