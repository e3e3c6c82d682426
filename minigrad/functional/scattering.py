"""Scattering: PyTorch's ``scatter``, ``scatter_reduce``, ``index_put`` and out-of-place writes into views.

Shape requirements and errors are those of `scatter`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad import ops
from minigrad.core.errors import ArgumentError
from minigrad.core.registry import register, register_method
from minigrad.core.shapes import dim_of, numel
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_option, flat, line, shaped, tensor_of
from minigrad.functional.creation import arange
from minigrad.functional.elementwise import where
from minigrad.functional.indexing import gather, scatter_add, scattered
from minigrad.functional.subscript import get, put
from minigrad.functional.views import diagonal, select


@register(method=True, in_place=True, saves_operand=False)
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """Return a copy with `src` or `value` written at `index` along `dim`: ``out[index[i][j]][j] = src[i][j]``.

    `index` has as many dimensions as `input` and `src` and is no larger than either, except than `input` along `dim`;
    elements of `src` beyond it are ignored. `reduce` "add" or "multiply" combines them with the existing elements, as
    in `scatter_reduce`. Raises ShapeError for other shapes, DTypeError if the dtypes differ, and ArgumentError for any
    other `reduce`, or if both `src` and `value` are given.
    """
    if (src is None) is (value is None):
        raise ArgumentError("scatter: expected exactly one of src and value.")
    if reduce is not None:
        check_option(reduce, ("add", "multiply"), "scatter", "reduce")
        given = src if isinstance(src, Tensor) else input.new_full(index.shape, value if src is None else src)
        return scatter_reduce(input, dim, index, given, "sum" if reduce == "add" else "prod")
    return scattered(input, dim, index, src, value)


@register(method=True, in_place=True)
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return a copy in which all elements of `src` with the same `index` along `dim` are reduced into that position.

    `reduce` is "sum", "mean", "amax", "amin" or "prod". The elements of `input` are included unless `include_self` is
    False, and remain where no index points. Ties of "amax" and "amin" divide the gradient evenly; that of "prod" is
    correct at zeros too. Shapes are as in `scatter`. Raises ArgumentError for any other `reduce`.

    >>> import minigrad as mg
    >>> groups, x = mg.tensor([0, 1, 0, 1]), mg.tensor([1.0, 2.0, 3.0, 6.0])
    >>> mg.zeros(3).scatter_reduce(0, groups, x, "mean", include_self=False).tolist()
    [2.0, 4.0, 0.0]
    """
    check_option(reduce, ("sum", "mean", "amax", "amin", "prod"), "scatter_reduce", "reduce")
    x = tensor_of(input, "scatter_reduce")
    if reduce == "prod":
        return _product(x, dim, index, src, include_self)
    if reduce in ("sum", "mean"):
        begun = x if include_self else scattered(x, dim, index, value=0)
        total = scatter_add(begun, dim, index, src)
        if reduce == "sum":
            return total
        ones = x.new_ones(x.shape) if include_self else scattered(x.new_ones(x.shape), dim, index, value=0)
        count = scatter_add(ones, dim, index, src.new_ones(src.shape))
        return total / count if x.dtype.is_floating_point else total // count
    return _extreme(x, dim, index, src, reduce == "amax", include_self)


def _product(x: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool) -> Tensor:
    """Multiply elements with the same index by a segmented parallel scan over the sorted indices, in log2(n) steps.

    Step s multiplies each element by the one 2**s before it, unless a segment starts between them; the last product of
    each segment is the result. There is no division, which the gradient of a product of zeros would not allow.
    """
    k = dim_of(dim, max(x.ndim, 1), "scatter_reduce")
    at, given = line(index), line(src)[tuple(slice(n) for n in line(index).shape)]
    places, order = ops.sort(at, dim=k, descending=False)
    running, first = gather(given, k, order), places != ops.shift(places, dim=k, by=1, fill=-1)
    by = 1
    while by < places.shape[k]:
        running = running * where(first, True, ops.shift(running, dim=k, by=by, fill=1))
        first = ops.logical_or(first, ops.shift(first, dim=k, by=by, fill=1))
        by *= 2
    products = scattered(line(x) if not include_self else line(x).new_ones(line(x).shape), k, places, running)
    return shaped(line(x) * products if include_self else products, x.shape)


