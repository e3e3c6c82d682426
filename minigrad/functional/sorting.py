"""Sorting along one dimension, with PyTorch's signatures. Nan sorts as the largest value.

A negative `dim` counts from the end; a `dim` out of range raises ShapeError. Every sort is stable, so indices are
deterministic.
"""

from __future__ import annotations

from typing import Any, cast, overload

from minigrad import ops
from minigrad.core.dtypes import int32, int64
from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.core.registry import register
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import (
    at_least_1d,
    check_nonempty_dim,
    check_number,
    check_single_dim,
    check_tensor,
    flatten_all,
    reshape_to,
    split_tied_gradient,
)
from minigrad.functional.elementwise import where
from minigrad.functional.indexing import gather
from minigrad.functional.reduce import sum
from minigrad.functional.return_types import SortResult


@register(method=True)
def sort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> SortResult:
    """Sort along `dim`; return the values and their indices. Sorting is always stable.

    >>> import minigrad as mg
    >>> values, indices = mg.sort(mg.tensor([3.0, 1.0, 2.0]))
    >>> values.tolist(), indices.tolist()
    ([1.0, 2.0, 3.0], [1, 2, 0])
    """
    k = check_single_dim(dim, check_tensor(input, "sort"), "sort")
    return _restore_scalar(input, ops.sort(at_least_1d(input), dim=k, descending=bool(descending)))


@register(method=True)
def argsort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    """Return the indices that sort the tensor along `dim`."""
    return sort(check_tensor(input, "argsort").detach(), dim, descending, stable=stable).indices


@register(method=True)
def msort(input: Tensor) -> Tensor:
    """Sort along the first dimension; return the values."""
    return sort(input, 0).values


@register(method=True)
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> SortResult:
    """Return the `k` largest (or smallest) elements along `dim` and their indices, always sorted.

    Raises ShapeError if there are fewer than `k`.
    """
    axis = check_single_dim(dim, check_tensor(input, "topk"), "topk")
    check_number(k, "topk", "k", integer=True)
    x = at_least_1d(input)
    if not (0 if input.ndim else 1) <= k <= x.shape[axis]:
        raise ShapeError(
            f"topk: selected index k={k} out of range for dimension {axis} of shape {input.shape}, with "
            f"{x.shape[axis]} elements."
        )
    return _restore_scalar(input, ops.topk(x, k=int(k), dim=axis, largest=bool(largest)))


@register(method=True)
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> SortResult:
    """Return the `k`-th smallest element along `dim`, counting from 1, and its index.

    Raises ShapeError if `k` is out of range.
    """
    axis = check_single_dim(dim, check_tensor(input, "kthvalue"), "kthvalue")
    check_number(k, "kthvalue", "k", integer=True)
    x = at_least_1d(input)
    if not 1 <= k <= x.shape[axis]:
        raise ShapeError(
            f"kthvalue: selected number k={k} out of range for dimension {axis} of shape {input.shape}; expected 1 to "
            f"{x.shape[axis]}."
        )
    position = slice(k - 1, k) if keepdim and input.ndim else k - 1
    values, indices = ops.sort(x, dim=axis)
    return SortResult(*[y[(*(slice(None),) * axis, position)] for y in (values, indices)])


@overload
def median(input: Tensor, dim: None = None) -> Tensor: ...


@overload
def median(input: Tensor, dim: int, keepdim: bool = False) -> SortResult: ...


@register(method=True)
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median of all elements, or along `dim` a `SortResult` of medians and indices. Propagates nan.

    Of two middle elements, the lower is the median. Along `dim`, the gradient flows to the selected element, which is
    the first of equal ones; without `dim`, it is divided evenly between ties. Raises ShapeError for an empty dimension,
    where PyTorch returns nan.
    """
    x = check_tensor(input, "median")
    if dim is None and keepdim:
        raise ArgumentError("median: keepdim requires a dim.")
    x, axis = (at_least_1d(x), check_single_dim(dim, x, "median")) if dim is not None else (flatten_all(x), 0)
    size = x.shape[axis]
    check_nonempty_dim(x, axis, "median")
    nan_count = ops.ne(x, x).sum(axis, keepdim=True)  # nans sort last
    position = ops.where(nan_count > 0, size - nan_count, (size - 1) // 2)
    result = [ops.gather(y, position, dim=axis) for y in ops.sort(x, dim=axis)]
    if not (keepdim and input.ndim):
        result = [y[(*(slice(None),) * axis, 0)] for y in result]
    return split_tied_gradient(x, result[0]) if dim is None else SortResult(*result)


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
    """Return the int64 indices, 0 to n, at which to insert `input` (…, m) into ascending `sorted_sequence` (…, n).

    Values are inserted before equal elements, or after them if `right`; nan goes last, as in `sort`. For an unsorted
    sequence, pass the indices of its `argsort` as `sorter`. All pairs are compared. Raises ShapeError if the leading
    dimensions differ or the sorter has another shape.

    >>> import minigrad as mg
    >>> mg.searchsorted(mg.tensor([1.0, 3.0, 5.0]), mg.tensor([0.0, 3.0, 9.0])).tolist()
    [0, 1, 3]
    """
    if side not in (None, "left", "right") or (side == "left" and right):
        raise ArgumentError(
            f'searchsorted: side must be "left" or "right" and agree with right, but got {side!r} and right={right}.'
        )
    rows = check_tensor(sorted_sequence, "searchsorted", "sorted_sequence").detach()
    if sorter is not None:
        if check_tensor(sorter, "searchsorted", "sorter").shape != rows.shape:
            raise ShapeError(
                f"searchsorted: sorter and sorted_sequence must have the same shape, but got {sorter.shape} and "
                f"{rows.shape}."
            )
        rows = gather(rows, -1, sorter)
    x = input.detach() if isinstance(input, Tensor) else rows.new_tensor(input)
    if rows.ndim > 1 and rows.shape[:-1] != x.shape[:-1]:
        raise ShapeError(
            f"searchsorted: sorted_sequence must be 1-d or match input in all but the last dimension, but got "
            f"{rows.shape} and {x.shape}."
        )
    sequence = rows if rows.ndim == 1 else rows[..., None, :]
    precedes = sequence <= x[..., None] if right or side == "right" else sequence < x[..., None]
    positions = where(ops.isnan(x), rows.shape[-1], sum(precedes, -1))
    return cast(Tensor, positions.to(int32 if out_int32 else int64))


@register
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Return the index of the bucket between ascending `boundaries` (n,) for each element; see `searchsorted`."""
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


# --- helpers ---


def _restore_scalar(input: Tensor, results: Any) -> SortResult:
    return SortResult(*results) if input.ndim else SortResult(*[reshape_to(y, ()) for y in results])
