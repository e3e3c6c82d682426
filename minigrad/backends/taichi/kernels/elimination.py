"""Gaussian elimination, for solutions, inverses, determinants and Cholesky factors.

Rows of the augmented matrix have m elements, of which the first n are the matrix. Step k swaps the row with the largest
pivot in column k to row k, and subtracts multiples of row k from the rows below to clear column k; with `above`, also
from the rows above (Gauss-Jordan), so that no back substitution is needed. A small matrix is processed by one thread,
with all steps in one launch. A large matrix requires one launch per step, parallel over rows, or over elements on a
GPU. On ``cpu``, rows are padded to full vectors, with arbitrary values, so that row updates are vectorised. See Golub,
Van Loan, "Matrix Computations", 3.4.
"""

from __future__ import annotations

from math import prod
from textwrap import indent
from typing import Any

import numpy as np

from minigrad.backends.numpy.linalg import NOT_DEFINITE, SINGULAR
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.tiles import LANES
from minigrad.backends.taichi.kernels.elementwise import arange, array_argument, copy_into, evaluate, full
from minigrad.backends.taichi.kernels.rows import broadcast_contiguous
from minigrad.backends.taichi.runtime.array import TAICHI, empty
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.deferred_checks import check_slot, error_slot
from minigrad.backends.taichi.runtime.driver import check_serial_iterations
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.core.dispatch import get_kernels, kernel
from minigrad.core.errors import LinAlgError

__all__: list[str] = []

MAX_SERIAL, MAX_SERIAL_GPU = 1 << 28, 8192  # maximum number of operations, n * n * m, for one thread per matrix

# Partial pivoting: among rows k and below, find the one with the largest element in column k; flag a zero pivot.
_PARTIAL_PIVOT = """    best = k
    max_value = ti.abs(w[(q * n + k) * m + k])
    for i in range(k + 1, n):
        value = ti.abs(w[(q * n + i) * m + k])
        if value > max_value:
            best = i
            max_value = value
    if best != k:
        signs[q] = -signs[q]
    if max_value == 0:
        error[0] = 1
"""
_REPLACE_ZERO_PIVOT = """        w[(q * n + k) * m + k] = min_pivots[q]
"""
_CHECK_POSITIVE = """    best = k
    if (w[(q * n + k) * m + k] > 0) == 0:
        error[0] = 1
"""
_PIVOTS = {
    "eliminate": _PARTIAL_PIVOT,
    "eliminate_regular": _PARTIAL_PIVOT + _REPLACE_ZERO_PIVOT,
    "eliminate_unpivoted": _CHECK_POSITIVE,
}
# Functions used by both kernels. They do not clear column k itself, since nothing reads it again.
_FUNCTIONS = """@ti.func
def pivot(w: ti.template(), signs: ti.template(), min_pivots: ti.template(), error: ti.template(), q, k, n, m):
    if k == 0:
        signs[q] = 1
{pivot}    return best


@ti.func
def multiplier(w: ti.template(), q, i, k, n, m):
    factor = w[(q * n + k) * m + k]
    return ti.select(factor == 0, 0, w[(q * n + i) * m + k] / ti.select(factor == 0, 1, factor))


@ti.func
def swap(w: ti.template(), first, second):
    saved = w[first]
    w[first] = w[second]
    w[second] = saved


"""
_PARAMS = (
    "w_: {a}, v_: {v}, signs_: {a}, min_pivots_: {a}, error_: {i}, pivot_rows_: {i}, "
    "matrices: ti.i32, n: ti.i32, m: ti.i32, above: ti.i32"
)
_ALL_STEPS = """        for k in range(n):
            best = pivot(w_, signs_, min_pivots_, error_, t, k, n, m)
            if best != k:
                for j in range(k, m):
                    swap(w_, (t * n + k) * m + j, (t * n + best) * m + j)
            for i in range(ti.select(above == 1, 0, k + 1), n):
                if i != k:
                    factor = multiplier(w_, t, i, k, n, m)
{less}"""
# Subtract `by` times row k from a row, right of column k: scalar up to a vector boundary, then vectorised.
_SUBTRACT_ROW = """edge = ti.min((k + {lanes}) // {lanes} * {lanes}, m)
for j in range(k + 1, edge):
    w_[({q} * n + i) * m + j] = w_[({q} * n + i) * m + j] - factor * w_[({q} * n + k) * m + j]
factors = ti.Vector([factor for j in range({lanes})])
target, pivot_row = ({q} * n + i) * m // {lanes}, ({q} * n + k) * m // {lanes}
for j in range(edge // {lanes}, m // {lanes}):
    v_[target + j] = v_[target + j] - v_[pivot_row + j] * factors
"""
_FIND_PIVOTS = """    for q in range(matrices):
        pivot_rows_[q] = pivot(w_, signs_, min_pivots_, error_, q, k, n, m)
"""
_SWAP_ROWS = """    for s in range(matrices * (m - k)):
        matrix, j = s // (m - k), k + s % (m - k)
        if pivot_rows_[matrix] != k:
            swap(w_, (matrix * n + k) * m + j, (matrix * n + pivot_rows_[matrix]) * m + j)
"""
_UPDATE_ROW = """        q, i = t // n, t % n
        if (i > k) | ((above == 1) & (i != k)):
            factor = multiplier(w_, q, i, k, n, m)
{less}"""
_UPDATE_ELEMENT = (
    "matrices * n * (m - k - 1)",
    """        j = k + 1 + t % (m - k - 1)
        i = t // (m - k - 1) % n
        q = t // (m - k - 1) // n
        if (i > k) | ((above == 1) & (i != k)):
            factor = multiplier(w_, q, i, k, n, m)
            w_[(q * n + i) * m + j] = w_[(q * n + i) * m + j] - factor * w_[(q * n + k) * m + j]
""",
)


