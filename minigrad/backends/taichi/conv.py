"""Convolution and its kin: windows are copied side by side as columns, which matrices multiply."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from minigrad.backends.numpy.conv import grid, windows
from minigrad.backends.taichi import cuda, runtime, source
from minigrad.backends.taichi.array import DEVICE, empty, like, shaped
from minigrad.backends.taichi.elementwise import computed, filled, pointer, put
from minigrad.backends.taichi.matmul import LANES, ROWS, Panels, matmul, packed, vectors
from minigrad.backends.taichi.reduce import reduced
from minigrad.backends.taichi.runtime import Kernel, compiled
from minigrad.backends.taichi.shape import in_rows
from minigrad.kernels import kernel, kernels_of

__all__: list[str] = []

Shape = tuple[int, ...]
Window = Any  # size, stride, padding, dilation: minigrad.ops.conv.Window

BLOCK = 256  # so many products are added up, and then those sums
TURNED = 64  # rows of a matrix that are turned at once


def room(shape: Shape, window: Window, dtype: Any) -> tuple[Any, Any, Any]:
    """Zeros for images of `shape` and their padding; the view of it where images lie; the part of them that does."""
    lines = list(zip(shape[-2:], window.padding, strict=True))
    made = filled((*shape[:-2], *[n + sum(pad) for n, pad in lines]), dtype)
    inside = tuple([slice(max(before, 0), before + n + min(after, 0)) for n, (before, after) in lines])
    part = tuple([slice(max(-before, 0), n + min(after, 0)) for n, (before, after) in lines])
    return made, made[(..., *inside)], (..., *part)


@lru_cache(maxsize=16)
def _padding(dtype: str, serial: bool) -> Kernel:
    array = source.array_of(dtype)
    numbers = ("lines", "height", "width", "rows", "columns", "top", "left")
    text = f"""@ti.kernel
