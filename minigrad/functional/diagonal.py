"""Extract, construct and overwrite diagonals and triangles of matrices, with PyTorch's signatures."""

from __future__ import annotations

from typing import cast

from minigrad import ops
from minigrad.core.dtypes import int64
from minigrad.core.errors import ShapeError
from minigrad.core.op import OPS
from minigrad.core.registry import register, register_method
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_distinct_dims, check_nonscalar_dim, check_tensor, flatten_all
from minigrad.functional.creation import arange, zeros_like


@register(method=True)
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a copy of the matrices in the last two dimensions with 0 above diagonal `diagonal`."""
    return _zero_triangle("tril", input, diagonal)


@register(method=True)
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a copy of the matrices in the last two dimensions with 0 below diagonal `diagonal`."""
    return _zero_triangle("triu", input, diagonal)


@register(method=True)
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a matrix with the vector `input` on diagonal `diagonal`, or a copy of that diagonal of a matrix.

    Raises ShapeError unless `input` is 1-d or 2-d.
    """
    x = check_tensor(input, "diag")
    if x.ndim == 1:
        return diag_embed(x, diagonal)
    if x.ndim != 2:
        raise ShapeError(f"diag: supports 1-d or 2-d tensors, but got shape {x.shape}.\n  Use diagonal or diag_embed.")
    return cast(Tensor, ops.contiguous(ops.diagonal(x, offset=diagonal, dim1=0, dim2=1)))


@register(method=True)
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return square matrices, in dimensions `dim1` and `dim2`, with the last dimension of `input` on their diagonal.

    `offset` selects the diagonal, 0 being the main one. All other elements are 0.
    """
    x, size = check_tensor(input, "diag_embed"), input.shape[check_nonscalar_dim(input, -1, "diag_embed")] + abs(offset)
    first, second = check_distinct_dims(dim1, dim2, x.ndim + 1, "diag_embed")
    other_sizes = iter(x.shape)
    shape = tuple([size if k in (first, second) else next(other_sizes) for k in range(x.ndim + 1)])
    return cast(Tensor, ops.diagonal_backward(x, shape=shape, offset=offset, dim1=first, dim2=second))


@register_method("fill_diagonal_")
def _fill_diagonal_(self: Tensor, fill_value: float) -> Tensor:
    """Fill the main diagonal in place. Raises ShapeError for fewer than two dimensions."""
    if self.ndim < 2:
        raise ShapeError(f"fill_diagonal_: expected at least 2 dimensions, but got shape {self.shape}.")
    indices = arange(min(self.shape), device=self.device)
    self[(indices,) * self.ndim] = fill_value
    return self


@register_method("tril_")
def _tril_(self: Tensor, diagonal: int = 0) -> Tensor:
    """Set the elements above diagonal `diagonal` to 0 in place."""
    return self.masked_fill_(tril(zeros_like(self, dtype=int64) + 1, diagonal) == 0, 0)


@register_method("triu_")
def _triu_(self: Tensor, diagonal: int = 0) -> Tensor:
    """Set the elements below diagonal `diagonal` to 0 in place."""
    return self.masked_fill_(triu(zeros_like(self, dtype=int64) + 1, diagonal) == 0, 0)


@register(method=True)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Return a matrix with the flattened `input` on diagonal `offset`."""
    return diag(flatten_all(check_tensor(input, "diagflat")), offset)


# --- helpers ---


def _zero_triangle(name: str, x: Tensor, diagonal: int) -> Tensor:
    if check_tensor(x, name).ndim < 2:
        raise ShapeError(f"{name}: input must have at least 2 dimensions, but got shape {x.shape}.")
    rows, columns = x.shape[-2:]
    return cast(Tensor, OPS[name](x, diagonal=max(-rows, min(diagonal, columns))))  # clamped to the kernels' int range
