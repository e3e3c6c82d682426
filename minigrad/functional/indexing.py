"""Gather and scatter by index or mask, with PyTorch's functions. `subscript` implements ``x[key]``.

An index is an int64 or int32 tensor; only ``x[key]``, `take`, `take_along_dim` and `index_fill` accept negative ones.
Reads return a copy, and gradients of repeated indices accumulate. If several values are written to one position, only
the last one remains and receives a gradient; overwritten elements receive none.

The functions raise DTypeError for an index of another dtype, and ShapeError, which is also an IndexError, for an index
out of range.
"""

from __future__ import annotations

from typing import Any, Literal, cast, overload

from minigrad import ops
from minigrad.backends.limits import convert_scalar
from minigrad.core.dtypes import DTYPES, DType
from minigrad.core.errors import DTypeError, ShapeError
from minigrad.core.registry import register
from minigrad.core.shapes import broadcast_shapes
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import (
    at_least_1d,
    check_same_dtype,
    check_single_dim,
    check_tensor,
    flatten_all,
    reshape_to,
)
from minigrad.functional.subscript import check_index_range

__all__ = ["check_index", "scatter_values"]  # used by other modules; registered functions are not listed

_BOOL, _INT32, _INT64 = DTYPES["bool"], DTYPES["int32"], DTYPES["int64"]


# --- along a dimension ---


@register(method=True)
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Gather elements along `dim` by `index`: ``out[i][j] = input[index[i][j]][j]`` for `dim` 0.

    `index` has as many dimensions as `input` and is no larger except along `dim`; otherwise ShapeError is raised. The
    result has the shape of `index`. `sparse_grad` is ignored.

    >>> import minigrad as mg
    >>> mg.gather(mg.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, mg.tensor([[1], [0]])).tolist()
    [[2.0], [3.0]]
    """
    x, idx, k = _prepare_along_dim("gather", input, dim, index)
    return reshape_to(ops.gather(x, idx, dim=k), index.shape)


@register(method=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Gather along `dim`, broadcasting `input` and `indices` in the other dimensions; without `dim`, flatten `input`.

    Raises ShapeError if they cannot be broadcast.
    """
    name = "take_along_dim"
    x, idx = check_tensor(input, name), check_index(name, indices)
    if dim is None:
        return take(x, flatten_all(idx))
    k = check_single_dim(dim, x, name)
    x, idx = at_least_1d(x), at_least_1d(idx)
    _check_same_ndim(name, x, idx)
    batch_shape = broadcast_shapes(*[(*t.shape[:k], 1, *t.shape[k + 1 :]) for t in (x, idx)], op=name)
    x, idx = (t.expand(*batch_shape[:k], t.shape[k], *batch_shape[k + 1 :]) for t in (x, idx))
    result = ops.gather(x, check_index_range(name, idx, x.shape[k], k, from_end=True), dim=k)
    return reshape_to(result, result.shape if input.ndim or indices.ndim else ())


def scatter_values(input: Tensor, dim: int, index: Tensor, src: Any = None, value: Any = None) -> Tensor:
    """Implement `scatter` without `reduce`."""
    x, idx, k = _prepare_along_dim("scatter", input, dim, index)
    scalar = value if src is None else src
    source = (
        _trim_source("scatter", x, idx, src) if isinstance(src, Tensor) else _check_scalar("scatter", scalar, x.dtype)
    )
    source = source.expand(*idx.shape) if isinstance(source, Tensor) else source
    return reshape_to(ops.scatter(x, idx, source, dim=k), input.shape)


@register(method=True, in_place=True, saves_operand=False)
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return a copy with `src` added at `index` along `dim`: ``out[index[i][j]][j] += src[i][j]`` for `dim` 0.

    Shapes and errors are those of `scatter`. Elements are added in the order of `src`, so the result is deterministic.
    """
    x, idx, k = _prepare_along_dim("scatter_add", input, dim, index)
    return reshape_to(ops.scatter_add(x, idx, _trim_source("scatter_add", x, idx, src), dim=k), input.shape)


# --- slices ---


@register(method=True)
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the slices of `input` along `dim` at the 1-d `index`, as ``input[:, index]`` for `dim` 1."""
    x, idx, k = _prepare_slices("index_select", input, dim, index)
    if not input.ndim and idx.shape != (1,):
        raise ShapeError(f"index_select: expected an index of one element for a 0-d tensor, but got {idx.shape[0]}.")
    result = ops.index_select(x, idx, dim=k)
    return reshape_to(result, result.shape if input.ndim else ())


