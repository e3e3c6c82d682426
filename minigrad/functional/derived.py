"""PyTorch's functions that are a line or two of others. They have the gradients of what they are made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, cast

from minigrad import ops
from minigrad.core.dtypes import DType, int32, int64
from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.core.registry import register, register_method
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import Dims, floats_of, operands_of, shaped, tensor_as, tensor_of
from minigrad.functional.creation import arange, zeros_like
from minigrad.functional.elementwise import clamp, where
from minigrad.functional.indexing import gather
from minigrad.functional.reduce import amax, amin, sum
from minigrad.functional.return_types import Ends
from minigrad.functional.shape import cat, flip, tril, triu
from minigrad.functional.views import transpose


@register(method=True)
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Ends:
    """`amin` and `amax` along `dim`, or of all numbers."""
    along = () if dim is None else dim
    return Ends(amin(input, along, keepdim), amax(input, along, keepdim))


@register(method=True, in_place=True)
def exp2(input: Tensor) -> Tensor:
    """2 to the power `input`."""
    return cast(Tensor, ops.pow(2.0, tensor_of(input, "exp2")))


@register(method=True, in_place=True)
def log10(input: Tensor) -> Tensor:
    """The logarithm to base 10, as ln x / ln 10: its last digit is rounded twice."""
    return cast(Tensor, ops.log(tensor_of(input, "log10")) / math.log(10.0))


@register(method=True, in_place=True)
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """``log(x / (1 - x))``, from which `sigmoid` comes back; with `eps`, of x brought into eps … 1 - eps."""
    x = tensor_of(input, "logit") if eps is None else clamp(tensor_of(input, "logit"), eps, 1 - eps)
    return cast(Tensor, ops.log(x) - ops.log1p(x * -1.0))  # a bool has no negative, that of a byte is another


@register(method=True)
def logaddexp(input: Any, other: Any) -> Tensor:
    """``log(exp(input) + exp(other))`` without overflow."""
    a, b = operands_of("logaddexp", input=input, other=other)
    first = a >= b  # of two that are equal one is the larger, so that the rules of `where` cut nothing off
    high, low = where(first, a, b), where(first, b, a)
    gap = where(ops.logical_and(high == low, ops.isinf(high)), 0.0, low - high)
    return cast(Tensor, high + ops.softplus(gap))


@register(method=True, in_place=True)
def hypot(input: Any, other: Any) -> Tensor:
    """``sqrt(input**2 + other**2)``, also where the squares are too large or too small; inf if either is infinite."""
    a, b = operands_of("hypot", input=input, other=other)
    size = ops.maximum(ops.abs(a.detach()), ops.abs(b.detach()))
    by = where(ops.logical_and(size > 0, size < inf), size, 1.0)
    found = ops.sqrt(ops.square(a / by) + ops.square(b / by)) * by
    endless = ops.logical_or(ops.isinf(a), ops.isinf(b))
    return cast(Tensor, where(ops.logical_and(ops.isnan(found), endless), inf, found))  # beside nan


@register(method=True)
def nansum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """`sum`, in which nan counts as 0."""
    x = tensor_of(input, "nansum")
    return sum(where(ops.isnan(x), 0.0, x) if x.dtype.is_floating_point else x, dim, keepdim, dtype=dtype)


@register(method=True)
def nanmean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The mean of what is not nan, in a floating-point `dtype`; nan where nothing is."""
    x = floats_of(tensor_as(floats_of(input, "nanmean"), dtype, "nanmean"), "nanmean")
    return nansum(x, dim, keepdim) / sum(ops.logical_not(ops.isnan(x)), dim, keepdim).to(x.dtype)


# --- arranged ---


@register
def atleast_1d(*tensors: Any) -> Any:
    """A tensor, or each of several, with one dimension or more: a number becomes (1,)."""
    return _each(tensors, lambda x: x if x.ndim else shaped(x, (1,)))


@register
def atleast_2d(*tensors: Any) -> Any:
    """A tensor, or each of several, with two dimensions or more: a row (n,) becomes (1, n)."""
    return _each(tensors, lambda x: x if x.ndim > 1 else shaped(x, (1, x.shape[0] if x.ndim else 1)))


def _each(tensors: Sequence[Any], made: Callable[[Tensor], Tensor]) -> Any:
    listed = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    found = tuple(made(tensor_of(x, "atleast")) for x in listed)
    return found[0] if listed is tensors and len(found) == 1 else found


