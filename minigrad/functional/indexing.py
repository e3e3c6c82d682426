"""Gather and scatter by index or mask, with PyTorch's functions. `subscript` implements ``x[key]``.

An index is an int64 or int32 tensor; only ``x[key]``, `take`, `take_along_dim` and `index_fill` accept negative ones.
Reads return a copy, and gradients of repeated indices accumulate. If several values are written to one position, the
last one remains, and only it gets a gradient; overwritten elements get none.

The functions raise DTypeError for an index of another dtype, and ShapeError, also an IndexError, if it is out of range.
"""

from __future__ import annotations

from typing import Any, Literal, cast, overload

from minigrad import ops
from minigrad.backends.limits import number
from minigrad.core.dtypes import DTYPES, DType
from minigrad.core.errors import DTypeError, ShapeError
from minigrad.core.registry import register
from minigrad.core.shapes import broadcast_shapes
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_same_type, flat, line, one_dim_of, shaped, tensor_of
from minigrad.functional.subscript import in_range

__all__ = ["index_tensor", "scattered"]  # for other modules; registered functions are public

_BOOL, _INT32, _INT64 = DTYPES["bool"], DTYPES["int32"], DTYPES["int64"]


# --- along a dimension ---


@register(method=True)
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Gather elements along `dim` by `index`: ``out[i][j] = input[index[i][j]][j]`` for `dim` 0.

    `index` has as many dimensions as `input` and is no larger apart from `dim`; the result has its shape. Raises
    ShapeError otherwise. `sparse_grad` is ignored.

    >>> import minigrad as mg
    >>> mg.gather(mg.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, mg.tensor([[1], [0]])).tolist()
    [[2.0], [3.0]]
    """
    x, at, k = _along("gather", input, dim, index)
    return shaped(ops.gather(x, at, dim=k), index.shape)


@register(method=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Gather along `dim`, broadcasting `input` and `indices` in the other dimensions; without `dim`, flatten `input`.

    Raises ShapeError if they cannot be broadcast.
    """
    name = "take_along_dim"
    x, at = tensor_of(input, name), index_tensor(name, indices)
    if dim is None:
        return take(x, flat(at))
    k = one_dim_of(dim, x, name)
    x, at = line(x), line(at)
    _same_ndim(name, x, at)
    others = broadcast_shapes(*[(*t.shape[:k], 1, *t.shape[k + 1 :]) for t in (x, at)], op=name)
    x, at = (t.expand(*others[:k], t.shape[k], *others[k + 1 :]) for t in (x, at))
    found = ops.gather(x, in_range(name, at, x.shape[k], k, from_end=True), dim=k)
    return shaped(found, found.shape if input.ndim or indices.ndim else ())


def scattered(input: Tensor, dim: int, index: Tensor, src: Any = None, value: Any = None) -> Tensor:
    """Implement `scatter` without `reduce`."""
    x, at, k = _along("scatter", input, dim, index)
    single = value if src is None else src
    c = _cut("scatter", x, at, src) if isinstance(src, Tensor) else _single("scatter", single, x.dtype)
    c = c.expand(*at.shape) if isinstance(c, Tensor) else c
    return shaped(ops.scatter(x, at, c, dim=k), input.shape)


@register(method=True, in_place=True, saves_operand=False)
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return a copy with `src` added at `index` along `dim`: ``out[index[i][j]][j] += src[i][j]`` for `dim` 0.

    Shapes and errors are those of `scatter`. It adds in the order of `src`, so the result is deterministic.
    """
    x, at, k = _along("scatter_add", input, dim, index)
    return shaped(ops.scatter_add(x, at, _cut("scatter_add", x, at, src), dim=k), input.shape)


# --- slices ---


@register(method=True)
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the slices of `input` along `dim` at the 1-d `index`, as ``input[:, index]`` for `dim` 1."""
    x, at, k = _slices("index_select", input, dim, index)
    if not input.ndim and at.shape != (1,):
        raise ShapeError(f"index_select: expected an index of one element for a 0-d tensor, but got {at.shape[0]}.")
    found = ops.index_select(x, at, dim=k)
    return shaped(found, found.shape if input.ndim else ())


@register(method=True, in_place=True, saves_operand=False)
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """Return a copy with `alpha` times the slices of `source` added to those of `input` along `dim` at the 1-d `index`.

    `source` has the shape of `input`, with one slice per element of `index`. Raises ShapeError otherwise, and
    DTypeError for a `source` of another dtype.
    """
    x, at, k = _slices("index_add", input, dim, index, source)
    c = line(source)
    c = c if alpha == 1 else c * number("index_add", alpha, c.dtype)
    return shaped(ops.index_add(x, at, c, dim=k), input.shape)


@register(method=True, in_place=True, saves_operand=False)
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return a copy with the slices of `input` at `index` replaced by those of `source`: see `index_add`."""
    x, at, k = _slices("index_copy", input, dim, index, source)
    return shaped(ops.index_copy(x, at, line(source), dim=k), input.shape)


@register(method=True, in_place=True, saves_operand=False)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Return a copy with the slices along `dim` at the 1-d `index` filled with `value`, a scalar or 0-d tensor."""
    x, at, k = _slices("index_fill", input, dim, index)
    c = _single("index_fill", value, x.dtype)
    if isinstance(c, Tensor):
        c = c.expand(*x.shape[:k], *at.shape, *x.shape[k + 1 :])
    return shaped(ops.index_copy(x, at, c, dim=k), input.shape)


@register(method=True)
def take(input: Tensor, index: Tensor) -> Tensor:
    """Return the elements of the flattened `input` at `index`, in the shape of `index`."""
    x, at = flat(tensor_of(input, "take")), index_tensor("take", index)
    at = in_range("take", at, x.shape[0], 0, from_end=True)
    return cast(Tensor, ops.index_select(x, at, dim=0))