@register(method=True, in_place=True, saves_operand=False)
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """Return a copy with `alpha` times the slices of `source` added to those of `input` along `dim` at the 1-d `index`.

    `source` has the shape of `input`, with one slice per element of `index`. Raises ShapeError otherwise, and
    DTypeError for a `source` of another dtype.
    """
    x, idx, k = _prepare_slices("index_add", input, dim, index, source)
    scaled_source = at_least_1d(source)
    scaled_source = (
        scaled_source if alpha == 1 else scaled_source * convert_scalar("index_add", alpha, scaled_source.dtype)
    )
    return reshape_to(ops.index_add(x, idx, scaled_source, dim=k), input.shape)


@register(method=True, in_place=True, saves_operand=False)
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return a copy with the slices of `input` at `index` replaced by those of `source`: see `index_add`."""
    x, idx, k = _prepare_slices("index_copy", input, dim, index, source)
    return reshape_to(ops.index_copy(x, idx, at_least_1d(source), dim=k), input.shape)


@register(method=True, in_place=True, saves_operand=False)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Return a copy with the slices along `dim` at the 1-d `index` filled with `value`, a scalar or 0-d tensor."""
    x, idx, k = _prepare_slices("index_fill", input, dim, index)
    fill = _check_scalar("index_fill", value, x.dtype)
    if isinstance(fill, Tensor):
        fill = fill.expand(*x.shape[:k], *idx.shape, *x.shape[k + 1 :])
    return reshape_to(ops.index_copy(x, idx, fill, dim=k), input.shape)


@register(method=True)
def take(input: Tensor, index: Tensor) -> Tensor:
    """Return the elements of the flattened `input` at `index`, in the shape of `index`."""
    x, idx = flatten_all(check_tensor(input, "take")), check_index("take", index)
    idx = check_index_range("take", idx, x.shape[0], 0, from_end=True)
    return cast(Tensor, ops.index_select(x, idx, dim=0))


# --- masks ---


@register(method=True, in_place=True, saves_operand=False)
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Return a copy with the scalar or 0-d `value` where the bool `mask` is True. `input` and `mask` broadcast."""
    x = check_tensor(input, "masked_fill")
    fill = _check_scalar("masked_fill", value, x.dtype)
    broadcast_shapes(x.shape, _check_mask("masked_fill", mask).shape, op="masked_fill")
    return cast(Tensor, ops.where(mask, fill, x))


@register(method=True)
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Return the elements of `input` where the bool `mask` is True, as a vector. `input` and `mask` broadcast."""
    shape = broadcast_shapes(
        check_tensor(input, "masked_select").shape, _check_mask("masked_select", mask).shape, op="masked_select"
    )
    return input.expand(*shape)[mask.expand(*shape)]


