"""Pooling and resampling. The windows of each dimension are passed to the kernels as integer tables."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.kernels.elementwise import array_argument
from minigrad.backends.taichi.kernels.shape import as_contiguous
from minigrad.backends.taichi.runtime.array import TAICHI, copy_to_device, empty, register_constant
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.core.dispatch import Kernel, kernel

__all__: list[str] = []

Rows = tuple[tuple[range, tuple[float, ...]], ...]


@arch_cache(256)
def window_table(windows: tuple[range, ...]) -> Any:
    """Return a table of the start, size and step of each window along a dimension."""
    table = [(window.start, len(window), window.step) for window in windows]
    return register_constant(copy_to_device(np.array(table, np.int32).reshape(len(windows), 3)))


def _pool_source(name: str, beats: str, dtype: str, serial: bool) -> tuple[str, str]:
    """Return the source of a kernel that scans each window in row-major order. It selects the first of equal elements,
    and the last NaN."""
    array, table, places = (source.array_annotation(x) for x in (dtype, "int32", "int64"))
    code = f"""@ti.kernel
def {name}_kernel(
    y_: {array}, indices_: {places}, a_: {array}, row_windows_: {table}, column_windows_: {table},
    images: ti.i32, height: ti.i32, width: ti.i32, rows: ti.i32, columns: ti.i32
):
    ti.loop_config(serialize={serial})
    for line in range(images * rows):
        first = line // rows * height * width
        row = line % rows
        for column in range(columns):
            best = a_[first + row_windows_[row * 3] * width + column_windows_[column * 3]]
            best_index = row_windows_[row * 3] * width + column_windows_[column * 3]
            for i in range(row_windows_[row * 3 + 1]):
                for j in range(column_windows_[column * 3 + 1]):
                    x_offset = column_windows_[column * 3] + j * column_windows_[column * 3 + 2]
                    index = (row_windows_[row * 3] + i * row_windows_[row * 3 + 2]) * width + x_offset
                    x = a_[first + index]
                    if (x {beats} best) | ((x == x) == 0):
                        best = x
                        best_index = index
            y_[line * columns + column] = best
            indices_[line * columns + column] = ti.cast(best_index, ti.i64)
"""
    return code, "aaaaaiiiii"


def _uniform_windows(windows: tuple[range, ...]) -> tuple[int, int, int] | None:
    """Return the size, dilation and stride of the windows along a dimension, or None if they vary or are large."""
    first, step = windows[0], windows[1].start if len(windows) > 1 else 0
    size, dilation = len(first), first.step
    is_uniform = all(w.start == k * step and len(w) == size and w.step == dilation for k, w in enumerate(windows))
    return (size, dilation, step) if is_uniform and size <= MAX_UNROLLED else None


MAX_UNROLLED = 4  # maximum window size that is unrolled


def _uniform_pool_source(name: str, beats: str, dtype: str, uniform: tuple[Any, Any], serial: bool) -> tuple[str, str]:
    """Return the source of a kernel for uniform windows inside the image, with unrolled loops and no tables."""
    (tall, down, next_row), (wide, right, next_column) = uniform
    body = f"""        first = t // rows * height * width
        row = t % rows * {next_row} * width
        for column in range(columns):
            best_index = row + column * {next_column}
            best = a_[first + best_index]
"""
    for i, j in product(range(tall), range(wide)):
        if i or j:
            body += f"""            index = row + column * {next_column} + {i * down} * width + {j * right}
            x = a_[first + index]
            better = (x {beats} best) | ((x == x) == 0)
            best = ti.select(better, x, best)
            best_index = ti.select(better, index, best_index)
"""
    body += """            y_[t * columns + column] = best
            indices_[t * columns + column] = ti.cast(best_index, ti.i64)
"""
    array, places = source.array_annotation(dtype), source.array_annotation("int64")
    code = f"""@ti.kernel
