"""Convolutions on the CPU: tables, sizes and workspace for the kernels of `windows`, and their launch."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.tiles import BLOCK, LANES, SERIAL
from minigrad.backends.taichi.codegen.windows import ROWS, Convolution, Images, correlating
from minigrad.backends.taichi.kernels.shape import in_rows
from minigrad.backends.taichi.runtime.array import address_of, empty, lasting
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.kernel import Kernel

__all__ = ["convolved", "correlated"]

Shape = tuple[int, ...]
Window = Any  # size, stride, padding, dilation: minigrad.ops.conv.Window
Memory = tuple[int, int, int]

PARTS = 8  # maximum partitions of the images, each with its own partial sums
MANY = 1 << 20  # above this number of weights, use two partitions at most
FEW = 1 << 16  # maximum weights to pack, or partial sums to add, on one core


def _images(shape: Shape, steps: Shape, window: Window, unit: int) -> Images:
    _, channels, height, width = shape
    (above, below), (before, after) = window.padding
    padded = -(-channels // unit) * unit
    row0, col0, wide = max(0, -above), max(0, -before), width + before + after
    inside = ((row0 + above) * wide + col0 + before) * padded
    rows, cols = min(height, height + below) - row0, min(width, width + after) - col0
    room = -(-(height + above + below) * wide * padded // 16) * 16
    by_n, by_c, by_row, by_col = steps
    return Images(channels, padded, by_n, by_c, by_row, by_col, row0, rows, col0, cols, inside, wide, room)


def _unit(channels: int) -> int:
    """Return the number of channels read at a time. For 1 or 2 channels, four would mostly be padding; eight or sixteen
    are no faster, and take up to eight seconds to compile."""
    return 1 if channels < 3 else 4


def _reach(images: Images, window: Window, places: Shape, unit: int) -> tuple[Any, Any]:
    """Return the offsets of the taps of a window, for each `unit` of channels, and of the window positions."""
    (kh, kw), (sh, sw), _, (dh, dw) = window
    vectors, wide = images.padded // unit, images.wide
    spot = np.arange(kh)[:, None] * (dh * wide) + np.arange(kw) * dw
    place = np.arange(places[0])[:, None] * (sh * wide) + np.arange(places[1]) * sw
    return spot.reshape(-1, 1) * vectors + np.arange(vectors), place * vectors


def _in_fours(images: Images, unit: int, odd: int, length: int) -> bool:
    """Return whether loads can be vectorised along a row, four elements from each of `unit` channels."""
    steps = (images.by_n, images.by_c, images.by_row, images.col0, images.cols)
    return unit > 1 and images.by_col == 1 and odd % (4 * length) == 0 and not any(step % 4 for step in steps)


class TilePlan(NamedTuple):
    """A kernel, its tables, and the size of its workspace in elements."""

    kernel: Kernel
    tables: tuple[Memory, ...]
    scratch: int
    kept: list[Any]  # owners of the memory of the tables


def _planned(kernel: Kernel, tables: tuple[Any, ...], scratch: int) -> TilePlan:
    kept = [lasting(np.ascontiguousarray(table, np.int32)) for table in tables]
    return TilePlan(kernel, tuple([(table.ctypes.data, 1, 1) for table in kept]), scratch, kept)


@cached(1024)
def _convolution(
    dtype: Any, odd: int, shape: Shape, count: int, window: Window, places: Shape, steps: Shape, weights: Shape,
    bias: Shape | None,
) -> TilePlan:  # fmt: skip
    lanes, m, spots, unit = LANES[dtype], prod(places), prod(window.size), _unit(shape[1])
    images = _images(shape, steps, window, unit)
    spot, place = _reach(images, window, places, unit)
    down, panels = -(-m // ROWS), -(-count // lanes)
    bias_at = panels * spots * images.padded * lanes
    room_at = -(-(bias_at + panels * lanes) // 16) * 16
    each = images.room + ROWS * lanes
    serial = shape[0] * m * bias_at <= SERIAL
    fours = images.channels == images.padded and _in_fours(
        images, unit, odd, dtype.itemsize
    )  # padding: 0 times inf is nan
    numbers = (
        shape[0], down, m, panels, count, spot.size, *window.size, *weights, int(bias is not None), *(bias or (0,)),
        bias_at, room_at, each, *images,
    )  # fmt: skip
    kernel = Convolution(dtype, unit, fours, m % ROWS == 0, serial or bias_at <= FEW, serial).kernel()
    return _planned(kernel, (spot, place, numbers), room_at + each * (1 if serial else source.CORES))


def _steps(x: Any) -> Shape:
    return tuple([by // x.itemsize for by in x.strides])


def convolved(x: Any, w: Any, bias: Any, window: Window, places: Shape) -> Any:
    """Convolve x (N, C, H, W) with w (O, C, kH, kW); return (N, O, oH, oW)."""
    start = address_of(x)
    how = (window, places, _steps(x), _steps(w), None if bias is None else _steps(bias))
    plan = _convolution(x.dtype, start[0] % 64, x.shape, len(w), *how)
    out, scratch = empty((len(x), len(w), *places), x.dtype), empty((plan.scratch,), x.dtype)
    room = address_of(scratch)
    added = room if bias is None else address_of(bias)
    plan.kernel.launch(address_of(out), start, address_of(w), added, room, room, room, *plan.tables)
    return out


@cached(1024)
def _correlation(
    dtype: Any, odd: int, odd_g: int, shape: Shape, count: int, window: Window, places: Shape, steps: Shape
) -> TilePlan:
    lanes, m, unit = LANES[dtype], prod(places), _unit(shape[1])
    images = _images(shape, steps, window, unit)
    spot, place = _reach(images, window, places, unit)
    panels, bands = -(-count // lanes), -(-m // BLOCK)
    down, units = -(-spot.size * unit // ROWS), shape[0] * bands
    size, each = down * ROWS * panels * lanes, images.room + -(-panels * m * lanes // 16) * 16
    serial = shape[0] * m * size <= SERIAL
    parts = 1 if serial else min(units, PARTS if size <= MANY else 2)
    sums_at = each * (1 if serial else source.CORES)
    numbers = (
        units, bands, down, m, panels, count, spot.size, prod(window.size), parts, sums_at, size, each, *images,
    )  # fmt: skip
    fours, lines = _in_fours(images, unit, odd, dtype.itemsize), not (m % 4 or odd_g % (4 * dtype.itemsize))
    kernel = correlating(dtype, unit, fours, lines, serial or size * parts <= FEW, serial)
    return _planned(kernel, (spot, place, numbers), sums_at + parts * size)


def correlated(g: Any, x: Any, window: Window, places: Shape) -> Any:
    """Return the weight gradient, (O, C, kH, kW), from the output gradient g (N, O, oH, oW) and x (N, C, H, W)."""
    g = in_rows(g)
    start, slopes = address_of(x), address_of(g)
    count = g.shape[1]
    plan = _correlation(x.dtype, start[0] % 64, slopes[0] % 64, x.shape, count, window, places, _steps(x))
    out, scratch = empty((count, x.shape[1], *window.size), x.dtype), empty((plan.scratch,), x.dtype)
    room = address_of(scratch)
    plan.kernel.launch(address_of(out), start, slopes, room, room, room, *plan.tables)
    return out
