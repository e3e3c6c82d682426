"""Indexing kernels: gather, scatter, scatter-add and nonzero."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from minigrad.backends.numpy import shape as views
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.kernels.elementwise import arange, computed, filled, fitting, pointer
from minigrad.backends.taichi.kernels.index_walk import PIECE, WORDS, walked
from minigrad.backends.taichi.kernels.reduction import reduced
from minigrad.backends.taichi.kernels.shape import in_rows
from minigrad.backends.taichi.runtime.array import DEVICE, empty, like
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.checks import doubt, settle
from minigrad.backends.taichi.runtime.kernel import compiled
from minigrad.core.dispatch import kernel, kernels_of
from minigrad.core.errors import ShapeError

__all__: list[str] = []

Shape = tuple[int, ...]


def _as(x: Any, dtype: Any) -> Any:
    """Convert an array or a Python scalar to an array of `dtype`. Raises OverflowError for an int out of range."""
    if isinstance(x, np.ndarray):
        return x if x.dtype == dtype else computed("to", "a", (x,), dtype)
    return filled((), dtype, fitting(x, np.dtype(dtype)))


def _into(a: Any, shape: Shape | None, dtype: Any) -> Any:
    """Return a copy of `a`, or zeros of `shape` if given."""
    return kernels_of("contiguous")[DEVICE](a) if shape is None else filled(shape, dtype)


def _index(b: Any, dim: int, ndim: int) -> Any:
    """Reshape an index of slices to broadcast along `dim`."""
    b = b if b.ndim == 1 else kernels_of("reshape")[DEVICE](b, shape=(b.size,))
    return b.reshape(*(1,) * dim, b.size, *(1,) * (ndim - dim - 1))


def _slices(step: str, y: Any, x: Any, b: Any, dim: int) -> None:
    """Call `walked` with an index of slices; a scattered x has the dimensions of the index in place of `dim`."""
    target = x if step == "take" else y
    shape = (*target.shape[:dim], b.size, *target.shape[dim + 1 :])
    if step == "take":
        y = y.reshape(shape)
    elif b.ndim != 1 and x.size != 1:
        whole = np.broadcast_to(x, (*y.shape[:dim], *b.shape, *y.shape[dim + 1 :]), subok=True)
        x = kernels_of("reshape")[DEVICE](whole, shape=shape)
    elif x.size == 1:
        x = x.reshape(())
    walked(step, y, x, _index(b, dim, len(shape)), shape, dim)


# --- lines ---


@kernel("gather", DEVICE)
def gather(a: Any, b: Any, *, dim: int) -> Any:
    out = empty(b.shape, a.dtype)
    walked("take", out, a, b, b.shape, dim)
    return out


@kernel("scatter", DEVICE)
def scatter(a: Any, b: Any, c: Any, *, dim: int) -> Any:
    out = _into(a, None, a.dtype)
    walked("put", out, _as(c, a.dtype), b, b.shape, dim)
    return out


@kernel("scatter_add", DEVICE)
def scatter_add(a: Any, b: Any, c: Any, *, dim: int, shape: Shape | None) -> Any:
    out = _into(a, shape, c.dtype)
    walked("add", out, _as(c, out.dtype), b, b.shape, dim)
    return out


@kernel("pick_along", DEVICE)
def pick_along(a: Any, b: Any, *, dim: int, keepdim: bool) -> Any:
    found = gather(a, b if keepdim else np.expand_dims(b, dim), dim=dim)
    return found if keepdim else found.reshape(b.shape)


@kernel("put_along", DEVICE)
def put_along(a: Any, b: Any, *, shape: Shape, dim: int, keepdim: bool) -> Any:
    out = filled(shape, a.dtype)
    if not keepdim:
        a, b = np.expand_dims(a, dim), np.expand_dims(b, dim)
    walked("put", out, a, b, b.shape, dim)
    return out


@kernel("pick_at", DEVICE)
def pick_at(a: Any, b: Any, *, dims: int) -> Any:
    lead = a.shape[: a.ndim - dims]
    lines = kernels_of("reshape")[DEVICE](a, shape=(*lead, prod(a.shape[a.ndim - dims :])))
    at = kernels_of("reshape")[DEVICE](b, shape=(*lead, prod(b.shape[b.ndim - dims :])))
    return gather(lines, at, dim=len(lead)).reshape(b.shape)


@kernel("put_at", DEVICE)
def put_at(a: Any, b: Any, *, shape: Shape, dims: int) -> Any:
    lead = shape[:-dims]
    of = (*lead, prod(b.shape[b.ndim - dims :]))
    given, at = [kernels_of("reshape")[DEVICE](x, shape=of) for x in (a, b)]
    if source.VECTORIZED and prod(of) and prod(shape[-dims:]):
        return _put_on_planes(given, at, shape, prod(lead), of[-1])
    return scatter_add(None, at, given, dim=len(lead), shape=(*lead, prod(shape[-dims:]))).reshape(shape)


def _put_on_planes(given: Any, at: Any, shape: Shape, planes: int, count: int) -> Any:
    """Scatter-add on entire planes, one core per plane, sequentially in memory order."""
    out = empty(shape, given.dtype)
    complaint = (
        ShapeError,
        "index out of range: an index is out of bounds for a plane with {} elements",
        out.size // planes,
    )
    wrong = doubt(*complaint)
    arrays = (out, in_rows(given), in_rows(at), wrong)
    made = compiled("put_on_planes", *_on_planes(given.dtype.name, at.dtype.name, given.size <= source.SERIAL))
    made(*map(pointer, arrays), planes, count, out.size // planes)
    settle(wrong, *complaint)
    return out


@cached()
def _on_planes(dtype: str, index: str, serial: bool) -> tuple[str, str]:
    body = f"""        for k in range(t * size, t * size + size):
            y_[k] = ti.cast(0, ti.{source.TI[dtype]})
        for k in range(t * count, t * count + count):
            place = ti.cast(at_[k], ti.i32)
            if (at_[k] >= 0) & (at_[k] < size):
                y_[t * size + place] = ti.cast(y_[t * size + place] + x_[k], ti.{source.TI[dtype]})
            else:
                wrong_[0] = 1
