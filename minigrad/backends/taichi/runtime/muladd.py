"""Source lines for fused multiply-add. They call muladd.ll where it is supported, and otherwise use two operations."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence

__all__ = ["FUSED", "fma_line", "fma_vectors_line", "horner", "polynomial_lines", "sum_line"]

FUSED = sys.platform == "linux" and platform.machine() == "x86_64"  # the target of muladd.ll
_TI = {"float32": "f32", "float64": "f64"}


def fma_line(total: str, vector: str, scalar: str, dtype: str, fused: bool = FUSED) -> str:
    """Return the source line for ``total += vector * scalar``. The arguments are names of variables."""
    return f"muladd.{_TI[dtype]}({total}, {scalar}, {vector})" if fused else f"{total} += {vector} * {scalar}"


def fma_vectors_line(totals: str, a: str, b: str, dtype: str, fused: bool = FUSED) -> str:
    """Return the source line that adds the elementwise product of the vectors `a` and `b` to `totals`."""
    return f"muladd.{_TI[dtype]}_vectors({totals}, {a}, {b})" if fused else f"{totals} += {a} * {b}"


def sum_line(total: str, totals: str, dtype: str) -> str:
    """Return the source line that assigns the sum of the elements of `totals` to the existing variable `total`."""
    return f"muladd.{_TI[dtype]}_sum({total}, {totals})" if FUSED else f"{total} = {totals}.sum()"


def horner(coefficients: Sequence[float], x: str) -> str:
    """Return an expression for a polynomial in `x` by Horner's method. `coefficients` start at the highest power.

    >>> horner((2.0, 3.0, 4.0), "x")
    '((2.0) * x + 3.0) * x + 4.0'
    """
    expression = f"{coefficients[0]!r}"
    for c in coefficients[1:]:
        expression = f"({expression}) * {x} + {c!r}"
    return expression


def polynomial_lines(name: str, coefficients: Sequence[float], x: str, fused: bool) -> str:
    """Return source lines that assign a polynomial of `x`, a vector of sixteen float32, to the variable `name`.

    >>> print(polynomial_lines("p", (2.0, 3.0, 4.0), "x", fused=True))
    p = x
    factor, addend = 2.0, 3.0
    muladd.f32_affine(p, factor, addend)
    addend = 4.0
    muladd.f32_horner(p, x, addend)
    """
    if not fused:
        return f"{name} = {horner(coefficients, x)}"
    first, second, *rest = coefficients
    lines = [f"{name} = {x}", f"factor, addend = {first!r}, {second!r}", f"muladd.f32_affine({name}, factor, addend)"]
    for c in rest:
        lines += [f"addend = {c!r}", f"muladd.f32_horner({name}, {x}, addend)"]
    return "\n".join(lines)
