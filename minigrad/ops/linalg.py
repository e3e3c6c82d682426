"""Operations of linear algebra: products; and of square matrices (…, n, n) what elimination finds.

The rules of the second kind are from Giles, "Collected matrix derivative results for forward and reverse mode AD",
2008, 2.2 and 2.3; that of Cholesky's factor is from Murray, "Differentiation of the Cholesky decomposition", 2016,
and that of singular values and vectors from Townsend, "Differentiating the singular value decomposition", 2016.
"""

from __future__ import annotations

from typing import Any

from minigrad.core.op import Op, adjoint
from minigrad.core.shapes import Shape, numel
from minigrad.ops.elementwise import div, where
from minigrad.ops.reduce import sum
from minigrad.ops.shape import reshape, tril, triu

__all__ = [
    "cholesky",
    "cofactor",
    "contract",
    "det",
    "inverse",
    "linear",
    "matmul",
    "slogdet",
    "solve",
    "solve_triangular",
    "thin_svd",
]


def _product(a: Any, b: Any) -> Any:
    """The sum over k of a[…, i, k, 1] b[…, 1, k, j]."""
    columns = reshape(b, shape=(*b.shape[:-2], 1, *b.shape[-2:]))
    return sum(reshape(a, shape=(*a.shape, 1)) * columns, dim=(max(a.ndim, b.ndim) - 1,), keepdim=False)


# Of matrices, batched and broadcast in all dimensions but the last two. d(AB) = dA B + A dB, so that A receives G Bᵀ
# and B receives Aᵀ G (Giles, "Collected matrix derivative results for forward and reverse mode AD", 2008, 2.2.1).
matmul: Op = Op(
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
    shown=("{g} {b}", r"{g}^\top {a}", r"\sum {g}"),
    precedence=Op.SUM,
    meaning=lambda a, b, c: a @ b.mT if c is None else a @ b.mT + c,
)

# The sum over products of two operands whose dimensions are named by letters, as left="bij", right="bjk", result="bik".
# Each letter stands once in each name, and in two of the three at least: then the rules are contractions too.
contract: Op = Op(
    "contract",
    r"\sum {a} {b}",
    vjp=(
        lambda g, b, left, right, result: contract(g, b, result, right, left),
        lambda g, a, left, right, result: contract(a, g, left, result, right),
    ),
    shown=(r"\sum {g} {b}", r"\sum {a} {g}"),
    attrs=("left", "right", "result"),
    precedence=Op.PRODUCT,
)

# --- what elimination finds ---


def _each(x: Any) -> Any:
    """Numbers (…), one a matrix, as matrices (…, 1, 1)."""
    return reshape(x, shape=(*x.shape, 1, 1))


def _solve_rule(g: Any, y: Any, a: Any) -> tuple[Any, Any]:
    by_b = solve(a.mT, g)
    return -(by_b @ y.mT), by_b


# X of A X = B, where B is (…, n, k), and batches broadcast. Where the host is told at once, a singular A is refused.
solve: Op = Op(
    "solve",
    r"{a}^{-1} {b}",
    vjp=_solve_rule,
    shown=(r"-{a}^{-\top} {g} {y}^\top", r"{a}^{-\top} {g}"),
    inputs=("a", "b"),
    precedence=Op.PRODUCT,
)
inverse: Op = Op(
    "inverse",
    r"{a}^{-1}",
    vjp=(lambda g, y: -(y.mT @ g @ y.mT),),
    shown=(r"-{y}^\top {g} {y}^\top",),
    precedence=Op.POWER,
)


def _substitution_rule(g: Any, y: Any, a: Any, upper: bool, unitriangular: bool) -> tuple[Any, Any]:
    by_b = solve_triangular(a.mT, g, upper=not upper, unitriangular=unitriangular)
    by_a = -(by_b @ y.mT)
    return (triu(by_a, diagonal=+unitriangular) if upper else tril(by_a, diagonal=-unitriangular)), by_b