"""
    text = f"""@ti.kernel
def put_on_planes_kernel(
    y_: {source.array_of(dtype)}, x_: {source.array_of(dtype)}, at_: {source.array_of(index)},
    wrong_: {source.array_of("int32")}, planes: ti.i32, count: ti.i32, size: ti.i32
):
{source.spread("planes", body, serial)}"""
    return text, "aaaaiii"


# --- slices ---


@kernel("index_select", DEVICE)
def index_select(a: Any, b: Any, *, dim: int) -> Any:
    out = empty((*a.shape[:dim], *b.shape, *a.shape[dim + 1 :]), a.dtype)
    _slices("take", out, a, b, dim)
    return out


@kernel("embedding", DEVICE)
def embedding(a: Any, b: Any, *, padding_idx: int | None, by_freq: bool) -> Any:
    return index_select(a, b, dim=0)


@kernel("index_add", DEVICE)
def index_add(a: Any, b: Any, c: Any, *, dim: int, shape: Shape | None) -> Any:
    out = _into(a, shape, c.dtype)
    _slices("add", out, _as(c, out.dtype), b, dim)
    return out


@kernel("index_copy", DEVICE)
def index_copy(a: Any, b: Any, c: Any, *, dim: int, out: Any = None) -> Any:
    given = _as(c, a.dtype)
    if out is None:
        out = _into(a, None, a.dtype)
    else:  # copy operands that alias the output
        b, given = [kernels_of("contiguous")[DEVICE](x) if np.may_share_memory(x, out) else x for x in (b, given)]
    _slices("put", out, given, b, dim)
    return out


@kernel("repeat_interleave", DEVICE)
def repeat_interleave(a: Any, *, repeats: Any, dim: int) -> Any:
    return index_select(a, _repeated(repeats, a.shape[dim]), dim=dim)


@kernel("repeat_interleave_backward", DEVICE)
def repeat_interleave_backward(a: Any, *, count: int, repeats: Any, dim: int) -> Any:
    if not isinstance(repeats, int):
        return index_add(
            None, _repeated(repeats, count), a, dim=dim, shape=(*a.shape[:dim], count, *a.shape[dim + 1 :])
        )
    parts = kernels_of("reshape")[DEVICE](a, shape=(*a.shape[:dim], count, repeats, *a.shape[dim + 1 :]))
    return reduced("sum", "sum", "a", (parts,), (dim + 1,), False, a.dtype)


def _repeated(repeats: Any, count: int) -> Any:
    """Return 0 to count - 1, each repeated `repeats` times: an int, or one count per index."""
    if not isinstance(repeats, int):
        return like(np.repeat(np.arange(count), repeats))
    return computed("repeated", "i // by", (), np.int64, empty((count * repeats,), np.int64), {"by": repeats})


@kernel("as_strided_backward", DEVICE)
def as_strided_backward(a: Any, *, shape: Shape, own: Shape, size: Shape, stride: Shape, offset: int) -> Any:
    start, count = views.span(shape, own)
    memory = filled((count,), a.dtype)
    by = tuple([step * 8 for step in stride])
    places = views.arranged(arange(count), size, by, (start + offset) * 8).view(memory.__class__)
    order, apart = _apart(size, stride)
    of = (prod([size[k] for k in order[:apart]]), prod([size[k] for k in order[apart:]]))
    given, at = [kernels_of("reshape")[DEVICE](x.transpose(order), shape=of) for x in (a, places)]
    walked("add", np.broadcast_to(memory, (of[0], count), subok=True), given, at, of, 1)
    out = views.arranged(memory, shape, tuple([step * a.itemsize for step in own]), start * a.itemsize)
    return kernels_of("contiguous")[DEVICE](out.view(memory.__class__))


def _apart(size: Shape, stride: Shape) -> tuple[list[int], int]:
    """Return the dimensions, ordered so that the first have strides too large to overlap, and how many those are."""
    order = sorted(range(len(size)), key=lambda k: -abs(stride[k]))
    spans = [(size[k] - 1) * abs(stride[k]) for k in order]
    apart = 0
    while apart < len(order) and abs(stride[order[apart]]) > sum(spans[apart + 1 :]):
        apart += 1
    return order[:apart] + sorted(order[apart:]), apart


@kernel("last", DEVICE)
def last(b: Any, *, dim: int | None) -> Any:
    index = b if dim is not None else kernels_of("reshape")[DEVICE](b, shape=(b.size,))
    along = dim or 0
    if not b.size:
        return empty(b.shape, np.bool_)
    end = int(reduced("amax", "max", "a", (index,), None, False, b.dtype).host) + 1
    number = arange(index.shape[along]).reshape(-1, *(1,) * (index.ndim - along - 1))
    written = empty((*index.shape[:along], end, *index.shape[along + 1 :]), np.int64)
    walked("put", written, number, index, index.shape, along)
    found = gather(written, index, dim=along)
    return computed("eq", "a == b", (found, number), np.bool_).reshape(b.shape)


# --- nonzero ---


@kernel("nonzero", DEVICE)
def nonzero(a: Any) -> Any:
    """Count per chunk, compute the prefix sum of the counts, and let each chunk write from its offset."""
    a = in_rows(a)
    stretches = -(-a.size // PIECE)
    ends = empty((stretches + 1,), np.int32)
    # compare the bits of floats, without the sign: a float comparison may flush subnormals to 0
    serial, dtype = a.size <= source.SERIAL, WORDS[a.itemsize]
    there = "((x_[k] + x_[k]) == 0) == 0" if a.dtype.kind == "f" else "x_[k] != 0"
    _counting(dtype, there, serial)(pointer(ends), pointer(a), a.size, stretches)
    out = empty((int(ends.host[-1]), a.ndim), np.int64)
    if out.size:
        _writing(dtype, there, a.ndim, serial)(pointer(out), pointer(a), pointer(ends), a.size, stretches, *a.shape)
    return out


@cached()
def _counting(dtype: str, there: str, serial: bool) -> Any:
    text = f"""@ti.kernel