@register(method=True, in_place=True, saves_operand=False)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return a copy of `input` with consecutive elements of `source` where the bool `mask` is True.

    `input` and `mask` broadcast. Raises ShapeError if `source` has too few elements, and DTypeError for another dtype.
    """
    name = "masked_scatter"
    check_same_dtype(name, input=input, source=source)
    shape = broadcast_shapes(input.shape, _check_mask(name, mask).shape, op=name)
    idx = ops.nonzero(flatten_all(mask.expand(*shape)))[:, 0]
    flat_source = flatten_all(source)
    if flat_source.shape[0] < idx.shape[0]:
        raise ShapeError(
            f"{name}: number of elements of source ({flat_source.shape[0]}) < number of ones in mask ({idx.shape[0]})."
        )
    result = ops.index_copy(flatten_all(input.expand(*shape)), idx, flat_source[: idx.shape[0]], dim=0)
    return reshape_to(result, shape)


@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = False) -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
@register(method=True)
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Return the indices of the n nonzero elements, (n, ndim), int64; with `as_tuple` one vector per dimension.

    >>> import minigrad as mg
    >>> mg.nonzero(mg.tensor([[0, 5], [7, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    x = check_tensor(input, "nonzero")
    if not as_tuple:
        return ops.nonzero(x)
    indices = ops.nonzero(at_least_1d(x))
    return tuple([indices[:, k] for k in range(indices.shape[1])])


@register(method=True)
def argwhere(input: Tensor) -> Tensor:
    """Return the indices of the nonzero elements, one per row, like `nonzero`."""
    return nonzero(input)


@register(method=True)
def count_nonzero(input: Tensor, dim: int | tuple[int, ...] | None = None) -> Tensor:
    """Count the nonzero elements along `dim`, or all if None."""
    return cast(Tensor, ops.ne(check_tensor(input, "count_nonzero"), 0).sum(dim))


# --- helpers ---


def check_index(name: str, index: Any) -> Tensor:
    if check_tensor(index, name, "index").dtype in (_INT32, _INT64):
        return cast(Tensor, index).to(_INT64)
    raise DTypeError(
        f"{name}: expected dtype int64 or int32 for index, but got {index.dtype.name}.\n  Write index.to(mg.int64)."
    )


def _check_mask(name: str, mask: Any) -> Tensor:
    if check_tensor(mask, name, "mask").dtype is _BOOL:
        return cast(Tensor, mask)
    raise DTypeError(
        f"{name}: only supports boolean masks, but got {mask.dtype.name}.\n  Write mask.to(mg.bool), or x != 0."
    )


def _check_same_ndim(name: str, x: Tensor, other: Tensor) -> None:
    if x.ndim != other.ndim:
        raise ShapeError(f"{name}: shapes {x.shape} and {other.shape} must have the same number of dimensions.")


def _prepare_along_dim(name: str, input: Any, dim: int, index: Any) -> tuple[Tensor, Tensor, int]:
    """Check the arguments of an op along a dimension. Return the input, the index, and the non-negative `dim`."""
    x, idx = at_least_1d(check_tensor(input, name)), at_least_1d(check_index(name, index))
    k = check_single_dim(dim, input, name)
    _check_same_ndim(name, x, idx)
    if any(n > m for j, (n, m) in enumerate(zip(idx.shape, x.shape, strict=True)) if j != k):
        raise ShapeError(
            f"{name}: expected index {idx.shape} to be no larger than self {x.shape} apart from dimension {k}."
        )
    return x, check_index_range(name, idx, x.shape[k], k), k


def _trim_source(name: str, x: Tensor, idx: Tensor, src: Any) -> Tensor:
    """Check `src`, and return the elements that are written to `x`, truncated to the shape of `idx`."""
    check_same_dtype(name, input=x, src=src)
    source = at_least_1d(src)
    _check_same_ndim(name, source, idx)
    if any(n > m for n, m in zip(idx.shape, source.shape, strict=True)):
        raise ShapeError(f"{name}: expected index {idx.shape} to be no larger than src {source.shape}.")
    return source if source.shape == idx.shape else source[tuple(slice(n) for n in idx.shape)]


def _prepare_slices(name: str, input: Any, dim: int, index: Any, source: Any = None) -> tuple[Tensor, Tensor, int]:
    """Check the arguments of an op on slices. Return the input, the index, and the non-negative `dim`."""
    x, idx = at_least_1d(check_tensor(input, name)), at_least_1d(check_index(name, index))
    k = check_single_dim(dim, input, name)
    if idx.ndim > 1:
        raise ShapeError(f"{name}: index is supposed to be a vector, but got shape {idx.shape}; x[index] supports any.")
    if source is not None:
        check_same_dtype(name, input=x, source=source)
        shape = (*x.shape[:k], *idx.shape, *x.shape[k + 1 :])
        if source.ndim != input.ndim or at_least_1d(source).shape != shape:
            raise ShapeError(f"{name}: expected source of shape {shape}, one slice per index, but got {source.shape}.")
    return x, check_index_range(name, idx, x.shape[k], k, from_end=name == "index_fill"), k


def _check_scalar(name: str, value: Any, dtype: DType) -> Any:
    if not isinstance(value, Tensor):
        return convert_scalar(name, value, dtype)
    if value.ndim:
        raise ShapeError(f"{name}: only supports a 0-dimensional value tensor, but got shape {value.shape}.")
    return value.to(dtype)
