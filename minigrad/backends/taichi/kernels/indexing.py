"""Indexing kernels: gather, scatter, scatter-add and nonzero."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from minigrad.backends.numpy import shape as views
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.kernels.elementwise import arange, array_argument, cast_scalar, evaluate, full
from minigrad.backends.taichi.kernels.gather_scatter import DTYPE_BY_ITEMSIZE, TASK_ELEMENTS, gather_or_scatter
from minigrad.backends.taichi.kernels.reduction import reduce_snippet
from minigrad.backends.taichi.kernels.shape import as_contiguous
from minigrad.backends.taichi.runtime.array import TAICHI, copy_to_device, empty
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.deferred_checks import check_slot, error_slot
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.core.dispatch import get_kernels, kernel
from minigrad.core.errors import ShapeError

__all__: list[str] = []

Shape = tuple[int, ...]


def _to_array(x: Any, dtype: Any) -> Any:
    """Convert an array or a Python scalar to an array of `dtype`. Raises OverflowError for an int out of range."""
    if isinstance(x, np.ndarray):
        return x if x.dtype == dtype else evaluate("to", "a", (x,), dtype)
    return full((), dtype, cast_scalar(x, np.dtype(dtype)))


def _copy_or_zeros(a: Any, shape: Shape | None, dtype: Any) -> Any:
    """Return a copy of `a`, or zeros of `shape` if given."""
    return get_kernels("contiguous")[TAICHI](a) if shape is None else full(shape, dtype)


def _broadcast_index(b: Any, dim: int, ndim: int) -> Any:
    """Reshape an index of slices so that it broadcasts to their elements."""
    b = b if b.ndim == 1 else get_kernels("reshape")[TAICHI](b, shape=(b.size,))
    return b.reshape(*(1,) * dim, b.size, *(1,) * (ndim - dim - 1))


def _index_slices(step: str, y: Any, x: Any, b: Any, dim: int) -> None:
    """Gather or scatter the slices at index `b` along `dim`. In a scattered x, the index dimensions replace `dim`."""
    target = x if step == "take" else y
    shape = (*target.shape[:dim], b.size, *target.shape[dim + 1 :])
    if step == "take":
        y = y.reshape(shape)
    elif b.ndim != 1 and x.size != 1:
        broadcasted = np.broadcast_to(x, (*y.shape[:dim], *b.shape, *y.shape[dim + 1 :]), subok=True)
        x = get_kernels("reshape")[TAICHI](broadcasted, shape=shape)
    elif x.size == 1:
        x = x.reshape(())
    gather_or_scatter(step, y, x, _broadcast_index(b, dim, len(shape)), shape, dim)


# --- lines ---


@kernel("gather", TAICHI)
def gather(a: Any, b: Any, *, dim: int) -> Any:
    out = empty(b.shape, a.dtype)
    gather_or_scatter("take", out, a, b, b.shape, dim)
    return out


@kernel("scatter", TAICHI)
def scatter(a: Any, b: Any, c: Any, *, dim: int) -> Any:
    out = _copy_or_zeros(a, None, a.dtype)
    gather_or_scatter("put", out, _to_array(c, a.dtype), b, b.shape, dim)
    return out


@kernel("scatter_add", TAICHI)
def scatter_add(a: Any, b: Any, c: Any, *, dim: int, shape: Shape | None) -> Any:
    out = _copy_or_zeros(a, shape, c.dtype)
    gather_or_scatter("add", out, _to_array(c, out.dtype), b, b.shape, dim)
    return out


@kernel("pick_along", TAICHI)
def pick_along(a: Any, b: Any, *, dim: int, keepdim: bool) -> Any:
    picked = gather(a, b if keepdim else np.expand_dims(b, dim), dim=dim)
    return picked if keepdim else picked.reshape(b.shape)


@kernel("put_along", TAICHI)
def put_along(a: Any, b: Any, *, shape: Shape, dim: int, keepdim: bool) -> Any:
    out = full(shape, a.dtype)
    if not keepdim:
        a, b = np.expand_dims(a, dim), np.expand_dims(b, dim)
    gather_or_scatter("put", out, a, b, b.shape, dim)
    return out


@kernel("pick_at", TAICHI)
def pick_at(a: Any, b: Any, *, dims: int) -> Any:
    lead = a.shape[: a.ndim - dims]
    lines = get_kernels("reshape")[TAICHI](a, shape=(*lead, prod(a.shape[a.ndim - dims :])))
    indices = get_kernels("reshape")[TAICHI](b, shape=(*lead, prod(b.shape[b.ndim - dims :])))
    return gather(lines, indices, dim=len(lead)).reshape(b.shape)


@kernel("put_at", TAICHI)
def put_at(a: Any, b: Any, *, shape: Shape, dims: int) -> Any:
    lead = shape[:-dims]
    flat_shape = (*lead, prod(b.shape[b.ndim - dims :]))
    values, indices = [get_kernels("reshape")[TAICHI](x, shape=flat_shape) for x in (a, b)]
    if source.VECTORIZED and prod(flat_shape) and prod(shape[-dims:]):
        return _scatter_add_planes(values, indices, shape, prod(lead), flat_shape[-1])
    return scatter_add(None, indices, values, dim=len(lead), shape=(*lead, prod(shape[-dims:]))).reshape(shape)


def _scatter_add_planes(values: Any, indices: Any, shape: Shape, planes: int, count: int) -> Any:
    """Scatter-add to planes. Each plane is processed by one core, sequentially in memory order."""
    out = empty(shape, values.dtype)
    error_args = (
        ShapeError,
        "index out of range: an index is out of bounds for a plane with {} elements",
        out.size // planes,
    )
    error_flag = error_slot(*error_args)
    arrays = (out, as_contiguous(values), as_contiguous(indices), error_flag)
    compiled_kernel = get_kernel(
        "scatter_add_planes",
        *_scatter_planes_source(values.dtype.name, indices.dtype.name, values.size <= source.SERIAL_LIMIT),
    )
    compiled_kernel(*map(array_argument, arrays), planes, count, out.size // planes)
    check_slot(error_flag, *error_args)
    return out


@arch_cache()
def _scatter_planes_source(dtype: str, index: str, serial: bool) -> tuple[str, str]:
    body = f"""        for k in range(t * size, t * size + size):
            y_[k] = ti.cast(0, ti.{source.TAICHI_NAMES[dtype]})
        for k in range(t * count, t * count + count):
            index = ti.cast(indices_[k], ti.i32)
            if (indices_[k] >= 0) & (indices_[k] < size):
                y_[t * size + index] = ti.cast(y_[t * size + index] + x_[k], ti.{source.TAICHI_NAMES[dtype]})
            else:
                error_[0] = 1