def {name}_uniform_kernel(
    y_: {array}, indices_: {places}, a_: {array},
    images: ti.i32, height: ti.i32, width: ti.i32, rows: ti.i32, columns: ti.i32
):
{source.parallel_loop("images * rows", body, serial)}"""
    return code, "aaaiiiii"


def make_pool_kernel(name: str, beats: str) -> Kernel:
    """Return a kernel that selects the extremum of each window by `beats`, or its last NaN, as in PyTorch."""

    def pool(a: Any, *, windows: tuple[tuple[range, ...], ...]) -> tuple[Any, Any]:
        lead = a.ndim - len(windows)
        shape = (*a.shape[:lead], *map(len, windows))
        best, best_indices = empty(shape, a.dtype), empty(shape, np.int64)
        if best.size:
            down, right = windows if len(windows) == 2 else ((range(1),), *windows)
            height, width = a.shape[lead:] if len(windows) == 2 else (1, a.shape[-1])
            arrays: tuple[Any, ...] = (best, best_indices, as_contiguous(a))
            uniform, serial = (_uniform_windows(down), _uniform_windows(right)), best.size <= source.SERIAL_LIMIT
            if None in uniform:
                arrays += (window_table(down), window_table(right))
                compiled_kernel = get_kernel(name, *_pool_source(name, beats, a.dtype.name, serial))
            else:
                compiled_kernel = get_kernel(
                    f"{name}_uniform", *_uniform_pool_source(name, beats, a.dtype.name, uniform, serial)
                )
            compiled_kernel(*map(array_argument, arrays), prod(a.shape[:lead]), height, width, len(down), len(right))
        return best, best_indices

    return pool


for _name, _beats in (("max_pool", ">"), ("min_pool", "<")):
    kernel(_name, TAICHI)(make_pool_kernel(_name, _beats))


@arch_cache(256)
def csr_matrix(rows: Rows, size: int, back: bool) -> tuple[Any, Any, Any]:
    """Return a sparse matrix, or its transpose if `back`, in CSR format: row offsets, column indices and weights."""
    entries_by_row: list[list[tuple[int, float]]] = [[] for _ in range(size if back else len(rows))]
    for row, (columns_of_row, weights) in enumerate(rows):
        for column, weight in zip(columns_of_row, weights, strict=True):
            entries_by_row[column if back else row].append((row if back else column, weight))
    entries = [entry for line in entries_by_row for entry in line]
    ends = np.cumsum([0, *map(len, entries_by_row)])
    columns, weights_ = np.array([k for k, _ in entries], np.int32), np.array([w for _, w in entries], np.float64)
    return (
        register_constant(copy_to_device(ends.astype(np.int32))),
        register_constant(copy_to_device(columns)),
        register_constant(copy_to_device(weights_)),
    )


def _resample_source(dtype: str, serial: bool) -> tuple[str, str]:
    array = source.array_annotation(dtype)
    code = f"""@ti.kernel
def resample_kernel(
    y_: {array}, a_: {array}, ends_: {source.array_annotation("int32")}, columns_: {source.array_annotation("int32")},
    weights_: {source.array_annotation("float64")}, outer: ti.i32, out_size: ti.i32, size: ti.i32, inner: ti.i32
):
    ti.loop_config(serialize={serial})
    for line in range(outer * out_size):
        first = line // out_size * size
        row = line % out_size
        for k in range(inner):
            s = ti.cast(0, ti.f64)
            for entry in range(ends_[row], ends_[row + 1]):
                s += ti.cast(a_[(first + columns_[entry]) * inner + k], ti.f64) * weights_[entry]
            y_[line * inner + k] = ti.cast(s, ti.{source.TAICHI_NAMES[dtype]})
"""
    return code, "aaaaaiiii"


@kernel("resample", TAICHI)
def resample(a: Any, *, rows: Rows, dim: int, size: int, back: bool) -> Any:
    out_size = size if back else len(rows)
    out = empty((*a.shape[:dim], out_size, *a.shape[dim + 1 :]), a.dtype)
    if out.size:
        compiled_kernel = get_kernel("resample", *_resample_source(a.dtype.name, out.size <= source.SERIAL_LIMIT))
        arrays = (out, as_contiguous(a), *csr_matrix(rows, size, back))
        compiled_kernel(
            *map(array_argument, arrays), prod(a.shape[:dim]), out_size, a.shape[dim], prod(a.shape[dim + 1 :])
        )
    return out
