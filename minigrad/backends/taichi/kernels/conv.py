"""Convolution kernels: im2col followed by matmul, or implicit GEMM where tiles are available."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from minigrad.backends.numpy.conv import grid
from minigrad.backends.numpy.conv import windows as seen
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.tiles import LANES
from minigrad.backends.taichi.kernels import conv_tiles, cuda_products
from minigrad.backends.taichi.kernels.elementwise import computed, filled, pointer, put
from minigrad.backends.taichi.kernels.matmul import matmul
from minigrad.backends.taichi.kernels.reduction import reduced
from minigrad.backends.taichi.kernels.shape import in_rows
from minigrad.backends.taichi.runtime import driver
from minigrad.backends.taichi.runtime.array import DEVICE, empty, shaped
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.kernel import Kernel, compiled
from minigrad.backends.taichi.runtime.types import FLOAT
from minigrad.core.dispatch import kernel, kernels_of

__all__: list[str] = []

Shape = tuple[int, ...]
Window = Any  # size, stride, padding, dilation: minigrad.ops.conv.Window


def room(shape: Shape, window: Window, dtype: Any) -> tuple[Any, Any, Any]:
    """Return zeros for padded images of `shape`, a view of their interior, and the index of its part of the images."""
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


@cached(16)
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
    """Return zero-padded images, contiguous."""
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
    """Return a view of padded images, (N, C, kH, kW, oH, oW): the element under each tap at each window position."""
    return seen(x, places, window.size, window.stride, window.dilation).view(x.__class__)


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
        for j in range(window.size[1]):  # windows overlap, but no tap overlaps itself
            spot = into[:, :, i, j]
            computed("add", "a + b", (spot, columns[:, :, i, j]), a.dtype, spot)
    if window.padding == ((0, 0), (0, 0)):
        return made
    x = filled(shape, a.dtype)
    put(x[part], inside)
    return x


def fast(x: Any, window: Window, groups: int) -> bool:
    """Return whether to use tiles: many elements of a supported dtype, and no groups, which would have few channels."""
    there = (source.VECTORIZED and x.dtype in LANES) or (driver.arch() == "cuda" and x.dtype == FLOAT)
    return there and groups == 1 and x.shape[1] * prod(window.size) >= 8 and x.size > 1024


def _steps(channel: int, row: int, image: Shape, places: Shape, window: Window) -> tuple[Any, Any]:
    """Return the offsets of the taps of a window from its first tap, and of its positions from the first position.

    `channel` and `row` are the strides of an image (C, H, W).
    """
    (kh, kw), (sh, sw), _, (dh, dw) = window
    spot = np.arange(image[0])[:, None, None] * channel + np.arange(kh)[:, None] * (dh * row) + np.arange(kw) * dw
    place = np.arange(places[0])[:, None] * (sh * row) + np.arange(places[1]) * sw
    return spot.reshape(-1), place.reshape(-1)


@cached(256)
def _table(
    images: Shape, places: Shape, window: Window, around: bool, by_place: bool, n: int, steps: tuple[int, int, int]
) -> cuda_products.ImageTable:
    """Return the offset table of an implicit GEMM on CUDA, with one row per window position or per tap."""
    batches, channels, rows, columns = images
    image = images[1:]
    spot, place = _steps(rows * columns, columns, image, places, window)
    above, before = (window.padding[0][0], window.padding[1][0]) if around else (0, 0)
    place -= above * columns + before
    codes = _steps(0, 1 << 16, image, places, window) if around else None
    size = (channels * rows * columns, rows, columns, above, before)
    if by_place:
        return cuda_products.table_of(place, spot, codes and codes[::-1], size, batches, n, steps)
    return cuda_products.table_of(spot, place, codes, size, batches, n, steps)


LITTLE = 1 << 30  # maximum multiplications for which a padding check per element is cheaper than a padded copy


def _by_blocks(x: Any, b: Any, window: Window, places: Shape, by_place: bool, n: int, steps: Any, bias: Any) -> Any:
    """Multiply the windows of images by `n` columns of b on CUDA."""
    work = len(x) * prod(places) * x.shape[1] * prod(window.size) * n
    around = window.padding != ((0, 0), (0, 0)) and work <= LITTLE
    if around and max(size + sum(pad) for size, pad in zip(x.shape[2:], window.padding, strict=True)) < 1 << 15:
        x = in_rows(x)
    else:
        x, around = padded(x, window), False
    return cuda_products.seen(x, b, _table(x.shape, places, window, around, by_place, n, steps), bias)


def convolved(x: Any, w: Any, bias: Any, window: Window, places: Shape) -> Any:
    """Convolve `x` with `w`: multiply each window by all weights."""
    if source.VECTORIZED:
        return conv_tiles.convolved(x, w, bias, window, places)
    w, depth = in_rows(w), prod(w.shape[1:])
    out = _by_blocks(x, w, window, places, True, len(w), (0, 1, depth), None if bias is None else in_rows(bias))
    return shaped(out, (len(x), len(w), *places))


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
        return shaped(correlated(g, x, window, places), shape)
    columns = im2col(x, window=window)
    columns = columns.reshape(len(x), groups, columns.shape[1] // groups, columns.shape[2])
    lines = kernels_of("reshape")[DEVICE](g, shape=(len(g), groups, g.shape[1] // groups, prod(g.shape[2:])))
    totals = matmul(lines, columns.swapaxes(-1, -2))
    return shaped(reduced("sum", "sum", "a", (totals,), (0,), False, totals.dtype), shape)


def correlated(g: Any, x: Any, window: Window, places: Shape) -> Any:
    """Return the weight gradients: multiply each tap by the output gradients per image, then sum over images."""
    if source.VECTORIZED:
        return conv_tiles.correlated(g, x, window, places)
    channels, depth = g.shape[1], prod(places)
    products = _by_blocks(x, in_rows(g), window, places, False, channels, (channels * depth, 1, depth), None)
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
