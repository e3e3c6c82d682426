"""Gaussian elimination, for solutions, inverses, determinants and Cholesky factors.

Rows of the augmented matrix have m elements, of which the first n are the matrix. Step k swaps the row with the largest
pivot in column k to row k, and subtracts multiples of row k from the rows below to clear column k; with `above`, from
the rows above too (Gauss-Jordan), so that no back substitution is needed. Small matrices take one thread each, with all
steps in one launch. Large ones take one launch per step, parallel over rows, or on a GPU over elements. On ``cpu``,
rows are padded to whole vectors, with arbitrary values, so that row updates are vectorised. Golub, Van Loan, "Matrix
Computations", 3.4.
"""

from __future__ import annotations

from math import prod
from textwrap import indent
from typing import Any

import numpy as np

from minigrad.backends.numpy.linalg import NOT_DEFINITE, SINGULAR
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.tiles import LANES
from minigrad.backends.taichi.kernels.elementwise import arange, computed, filled, pointer, put
from minigrad.backends.taichi.kernels.rows import stretched_to
from minigrad.backends.taichi.runtime.array import DEVICE, empty
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.checks import doubt, settle
from minigrad.backends.taichi.runtime.driver import check_rounds
from minigrad.backends.taichi.runtime.kernel import compiled
from minigrad.core.dispatch import kernel, kernels_of
from minigrad.core.errors import LinAlgError

__all__: list[str] = []

SMALL, SMALL_ON_GPU = 1 << 28, 8192  # maximum operations, n * n * m, for one thread per matrix

# Partial pivoting: find the row from k on with the largest element in column k; flag a zero pivot.
_LARGEST = """    best = k
    top = ti.abs(w[(q * n + k) * m + k])
    for i in range(k + 1, n):
        here = ti.abs(w[(q * n + i) * m + k])
        if here > top:
            best = i
            top = here
    if best != k:
        signs[q] = -signs[q]
    if top == 0:
        wrong[0] = 1
"""
_NOT_ZERO = """        w[(q * n + k) * m + k] = least[q]
"""
_POSITIVE = """    best = k
    if (w[(q * n + k) * m + k] > 0) == 0:
        wrong[0] = 1
"""
_PIVOTS = {"eliminate": _LARGEST, "eliminate_regular": _LARGEST + _NOT_ZERO, "eliminate_as_it_is": _POSITIVE}
# Functions of both kernels. They do not clear column k itself, since nothing reads it again.
_PARTS = """@ti.func
def pivot(w: ti.template(), signs: ti.template(), least: ti.template(), wrong: ti.template(), q, k, n, m):
    if k == 0:
        signs[q] = 1
{pivot}    return best


@ti.func
def share(w: ti.template(), q, i, k, n, m):
    by = w[(q * n + k) * m + k]
    return ti.select(by == 0, 0, w[(q * n + i) * m + k] / ti.select(by == 0, 1, by))


@ti.func
def swap(w: ti.template(), one, other):
    kept = w[one]
    w[one] = w[other]
    w[other] = kept


"""
_TAKES = (
    "w_: {a}, v_: {v}, signs_: {a}, least_: {a}, wrong_: {i}, places_: {i}, "
    "matrices: ti.i32, n: ti.i32, m: ti.i32, above: ti.i32"
)
_ALONE = """        for k in range(n):
            best = pivot(w_, signs_, least_, wrong_, t, k, n, m)
            if best != k:
                for j in range(k, m):
                    swap(w_, (t * n + k) * m + j, (t * n + best) * m + j)
            for i in range(ti.select(above == 1, 0, k + 1), n):
                if i != k:
                    by = share(w_, t, i, k, n, m)
{less}"""
# Subtract `by` times row k from a row, right of column k: scalar up to a vector boundary, then vectorised.
_LESS = """edge = ti.min((k + {lanes}) // {lanes} * {lanes}, m)
for j in range(k + 1, edge):
    w_[({q} * n + i) * m + j] = w_[({q} * n + i) * m + j] - by * w_[({q} * n + k) * m + j]
wide = ti.Vector([by for j in range({lanes})])
to, of = ({q} * n + i) * m // {lanes}, ({q} * n + k) * m // {lanes}
for j in range(edge // {lanes}, m // {lanes}):
    v_[to + j] = v_[to + j] - v_[of + j] * wide
"""
_CHOOSE = """    for q in range(matrices):
        places_[q] = pivot(w_, signs_, least_, wrong_, q, k, n, m)
"""
_SWAP = """    for s in range(matrices * (m - k)):
        place, j = s // (m - k), k + s % (m - k)
        if places_[place] != k:
            swap(w_, (place * n + k) * m + j, (place * n + places_[place]) * m + j)
"""
_ROW = """        q, i = t // n, t % n
        if (i > k) | ((above == 1) & (i != k)):
            by = share(w_, q, i, k, n, m)
{less}"""
_BY_NUMBER = (
    "matrices * n * (m - k - 1)",
    """        j = k + 1 + t % (m - k - 1)
        i = t // (m - k - 1) % n
        q = t // (m - k - 1) // n
        if (i > k) | ((above == 1) & (i != k)):
            by = share(w_, q, i, k, n, m)
            w_[(q * n + i) * m + j] = w_[(q * n + i) * m + j] - by * w_[(q * n + k) * m + j]
""",
)


