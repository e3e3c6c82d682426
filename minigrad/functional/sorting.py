"""Sorting along one dimension, with PyTorch's signatures. Nan counts as the largest number.

`dim` counts from either end; ShapeError for one that is not there. Every sort is stable: of equal numbers the one that
stands first comes first, so that indices are always the same.
"""

from __future__ import annotations

from typing import Any, cast, overload

from minigrad import ops
from minigrad.core.dtypes import int32, int64
from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.core.registry import register
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_number, check_some, flat, line, one_dim_of, shaped, tensor_of, tied
from minigrad.functional.elementwise import where
from minigrad.functional.indexing import gather
from minigrad.functional.reduce import sum
from minigrad.functional.return_types import Sorted


@register(method=True)
def sort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Sorted:
    """The numbers in order along `dim`, and where they stood. It is stable, asked or not.

    >>> import minigrad as mg
    >>> values, indices = mg.sort(mg.tensor([3.0, 1.0, 2.0]))
    >>> values.tolist(), indices.tolist()
    ([1.0, 2.0, 3.0], [1, 2, 0])
    """
    k = one_dim_of(dim, tensor_of(input, "sort"), "sort")
    return _shaped_as(input, ops.sort(line(input), dim=k, descending=bool(descending)))


@register(method=True)
def argsort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    """The indices of `sort`: where the numbers stood that come first, second, … in order along `dim`."""
    return sort(tensor_of(input, "argsort").detach(), dim, descending, stable=stable).indices


@register(method=True)
def msort(input: Tensor) -> Tensor:
    """The numbers in order along the first dimension."""
    return sort(input, 0).values


@register(method=True)
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Sorted:
    """The `k` largest numbers along `dim`, or smallest, and where they stood; always in order, the most extreme first.

    Raises ShapeError where there are fewer than `k`.
    """
    along = one_dim_of(dim, tensor_of(input, "topk"), "topk")
    check_number(k, "topk", "k", whole=True)
    x = line(input)
    if not (0 if input.ndim else 1) <= k <= x.shape[along]:
        raise ShapeError(f"topk: k={k}, but dimension {along} of shape {input.shape} has {x.shape[along]} numbers.")
    return _shaped_as(input, ops.topk(x, k=int(k), dim=along, largest=bool(largest)))


@register(method=True)
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Sorted:
    """The `k`-th smallest number along `dim`, from 1 on, and where it stood. Raises ShapeError if there is none."""
    along = one_dim_of(dim, tensor_of(input, "kthvalue"), "kthvalue")
    check_number(k, "kthvalue", "k", whole=True)
    x = line(input)
    if not 1 <= k <= x.shape[along]:
        raise ShapeError(
            f"kthvalue: k={k} is not from 1 to {x.shape[along]}, the size of dimension {along} of {input.shape}."
        )
    at = slice(k - 1, k) if keepdim and input.ndim else k - 1
    values, indices = ops.sort(x, dim=along)
    return Sorted(*[y[(*(slice(None),) * along, at)] for y in (values, indices)])


@overload
def median(input: Tensor, dim: None = None) -> Tensor: ...


@overload
def median(input: Tensor, dim: int, keepdim: bool = False) -> Sorted: ...


@register(method=True)
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle number of all, of two the smaller; along `dim`, a `Sorted`, with where it stood. Nan if there is one.

    Along `dim` its gradient goes to the number that was chosen, the first of equal ones; else all that are equal to it
    share it. Raises ShapeError where there is nothing to choose from, for which PyTorch has nan.
    """
    x = tensor_of(input, "median")
    if dim is None and keepdim:
        raise ArgumentError("median: keepdim goes with a dim.")
    x, along = (line(x), one_dim_of(dim, x, "median")) if dim is not None else (flat(x), 0)
    size = x.shape[along]
    check_some(x, along, "median")
    lost = ops.ne(x, x).sum(along, keepdim=True)  # nans are not equal to themselves; they are sorted last
    place = ops.where(lost > 0, size - lost, (size - 1) // 2)
    found = [ops.gather(y, place, dim=along) for y in ops.sort(x, dim=along)]
    if not (keepdim and input.ndim):
        found = [y[(*(slice(None),) * along, 0)] for y in found]
    return tied(x, found[0]) if dim is None else Sorted(*found)


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


# --- what they share ---


def _shaped_as(input: Tensor, found: Any) -> Sorted:
    return Sorted(*found) if input.ndim else Sorted(*[shaped(y, ()) for y in found])
