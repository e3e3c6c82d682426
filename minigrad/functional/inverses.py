"""Inverses, determinants and Cholesky factors of floating-point square matrices, (…, n, n). See also `mg.linalg`.

All functions raise ShapeError for other shapes and DTypeError for ints. They raise LinAlgError for a matrix that is
singular or not positive definite: immediately on ``cpu`` and ``numpy``, at the next copy to the host on a GPU.
"""

from __future__ import annotations

from math import nan
from typing import Any, cast

from minigrad import ops
from minigrad.core.errors import ShapeError
from minigrad.core.registry import register
from minigrad.core.shapes import broadcast_shapes
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_floating, check_same_dtype
from minigrad.functional.creation import eye
from minigrad.functional.elementwise import where
from minigrad.functional.return_types import SlogdetResult

__all__ = ["check_right_hand_sides", "check_square"]  # used by other modules; registered functions are not listed


def check_square(x: Any, op: str, argument: str = "A") -> Tensor:
    """Return `x`. Raises an error unless it is a batch of floating-point square matrices."""
    matrices = check_floating(x, op, argument)
    if matrices.ndim < 2 or matrices.shape[-1] != matrices.shape[-2]:
        raise ShapeError(
            f"{op}: {argument} must be batches of square matrices, (…, n, n), but got shape {matrices.shape}."
        )
    return matrices


def check_right_hand_sides(A: Tensor, B: Tensor, op: str) -> None:
    """Raise an error unless `B`, (…, n, k), contains right-hand sides for the square matrices `A`, (…, n, n)."""
    check_same_dtype(op, A=A, B=B)
    if B.ndim < 2 or B.shape[-2] != A.shape[-1]:
        raise ShapeError(
            f"{op}: incompatible shapes of A {A.shape} and B {B.shape}: each column of B is a right-hand side of "
            f"{A.shape[-1]} elements."
        )
    broadcast_shapes(A.shape[:-2], B.shape[:-2], op=op)


@register(method=True)
def inverse(input: Tensor) -> Tensor:
    """Return the inverse of each matrix. To solve a linear system, prefer `linalg.solve`.

    >>> import minigrad as mg
    >>> inverse(mg.tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return cast(Tensor, ops.inverse(check_square(input, "inverse", "input")))


@register(method=True)
def det(input: Tensor) -> Tensor:
    """Return the determinants, (…). At singular matrices, only the first derivative (the cofactors) is defined.

    >>> import minigrad as mg
    >>> A = mg.tensor([[1.0, 2.0], [2.0, 4.0]], requires_grad=True)
    >>> det(A).backward()
    >>> A.grad.round(decimals=4).tolist()
    [[4.0, -2.0], [-2.0, 1.0]]
    """
    return cast(Tensor, ops.det(check_square(input, "det", "input")))


@register(method=True)
def slogdet(input: Tensor) -> SlogdetResult:
    """Return the sign of each determinant, -1, 0 or 1, and the log of its absolute value, without overflow."""
    return SlogdetResult(*ops.slogdet(check_square(input, "slogdet", "input")))


@register(method=True)
def logdet(input: Tensor) -> Tensor:
    """Return the log of each determinant: nan if it is negative, -inf if 0."""
    sign, logarithm = slogdet(input)
    return where(sign < 0, nan, logarithm)


@register(method=True)
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Return the lower triangular L with ``A = L @ L.mT``, or its transpose if `upper`. Reads only that triangle.

    Raises LinAlgError for matrices that are not positive definite.

    >>> import minigrad as mg
    >>> cholesky(mg.tensor([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    matrices = check_square(input, "cholesky", "input")
    return ops.cholesky(matrices.mT).mT if upper else cast(Tensor, ops.cholesky(matrices))


@register(method=True)
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """Solve ``L @ L.mT @ X = input``, (…, n, k), for X, where L is `input2`, or its transpose if `upper`."""
    factor = check_square(input2, "cholesky_solve", "input2")
    check_right_hand_sides(factor, input, "cholesky_solve")
    lower_factor, upper_factor = (factor.mT, factor) if upper else (factor, factor.mT)
    intermediate = ops.solve_triangular(lower_factor, input, upper=False, unitriangular=False)
    return cast(Tensor, ops.solve_triangular(upper_factor, intermediate, upper=True, unitriangular=False))


@register(method=True)
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """Return the inverse of ``L @ L.mT``, where L is `input`, or its transpose if `upper`."""
    factor = check_square(input, "cholesky_inverse", "input")
    return cholesky_solve(eye(factor.shape[-1], dtype=factor.dtype, device=factor.device), factor, upper)