def _lanes(dtype: Any) -> int:
    """Return the vector width of row updates."""
    return LANES[np.dtype(dtype)] if source.VECTORIZED else 1


@cached()
def _texts(name: str, dtype: str, serial: bool, lanes: int) -> Any:
    """Compile the kernel of all steps, for small matrices, and that of one step, for large ones."""
    parts = _PARTS.format(pivot=_PIVOTS[name])
    takes = _TAKES.format(a=source.array_of(dtype), v=source.array_of(dtype, lanes), i=source.array_of("int32"))
    walk = source.spread("matrices", _ALONE.format(less=_less("t", lanes, 20)), serial)
    alone = f"{parts}@ti.kernel\ndef {name}_kernel({takes}):\n{walk}"
    once = "" if lanes == 1 else source.ONCE
    count, rest = _BY_NUMBER if lanes == 1 else ("matrices * n", _ROW.format(less=_less("q", lanes, 12)))
    clear = source.spread(count, rest, False)
    step = f"{parts}@ti.kernel\ndef {name}_step_kernel({takes}, k: ti.i32):\n{once}{_CHOOSE}{once}{_SWAP}{clear}"
    return compiled(name, alone, "aaaaaaiiii"), compiled(f"{name}_step", step, "aaaaaaiiiii")


def _less(matrix: str, lanes: int, spaces: int) -> str:
    """Instantiate `_LESS`; on a GPU without vectors."""
    text = _LESS.format(q=matrix, lanes=lanes)
    if lanes == 1:
        text = "".join(text.splitlines(True)[1:3]).replace("edge", "m")
    return indent(text, " " * spaces)


def _eliminated(w: Any, wrong: Any, above: bool, name: str = "eliminate", least: Any = None) -> Any:
    """Reduce `w`, (…, n, m), to triangular or, with `above`, diagonal form, in place; return the permutation signs."""
    n, m = w.shape[-2:]
    batch = w.shape[:-2]
    matrices = prod(batch)
    if not w.size:
        return filled(batch, w.dtype, 1)
    signs = empty(batch, w.dtype)
    least = signs if least is None else least
    arrays = [pointer(x) for x in (w, w, signs, least, wrong, empty(batch, np.int32))]
    steps, gpu = n * n * m, not source.VECTORIZED
    alone, step = _texts(name, w.dtype.name, matrices * steps <= source.SERIAL, _lanes(w.dtype))
    if steps <= (SMALL_ON_GPU if gpu else SMALL) or (matrices >= source.CORES and not gpu):
        alone(*arrays, matrices, n, m, above)
    else:
        for k in range(n):
            step(*arrays, matrices, n, m, above, k)
    return signs


