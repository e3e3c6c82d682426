"""Diagonals and triangles of matrices, with PyTorch's signatures: extract, construct and overwrite them."""

from __future__ import annotations

from typing import cast

from minigrad import ops
from minigrad.core.dtypes import int64
from minigrad.core.errors import ShapeError
from minigrad.core.op import OPS
from minigrad.core.registry import register, register_method
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import dim_of_some, flat, tensor_of, two_dims_of
from minigrad.functional.creation import arange, zeros_like


@register(method=True)
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """A copy of the last two dimensions' matrices with 0 above the diagonal that is `diagonal` above the main one."""
    return _triangle("tril", input, diagonal)


@register(method=True)
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """A copy of the last two dimensions' matrices with 0 below the diagonal that is `diagonal` above the main one."""
    return _triangle("triu", input, diagonal)


@register(method=True)
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """Of a line, the matrix with it on the diagonal, `diagonal` above the main one; of a matrix, that diagonal, copied.

    Raises ShapeError for other dimensions.
    """
    x = tensor_of(input, "diag")
    if x.ndim == 1:
        return diag_embed(x, diagonal)
    if x.ndim != 2:
        raise ShapeError(f"diag: it takes a line or a matrix, not shape {x.shape}.\n  Write diagonal, or diag_embed.")
    return cast(Tensor, ops.contiguous(ops.diagonal(x, offset=diagonal, dim1=0, dim2=1)))


@register(method=True)
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Square matrices, in dimensions `dim1` and `dim2` of the result, with the last dimension on their diagonal.

    `offset` is how far above the main one that is; all else is 0.
    """
    x, size = tensor_of(input, "diag_embed"), input.shape[dim_of_some(input, -1, "diag_embed")] + abs(offset)
    first, second = two_dims_of(dim1, dim2, x.ndim + 1, "diag_embed")
    rest = iter(x.shape)
    shape = tuple([size if k in (first, second) else next(rest) for k in range(x.ndim + 1)])
    return cast(Tensor, ops.diagonal_backward(x, shape=shape, offset=offset, dim1=first, dim2=second))


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


@register(method=True)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all numbers of `input` along its diagonal, or `offset` above it."""
    return diag(flat(tensor_of(input, "diagflat")), offset)


# --- what they share ---


def _triangle(name: str, x: Tensor, diagonal: int) -> Tensor:
    if tensor_of(x, name).ndim < 2:
        raise ShapeError(f"{name}: shape {x.shape} has no matrices: it takes two dimensions or more.")
    rows, columns = x.shape[-2:]
    return cast(Tensor, OPS[name](x, diagonal=max(-rows, min(diagonal, columns))))  # as a kernel can count
