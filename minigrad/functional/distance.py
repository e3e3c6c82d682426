"""Distances and cosine similarity between vectors, with PyTorch's signatures."""

from __future__ import annotations

from typing import cast

from minigrad import ops
from minigrad.core.errors import ShapeError
from minigrad.core.registry import register
from minigrad.core.shapes import broadcast_shapes
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import floats_of, tensor_of
from minigrad.functional.reduce import norm, sum


@register
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """The `p`-norms of the differences of all rows of `x1` (…, P, M) and `x2` (…, R, M): (…, P, R).

    `compute_mode` is PyTorch's choice of a way, of which there is one here. Of equal rows the gradient is 0, and a
    second derivative nan, as of `norm`. Raises ShapeError for rows that differ.

    >>> import minigrad as mg
    >>> mg.cdist(mg.tensor([[0.0, 0.0]]), mg.tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[5.0, 1.0]]
    """
    floats_of(x1, "cdist", "x1")
    floats_of(x2, "cdist", "x2")
    if min(x1.ndim, x2.ndim) < 2 or x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(f"cdist: x1 {x1.shape} and x2 {x2.shape} are not rows of one length, (…, P, M) and (…, R, M).")
    return norm(x1[..., :, None, :] - x2[..., None, :, :], p, -1)


@register(method=True)
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The `p`-norm of all numbers of ``input - other``."""
    return norm(tensor_of(input, "dist") - tensor_of(other, "dist", "other"), p)


@register
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The norm of ``x1 - x2 + eps`` over the last dimension; eps keeps the slope finite where the two are equal."""
    return norm(x1 - x2 + eps, p, -1, keepdim)


@register
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between `x1` and `x2` over `dim` of their common shape; lengths are `eps` at least."""
    floats_of(x1, "cosine_similarity", "x1")
    floats_of(x2, "cosine_similarity", "x2")
    shape = broadcast_shapes(x1.shape, x2.shape, op="cosine_similarity")
    x1, x2 = x1.expand(*shape), x2.expand(*shape)
    lengths = [ops.clamp(norm(x, 2.0, dim, True), min=eps, max=None) for x in (x1, x2)]
    return cast(Tensor, sum(x1 / lengths[0] * x2, dim, keepdim=True) / lengths[1]).squeeze(dim)
