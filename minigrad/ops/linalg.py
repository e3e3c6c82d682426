"""Operations of linear algebra."""

from __future__ import annotations

from typing import Any

from minigrad.layout import Shape, numel
from minigrad.op import Op
from minigrad.ops.reduce import sum
from minigrad.ops.shape import reshape

__all__ = ["contract", "linear", "matmul"]

contract: Op
matmul: Op


def _product(a: Any, b: Any) -> Any:
    """The sum over k of a[…, i, k, 1] b[…, 1, k, j]."""
    columns = reshape(b, shape=(*b.shape[:-2], 1, *b.shape[-2:]))
    return sum(reshape(a, shape=(*a.shape, 1)) * columns, dim=(max(a.ndim, b.ndim) - 1,), keepdim=False)


# Of matrices, batched and broadcast in all dimensions but the last two. d(AB) = dA B + A dB, so that A receives G Bᵀ
# and B receives Aᵀ G (Giles, "Collected matrix derivative results for forward and reverse mode AD", 2008, 2.2.1).
matmul = Op(
    "matmul",
    "{a} {b}",
    vjp=(lambda g, b: g @ b.mT, lambda g, a: a.mT @ g),
    shown=(r"{g} {b}^\top", r"{a}^\top {g}"),
    precedence=Op.PRODUCT,
    meaning=_product,
)


def _rows(x: Any) -> Any:
    """`x` as a matrix: its last dimension, and all others in one."""
    return x if x.ndim == 2 else reshape(x, shape=(numel(x.shape[:-1]), x.shape[-1]))


def _back(x: Any, shape: Shape) -> Any:
    return x if x.shape == shape else reshape(x, shape=shape)


# a Wᵀ + c in one go, where W is b, and c may be None; a has its rows in the last dimension.
linear = Op(
    "linear",
    r"{a} {b}^\top + {c}",
    vjp=(
        lambda g, a_shape, b: _back(_rows(g) @ b, a_shape),
        lambda g, a: _rows(g).mT @ _rows(a),
        lambda g: g,  # broadcasting is undone where every gradient arrives
    ),
    shown=(
        "{g} {b}",
        r"{g}^\top {a}",
        r"\sum {g}",
    ),
    precedence=Op.SUM,
    meaning=lambda a, b, c: a @ b.mT if c is None else a @ b.mT + c,
)

# The sum over products of two operands whose dimensions are named by letters, as in a="bij", b="bjk", out="bik". Each
# letter stands once in each name, and in two of the three at least: then the rules are contractions of the same kind.
contract = Op(
    "contract",
    r"\sum {a} {b}",
    vjp=(
        lambda g, b, left, right, out: contract(g, b, out, right, left),
        lambda g, a, left, right, out: contract(a, g, left, out, right),
    ),
    shown=(
        r"\sum {g} {b}",
        r"\sum {a} {g}",
    ),
    attrs=("left", "right", "out"),
    precedence=Op.PRODUCT,
)
