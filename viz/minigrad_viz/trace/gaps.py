"""Differences between two numbers or arrays, and tolerances for rounding errors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from minigrad_viz.trace.notation import format_compact

__all__ = ["TOLERANCES", "Gap", "Tolerance", "describe_factor", "format_ratio", "gap"]

MAX_FACTOR = 100  # largest factor between two runs that is reported


class Tolerance(NamedTuple):
    """A tolerance. Two elements agree if they differ by at most ``atol + rtol · m``, where m is the larger of their
    magnitudes, or the median magnitude in their arrays if that is larger. The median prevents false alarms for results
    of cancellation near 0.

    >>> str(Tolerance(1e-9, 1e-12)), str(Tolerance(0.0, 0.5))
    ('rtol 1e−9 and atol 1e−12', 'rtol 0.0 and atol 0.5')
    """

    rtol: float
    atol: float

    def __str__(self) -> str:
        rtol, atol = (format_compact(x).replace(".0e", "e") for x in self)
        return f"rtol {rtol} and atol {atol}"


TOLERANCES = {
    "float64": Tolerance(1e-9, 1e-12),
    "float32": Tolerance(1e-5, 1e-8),
}
"""Default tolerances by dtype. Integers and booleans must be equal."""


class Gap(NamedTuple):
    """The difference between two numbers or arrays.

    `amount` is the largest absolute difference, and `ratio` the largest difference relative to m (see `Tolerance`).
    `cells` of the `size` elements differ. `factor` is second / first if that is the same simple number for all
    elements. If a number is missing, the difference is infinite.
    """

    amount: float
    ratio: float
    cells: int
    size: int
    factor: float | None = None


def gap(first: Any, second: Any, tolerance: Tolerance) -> Gap | None:
    """Return the gap between two floats or arrays, one of which may be None; None if they agree. NaNs are equal.

    >>> gap(2.0, 2.0 + 1e-12, TOLERANCES["float64"]), gap(2.0, -2.0, TOLERANCES["float64"])
    (None, Gap(amount=4.0, ratio=2.0, cells=1, size=1, factor=-1.0))
    """
    if first is None and second is None:
        return None
    if first is None or second is None:
        size = getattr(first if second is None else second, "size", 1)
        return Gap(math.inf, math.inf, size, size)
    if first.__class__ is float and second.__class__ is float:
        return _number_gap(first, second, tolerance)
    return _array_gap(first, second, tolerance)


def _number_gap(first: float, second: float, tolerance: Tolerance) -> Gap | None:
    if first == second or (math.isnan(first) and math.isnan(second)):
        return None
    amount, magnitude = abs(second - first), max(abs(first), abs(second))
    if amount <= tolerance.atol + tolerance.rtol * magnitude < math.inf:
        return None
    if not math.isfinite(amount):
        return Gap(amount, amount, 1, 1)
    return Gap(amount, amount / magnitude, 1, 1, _simple_factor(second / first, tolerance) if first else None)


def _array_gap(first: Any, second: Any, tolerance: Tolerance) -> Gap | None:
    import numpy as np

    x, y = (np.asarray(array, dtype=float).reshape(-1) for array in (first, second))
    with np.errstate(all="ignore"):
        distance = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, abs(y - x))
        magnitude = np.maximum(abs(x), abs(y))
        nonzero = magnitude[np.isfinite(magnitude) & (magnitude > 0)]
        magnitude = np.maximum(magnitude, np.median(nonzero) if nonzero.size else 0.0)
        exceeds = ~(distance <= tolerance.atol + tolerance.rtol * magnitude) | ~np.isfinite(distance)
        is_different = (distance != 0.0) & exceeds
        if not is_different.any():
            return None
        ratios = np.where(np.isfinite(distance), distance / magnitude, distance)[is_different]
    largest = float(distance[is_different].max()), float(ratios.max())  # NaN if any element is NaN
    return Gap(*largest, int(is_different.sum()), x.size, _factor(x, y, tolerance))


def _factor(x: Any, y: Any, tolerance: Tolerance) -> float | None:
    """Return the factor y / x if it is the same simple number for all elements."""
    import numpy as np

    if not (np.isfinite(x).all() and np.isfinite(y).all() and x.any()):
        return None
    largest = int(abs(x).argmax())
    factor = _simple_factor(float(y[largest] / x[largest]), tolerance)
    return factor if factor is not None and _array_gap(factor * x, y, tolerance) is None else None


def _simple_factor(factor: float, tolerance: Tolerance) -> float | None:
    """Return `factor`, rounded, if it is a small integer other than 1, or its reciprocal is; otherwise None."""
    margin = max(tolerance.rtol, 1e-9)
    for candidate, is_reciprocal in ((factor, False), (1 / factor if factor else 0.0, True)):
        if (
            0.5 < abs(candidate) < MAX_FACTOR + 0.5
            and abs(candidate - round(candidate)) <= margin * abs(candidate)
            and round(candidate) != 1
        ):
            return 1.0 / round(candidate) if is_reciprocal else float(round(candidate))
    return None


def format_ratio(gap: Gap) -> str:
    """Format the relative difference, as a percentage if that is legible.

    >>> [format_ratio(Gap(0.0, ratio, 1, 1)) for ratio in (0.254, 2.0, 3.21e-5, math.inf, math.nan)]
    ['25%', '200%', '3.2e−5', '∞', 'NaN']
    """
    return f"{float(f'{100 * gap.ratio:.2g}'):g}%" if 1e-3 <= gap.ratio < 1e4 else format_compact(gap.ratio)


def describe_factor(gap: Gap) -> str:
    """Describe the factor between the runs; "" if it is not simple.

    >>> [describe_factor(Gap(1.0, 1.0, 1, 1, factor)) for factor in (-1.0, 2.0, 0.25, None)]
    ['the opposite sign', '2 times the first', '1/4 of the first', '']
    """
    if gap.factor is None:
        return ""
    if gap.factor == -1:
        return "the opposite sign"
    if abs(gap.factor) > 1:
        return f"{gap.factor:g} times the first".replace("-", "−")
    return f"{'−' if gap.factor < 0 else ''}1/{round(1 / abs(gap.factor))} of the first"
