"""Kernels that rearrange elements. Views are created by NumPy, since strides do not depend on the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.backends.numpy import shape as views
from minigrad.backends.taichi.kernels.elementwise import (
    arange,
    cast_scalar,
    copy_into,
    empty_with_layout_of,
    evaluate,
    full,
)
from minigrad.backends.taichi.runtime.array import TAICHI, CpuArray, check_view, empty
from minigrad.core.dispatch import get_kernels, kernel

__all__ = ["as_contiguous"]

Shape = tuple[int, ...]


def _view_kernel(view: Any) -> Any:
    """Wrap a NumPy view function as a kernel that returns an array of the input's type."""
    return lambda a, **attrs: check_view(view(a, **attrs), a)


for _view in (views.expand, views.permute, views.index, views.diagonal, views.unfold):
    kernel(_view.__name__, TAICHI)(_view_kernel(_view))


@kernel("reshape", TAICHI)
def reshape(a: Any, *, shape: Shape) -> Any:
    try:
        view = a.reshape(shape, copy=False)
        if a.__class__ is CpuArray:
            view.address = a.address
        return view
    except ValueError:  # the strides do not allow a view
        out = empty(shape, a.dtype)
        copy_into(out.reshape(a.shape), a)
        return out


@kernel("copy", TAICHI)
def copy(a: Any, b: Any, *, out: Any = None) -> Any:
    out = empty_with_layout_of((a,), a.shape, a.dtype) if out is None else out
    if isinstance(b, np.ndarray):
        copy_into(out, b)
        return out
    value = cast_scalar(b if a.dtype.kind == "f" else int(b), a.dtype)
    return evaluate("fill", "value", (), a.dtype, out, {"value": value})


@kernel("to", TAICHI)
def to(a: Any, *, dtype: Any) -> Any:
    return evaluate("to", "(a == 0) == 0" if dtype.name == "bool" else "a", (a,), dtype.name)


@kernel("contiguous", TAICHI)
def contiguous(a: Any) -> Any:
    return evaluate("contiguous", "a", (a,), a.dtype, empty(a.shape, a.dtype))


def as_contiguous(a: Any) -> Any:
    """Return `a` if it is C-contiguous, otherwise a contiguous copy."""
    return a if a.flags.c_contiguous else contiguous(a)


@kernel("flip", TAICHI)
def flip(a: Any, *, dims: Shape) -> Any:
    return contiguous(a[tuple([slice(None, None, -1) if k in dims else slice(None) for k in range(a.ndim)])])


@kernel("roll", TAICHI)
def roll(a: Any, *, shifts: Shape, dims: Shape) -> Any:
    for by, dim in zip(shifts, dims, strict=True):
        size, out = a.shape[dim], empty(a.shape, a.dtype)
        by %= size or 1
        for into, source in ((slice(by, None), slice(0, size - by)), (slice(0, by), slice(size - by, None))):
            copy_into(out[(slice(None),) * dim + (into,)], a[(slice(None),) * dim + (source,)])
        a = out
    return a


@kernel("tril", TAICHI)
def tril(a: Any, *, diagonal: int) -> Any:
    rows, columns = arange(a.shape[-2])[:, None], arange(a.shape[-1])
    return evaluate(
        "tril", "ti.select(c - b <= diagonal, a, 0)", (a, rows, columns), a.dtype, None, {"diagonal": diagonal}
    )


@kernel("triu", TAICHI)
def triu(a: Any, *, diagonal: int) -> Any:
    rows, columns = arange(a.shape[-2])[:, None], arange(a.shape[-1])
    return evaluate(
        "triu", "ti.select(c - b >= diagonal, a, 0)", (a, rows, columns), a.dtype, None, {"diagonal": diagonal}
    )


@kernel("cat", TAICHI)
def cat(*arrays: Any, dim: int, sizes: Shape) -> Any:
    first = arrays[0]
    out = empty((*first.shape[:dim], sum(x.shape[dim] for x in arrays), *first.shape[dim + 1 :]), first.dtype)
    at = 0
    for x in arrays:
        copy_into(out[(slice(None),) * dim + (slice(at, at + x.shape[dim]),)], x)
        at += x.shape[dim]
    return out


@kernel("pad", TAICHI)
def pad(a: Any, *, pads: tuple[tuple[int, int], ...], value: float) -> Any:
    sizes = list(zip(a.shape, pads, strict=True))
    cropped = a[(*[slice(max(-before, 0), n + min(after, 0)) for n, (before, after) in sizes], ...)]
    out = full([n + before + after for n, (before, after) in sizes], a.dtype, value)
    copy_into(
        out[(*[slice(max(b, 0), max(b, 0) + n) for n, (b, _) in zip(cropped.shape, pads, strict=True)], ...)], cropped
    )
    return out


@kernel("index_backward", TAICHI)
def index_backward(a: Any, *, shape: Shape, key: Any) -> Any:
    out = full(shape, a.dtype)
    copy_into(out[key if ... in key else (*key, ...)], a)
    return out


@kernel("diagonal_backward", TAICHI)
def diagonal_backward(a: Any, *, shape: Shape, offset: int, dim1: int, dim2: int) -> Any:
    out = full(shape, a.dtype)
    copy_into(views.diagonal(out, offset=offset, dim1=dim1, dim2=dim2).view(out.__class__), a)
    return out


@kernel("unfold_backward", TAICHI)
def unfold_backward(a: Any, *, shape: Shape, dim: int, size: int, step: int) -> Any:
    out = full(shape, a.dtype)
    leading = (slice(None),) * dim
    for k in range(size):
        window = out[(*leading, slice(k, k + step * (a.shape[dim] - 1) + 1, step))]
        evaluate("add", "a + b", (window, a[..., k]), a.dtype, window)
    return out


def _copy_with_strides(a: Any, stride: Shape) -> Any:
    """Return a copy of `a` with the strides `stride`, in elements."""
    start, size = views.memory_span(a.shape, stride)
    memory = empty((size,), a.dtype)
    out = views.strided_view(memory, a.shape, tuple(by * a.itemsize for by in stride), start * a.itemsize).view(
        memory.__class__
    )
    copy_into(out, a)
    return out


@kernel("as_strided", TAICHI)
def as_strided(a: Any, *, own: Shape, size: Shape, stride: Shape, offset: int) -> Any:
    by = tuple(step * a.itemsize for step in stride)
    if a.strides == tuple(step * a.itemsize for step in own):
        return check_view(views.strided_view(a, size, by, offset * a.itemsize), a)
    return contiguous(views.strided_view(_copy_with_strides(a, own), size, by, offset * a.itemsize).view(a.__class__))


@kernel("overwrite", TAICHI)
def overwrite(a: Any, b: Any, *, chain: Any, stride: Shape) -> Any:
    out = view = _copy_with_strides(a, stride)
    for op, attrs in chain:
        view = get_kernels(op.name)[TAICHI](view, **attrs)
    copy_into(view, b)
    return out


@kernel("shift", TAICHI)
def shift(a: Any, *, dim: int, by: int, fill: float) -> Any:
    out, leading = full(a.shape, a.dtype, fill), (slice(None),) * dim
    if abs(by) < a.shape[dim]:
        target, source = (slice(by, None), slice(None, -by)) if by > 0 else (slice(None, by), slice(-by, None))
        copy_into(out[(*leading, target)], a[(*leading, source)])
    return out
