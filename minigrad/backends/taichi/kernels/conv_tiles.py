"""Launches of the CPU convolution kernels in `conv_source`, with their tables, sizes and workspace."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.conv_source import ROWS, ImageLayout, TiledConvolution, weight_gradient_kernel
from minigrad.backends.taichi.codegen.tiles import BLOCK, LANES, MAX_SERIAL_PRODUCTS
from minigrad.backends.taichi.kernels.shape import as_contiguous
from minigrad.backends.taichi.runtime.array import address_argument, empty, register_constant
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import Kernel

__all__ = ["convolve", "weight_gradient"]

Shape = tuple[int, ...]
Window = Any  # size, stride, padding, dilation: minigrad.ops.conv.Window
Memory = tuple[int, int, int]

MAX_PARTITIONS = 8  # maximum number of partitions of the images, each with its own partial sums
MAX_WEIGHTS = 1 << 20  # maximum number of weights for more than two partitions
MAX_SERIAL_WEIGHTS = source.serial_limit(
    1 << 13
)  # maximum number of weights to pack, or of partial sums to add, on one core


def _image_layout(shape: Shape, steps: Shape, window: Window, unit: int) -> ImageLayout:
    _, channels, height, width = shape
    (above, below), (before, after) = window.padding
    padded = -(-channels // unit) * unit
    row0, col0, row_length = max(0, -above), max(0, -before), width + before + after
    interior_offset = ((row0 + above) * row_length + col0 + before) * padded
    rows, cols = min(height, height + below) - row0, min(width, width + after) - col0
    buffer_size = -(-(height + above + below) * row_length * padded // 16) * 16
    stride_n, stride_c, stride_row, stride_col = steps
    return ImageLayout(
        channels,
        padded,
        stride_n,
        stride_c,
        stride_row,
        stride_col,
        row0,
        rows,
        col0,
        cols,
        interior_offset,
        row_length,
        buffer_size,
    )


def _channel_unit(channels: int) -> int:
    """Return the number of channels read at a time. With 1 or 2 channels, units of four would be mostly padding; units
    of eight or sixteen are no faster, and take up to eight seconds to compile."""
    return 1 if channels < 3 else 4


def _window_offsets(images: ImageLayout, window: Window, out_size: Shape, unit: int) -> tuple[Any, Any]:
    """Return the offsets of a window's taps, for each group of `unit` channels, and the offsets of the window
    positions."""
    (kh, kw), (sh, sw), _, (dh, dw) = window
    vectors, row_length = images.padded // unit, images.row_pixels
    tap_offsets = np.arange(kh)[:, None] * (dh * row_length) + np.arange(kw) * dw
    position_offsets = np.arange(out_size[0])[:, None] * (sh * row_length) + np.arange(out_size[1]) * sw
    return tap_offsets.reshape(-1, 1) * vectors + np.arange(vectors), position_offsets * vectors


def _can_vectorise_rows(images: ImageLayout, unit: int, misalignment: int, itemsize: int) -> bool:
    """Return whether loads can be vectorised along a row, four elements from each of `unit` channels."""
    steps = (images.stride_n, images.stride_c, images.stride_row, images.col0, images.cols)
    return (
        unit > 1
        and images.stride_col == 1
        and misalignment % (4 * itemsize) == 0
        and not any(step % 4 for step in steps)
    )


class TilePlan(NamedTuple):
    """A kernel, its tables, and the size of its workspace in elements."""

    kernel: Kernel
    tables: tuple[Memory, ...]
    scratch: int
    table_arrays: list[Any]  # arrays that own the memory of the tables


def _make_plan(kernel: Kernel, tables: tuple[Any, ...], scratch: int) -> TilePlan:
    table_arrays = [register_constant(np.ascontiguousarray(table, np.int32)) for table in tables]
    return TilePlan(kernel, tuple([(table.ctypes.data, 1, 1) for table in table_arrays]), scratch, table_arrays)


@arch_cache(1024)
def _convolution_plan(
    dtype: Any, misalignment: int, shape: Shape, count: int, window: Window, out_size: Shape, steps: Shape,
    weights: Shape,
    bias: Shape | None,
) -> TilePlan:  # fmt: skip
    lanes, m, tap_count, unit = LANES[dtype], prod(out_size), prod(window.size), _channel_unit(shape[1])
    images = _image_layout(shape, steps, window, unit)
    tap_offsets, position_offsets = _window_offsets(images, window, out_size, unit)
    row_tiles, panels = -(-m // ROWS), -(-count // lanes)
    bias_offset = panels * tap_count * images.padded * lanes
    workspace_offset = -(-(bias_offset + panels * lanes) // 16) * 16
    workspace_per_core = images.total_elements + ROWS * lanes
    serial = shape[0] * m * bias_offset <= MAX_SERIAL_PRODUCTS
    vectorised_rows = images.channels == images.padded and _can_vectorise_rows(
        images, unit, misalignment, dtype.itemsize
    )  # without padded channels, since 0 times inf is nan
    scalars = (
        shape[0], row_tiles, m, panels, count, tap_offsets.size, *window.size, *weights, int(bias is not None),
        *(bias or (0,)),
        bias_offset, workspace_offset, workspace_per_core, *images,
    )  # fmt: skip
    kernel = TiledConvolution(
        dtype, unit, vectorised_rows, m % ROWS == 0, serial or bias_offset <= MAX_SERIAL_WEIGHTS, serial
    ).kernel()
    return _make_plan(
        kernel,
        (tap_offsets, position_offsets, scalars),
        workspace_offset + workspace_per_core * (1 if serial else source.CORES),
    )


def _element_strides(x: Any) -> Shape:
    return tuple([by // x.itemsize for by in x.strides])


def convolve(x: Any, w: Any, bias: Any, window: Window, out_size: Shape) -> Any:
    """Convolve x (N, C, H, W) with w (O, C, kH, kW); return (N, O, oH, oW)."""
    x_pointer = address_argument(x)
    layout = (
        window,
        out_size,
        _element_strides(x),
        _element_strides(w),
        None if bias is None else _element_strides(bias),
    )
    plan = _convolution_plan(x.dtype, x_pointer[0] % 64, x.shape, len(w), *layout)
    out, scratch = empty((len(x), len(w), *out_size), x.dtype), empty((plan.scratch,), x.dtype)
    workspace = address_argument(scratch)
    bias_pointer = workspace if bias is None else address_argument(bias)
    plan.kernel.launch(
        address_argument(out),
        x_pointer,
        address_argument(w),
        bias_pointer,
        workspace,
        workspace,
        workspace,
        *plan.tables,
    )
    return out


@arch_cache(1024)
def _weight_gradient_plan(
    dtype: Any,
    misalignment: int,
    misalignment_g: int,
    shape: Shape,
    count: int,
    window: Window,
    out_size: Shape,
    steps: Shape,
) -> TilePlan:
    lanes, m, unit = LANES[dtype], prod(out_size), _channel_unit(shape[1])
    images = _image_layout(shape, steps, window, unit)
    tap_offsets, position_offsets = _window_offsets(images, window, out_size, unit)
    panels, bands = -(-count // lanes), -(-m // BLOCK)
    row_tiles, units = -(-tap_offsets.size * unit // ROWS), shape[0] * bands
    size, workspace_per_core = (
        row_tiles * ROWS * panels * lanes,
        images.total_elements + -(-panels * m * lanes // 16) * 16,
    )
    serial = shape[0] * m * size <= MAX_SERIAL_PRODUCTS
    partials = 1 if serial else min(units, MAX_PARTITIONS if size <= MAX_WEIGHTS else 2)
    sums_offset = workspace_per_core * (1 if serial else source.CORES)
    scalars = (
        units, bands, row_tiles, m, panels, count, tap_offsets.size, prod(window.size), partials, sums_offset, size,
        workspace_per_core, *images,
    )  # fmt: skip
    vectorised_rows, vectorised_grads = (
        _can_vectorise_rows(images, unit, misalignment, dtype.itemsize),
        not (m % 4 or misalignment_g % (4 * dtype.itemsize)),
    )
    kernel = weight_gradient_kernel(
        dtype, unit, vectorised_rows, vectorised_grads, serial or size * partials <= MAX_SERIAL_WEIGHTS, serial
    )
    return _make_plan(kernel, (tap_offsets, position_offsets, scalars), sums_offset + partials * size)


def weight_gradient(g: Any, x: Any, window: Window, out_size: Shape) -> Any:
    """Return the weight gradient, (O, C, kH, kW), from the output gradient g (N, O, oH, oW) and x (N, C, H, W)."""
    g = as_contiguous(g)
    x_pointer, grad_pointer = address_argument(x), address_argument(g)
    count = g.shape[1]
    plan = _weight_gradient_plan(
        x.dtype, x_pointer[0] % 64, grad_pointer[0] % 64, x.shape, count, window, out_size, _element_strides(x)
    )
    out, scratch = empty((count, x.shape[1], *window.size), x.dtype), empty((plan.scratch,), x.dtype)
    workspace = address_argument(scratch)
    plan.kernel.launch(address_argument(out), x_pointer, grad_pointer, workspace, workspace, workspace, *plan.tables)
    return out
