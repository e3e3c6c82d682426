"""Pooling and resampling kernels, separable: one dimension at a time, each NumPy call serving all windows."""

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
def rounds(windows: tuple[range, ...]) -> list[tuple[int, slice, slice]]:
    """Group the (window, position) pairs into rounds (tap, windows, positions); `tap` is the index within the window.

    No position occurs twice in a round, so that a round can scatter-add as well as gather. Both slices are evenly
    spaced, so that NumPy takes views: evenly spaced windows need hardly more rounds than taps.
    """
    met: Counter[tuple[int, int]] = Counter()
    runs: defaultdict[tuple[int, int], list[list[tuple[int, int]]]] = defaultdict(list)
    for window, places in enumerate(windows):
        for tap, place in enumerate(places):
            met[tap, place] += 1
            line = runs[tap, met[tap, place]]
            if line and continues(line[-1], window, place):
                line[-1].append((window, place))
            else:
                line.append([(window, place)])
    return [
        (tap, spaced([window for window, _ in run]), spaced([place for _, place in run]))
        for (tap, _), line in sorted(runs.items())
        for run in line
    ]


def continues(run: list[tuple[int, int]], window: int, place: int) -> bool:
    """Return whether (window, place) extends `run` with the same, forward step."""
    w, p = run[-1]
    return place > p and (len(run) == 1 or (2 * w - run[-2][0], 2 * p - run[-2][1]) == (window, place))


def spaced(places: list[int]) -> slice:
    return slice(places[0], places[-1] + 1, places[1] - places[0] if len(places) > 1 else 1)


def pooling(beats: Any) -> Kernel:
    """Return the kernel that takes the extremum of each window by a comparison, or its last nan, as in PyTorch."""

    def pool(a: Array, *, windows: tuple[tuple[range, ...], ...]) -> tuple[Array, Array]:
        spatial = a.shape[a.ndim - len(windows) :]
        at = np.broadcast_to(np.arange(prod(spatial)).reshape(spatial), a.shape)
        for dim in range(a.ndim - 1, a.ndim - 1 - len(windows), -1):  # columns first: the first row wins ties
            line = windows[dim - a.ndim]
            best, best_at = [np.empty((*a.shape[:dim], len(line), *a.shape[dim + 1 :]), x.dtype) for x in (a, at)]
            new, new_at, old, old_at = [np.moveaxis(x, dim, -1) for x in (best, best_at, a, at)]
            for tap, to, of in rounds(line):
                number = old[..., of]
                better = tap == 0 or beats(number, new[..., to]) | (number != number)
                np.copyto(new[..., to], number, where=better)
                np.copyto(new_at[..., to], old_at[..., of], where=better)
            a, at = best, best_at
        return a, at

    return pool


kernel("max_pool", DEVICE)(pooling(np.greater))
kernel("min_pool", DEVICE)(pooling(np.less))


@kernel("pick_at", DEVICE)
def pick_at(a: Array, b: Array, *, dims: int) -> Array:
    lead, count = a.shape[: a.ndim - dims], prod(b.shape[b.ndim - dims :])
    line = a.reshape(*lead, prod(a.shape[a.ndim - dims :]))
    return np.take_along_axis(line, b.reshape(*lead, count), -1).reshape(b.shape)


@kernel("put_at", DEVICE)
def put_at(a: Array, b: Array, *, shape: Shape, dims: int) -> Array:
    lead, area = prod(shape[:-dims]), prod(shape[-dims:])
    places = b.reshape(lead, prod(b.shape[b.ndim - dims :])) + np.arange(0, lead * area, area)[:, None]
    out = np.zeros(lead * area, a.dtype)
    np.add.at(out, places.reshape(-1), a.reshape(-1))
    return out.reshape(shape)


@lru_cache(maxsize=256)
def weighted(rows: tuple[tuple[range, tuple[float, ...]], ...]) -> list[tuple[slice, slice, Array]]:
    """Group the nonzeros of a sparse matrix into rounds (rows, columns, weights)."""
    weights = [weights for _, weights in rows]
    return [
        (to, of, np.array([line[tap] for line in weights[to]])) for tap, to, of in rounds(tuple(row for row, _ in rows))
    ]


@kernel("resample", DEVICE)
def resample(a: Array, *, rows: Any, dim: int, size: int, back: bool) -> Array:
    out = np.zeros([*a.shape[:dim], size if back else len(rows), *a.shape[dim + 1 :]], a.dtype)
    target, source = np.moveaxis(out, dim, -1), np.moveaxis(a, dim, -1)
    for row, column, weights in weighted(rows):
        to, of = (column, row) if back else (row, column)
        target[..., to] += source[..., of] * weights.astype(a.dtype)
    return out