def _extreme(x: Tensor, dim: int, index: Tensor, src: Tensor, largest: bool, include_self: bool) -> Tensor:
    """Reduce with "amax" or "amin", and divide the gradient evenly between ties."""
    k = dim_of(dim, max(x.ndim, 1), "scatter_reduce")
    at, given = line(index), line(src)[tuple(slice(n) for n in line(index).shape)]
    floats = given.dtype.is_floating_point  # negating floats reverses the order but still sorts nan last
    ranked = given.detach() if largest or not floats else -given.detach()
    order = ops.sort(ranked, dim=k, descending=not (largest or floats))[1]  # the last write to a position wins
    sent, places = gather(given.detach(), k, order), gather(at, k, order)
    found = scattered(line(x.detach()), k, places, sent)
    own = line(x.detach()) if include_self else found
    found = (ops.maximum if largest else ops.minimum)(found, own) if include_self else found
    if not (x.requires_grad or src.requires_grad):
        return shaped(found, x.shape)
    touched = scattered(found.new_zeros(found.shape), k, at, value=1)
    mine = where(touched == 0, found.new_ones(found.shape), (own == found).to(x.dtype) if include_self else 0.0)
    wins = (given.detach() == gather(found, k, at)).to(x.dtype)
    count = scatter_add(mine, k, at, wins)
    theirs = wins / gather(count, k, at) * _slope_alone(given)
    return shaped(scatter_add(found + mine / count * _slope_alone(line(x)), k, at, theirs), x.shape)


def _slope_alone(x: Tensor) -> Any:
    """Return zeros with the gradient of `x`, without a gradient where `x` is not finite."""
    return where(ops.isfinite(x), x - x.detach(), 0.0)


@register(method=True)
def index_put(input: Tensor, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Tensor:
    """Return a copy with ``input[indices]`` set to `values`; if `accumulate`, add them, also at repeated indices.

    >>> import minigrad as mg
    >>> mg.index_put(mg.zeros(3), [mg.tensor([0, 2, 2])], mg.tensor([1.0, 2.0, 3.0]), accumulate=True).tolist()
    [1.0, 0.0, 5.0]
    """
    return _index_put(tensor_of(input, "index_put").clone(), indices, values, accumulate)


@register_method("index_put_")
def _index_put(self: Tensor, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Tensor:
    """Set ``self[indices]`` to `values`; if `accumulate`, add them, also at repeated indices."""
    key = tuple(slice(None) if part is None else part for part in indices)
    if not accumulate:
        put(self, key, values)
        return self
    size = numel(self.shape)
    places = get(arange(size, device=self.device).reshape(self.shape), key)  # flat indices
    added = values.expand(*places.shape) if isinstance(values, Tensor) else self.new_full(places.shape, values)
    sums = scatter_add(self.new_zeros(size), 0, flat(places), added.reshape(-1))
    return self.add_(sums.reshape(self.shape))


@register(method=True)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Return a copy with ``input.select(dim, index)`` replaced by `src`."""
    out = tensor_of(input, "select_scatter").clone()
    select(out, dim, index).copy_(src)
    return out


@register(method=True)
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Return a copy with the slice ``start:end:step`` along `dim` replaced by `src`."""
    out = tensor_of(input, "slice_scatter").clone()
    k = dim_of(dim, out.ndim, "slice_scatter")
    get(out, (*(slice(None),) * k, slice(start, end, step))).copy_(src)
    return out


@register(method=True)
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a copy with the `diagonal` replaced by `src`."""
    out = tensor_of(input, "diagonal_scatter").clone()
    diagonal(out, offset, dim1, dim2).copy_(src)
    return out
