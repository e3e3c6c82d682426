"""Summaries of arrays: a grid of cells, range, mean, standard deviation and histogram; and a one-line text.

`summary` is what a trace stores of an array: at most `MOST` cells, but statistics of all its elements.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from minigrad_viz.trace.notation import number

__all__ = ["BINS", "MOST", "bars", "grid", "line", "summary"]

MOST = 10_000  # cells in a picture; larger arrays are subsampled
BINS = 12  # bins of a histogram
_EDGE = 1e-4  # of a bin: values this close below an edge are moved to it, since rounding differs by machine
_RESIDUE = 1e-6  # of the scale: smaller values are rounding errors of 0
_BARS = "▁▂▃▄▅▆▇█"


def summary(array: Any, most: int = MOST) -> dict[str, Any]:
    """Summarise a NumPy array: its matrices (last two dimensions) are tiled into rows x cols cells.

    min, max, mean, std and the 12 counts of `hist`, from min to max, cover all finite elements, and are None if there
    are none; `nan` and `inf` count the others. Above `most` cells only every r-th row and c-th column is stored: then
    `step` is [r, c].

    >>> import numpy as np
    >>> short = summary(np.array([[1.0, 2.0], [4.0, float("nan")]]))
    >>> short["rows"], short["cols"], short["cells"], short["mean"], short["nan"]
    (2, 2, [1.0, 2.0, 4.0, nan], 2.3333333333333335, 1)
    """
    import numpy as np

    array = np.asarray(array)
    rows, cols, across = grid(array.shape)
    tiled = array
    if across > 1:
        tiled = array.reshape(-1, across, *array.shape[-2:]).swapaxes(1, 2)
    down, right = _step(rows, cols, most)
    kept = tiled.reshape(rows, cols)[::down, ::right]
    flat = array.reshape(-1)
    there = np.isfinite(flat)
    finite = flat if there.all() else flat[there]
    nan = 0 if finite is flat else int(np.isnan(flat).sum())
    kind: dict[str, Any] = {"shape": list(array.shape), "dtype": _called(array.dtype), "size": int(array.size)}
    picture = {"cells": kept.reshape(-1).astype(float).tolist(), "rows": kept.shape[0], "cols": kept.shape[1]}
    step = {"step": [down, right]} if down * right > 1 else {}
    return kind | picture | step | _statistics(finite) | {"nan": nan, "inf": int(flat.size - finite.size) - nan}


@cache
def _called(dtype: Any) -> str:
    return str(dtype)  # as slow as the statistics of a small array


def grid(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return the rows and columns of an array's picture, and how many of its matrices are in one row.

    The picture is as square as possible, while the matrices of one batch, say, fill complete rows.

    >>> grid((3,)), grid((2, 3)), grid((8, 4, 4)), grid((2, 3, 8, 8)), grid((64, 1, 28, 28))
    ((1, 3, 1), (2, 3, 1), (8, 16, 4), (16, 24, 3), (224, 224, 8))
    """
    cols = shape[-1] if shape else 1
    rows = math.prod(shape[:-1])
    if len(shape) < 3 or not rows * cols:
        return rows, cols, 1
    many, channels, best, across = rows // shape[-2], shape[-3], math.inf, 1
    for k in range(1, many + 1):
        if not (many % k or (channels % k and k % channels)):
            high, wide = rows // k, cols * k
            length = max(high, wide) / min(high, wide)
            best, across = (length, k) if length <= best else (best, across)
            if wide >= high:
                break
    return rows // across, cols * across, across


def _step(rows: int, cols: int, most: int) -> tuple[int, int]:
    """Return the row and column strides of subsampling; a side of at most sqrt(most) is stored in full."""
    if rows * cols <= most:
        return 1, 1
    side = math.isqrt(most)  # rows and columns to store if both are many
    if cols <= side:
        return math.ceil(rows / (most // cols)), 1
    if rows <= side:
        return 1, math.ceil(cols / (most // rows))
    return math.ceil(rows / side), math.ceil(cols / side)


def _statistics(finite: Any) -> dict[str, Any]:
    """Compute statistics of finite values, scaled by a power of two (exact) so that squares do not overflow."""
    import numpy as np

    if not finite.size:
        return {"min": None, "max": None, "mean": None, "std": None, "hist": [0] * BINS}
    numbers = finite.astype(float)
    low, high = float(numbers.min()), float(numbers.max())
    power = math.frexp(max(abs(low), abs(high)))[1]
    scaled = np.ldexp(numbers, -power)
    bottom, range_ = math.ldexp(low, -power), math.ldexp(high, -power) - math.ldexp(low, -power)
    where = (scaled - bottom) / range_ * BINS + _EDGE if range_ else np.full(scaled.shape, BINS // 2)
    hist = np.bincount(np.minimum(where.astype(int), BINS - 1), minlength=BINS)
    mean = float(np.add.reduce(scaled)) / scaled.size  # as `mean` and `std` do, in a third of the time
    std = math.sqrt(float(np.add.reduce(np.square(scaled - mean))) / scaled.size)
    bounds = {"min": low, "max": high, "mean": math.ldexp(mean, power), "std": math.ldexp(std, power)}
    return bounds | {"hist": hist.tolist()}


def line(short: Mapping[str, Any]) -> str:
    """Format a summary on one line, to 3 digits and with rounding errors shown as 0.

    The text is the same on every machine.

    >>> import numpy as np
    >>> line(summary(np.array([[1.0, 2.0, 2.0], [4.0, np.nan, 1e-17]], np.float32)))
    '(2, 3) float32 0.0 … 4.0, mean 1.8, std 1.33 ▅▁▁▅▁▁█▁▁▁▁▅ NaN! 1'
    >>> line(summary(np.ones((32, 10)))), line(summary(np.array([True, False, True])))
    ('(32, 10) float64 all 1.0', '(3,) bool 2 of 3 true')
    """
    parts = [f"{tuple(short['shape'])} {short['dtype']}", _numbers(short)]
    parts += [f"{name}! {short[key]:,}" for name, key in (("NaN", "nan"), ("Inf", "inf")) if short[key]]
    return " ".join(filter(None, parts))


def _numbers(short: Mapping[str, Any]) -> str:
    low, high = short["min"], short["max"]
    if not short["size"]:
        return "empty"
    if low is None:
        return ""
    if short["dtype"] == "bool":
        return f"{round(short['mean'] * short['size']):,} of {short['size']:,} true"
    scale = max(abs(low), abs(high))
    if high / 2 - low / 2 <= scale / 2 * _RESIDUE:
        return f"{'all ' if short['size'] > 1 else ''}{_exact(short, low, scale)}"
    first, last = (_exact(short, x, scale) for x in (low, high))
    mean, std = (_digits(x, scale) for x in (short["mean"], short["std"]))
    return f"{first} … {last}, mean {mean}, std {std} {bars(short['hist'])}"


def _exact(short: Mapping[str, Any], x: float, scale: float) -> str:
    """Format one of the values themselves: integers need no rounding."""
    return str(int(x)) if "int" in short["dtype"] else _digits(x, scale)


def _digits(x: float, scale: float) -> str:
    """Format to 3 significant digits. A value halfway between two roundings is rounded up on every machine."""
    return number(float(f"{x * (1 + 1e-5):.3g}") if abs(x) > scale * _RESIDUE else 0.0)


def bars(counts: list[int]) -> str:
    """Draw counts as bars; the lowest bar stands for zero.

    >>> bars([0, 1, 50, 100])
    '▁▂▅█'
    """
    most = max(counts)
    return "".join(_BARS[-(-7 * n // most) if most else 0] for n in counts)
