"""Distances and cosine similarity between vectors, with PyTorch's signatures."""

from __future__ import annotations

from typing import cast

from minigrad import ops
from minigrad.core.errors import ShapeError
from minigrad.core.registry import register
from minigrad.core.shapes import broadcast_shapes
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_floating, check_tensor
from minigrad.functional.reduce import norm, sum


@register
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """Compute the `p`-norm distance between each pair of rows of `x1` (…, P, M) and `x2` (…, R, M): (…, P, R).

    `compute_mode` is ignored. For equal rows the gradient is 0 and the second derivative nan, as for `norm`. Raises
    ShapeError if the row lengths differ.

    >>> import minigrad as mg
    >>> mg.cdist(mg.tensor([[0.0, 0.0]]), mg.tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[5.0, 1.0]]
    """
    check_floating(x1, "cdist", "x1")
    check_floating(x2, "cdist", "x2")
    if min(x1.ndim, x2.ndim) < 2 or x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(f"cdist: x1 and x2 must have the same number of columns, but got {x1.shape} and {x2.shape}.")
    return norm(x1[..., :, None, :] - x2[..., None, :, :], p, -1)


@register(method=True)
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Return the `p`-norm of ``input - other``, over all elements."""
    return norm(check_tensor(input, "dist") - check_tensor(other, "dist", "other"), p)


@register
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Return the norm of ``x1 - x2 + eps`` over the last dimension; `eps` keeps the gradient finite at equal inputs."""
    return norm(x1 - x2 + eps, p, -1, keepdim)


@register
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine similarity of `x1` and `x2` along `dim`, after broadcasting, with norms of at least `eps`."""
    check_floating(x1, "cosine_similarity", "x1")
    check_floating(x2, "cosine_similarity", "x2")
    shape = broadcast_shapes(x1.shape, x2.shape, op="cosine_similarity")
    x1, x2 = x1.expand(*shape), x2.expand(*shape)
    norms = [ops.clamp(norm(x, 2.0, dim, True), min=eps, max=None) for x in (x1, x2)]
    return cast(Tensor, sum(x1 / norms[0] * x2, dim, keepdim=True) / norms[1]).squeeze(dim)
