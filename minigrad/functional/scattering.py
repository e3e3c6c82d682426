"""Scattering: PyTorch's ``scatter``, ``scatter_reduce``, ``index_put`` and out-of-place writes into views.

Shape requirements and errors are those of `scatter`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad import ops
from minigrad.core.errors import ArgumentError
from minigrad.core.registry import register, register_method
from minigrad.core.shapes import normalize_dim, numel
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import at_least_1d, check_option, check_tensor, flatten_all, reshape_to
from minigrad.functional.creation import arange
from minigrad.functional.elementwise import where
from minigrad.functional.indexing import gather, scatter_add, scatter_values
from minigrad.functional.subscript import getitem, setitem
from minigrad.functional.views import diagonal, select


@register(method=True, in_place=True, saves_operand=False)
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """Return a copy with `src` or `value` written at `index` along `dim`: ``out[index[i][j]][j] = src[i][j]``.

    `index` has as many dimensions as `input` and `src`. It must not be larger than `src` in any dimension, nor than
    `input` in any dimension but `dim`. Elements of `src` outside the shape of `index` are ignored. `reduce` "add" or
    "multiply" combines `src` with the existing elements, as in `scatter_reduce`. Raises ShapeError for other shapes,
    DTypeError if the dtypes differ, and ArgumentError for any other `reduce`, or if both `src` and `value` are given.
    """
    if (src is None) is (value is None):
        raise ArgumentError("scatter: expected exactly one of src and value.")
    if reduce is not None:
        check_option(reduce, ("add", "multiply"), "scatter", "reduce")
        source = src if isinstance(src, Tensor) else input.new_full(index.shape, value if src is None else src)
        return scatter_reduce(input, dim, index, source, "sum" if reduce == "add" else "prod")
    return scatter_values(input, dim, index, src, value)


@register(method=True, in_place=True)
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return a copy in which all elements of `src` with the same `index` along `dim` are reduced into that position.

    `reduce` is "sum", "mean", "amax", "amin" or "prod". The elements of `input` are included unless `include_self` is
    False; positions without an index keep their value. The gradient of "amax" and "amin" is divided evenly between
    ties; the gradient of "prod" is correct at zeros too. Shapes are as in `scatter`. Raises ArgumentError for any other
    `reduce`.

    >>> import minigrad as mg
    >>> groups, x = mg.tensor([0, 1, 0, 1]), mg.tensor([1.0, 2.0, 3.0, 6.0])
    >>> mg.zeros(3).scatter_reduce(0, groups, x, "mean", include_self=False).tolist()
    [2.0, 4.0, 0.0]
    """
    check_option(reduce, ("sum", "mean", "amax", "amin", "prod"), "scatter_reduce", "reduce")
    x = check_tensor(input, "scatter_reduce")
    if reduce == "prod":
        return _scatter_prod(x, dim, index, src, include_self)
    if reduce in ("sum", "mean"):
        initial = x if include_self else scatter_values(x, dim, index, value=0)
        total = scatter_add(initial, dim, index, src)
        if reduce == "sum":
            return total
        ones = x.new_ones(x.shape) if include_self else scatter_values(x.new_ones(x.shape), dim, index, value=0)
        count = scatter_add(ones, dim, index, src.new_ones(src.shape))
        return total / count if x.dtype.is_floating_point else total // count
    return _scatter_extreme(x, dim, index, src, reduce == "amax", include_self)


def _scatter_prod(x: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool) -> Tensor:
    """Multiply elements with the same index in log2(n) steps, by a segmented parallel scan over the sorted indices.

    Step s multiplies each element by the element 2**s positions before it, unless a segment starts between them; the
    last product of each segment is the result. There is no division, so the gradient of products with zeros is correct.
    """
    k = normalize_dim(dim, max(x.ndim, 1), "scatter_reduce")
    positions, source = at_least_1d(index), at_least_1d(src)[tuple(slice(n) for n in at_least_1d(index).shape)]
    sorted_positions, order = ops.sort(positions, dim=k, descending=False)
    running, is_segment_start = (
        gather(source, k, order),
        sorted_positions != ops.shift(sorted_positions, dim=k, by=1, fill=-1),
    )
    step = 1
    while step < sorted_positions.shape[k]:
        running = running * where(is_segment_start, True, ops.shift(running, dim=k, by=step, fill=1))
        is_segment_start = ops.logical_or(is_segment_start, ops.shift(is_segment_start, dim=k, by=step, fill=1))
        step *= 2
    products = scatter_values(
        at_least_1d(x) if not include_self else at_least_1d(x).new_ones(at_least_1d(x).shape),
        k,
        sorted_positions,
        running,
    )
    return reshape_to(at_least_1d(x) * products if include_self else products, x.shape)


