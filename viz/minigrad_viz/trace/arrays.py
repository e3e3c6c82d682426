"""Summaries of arrays: a grid of cells, statistics and a histogram. `format_summary` formats them on one line.

A trace stores the `summary` of each array: at most `MAX_CELLS` cells, but statistics of all elements.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from minigrad_viz.trace.array_summary import ArraySummary
from minigrad_viz.trace.notation import format_float

__all__ = ["BINS", "MAX_CELLS", "bars", "dtype_name", "format_summary", "grid", "subsampling_step", "summary"]

MAX_CELLS = 10_000  # maximum number of cells in a picture; larger arrays are subsampled
BINS = 12  # bins of a histogram
# In bins. Values within this distance below an edge are moved to the edge, since rounding differs between machines.
BIN_TOLERANCE = 1e-4
ZERO_TOLERANCE = 1e-6  # relative to the largest magnitude; smaller values are considered rounding errors of 0
_BARS = "▁▂▃▄▅▆▇█"


def summary(array: Any, max_cells: int = MAX_CELLS) -> dict[str, Any]:
    """Summarise a NumPy array. Its matrices (last two dimensions) are tiled into a grid of rows x cols cells.

    min, max, mean, std and the 12 counts of `hist`, from min to max, are computed from all finite elements, and are
    None if there are none; `nan` and `inf` count the other elements. If there are more than `max_cells` cells, only
    every r-th row and c-th column is stored, and `step` is [r, c].

    >>> import numpy as np
    >>> stats = summary(np.array([[1.0, 2.0], [4.0, float("nan")]]))
    >>> stats["rows"], stats["cols"], stats["cells"], stats["mean"], stats["nan"]
    (2, 2, [1.0, 2.0, 4.0, nan], 2.3333333333333335, 1)
    """
    import numpy as np

    if isinstance(array, ArraySummary):
        return _summary_of_sample(array, max_cells)
    array = np.asarray(array)
    rows, cols, across = grid(array.shape)
    tiled = array
    if across > 1:
        tiled = array.reshape(-1, across, *array.shape[-2:]).swapaxes(1, 2)
    down, right = subsampling_step(rows, cols, max_cells)
    cells = tiled.reshape(rows, cols)[::down, ::right]
    flat = array.reshape(-1)
    is_finite = np.isfinite(flat)
    finite = flat if is_finite.all() else flat[is_finite]
    nan = 0 if finite is flat else int(np.isnan(flat).sum())
    header: dict[str, Any] = {"shape": list(array.shape), "dtype": dtype_name(array.dtype), "size": int(array.size)}
    if array.dtype.kind == "c":
        cells, finite = abs(cells), abs(finite)
    picture = {"cells": cells.reshape(-1).astype(float).tolist(), "rows": cells.shape[0], "cols": cells.shape[1]}
    step = {"step": [down, right]} if down * right > 1 else {}
    return header | picture | step | _statistics(finite) | {"nan": nan, "inf": int(flat.size - finite.size) - nan}


def _summary_of_sample(array: ArraySummary, max_cells: int) -> dict[str, Any]:
    """Return the summary of an array of which only a sample is known."""
    rows, cols = array.cells.shape
    down, right = subsampling_step(rows, cols, max_cells)
    cells = array.cells[::down, ::right]
    return {
        "shape": list(array.shape),
        "dtype": array.dtype,
        "size": array.size,
        "cells": (abs(cells) if cells.dtype.kind == "c" else cells).reshape(-1).astype(float).tolist(),
        "rows": cells.shape[0],
        "cols": cells.shape[1],
        "step": [array.step[0] * down, array.step[1] * right],
        **array.statistics,
    }


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype; dtypes that NumPy lacks have theirs as metadata."""
    return _numpy_dtype_name(dtype) if dtype.metadata is None else str(dtype.metadata["name"])


@cache
def _numpy_dtype_name(dtype: Any) -> str:
    return str(dtype)  # cached, since it takes as long as the statistics of a small array


