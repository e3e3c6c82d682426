"""Separable pooling and resampling kernels. They process one dimension at a time, and many windows per NumPy call."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array, Shape
from minigrad.core.dispatch import Kernel, kernel

__all__: list[str] = []


@lru_cache(maxsize=256)
def group_into_rounds(windows: tuple[range, ...]) -> list[tuple[int, slice, slice]]:
    """Group the (window, position) pairs into rounds (tap, windows, positions); `tap` is the index within the window.

    No position occurs twice in a round, so that rounds can be used to gather and to scatter-add. Windows and positions
    are slices, so that indexing returns views. Evenly spaced windows need hardly more rounds than taps.
    """
    occurrences: Counter[tuple[int, int]] = Counter()
    runs: defaultdict[tuple[int, int], list[list[tuple[int, int]]]] = defaultdict(list)
    for window, positions in enumerate(windows):
        for tap, position in enumerate(positions):
            occurrences[tap, position] += 1
            groups = runs[tap, occurrences[tap, position]]
            if groups and is_continuation(groups[-1], window, position):
                groups[-1].append((window, position))
            else:
                groups.append([(window, position)])
    return [
        (tap, as_slice([window for window, _ in run]), as_slice([position for _, position in run]))
        for (tap, _), line in sorted(runs.items())
        for run in line
    ]


def is_continuation(run: list[tuple[int, int]], window: int, position: int) -> bool:
    """Return whether (window, position) extends `run` by the same step, with increasing positions."""
    w, p = run[-1]
    return position > p and (len(run) == 1 or (2 * w - run[-2][0], 2 * p - run[-2][1]) == (window, position))


def as_slice(indices: list[int]) -> slice:
    return slice(indices[0], indices[-1] + 1, indices[1] - indices[0] if len(indices) > 1 else 1)


def make_pool_kernel(is_better: Any) -> Kernel:
    """Return a kernel that computes the extremum of each window, or its last nan, as PyTorch does."""

    def pool(a: Array, *, windows: tuple[tuple[range, ...], ...]) -> tuple[Array, Array]:
        spatial = a.shape[a.ndim - len(windows) :]
        indices = np.broadcast_to(np.arange(prod(spatial), dtype=np.int64).reshape(spatial), a.shape)
        for dim in range(a.ndim - 1, a.ndim - 1 - len(windows), -1):  # columns first, so that the first row wins ties
            dim_windows = windows[dim - a.ndim]
            best, best_indices = [
                np.empty((*a.shape[:dim], len(dim_windows), *a.shape[dim + 1 :]), x.dtype) for x in (a, indices)
            ]
            new, new_indices, old, old_indices = [np.moveaxis(x, dim, -1) for x in (best, best_indices, a, indices)]
            for tap, target, source in group_into_rounds(dim_windows):
                candidate = old[..., source]
                better = tap == 0 or is_better(candidate, new[..., target]) | (candidate != candidate)
                np.copyto(new[..., target], candidate, where=better)
                np.copyto(new_indices[..., target], old_indices[..., source], where=better)
            a, indices = best, best_indices
        return a, indices

    return pool


kernel("max_pool", DEVICE)(make_pool_kernel(np.greater))
kernel("min_pool", DEVICE)(make_pool_kernel(np.less))


@kernel("pick_at", DEVICE)
def pick_at(a: Array, b: Array, *, dims: int) -> Array:
    lead, count = a.shape[: a.ndim - dims], prod(b.shape[b.ndim - dims :])
    line = a.reshape(*lead, prod(a.shape[a.ndim - dims :]))
    return np.take_along_axis(line, b.reshape(*lead, count), -1).reshape(b.shape)


@kernel("put_at", DEVICE)
def put_at(a: Array, b: Array, *, shape: Shape, dims: int) -> Array:
    lead, plane_size = prod(shape[:-dims]), prod(shape[-dims:])
    offsets = b.reshape(lead, prod(b.shape[b.ndim - dims :])) + np.arange(0, lead * plane_size, plane_size)[:, None]
    out = np.zeros(lead * plane_size, a.dtype)
    np.add.at(out, offsets.reshape(-1), a.reshape(-1))
    return out.reshape(shape)


@lru_cache(maxsize=256)
def weighted_rounds(rows: tuple[tuple[range, tuple[float, ...]], ...]) -> list[tuple[slice, slice, Array]]:
    """Group the nonzero elements of a sparse matrix into rounds (rows, columns, weights); see `group_into_rounds`."""
    weights = [weights for _, weights in rows]
    return [
        (to, of, np.array([line[tap] for line in weights[to]]))
        for tap, to, of in group_into_rounds(tuple(row for row, _ in rows))
    ]


@kernel("resample", DEVICE)
def resample(a: Array, *, rows: Any, dim: int, size: int, back: bool) -> Array:
    out = np.zeros([*a.shape[:dim], size if back else len(rows), *a.shape[dim + 1 :]], a.dtype)
    target, source = np.moveaxis(out, dim, -1), np.moveaxis(a, dim, -1)
    for row, column, weights in weighted_rounds(rows):
        to, of = (column, row) if back else (row, column)
        target[..., to] += source[..., of] * weights.astype(a.dtype)
    return out
