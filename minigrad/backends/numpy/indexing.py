"""Indexing. What is added up at an index goes there in order, by `np.add.at` on flat arrays, where it is fast."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from minigrad.kernels import kernel

__all__: list[str] = []

DEVICE = "numpy"
Array = Any
Shape = tuple[int, ...]


def lines(b: Array, dim: int) -> tuple[Array, ...]:
    """NumPy's index of the places that `b`, read along `dim`, means."""
    places = list(np.indices(b.shape, sparse=True))
    places[dim] = np.ascontiguousarray(b)  # NumPy writes in the order of the index in memory, and the last stays
    return tuple(places)


def base(a: Array, c: Array, shape: Shape | None) -> Array:
    """What is added to: a copy of `a`, zeros of `shape` where that is None."""
    return a.copy() if shape is None else np.zeros(shape, c.dtype)


def add_at(out: Array, offsets: Array, c: Array) -> Array:
    np.add.at(out.reshape(-1), offsets.reshape(-1), c.reshape(-1))
    return out


@kernel("gather", DEVICE)
def gather(a: Array, b: Array, *, dim: int) -> Array:
    return a[lines(b, dim)]


@kernel("scatter", DEVICE)
def scatter(a: Array, b: Array, c: Any, *, dim: int) -> Array:
    out = a.copy()
    out[lines(b, dim)] = c
    return out


@kernel("scatter_add", DEVICE)
def scatter_add(a: Array, b: Array, c: Array, *, dim: int, shape: Shape | None) -> Array:
    out = base(a, c, shape)
    steps = [prod(out.shape[k + 1 :]) for k in range(out.ndim)]
    offsets = sum(place * step for place, step in zip(lines(b, dim), steps, strict=True))
    return add_at(out, offsets, c)


@kernel("index_select", DEVICE)
def index_select(a: Array, b: Array, *, dim: int) -> Array:
    return a.take(b, axis=dim)


@kernel("index_copy", DEVICE)
def index_copy(a: Array, b: Array, c: Any, *, dim: int) -> Array:
    out = a.copy()
    out[(*(slice(None),) * dim, np.ascontiguousarray(b))] = c
    return out


@kernel("index_add", DEVICE)
def index_add(a: Array, b: Array, c: Array, *, dim: int, shape: Shape | None) -> Array:
    out = base(a, c, shape)
    before, within = np.arange(prod(out.shape[:dim])), np.arange(prod(out.shape[dim + 1 :]))
    offsets = (before[:, None, None] * out.shape[dim] + b.reshape(-1, 1)) * within.size + within
    return add_at(out, offsets, c)


@kernel("embedding", DEVICE)
def embedding(a: Array, b: Array, *, padding_idx: int | None) -> Array:
    return a.take(b, axis=0)


@kernel("last", DEVICE)
def last(b: Array, *, dim: int | None) -> Array:
    index, along = (b.reshape(-1), 0) if dim is None else (b, dim)
    number = np.arange(index.shape[along]).reshape(-1, *(1,) * (index.ndim - along - 1))
    size = index.max(initial=-1) + 1
    written = np.empty((*index.shape[:along], size, *index.shape[along + 1 :]), np.int64)
    written[lines(index, along)] = number
    return (written[lines(index, along)] == number).reshape(b.shape)


@kernel("nonzero", DEVICE)
def nonzero(a: Array) -> Array:
    return np.argwhere(a)
