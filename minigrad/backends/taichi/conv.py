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


_PADDED_BY_LINES = """    ti.loop_config(serialize={serial})
    for t in range(lines):
        row = t % rows - top
        inside = (row >= 0) & (row < height)
        first = ti.select(inside, ti.max(left, 0), columns)
        last = ti.select(inside, ti.min(left + width, columns), columns)
        from_ = (t // rows * height + row) * width - left
        for column in range(ti.min(first, columns)):
            y_[t * columns + column] = {zero}
        for column in range(first, last):
            y_[t * columns + column] = a_[from_ + column]
        for column in range(ti.max(first, last), columns):
            y_[t * columns + column] = {zero}
"""
_PADDED = """    for t in range(lines * columns):
        line = t // columns
        row, column = line % rows - top, t % columns - left
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        from_ = ti.select(inside, (line // rows * height + row) * width + column, 0)
        y_[t] = ti.select(inside, a_[from_], {zero})
"""


@lru_cache(maxsize=16)
def _padding(dtype: str, serial: bool) -> Kernel:
    array = source.array_of(dtype)
    numbers = ("lines", "height", "width", "rows", "columns", "top", "left")
    zero = f"ti.cast(0, ti.{source.TI[dtype]})"
    loop = _PADDED_BY_LINES if source.VECTORIZED else _PADDED
    text = f"""@ti.kernel
def pad_kernel(y_: {array}, a_: {array}, {", ".join(f"{x}: ti.i32" for x in numbers)}):
{loop.format(serial=serial, zero=zero)}"""
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


def _steps(channel: int, row: int, image: Shape, places: Shape, window: Window) -> tuple[Any, Any]:
    """How far each spot of a window is from its first, and each place of it from the first place, if a channel and a
    row of an image (C, H, W) make so much."""
    (kh, kw), (sh, sw), _, (dh, dw) = window
    spot = np.arange(image[0])[:, None, None] * channel + np.arange(kh)[:, None] * (dh * row) + np.arange(kw) * dw
    place = np.arange(places[0])[:, None] * (sh * row) + np.arange(places[1]) * sw
    return spot.reshape(-1), place.reshape(-1)


@lru_cache(maxsize=64)
def tables(image: Shape, places: Shape, window: Window) -> tuple[Any, Any]:
    """How far in a padded image, in numbers, each spot of a window is from its first, and each place from the first."""
    spot, place = _steps(image[1] * image[2], image[2], image, places, window)
    return like(spot.astype(np.int32)), like(place.astype(np.int32))


@lru_cache(maxsize=256)
def _table(
    images: Shape, places: Shape, window: Window, around: bool, by_place: bool, n: int, steps: tuple[int, int, int]
) -> cuda.Table:
    """How a product on CUDA sees images, a row of it for each place of the window, or for each spot in it."""
    batches, channels, rows, columns = images
    image = images[1:]
    spot, place = _steps(rows * columns, columns, image, places, window)
    above, before = (window.padding[0][0], window.padding[1][0]) if around else (0, 0)
    place -= above * columns + before
    codes = _steps(0, 1 << 16, image, places, window) if around else None
    size = (channels * rows * columns, rows, columns, above, before)
    if by_place:
        return cuda.table_of(place, spot, codes and codes[::-1], size, batches, n, steps)
    return cuda.table_of(spot, place, codes, size, batches, n, steps)


LITTLE = 1 << 30  # up to so many products it pays to ask for each number whether it is padding, and to copy nothing


def _by_blocks(x: Any, b: Any, window: Window, places: Shape, by_place: bool, n: int, steps: Any, bias: Any) -> Any:
    """Products on CUDA of what windows see of images with `n` columns of b."""
    work = len(x) * prod(places) * x.shape[1] * prod(window.size) * n
    around = window.padding != ((0, 0), (0, 0)) and work <= LITTLE
    if around and max(size + sum(pad) for size, pad in zip(x.shape[2:], window.padding, strict=True)) < 1 << 15:
        x = in_rows(x)
    else:
        x, around = padded(x, window), False
    return cuda.seen(x, b, _table(x.shape, places, window, around, by_place, n, steps), bias)


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
    w, depth = in_rows(w), prod(w.shape[1:])
    if not source.VECTORIZED:
        out = _by_blocks(x, w, window, places, True, len(w), (0, 1, depth), None if bias is None else in_rows(bias))
        return shaped(out, (len(x), len(w), *places))
    x = padded(x, window)
    spot, place = tables(x.shape[1:], places, window)
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
        return shaped(correlated(in_rows(g), x, window, places), shape)
    columns = im2col(x, window=window)
    columns = columns.reshape(len(x), groups, columns.shape[1] // groups, columns.shape[2])
    lines = kernels_of("reshape")[DEVICE](g, shape=(len(g), groups, g.shape[1] // groups, prod(g.shape[2:])))
    totals = matmul(lines, columns.swapaxes(-1, -2))
    return shaped(reduced("sum", "sum", "a", (totals,), (0,), False, totals.dtype), shape)


def correlated(g: Any, x: Any, window: Window, places: Shape) -> Any:
    """Of each image each spot of the window times the result's gradients; then the sum over images."""
    channels, depth = g.shape[1], prod(places)
    if not source.VECTORIZED:
        products = _by_blocks(x, g, window, places, False, channels, (channels * depth, 1, depth), None)
        return reduced("sum", "sum", "a", (products,), (0,), False, x.dtype)
    x = padded(x, window)
    spot, place = tables(x.shape[1:], places, window)
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
