"""PyTorch's `linalg` without eigenvalues: norms, products, solvers, decompositions, singular values.

>>> import minigrad as mg
>>> vector_norm(mg.tensor([3.0, 4.0])).item(), norm(mg.eye(4)).item()
(5.0, 2.0)
>>> solve(mg.tensor([[2.0, 1.0], [1.0, 3.0]]), mg.tensor([3.0, 4.0])).tolist()
[1.0, 1.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, cast

from minigrad import functional as F
from minigrad import ops
from minigrad.core.dtypes import DType
from minigrad.core.errors import ArgumentError, LinAlgError, ShapeError
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import (
    Dims,
    cast_tensor,
    check_distinct_dims,
    check_floating,
    check_number,
    check_tensor,
)
from minigrad.functional.creation import arange, eye
from minigrad.functional.inverses import check_right_hand_sides, check_square
from minigrad.functional.linalg import matmul
from minigrad.functional.return_types import SlogdetResult

__all__ = [
    "LinAlgError",
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "multi_dot",
    "norm",
    "slogdet",
    "solve",
    "solve_triangular",
    "svdvals",
    "vander",
    "vecdot",
    "vector_norm",
]
__path__: list[str] = []  # no submodules; `pytorch.import_hooks` handles imports of missing submodules


def vector_norm(
    x: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Return the vector norm ``sum(abs(x) ** ord) ** (1 / ord)`` over `dim`, by default all dimensions.

    Orders inf and -inf are the maximum and minimum of abs(x).
    """
    return F.norm(x, ord, dim, keepdim, dtype=dtype)