def _vector_width(dtype: Any) -> int:
    return LANES[np.dtype(dtype)] if source.VECTORIZED else 1


@arch_cache()
def _kernels(name: str, dtype: str, serial: bool, lanes: int) -> Any:
    """Compile a kernel that runs all steps, for small matrices, and one that runs a single step, for large matrices."""
    parts = _FUNCTIONS.format(pivot=_PIVOTS[name])
    params = _PARAMS.format(
        a=source.array_annotation(dtype), v=source.array_annotation(dtype, lanes), i=source.array_annotation("int32")
    )
    walk = source.parallel_loop("matrices", _ALL_STEPS.format(less=_subtract_row_source("t", lanes, 20)), serial)
    all_steps_source = f"{parts}@ti.kernel\ndef {name}_kernel({params}):\n{walk}"
    once = "" if lanes == 1 else source.SERIALIZE
    count, rest = (
        _UPDATE_ELEMENT
        if lanes == 1
        else ("matrices * n", _UPDATE_ROW.format(less=_subtract_row_source("q", lanes, 12)))
    )
    update_loop = source.parallel_loop(count, rest, False)
    one_step_source = (
        f"{parts}@ti.kernel\ndef {name}_step_kernel({params}, k: ti.i32):\n"
        f"{once}{_FIND_PIVOTS}{once}{_SWAP_ROWS}{update_loop}"
    )
    return get_kernel(name, all_steps_source, "aaaaaaiiii"), get_kernel(f"{name}_step", one_step_source, "aaaaaaiiiii")


def _subtract_row_source(matrix: str, lanes: int, spaces: int) -> str:
    """Instantiate `_SUBTRACT_ROW`, without vectors on a GPU."""
    code = _SUBTRACT_ROW.format(q=matrix, lanes=lanes)
    if lanes == 1:
        code = "".join(code.splitlines(True)[1:3]).replace("edge", "m")
    return indent(code, " " * spaces)