def grid(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return the rows and columns of an array's picture, and how many of its matrices are in one row.

    The picture is as square as possible, provided that, for example, the matrices of one batch fill complete rows.

    >>> grid((3,)), grid((2, 3)), grid((8, 4, 4)), grid((2, 3, 8, 8)), grid((64, 1, 28, 28))
    ((1, 3, 1), (2, 3, 1), (8, 16, 4), (16, 24, 3), (224, 224, 8))
    """
    cols = shape[-1] if shape else 1
    rows = math.prod(shape[:-1])
    if len(shape) < 3 or not rows * cols:
        return rows, cols, 1
    matrix_count, channels, best_ratio, across = rows // shape[-2], shape[-3], math.inf, 1
    for k in range(1, matrix_count + 1):
        if not (matrix_count % k or (channels % k and k % channels)):
            height, width = rows // k, cols * k
            ratio = max(height, width) / min(height, width)
            best_ratio, across = (ratio, k) if ratio <= best_ratio else (best_ratio, across)
            if width >= height:
                break
    return rows // across, cols * across, across


def subsampling_step(rows: int, cols: int, max_cells: int) -> tuple[int, int]:
    """Return the row and column strides of subsampling; a side of at most sqrt(max_cells) is stored in full."""
    if rows * cols <= max_cells:
        return 1, 1
    side = math.isqrt(max_cells)  # number of rows and columns to store if there are more of both
    if cols <= side:
        return math.ceil(rows / (max_cells // cols)), 1
    if rows <= side:
        return 1, math.ceil(cols / (max_cells // rows))
    return math.ceil(rows / side), math.ceil(cols / side)


def _statistics(finite: Any) -> dict[str, Any]:
    """Compute statistics of finite values. Scaling by a power of two, which is exact, prevents overflow of squares."""
    import numpy as np

    if not finite.size:
        return {"min": None, "max": None, "mean": None, "std": None, "hist": [0] * BINS}
    values = finite.astype(float)
    low, high = float(values.min()), float(values.max())
    exponent = math.frexp(max(abs(low), abs(high)))[1]
    scaled = np.ldexp(values, -exponent)
    bottom, range_ = math.ldexp(low, -exponent), math.ldexp(high, -exponent) - math.ldexp(low, -exponent)
    bins = (scaled - bottom) / range_ * BINS + BIN_TOLERANCE if range_ else np.full(scaled.shape, BINS // 2)
    hist = np.bincount(np.minimum(bins.astype(int), BINS - 1), minlength=BINS)
    mean = float(np.add.reduce(scaled)) / scaled.size  # same results as `mean` and `std` in a third of the time
    std = math.sqrt(float(np.add.reduce(np.square(scaled - mean))) / scaled.size)
    bounds = {"min": low, "max": high, "mean": math.ldexp(mean, exponent), "std": math.ldexp(std, exponent)}
    return bounds | {"hist": hist.tolist()}


def format_summary(stats: Mapping[str, Any]) -> str:
    """Format a summary on one line, to 3 digits and with rounding errors shown as 0.

    The text is the same on every machine.

    >>> import numpy as np
    >>> format_summary(summary(np.array([[1.0, 2.0, 2.0], [4.0, np.nan, 1e-17]], np.float32)))
    '(2, 3) float32 0.0 … 4.0, mean 1.8, std 1.33 ▅▁▁▅▁▁█▁▁▁▁▅ NaN! 1'
    >>> format_summary(summary(np.ones((32, 10)))), format_summary(summary(np.array([True, False, True])))
    ('(32, 10) float64 all 1.0', '(3,) bool 2 of 3 true')
    """
    parts = [f"{tuple(stats['shape'])} {stats['dtype']}", _format_statistics(stats)]
    parts += [f"{name}! {stats[key]:,}" for name, key in (("NaN", "nan"), ("Inf", "inf")) if stats[key]]
    return " ".join(filter(None, parts))


def _format_statistics(stats: Mapping[str, Any]) -> str:
    low, high = stats["min"], stats["max"]
    if not stats["size"]:
        return "empty"
    if low is None:
        return ""
    if stats["dtype"] == "bool":
        return f"{round(stats['mean'] * stats['size']):,} of {stats['size']:,} true"
    scale = max(abs(low), abs(high))
    if high / 2 - low / 2 <= scale / 2 * ZERO_TOLERANCE:
        return f"{'all ' if stats['size'] > 1 else ''}{_format_value(stats, low, scale)}"
    first, last = (_format_value(stats, x, scale) for x in (low, high))
    mean, std = (_format_digits(x, scale) for x in (stats["mean"], stats["std"]))
    about = "≈" if stats.get("estimated") else ""
    return f"{first} … {last}, mean {about}{mean}, std {about}{std} {bars(stats['hist'])}"


def _format_value(stats: Mapping[str, Any], x: float, scale: float) -> str:
    """Format an element of the array. Integers are not rounded."""
    return str(int(x)) if "int" in stats["dtype"] else _format_digits(x, scale)


def _format_digits(x: float, scale: float) -> str:
    """Format to 3 significant digits. A value halfway between two roundings is rounded up on every machine."""
    return format_float(float(f"{x * (1 + 1e-5):.3g}") if abs(x) > scale * ZERO_TOLERANCE else 0.0)


def bars(counts: list[int]) -> str:
    """Draw counts as bars; the lowest bar stands for zero.

    >>> bars([0, 1, 50, 100])
    '▁▂▅█'
    """
    largest = max(counts)
    return "".join(_BARS[-(-7 * n // largest) if largest else 0] for n in counts)
