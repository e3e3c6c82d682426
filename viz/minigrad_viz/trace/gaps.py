"""The difference between two numbers or arrays, and whether it exceeds rounding."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from minigrad_viz.trace.notation import compact

__all__ = ["TOLERANCES", "Gap", "Tolerance", "gap", "share", "times"]

_MOST = 100  # largest factor between two runs that is named


class Tolerance(NamedTuple):
    """Two elements agree if they differ by at most ``atol + rtol · m``, where m is the larger of their magnitudes, or
    the median magnitude in their arrays if that is larger: results of cancellation near 0 are not judged by their own
    size.

    >>> str(Tolerance(1e-9, 1e-12)), str(Tolerance(0.0, 0.5))
    ('rtol 1e−9 and atol 1e−12', 'rtol 0.0 and atol 0.5')
    """

    rtol: float
    atol: float

    def __str__(self) -> str:
        rtol, atol = (compact(x).replace(".0e", "e") for x in self)
        return f"rtol {rtol} and atol {atol}"


TOLERANCES = {
    "float64": Tolerance(1e-9, 1e-12),
    "float32": Tolerance(1e-5, 1e-8),
}
"""Default tolerances by dtype. Integers and booleans must be equal."""


class Gap(NamedTuple):
    """The difference between two numbers or arrays.

    `amount` is the largest absolute difference, `ratio` the largest one relative to m of `Tolerance`; `cells` of the
    `size` elements differ. `factor` is second / first if it is the same simple number for all elements. A missing
    number differs infinitely.
    """

    amount: float
    ratio: float
    cells: int
    size: int
    factor: float | None = None


def gap(one: Any, other: Any, tolerance: Tolerance) -> Gap | None:
    """Return the gap between two floats or arrays, one of which may be None; None if they agree. NaNs are equal.

    >>> gap(2.0, 2.0 + 1e-12, TOLERANCES["float64"]), gap(2.0, -2.0, TOLERANCES["float64"])
    (None, Gap(amount=4.0, ratio=2.0, cells=1, size=1, factor=-1.0))
    """
    if one is None and other is None:
        return None
    if one is None or other is None:
        size = getattr(one if other is None else other, "size", 1)
        return Gap(math.inf, math.inf, size, size)
    if one.__class__ is float and other.__class__ is float:
        return _between_numbers(one, other, tolerance)
    return _between_arrays(one, other, tolerance)


def _between_numbers(one: float, other: float, tolerance: Tolerance) -> Gap | None:
    if one == other or (math.isnan(one) and math.isnan(other)):
        return None
    amount, most = abs(other - one), max(abs(one), abs(other))
    if amount <= tolerance.atol + tolerance.rtol * most < math.inf:
        return None
    if not math.isfinite(amount):
        return Gap(amount, amount, 1, 1)
    return Gap(amount, amount / most, 1, 1, _simple(other / one, tolerance) if one else None)


def _between_arrays(one: Any, other: Any, tolerance: Tolerance) -> Gap | None:
    import numpy as np

    x, y = (np.asarray(array, dtype=float).reshape(-1) for array in (one, other))
    with np.errstate(all="ignore"):
        apart = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, abs(y - x))
        most = np.maximum(abs(x), abs(y))
        usual = most[np.isfinite(most) & (most > 0)]
        most = np.maximum(most, np.median(usual) if usual.size else 0.0)
        beyond = ~(apart <= tolerance.atol + tolerance.rtol * most) | ~np.isfinite(apart)
        differ = (apart != 0.0) & beyond
        if not differ.any():
            return None
        ratios = np.where(np.isfinite(apart), apart / most, apart)[differ]
    largest = float(apart[differ].max()), float(ratios.max())  # NaN if there is one
    return Gap(*largest, int(differ.sum()), x.size, _factor(x, y, tolerance))


def _factor(x: Any, y: Any, tolerance: Tolerance) -> float | None:
    """Return the factor y / x if it is the same simple number for all elements."""
    import numpy as np

    if not (np.isfinite(x).all() and np.isfinite(y).all() and x.any()):
        return None
    largest = int(abs(x).argmax())
    factor = _simple(float(y[largest] / x[largest]), tolerance)
    return factor if factor is not None and _between_arrays(factor * x, y, tolerance) is None else None


def _simple(factor: float, tolerance: Tolerance) -> float | None:
    """Return `factor` if it is a small integer or its reciprocal, and not 1."""
    near = max(tolerance.rtol, 1e-9)
    for whole, back in ((factor, False), (1 / factor if factor else 0.0, True)):
        if 0.5 < abs(whole) < _MOST + 0.5 and abs(whole - round(whole)) <= near * abs(whole) and round(whole) != 1:
            return 1.0 / round(whole) if back else float(round(whole))
    return None


def share(gap: Gap) -> str:
    """Format the relative difference, as a percentage if that is legible.

    >>> [share(Gap(0.0, ratio, 1, 1)) for ratio in (0.254, 2.0, 3.21e-5, math.inf, math.nan)]
    ['25%', '200%', '3.2e−5', '∞', 'NaN']
    """
    return f"{float(f'{100 * gap.ratio:.2g}'):g}%" if 1e-3 <= gap.ratio < 1e4 else compact(gap.ratio)


def times(gap: Gap) -> str:
    """Describe the factor between the runs; "" if it is not simple.

    >>> [times(Gap(1.0, 1.0, 1, 1, factor)) for factor in (-1.0, 2.0, 0.25, None)]
    ['the opposite sign', '2 times the first', '1/4 of the first', '']
    """
    if gap.factor is None:
        return ""
    if gap.factor == -1:
        return "the opposite sign"
    if abs(gap.factor) > 1:
        return f"{gap.factor:g} times the first".replace("-", "−")
    return f"{'−' if gap.factor < 0 else ''}1/{round(1 / abs(gap.factor))} of the first"
