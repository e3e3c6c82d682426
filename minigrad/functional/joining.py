"""Concatenation and stacking of tensors, with PyTorch's signatures; also Cartesian products and combinations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import cast

from minigrad import ops
from minigrad.core.dtypes import int64, result_type
from minigrad.core.errors import ShapeError
from minigrad.core.registry import register
from minigrad.core.shapes import normalize_dim
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import at_least_1d, check_tensor, flatten_all, reshape_to
from minigrad.functional.creation import tensor
from minigrad.functional.shape import atleast_2d
from minigrad.functional.views import meshgrid, unsqueeze


@register
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Concatenate `tensors` along `dim`, in their common dtype; all other sizes must match.

    Tensors of shape (0,) are ignored. Raises ShapeError for sizes that differ, 0-d tensors and an empty list.

    >>> import minigrad as mg
    >>> mg.cat([mg.tensor([1, 2]), mg.tensor([3.0])]).tolist()
    [1.0, 2.0, 3.0]
    """
    tensor_list = [check_tensor(x, "cat", "one of tensors") for x in tensors]
    if not tensor_list:
        raise ShapeError("cat: expected a non-empty list of tensors.")
    if any(x.ndim == 0 for x in tensor_list):
        raise ShapeError("cat: zero-dimensional tensors cannot be concatenated.\n  Write stack([a, b]).")
    dtype = result_type([x.dtype for x in tensor_list])
    reference_shape = next((x.shape for x in tensor_list if x.shape != (0,)), (0,))
    k = normalize_dim(dim, len(reference_shape), "cat")
    empty_shape = (*reference_shape[:k], 0, *reference_shape[k + 1 :])
    operands = [
        x if x.shape != (0,) or x.shape == empty_shape else ops.reshape(x, shape=empty_shape)
        for x in (x.to(dtype) for x in tensor_list)
    ]
    other_sizes = [(*x.shape[:k], *x.shape[k + 1 :]) for x in operands]
    if any(
        x.ndim != operands[0].ndim or sizes != other_sizes[0] for x, sizes in zip(operands, other_sizes, strict=True)
    ):
        shapes = ", ".join(str(x.shape) for x in tensor_list)
        raise ShapeError(f"cat: sizes of tensors must match except in dimension {k}, but got shapes {shapes}.")
    return cast(Tensor, ops.cat(*operands, dim=k, sizes=tuple([x.shape[k] for x in operands])))


@register
def concat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Alias of `cat`."""
    return cat(tensors, dim)


@register
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Concatenate `tensors`, all of one shape, along a new dimension `dim`, in their common dtype."""
    shapes = sorted({check_tensor(x, "stack", "one of tensors").shape for x in tensors})
    if len(shapes) != 1:
        raise ShapeError(
            f"stack: expected tensors of equal size, but got {' and '.join(map(str, shapes)) or 'an empty list'}."
        )
    return cat([unsqueeze(x, dim) for x in tensors], normalize_dim(dim, len(shapes[0]) + 1, "stack"))


@register
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Stack tensors horizontally: concatenate along dimension 1, or along 0 if they are 1-d or 0-d."""
    rows = [at_least_1d(check_tensor(x, "hstack", "one of tensors")) for x in tensors]
    return cat(rows, 0 if rows and rows[0].ndim == 1 else 1)


@register
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Stack tensors vertically: concatenate along dimension 0, with 1-d and 0-d tensors as rows."""
    tensor_list = [check_tensor(x, "vstack", "one of tensors") for x in tensors]
    return cat([x if x.ndim > 1 else flatten_all(x)[None] for x in tensor_list])


@register
def concatenate(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Alias of `cat`."""
    return cat(tensors, dim)


@register
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Concatenate tensors along dimension 1, with 1-d tensors (n,) as columns (n, 1)."""
    return cat([x if x.ndim > 1 else reshape_to(x, (x.shape[0] if x.ndim else 1, 1)) for x in tensors], 1)


@register
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Concatenate tensors along the third dimension, with (n,) as (1, n, 1) and (m, n) as (m, n, 1)."""
    return cat([x if x.ndim > 2 else atleast_2d(x)[..., None] for x in tensors], 2)


@register
def row_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Alias of `vstack`."""
    return vstack(tensors)


@register
def block_diag(*tensors: Tensor) -> Tensor:
    """Create a block-diagonal matrix from `tensors`, with 1-d tensors as rows and 0-d tensors as (1, 1) matrices.

    >>> import minigrad as mg
    >>> mg.block_diag(mg.tensor([[1, 2]]), mg.tensor(3)).tolist()
    [[1, 2, 0], [0, 0, 3]]
    """
    if any(check_tensor(x, "block_diag").ndim > 2 for x in tensors):
        raise ShapeError("block_diag: input tensors must have 2 or fewer dimensions.")
    blocks = [reshape_to(x, (*(1,) * (2 - x.ndim), *x.shape)) for x in tensors]
    column_offsets = list(itertools.accumulate([x.shape[1] for x in blocks], initial=0))
    rows = []
    for x, start, end in zip(blocks, column_offsets, column_offsets[1:], strict=False):
        before, after = (x.new_zeros((x.shape[0], n)) for n in (start, column_offsets[-1] - end))
        rows.append(cat([before, x, after], 1))
    return cat(rows, 0)


@register
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return the Cartesian product of 1-d `tensors`, one combination per row; a single tensor is returned as is."""
    if any(check_tensor(x, "cartesian_prod").ndim != 1 for x in tensors):
        raise ShapeError("cartesian_prod: expected 1-d tensors.")
    return tensors[0] if len(tensors) == 1 else stack([flatten_all(x) for x in meshgrid(*tensors, indexing="ij")], 1)


@register
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return all combinations of `r` elements of a 1-d `input`, in order, one per row, optionally with replacement."""
    if check_tensor(input, "combinations").ndim != 1 or r < 0:
        raise ShapeError(f"combinations: expected a 1-d input and a non-negative r, but got {input.shape} and r={r}.")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    indices = list(choose(range(input.shape[0]), r))
    return input[tensor(indices, dtype=int64, device=input.device).reshape(len(indices), r)] if r else input[:0]