def _eliminate(w: Any, error_flag: Any, above: bool, name: str = "eliminate", min_pivots: Any = None) -> Any:
    """Reduce `w`, (…, n, m), to triangular or, with `above`, diagonal form, in place; return the permutation signs."""
    n, m = w.shape[-2:]
    batch = w.shape[:-2]
    matrices = prod(batch)
    if not w.size:
        return full(batch, w.dtype, 1)
    signs = empty(batch, w.dtype)
    min_pivots = signs if min_pivots is None else min_pivots
    arrays = [array_argument(x) for x in (w, w, signs, min_pivots, error_flag, empty(batch, np.int32))]
    steps, gpu = n * n * m, not source.VECTORIZED
    run_all_steps, run_step = _kernels(
        name, w.dtype.name, matrices * steps <= source.SERIAL_LIMIT, _vector_width(w.dtype)
    )
    if steps <= (MAX_SERIAL_GPU if gpu else MAX_SERIAL) or (matrices >= source.CORES and not gpu):
        run_all_steps(*arrays, matrices, n, m, above)
    else:
        for k in range(n):
            run_step(*arrays, matrices, n, m, above, k)
    return signs


def _empty_rows(batch: Any, n: int, m: int, dtype: Any) -> Any:
    """Allocate `n` rows of `m` elements, padded to full vectors."""
    lanes = _vector_width(dtype)
    return empty((*batch, n, -(-m // lanes) * lanes), dtype)


def _augment(a: Any, b: Any) -> Any:
    """Return the augmented matrix of `a` (…, n, n) and the right-hand sides `b` (…, n, k)."""
    n, k = b.shape[-2:]
    w = _empty_rows(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), n, n + k, np.result_type(a, b))
    copy_into(w[..., :n], a)
    copy_into(w[..., n : n + k], b)
    return w


def _identity(n: int, dtype: Any) -> Any:
    return evaluate("eye", "ti.select(a == b, 1, 0)", (arange(n)[:, None], arange(n)), dtype)


def _diagonal(w: Any) -> Any:
    return get_kernels("diagonal")[TAICHI](w, offset=0, dim1=w.ndim - 2, dim2=w.ndim - 1)


def _product_along_last(x: Any) -> Any:
    return get_kernels("prod")[TAICHI](x, dim=x.ndim - 1, keepdim=False)


def _solve_augmented(a: Any, b: Any, name: str) -> Any:
    w = _augment(a, b)
    error_flag = error_slot(LinAlgError, SINGULAR, name)
    _eliminate(w, error_flag, True)
    check_slot(error_flag, LinAlgError, SINGULAR, name)
    n = a.shape[-1]
    scaled_solution = w[..., n : n + b.shape[-1]]
    return evaluate(
        "div", "a / b", (scaled_solution, _diagonal(w)[..., None]), w.dtype, empty(scaled_solution.shape, w.dtype)
    )


@kernel("solve", TAICHI)
def solve(a: Any, b: Any) -> Any:
    return _solve_augmented(a, b, "solve")


@kernel("inverse", TAICHI)
def inverse(a: Any) -> Any:
    return _solve_augmented(a, _identity(a.shape[-1], a.dtype), "inverse")


def _pivots_and_sign(a: Any) -> tuple[Any, Any]:
    """Return the pivots of `a` and the sign of its row permutation."""
    w = _empty_rows(a.shape[:-2], a.shape[-1], a.shape[-1], a.dtype)
    copy_into(w[..., : a.shape[-1]], a)
    return _diagonal(w), _eliminate(w, empty((1,), np.int32), False)


@kernel("det", TAICHI)
def det(a: Any) -> Any:
    pivots, signs = _pivots_and_sign(a)
    return signs * _product_along_last(pivots)


@kernel("slogdet", TAICHI)
def slogdet(a: Any) -> tuple[Any, Any]:
    pivots, signs = _pivots_and_sign(a)
    logs = get_kernels("log")[TAICHI](abs(pivots))
    total = get_kernels("sum")[TAICHI](logs, dim=(logs.ndim - 1,), keepdim=False)
    return signs * _product_along_last(get_kernels("sign")[TAICHI](pivots)), total


@kernel("cofactor", TAICHI)
def cofactor(a: Any) -> Any:
    """Compute det(A) A^-T, replacing zero pivots by one ulp of the largest element of A. A cofactor is a sum of
    products of elements of A, so that only its last digit changes."""
    if not a.size:
        return empty(a.shape, a.dtype)
    last = (a.ndim - 2, a.ndim - 1)
    largest = get_kernels("amax")[TAICHI](abs(a), dim=last, keepdim=False)
    min_pivots = evaluate("min_pivots", f"ti.select(a > 0, a, 1) * {np.finfo(a.dtype).eps}", (largest,), a.dtype)
    w = _augment(a, _identity(a.shape[-1], a.dtype))
    signs = _eliminate(w, empty((1,), np.int32), True, "eliminate_regular", min_pivots)
    pivots = _diagonal(w)
    factors = (
        w[..., a.shape[-1] : 2 * a.shape[-1]].mT,
        pivots[..., None, :],
        (signs * _product_along_last(pivots))[..., None, None],
    )
    return evaluate("cofactor", "a / b * c", factors, a.dtype, empty(a.shape, a.dtype))


@kernel("cholesky", TAICHI)
def cholesky(a: Any) -> Any:
    """Factor A = L D Lᵀ: elimination of a symmetric matrix yields D Lᵀ."""
    rows, columns = arange(a.shape[-1])[:, None], arange(a.shape[-1])
    w = _empty_rows(a.shape[:-2], a.shape[-1], a.shape[-1], a.dtype)
    factor = w[..., : a.shape[-1]]
    evaluate("mirrored", "ti.select(c >= d, a, b)", (a, a.mT, rows, columns), a.dtype, factor)
    error_flag = error_slot(LinAlgError, NOT_DEFINITE)
    _eliminate(w, error_flag, False, "eliminate_unpivoted")
    check_slot(error_flag, LinAlgError, NOT_DEFINITE)
    operands = (factor.mT, _diagonal(w)[..., None, :], rows, columns)
    return evaluate("cholesky", "ti.select(c >= d, a / ti.sqrt(b), 0)", operands, a.dtype, empty(a.shape, a.dtype))


# --- substitution ---


@arch_cache()
def _substitution_kernel(dtype: str, upper: bool, unitriangular: bool, serial: bool) -> Any:
    """Compile substitution, with one thread per column of the right-hand sides."""
    row = "n - 1 - {}" if upper else "{}"
    body = f"""        q, c = t // m, t % m
        for step in range(n):
            k = {row.format("step")}
            s = ti.cast(b_[(q * n + k) * m + c], ti.f64)
            for j in range(step):
                i = {row.format("j")}
                s = s - a_[(q * n + k) * n + i] * ti.cast(y_[(q * n + i) * m + c], ti.f64)
            y_[(q * n + k) * m + c] = ti.cast(s{"" if unitriangular else " / a_[(q * n + k) * n + k]"}, y_.element_type)
""".replace("y_.element_type", f"ti.{source.TAICHI_NAMES[dtype]}")
    name = f"substitute_{'upper' if upper else 'lower'}{'_unit' if unitriangular else ''}"
    params = [source.KernelArgument("a", letter, dtype) for letter in "ab"]
    return get_kernel(
        name,
        *source.wrap_kernel(
            name, params, dtype, dtype, ["matrices", "n", "m"], "matrices * m", body, serial, has_long_iterations=True
        ),
    )


@kernel("solve_triangular", TAICHI)
def solve_triangular(a: Any, b: Any, *, upper: bool, unitriangular: bool) -> Any:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    n, m = b.shape[-2:]
    dtype = np.result_type(a, b)
    a, b = (broadcast_contiguous(x, (*batch, *x.shape[-2:])) for x in (a, b))
    y = empty(b.shape, dtype)
    if y.size:
        check_serial_iterations("solve_triangular", n * n // 2)
        run = _substitution_kernel(dtype.name, upper, unitriangular, y.size * n <= source.SERIAL_LIMIT)
        run(array_argument(y), array_argument(a), array_argument(b), prod(batch), n, m)
    return y
