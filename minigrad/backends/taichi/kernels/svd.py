"""Singular value decomposition by one-sided Jacobi rotations (Hestenes 1958; Golub, Van Loan, "Matrix Computations",
8.6.3).

Pairs of rows are rotated until all rows are orthogonal. The rotations also apply to an identity matrix appended to the
rows. At the end, the norms of the rows are the singular values, the normalised rows are the singular vectors of one
side, and the rotated identity contains the singular vectors of the other side. The number of rows is the smaller size
of the matrix. Each thread processes one matrix, in float64, scaled to elements up to 1 so that squares do not overflow.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from minigrad.backends.numpy.linalg import NOT_FINITE
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.kernels.elementwise import arange, array_argument, evaluate
from minigrad.backends.taichi.runtime.array import TAICHI, current_target, empty
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.deferred_checks import check_slot, error_slot
from minigrad.backends.taichi.runtime.driver import check_serial_iterations
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.core.dispatch import get_kernels, kernel
from minigrad.core.errors import LinAlgError

__all__: list[str] = []

MAX_SWEEPS = 60  # maximum number of sweeps over all pairs; ten suffice unless rows are almost equal

# Each row of y has `size` elements of the matrix, then `count` of the identity. The norms are written to s.
_ROTATE = """        start = t * count * (size + count)
        width = size + count
        rotated = 1
        for _ in range(ROUNDS):
            if rotated == 1:
                rotated = 0
                for p in range(count):
                    for q in range(p + 1, count):
                        squares_p, squares_q, dot = ti.cast(0, ti.f64), ti.cast(0, ti.f64), ti.cast(0, ti.f64)
                        for j in range(size):
                            a, b = y_[start + p * width + j], y_[start + q * width + j]
                            squares_p, squares_q, dot = squares_p + a * a, squares_q + b * b, dot + a * b
                        if ti.abs(dot) > EPS * ti.sqrt(squares_p) * ti.sqrt(squares_q):
                            rotated = 1
                            zeta = (squares_q - squares_p) / (2.0 * dot)
                            tangent = ti.select(zeta < 0, -1.0, 1.0) / (ti.abs(zeta) + ti.sqrt(1.0 + zeta * zeta))
                            cosine = 1.0 / ti.sqrt(1.0 + tangent * tangent)
                            for j in range(width):
                                a, b = y_[start + p * width + j], y_[start + q * width + j]
                                y_[start + p * width + j] = cosine * (a - tangent * b)
                                y_[start + q * width + j] = cosine * (tangent * a + b)
"""
_SORT = """        for p in range(count):
            total = ti.cast(0, ti.f64)
            for j in range(size):
                total = total + y_[start + p * width + j] * y_[start + p * width + j]
            s_[t * count + p] = ti.sqrt(total)
            if (total == total) == 0:
                error_[0] = 1
        for p in range(count):
            best = p
            for q in range(p + 1, count):
                if s_[t * count + q] > s_[t * count + best]:
                    best = q
            if best != p:
                saved = s_[t * count + p]
                s_[t * count + p] = s_[t * count + best]
                s_[t * count + best] = saved
                for j in range(width):
                    saved = y_[start + p * width + j]
                    y_[start + p * width + j] = y_[start + best * width + j]
                    y_[start + best * width + j] = saved
"""
# A zero row is replaced by a coordinate axis that is orthogonalised against the previous rows (Gram-Schmidt).
_COMPLETE_BASIS = """        for p in range(count):
            length, axis = s_[t * count + p], 0
            for _ in range(size):
                if (length == 0) & (axis < size):
                    for j in range(size):
                        y_[start + p * width + j] = ti.select(j == axis, 1.0, 0.0)
                    for repeat in range(2):
                        for q in range(p):
                            dot = ti.cast(0, ti.f64)
                            for j in range(size):
                                dot = dot + y_[start + p * width + j] * y_[start + q * width + j]
                            for j in range(size):
                                y_[start + p * width + j] = y_[start + p * width + j] - dot * y_[start + q * width + j]
                    total = ti.cast(0, ti.f64)
                    for j in range(size):
                        total = total + y_[start + p * width + j] * y_[start + p * width + j]
                    length = ti.select(total * 2.0 * size > 1.0, ti.sqrt(total), 0.0)
                    axis = axis + 1
            for j in range(size):
                y_[start + p * width + j] = y_[start + p * width + j] / length
"""


@arch_cache()
def _svd_kernel(dtype: str, serial: bool) -> Any:
    params = [source.KernelArgument("a", "s", dtype), source.KernelArgument("a", "error", "int32")]
    body = (_ROTATE + _SORT + _COMPLETE_BASIS).replace("ROUNDS", str(MAX_SWEEPS))
    body = body.replace("EPS", repr(4 * float(np.finfo(dtype).eps)))
    size_names = ["matrices", "count", "size"]
    return get_kernel(
        "jacobi_svd",
        *source.wrap_kernel(
            "jacobi_svd", params, dtype, dtype, size_names, "matrices", body, serial, has_long_iterations=True
        ),
    )


@kernel("thin_svd", TAICHI)
def thin_svd(a: Any) -> tuple[Any, Any, Any]:
    batch, (m, n), dtype = a.shape[:-2], a.shape[-2:], a.dtype
    count, size = min(m, n), max(m, n)
    compute_dtype = np.dtype(dtype if current_target().lacks_float64 else np.float64)
    rows, lengths = empty((*batch, count, size + count), compute_dtype), empty((*batch, count), compute_dtype)
    if not rows.size:
        return empty((*batch, m, count), dtype), empty(lengths.shape, dtype), empty((*batch, count, n), dtype)
    largest = get_kernels("amax")[TAICHI](abs(a), dim=(a.ndim - 2, a.ndim - 1), keepdim=True)
    divisor = evaluate("scale", "ti.select(a > 0, a, 1)", (largest,), dtype)
    evaluate("scaled", "a / b", (a.mT if m > n else a, divisor), compute_dtype, rows[..., :size])
    evaluate("eye", "ti.select(a == b, 1, 0)", (arange(count)[:, None], arange(count)), compute_dtype, rows[..., size:])
    check_serial_iterations("thin_svd", count * count * size)
    error_flag = error_slot(LinAlgError, NOT_FINITE)
    matrices = prod(batch)
    run = _svd_kernel(compute_dtype.name, matrices * count * count * size <= source.SERIAL_LIMIT)
    run(array_argument(rows), array_argument(lengths), array_argument(error_flag), matrices, count, size)
    check_slot(error_flag, LinAlgError, NOT_FINITE)
    long_vectors, short_vectors = rows[..., :size], rows[..., size:]
    left, right = (long_vectors.mT, short_vectors) if m > n else (short_vectors.mT, long_vectors)
    u, v = (evaluate("cast", "a", (x,), dtype, empty(x.shape, dtype)) for x in (left, right))
    return u, evaluate("unscale", "a * b", (lengths, divisor[..., 0]), dtype), v