def pad_kernel(y_: {array}, a_: {array}, {", ".join(f"{x}: ti.i32" for x in numbers)}):
    ti.loop_config(serialize={serial})
    for t in range(lines):
        row = t % rows - top
        inside = (row >= 0) & (row < height)
        first = ti.select(inside, ti.max(left, 0), columns)
        last = ti.select(inside, ti.min(left + width, columns), columns)
        from_ = (t // rows * height + row) * width - left
        for column in range(ti.min(first, columns)):
            y_[t * columns + column] = ti.cast(0, ti.{source.TI[dtype]})
        for column in range(first, last):
            y_[t * columns + column] = a_[from_ + column]
        for column in range(ti.max(first, last), columns):
            y_[t * columns + column] = ti.cast(0, ti.{source.TI[dtype]})
"""
    return compiled("pad", text, "aa" + "i" * len(numbers))


def padded(x: Any, window: Window) -> Any:
    """Images with zeros around them, row by row."""
    x, padding = in_rows(x), window.padding
    if padding == ((0, 0), (0, 0)):
        return x
    (height, width), (rows, columns) = x.shape[2:], [n + sum(pad) for n, pad in zip(x.shape[2:], padding, strict=True)]
    out = empty((*x.shape[:2], rows, columns), x.dtype)
    if out.size:
        lines = x.shape[0] * x.shape[1] * rows
        made = _padding(x.dtype.name, out.size <= source.SERIAL)
        made(pointer(out), pointer(x), lines, height, width, rows, columns, padding[0][0], padding[1][0])
    return out


def spots(x: Any, places: Shape, window: Window) -> Any:
    """A view of padded images as (N, C, kH, kW, *places): what each spot of the window sees, wherever that stands."""
    return windows(x, places, window.size, window.stride, window.dilation).view(x.__class__)


@kernel("im2col", DEVICE)
def im2col(x: Any, *, window: Window) -> Any:
    places = grid(x.shape, window)
    out = empty((*x.shape[:2], *window.size, *places), x.dtype)
    put(out, spots(padded(x, window), places, window))
    return out.reshape(len(x), x.shape[1] * prod(window.size), prod(places))


@kernel("col2im", DEVICE)
def col2im(a: Any, *, shape: Shape, window: Window) -> Any:
    made, inside, part = room(shape, window, a.dtype)
    places = grid(shape, window)
    into = spots(made, places, window)
    columns = kernels_of("reshape")[DEVICE](a, shape=into.shape)
    for i in range(window.size[0]):
        for j in range(window.size[1]):  # windows overlap, but not one spot of them with itself
            spot = into[:, :, i, j]
            computed("add", "a + b", (spot, columns[:, :, i, j]), a.dtype, spot)
    if window.padding == ((0, 0), (0, 0)):
        return made
    x = filled(shape, a.dtype)
    put(x[part], inside)
    return x


def fast(x: Any, window: Window, groups: int) -> bool:
    """Whether tiles serve: many numbers, of a type that has them, and no groups, of which each has few channels."""
    there = (source.VECTORIZED and x.dtype in LANES) or (runtime.arch() == "cuda" and x.dtype == cuda.FLOAT)
    return there and groups == 1 and x.shape[1] * prod(window.size) >= 8 and x.size > 1024


@lru_cache(maxsize=64)
def tables(channels: int, rows: int, columns: int, places: Shape, window: Window) -> tuple[Any, Any]:
    """How far in a padded image, in numbers, each spot of a window is from its first, and each place from the first."""
    (kh, kw), (sh, sw), _, (dh, dw) = window
    spot = np.arange(channels)[:, None, None] * rows * columns
    spot = spot + np.arange(kh)[:, None] * (dh * columns) + np.arange(kw) * dw
    place = np.arange(places[0])[:, None] * (sh * columns) + np.arange(places[1]) * sw
    return like(spot.reshape(-1).astype(np.int32)), like(place.reshape(-1).astype(np.int32))


@lru_cache(maxsize=16)
def _seeing(type: Any, whole: bool) -> Kernel:
    """Tiles whose rows are read from images where tables say: no columns are ever made.

    Where all are `whole` they are turned in registers, and each column is written at once; else by rows.
    """
    dtype, lanes, rows = type.name, LANES[type], range(ROWS)
    array, wide, table = source.array_of(dtype), vectors(dtype, lanes), source.array_of("int32")
    numbers = ("batches", "down", "right", "m", "count", "deep", "by_a", "by_b", "panel_b", "step_z")
    zero = ", ".join([f"ti.{source.TI[dtype]}(0.0)"] * lanes)
    head = (
        f"@ti.kernel\ndef see_kernel(y_: {vectors(dtype, ROWS) if whole else wide}, a_: {array}, b_: {wide}, "
        f"z_: {wide}, right_: {table}, down_: {table}, {', '.join(f'{x}: ti.i32' for x in numbers)}):\n"
    )
    lines = [
        "        i = t // right % down",
        "        j = t % right",
        "        n = t // right // down",
        "        at = n * by_b + j * panel_b",
        *[f"        r{r} = n * by_a + right_[ti.min(i * {ROWS} + {r}, m - 1)]" for r in rows],
        *[f"        d{r} = z_[j * step_z]" for r in rows],
        f"        for block in range((deep + {BLOCK - 1}) // {BLOCK}):",
        *[f"            c{r} = ti.Vector([{zero}])" for r in rows],
        f"            for k in range(block * {BLOCK}, ti.min(deep, (block + 1) * {BLOCK})):",
        "                b = b_[at + k]",
        "                far = down_[k]",
        *[f"                c{r} += b * a_[far + r{r}]" for r in rows],
        *[f"            d{r} += c{r}" for r in rows],
    ]
    if whole:
        for k in range(lanes):
            column = ", ".join(f"d{r}[{k}]" for r in rows)
            lines.append(f"        if j * {lanes} + {k} < count:")
            lines.append(f"            y_[(n * count + j * {lanes} + {k}) * down + i] = ti.Vector([{column}])")
    else:
        for r in rows:
            lines.append(f"        if i * {ROWS} + {r} < m:")
            lines.append(f"            y_[(n * m + i * {ROWS} + {r}) * right + j] = d{r}")
    loop = source.spread("batches * down * right", "\n".join(lines) + "\n", False)
    return compiled("see", head + loop, "aaaaaa" + "i" * len(numbers))


def seen(x: Any, right: Any, down: Any, columns: Panels, count: int, bias: Any = None) -> Any:
    """The sums over k of x[n, right[row] + down[k]] times columns, as (N, count, rows)."""
    lanes, rows = LANES[x.dtype], right.size
    panels, whole = -(-count // lanes), rows % ROWS == 0
    out = empty((len(x), count, rows) if whole else (len(x), rows, panels * lanes), x.dtype)
    start = filled((panels * lanes if bias is not None else lanes,), x.dtype)
    if bias is not None:
        put(start[:count], bias)
    numbers = (-(-rows // ROWS), panels, rows, count, down.size, prod(x.shape[1:]), columns.batch, columns.panel)
    arrays = (out, x, columns.array, start, right, down)
    _seeing(x.dtype, whole)(*map(pointer, arrays), len(x), *numbers, int(bias is not None))
    return out if whole else turned(out, count)


@lru_cache(maxsize=16)
def _turning(dtype: str) -> Kernel:
    array = source.array_of(dtype)
    text = f"""@ti.kernel
def turn_kernel(y_: {array}, a_: {array}, batches: ti.i32, rows: ti.i32, wide: ti.i32, count: ti.i32, blocks: ti.i32):
    for t in range(batches * blocks):
        n = t // blocks
        first = t % blocks * {TURNED}
        last = ti.min(first + {TURNED}, rows)
        for column in range(count):
            to = (n * count + column) * rows
            for row in range(first, last):
                y_[to + row] = a_[(n * rows + row) * wide + column]
"""
    return compiled("turn", text, "aaiiiii")


def turned(a: Any, count: int) -> Any:
    """The first `count` columns of matrices as rows, some rows at a time, so that lines of the cache are read once."""
    batches, rows, wide = a.shape
    out = empty((batches, count, rows), a.dtype)
    _turning(a.dtype.name)(pointer(out), pointer(a), batches, rows, wide, count, -(-rows // TURNED))
    return out


def convolved(x: Any, w: Any, bias: Any, window: Window, places: Shape) -> Any:
    """Each place of a window times all weights, side by side."""
    x, w, depth = padded(x, window), in_rows(w), prod(w.shape[1:])
    spot, place = tables(*x.shape[1:], places, window)
    if not source.VECTORIZED:
        out = cuda.seen(x, place, spot, w, 0, 1, depth, len(w)).reshape(len(x), len(w), *places)
        return out if bias is None else computed("add", "a + b", (out, bias[:, None, None]), out.dtype, out)
    weights = packed(w, 1, LANES[x.dtype], len(w), depth, 0, depth, 1)
    weights.batch = 0
    return shaped(seen(x, place, spot, weights, len(w), bias), (len(x), len(w), *places))


@kernel("conv2d", DEVICE)
def conv2d(x: Any, w: Any, bias: Any, *, window: Window, groups: int) -> Any:
    places = grid(x.shape, window)
    if fast(x, window, groups) and min(places) > 0:
        return convolved(x, w, bias, window, places)
    columns = im2col(x, window=window)
    columns = columns.reshape(len(x), groups, columns.shape[1] // groups, columns.shape[2])
    weights = kernels_of("reshape")[DEVICE](w, shape=(groups, len(w) // groups, prod(w.shape[1:])))
    out = shaped(matmul(weights, columns), (len(x), len(w), *places))
    return out if bias is None else computed("add", "a + b", (out, bias[:, None, None]), out.dtype, out)


@kernel("conv2d_weight", DEVICE)
def conv2d_weight(g: Any, x: Any, *, window: Window, groups: int) -> Any:
    places, shape = grid(x.shape, window), (g.shape[1], x.shape[1] // groups, *window.size)
    if fast(x, window, groups) and min(places) > 0:
        return shaped(correlated(in_rows(g), padded(x, window), window, places), shape)
    columns = im2col(x, window=window)
    columns = columns.reshape(len(x), groups, columns.shape[1] // groups, columns.shape[2])
    lines = kernels_of("reshape")[DEVICE](g, shape=(len(g), groups, g.shape[1] // groups, prod(g.shape[2:])))
    totals = matmul(lines, columns.swapaxes(-1, -2))
    return shaped(reduced("sum", "sum", "a", (totals,), (0,), False, totals.dtype), shape)


def correlated(g: Any, x: Any, window: Window, places: Shape) -> Any:
    """Of each image each spot of the window times the result's gradients; then the sum over images."""
    spot, place = tables(*x.shape[1:], places, window)
    channels, depth = g.shape[1], prod(places)
    if not source.VECTORIZED:
        products = cuda.seen(x, spot, place, g, channels * depth, 1, depth, channels)
        return reduced("sum", "sum", "a", (products,), (0,), False, x.dtype)
    lines = packed(g, len(x), LANES[x.dtype], channels, depth, channels * depth, depth, 1)
    products = seen(x, spot, place, lines, channels)
    return reduced("sum", "sum", "a", (products,), (0,), False, x.dtype)


@kernel("conv2d_input", DEVICE)
def conv2d_input(g: Any, w: Any, *, shape: Shape, window: Window, groups: int) -> Any:
    if fast(g, window, groups) and window.stride == (1, 1) and min(shape) > 0:
        reach = [dilation * (size - 1) for size, dilation in zip(window.size, window.dilation, strict=True)]
        before = [far - pad[0] for far, pad in zip(reach, window.padding, strict=True)]
        ends = zip(shape[2:], g.shape[2:], reach, before, strict=True)
        around = tuple([(first, n + far - have - first) for n, have, far, first in ends])
        turned = w[:, :, ::-1, ::-1].swapaxes(0, 1)
        return convolved(g, turned, None, window._replace(padding=around), shape[2:])
    reshape = kernels_of("reshape")[DEVICE]
    lines = reshape(g, shape=(len(g), groups, g.shape[1] // groups, prod(g.shape[2:])))
    weights = reshape(w, shape=(groups, len(w) // groups, prod(w.shape[1:])))
    columns = matmul(weights.swapaxes(-1, -2), lines)
    columns = columns.reshape(len(g), groups * weights.shape[2], lines.shape[-1])
    return col2im(columns, shape=shape, window=window)
