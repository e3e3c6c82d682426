"""Choosing numbers by index, and writing there: ``x[key]``, and PyTorch's functions.

An index is a tensor of ints (int64, or int32) from 0; only ``x[key]``, `take`, `take_along_dim` and `index_fill` count
from the end too. What is taken is a copy, and a place gets the gradients of all that was taken from it. Where several
numbers are written to one place the last stays, and only it gets a gradient; what was overwritten gets none.

DTypeError for an index of another type, ShapeError, which is an IndexError too, for one that is out of range.
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

__all__ = ["index_tensor", "scattered"]  # for other topics; what is registered is public

_BOOL, _INT32, _INT64 = DTYPES["bool"], DTYPES["int32"], DTYPES["int64"]


# --- along lines ---


@register(method=True)
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Of each line along `dim` the numbers that `index` says: ``out[i][j] = input[index[i][j]][j]`` where `dim` is 0.

    `index` has as many dimensions as `input`, and is not larger but along `dim`; the result has its shape. Raises
    ShapeError otherwise. `sparse_grad` is of no consequence.

    >>> import minigrad as mg
    >>> mg.gather(mg.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, mg.tensor([[1], [0]])).tolist()
    [[2.0], [3.0]]
    """
    x, at, k = _along("gather", input, dim, index)
    return shaped(ops.gather(x, at, dim=k), index.shape)


@register(method=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """`gather`, with `input` and `indices` broadcast in the other dimensions; without `dim`, from all numbers in line.

    Raises ShapeError where they do not broadcast.
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
    """`scatter`, without `reduce`."""
    x, at, k = _along("scatter", input, dim, index)
    single = value if src is None else src
    c = _cut("scatter", x, at, src) if isinstance(src, Tensor) else _single("scatter", single, x.dtype)
    c = c.expand(*at.shape) if isinstance(c, Tensor) else c
    return shaped(ops.scatter(x, at, c, dim=k), input.shape)


@register(method=True, in_place=True, saves_operand=False)
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """A copy with the numbers of `src` added at `index` along `dim`: ``out[index[i][j]][j] += src[i][j]``.

    Shapes and errors are those of `scatter`. It adds up in the order of `src`, so that the result is always the same.
    """
    x, at, k = _along("scatter_add", input, dim, index)
    return shaped(ops.scatter_add(x, at, _cut("scatter_add", x, at, src), dim=k), input.shape)


# --- slices ---


@register(method=True)
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of `input` at `index`, a vector of ints, along `dim`, as ``input[:, index]`` where `dim` is 1."""
    x, at, k = _slices("index_select", input, dim, index)
    if not input.ndim and at.shape != (1,):
        raise ShapeError(f"index_select: a tensor without dimensions has 1 number, and the index has {at.shape[0]}.")
    found = ops.index_select(x, at, dim=k)
    return shaped(found, found.shape if input.ndim else ())


@register(method=True, in_place=True, saves_operand=False)
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """A copy with the slices of `source`, times `alpha`, added to those of `input` at `index`, a vector, along `dim`.

    `source` has the shape of `input`, but as many slices as `index` has numbers. Raises ShapeError otherwise, and
    DTypeError for a `source` of another type.
    """
    x, at, k = _slices("index_add", input, dim, index, source)
    c = line(source)
    c = c if alpha == 1 else c * number("index_add", alpha, c.dtype)
    return shaped(ops.index_add(x, at, c, dim=k), input.shape)


@register(method=True, in_place=True, saves_operand=False)
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """A copy with the slices of `source` in place of those of `input` at `index`; takes and raises as `index_add`."""
    x, at, k = _slices("index_copy", input, dim, index, source)
    return shaped(ops.index_copy(x, at, line(source), dim=k), input.shape)


@register(method=True, in_place=True, saves_operand=False)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """A copy with `value`, a number or a tensor without dimensions, in the slices at `index`, a vector, along `dim`."""
    x, at, k = _slices("index_fill", input, dim, index)
    c = _single("index_fill", value, x.dtype)
    if isinstance(c, Tensor):
        c = c.expand(*x.shape[:k], *at.shape, *x.shape[k + 1 :])
    return shaped(ops.index_copy(x, at, c, dim=k), input.shape)


@register(method=True)
def take(input: Tensor, index: Tensor) -> Tensor:
    """The numbers of `input`, all in one line, at `index`; in the shape of `index`."""
    x, at = flat(tensor_of(input, "take")), index_tensor("take", index)
    at = in_range("take", at, x.shape[0], 0, from_end=True)
    return cast(Tensor, ops.index_select(x, at, dim=0))


# --- masks ---


@register(method=True, in_place=True, saves_operand=False)
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """A copy with `value`, a number or a tensor without dimensions, where `mask`, of bools, is True. They broadcast."""
    x = tensor_of(input, "masked_fill")
    c = _single("masked_fill", value, x.dtype)
    broadcast_shapes(x.shape, _mask("masked_fill", mask).shape, op="masked_fill")
    return cast(Tensor, ops.where(mask, c, x))


@register(method=True)
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The numbers of `input` where `mask`, of bools, is True, in a line. They broadcast."""
    shape = broadcast_shapes(
        tensor_of(input, "masked_select").shape, _mask("masked_select", mask).shape, op="masked_select"
    )
    return input.expand(*shape)[mask.expand(*shape)]


@register(method=True, in_place=True, saves_operand=False)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy with the numbers of `source`, one after the other, where `mask`, of bools, is True. They broadcast.

    Raises ShapeError where `source` has too few numbers, DTypeError where it is of another type.
    """
    name = "masked_scatter"
    check_same_type(name, input=input, source=source)
    shape = broadcast_shapes(input.shape, _mask(name, mask).shape, op=name)
    at = ops.nonzero(flat(mask.expand(*shape)))[:, 0]
    given = flat(source)
    if given.shape[0] < at.shape[0]:
        raise ShapeError(f"{name}: the mask has {at.shape[0]} places, but source {given.shape[0]} numbers.")
    written = ops.index_copy(flat(input.expand(*shape)), at, given[: at.shape[0]], dim=0)
    return shaped(written, shape)


@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = False) -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
@register(method=True)
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The places of the n numbers that are not 0: (n, dimensions), int64; `as_tuple`, a vector for each dimension.

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
    """`nonzero`: a row for each number that is not 0."""
    return nonzero(input)