"""
    code = f"""@ti.kernel
def scatter_add_planes_kernel(
    y_: {source.array_annotation(dtype)}, x_: {source.array_annotation(dtype)}, \
indices_: {source.array_annotation(index)},
    error_: {source.array_annotation("int32")}, planes: ti.i32, count: ti.i32, size: ti.i32
):
{source.parallel_loop("planes", body, serial)}"""
    return code, "aaaaiii"


# --- slices ---


@kernel("index_select", TAICHI)
def index_select(a: Any, b: Any, *, dim: int) -> Any:
    out = empty((*a.shape[:dim], *b.shape, *a.shape[dim + 1 :]), a.dtype)
    _index_slices("take", out, a, b, dim)
    return out


@kernel("embedding", TAICHI)
def embedding(a: Any, b: Any, *, padding_idx: int | None, by_freq: bool) -> Any:
    return index_select(a, b, dim=0)


@kernel("index_add", TAICHI)
def index_add(a: Any, b: Any, c: Any, *, dim: int, shape: Shape | None) -> Any:
    out = _copy_or_zeros(a, shape, c.dtype)
    _index_slices("add", out, _to_array(c, out.dtype), b, dim)
    return out


@kernel("index_copy", TAICHI)
def index_copy(a: Any, b: Any, c: Any, *, dim: int, out: Any = None) -> Any:
    values = _to_array(c, a.dtype)
    if out is None:
        out = _copy_or_zeros(a, None, a.dtype)
    else:  # copy operands that alias the output
        b, values = [get_kernels("contiguous")[TAICHI](x) if np.may_share_memory(x, out) else x for x in (b, values)]
    _index_slices("put", out, values, b, dim)
    return out


@kernel("repeat_interleave", TAICHI)
def repeat_interleave(a: Any, *, repeats: Any, dim: int) -> Any:
    return index_select(a, _repeat_indices(repeats, a.shape[dim]), dim=dim)


@kernel("repeat_interleave_backward", TAICHI)
def repeat_interleave_backward(a: Any, *, count: int, repeats: Any, dim: int) -> Any:
    if not isinstance(repeats, int):
        return index_add(
            None, _repeat_indices(repeats, count), a, dim=dim, shape=(*a.shape[:dim], count, *a.shape[dim + 1 :])
        )
    parts = get_kernels("reshape")[TAICHI](a, shape=(*a.shape[:dim], count, repeats, *a.shape[dim + 1 :]))
    return reduce_snippet("sum", "sum", "a", (parts,), (dim + 1,), False, a.dtype)


def _repeat_indices(repeats: Any, count: int) -> Any:
    """Return the indices 0 to count - 1, each repeated `repeats` times; `repeats` is an int, or contains one count
    per index."""
    if not isinstance(repeats, int):
        return copy_to_device(np.repeat(np.arange(count), repeats))
    return evaluate(
        "repeat_indices", "i // repeats", (), np.int64, empty((count * repeats,), np.int64), {"repeats": repeats}
    )


@kernel("as_strided_backward", TAICHI)
def as_strided_backward(a: Any, *, shape: Shape, own: Shape, size: Shape, stride: Shape, offset: int) -> Any:
    start, count = views.memory_span(shape, own)
    memory = full((count,), a.dtype)
    by = tuple([step * 8 for step in stride])
    offsets = views.strided_view(arange(count), size, by, (start + offset) * 8).view(memory.__class__)
    order, disjoint_count = _disjoint_dims(size, stride)
    line_shape = (prod([size[k] for k in order[:disjoint_count]]), prod([size[k] for k in order[disjoint_count:]]))
    values, indices = [get_kernels("reshape")[TAICHI](x.transpose(order), shape=line_shape) for x in (a, offsets)]
    gather_or_scatter(
        "add", np.broadcast_to(memory, (line_shape[0], count), subok=True), values, indices, line_shape, 1
    )
    out = views.strided_view(memory, shape, tuple([step * a.itemsize for step in own]), start * a.itemsize)
    return get_kernels("contiguous")[TAICHI](out.view(memory.__class__))


def _disjoint_dims(size: Shape, stride: Shape) -> tuple[list[int], int]:
    """Return the dimensions, disjoint dimensions first, and the number of disjoint dimensions.

    A dimension is disjoint if its stride exceeds the span of all later dimensions, so that its slices do not overlap.
    """
    order = sorted(range(len(size)), key=lambda k: -abs(stride[k]))
    spans = [(size[k] - 1) * abs(stride[k]) for k in order]
    disjoint_count = 0
    while disjoint_count < len(order) and abs(stride[order[disjoint_count]]) > sum(spans[disjoint_count + 1 :]):
        disjoint_count += 1
    return order[:disjoint_count] + sorted(order[disjoint_count:]), disjoint_count


@kernel("last", TAICHI)
def last(b: Any, *, dim: int | None) -> Any:
    index = b if dim is not None else get_kernels("reshape")[TAICHI](b, shape=(b.size,))
    axis = dim or 0
    if not b.size:
        return empty(b.shape, np.bool_)
    end = int(reduce_snippet("amax", "max", "a", (index,), None, False, b.dtype).host) + 1
    positions = arange(index.shape[axis]).reshape(-1, *(1,) * (index.ndim - axis - 1))
    last_positions = empty((*index.shape[:axis], end, *index.shape[axis + 1 :]), np.int64)
    gather_or_scatter("put", last_positions, positions, index, index.shape, axis)
    last_at_index = gather(last_positions, index, dim=axis)
    return evaluate("eq", "a == b", (last_at_index, positions), np.bool_).reshape(b.shape)


# --- nonzero ---


@kernel("nonzero", TAICHI)
def nonzero(a: Any) -> Any:
    """Count nonzeros per chunk, compute the prefix sum, and write the indices of each chunk starting at its offset."""
    a = as_contiguous(a)
    chunks = -(-a.size // TASK_ELEMENTS)
    ends = empty((chunks + 1,), np.int32)
    # compare the bits of floats, without the sign: a float comparison may flush subnormals to 0
    serial, dtype = a.size <= source.SERIAL_LIMIT, DTYPE_BY_ITEMSIZE[a.itemsize]
    predicate = "((x_[k] + x_[k]) == 0) == 0" if a.dtype.kind == "f" else "x_[k] != 0"
    _count_kernel(dtype, predicate, serial)(array_argument(ends), array_argument(a), a.size, chunks)
    out = empty((int(ends.host[-1]), a.ndim), np.int64)
    if out.size:
        _write_kernel(dtype, predicate, a.ndim, serial)(
            array_argument(out), array_argument(a), array_argument(ends), a.size, chunks, *a.shape
        )
    return out


@arch_cache()
def _count_kernel(dtype: str, predicate: str, serial: bool) -> Any:
    code = f"""@ti.kernel