def _rows(batch: Any, n: int, m: int, dtype: Any) -> Any:
    """Allocate `n` rows of `m` elements, padded to whole vectors."""
    lanes = _lanes(dtype)
    return empty((*batch, n, -(-m // lanes) * lanes), dtype)


def _beside(a: Any, b: Any) -> Any:
    """Return the augmented matrix of `a` (…, n, n) and the right-hand sides `b` (…, n, k)."""
    n, k = b.shape[-2:]
    w = _rows(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), n, n + k, np.result_type(a, b))
    put(w[..., :n], a)
    put(w[..., n : n + k], b)
    return w


def _ones(n: int, dtype: Any) -> Any:
    return computed("ones", "ti.select(a == b, 1, 0)", (arange(n)[:, None], arange(n)), dtype)


def _diagonal(w: Any) -> Any:
    return kernels_of("diagonal")[DEVICE](w, offset=0, dim1=w.ndim - 2, dim2=w.ndim - 1)


def _product(x: Any) -> Any:
    """Return the product along the last dimension."""
    return kernels_of("prod")[DEVICE](x, dim=x.ndim - 1, keepdim=False)


def _solved(a: Any, b: Any, name: str) -> Any:
    w = _beside(a, b)
    wrong = doubt(LinAlgError, SINGULAR, name)
    _eliminated(w, wrong, True)
    settle(wrong, LinAlgError, SINGULAR, name)
    n = a.shape[-1]
    found = w[..., n : n + b.shape[-1]]
    return computed("div", "a / b", (found, _diagonal(w)[..., None]), w.dtype, empty(found.shape, w.dtype))


@kernel("solve", DEVICE)
def solve(a: Any, b: Any) -> Any:
    return _solved(a, b, "solve")


@kernel("inverse", DEVICE)
def inverse(a: Any) -> Any:
    return _solved(a, _ones(a.shape[-1], a.dtype), "inverse")


def _triangular(a: Any) -> tuple[Any, Any]:
    """Return the pivots of `a` and the sign of its row permutation."""
    w = _rows(a.shape[:-2], a.shape[-1], a.shape[-1], a.dtype)
    put(w[..., : a.shape[-1]], a)
    return _diagonal(w), _eliminated(w, empty((1,), np.int32), False)


@kernel("det", DEVICE)
def det(a: Any) -> Any:
    pivots, signs = _triangular(a)
    return signs * _product(pivots)


@kernel("slogdet", DEVICE)
def slogdet(a: Any) -> tuple[Any, Any]:
    pivots, signs = _triangular(a)
    logs = kernels_of("log")[DEVICE](abs(pivots))
    total = kernels_of("sum")[DEVICE](logs, dim=(logs.ndim - 1,), keepdim=False)
    return signs * _product(kernels_of("sign")[DEVICE](pivots)), total


@kernel("cofactor", DEVICE)
def cofactor(a: Any) -> Any:
    """Compute det(A) A^-T, replacing zero pivots by one ulp of the largest element of A. A cofactor is a sum of
    products of elements of A, so that this changes only its last digit."""
    if not a.size:
        return empty(a.shape, a.dtype)
    last = (a.ndim - 2, a.ndim - 1)
    most = kernels_of("amax")[DEVICE](abs(a), dim=last, keepdim=False)
    least = computed("least", f"ti.select(a > 0, a, 1) * {np.finfo(a.dtype).eps}", (most,), a.dtype)
    w = _beside(a, _ones(a.shape[-1], a.dtype))
    signs = _eliminated(w, empty((1,), np.int32), True, "eliminate_regular", least)
    pivots = _diagonal(w)
    found = (
        w[..., a.shape[-1] : 2 * a.shape[-1]].mT,
        pivots[..., None, :],
        (signs * _product(pivots))[..., None, None],
    )
    return computed("cofactor", "a / b * c", found, a.dtype, empty(a.shape, a.dtype))


@kernel("cholesky", DEVICE)
def cholesky(a: Any) -> Any:
    """Factor A = L D Lᵀ: elimination of a symmetric matrix yields D Lᵀ."""
    rows, columns = arange(a.shape[-1])[:, None], arange(a.shape[-1])
    w = _rows(a.shape[:-2], a.shape[-1], a.shape[-1], a.dtype)
    factor = w[..., : a.shape[-1]]
    computed("mirrored", "ti.select(c >= d, a, b)", (a, a.mT, rows, columns), a.dtype, factor)
    wrong = doubt(LinAlgError, NOT_DEFINITE)
    _eliminated(w, wrong, False, "eliminate_as_it_is")
    settle(wrong, LinAlgError, NOT_DEFINITE)
    left = (factor.mT, _diagonal(w)[..., None, :], rows, columns)
    return computed("cholesky", "ti.select(c >= d, a / ti.sqrt(b), 0)", left, a.dtype, empty(a.shape, a.dtype))


# --- substitution ---


@cached()
def _substituting(dtype: str, upper: bool, unitriangular: bool, serial: bool) -> Any:
    """Compile substitution, with one thread per column of the right-hand sides."""
    row = "n - 1 - {}" if upper else "{}"
    body = f"""        q, c = t // m, t % m
        for known in range(n):
            k = {row.format("known")}
            s = ti.cast(b_[(q * n + k) * m + c], ti.f64)
            for j in range(known):
                i = {row.format("j")}
                s = s - a_[(q * n + k) * n + i] * ti.cast(y_[(q * n + i) * m + c], ti.f64)
            y_[(q * n + k) * m + c] = ti.cast(s{"" if unitriangular else " / a_[(q * n + k) * n + k]"}, y_.element_type)
""".replace("y_.element_type", f"ti.{source.TI[dtype]}")
    name = f"substitute_{'upper' if upper else 'lower'}{'_unit' if unitriangular else ''}"
    takes = [source.Taken("a", letter, dtype) for letter in "ab"]
    return compiled(
        name,
        *source.wrapped(name, takes, dtype, dtype, ["matrices", "n", "m"], "matrices * m", body, serial, long=True),
    )


@kernel("solve_triangular", DEVICE)
def solve_triangular(a: Any, b: Any, *, upper: bool, unitriangular: bool) -> Any:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    n, m = b.shape[-2:]
    dtype = np.result_type(a, b)
    a, b = (stretched_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
    y = empty(b.shape, dtype)
    if y.size:
        check_rounds("solve_triangular", n * n // 2)
        run = _substituting(dtype.name, upper, unitriangular, y.size * n <= source.SERIAL)
        run(pointer(y), pointer(a), pointer(b), prod(batch), n, m)
    return y
