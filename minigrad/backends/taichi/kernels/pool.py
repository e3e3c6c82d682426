"""Pooling and resampling. Integer tables pass the windows of each dimension to the kernels."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.kernels.elementwise import pointer
from minigrad.backends.taichi.kernels.shape import in_rows
from minigrad.backends.taichi.runtime.array import DEVICE, empty, lasting, like
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.kernel import compiled
from minigrad.core.dispatch import Kernel, kernel

__all__: list[str] = []

Rows = tuple[tuple[range, tuple[float, ...]], ...]


@cached(256)
def lines(windows: tuple[range, ...]) -> Any:
    """Return a table of the start, size and step of each window along a dimension."""
    table = [(window.start, len(window), window.step) for window in windows]
    return lasting(like(np.array(table, np.int32).reshape(len(windows), 3)))


def _pooling(name: str, beats: str, dtype: str, serial: bool) -> tuple[str, str]:
    """Generate a kernel that scans windows row-major: the first of equal elements wins, and the last nan."""
    array, table, places = (source.array_of(x) for x in (dtype, "int32", "int64"))
    text = f"""@ti.kernel
def {name}_kernel(
    y_: {array}, at_: {places}, a_: {array}, down_: {table}, right_: {table},
    images: ti.i32, height: ti.i32, width: ti.i32, rows: ti.i32, columns: ti.i32
):
    ti.loop_config(serialize={serial})
    for line in range(images * rows):
        first = line // rows * height * width
        row = line % rows
        for column in range(columns):
            best = a_[first + down_[row * 3] * width + right_[column * 3]]
            best_at = down_[row * 3] * width + right_[column * 3]
            for i in range(down_[row * 3 + 1]):
                for j in range(right_[column * 3 + 1]):
                    to_right = right_[column * 3] + j * right_[column * 3 + 2]
                    place = (down_[row * 3] + i * down_[row * 3 + 2]) * width + to_right
                    x = a_[first + place]
                    if (x {beats} best) | ((x == x) == 0):
                        best = x
                        best_at = place
            y_[line * columns + column] = best
            at_[line * columns + column] = ti.cast(best_at, ti.i64)
"""
    return text, "aaaaaiiiii"


def _evenly(windows: tuple[range, ...]) -> tuple[int, int, int] | None:
    """Return the size, the dilation and the stride of the windows along a dimension; None if they vary or are large."""
    first, step = windows[0], windows[1].start if len(windows) > 1 else 0
    size, apart = len(first), first.step
    even = all(w.start == k * step and len(w) == size and w.step == apart for k, w in enumerate(windows))
    return (size, apart, step) if even and size <= MOST else None


MOST = 4  # maximum window size that is unrolled


def _pooling_evenly(name: str, beats: str, dtype: str, how: tuple[Any, Any], serial: bool) -> tuple[str, str]:
    """Generate the kernel for uniform windows inside the image: unrolled, without tables."""
    (tall, down, next_row), (wide, right, next_column) = how
    body = f"""        first = t // rows * height * width
        row = t % rows * {next_row} * width
        for column in range(columns):
            best_at = row + column * {next_column}
            best = a_[first + best_at]
"""
    for i, j in product(range(tall), range(wide)):
        if i or j:
            body += f"""            place = row + column * {next_column} + {i * down} * width + {j * right}
            x = a_[first + place]
            better = (x {beats} best) | ((x == x) == 0)
            best = ti.select(better, x, best)
            best_at = ti.select(better, place, best_at)
"""
    body += """            y_[t * columns + column] = best
            at_[t * columns + column] = ti.cast(best_at, ti.i64)
"""
    array, places = source.array_of(dtype), source.array_of("int64")
    text = f"""@ti.kernel
def {name}_evenly_kernel(
    y_: {array}, at_: {places}, a_: {array},
    images: ti.i32, height: ti.i32, width: ti.i32, rows: ti.i32, columns: ti.i32
):
{source.spread("images * rows", body, serial)}"""
    return text, "aaaiiiii"


def pooling(name: str, beats: str) -> Kernel:
    """Return the kernel that takes the extremum of each window by a comparison, or its last nan, as in PyTorch."""

    def pool(a: Any, *, windows: tuple[tuple[range, ...], ...]) -> tuple[Any, Any]:
        lead = a.ndim - len(windows)
        shape = (*a.shape[:lead], *map(len, windows))
        best, best_at = empty(shape, a.dtype), empty(shape, np.int64)
        if best.size:
            down, right = windows if len(windows) == 2 else ((range(1),), *windows)
            height, width = a.shape[lead:] if len(windows) == 2 else (1, a.shape[-1])
            arrays: tuple[Any, ...] = (best, best_at, in_rows(a))
            how, serial = (_evenly(down), _evenly(right)), best.size <= source.SERIAL
            if None in how:
                arrays += (lines(down), lines(right))
                made = compiled(name, *_pooling(name, beats, a.dtype.name, serial))
            else:
                made = compiled(f"{name}_evenly", *_pooling_evenly(name, beats, a.dtype.name, how, serial))
            made(*map(pointer, arrays), prod(a.shape[:lead]), height, width, len(down), len(right))
        return best, best_at

    return pool


for _name, _beats in (("max_pool", ">"), ("min_pool", "<")):
    kernel(_name, DEVICE)(pooling(_name, _beats))


@cached(256)
def sparse(rows: Rows, size: int, back: bool) -> tuple[Any, Any, Any]:
    """Return a matrix, or with `back` its transpose, in CSR format: row offsets, column indices, weights."""
    found: list[list[tuple[int, float]]] = [[] for _ in range(size if back else len(rows))]
    for row, (places, weights) in enumerate(rows):
        for place, weight in zip(places, weights, strict=True):
            found[place if back else row].append((row if back else place, weight))
    entries = [entry for line in found for entry in line]
    ends = np.cumsum([0, *map(len, found)])
    columns, weights_ = np.array([k for k, _ in entries], np.int32), np.array([w for _, w in entries], np.float64)
    return lasting(like(ends.astype(np.int32))), lasting(like(columns)), lasting(like(weights_))


def _resampling(dtype: str, serial: bool) -> tuple[str, str]:
    array = source.array_of(dtype)
    text = f"""@ti.kernel
def resample_kernel(
    y_: {array}, a_: {array}, ends_: {source.array_of("int32")}, columns_: {source.array_of("int32")},
    weights_: {source.array_of("float64")}, outer: ti.i32, made: ti.i32, size: ti.i32, inner: ti.i32
):
    ti.loop_config(serialize={serial})
    for line in range(outer * made):
        first = line // made * size
        row = line % made
        for k in range(inner):
            s = ti.cast(0, ti.f64)
            for entry in range(ends_[row], ends_[row + 1]):
                s += ti.cast(a_[(first + columns_[entry]) * inner + k], ti.f64) * weights_[entry]
            y_[line * inner + k] = ti.cast(s, ti.{source.TI[dtype]})
"""
    return text, "aaaaaiiii"


@kernel("resample", DEVICE)
def resample(a: Any, *, rows: Rows, dim: int, size: int, back: bool) -> Any:
    made = size if back else len(rows)
    out = empty((*a.shape[:dim], made, *a.shape[dim + 1 :]), a.dtype)
    if out.size:
        ready = compiled("resample", *_resampling(a.dtype.name, out.size <= source.SERIAL))
        arrays = (out, in_rows(a), *sparse(rows, size, back))
        ready(*map(pointer, arrays), prod(a.shape[:dim]), made, a.shape[dim], prod(a.shape[dim + 1 :]))
    return out
