"""Kernels that rearrange elements. Views are NumPy's, since strides do not depend on the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.backends.numpy import shape as views
from minigrad.backends.taichi.kernels.elementwise import arange, computed, filled, fitting, laid_out_like, put
from minigrad.backends.taichi.runtime.array import DEVICE, counted, empty
from minigrad.core.dispatch import kernel, kernels_of

__all__ = ["in_rows"]

Shape = tuple[int, ...]


def _viewing(view: Any) -> Any:
    """Adapt a NumPy view kernel."""
    return lambda a, **attrs: counted(view(a, **attrs), a)


for _view in (views.expand, views.permute, views.index, views.diagonal, views.unfold):
    kernel(_view.__name__, DEVICE)(_viewing(_view))


@kernel("reshape", DEVICE)
def reshape(a: Any, *, shape: Shape) -> Any:
    try:
        return a.reshape(shape, copy=False)
    except ValueError:  # the strides do not allow a view
        out = empty(shape, a.dtype)
        put(out.reshape(a.shape), a)
        return out


@kernel("copy", DEVICE)
def copy(a: Any, b: Any, *, out: Any = None) -> Any:
    out = laid_out_like((a,), a.shape, a.dtype) if out is None else out
    if isinstance(b, np.ndarray):
        put(out, b)
        return out
    value = fitting(b if a.dtype.kind == "f" else int(b), a.dtype)
    return computed("fill", "value", (), a.dtype, out, {"value": value})


@kernel("to", DEVICE)
def to(a: Any, *, dtype: Any) -> Any:
    return computed("to", "(a == 0) == 0" if dtype.name == "bool" else "a", (a,), dtype.name)


@kernel("contiguous", DEVICE)
def contiguous(a: Any) -> Any:
    return computed("contiguous", "a", (a,), a.dtype, empty(a.shape, a.dtype))


def in_rows(a: Any) -> Any:
    """Return `a` if it is C-contiguous, otherwise a contiguous copy."""
    return a if a.flags.c_contiguous else contiguous(a)


@kernel("flip", DEVICE)
def flip(a: Any, *, dims: Shape) -> Any:
    return contiguous(a[tuple([slice(None, None, -1) if k in dims else slice(None) for k in range(a.ndim)])])


@kernel("roll", DEVICE)
def roll(a: Any, *, shifts: Shape, dims: Shape) -> Any:
    for by, dim in zip(shifts, dims, strict=True):
        size, out = a.shape[dim], empty(a.shape, a.dtype)
        by %= size or 1
        for into, source in ((slice(by, None), slice(0, size - by)), (slice(0, by), slice(size - by, None))):
            put(out[(slice(None),) * dim + (into,)], a[(slice(None),) * dim + (source,)])
        a = out
    return a


@kernel("tril", DEVICE)
def tril(a: Any, *, diagonal: int) -> Any:
    rows, columns = arange(a.shape[-2])[:, None], arange(a.shape[-1])
    return computed(
        "tril", "ti.select(c - b <= diagonal, a, 0)", (a, rows, columns), a.dtype, None, {"diagonal": diagonal}
    )


@kernel("triu", DEVICE)
def triu(a: Any, *, diagonal: int) -> Any:
    rows, columns = arange(a.shape[-2])[:, None], arange(a.shape[-1])
    return computed(
        "triu", "ti.select(c - b >= diagonal, a, 0)", (a, rows, columns), a.dtype, None, {"diagonal": diagonal}
    )


@kernel("cat", DEVICE)
def cat(*arrays: Any, dim: int, sizes: Shape) -> Any:
    first = arrays[0]
    out = empty((*first.shape[:dim], sum(x.shape[dim] for x in arrays), *first.shape[dim + 1 :]), first.dtype)
    at = 0
    for x in arrays:
        put(out[(slice(None),) * dim + (slice(at, at + x.shape[dim]),)], x)
        at += x.shape[dim]
    return out


@kernel("pad", DEVICE)
def pad(a: Any, *, pads: tuple[tuple[int, int], ...], value: float) -> Any:
    sizes = list(zip(a.shape, pads, strict=True))
    kept = a[(*[slice(max(-before, 0), n + min(after, 0)) for n, (before, after) in sizes], ...)]
    out = filled([n + before + after for n, (before, after) in sizes], a.dtype, value)
    put(out[(*[slice(max(b, 0), max(b, 0) + n) for n, (b, _) in zip(kept.shape, pads, strict=True)], ...)], kept)
    return out


@kernel("index_backward", DEVICE)
def index_backward(a: Any, *, shape: Shape, key: Any) -> Any:
    out = filled(shape, a.dtype)
    put(out[key if ... in key else (*key, ...)], a)
    return out


@kernel("diagonal_backward", DEVICE)
def diagonal_backward(a: Any, *, shape: Shape, offset: int, dim1: int, dim2: int) -> Any:
    out = filled(shape, a.dtype)
    put(views.diagonal(out, offset=offset, dim1=dim1, dim2=dim2).view(out.__class__), a)
    return out


@kernel("unfold_backward", DEVICE)
def unfold_backward(a: Any, *, shape: Shape, dim: int, size: int, step: int) -> Any:
    out = filled(shape, a.dtype)
    around = (slice(None),) * dim
    for k in range(size):
        into = out[(*around, slice(k, k + step * (a.shape[dim] - 1) + 1, step))]
        computed("add", "a + b", (into, a[..., k]), a.dtype, into)
    return out


def _laid_out(a: Any, stride: Shape) -> Any:
    """Copy `a` to an array with these strides, in elements."""
    start, size = views.span(a.shape, stride)
    memory = empty((size,), a.dtype)
    out = views.arranged(memory, a.shape, tuple(by * a.itemsize for by in stride), start * a.itemsize).view(
        memory.__class__
    )
    put(out, a)
    return out


@kernel("as_strided", DEVICE)
def as_strided(a: Any, *, own: Shape, size: Shape, stride: Shape, offset: int) -> Any:
    by = tuple(step * a.itemsize for step in stride)
    if a.strides == tuple(step * a.itemsize for step in own):
        return counted(views.arranged(a, size, by, offset * a.itemsize), a)
    return contiguous(views.arranged(_laid_out(a, own), size, by, offset * a.itemsize).view(a.__class__))


@kernel("overwrite", DEVICE)
def overwrite(a: Any, b: Any, *, chain: Any, stride: Shape) -> Any:
    out = view = _laid_out(a, stride)
    for op, attrs in chain:
        view = kernels_of(op.name)[DEVICE](view, **attrs)
    put(view, b)
    return out


@kernel("shift", DEVICE)
def shift(a: Any, *, dim: int, by: int, fill: float) -> Any:
    out, around = filled(a.shape, a.dtype, fill), (slice(None),) * dim
    if abs(by) < a.shape[dim]:
        into, source = (slice(by, None), slice(None, -by)) if by > 0 else (slice(None, by), slice(-by, None))
        put(out[(*around, into)], a[(*around, source)])
    return out