def matrix_norm(
    A: Tensor,
    ord: float | str = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Return a norm of the matrices in the two dimensions `dim`, rows and columns.

    "fro" is the Frobenius norm; 1 is the largest absolute column sum and inf the largest absolute row sum, -1 and -inf
    the smallest; 2 is the largest singular value, -2 the smallest and "nuc" their sum; see `svdvals`. Raises
    ArgumentError for other orders.

    >>> import minigrad as mg
    >>> A = mg.tensor([[3.0, 0.0], [0.0, -4.0]])
    >>> matrix_norm(A, 2).item(), matrix_norm(A, "nuc").item()
    (4.0, 7.0)
    """
    x = check_floating(cast_tensor(A, dtype, "matrix_norm"), "matrix_norm")
    rows, columns = check_distinct_dims(dim[0], dim[1], x.ndim, "matrix_norm")
    if ord == "fro":
        return F.norm(x, 2, (rows, columns), keepdim)
    if ord not in (1, -1, 2, -2, inf, -inf, "nuc"):
        raise ArgumentError(f"matrix_norm: order {ord!r} not supported; use 'fro', 'nuc', 1, -1, 2, -2, inf or -inf.")
    if ord in (1, 2, inf) and not x.shape[rows] * x.shape[columns]:
        return F.sum(x, (rows, columns), keepdim)  # the maximum over an empty dimension is 0, as in PyTorch
    if ord in (2, -2, "nuc"):
        values = svdvals(F.movedim(x, (rows, columns), (-2, -1)))
        result = F.sum(values, -1) if ord == "nuc" else F.amax(values, -1) if ord == 2 else F.amin(values, -1)
        keepdim_shape = [1 if k in (rows, columns) else n for k, n in enumerate(x.shape)]
        return result.reshape(keepdim_shape) if keepdim else result
    along, across = (rows, columns) if abs(float(ord)) == 1 else (columns, rows)
    sums = F.sum(F.abs(x), along, keepdim=True)
    result = F.amax(sums, across, keepdim=True) if float(ord) > 0 else F.amin(sums, across, keepdim=True)
    return result if keepdim else F.squeeze(result, (rows, columns))


def norm(
    A: Tensor,
    ord: float | str | None = None,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Return the 2-norm over `dim`, by default of all elements, or a vector or matrix norm of order `ord`.

    If `ord` is given, the norm is a matrix norm if `dim` has two entries, or is None for a 2-D tensor; see
    `matrix_norm`.
    """
    if ord is None:
        return F.norm(A, 2, dim, keepdim, dtype=dtype)
    if isinstance(dim, Sequence) and len(dim) == 2:
        return matrix_norm(A, ord, dim, keepdim, dtype=dtype)
    if dim is None and check_tensor(A, "norm", "A").ndim == 2:
        return matrix_norm(A, ord, (0, 1), keepdim, dtype=dtype)
    if isinstance(ord, str) or (dim is None and A.ndim > 2):
        raise ShapeError(f"norm: ord={ord!r} requires a matrix, or a vector if numeric, but got {dim=} of {A.shape}.")
    return F.norm(A, ord, dim, keepdim, dtype=dtype)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Return the dot products of `x` and `y` along `dim`; the other dimensions broadcast."""
    return F.sum(x * y, dim)


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Return `functional.cross` along `dim`, by default the last."""
    return F.cross(input, other, dim)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return `functional.diagonal`, by default of the last two dimensions."""
    return F.diagonal(A, offset, dim1, dim2)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Return the Vandermonde matrices (…, n, N) of `x` (…, n), the powers 0 to N-1 of its elements. N defaults to n.

    Raises ShapeError for N < 2, as PyTorch does.
    """
    count = N if N is not None else check_tensor(x, "vander", "x").shape[-1] if x.ndim else 1
    if count < 2:
        raise ShapeError(f"vander: N must be greater than 1, but got {count} for x of shape {x.shape}.")
    return (x if x.ndim else x.reshape(1))[..., None] ** arange(count, device=x.device)


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Return the product of two or more matrices, left to right; the first and last may be vectors."""
    if len(tensors) < 2:
        raise ArgumentError(f"multi_dot: expected at least 2 tensors but got {len(tensors)}.")
    product = tensors[0]
    for x in tensors[1:]:
        product = matmul(product, x)
    return product


def matrix_power(A: Tensor, n: int) -> Tensor:
    """Return the `n`-th power of square matrices (…, m, m) by repeated squaring; `n` < 0 inverts them."""
    x = check_tensor(A, "matrix_power", "A")
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"matrix_power: A must be batches of square matrices (…, m, m), but has shape {x.shape}.")
    check_number(n, "matrix_power", "n", integer=True)
    if n < 0:
        x, n = inv(x), -n
    power = eye(x.shape[-1], dtype=x.dtype, device=x.device).expand(*x.shape)
    is_empty = True
    while n:
        if n & 1:
            power, is_empty = (x if is_empty else matmul(power, x)), False
        n >>= 1
        x = matmul(x, x) if n else x
    return cast(Tensor, ops.where(False, x, power)) if is_empty else power  # the gradient of the 0th power is 0


# --- solvers and decompositions ---


def inv(A: Tensor) -> Tensor:
    """Return `functional.inverse`. ``solve(A, B)`` is faster and more accurate than ``inv(A) @ B``."""
    return cast(Tensor, ops.inverse(check_square(A, "inv")))


def det(A: Tensor) -> Tensor:
    """Return `functional.det`."""
    return F.det(A)


def slogdet(A: Tensor) -> SlogdetResult:
    """Return `functional.slogdet`."""
    return F.slogdet(A)


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """Return `functional.cholesky`."""
    return F.cholesky(A, upper)


def svdvals(A: Tensor) -> Tensor:
    """Return the singular values (…, k) of matrices (…, m, n) in descending order, k = min(m, n).

    For repeated or zero singular values the first derivative exists, but not the second. Raises LinAlgError for inf and
    nan. Not suited to large matrices: on ``cpu`` and GPUs one thread per matrix runs a one-sided Jacobi algorithm.

    >>> import minigrad as mg
    >>> svdvals(mg.tensor([[3.0, 0.0], [0.0, -4.0], [0.0, 0.0]])).tolist()
    [4.0, 3.0]
    """
    x = check_floating(A, "svdvals", "A")
    if x.ndim < 2:
        raise ShapeError(f"svdvals: A must be batches of matrices (…, m, n), but has shape {x.shape}.")
    return cast(Tensor, ops.thin_svd(x)[1])


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """Return X with ``A @ X = B``, or ``X @ A = B`` if not `left`, for square A (…, n, n) and B (…, n, k) or (…, k, n).

    With `left`, B may also be a vector (n,), or a batch of vectors (…, n). X has B's shape. Batches broadcast. Raises
    LinAlgError if A is singular, ShapeError for incompatible shapes, DTypeError for integer or different dtypes.
    """
    squares = check_square(A, "solve")
    check_tensor(B, "solve", "B")
    vectors = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    if not left:
        if vectors:
            raise ShapeError(
                f"solve: X @ A = B expects B of shape (…, k, n), but got {B.shape}.\n  Write B[..., None, :]."
            )
        return solve(squares.mT, B.mT).mT
    sides = B[..., None] if vectors else B
    check_right_hand_sides(squares, sides, "solve")
    solution = cast(Tensor, ops.solve(squares, sides))
    return solution[..., 0] if vectors else solution


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """Return X with ``A @ X = B``, or ``X @ A = B`` if not `left`, for triangular A. Its other triangle is not read.

    B is (…, n, k), or (…, k, n). If `unitriangular`, the diagonal of A is taken as 1 and not read. A zero on the
    diagonal raises no error and gives inf or nan.
    """
    squares = check_square(A, "solve_triangular")
    if not left:
        return solve_triangular(squares.mT, B.mT, upper=not upper, unitriangular=unitriangular).mT
    check_right_hand_sides(squares, B, "solve_triangular")
    return cast(Tensor, ops.solve_triangular(squares, B, upper=bool(upper), unitriangular=bool(unitriangular)))


def __getattr__(name: str) -> Any:
    from minigrad.pytorch.import_hooks import resolve_missing

    return resolve_missing(__name__, name)
