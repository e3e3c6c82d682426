"""`ArraySummary`: the statistics and a sample of an array that is too large for a trace to store.

The functions below accept a float, an array or a summary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

__all__ = ["ArraySummary", "count_bad_elements", "has_nan", "joined_shape", "magnitude"]


class ArraySummary:
    """What a trace stores instead of a large array: its shape, statistics of all its elements, and a sample of them.

    `cells` is a NumPy array with the subsampled picture that `arrays.summary` makes of the array, every ``step[0]``-th
    row and ``step[1]``-th column. `statistics` has the keys "min", "max", "mean", "std", "hist", "nan" and "inf"; the
    histogram counts the sample; with the key "estimated", mean and standard deviation are those of a sample. NumPy
    functions see the sample, as one row of elements.
    """

    __slots__ = ("cells", "dtype", "shape", "size", "statistics", "step")

    def __init__(self, shape: tuple[int, ...], dtype: str, cells: Any, step: tuple[int, int], statistics: Any) -> None:
        self.shape, self.dtype, self.cells, self.step = tuple(shape), dtype, cells, step
        self.size = math.prod(self.shape)
        self.statistics: dict[str, Any] = statistics

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.cells.reshape(-1).astype(self.cells.dtype if dtype is None else dtype)

    def __repr__(self) -> str:
        return f"ArraySummary(shape={self.shape}, dtype={self.dtype!r}, {self.cells.size} cells)"

    @property
    def rms(self) -> float:
        """The root mean square of the finite elements."""
        mean, std = self.statistics["mean"], self.statistics["std"]
        return math.nan if mean is None else math.hypot(mean, std)

    @property
    def is_finite(self) -> bool:
        """Whether every element is finite, sampled or not."""
        return not (self.statistics["nan"] or self.statistics["inf"])

    def is_close(self, other: ArraySummary) -> bool:
        """Whether the samples and the statistics of two arrays are equal up to rounding."""
        import numpy as np

        if self.shape != other.shape or self.cells.shape != other.cells.shape:
            return False
        own, others = ([x.statistics[name] for name in ("min", "max", "nan", "inf")] for x in (self, other))
        pairs = zip(own, others, strict=True)
        close = all(x == y or (None not in (x, y) and math.isclose(x, y, rel_tol=1e-5)) for x, y in pairs)
        return close and np.allclose(self.cells, other.cells, rtol=1e-5, atol=0.0, equal_nan=True)

    def __add__(self, other: ArraySummary) -> ArraySummary:
        """Return an estimate of the sum of two arrays: exact in the sample, whose statistics it has."""
        import numpy as np

        cells = self.cells + other.cells
        finite = cells[np.isfinite(cells)].astype(float) if cells.dtype.kind != "c" else abs(cells)
        nan, inf = (self.statistics[name] + other.statistics[name] for name in ("nan", "inf"))
        statistics = {"min": None, "max": None, "mean": None, "std": None, "hist": [0], "nan": nan, "inf": inf}
        if finite.size:
            statistics |= {"min": float(finite.min()), "max": float(finite.max())}
            statistics |= {"mean": float(finite.mean()), "std": float(finite.std())}
            statistics["hist"] = np.histogram(finite, len(self.statistics["hist"]))[0].tolist()
        return ArraySummary(self.shape, self.dtype, cells, self.step, statistics)

    @classmethod
    def join(cls, parts: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> ArraySummary:
        """Return the summary of arrays and summaries with these shapes together; a part that is None consists of zeros.

        Its statistics are exact if those of the parts are, and its sample is the parts' samples, one after the other.
        """
        import numpy as np

        sizes = [math.prod(shape) for shape in shapes]
        finite, samples, bad = [], [], {"nan": 0, "inf": 0}
        for part, size in zip(parts, sizes, strict=True):
            values = np.zeros(1) if part is None else np.asarray(part).reshape(-1)
            samples.append(values)
            if isinstance(part, cls):
                stats = part.statistics
                bad = {name: count + stats[name] for name, count in bad.items()}
                count, bounds = size - stats["nan"] - stats["inf"], [stats[name] for name in ("min", "max")]
                moments = [stats["mean"], stats["std"]]
            else:
                inside = values[np.isfinite(values)].astype(float)
                nan = int(np.isnan(values).sum())
                bad = {"nan": bad["nan"] + nan, "inf": bad["inf"] + values.size - inside.size - nan}
                count = size if part is None else inside.size
                bounds = [inside.min(), inside.max()] if inside.size else [None, None]
                moments = [inside.mean(), inside.std()] if inside.size else [None, None]
            if count and None not in bounds:
                finite.append((count, *map(float, (*bounds, *moments))))
        cells = np.concatenate(samples).reshape(1, -1)
        statistics: dict[str, Any] = {"min": None, "max": None, "mean": None, "std": None, "hist": [0] * 12, **bad}
        if finite:
            total = sum(count for count, *_ in finite)
            mean = sum(count * mean for count, _, _, mean, _ in finite) / total
            square = sum(count * (std**2 + (each - mean) ** 2) for count, _, _, each, std in finite) / total
            low, high = min(row[1] for row in finite), max(row[2] for row in finite)
            shown = cells[np.isfinite(cells)].astype(float)
            hist = np.histogram(shown, 12, (low, high))[0].tolist() if high > low else [0] * 6 + [1] + [0] * 5
            statistics |= {"min": low, "max": high, "mean": mean, "std": math.sqrt(square), "hist": hist}
        dtype = next(part.dtype for part in parts if isinstance(part, cls))
        return cls(joined_shape(shapes), dtype, cells, (1, max(1, sum(sizes) // cells.size)), statistics)

    def scaled(self, factor: float) -> ArraySummary:
        """Return the summary of the array times `factor`."""
        stats = dict(self.statistics)
        if stats["min"] is not None:
            stats["min"], stats["max"] = sorted((stats["min"] * factor, stats["max"] * factor))
            stats["mean"], stats["std"] = stats["mean"] * factor, stats["std"] * abs(factor)
            stats["hist"] = stats["hist"] if factor >= 0 else stats["hist"][::-1]
        return ArraySummary(self.shape, self.dtype, self.cells * factor, self.step, stats)


def magnitude(x: Any) -> float:
    """Return the magnitude of a number, or the root mean square of an array, without overflow."""
    if x is None or x.__class__ is float:
        return abs(float(x or 0.0))
    if isinstance(x, ArraySummary):
        return x.rms
    top = float(abs(x).max()) if getattr(x, "size", 1) else 0.0
    if not top or not math.isfinite(top):
        return top
    return top * float(((abs(x / top) ** 2).mean()) ** 0.5) if hasattr(x, "mean") else top


def has_nan(x: Any) -> bool:
    """Whether a number is NaN, or any element of an array; None counts as no."""
    if isinstance(x, ArraySummary):
        return bool(x.statistics["nan"])
    return bool(math.isnan(x)) if x.__class__ is float else x is not None and bool((x != x).any())


def count_bad_elements(x: Any, nan: bool) -> str:
    """Return how many elements are NaN, or else infinite: ``3 of 20 elements``."""
    if isinstance(x, ArraySummary):
        n = x.statistics["nan" if nan else "inf"]
    else:
        n = int((x != x).sum() if nan else (abs(x) == math.inf).sum())
    return f"{n:,} of {x.size:,} elements" if x.size > 1 else "its only element"


def joined_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape of several outputs together: stacked if their shapes agree, otherwise flattened."""
    if len(set(shapes)) == 1:
        return (len(shapes), *shapes[0])
    return (sum(math.prod(shape) for shape in shapes),)
