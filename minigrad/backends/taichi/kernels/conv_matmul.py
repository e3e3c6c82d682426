"""Convolutions with many weights and few output positions on the CPU, as matrix products.

Each window becomes a row of elements, in the order of the weights of an output channel. The weights are then a matrix
without a copy, and the convolution and its gradients are products of matrices, computed by `matmul`. The kernels in
`conv_source` would pack all weights, and read all of them again for every eight positions of an image.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.tiles import LANES
from minigrad.backends.taichi.kernels.elementwise import copy_into, evaluate
from minigrad.backends.taichi.kernels.matmul import matmul
from minigrad.backends.taichi.kernels.shape import as_contiguous
from minigrad.backends.taichi.runtime.array import address_argument, empty, register_constant, reshape_owned
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import Kernel, get_kernel

__all__ = ["convolve", "has_many_weights", "input_gradient", "weight_gradient"]

Shape = tuple[int, ...]
Window = Any  # size, stride, padding, dilation: minigrad.ops.conv.Window

# The minimum number of weights, by the maximum number of output positions of an image.
MIN_WEIGHTS = {16: 1 << 16, 64: 1 << 19}
MAX_ROW_ELEMENTS = 1 << 22  # maximum number of elements in the rows of the images that are convolved at a time
CHANNELS = 64  # channels of an image that are processed at a time


def has_many_weights(weights: Shape, out_size: Shape) -> bool:
    """Return whether a matrix product is faster for `weights`, of shape (O, C, kH, kW), and positions (oH, oW)."""
    positions, size = prod(out_size), prod(weights)
    return any(positions <= most and size >= least for most, least in MIN_WEIGHTS.items())


_SIZES = (
    "images", "channels", "height", "width", "stride_n", "stride_c", "stride_row", "stride_col",
    "positions", "columns", "kh", "kw", "step_row", "step_col", "top", "left", "down", "right", "row_size", "blocks",
)  # fmt: skip

_LOOPS = """            for t in range(first_t, last_t):
                n = t // blocks
                first = t % blocks * {channels}
                last = ti.min(channels, first + {channels})
{clear}                for p in range(positions):
                    for i in range(kh):
                        row = p // columns * step_row - top + i * down
                        for j in range(kw):
                            column = p % columns * step_col - left + j * right
                            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
                            tap = (n * positions + p) * row_size + i * kw + j
                            pixel = n * stride_n + row * stride_row + column * stride_col
{body}"""
_GATHER = """                            if inside:
                                for c in range(first, last):
                                    rows_[tap + c * (kh * kw)] = x_[pixel + c * stride_c]
                            else:
                                for c in range(first, last):
                                    rows_[tap + c * (kh * kw)] = 0.0
"""
_CLEAR = """                for k in range(n * stride_n + first * stride_c, n * stride_n + last * stride_c):
                    x_[k] = 0.0
"""
_ADD = """                            if inside:
                                for c in range(first, last):
                                    x_[pixel + c * stride_c] = x_[pixel + c * stride_c] + rows_[tap + c * (kh * kw)]