def _scatter_extreme(x: Tensor, dim: int, index: Tensor, src: Tensor, largest: bool, include_self: bool) -> Tensor:
    """Compute `scatter_reduce` for "amax" or "amin". The gradient is divided evenly between ties."""
    k = normalize_dim(dim, max(x.ndim, 1), "scatter_reduce")
    positions, source = at_least_1d(index), at_least_1d(src)[tuple(slice(n) for n in at_least_1d(index).shape)]
    is_float = source.dtype.is_floating_point  # negating floats reverses the order but still sorts nan last
    sort_keys = source.detach() if largest or not is_float else -source.detach()
    order = ops.sort(sort_keys, dim=k, descending=not (largest or is_float))[1]  # the last write to a position wins
    sorted_source, sorted_positions = gather(source.detach(), k, order), gather(positions, k, order)
    extreme = scatter_values(at_least_1d(x.detach()), k, sorted_positions, sorted_source)
    self_values = at_least_1d(x.detach()) if include_self else extreme
    extreme = (ops.maximum if largest else ops.minimum)(extreme, self_values) if include_self else extreme
    if not (x.requires_grad or src.requires_grad):
        return reshape_to(extreme, x.shape)
    is_written = scatter_values(extreme.new_zeros(extreme.shape), k, positions, value=1)
    self_ties = where(
        is_written == 0, extreme.new_ones(extreme.shape), (self_values == extreme).to(x.dtype) if include_self else 0.0
    )
    source_ties = (source.detach() == gather(extreme, k, positions)).to(x.dtype)
    count = scatter_add(self_ties, k, positions, source_ties)
    source_grad_part = source_ties / gather(count, k, positions) * _zero_with_grad(source)
    return reshape_to(
        scatter_add(extreme + self_ties / count * _zero_with_grad(at_least_1d(x)), k, positions, source_grad_part),
        x.shape,
    )


def _zero_with_grad(x: Tensor) -> Any:
    """Return zeros through which the gradient flows to the finite elements of `x`."""
    return where(ops.isfinite(x), x - x.detach(), 0.0)


@register(method=True)
def index_put(input: Tensor, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Tensor:
    """Return a copy with ``input[indices]`` set to `values`; if `accumulate`, add them, also at repeated indices.

    >>> import minigrad as mg
    >>> mg.index_put(mg.zeros(3), [mg.tensor([0, 2, 2])], mg.tensor([1.0, 2.0, 3.0]), accumulate=True).tolist()
    [1.0, 0.0, 5.0]
    """
    return _index_put(check_tensor(input, "index_put").clone(), indices, values, accumulate)


@register_method("index_put_")
def _index_put(self: Tensor, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Tensor:
    """Set ``self[indices]`` to `values`; if `accumulate`, add them, also at repeated indices."""
    key = tuple(slice(None) if part is None else part for part in indices)
    if not accumulate:
        setitem(self, key, values)
        return self
    size = numel(self.shape)
    flat_indices = getitem(arange(size, device=self.device).reshape(self.shape), key)  # flat indices
    expanded_values = (
        values.expand(*flat_indices.shape) if isinstance(values, Tensor) else self.new_full(flat_indices.shape, values)
    )
    sums = scatter_add(self.new_zeros(size), 0, flatten_all(flat_indices), expanded_values.reshape(-1))
    return self.add_(sums.reshape(self.shape))


@register(method=True)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Return a copy with ``input.select(dim, index)`` replaced by `src`."""
    out = check_tensor(input, "select_scatter").clone()
    select(out, dim, index).copy_(src)
    return out


@register(method=True)
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Return a copy with the slice ``start:end:step`` along `dim` replaced by `src`."""
    out = check_tensor(input, "slice_scatter").clone()
    k = normalize_dim(dim, out.ndim, "slice_scatter")
    getitem(out, (*(slice(None),) * k, slice(start, end, step))).copy_(src)
    return out


@register(method=True)
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a copy with the `diagonal` replaced by `src`."""
    out = check_tensor(input, "diagonal_scatter").clone()
    diagonal(out, offset, dim1, dim2).copy_(src)
    return out
