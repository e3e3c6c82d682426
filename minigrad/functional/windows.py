"""Windows over a dimension, and sparse matrices of window weights, for pooling and resizing."""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from minigrad import ops
from minigrad.core.tensor import Tensor

__all__ = ["SparseRows", "Windows", "adaptive_windows", "apply_rows", "averaging_rows", "sliding_windows"]

Windows = tuple[range, ...]
SparseRows = tuple[tuple[range, tuple[float, ...]], ...]


@lru_cache(maxsize=256)
def sliding_windows(n: int, m: int, kernel: int, stride: int, padding: int, dilation: int) -> Windows:
    """Return `m` windows over `n` elements, without the indices that fall in the padding."""
    windows = []
    for start in range(-padding, m * stride - padding, stride):
        first = start + dilation * max(0, -(start // dilation))
        windows.append(range(first, min(start + dilation * (kernel - 1) + 1, n), dilation))
    return tuple(windows)


@lru_cache(maxsize=256)
def adaptive_windows(n: int, m: int) -> Windows:
    """Return `m` windows that divide `n` elements evenly, as in adaptive pooling."""
    return tuple(range(j * n // m, -(-(j + 1) * n // m)) for j in range(m))


@lru_cache(maxsize=256)
def averaging_rows(windows: Windows, counts: tuple[int, ...]) -> SparseRows:
    """Return the sparse matrix that divides the sum of each window by its count in `counts`."""
    return tuple((window, (1 / count,) * len(window)) for window, count in zip(windows, counts, strict=True))


def apply_rows(x: Tensor, dim: int, rows: SparseRows) -> Tensor:
    return cast(Tensor, ops.resample(x, rows=rows, dim=dim, size=x.shape[dim]))