"""


@arch_cache(8)
def _rows_kernel(name: str, dtype: str) -> Kernel:
    """Return the kernel that gathers windows as rows, or the kernel that adds rows to the images (`name`)."""
    array = source.array_annotation(dtype)
    clear, body = {"window_rows": ("", _GATHER), "add_window_rows": (_CLEAR, _ADD)}[name]
    loads = "".join(f"            {size} = scalars_[{k}]\n" for k, size in enumerate(_SIZES))
    loop = source.partitioned_loop(
        "images * blocks", _LOOPS.format(channels=CHANNELS, clear=clear, body=body), False, loads
    )
    head = f"rows_: {array}, x_: {array}, scalars_: {source.array_annotation('int32')}"
    return get_kernel(name, f"@ti.kernel\ndef {name}_kernel({head}):\n{loop}", "aaa")


@arch_cache(1024)
def _size_table(shape: Shape, steps: Shape, window: Window, out_size: Shape, row_size: int) -> Any:
    """Return the table of integers of `_rows_kernel` for images of a shape and strides."""
    (above, _), (before, _) = window.padding
    blocks = -(-shape[1] // CHANNELS)
    sizes = (
        *shape, *steps, prod(out_size), out_size[1], *window.size, *window.stride, above, before, *window.dilation,
        row_size, blocks,
    )  # fmt: skip
    return register_constant(np.array(sizes, np.int32))


def _run_rows_kernel(name: str, rows: Any, x: Any, window: Window, out_size: Shape) -> None:
    steps = tuple([by // x.itemsize for by in x.strides])
    table = _size_table(x.shape, steps, window, out_size, rows.shape[1])
    _rows_kernel(name, x.dtype.name).launch(address_argument(rows), address_argument(x), (table.ctypes.data, 1, 1))


def _empty_rows(images: int, channels: int, window: Window, out_size: Shape, dtype: Any) -> Any:
    """Allocate a row for each window. Rows start at multiples of a vector."""
    lanes = LANES[dtype]
    return empty((images * prod(out_size), -(-channels * prod(window.size) // lanes) * lanes), dtype)


def _window_rows(x: Any, window: Window, out_size: Shape) -> Any:
    """Return the windows of images x (N, C, H, W) as a matrix (N oH oW, C kH kW)."""
    rows = _empty_rows(len(x), x.shape[1], window, out_size, x.dtype)
    _run_rows_kernel("window_rows", rows, x, window, out_size)
    return rows[:, : x.shape[1] * prod(window.size)]


def _channels_first(g: Any) -> Any:
    """Return g (N, O, oH, oW) as a contiguous matrix (O, N oH oW)."""
    n, channels, positions = g.shape[0], g.shape[1], prod(g.shape[2:])
    return as_contiguous(as_contiguous(g).reshape(n, channels, positions).swapaxes(0, 1)).reshape(
        channels, n * positions
    )


def _parts(images: int, elements: int) -> list[slice]:
    """Return slices of the images whose rows, with this number of elements an image, fit in `MAX_ROW_ELEMENTS`."""
    size = max(1, MAX_ROW_ELEMENTS // elements)
    return [slice(start, min(images, start + size)) for start in range(0, images, size)]


def convolve(x: Any, w: Any, bias: Any, window: Window, out_size: Shape) -> Any:
    """Convolve x (N, C, H, W) with w (O, C, kH, kW); return (N, O, oH, oW)."""
    count, positions = len(w), prod(out_size)
    weights = as_contiguous(w).reshape(count, -1)
    out: Any = empty((len(x), count, positions), x.dtype)
    for part in _parts(len(x), positions * weights.shape[1]):
        products = matmul(weights, _window_rows(x[part], window, out_size).T)
        copy_into(out[part], products.reshape(count, -1, positions).swapaxes(0, 1))
    out = reshape_owned(out, (len(x), count, *out_size))
    return out if bias is None else evaluate("add", "a + b", (out, bias[:, None, None]), out.dtype, out)


def input_gradient(g: Any, w: Any, shape: Shape, window: Window) -> Any:
    """Return the input gradient, of `shape` (N, C, H, W), from the output gradient g (N, O, oH, oW)."""
    weights, out_size, out = as_contiguous(w).reshape(len(w), -1), g.shape[2:], empty(shape, g.dtype)
    for part in _parts(len(g), prod(out_size) * weights.shape[1]):
        rows = matmul(_channels_first(g[part]).T, weights)
        _run_rows_kernel("add_window_rows", rows, out[part], window, out_size)
    return out


def weight_gradient(g: Any, x: Any, window: Window, out_size: Shape) -> Any:
    """Return the weight gradient, (O, C, kH, kW), from the output gradient g (N, O, oH, oW) and x (N, C, H, W)."""
    total: Any = None
    for part in _parts(len(x), prod(out_size) * x.shape[1] * prod(window.size)):
        products = matmul(_channels_first(g[part]), _window_rows(x[part], window, out_size))
        total = products if total is None else evaluate("add", "a + b", (total, products), total.dtype, total)
    return total