# --- masks ---


@register(method=True, in_place=True, saves_operand=False)
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Return a copy with `value`, a scalar or 0-d tensor, where the bool `mask` is True. Both broadcast."""
    x = tensor_of(input, "masked_fill")
    c = _single("masked_fill", value, x.dtype)
    broadcast_shapes(x.shape, _mask("masked_fill", mask).shape, op="masked_fill")
    return cast(Tensor, ops.where(mask, c, x))


@register(method=True)
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Return the elements of `input` where the bool `mask` is True, as a vector. Both broadcast."""
    shape = broadcast_shapes(
        tensor_of(input, "masked_select").shape, _mask("masked_select", mask).shape, op="masked_select"
    )
    return input.expand(*shape)[mask.expand(*shape)]


@register(method=True, in_place=True, saves_operand=False)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return a copy of `input` with consecutive elements of `source` where the bool `mask` is True, both broadcast.

    Raises ShapeError if `source` has too few elements, DTypeError if it has another dtype.
    """
    name = "masked_scatter"
    check_same_type(name, input=input, source=source)
    shape = broadcast_shapes(input.shape, _mask(name, mask).shape, op=name)
    at = ops.nonzero(flat(mask.expand(*shape)))[:, 0]
    given = flat(source)
    if given.shape[0] < at.shape[0]:
        raise ShapeError(
            f"{name}: number of elements of source ({given.shape[0]}) < number of ones in mask ({at.shape[0]})."
        )
    written = ops.index_copy(flat(input.expand(*shape)), at, given[: at.shape[0]], dim=0)
    return shaped(written, shape)


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
    x = tensor_of(input, "nonzero")
    if not as_tuple:
        return ops.nonzero(x)
    found = ops.nonzero(line(x))
    return tuple([found[:, k] for k in range(found.shape[1])])


@register(method=True)
def argwhere(input: Tensor) -> Tensor:
    """Return the indices of the nonzero elements, one per row, as `nonzero`."""
    return nonzero(input)


@register(method=True)
def count_nonzero(input: Tensor, dim: int | tuple[int, ...] | None = None) -> Tensor:
    """Count the nonzero elements along `dim`, or all if None."""
    return cast(Tensor, ops.ne(tensor_of(input, "count_nonzero"), 0).sum(dim))


# --- helpers ---


def index_tensor(name: str, index: Any) -> Tensor:
    if tensor_of(index, name, "index").dtype in (_INT32, _INT64):
        return cast(Tensor, index).to(_INT64)
    raise DTypeError(
        f"{name}: expected dtype int64 or int32 for index, but got {index.dtype.name}.\n  Write index.to(mg.int64)."
    )


def _mask(name: str, mask: Any) -> Tensor:
    if tensor_of(mask, name, "mask").dtype is _BOOL:
        return cast(Tensor, mask)
    raise DTypeError(
        f"{name}: only supports boolean masks, but got {mask.dtype.name}.\n  Write mask.to(mg.bool), or x != 0."
    )


def _same_ndim(name: str, x: Tensor, other: Tensor) -> None:
    if x.ndim != other.ndim:
        raise ShapeError(f"{name}: shapes {x.shape} and {other.shape} must have the same number of dimensions.")


def _along(name: str, input: Any, dim: int, index: Any) -> tuple[Tensor, Tensor, int]:
    """Return the checked input and index of an op along a dimension, and `dim` counted from 0."""
    x, at = line(tensor_of(input, name)), line(index_tensor(name, index))
    k = one_dim_of(dim, input, name)
    _same_ndim(name, x, at)
    if any(n > m for j, (n, m) in enumerate(zip(at.shape, x.shape, strict=True)) if j != k):
        raise ShapeError(
            f"{name}: expected index {at.shape} to be no larger than self {x.shape} apart from dimension {k}."
        )
    return x, in_range(name, at, x.shape[k], k), k


def _cut(name: str, x: Tensor, at: Tensor, src: Any) -> Tensor:
    """Return the part of `src` that is written to `x` at `at`."""
    check_same_type(name, input=x, src=src)
    source = line(src)
    _same_ndim(name, source, at)
    if any(n > m for n, m in zip(at.shape, source.shape, strict=True)):
        raise ShapeError(f"{name}: expected index {at.shape} to be no larger than src {source.shape}.")
    return source if source.shape == at.shape else source[tuple(slice(n) for n in at.shape)]


def _slices(name: str, input: Any, dim: int, index: Any, source: Any = None) -> tuple[Tensor, Tensor, int]:
    """Return the checked input and index of an op on slices, and `dim` counted from 0."""
    x, at = line(tensor_of(input, name)), line(index_tensor(name, index))
    k = one_dim_of(dim, input, name)
    if at.ndim > 1:
        raise ShapeError(f"{name}: index is supposed to be a vector, but got shape {at.shape}; x[index] supports any.")
    if source is not None:
        check_same_type(name, input=x, source=source)
        shape = (*x.shape[:k], *at.shape, *x.shape[k + 1 :])
        if source.ndim != input.ndim or line(source).shape != shape:
            raise ShapeError(f"{name}: expected source of shape {shape}, one slice per index, but got {source.shape}.")
    return x, in_range(name, at, x.shape[k], k, from_end=name == "index_fill"), k


def _single(name: str, value: Any, dtype: DType) -> Any:
    if not isinstance(value, Tensor):
        return number(name, value, dtype)
    if value.ndim:
        raise ShapeError(f"{name}: only supports a 0-dimensional value tensor, but got shape {value.shape}.")
    return value.to(dtype)
