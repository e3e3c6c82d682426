"""Convolution kernels: im2col copies windows to columns, and BLAS multiplies them.

The columns of all images would take kH kW times the memory of the images, and would not fit in the cache. They are
therefore built for a few images at a time, in a reused workspace.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array, Shape
from minigrad.backends.numpy.threads import parallel_for
from minigrad.core.dispatch import kernel

__all__: list[str] = []

Pair = tuple[int, int]
Window = Any  # size, stride, padding, dilation: minigrad.ops.conv.Window

# Number of column elements that a thread builds at a time: 1 MiB of float32, about the size of its cache.
COLUMN_ELEMENTS = 2**18


def grid(shape: Shape, window: Window) -> Shape:
    """Return the output size, (rows, columns), of a convolution of images of `shape` with the window."""
    lines = zip(shape[-2:], window.size, window.stride, window.padding, window.dilation, strict=True)
    return tuple([(n + sum(pad) - dilation * (size - 1) - 1) // stride + 1 for n, size, stride, pad, dilation in lines])


def window_view(a: Array, out_size: Shape, size: Pair, stride: Pair, dilation: Pair) -> Array:
    """Return a view of `a` (…, H, W) as (…, kH, kW, oH, oW): the element under each tap at each window position."""
    *steps, down, right = a.strides
    window_strides = (dilation[0] * down, dilation[1] * right, stride[0] * down, stride[1] * right)
    return np.lib.stride_tricks.as_strided(a, (*a.shape[:-2], *size, *out_size), (*steps, *window_strides))


def padded_zeros(shape: Shape, window: Window, dtype: Any) -> tuple[Array, Array, Any]:
    """Return zeros for padded images of `shape`, a view of the interior, and the index of the pixels to copy there."""
    lines = list(zip(shape[-2:], window.padding, strict=True))
    zeros: Array = np.zeros((*shape[:-2], *[n + sum(pad) for n, pad in lines]), dtype)
    interior = tuple([slice(max(before, 0), before + n + min(after, 0)) for n, (before, after) in lines])
    source_index = tuple([slice(max(-before, 0), n + min(after, 0)) for n, (before, after) in lines])
    return zeros, zeros[(..., *interior)], (..., *source_index)


def crop(shape: Shape, interior: Array, index: Any) -> Array:
    """Return images of `shape` with `interior` at index `index`, and zeros in the part that negative padding crops."""
    x = np.zeros(shape, interior.dtype)
    x[index] = interior
    return x


def slices(count: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def iter_columns(x: Array, window: Window, groups: int) -> Iterator[tuple[tuple[slice, ...], Array]]:
    """Yield the output index and the columns of a few images, or of a few rows of one image, at a time.

    The columns, of shape (groups, C / groups * kH * kW, images, rows * oW), are valid until the next iteration.
    """
    count, channels = x.shape[:2]
    (kh, kw), (sh, sw), _, (dh, dw) = window
    oh, ow = grid(x.shape, window)
    row_elements = max(channels * kh * kw * ow, 1)  # elements in the columns of one output row
    max_images, rows = (
        max(1, min(count, COLUMN_ELEMENTS // (row_elements * oh))),
        max(1, min(oh, COLUMN_ELEMENTS // row_elements)),
    )
    if window[:3] == ((1, 1), (1, 1), ((0, 0), (0, 0))):  # the columns are the image itself
        for images in slices(count, max_images):
            columns = x[images].swapaxes(0, 1).reshape(groups, channels // groups, -1, oh * ow)
            yield (images, slice(None), slice(0, oh)), np.ascontiguousarray(columns)  # BLAS may round by the strides
        return
    # First shift within rows, then shift by rows, in contiguous runs of entire images where the stride is 1: the two
    # copies together take 0.7 times as long as a single copy with runs of one row.
    workspace, interior, source_index = padded_zeros((channels, max_images, *x.shape[2:]), window, x.dtype)
    shifted = np.empty((channels, kw, max_images, sh * (rows - 1) + dh * (kh - 1) + 1, ow), x.dtype)
    columns = np.empty((channels, kh, kw, max_images, rows, ow), x.dtype)
    across = window_view(workspace, (workspace.shape[2], ow), (1, kw), (1, sw), (1, dw))[:, :, 0].swapaxes(1, 2)
    down = window_view(shifted, (rows, ow), (kh, 1), (sh, 1), (dh, 1))[:, :, :, :, 0].transpose(0, 3, 1, 2, 4, 5)
    for images in slices(count, max_images):
        image_count = images.stop - images.start
        interior[:, :image_count] = x[images][source_index].swapaxes(0, 1)
        for band in slices(oh, rows):
            source_rows = across[:, :, :, sh * band.start : sh * (band.stop - 1) + dh * (kh - 1) + 1]
            shifted[:, :, :, : source_rows.shape[3]] = source_rows
            columns[...] = down
            valid_columns = columns[:, :, :, :image_count, : band.stop - band.start]
            yield (
                (images, slice(None), band),
                valid_columns.reshape(groups, channels // groups * kh * kw, image_count, -1),
            )


@kernel("conv2d", DEVICE)
def conv2d(x: Array, w: Array, bias: Array | None, *, window: Window, groups: int) -> Array:
    out = np.empty((len(x), len(w), *grid(x.shape, window)), x.dtype)
    weights = w.reshape(groups, len(w) // groups, -1)
    bias_term = 0 if bias is None else bias[:, None, None, None]

    def convolve(images: slice) -> None:
        for out_index, columns in iter_columns(x[images], window, groups):
            target = out[images][out_index].swapaxes(0, 1)
            sums = np.matmul(weights, columns.reshape(*columns.shape[:2], -1))
            np.add(sums.reshape(target.shape), bias_term, out=target)

    parallel_for(convolve, len(x), out.size)
    return out


@kernel("conv2d_weight", DEVICE)
def conv2d_weight(g: Array, x: Array, *, window: Window, groups: int) -> Array:
    out, channels = g.shape[1] // groups, x.shape[1] // groups
    totals: dict[int, Array] = {}

    def correlate(images: slice) -> None:
        total = np.zeros((groups, channels * prod(window.size), out), x.dtype)
        for out_index, columns in iter_columns(x[images], window, groups):
            lines = g[images][out_index].reshape(columns.shape[2], groups, out, -1)
            # BLAS takes 1.5 times as long to compute the transposed product.
            total += np.matmul(columns.transpose(2, 0, 1, 3), lines.swapaxes(2, 3)).sum(0)
        totals[images.start] = total

    parallel_for(correlate, len(x), g.size)
    total = sum(totals[start] for start in sorted(totals))
    return total.swapaxes(1, 2).reshape(groups * out, channels, *window.size)


@kernel("conv2d_input", DEVICE)
def conv2d_input(g: Array, w: Array, *, shape: Shape, window: Window, groups: int) -> Array:
    out, channels = len(w) // groups, w.shape[1]
    size, stride, padding, dilation = window
    weights = w.reshape(groups, out, channels, *size)
    if stride == (1, 1):
        # Convolve with the flipped window within rows, and scatter-add only across rows, in runs of entire images. This
        # takes 0.65 times as long as scatter-adding both, and 0.75 times as long as convolving both.
        (kh, kw), (dh, dw) = size, dilation
        reach = dw * (kw - 1)
        row_padding = ((0, 0), (reach - padding[1][0], reach - padding[1][1]))
        flipped = np.ascontiguousarray(weights[..., ::-1].transpose(0, 2, 3, 1, 4)).reshape(groups, channels * kh, -1)
        workspace, interior, source_index = padded_zeros(shape, window._replace(padding=(padding[0], (0, 0))), g.dtype)

        def scatter_rows(images: slice) -> None:
            across = window._replace(size=(1, kw), padding=row_padding)
            for (image_slice, _, band), columns in iter_columns(g[images], across, groups):
                sums = np.matmul(flipped, columns.reshape(groups, out * kw, -1))
                sums = sums.reshape(groups * channels, kh, columns.shape[2], -1, shape[3]).transpose(1, 2, 0, 3, 4)
                for i in range(kh):
                    workspace[images][image_slice, :, band.start + dh * i : band.stop + dh * i] += sums[i]

        parallel_for(scatter_rows, len(g), g.size)
        return crop(shape, interior, source_index)
    lines = np.ascontiguousarray(g.reshape(len(g), groups, out, prod(g.shape[2:])))  # BLAS may round by the strides
    weights = weights.reshape(groups, out, -1).swapaxes(1, 2)
    x = np.empty(shape, g.dtype)
    for images in slices(len(g), max(1, COLUMN_ELEMENTS // max(1, weights.size // out * lines.shape[-1]))):
        x[images] = col2im(np.matmul(weights, lines[images]), shape=x[images].shape, window=window)
    return x


@kernel("im2col", DEVICE)
def im2col(x: Array, *, window: Window) -> Array:
    workspace, interior, source_index = padded_zeros(x.shape, window, x.dtype)
    interior[...] = x[source_index]
    taps = window_view(workspace, grid(x.shape, window), window.size, window.stride, window.dilation)
    return taps.reshape(len(x), x.shape[1] * prod(window.size), prod(taps.shape[-2:]))


@kernel("col2im", DEVICE)
def col2im(a: Array, *, shape: Shape, window: Window) -> Array:
    workspace, interior, source_index = padded_zeros(shape, window, a.dtype)
    taps = window_view(workspace, grid(shape, window), window.size, window.stride, window.dilation)
    columns = a.reshape(taps.shape)
    for i in range(window.size[0]):
        for j in range(window.size[1]):
            taps[:, :, i, j] += columns[:, :, i, j]  # windows overlap, but positions of one tap are distinct
    return crop(shape, interior, source_index)
