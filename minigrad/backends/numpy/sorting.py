"""Stable sorting. nan sorts as the largest value."""

from __future__ import annotations

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array, as_indices
from minigrad.core.dispatch import kernel

__all__: list[str] = []


def stable_argsort(a: Array, dim: int, descending: bool) -> Array:
    """Return the int64 indices that sort `a`. For descending order, sort the reversed array and reverse the result."""
    if not descending:
        return as_indices(np.argsort(a, axis=dim, kind="stable"))
    return a.shape[dim] - 1 - np.flip(stable_argsort(np.flip(a, dim), dim, False), dim)


@kernel("sort", DEVICE)
def sort(a: Array, *, dim: int, descending: bool) -> tuple[Array, Array]:
    indices = stable_argsort(a, dim, descending)
    return np.take_along_axis(a, indices, dim), indices


@kernel("topk", DEVICE)
def topk(a: Array, *, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    indices = stable_argsort(a, dim, largest)[(*(slice(None),) * dim, slice(k))]
    return np.take_along_axis(a, indices, dim), indices
