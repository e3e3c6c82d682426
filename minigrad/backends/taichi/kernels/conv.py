"""Convolution kernels: im2col followed by matmul, or implicit GEMM where tiles are available."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from minigrad.backends.numpy.conv import grid
from minigrad.backends.numpy.conv import window_view as seen
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.tiles import LANES
from minigrad.backends.taichi.kernels import conv_matmul, conv_tiles, cuda_matmul
from minigrad.backends.taichi.kernels.elementwise import array_argument, copy_into, evaluate, full
from minigrad.backends.taichi.kernels.matmul import matmul
from minigrad.backends.taichi.kernels.reduction import reduce_snippet
from minigrad.backends.taichi.kernels.shape import as_contiguous
from minigrad.backends.taichi.runtime import driver
from minigrad.backends.taichi.runtime.array import TAICHI, empty, reshape_owned
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import Kernel, get_kernel
from minigrad.backends.taichi.runtime.types import FLOAT
from minigrad.core.dispatch import get_kernels, kernel

__all__: list[str] = []

Shape = tuple[int, ...]
Window = Any  # size, stride, padding, dilation: minigrad.ops.conv.Window


def padded_zeros(shape: Shape, window: Window, dtype: Any) -> tuple[Any, Any, Any]:
    """Return zeros for padded images of `shape`, a view of their interior, and the index of the part of the images to
    copy there."""
    lines = list(zip(shape[-2:], window.padding, strict=True))
    zeros = full((*shape[:-2], *[n + sum(pad) for n, pad in lines]), dtype)
    interior = tuple([slice(max(before, 0), before + n + min(after, 0)) for n, (before, after) in lines])
    source_index = tuple([slice(max(-before, 0), n + min(after, 0)) for n, (before, after) in lines])
    return zeros, zeros[(..., *interior)], (..., *source_index)


_PAD_LINES = """    ti.loop_config(serialize={serial})
    for t in range(lines):
        row = t % rows - top
        inside = (row >= 0) & (row < height)
        first = ti.select(inside, ti.max(left, 0), columns)
        last = ti.select(inside, ti.min(left + width, columns), columns)
        source = (t // rows * height + row) * width - left
        for column in range(ti.min(first, columns)):
            y_[t * columns + column] = {zero}
        for column in range(first, last):
            y_[t * columns + column] = a_[source + column]
        for column in range(ti.max(first, last), columns):
            y_[t * columns + column] = {zero}
"""
_PAD_ELEMENTS = """    for t in range(lines * columns):
        line = t // columns
        row, column = line % rows - top, t % columns - left
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        source = ti.select(inside, (line // rows * height + row) * width + column, 0)
        y_[t] = ti.select(inside, a_[source], {zero})
"""


@arch_cache(16)
def _pad_kernel(dtype: str, serial: bool) -> Kernel:
    array = source.array_annotation(dtype)
    size_names = ("lines", "height", "width", "rows", "columns", "top", "left")
    zero = f"ti.cast(0, ti.{source.TAICHI_NAMES[dtype]})"
    loop = _PAD_LINES if source.VECTORIZED else _PAD_ELEMENTS
    code = f"""@ti.kernel
def pad_kernel(y_: {array}, a_: {array}, {", ".join(f"{x}: ti.i32" for x in size_names)}):
{loop.format(serial=serial, zero=zero)}"""
    return get_kernel("pad", code, "aa" + "i" * len(size_names))


def pad_images(x: Any, window: Window) -> Any:
    """Return contiguous images, padded with zeros."""
    x, padding = as_contiguous(x), window.padding
    if padding == ((0, 0), (0, 0)):
        return x
    (height, width), (rows, columns) = x.shape[2:], [n + sum(pad) for n, pad in zip(x.shape[2:], padding, strict=True)]
    out = empty((*x.shape[:2], rows, columns), x.dtype)
    if out.size:
        lines = x.shape[0] * x.shape[1] * rows
        compiled_kernel = _pad_kernel(x.dtype.name, out.size <= source.SERIAL_LIMIT)
        compiled_kernel(
            array_argument(out), array_argument(x), lines, height, width, rows, columns, padding[0][0], padding[1][0]
        )
    return out


def tap_view(x: Any, out_size: Shape, window: Window) -> Any:
    """Return a view of padded images, of shape (N, C, kH, kW, oH, oW), with the element under each tap at each window
    position."""
    return seen(x, out_size, window.size, window.stride, window.dilation).view(x.__class__)


@kernel("im2col", TAICHI)
def im2col(x: Any, *, window: Window) -> Any:
    out_size = grid(x.shape, window)
    out = empty((*x.shape[:2], *window.size, *out_size), x.dtype)
    copy_into(out, tap_view(pad_images(x, window), out_size, window))
    return out.reshape(len(x), x.shape[1] * prod(window.size), prod(out_size))


@kernel("col2im", TAICHI)
def col2im(a: Any, *, shape: Shape, window: Window) -> Any:
    padded_output, interior, source_index = padded_zeros(shape, window, a.dtype)
    out_size = grid(shape, window)
    taps = tap_view(padded_output, out_size, window)
    columns = get_kernels("reshape")[TAICHI](a, shape=taps.shape)
    for i in range(window.size[0]):
        for j in range(window.size[1]):  # windows overlap, but positions of one tap are distinct
            tap = taps[:, :, i, j]
            evaluate("add", "a + b", (tap, columns[:, :, i, j]), a.dtype, tap)
    if window.padding == ((0, 0), (0, 0)):
        return padded_output
    x = full(shape, a.dtype)
    copy_into(x[source_index], interior)
    return x


def can_use_tiles(x: Any, window: Window, groups: int) -> bool:
    """Return whether to use tiles. They require many elements of a supported dtype and a single group, since groups
    would have few channels."""
    is_supported = (source.VECTORIZED and x.dtype in LANES) or (driver.arch() == "cuda" and x.dtype == FLOAT)
    return is_supported and groups == 1 and x.shape[1] * prod(window.size) >= 8 and x.size > 1024


def _window_offsets(channel: int, row: int, image: Shape, out_size: Shape, window: Window) -> tuple[Any, Any]:
    """Return the offsets of a window's taps from the first tap, and of its positions from the first position.

    `channel` and `row` are the strides of an image (C, H, W).
    """
    (kh, kw), (sh, sw), _, (dh, dw) = window
    tap_offsets = (
        np.arange(image[0])[:, None, None] * channel + np.arange(kh)[:, None] * (dh * row) + np.arange(kw) * dw
    )
    position_offsets = np.arange(out_size[0])[:, None] * (sh * row) + np.arange(out_size[1]) * sw
    return tap_offsets.reshape(-1), position_offsets.reshape(-1)


@arch_cache(256)
def _offset_table(
    images: Shape,
    out_size: Shape,
    window: Window,
    checks_padding: bool,
    rows_are_positions: bool,
    n: int,
    steps: tuple[int, int, int],
) -> cuda_matmul.ImageTable:
    """Return the offset table of an implicit GEMM on CUDA, with one row per window position or per tap."""
    batches, channels, rows, columns = images
    image = images[1:]
    tap_offsets, position_offsets = _window_offsets(rows * columns, columns, image, out_size, window)
    above, before = (window.padding[0][0], window.padding[1][0]) if checks_padding else (0, 0)
    position_offsets -= above * columns + before
    codes = _window_offsets(0, 1 << 16, image, out_size, window) if checks_padding else None
    size = (channels * rows * columns, rows, columns, above, before)
    if rows_are_positions:
        return cuda_matmul.make_table(position_offsets, tap_offsets, codes and codes[::-1], size, batches, n, steps)
    return cuda_matmul.make_table(tap_offsets, position_offsets, codes, size, batches, n, steps)


MAX_CHECKED = 1 << 30  # maximum multiplications for which a padding check per element is cheaper than a padded copy


def _implicit_gemm(
    x: Any, b: Any, window: Window, out_size: Shape, rows_are_positions: bool, n: int, steps: Any, bias: Any
) -> Any:
    """Multiply the windows of images by `n` columns of b on CUDA."""
    work = len(x) * prod(out_size) * x.shape[1] * prod(window.size) * n
    checks_padding = window.padding != ((0, 0), (0, 0)) and work <= MAX_CHECKED
    if checks_padding and max(size + sum(pad) for size, pad in zip(x.shape[2:], window.padding, strict=True)) < 1 << 15:
        x = as_contiguous(x)
    else:
        x, checks_padding = pad_images(x, window), False
    return cuda_matmul.implicit_gemm(
        x, b, _offset_table(x.shape, out_size, window, checks_padding, rows_are_positions, n, steps), bias
    )


def convolve(x: Any, w: Any, bias: Any, window: Window, out_size: Shape) -> Any:
    """Convolve `x` with `w`, by multiplying each window by all weights."""
    if source.VECTORIZED:
        convolution = conv_matmul if conv_matmul.has_many_weights(w.shape, out_size) else conv_tiles
        return convolution.convolve(x, w, bias, window, out_size)
    w, depth = as_contiguous(w), prod(w.shape[1:])
    out = _implicit_gemm(
        x, w, window, out_size, True, len(w), (0, 1, depth), None if bias is None else as_contiguous(bias)
    )
    return reshape_owned(out, (len(x), len(w), *out_size))


@kernel("conv2d", TAICHI)
def conv2d(x: Any, w: Any, bias: Any, *, window: Window, groups: int) -> Any:
    out_size = grid(x.shape, window)
    if can_use_tiles(x, window, groups) and min(out_size) > 0:
        return convolve(x, w, bias, window, out_size)
    columns = im2col(x, window=window)
    columns = columns.reshape(len(x), groups, columns.shape[1] // groups, columns.shape[2])
    weights = get_kernels("reshape")[TAICHI](w, shape=(groups, len(w) // groups, prod(w.shape[1:])))
    out = reshape_owned(matmul(weights, columns), (len(x), len(w), *out_size))
    return out if bias is None else evaluate("add", "a + b", (out, bias[:, None, None]), out.dtype, out)


@kernel("conv2d_weight", TAICHI)
def conv2d_weight(g: Any, x: Any, *, window: Window, groups: int) -> Any:
    out_size, shape = grid(x.shape, window), (g.shape[1], x.shape[1] // groups, *window.size)
    if can_use_tiles(x, window, groups) and min(out_size) > 0:
        return reshape_owned(weight_gradient(g, x, window, out_size), shape)
    columns = im2col(x, window=window)
    columns = columns.reshape(len(x), groups, columns.shape[1] // groups, columns.shape[2])
    lines = get_kernels("reshape")[TAICHI](g, shape=(len(g), groups, g.shape[1] // groups, prod(g.shape[2:])))
    totals = matmul(lines, columns.swapaxes(-1, -2))
    return reshape_owned(reduce_snippet("sum", "sum", "a", (totals,), (0,), False, totals.dtype), shape)


def weight_gradient(g: Any, x: Any, window: Window, out_size: Shape) -> Any:
    """Return the weight gradients: the products of each tap and the output gradients, summed over images."""
    if source.VECTORIZED:
        weights = (g.shape[1], x.shape[1], *window.size)
        convolution = conv_matmul if conv_matmul.has_many_weights(weights, out_size) else conv_tiles
        return convolution.weight_gradient(g, x, window, out_size)
    channels, depth = g.shape[1], prod(out_size)
    products = _implicit_gemm(
        x, as_contiguous(g), window, out_size, False, channels, (channels * depth, 1, depth), None
    )
    return reduce_snippet("sum", "sum", "a", (products,), (0,), False, x.dtype)


@kernel("conv2d_input", TAICHI)
def conv2d_input(g: Any, w: Any, *, shape: Shape, window: Window, groups: int) -> Any:
    uses_tiles = can_use_tiles(g, window, groups) and min(*shape, *g.shape) > 0
    is_strided = window.stride != (1, 1)
    if uses_tiles and source.VECTORIZED and (is_strided or conv_matmul.has_many_weights(w.shape, g.shape[2:])):
        return conv_matmul.input_gradient(g, w, shape, window)
    if uses_tiles and not is_strided:
        reach = [dilation * (size - 1) for size, dilation in zip(window.size, window.dilation, strict=True)]
        before = [far - pad[0] for far, pad in zip(reach, window.padding, strict=True)]
        ends = zip(shape[2:], g.shape[2:], reach, before, strict=True)
        full_padding = tuple([(first, n + far - have - first) for n, have, far, first in ends])
        flipped = w[:, :, ::-1, ::-1].swapaxes(0, 1)
        return convolve(g, flipped, None, window._replace(padding=full_padding), shape[2:])
    reshape = get_kernels("reshape")[TAICHI]
    lines = reshape(g, shape=(len(g), groups, g.shape[1] // groups, prod(g.shape[2:])))
    weights = reshape(w, shape=(groups, len(w) // groups, prod(w.shape[1:])))
    columns = matmul(weights.swapaxes(-1, -2), lines)
    columns = columns.reshape(len(g), groups * weights.shape[2], lines.shape[-1])
    return col2im(columns, shape=shape, window=window)
