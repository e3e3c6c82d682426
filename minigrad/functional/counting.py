"""Which numbers there are, and how often: PyTorch's functions, made of sorting and adding up. They have no gradient."""

from __future__ import annotations

from typing import Any, cast

from minigrad._tensor import Tensor
from minigrad.creation import ones_like
from minigrad.dtypes import int64
from minigrad.errors import DTypeError, ShapeError
from minigrad.functional.checks import shaped, tensor_of
from minigrad.functional.indexing import scatter, scatter_add
from minigrad.functional.reduce import any, cumsum
from minigrad.functional.shape import cat
from minigrad.functional.sorting import sort
from minigrad.layout import numel
from minigrad.op import OPS

__all__ = ["METHODS", "bincount", "isin", "unique"]


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each int from 0 to the largest stands in `input`, (n,): int64, of at least `minlength` numbers.

    With `weights`, (n,), their sums instead. Raises DTypeError for fractions, and ShapeError for another shape, or an
    int below 0.

    >>> import minigrad as mg
    >>> mg.bincount(mg.tensor([2, 0, 2])).tolist()
    [1, 0, 2]
    """
    if tensor_of(input, "bincount").dtype.kind != 1:
        raise DTypeError(f"bincount: {input.dtype.name} is not a type of whole numbers, which count as places.")
    if input.ndim != 1 or (weights is not None and weights.shape != input.shape):
        given = "" if weights is None else f", weights {weights.shape}"
        raise ShapeError(f"bincount: input has shape {input.shape}{given}: both are rows of one length.")
    if input.shape[0] and int(input.min()) < 0:
        raise ShapeError(f"bincount: {int(input.min())} is below 0, and counts are listed from 0 on.")
    size = max(int(minlength), int(input.max()) + 1 if input.shape[0] else 0)
    each = ones_like(input, dtype=int64) if weights is None else weights.detach()
    return scatter_add(each.new_zeros(size), 0, input.to(int64), each)


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The numbers of `input`, each once and in order, asked or not; nans are not equal, so each is one of its own.

    With `return_inverse` also where each number of `input` stands there, and with `return_counts` how often it came: a
    tuple. Raises DTypeError for a `dim`: whole rows are not compared here.

    >>> import minigrad as mg
    >>> mg.unique(mg.tensor([2.0, 5.0, 2.0]), return_counts=True)
    (tensor([2., 5.]), tensor([2, 1]))
    """
    if dim is not None:
        raise DTypeError(f"unique: dim={dim}, but only single numbers are compared here.\n  Leave dim out.")
    values, order = sort(shaped(tensor_of(input, "unique").detach(), (numel(input.shape),)))
    first = cat([ones_like(values[:1]) != 0, values[1:] != values[:-1]])
    group = cumsum(first, 0) - 1
    found = [values[first]]
    if return_inverse:
        found.append(shaped(scatter(group, 0, order, group), input.shape))
    if return_counts:
        found.append(bincount(group))
    return tuple(found) if len(found) > 1 else found[0]


def isin(elements: Tensor, test_elements: Tensor, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Where the numbers of `elements` are among `test_elements`, or with `invert` are not. All pairs are compared."""
    row = shaped(tensor_of(test_elements, "isin"), (numel(test_elements.shape),))
    found = any(tensor_of(elements, "isin")[..., None] == row, -1)
    return cast(Tensor, OPS["logical_not"](found) if invert else found)


METHODS: dict[str, Any] = {"bincount": bincount, "unique": unique}
