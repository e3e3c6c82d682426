"""Square matrices, (…, n, n) of floats: inverses, determinants, Cholesky's factors. What has only `mg.linalg` is there.

All raise ShapeError for other shapes and DTypeError for ints. Where a matrix has no inverse, or no such factor, it is
LinAlgError: on ``cpu`` and ``numpy`` at once, on a GPU when numbers next come to the host.
"""

from __future__ import annotations

from math import nan
from typing import Any, cast

from minigrad import ops
from minigrad.core.errors import ShapeError
from minigrad.core.registry import register
from minigrad.core.shapes import broadcast_shapes
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_same_type, floats_of
from minigrad.functional.creation import eye
from minigrad.functional.elementwise import where
from minigrad.functional.return_types import SignedLogarithm


@register
def squares_of(x: Any, op: str, argument: str = "A") -> Tensor:
    """`x`, which is to hold square matrices of floats."""
    given = floats_of(x, op, argument)
    if given.ndim < 2 or given.shape[-1] != given.shape[-2]:
        raise ShapeError(f"{op}: {argument} holds square matrices, (…, n, n), and has shape {given.shape}.")
    return given


@register
def sides_of(A: Tensor, B: Tensor, op: str) -> None:
    """Raise unless `B` holds right sides, (…, n, k), for the square matrices `A`, (…, n, n)."""
    check_same_type(op, A=A, B=B)
    if B.ndim < 2 or B.shape[-2] != A.shape[-1]:
        raise ShapeError(
            f"{op}: A has shape {A.shape}, and B {B.shape}: each column of B is a right side, of {A.shape[-1]} numbers."
        )
    broadcast_shapes(A.shape[:-2], B.shape[:-2], op=op)


@register(method=True)
def inverse(input: Tensor) -> Tensor:
    """The matrices whose product with those of `input` is 1 on the diagonal, 0 elsewhere. To solve, `linalg.solve`.

    >>> import minigrad as mg
    >>> inverse(mg.tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return cast(Tensor, ops.inverse(squares_of(input, "inverse", "input")))


@register(method=True)
def det(input: Tensor) -> Tensor:
    """The determinants, (…). Its slope, the cofactors, is there for singular matrices too; a second one is not.

    >>> import minigrad as mg
    >>> A = mg.tensor([[1.0, 2.0], [2.0, 4.0]], requires_grad=True)
    >>> det(A).backward()
    >>> A.grad.round(decimals=4).tolist()
    [[4.0, -2.0], [-2.0, 1.0]]
    """
    return cast(Tensor, ops.det(squares_of(input, "det", "input")))


@register(method=True)
def slogdet(input: Tensor) -> SignedLogarithm:
    """The sign of each determinant, -1, 0 or 1, and the logarithm of its amount: no product that could overflow."""
    return SignedLogarithm(*ops.slogdet(squares_of(input, "slogdet", "input")))


@register(method=True)
def logdet(input: Tensor) -> Tensor:
    """The logarithm of each determinant: nan of one below 0, -inf of 0."""
    sign, logarithm = slogdet(input)
    return where(sign < 0, nan, logarithm)


@register(method=True)
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The lower triangular L of ``A = L @ L.mT``, or with `upper` its transpose; of A only that half is read.

    Raises LinAlgError for matrices that are not positive definite.

    >>> import minigrad as mg
    >>> cholesky(mg.tensor([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    given = squares_of(input, "cholesky", "input")
    return ops.cholesky(given.mT).mT if upper else cast(Tensor, ops.cholesky(given))


@register(method=True)
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """X of ``L @ L.mT @ X = input``, (…, n, k), where L is `input2`, or with `upper` its transpose."""
    half = squares_of(input2, "cholesky_solve", "input2")
    sides_of(half, input, "cholesky_solve")
    below, above = (half.mT, half) if upper else (half, half.mT)
    first = ops.solve_triangular(below, input, upper=False, unitriangular=False)
    return cast(Tensor, ops.solve_triangular(above, first, upper=True, unitriangular=False))


@register(method=True)
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of ``L @ L.mT``, where L is `input`, or with `upper` its transpose."""
    half = squares_of(input, "cholesky_inverse", "input")
    return cholesky_solve(eye(half.shape[-1], dtype=half.dtype, device=half.device), half, upper)
