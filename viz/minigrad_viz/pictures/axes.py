"""Axes of plots: the map from data to pixels, limits around the data, and round ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Axis", "fit_limits", "format_number", "format_power", "ticks"]

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PADDING = 0.04  # empty space beside the data, as a fraction of their range
_TOLERANCE = 1e-9  # of ticks at the limits, since multiples of 0.1 are not exact
_MIN_RATIO = 300.0  # ratio of the limits of a logarithmic axis below which powers of ten are too few ticks


class Axis(NamedTuple):
    """An axis with limits `low` and `high`, which are drawn at the pixels `start` and `end`."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def pixel(self, x: float) -> float:
        """Return the pixel of `x`, which is positive on a logarithmic axis.

        >>> Axis(0.0, 4.0, 100.0, 0.0).pixel(1.0), Axis(0.01, 100.0, 0.0, 100.0, is_log=True).pixel(1.0)
        (75.0, 50.0)
        """
        transform = math.log10 if self.is_log else float
        low, high = transform(self.low), transform(self.high)
        return self.start + (self.end - self.start) * ((transform(x) - low) / (high - low))

    @property
    def unit(self) -> float:
        """The length in data of a pixel, on a linear axis."""
        return (self.high - self.low) / abs(self.end - self.start)

    def widen(self, unit: float) -> Axis:
        """Return the axis with limits farther apart, around the same middle, so that a pixel is `unit` long."""
        middle, half = (self.low + self.high) / 2, unit * abs(self.end - self.start) / 2
        return self._replace(low=middle - half, high=middle + half)

    def labels(self, count: int) -> list[tuple[float, str]]:
        """Return the pixel and the text of at most about `count` ticks.

        >>> Axis(0.0, 2.5, 0.0, 100.0).labels(3), Axis(1e-6, 1.0, 0.0, 60.0, is_log=True).labels(3)
        ([(0.0, '0'), (40.0, '1'), (80.0, '2')], [(0.0, '10⁻⁶'), (20.0, '10⁻⁴'), (40.0, '10⁻²'), (60.0, '10⁰')])
        """
        values = ticks(self.low, self.high, self.is_log, count)
        return [(self.pixel(x), text) for x, text in zip(values, _format_ticks(values, self.is_log), strict=True)]


def ticks(low: float, high: float, log_scale: bool, count: int = 3) -> list[float]:
    """Return at most about `count` round values between `low` and `high`.

    With `log_scale` they are powers of ten, and their multiples by 2 and 5 in a narrow range.

    >>> ticks(0.0, 2.3, False), ticks(0.0, 2.3, False, 6), ticks(0.004, 3.0, True), ticks(0.3, 3.0, True)
    ([0.0, 1.0, 2.0], [0.0, 0.5, 1.0, 1.5, 2.0], [0.01, 0.1, 1.0], [0.5, 1.0, 2.0])
    """
    if log_scale:
        decades = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
        if high / low < _MIN_RATIO:
            around = range(decades.start - 1, decades.stop + 1)
            return [x for k in around for x in (10.0**k, 2 * 10.0**k, 5 * 10.0**k) if low <= x <= high]
        stride = -(-len(decades) // (count + 1))
        return [10.0**k for k in decades if k % stride == 0]
    target = (high - low) / count
    unit = 10.0 ** math.floor(math.log10(target))
    size = next(unit * k for k in (1, 2, 5, 10) if unit * k >= target)
    return [k * size for k in range(math.ceil(low / size - _TOLERANCE), math.floor(high / size + _TOLERANCE) + 1)]


def format_power(exponent: int) -> str:
    """Format a power of ten.

    >>> format_power(-12)
    '10⁻¹²'
    """
    return f"10{str(exponent).translate(_SUPERSCRIPTS)}"


def format_number(x: float) -> str:
    """Format `x` to 4 significant digits, without trailing zeros.

    >>> [format_number(x) for x in (0.0001, 1e-05, -2.5, 64.0)]
    ['0.0001', '1e−5', '−2.5', '64']
    """
    mantissa, e, power = f"{x:.4g}".partition("e")
    return (f"{mantissa}e{int(power)}" if e else mantissa).replace("-", "−")


def _format_ticks(values: Sequence[float], is_log: bool) -> list[str]:
    """Format ticks with the same number of decimals, or as powers of ten."""
    if is_log and all(x == 10.0 ** round(math.log10(x)) for x in values):
        return [format_power(round(math.log10(x))) for x in values]
    step = values[1] - values[0] if len(values) > 1 else 1.0
    decimals = max(0, -math.floor(math.log10(step * 1.0001)))
    if is_log or decimals > 5 or max(map(abs, values)) >= 1e9:
        return [format_number(x) for x in values]
    return [f"{x:,.{decimals}f}".replace("-", "−") for x in values]


def fit_limits(
    padded: Sequence[float], flush: Sequence[float], limits: tuple[float | None, float | None], is_log: bool = False
) -> tuple[float, float]:
    """Return the limits of an axis: those in `limits` that are not None, and the others from the data.

    There is space between a limit and the nearest of `padded`, but none beside `flush`, such as the edges of a map.

    >>> fit_limits([0.0, 100.0], [], (None, None)), fit_limits([0.0, 100.0], [0.0, 50.0], (None, 200.0))
    ((-4.0, 104.0), (0.0, 200.0))
    """
    values = [*padded, *flush] or [1.0]
    low, high = (min(values), max(values))
    if is_log:
        low, high = math.log10(low), math.log10(high)
        flush = list(map(math.log10, flush))
    if low == high:
        low, high = low - 0.5, high + 0.5
    padding = _PADDING * (high - low)
    low = low if low in flush else low - padding
    high = high if high in flush else high + padding
    if is_log:
        low, high = 10.0**low, 10.0**high
    low, high = (found if given is None else given for given, found in zip(limits, (low, high), strict=True))
    if low >= high and limits[1] is None:  # all data are below the given limit
        high = low * 10 if is_log else low + 1
    elif low >= high:
        low = high / 10 if is_log else high - 1
    return low, high