@register
def concatenate(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """`cat` by its other name."""
    return cat(tensors, dim)


@register
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Rows of numbers (n,) become the columns of one tensor; those of two dimensions stand beside one another."""
    return cat([x if x.ndim > 1 else shaped(x, (x.shape[0] if x.ndim else 1, 1)) for x in tensors], 1)


@register
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors after one another along the third dimension; (n,) counts as (1, n, 1), and (m, n) as (m, n, 1)."""
    return cat([x if x.ndim > 2 else atleast_2d(x)[..., None] for x in tensors], 2)


@register(method=True)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker's product: each number of `input` times all of `other`, in its place."""
    ndim = max(tensor_of(input, "kron").ndim, tensor_of(other, "kron", "other").ndim)
    a, b = (shaped(x, (*(1,) * (ndim - x.ndim), *x.shape)) for x in (input, other))
    spread = shaped(a, tuple(n for size in a.shape for n in (size, 1)))
    tiles = shaped(b, tuple(n for size in b.shape for n in (1, size)))
    return shaped(spread * tiles, tuple(m * n for m, n in zip(a.shape, b.shape, strict=True)))


@register(method=True)
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """`input` turned `k` times by a right angle, from the first of two `dims` to the second, or raises ShapeError."""
    if tensor_of(input, "rot90").ndim < 2:
        raise ShapeError(f"rot90: shape {input.shape} has no two dimensions to turn between.")
    if len(dims) != 2:
        raise ShapeError(f"rot90: dims={dims!r}: a turn is between two dimensions.")
    first, second = dims
    if first % input.ndim == second % input.ndim:
        raise ShapeError(f"rot90: dims={dims!r} are one dimension, and a turn is between two.")
    turned = flip(input, [first, second]) if k % 4 >= 2 else input
    return flip(transpose(turned, first, second), [first]) if k % 2 else turned.clone()


# --- places ---


@register
def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where each number of `input` (…, m) would go into the rising `sorted_sequence` (…, n): int64 from 0 to n.

    Before numbers that are equal, or behind them with `right`; nan behind all, as in `sort`. A sequence that is not
    sorted comes with its `sorter`, the indices of `argsort`. All pairs are compared. Raises ShapeError where a sequence
    has several rows and `input` other ones, or the sorter has another shape.

    >>> import minigrad as mg
    >>> mg.searchsorted(mg.tensor([1.0, 3.0, 5.0]), mg.tensor([0.0, 3.0, 9.0])).tolist()
    [0, 1, 3]
    """
    if side not in (None, "left", "right") or (side == "left" and right):
        raise ArgumentError(f'searchsorted: side={side!r} and right={right}; side is "left" or "right".')
    rows = tensor_of(sorted_sequence, "searchsorted", "sorted_sequence").detach()
    if sorter is not None:
        if tensor_of(sorter, "searchsorted", "sorter").shape != rows.shape:
            raise ShapeError(f"searchsorted: sorter has shape {sorter.shape}, and sorted_sequence {rows.shape}.")
        rows = gather(rows, -1, sorter)
    x = input.detach() if isinstance(input, Tensor) else rows.new_tensor(input)
    if rows.ndim > 1 and rows.shape[:-1] != x.shape[:-1]:
        raise ShapeError(f"searchsorted: the sequences are {rows.shape} and the numbers {x.shape}: other rows.")
    each = rows if rows.ndim == 1 else rows[..., None, :]
    before = each <= x[..., None] if right or side == "right" else each < x[..., None]
    places = where(ops.isnan(x), rows.shape[-1], sum(before, -1))
    return cast(Tensor, places.to(int32 if out_int32 else int64))


@register
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The number of the bucket between rising `boundaries` (n,) for each number: `searchsorted` from its side."""
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


# --- in place ---


@register_method("fill_diagonal_")
def _fill_diagonal_(self: Tensor, fill_value: float) -> Tensor:
    """Overwrite the numbers whose places are equal in all dimensions. Raises ShapeError for fewer than two of them."""
    if self.ndim < 2:
        raise ShapeError(f"fill_diagonal_: shape {self.shape} has no diagonal; two dimensions or more have.")
    places = arange(min(self.shape), device=self.device)
    self[(places,) * self.ndim] = fill_value
    return self


@register_method("tril_")
def _tril_(self: Tensor, diagonal: int = 0) -> Tensor:
    """Overwrite what is above the diagonal with 0."""
    return self.masked_fill_(tril(zeros_like(self, dtype=int64) + 1, diagonal) == 0, 0)


@register_method("triu_")
def _triu_(self: Tensor, diagonal: int = 0) -> Tensor:
    """Overwrite what is below the diagonal with 0."""
    return self.masked_fill_(triu(zeros_like(self, dtype=int64) + 1, diagonal) == 0, 0)
