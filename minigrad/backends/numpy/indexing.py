"""Gather, scatter and index kernels. They index flat arrays by offsets, which is fast in NumPy.

`np.add.at` adds in order, so that sums are deterministic. If several elements are assigned to one position, the last
one wins.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array, Shape, as_indices
from minigrad.core.dispatch import kernel

__all__: list[str] = []


def line_offsets(b: Array, dim: int, shape: Shape) -> Array:
    """Return the flat offsets, in an array of `shape`, of the elements at index `b` along `dim`."""
    index = list(np.indices(b.shape, np.int64, sparse=True))
    index[dim] = b
    return sum(positions * prod(shape[k + 1 :]) for k, positions in enumerate(index))


def slice_offsets(b: Array, dim: int, shape: Shape) -> Array:
    """Return the flat offsets of the slices at index `b` along `dim`, in an array of shape (before, index, within)."""
    before, within = [np.arange(prod(sizes), dtype=np.int64) for sizes in (shape[:dim], shape[dim + 1 :])]
    return (before[:, None, None] * shape[dim] + b.reshape(-1, 1)) * within.size + within


def add_at(a: Array, offsets: Any, b: Array, c: Array, dim: int, shape: Shape | None) -> Array:
    """Copy `a`, or create zeros of `shape` if given, and add `c` at index `b`."""
    out = a.copy() if shape is None else np.zeros(shape, c.dtype)
    np.add.at(out.reshape(-1), offsets(b, dim, out.shape).reshape(-1), c.reshape(-1))
    return out


@kernel("gather", DEVICE)
def gather(a: Array, b: Array, *, dim: int) -> Array:
    return a.take(line_offsets(b, dim, a.shape))


@kernel("scatter", DEVICE)
def scatter(a: Array, b: Array, c: Any, *, dim: int) -> Array:
    out = a.copy()
    out.reshape(-1)[line_offsets(b, dim, a.shape)] = c
    return out


@kernel("scatter_add", DEVICE)
def scatter_add(a: Array, b: Array, c: Array, *, dim: int, shape: Shape | None) -> Array:
    return add_at(a, line_offsets, b, c, dim, shape)


@kernel("index_select", DEVICE)
def index_select(a: Array, b: Array, *, dim: int) -> Array:
    return a.take(b, axis=dim)


@kernel("index_copy", DEVICE)
def index_copy(a: Array, b: Array, c: Any, *, dim: int, out: Array | None = None) -> Array:
    out = a.copy() if out is None else out
    out[(*(slice(None),) * dim, np.ascontiguousarray(b))] = c  # NumPy iterates an index in memory order
    return out


@kernel("index_add", DEVICE)
def index_add(a: Array, b: Array, c: Array, *, dim: int, shape: Shape | None) -> Array:
    return add_at(a, slice_offsets, b, c, dim, shape)


@kernel("embedding", DEVICE)
def embedding(a: Array, b: Array, *, padding_idx: int | None, by_freq: bool) -> Array:
    return a.take(b, axis=0)


@kernel("last", DEVICE)
def last(b: Array, *, dim: int | None) -> Array:
    index, axis = (b.reshape(-1), 0) if dim is None else (b, dim)
    shape = (*index.shape[:axis], index.max(initial=-1) + 1, *index.shape[axis + 1 :])
    offsets = line_offsets(index, axis, shape).reshape(-1)
    positions, last_positions = np.arange(offsets.size, dtype=np.int64), np.empty(prod(shape), np.int64)
    last_positions[offsets] = positions
    return (last_positions[offsets] == positions).reshape(b.shape)


@kernel("nonzero", DEVICE)
def nonzero(a: Array) -> Array:
    return as_indices(np.argwhere(a))
