"""Elementwise kernels: mostly NumPy functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array
from minigrad.core.dispatch import Kernel, kernel

__all__ = ["ERF_FAR", "ERF_NEAR", "is_large_odd"]


_FUNCTIONS: dict[str, Kernel] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "where": np.where,
    "square": np.square,
    "reciprocal": np.reciprocal,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "expm1": np.expm1,
    "log1p": np.log1p,
    "log2": np.log2,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.round,  # unlike rint, it preserves int dtypes
    "trunc": np.trunc,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "logical_not": np.logical_not,
}
for _op, _function in _FUNCTIONS.items():
    kernel(_op, DEVICE)(_function)


@kernel("sign", DEVICE)
def sign(a: Array) -> Array:
    return a if a.dtype == bool else np.nan_to_num(np.sign(a))  # the sign of nan is 0, as in PyTorch


@kernel("pow", DEVICE)
def pow(a: Array, b: Array) -> Array:
    dtype = np.result_type(a, b)
    if dtype.kind == "f" and is_large_odd(b):
        return np.power(a, b - 1.0) * a if b > 0 else np.power(a, b + 1.0) / a
    if dtype.kind == "f" or np.min(b, initial=0) >= 0:
        return np.power(a, b)
    sign = np.where(b % 2, a, 1)  # a negative integer power is 1 / a truncated to an int
    result = np.where(b >= 0, np.power(a, np.maximum(b, 0)), np.where(np.abs(a) == 1, sign, 0))
    return result.astype(dtype, copy=False)  # `where` promotes a Python int to int64


def is_large_odd(b: Any) -> bool:
    """Return whether `b` is an odd scalar that float32 rounds to an even one, so that a power has the wrong sign."""
    return b.__class__ in (float, int) and abs(float(b)) > 2**24 and float(b) % 2 == 1


@kernel("clamp", DEVICE)
def clamp(a: Array, *, min: float | None, max: float | None) -> Array:
    return np.clip(a, min, max)


@kernel("lerp", DEVICE)
def lerp(a: Array, b: Array, c: Array) -> Array:
    return np.where(np.abs(c) < 0.5, a + c * (b - a), b - (b - a) * (1 - c))  # exact at c = 0 and at c = 1


@kernel("rsqrt", DEVICE)
def rsqrt(a: Array) -> Array:
    return 1 / np.sqrt(a)


# W. J. Cody, Rational Chebyshev approximations for the error function, Math. Comp. 23 (1969), with the coefficients of
# SPECFUN: erf(x) = x * P(x^2) / Q(x^2) up to 0.46875, and erfc(x) = exp(-x^2) * R(x) / S(x) from there to 4. Above 4,
# where erfc is below 2e-8, the second formula is still accurate enough for 1 - erfc. Coefficients start at the highest
# power.
ERF_NEAR = (
    (1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2, 3.20937758913846947e3),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)
ERF_FAR = (
    (
        2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1,
        2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
        1.23033935479799725e3,
    ),
    (
        1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
        3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3,
    ),
)  # fmt: skip


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    """Evaluate a polynomial by Horner's rule, in the dtype of `x`."""
    result = coefficients[0] * x
    for c in coefficients[1:-1]:
        result = (result + c) * x
    return result + coefficients[-1]


def _quotient(polynomials: tuple[Sequence[float], Sequence[float]], x: Array) -> Array:
    numerator, denominator = polynomials
    return _polynomial(numerator, x) / _polynomial(denominator, x)


@kernel("erf", DEVICE)
def erf(a: Array) -> Array:
    magnitude = np.minimum(np.abs(a), 6)  # erf(6) rounds to 1
    squared = np.minimum(magnitude, 0.46875) ** 2
    near = a * _quotient(ERF_NEAR, squared)
    far = 1 - np.exp(-magnitude * magnitude) * _quotient(ERF_FAR, magnitude)
    return np.where(magnitude <= 0.46875, near, np.copysign(far, a))