def nonzero_counts_kernel(
    y_: {source.array_of("int32")}, x_: {source.array_of(dtype)}, size: ti.i32, stretches: ti.i32
):
{source.ONCE * serial}    for i in range(stretches):
        found = 0
        for k in range(i * {PIECE}, ti.min(i * {PIECE} + {PIECE}, size)):
            found += ti.cast({there}, ti.i32)
        y_[i + 1] = found
    ti.loop_config(serialize=True)
    for i in range(stretches + 1):
        y_[i] = 0 if i == 0 else y_[i] + y_[i - 1]
"""
    return compiled("nonzero_counts", text, "aaii")


@cached()
def _writing(dtype: str, there: str, ndim: int, serial: bool) -> Any:
    sizes = "".join(f", n{k}: ti.i32" for k in range(ndim))
    place = "                y_[at * {n} + {k}] = ti.cast({rest}, ti.i64)\n"
    row = "".join(
        place.format(n=ndim, k=k, rest=f"rest % n{k}") + f"                rest = rest // n{k}\n"
        for k in reversed(range(1, ndim))
    )
    row += place.format(n=ndim, k=0, rest="rest") if ndim else ""
    text = f"""@ti.kernel
def nonzero_kernel(
    y_: {source.array_of("int64")}, x_: {source.array_of(dtype)}, ends_: {source.array_of("int32")},
    size: ti.i32, stretches: ti.i32{sizes}
):
{source.ONCE * serial}    for i in range(stretches):
        at = ends_[i]
        for k in range(i * {PIECE}, ti.min(i * {PIECE} + {PIECE}, size)):
            if {there}:
                rest = k
{row}                at += 1
"""
    return compiled("nonzero", text, "aaaii" + "i" * ndim)