# The same where A is triangular, of which only that half is read, without its diagonal of ones if `unitriangular`.
solve_triangular: Op = Op(
    "solve_triangular",
    r"{a}^{-1} {b}",
    vjp=_substitution_rule,
    shown=(r"-\operatorname{half}\left({a}^{-\top} {g} {y}^\top\right)", r"{a}^{-\top} {g}"),
    inputs=("a", "b"),
    attrs=("upper", "unitriangular"),
    precedence=Op.PRODUCT,
)

# The sign of the determinant, -1, 0 or 1, and the logarithm of its amount, (…) both: for what is too large for `det`.
slogdet = Op(
    "slogdet",
    r"\ln\left|\det {a}\right|",
    vjp=(lambda g, a: where(False, a, 0.0) if g[1] is None else _each(g[1]) * inverse(a).mT,),
    shown=(r"{g} \cdot {a}^{-\top}",),
    outputs=2,
)

# A determinant has a slope at a singular matrix too, where there is no inverse: its cofactors, each the determinant of
# what is left without a row and a column, with its sign. They have a rule where the matrix is not singular.
det = Op(
    "det",
    r"\det {a}",
    vjp=(lambda g, a: _each(g) * cofactor(a),),
    shown=(r"{g} \cdot \operatorname{cofactor} {a}",),
    precedence=Op.PREFIX,
)


def _cofactor_rule(g: Any, y: Any, a: Any) -> Any:
    last = a.ndim - 1
    shares = sum(y * g, dim=(last - 1, last), keepdim=True)
    return div(shares * y - y @ g.mT @ y, _each(det(a)))


cofactor: Op = Op("cofactor", r"\operatorname{cofactor} {a}", vjp=(_cofactor_rule,), shown=(adjoint("a"),))


def _cholesky_rule(g: Any, y: Any) -> Any:
    """L^-T S L^-1, where S has the lower half of Lᵀ G, mirrored, and half of its diagonal."""
    lower = tril(y.mT @ g, diagonal=0)
    mirrored = (lower + tril(lower, diagonal=-1).mT) * 0.5
    left = solve_triangular(y.mT, mirrored, upper=True, unitriangular=False)
    return solve_triangular(y.mT, left.mT, upper=True, unitriangular=False).mT


# The lower triangular L of A = L Lᵀ, where A is symmetric, of which the lower half is read, and positive definite.
cholesky = Op("cholesky", r"\operatorname{cholesky} {a}", vjp=(_cholesky_rule,), shown=(adjoint("a"),))


def _thin_svd_rule(g: Any, y0: Any, y1: Any, y2: Any) -> Any:
    """Of equal singular values, or of those that are 0 in a long matrix, the vectors have no slopes: inf or nan."""
    by_u, by_s, by_v = g
    k = y1.shape[-1]
    column, row = (reshape(y1, shape=(*y1.shape[:-1], *sides)) for sides in ((k, 1), (1, k)))
    one = tril(triu(where(False, column * row, 1.0), diagonal=0), diagonal=0)
    core = where(False, column * row, 0.0) if by_s is None else where(one == 1, reshape(by_s, shape=row.shape), 0.0)
    rest: Any = 0.0
    if by_u is not None:
        turned, per = y0.mT @ by_u, div(by_u, row)
        core = core + div(turned - turned.mT, row * row - column * column + one) * row
        rest = (per - y0 @ (y0.mT @ per)) @ y2 if y0.shape[-2] > k else rest
    if by_v is not None:
        turned, per = y2 @ by_v.mT, div(by_v, column)
        core = core + column * div(turned - turned.mT, row * row - column * column + one)
        rest = rest + y0 @ (per - (per @ y2.mT) @ y2) if y2.shape[-1] > k else rest
    return y0 @ core @ y2 + rest


# U, (…, m, k), the singular values (…, k), which fall, and Vᵀ, (…, k, n), of A = U S Vᵀ, (…, m, n): k is the smaller.
thin_svd: Op = Op("thin_svd", r"\operatorname{svd} {a}", vjp=(_thin_svd_rule,), shown=(adjoint("a"),), outputs=3)