@register(method=True)
def count_nonzero(input: Tensor, dim: int | tuple[int, ...] | None = None) -> Tensor:
    """How many numbers over `dim`, None for all, are not 0."""
    return cast(Tensor, ops.ne(tensor_of(input, "count_nonzero"), 0).sum(dim))


# --- what they share ---


def index_tensor(name: str, index: Any) -> Tensor:
    if tensor_of(index, name, "index").dtype in (_INT32, _INT64):
        return cast(Tensor, index).to(_INT64)
    raise DTypeError(f"{name}: an index is of int64, and this is of {index.dtype.name}.\n  Write index.to(mg.int64).")


def _mask(name: str, mask: Any) -> Tensor:
    if tensor_of(mask, name, "mask").dtype is _BOOL:
        return cast(Tensor, mask)
    raise DTypeError(
        f"{name}: a mask is of bools, and this is of {mask.dtype.name}.\n  Write mask.to(mg.bool), or x != 0."
    )


def _same_ndim(name: str, x: Tensor, other: Tensor) -> None:
    if x.ndim != other.ndim:
        raise ShapeError(f"{name}: shapes {x.shape} and {other.shape} must have as many dimensions.")


def _along(name: str, input: Any, dim: int, index: Any) -> tuple[Tensor, Tensor, int]:
    """The operands of an op along lines, and `dim` from 0."""
    x, at = line(tensor_of(input, name)), line(index_tensor(name, index))
    k = one_dim_of(dim, input, name)
    _same_ndim(name, x, at)
    if any(n > m for j, (n, m) in enumerate(zip(at.shape, x.shape, strict=True)) if j != k):
        raise ShapeError(f"{name}: the index, {at.shape}, is larger than {x.shape} in other dimensions than {k}.")
    return x, in_range(name, at, x.shape[k], k), k


def _cut(name: str, x: Tensor, at: Tensor, src: Any) -> Tensor:
    """As much of `src` as is written to `x` at `at`."""
    check_same_type(name, input=x, src=src)
    source = line(src)
    _same_ndim(name, source, at)
    if any(n > m for n, m in zip(at.shape, source.shape, strict=True)):
        raise ShapeError(f"{name}: the index, {at.shape}, is larger than src, {source.shape}.")
    return source if source.shape == at.shape else source[tuple(slice(n) for n in at.shape)]


def _slices(name: str, input: Any, dim: int, index: Any, source: Any = None) -> tuple[Tensor, Tensor, int]:
    """The operands of an op on slices, and `dim` from 0."""
    x, at = line(tensor_of(input, name)), line(index_tensor(name, index))
    k = one_dim_of(dim, input, name)
    if at.ndim > 1:
        raise ShapeError(f"{name}: the index is a vector, and this has shape {at.shape}; x[index] takes any.")
    if source is not None:
        check_same_type(name, input=x, source=source)
        shape = (*x.shape[:k], *at.shape, *x.shape[k + 1 :])
        if source.ndim != input.ndim or line(source).shape != shape:
            raise ShapeError(
                f"{name}: {at.shape[0]} slices of {x.shape} have shape {shape}; source has {source.shape}."
            )
    return x, in_range(name, at, x.shape[k], k, from_end=name == "index_fill"), k


def _single(name: str, value: Any, dtype: DType) -> Any:
    if not isinstance(value, Tensor):
        return number(name, value, dtype)
    if value.ndim:
        raise ShapeError(f"{name}: value is one number, and this has shape {value.shape}.")
    return value.to(dtype)
