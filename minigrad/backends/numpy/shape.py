"""Kernels that rearrange elements. View operations return views."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array, Shape
from minigrad.backends.numpy.reduce import stable_sum
from minigrad.core.dispatch import get_kernels, kernel

__all__: list[str] = []


@kernel("sum_to", DEVICE)
def sum_to(a: Array, *, shape: Shape) -> Array:
    extra = a.ndim - len(shape)
    broadcast_dims = tuple(k for k in range(a.ndim) if k < extra or (shape[k - extra] == 1 and a.shape[k] != 1))
    return stable_sum(a, broadcast_dims, True).reshape(shape)


class ArrayInterface:
    """The array interface of a view of the memory of `a`. Strides and offset are in bytes."""

    def __init__(self, a: Array, shape: Shape, strides: Shape, offset: int) -> None:
        self.base = a
        interface = a.__array_interface__
        address, readonly = interface["data"]
        self.__array_interface__ = {
            **interface,
            "data": (address + offset, readonly),
            "shape": shape,
            "strides": strides,
        }


def strided_view(a: Array, shape: Shape, strides: Shape, offset: int = 0) -> Array:
    """Return a strided view of the memory of `a`, without a bounds check. Strides and offset are in bytes."""
    return np.asarray(ArrayInterface(a, shape, strides, offset))


@kernel("expand", DEVICE)
def expand(a: Array, *, shape: Shape) -> Array:
    extra_dims = len(shape) - a.ndim
    own_strides = [
        stride if size == n else 0 for stride, size, n in zip(a.strides, a.shape, shape[extra_dims:], strict=True)
    ]
    return strided_view(a, shape, (0,) * extra_dims + tuple(own_strides))


@kernel("reshape", DEVICE)
def reshape(a: Array, *, shape: Shape) -> Array:
    try:
        return a.reshape(shape, copy=False)
    except ValueError:  # the strides do not allow a view
        out = np.empty(shape, a.dtype)
        out.reshape(a.shape)[...] = a
        return out


@kernel("permute", DEVICE)
def permute(a: Array, *, dims: Shape) -> Array:
    return a.transpose(dims)


@kernel("index", DEVICE)
def index(a: Array, *, key: Any) -> Array:
    return a[key if ... in key else (*key, ...)]  # with …, NumPy returns a 0-d view instead of a scalar


@kernel("index_backward", DEVICE)
def index_backward(a: Array, *, shape: Shape, key: Any) -> Array:
    out = np.zeros(shape, a.dtype)
    out[key] = a
    return out


@kernel("diagonal", DEVICE)
def diagonal(a: Array, *, offset: int, dim1: int, dim2: int) -> Array:
    rest = [k for k in range(a.ndim) if k not in (dim1, dim2)]
    row_offset, column_offset = (max(-offset, 0), max(offset, 0))
    size = max(min(a.shape[dim1] - row_offset, a.shape[dim2] - column_offset), 0)
    start = row_offset * a.strides[dim1] + column_offset * a.strides[dim2] if size else 0
    strides = (*[a.strides[k] for k in rest], a.strides[dim1] + a.strides[dim2])
    return strided_view(a, (*[a.shape[k] for k in rest], size), strides, start)


@kernel("diagonal_backward", DEVICE)
def diagonal_backward(a: Array, *, shape: Shape, offset: int, dim1: int, dim2: int) -> Array:
    out = np.zeros(shape, a.dtype)
    diagonal(out, offset=offset, dim1=dim1, dim2=dim2)[...] = a
    return out


@kernel("unfold", DEVICE)
def unfold(a: Array, *, dim: int, size: int, step: int) -> Array:
    shape, strides = list(a.shape), list(a.strides)
    shape[dim] = (shape[dim] - size) // step + 1
    strides[dim] *= step
    return strided_view(a, (*shape, size), (*strides, a.strides[dim]))


@kernel("unfold_backward", DEVICE)
def unfold_backward(a: Array, *, shape: Shape, dim: int, size: int, step: int) -> Array:
    out = np.zeros(shape, a.dtype)
    target, windows = np.moveaxis(out, dim, 0), np.moveaxis(a, dim, 0)
    for k in range(size):
        target[k::step][: len(windows)] += windows[..., k]
    return out


def memory_span(shape: Shape, strides: Shape) -> tuple[int, int]:
    """Return the offset of the first element in the memory span of an array, and the size of that span, in elements."""
    steps = [stride * (size - 1) for stride, size in zip(strides, shape, strict=True)] if 0 not in shape else []
    start = -sum(step for step in steps if step < 0)
    return start, start + sum(step for step in steps if step > 0) + 1


def copy_with_strides(a: Array, stride: Shape) -> Array:
    """Copy `a` to an array with these strides, in elements."""
    strides = tuple(by * a.itemsize for by in stride)
    out = a.copy(order="K")
    if out.strides != strides:
        start, size = memory_span(a.shape, stride)
        out = strided_view(np.empty(size, a.dtype), a.shape, strides, start * a.itemsize)
        out[...] = a
    return out


@kernel("as_strided", DEVICE)
def as_strided(a: Array, *, own: Shape, size: Shape, stride: Shape, offset: int) -> Array:
    byte_strides = tuple(by * a.itemsize for by in stride)
    if a.strides == tuple(by * a.itemsize for by in own):
        return strided_view(a, size, byte_strides, offset * a.itemsize)
    return strided_view(copy_with_strides(a, own), size, byte_strides, offset * a.itemsize).copy()


@kernel("as_strided_backward", DEVICE)
def as_strided_backward(a: Array, *, shape: Shape, own: Shape, size: Shape, stride: Shape, offset: int) -> Array:
    start, count = memory_span(shape, own)
    memory = np.zeros(count, a.dtype)
    positions = np.arange(count)  # as wide as a pointer
    steps = tuple(by * positions.itemsize for by in stride)
    offsets = strided_view(positions, size, steps, (start + offset) * positions.itemsize)
    np.add.at(memory, offsets, a)
    return strided_view(memory, shape, tuple(by * a.itemsize for by in own), start * a.itemsize).copy()


@kernel("contiguous", DEVICE)
def contiguous(a: Array) -> Array:
    return a.copy()


@kernel("flip", DEVICE)
def flip(a: Array, *, dims: Shape) -> Array:
    return np.flip(a, dims).copy()


@kernel("roll", DEVICE)
def roll(a: Array, *, shifts: Shape, dims: Shape) -> Array:
    return np.roll(a, shifts, dims)


@kernel("tril", DEVICE)
def tril(a: Array, *, diagonal: int) -> Array:
    return np.tril(a, diagonal)


@kernel("triu", DEVICE)
def triu(a: Array, *, diagonal: int) -> Array:
    return np.triu(a, diagonal)


@kernel("cat", DEVICE)
def cat(*arrays: Array, dim: int, sizes: Shape) -> Array:
    return np.concatenate(arrays, dim)


@kernel("pad", DEVICE)
def pad(a: Array, *, pads: tuple[tuple[int, int], ...], value: float) -> Array:
    sizes = list(zip(a.shape, pads, strict=True))
    cropped = a[tuple([slice(max(-before, 0), n + min(after, 0)) for n, (before, after) in sizes])]
    out = np.full([n + before + after for n, (before, after) in sizes], value, a.dtype)
    out[
        tuple([slice(max(before, 0), max(before, 0) + n) for n, (before, _) in zip(cropped.shape, pads, strict=True)])
    ] = cropped
    return out


@kernel("repeat_interleave", DEVICE)
def repeat_interleave(a: Array, *, repeats: Any, dim: int) -> Array:
    return np.repeat(a, repeats, dim)


@kernel("repeat_interleave_backward", DEVICE)
def repeat_interleave_backward(a: Array, *, count: int, repeats: Any, dim: int) -> Array:
    out = np.zeros((*a.shape[:dim], count, *a.shape[dim + 1 :]), a.dtype)
    np.add.at(np.moveaxis(out, dim, 0), np.repeat(np.arange(count), repeats), np.moveaxis(a, dim, 0))
    return out


@kernel("to", DEVICE)
def to(a: Array, *, dtype: Any) -> Array:
    return a.astype(dtype.name)


@kernel("copy", DEVICE)
def copy(a: Array, b: Array) -> Array:
    out = np.empty_like(a)
    out[...] = b
    return out


@kernel("overwrite", DEVICE)
def overwrite(a: Array, b: Array, *, chain: Any, stride: Shape) -> Array:
    out = view = copy_with_strides(a, stride)
    for op, attrs in chain:
        view = get_kernels(op.name)[DEVICE](view, **attrs)
    view[...] = b
    return out