def nonzero_counts_kernel(
    y_: {source.array_annotation("int32")}, x_: {source.array_annotation(dtype)}, size: ti.i32, chunks: ti.i32
):
{source.SERIALIZE * serial}    for i in range(chunks):
        count = 0
        for k in range(i * {TASK_ELEMENTS}, ti.min(i * {TASK_ELEMENTS} + {TASK_ELEMENTS}, size)):
            count += ti.cast({predicate}, ti.i32)
        y_[i + 1] = count
    ti.loop_config(serialize=True)
    for i in range(chunks + 1):
        y_[i] = 0 if i == 0 else y_[i] + y_[i - 1]
"""
    return get_kernel("nonzero_counts", code, "aaii")


@arch_cache()
def _write_kernel(dtype: str, predicate: str, ndim: int, serial: bool) -> Any:
    sizes = "".join(f", n{k}: ti.i32" for k in range(ndim))
    store_line = "                y_[row * {n} + {k}] = ti.cast({rest}, ti.i64)\n"
    row = "".join(
        store_line.format(n=ndim, k=k, rest=f"rest % n{k}") + f"                rest = rest // n{k}\n"
        for k in reversed(range(1, ndim))
    )
    row += store_line.format(n=ndim, k=0, rest="rest") if ndim else ""
    code = f"""@ti.kernel
def nonzero_kernel(
    y_: {source.array_annotation("int64")}, x_: {source.array_annotation(dtype)},
    ends_: {source.array_annotation("int32")},
    size: ti.i32, chunks: ti.i32{sizes}
):
{source.SERIALIZE * serial}    for i in range(chunks):
        row = ends_[i]
        for k in range(i * {TASK_ELEMENTS}, ti.min(i * {TASK_ELEMENTS} + {TASK_ELEMENTS}, size)):
            if {predicate}:
                rest = k
{row}                row += 1
"""
    return get_kernel("nonzero", code, "aaaii" + "i" * ndim)
