"""Linear algebra kernels, based on NumPy functions that call BLAS and LAPACK."""

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
    "{}: the input matrix is singular: its rows are linearly dependent, so it has no inverse.\n"
    "  Add a small value to its diagonal, A + 1e-3 * mg.eye(n), or check mg.linalg.slogdet(A) first."
)
NOT_DEFINITE = (
    "cholesky: the input is not positive-definite: x @ A @ x is 0, negative or nan for some x.\n"
    "  A covariance of too few samples, or of equal columns, is not: add a small value to its diagonal, "
    "A + 1e-3 * mg.eye(n)."
)
NOT_FINITE = (
    "thin_svd: the input matrix contains non-finite values (inf or nan), so it has no singular values.\n"
    "  Find them with A.isfinite().all((-2, -1))."
)


MAX_INNER = 1 << 14  # inner size of a float32 partial product; partial products are accumulated in float64


@kernel("matmul", DEVICE)
def matmul(a: Array, b: Array, *, out: Array | None = None) -> Array:
    n = a.shape[-1]
    if n < 2 * MAX_INNER or a.dtype != np.float32:
        return np.matmul(a, b, out=out, casting="unsafe")
    total: Any = 0.0
    for k in range(0, n, MAX_INNER):
        total = total + np.matmul(a[..., k : k + MAX_INNER], b[..., k : k + MAX_INNER, :]).astype(np.float64)
    if out is None:
        return total.astype(a.dtype)
    np.copyto(out, total, casting="unsafe")
    return out


@kernel("linear", DEVICE)
def linear(a: Array, b: Array, c: Array | None) -> Array:
    rows = a if a.ndim < 3 else a.reshape(prod(a.shape[:-1]), a.shape[-1])  # one GEMM is faster than a batch
    if 4 * len(rows) <= len(b):  # with many more outputs than rows, BLAS is 25% faster in this order
        out = np.add((b @ rows.T).T, 0 if c is None else c, order="C")
    else:
        out = rows @ b.T
        if c is not None:
            out += c
    return out if a.ndim < 3 else out.reshape(*a.shape[:-1], len(b))


@kernel("contract", DEVICE)
def contract(a: Array, b: Array, *, left: str, right: str, result: str) -> Array:
    """Contract by a batched matmul, with dimensions (in both, only in a, summed) and (in both, summed, only in b)."""
    batch_labels, contracted = [k for k in result if k in left and k in right], [k for k in left if k not in result]
    left_only, right_only = [k for k in result if k not in right], [k for k in result if k not in left]
    a = a.transpose([left.index(k) for k in batch_labels + left_only + contracted])
    b = b.transpose([right.index(k) for k in batch_labels + contracted + right_only])
    n, m = len(batch_labels), len(left_only)
    batch, rows, inner, columns = a.shape[:n], a.shape[n : n + m], a.shape[n + m :], b.shape[n + len(contracted) :]
    if contracted:
        y = matmul(a.reshape(*batch, prod(rows), prod(inner)), b.reshape(*batch, prod(inner), prod(columns)))
    else:
        y = a.reshape(*batch, prod(rows), 1) * b.reshape(*batch, 1, prod(columns))
    labels = batch_labels + left_only + right_only
    return y.reshape(batch + rows + columns).transpose([labels.index(k) for k in result])


def _call_lapack(compute: Callable[..., Any], message: str, *arrays: Array) -> Any:
    """Call `compute`, a function that uses LAPACK. Raises LinAlgError with `message` if LAPACK fails."""
    try:
        return compute(*arrays)
    except np.linalg.LinAlgError:
        raise LinAlgError(message) from None


@kernel("solve", DEVICE)
def solve(a: Array, b: Array) -> Array:
    return _call_lapack(np.linalg.solve, SINGULAR.format("solve"), a, b)


@kernel("inverse", DEVICE)
def inverse(a: Array) -> Array:
    return _call_lapack(np.linalg.inv, SINGULAR.format("inverse"), a)


@kernel("cholesky", DEVICE)
def cholesky(a: Array) -> Array:
    factor = _call_lapack(np.linalg.cholesky, NOT_DEFINITE, a)
    if np.isnan(np.diagonal(factor, axis1=-2, axis2=-1)).any():  # some versions of LAPACK do not check this
        raise LinAlgError(NOT_DEFINITE)
    return factor


@kernel("thin_svd", DEVICE)
def thin_svd(a: Array) -> tuple[Array, Array, Array]:
    if not np.isfinite(a).all():
        raise LinAlgError(NOT_FINITE)
    return np.linalg.svd(a, full_matrices=False)


kernel("det", DEVICE)(np.linalg.det)
kernel("slogdet", DEVICE)(np.linalg.slogdet)


@kernel("cofactor", DEVICE)
def cofactor(a: Array) -> Array:
    """Compute cofactors from the SVD A = U S V. Cofactors are multiplicative: those of U are det(U) U, and those of S
    are diagonal, with the products of all other singular values. No division is used, so singular values may be 0."""
    u, s, v = np.linalg.svd(a)
    other_products = np.where(np.eye(s.shape[-1], dtype=bool), 1, s[..., None, :]).prod(-1)
    sign = np.linalg.det(u) * np.linalg.det(v)
    return sign[..., None, None] * (u * other_products[..., None, :]) @ v


@kernel("solve_triangular", DEVICE)
def solve_triangular(a: Array, b: Array, *, upper: bool, unitriangular: bool) -> Array:
    y = np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]), np.result_type(a, b))
    n = a.shape[-1]
    for k in reversed(range(n)) if upper else range(n):  # unsolved rows of y are 0
        solved = slice(k + 1, n) if upper else slice(k)
        residual = b[..., k, :] - (a[..., k : k + 1, solved] @ y[..., solved, :])[..., 0, :]
        y[..., k, :] = residual if unitriangular else residual / a[..., k, k, None]
    return y
