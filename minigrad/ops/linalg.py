"""Linear algebra: products, solvers, determinants and factorisations of matrices (…, n, n) or (…, m, n).

Sources of the gradient rules: Giles, "Collected matrix derivative results for forward and reverse mode AD", 2008,
sections 2.2 and 2.3; for `cholesky` Murray, "Differentiation of the Cholesky decomposition", 2016; for `thin_svd`
Townsend, "Differentiating the singular value decomposition", 2016.
"""

from __future__ import annotations

from typing import Any

from minigrad.core.op import Op, adjoint_formula
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


def _matmul_meaning(a: Any, b: Any) -> Any:
    """Compute the matrix product as the sum of a[…, i, k, 1] b[…, 1, k, j] over k."""
    columns = reshape(b, shape=(*b.shape[:-2], 1, *b.shape[-2:]))
    return sum(reshape(a, shape=(*a.shape, 1)) * columns, dim=(max(a.ndim, b.ndim) - 1,), keepdim=False)


# Batched matrix product, broadcast in all dimensions but the last two. d(AB) = dA B + A dB, so the VJPs are G Bᵀ for A
# and Aᵀ G for B (Giles 2008, section 2.2.1).
matmul: Op = Op(
    "matmul",
    "{a} {b}",
    vjp=(lambda g, b: g @ b.mT, lambda g, a: a.mT @ g),
    shown=(r"{g} {b}^\top", r"{a}^\top {g}"),
    precedence=Op.PRODUCT,
    meaning=_matmul_meaning,
)


def _flatten_rows(x: Any) -> Any:
    """Flatten all dimensions of `x` except the last."""
    return x if x.ndim == 2 else reshape(x, shape=(numel(x.shape[:-1]), x.shape[-1]))


def _restore_shape(x: Any, shape: Shape) -> Any:
    return x if x.shape == shape else reshape(x, shape=shape)


# Fused computation of a bᵀ + c. The bias c may be None.
linear = Op(
    "linear",
    r"{a} {b}^\top + {c}",
    vjp=(
        lambda g, a_shape, b: _restore_shape(_flatten_rows(g) @ b, a_shape),
        lambda g, a: _flatten_rows(g).mT @ _flatten_rows(a),
        lambda g: g,  # the backward pass sums over broadcast dimensions
    ),
    shown=("{g} {b}", r"{g}^\top {a}", r"\sum {g}"),
    precedence=Op.SUM,
    meaning=lambda a, b, c: a @ b.mT if c is None else a @ b.mT + c,
)

# Tensor contraction in einsum notation, for example left="bij", right="bjk", result="bik". Each letter occurs at most
# once in a subscript and in at least two of the three subscripts, so the VJPs are contractions too.
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

# --- solvers, determinants and factorisations ---


def _as_matrices(x: Any) -> Any:
    """Reshape scalars (…), one per matrix, to (…, 1, 1)."""
    return reshape(x, shape=(*x.shape, 1, 1))


def _solve_rule(g: Any, y: Any, a: Any) -> tuple[Any, Any]:
    grad_b = solve(a.mT, g)
    return -(grad_b @ y.mT), grad_b


# Solves A X = B for X, where B is (…, n, k). Batches broadcast. A singular A raises unless errors are deferred.
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


def _solve_triangular_rule(g: Any, y: Any, a: Any, upper: bool, unitriangular: bool) -> tuple[Any, Any]:
    grad_b = solve_triangular(a.mT, g, upper=not upper, unitriangular=unitriangular)
    grad_a = -(grad_b @ y.mT)
    return (triu(grad_a, diagonal=+unitriangular) if upper else tril(grad_a, diagonal=-unitriangular)), grad_b


# `solve` for a triangular A. Only its triangle is read; if `unitriangular`, the diagonal is taken to be 1.
solve_triangular: Op = Op(
    "solve_triangular",
    r"{a}^{-1} {b}",
    vjp=_solve_triangular_rule,
    shown=(r"-\operatorname{half}\left({a}^{-\top} {g} {y}^\top\right)", r"{a}^{-\top} {g}"),
    inputs=("a", "b"),
    attrs=("upper", "unitriangular"),
    precedence=Op.PRODUCT,
)

