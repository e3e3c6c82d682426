"""Operations of linear algebra."""

from __future__ import annotations

from typing import Any

from minigrad.op import Op
from minigrad.ops.shape import permute

__all__ = ["matmul", "mt"]

matmul: Op


def mt(x: Any) -> Any:
    """`x` with its last two dimensions exchanged: the transpose of each of its matrices."""
    return permute(x, dims=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


# Of matrices, batched and broadcast in all dimensions but the last two. d(AB) = dA B + A dB, so that A receives G Bᵀ
# and B receives Aᵀ G (Giles, "Collected matrix derivative results for forward and reverse mode AD", 2008, 2.2.1).
matmul = Op(
    "matmul",
    "{a} {b}",
    vjp=(lambda g, b: matmul(g, mt(b)), lambda g, a: matmul(mt(a), g)),
    precedence=Op.PRODUCT,
)
