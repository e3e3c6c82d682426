"""Counts and distinct elements, with PyTorch's signatures, computed by sorting and scatter_add, without gradients."""

from __future__ import annotations

from typing import Any, cast

from minigrad.core.dtypes import float64, int64
from minigrad.core.errors import DTypeError, ShapeError
from minigrad.core.op import OPS
from minigrad.core.registry import register
from minigrad.core.shapes import numel
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import at_least_1d, check_single_dim, check_tensor, flatten_all, reshape_to
from minigrad.functional.creation import arange, ones_like
from minigrad.functional.indexing import scatter_add
from minigrad.functional.joining import cat
from minigrad.functional.reduce import any, cumsum
from minigrad.functional.scattering import scatter
from minigrad.functional.sorting import argsort, sort


@register(method=True)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Count how often each int from 0 to the maximum occurs in `input`, (n,). Returns `minlength` or more int64 values.

    With `weights`, (n,), sum the weights of each int instead, in their dtype if it is floating point, else in float64.
    Raises DTypeError for floating-point `input`, and ShapeError for another shape or a negative int.

    >>> import minigrad as mg
    >>> mg.bincount(mg.tensor([2, 0, 2])).tolist()
    [1, 0, 2]
    """
    if check_tensor(input, "bincount").dtype.kind != 1:
        raise DTypeError(f"bincount: only supports 1-d non-negative integral inputs, but got {input.dtype.name}.")
    if input.ndim != 1 or (weights is not None and weights.shape != input.shape):
        weights_note = "" if weights is None else f" and weights {weights.shape}"
        raise ShapeError(
            f"bincount: expected 1-d input and weights of the same length, but got input {input.shape}{weights_note}."
        )
    if input.shape[0] and int(input.min()) < 0:
        raise ShapeError(f"bincount: only supports 1-d non-negative integral inputs, but got {int(input.min())}.")
    count = max(int(minlength), int(input.max()) + 1 if input.shape[0] else 0)
    increments = ones_like(input, dtype=int64) if weights is None else weights.detach()
    increments = increments if weights is None or increments.dtype.is_floating_point else increments.to(float64)
    return scatter_add(increments.new_zeros(count), 0, input.to(int64), increments)


@register(method=True)
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements of `input` in ascending order, or along `dim` its distinct slices.

    Slices are ordered lexicographically. NaNs are not equal: each is distinct. `sorted` has no effect. With
    `return_inverse`, also return the index in the result of each element, or of each slice, (n,); with `return_counts`,
    also how often each occurs. Several results are returned as a tuple. Raises ShapeError for a `dim` out of range, or
    slices without elements.

    >>> import minigrad as mg
    >>> mg.unique(mg.tensor([2.0, 5.0, 2.0]), return_counts=True)
    (tensor([2., 5.]), tensor([2, 1]))
    >>> mg.unique(mg.tensor([[2, 1], [0, 3], [2, 1]]), dim=0).tolist()
    [[0, 3], [2, 1]]
    """
    if dim is None:
        values, order = sort(flatten_all(check_tensor(input, "unique").detach()))
        return _drop_duplicates(input, None, values, order, return_inverse, return_counts)
    rows = _slices_as_rows(input, dim, "unique")
    order = arange(rows.shape[0], device=rows.device)
    for column in range(rows.shape[1] - 1, -1, -1):  # stable sorts from the last to the first column
        order = order[argsort(rows[:, column][order])]
    return _drop_duplicates(input, dim, rows[order], order, return_inverse, return_counts)


@register(method=True)
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the elements of `input` in row-major order, or its slices along `dim`, without consecutive duplicates.

    The other arguments are those of `unique`.

    >>> import minigrad as mg
    >>> mg.unique_consecutive(mg.tensor([1, 1, 2, 1])).tolist()
    [1, 2, 1]
    """
    flat_input = flatten_all(check_tensor(input, "unique_consecutive").detach()) if dim is None else None
    rows = _slices_as_rows(input, dim, "unique_consecutive") if flat_input is None else flat_input
    return _drop_duplicates(input, dim, rows, arange(rows.shape[0], device=rows.device), return_inverse, return_counts)


def _slices_as_rows(input: Tensor, dim: Any, op: str) -> Tensor:
    """Return the slices of `input` along `dim` as rows, (n, m)."""
    k = check_single_dim(dim, check_tensor(input, op), op)
    x = at_least_1d(input.detach()).movedim(k, 0)
    if 0 in x.shape[1:]:
        raise ShapeError(f"{op}: the slices of shape {input.shape} along dim={dim} have no elements to compare.")
    return reshape_to(x, (x.shape[0], numel(x.shape[1:])))


def _drop_duplicates(input: Tensor, dim: int | None, rows: Tensor, order: Tensor, inverse: bool, counts: bool) -> Any:
    """Drop consecutive duplicates from `rows`, the elements or slices of `input` sorted by `order`."""
    differs = rows[1:] != rows[:-1]
    is_first = cat([ones_like(order[:1]) != 0, any(differs, 1) if differs.ndim > 1 else differs])
    group_index = cumsum(is_first, 0) - 1
    distinct = rows[is_first]
    if dim is not None:
        sizes = at_least_1d(input).movedim(dim, 0).shape
        distinct = reshape_to(distinct, (distinct.shape[0], *sizes[1:])).movedim(0, dim)
    results = [distinct]
    if inverse:
        inverse_index = scatter(group_index, 0, order, group_index)
        results.append(reshape_to(inverse_index, input.shape) if dim is None else inverse_index)
    if counts:
        results.append(bincount(group_index))
    return tuple(results) if len(results) > 1 else results[0]


@register
def isin(elements: Tensor, test_elements: Tensor, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Test whether each of `elements` is in `test_elements`, or, if `invert`, is not. Compares all pairs."""
    candidates = reshape_to(check_tensor(test_elements, "isin"), (numel(test_elements.shape),))
    result = any(check_tensor(elements, "isin")[..., None] == candidates, -1)
    return cast(Tensor, OPS["logical_not"](result) if invert else result)