# Returns the sign of the determinant (-1, 0 or 1) and the logarithm of its absolute value, both (…). The computation
# does not overflow.
slogdet = Op(
    "slogdet",
    r"\ln\left|\det {a}\right|",
    vjp=(lambda g, a: where(False, a, 0.0) if g[1] is None else _as_matrices(g[1]) * inverse(a).mT,),
    shown=(r"{g} \cdot {a}^{-\top}",),
    outputs=2,
)

# The gradient of a determinant is the cofactor matrix of signed minors. It also exists for singular matrices,
# which have no inverse. The rule of `cofactor` itself requires a non-singular matrix.
det = Op(
    "det",
    r"\det {a}",
    vjp=(lambda g, a: _as_matrices(g) * cofactor(a),),
    shown=(r"{g} \cdot \operatorname{cofactor} {a}",),
    precedence=Op.PREFIX,
)


def _cofactor_rule(g: Any, y: Any, a: Any) -> Any:
    last = a.ndim - 1
    inner_product = sum(y * g, dim=(last - 1, last), keepdim=True)
    return div(inner_product * y - y @ g.mT @ y, _as_matrices(det(a)))


cofactor: Op = Op("cofactor", r"\operatorname{cofactor} {a}", vjp=(_cofactor_rule,), shown=(adjoint_formula("a"),))


def _cholesky_rule(g: Any, y: Any) -> Any:
    """Return L^-T S L^-1, where S is half of the symmetric matrix with the lower triangle of Lᵀ G."""
    lower = tril(y.mT @ g, diagonal=0)
    symmetric = (lower + tril(lower, diagonal=-1).mT) * 0.5
    left = solve_triangular(y.mT, symmetric, upper=True, unitriangular=False)
    return solve_triangular(y.mT, left.mT, upper=True, unitriangular=False).mT


# Returns the lower triangular L with A = L Lᵀ, for a symmetric positive definite A. Only A's lower triangle is read.
cholesky = Op("cholesky", r"\operatorname{cholesky} {a}", vjp=(_cholesky_rule,), shown=(adjoint_formula("a"),))


def _thin_svd_rule(g: Any, y0: Any, y1: Any, y2: Any) -> Any:
    """Gradients through singular vectors are inf or nan if singular values repeat, or are 0 in a non-square matrix."""
    grad_u, grad_s, grad_v = g
    k = y1.shape[-1]
    column, row = (reshape(y1, shape=(*y1.shape[:-1], *tail_shape)) for tail_shape in ((k, 1), (1, k)))
    identity = tril(triu(where(False, column * row, 1.0), diagonal=0), diagonal=0)
    core = (
        where(False, column * row, 0.0)
        if grad_s is None
        else where(identity == 1, reshape(grad_s, shape=row.shape), 0.0)
    )
    outside: Any = 0.0
    if grad_u is not None:
        projected, scaled_grad = y0.mT @ grad_u, div(grad_u, row)
        core = core + div(projected - projected.mT, row * row - column * column + identity) * row
        outside = (scaled_grad - y0 @ (y0.mT @ scaled_grad)) @ y2 if y0.shape[-2] > k else outside
    if grad_v is not None:
        projected, scaled_grad = y2 @ grad_v.mT, div(grad_v, column)
        core = core + column * div(projected - projected.mT, row * row - column * column + identity)
        outside = outside + y0 @ (scaled_grad - (scaled_grad @ y2.mT) @ y2) if y2.shape[-1] > k else outside
    return y0 @ core @ y2 + outside


# Returns U (…, m, k), the singular values (…, k) in descending order, and Vᵀ (…, k, n) of A = U S Vᵀ; k = min(m, n).
thin_svd: Op = Op(
    "thin_svd", r"\operatorname{svd} {a}", vjp=(_thin_svd_rule,), shown=(adjoint_formula("a"),), outputs=3
)
