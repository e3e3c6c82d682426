"""Kernels of linear algebra: NumPy's, which are BLAS's and LAPACK's."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array
from minigrad.core.dispatch import kernel
from minigrad.core.errors import LinAlgError

__all__ = ["NOT_DEFINITE", "NOT_FINITE", "SINGULAR"]

SINGULAR = (
    "{}: a matrix is singular: one of its rows is a sum of multiples of the others, so it has no inverse.\n"
    "  Add a little to its diagonal, A + 1e-3 * mg.eye(n), or look at mg.linalg.slogdet(A) first."
)
NOT_DEFINITE = (
    "cholesky: a matrix is not positive definite: x @ A @ x is 0 or less for some x, or nan.\n"
    "  A covariance of too few or of equal columns is not: add a little to its diagonal, A + 1e-3 * mg.eye(n)."
)
NOT_FINITE = (
    "thin_svd: a matrix holds inf or nan, and has no singular values.\n  Look for them: A.isfinite().all((-2, -1))."
)


LONG = 1 << 14  # products in a sum: of float32 that many are added up at a time, and those sums in float64


@kernel("matmul", DEVICE)
def matmul(a: Array, b: Array, *, out: Array | None = None) -> Array:
    n = a.shape[-1]
    if n < 2 * LONG or a.dtype != np.float32:
        return np.matmul(a, b, out=out, casting="unsafe")
    total: Any = 0.0
    for k in range(0, n, LONG):
        total = total + np.matmul(a[..., k : k + LONG], b[..., k : k + LONG, :]).astype(np.float64)
    if out is None:
        return total.astype(a.dtype)
    np.copyto(out, total, casting="unsafe")
    return out


@kernel("linear", DEVICE)
def linear(a: Array, b: Array, c: Array | None) -> Array:
    rows = a if a.ndim < 3 else a.reshape(prod(a.shape[:-1]), a.shape[-1])  # one product is quicker than many
    if 4 * len(rows) <= len(b):  # for many more outputs than rows BLAS is a quarter quicker this way round
        out = np.add((b @ rows.T).T, 0 if c is None else c, order="C")
    else:
        out = rows @ b.T
        if c is not None:
            out += c
    return out if a.ndim < 3 else out.reshape(*a.shape[:-1], len(b))


@kernel("contract", DEVICE)
def contract(a: Array, b: Array, *, left: str, right: str, result: str) -> Array:
    """By one batched product of matrices, (both, only in a, summed) and (both, summed, only in b); BLAS does it."""
    both, summed = [k for k in result if k in left and k in right], [k for k in left if k not in result]
    mine, its = [k for k in result if k not in right], [k for k in result if k not in left]
    a = a.transpose([left.index(k) for k in both + mine + summed])
    b = b.transpose([right.index(k) for k in both + summed + its])
    n, m = len(both), len(mine)
    batch, rows, inner, columns = a.shape[:n], a.shape[n : n + m], a.shape[n + m :], b.shape[n + len(summed) :]
    if summed:
        y = matmul(a.reshape(*batch, prod(rows), prod(inner)), b.reshape(*batch, prod(inner), prod(columns)))
    else:
        y = a.reshape(*batch, prod(rows), 1) * b.reshape(*batch, 1, prod(columns))
    found = both + mine + its
    return y.reshape(batch + rows + columns).transpose([found.index(k) for k in result])


def _or_told(compute: Callable[..., Any], text: str, *given: Array) -> Any:
    """What LAPACK finds, where it finds it; else our words."""
    try:
        return compute(*given)
    except np.linalg.LinAlgError:
        raise LinAlgError(text) from None


@kernel("solve", DEVICE)
def solve(a: Array, b: Array) -> Array:
    return _or_told(np.linalg.solve, SINGULAR.format("solve"), a, b)


@kernel("inverse", DEVICE)
def inverse(a: Array) -> Array:
    return _or_told(np.linalg.inv, SINGULAR.format("inverse"), a)


@kernel("cholesky", DEVICE)
def cholesky(a: Array) -> Array:
    found = _or_told(np.linalg.cholesky, NOT_DEFINITE, a)
    if np.isnan(np.diagonal(found, axis1=-2, axis2=-1)).any():  # which not every LAPACK looks for
        raise LinAlgError(NOT_DEFINITE)
    return found


@kernel("thin_svd", DEVICE)
def thin_svd(a: Array) -> tuple[Array, Array, Array]:
    if not np.isfinite(a).all():
        raise LinAlgError(NOT_FINITE)
    return np.linalg.svd(a, full_matrices=False)


kernel("det", DEVICE)(np.linalg.det)
kernel("slogdet", DEVICE)(np.linalg.slogdet)


@kernel("cofactor", DEVICE)
def cofactor(a: Array) -> Array:
    """By singular values, A = U S V: the cofactors of a product are the product of the cofactors of its parts, for U
    det(U) U, and for S along the diagonal the products of all other values. Nothing is divided by, so S may have 0."""
    u, s, v = np.linalg.svd(a)
    others = np.where(np.eye(s.shape[-1], dtype=bool), 1, s[..., None, :]).prod(-1)
    sign = np.linalg.det(u) * np.linalg.det(v)
    return sign[..., None, None] * (u * others[..., None, :]) @ v


@kernel("solve_triangular", DEVICE)
def solve_triangular(a: Array, b: Array, *, upper: bool, unitriangular: bool) -> Array:
    y = np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]), np.result_type(a, b))
    n = a.shape[-1]
    for k in reversed(range(n)) if upper else range(n):  # y is 0 where it is not known yet
        known = slice(k + 1, n) if upper else slice(k)
        rest = b[..., k, :] - (a[..., k : k + 1, known] @ y[..., known, :])[..., 0, :]
        y[..., k, :] = rest if unitriangular else rest / a[..., k, k, None]
    return y
