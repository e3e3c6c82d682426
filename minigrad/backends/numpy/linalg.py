"""Kernels of linear algebra: NumPy's, which are BLAS's."""

from __future__ import annotations

from math import prod

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array
from minigrad.kernels import kernel

__all__: list[str] = []


kernel("matmul", DEVICE)(np.matmul)


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
def contract(a: Array, b: Array, *, left: str, right: str, out: str) -> Array:
    """By one batched product of matrices, (both, only in a, summed) and (both, summed, only in b); BLAS does it."""
    both, summed = [k for k in out if k in left and k in right], [k for k in left if k not in out]
    mine, its = [k for k in out if k not in right], [k for k in out if k not in left]
    a = a.transpose([left.index(k) for k in both + mine + summed])
    b = b.transpose([right.index(k) for k in both + summed + its])
    n, m = len(both), len(mine)
    batch, rows, inner, columns = a.shape[:n], a.shape[n : n + m], a.shape[n + m :], b.shape[n + len(summed) :]
    if summed:
        y = np.matmul(a.reshape(*batch, prod(rows), prod(inner)), b.reshape(*batch, prod(inner), prod(columns)))
    else:
        y = a.reshape(*batch, prod(rows), 1) * b.reshape(*batch, 1, prod(columns))
    found = both + mine + its
    return y.reshape(batch + rows + columns).transpose([found.index(k) for k in out])
