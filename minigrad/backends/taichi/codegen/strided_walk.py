"""Iteration over strided arrays of any shape, in as few dimensions as possible, and in vectors if possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from minigrad.backends.taichi.runtime.caches import arch_cache

__all__ = ["StridedWalk", "broadcast_strides", "collapse_dimensions", "compute_walk"]

WIDTHS = 16, 8, 4  # elements of a vector


class StridedWalk(NamedTuple):
    """The iteration of a kernel over the result and its operands, in as few dimensions as possible."""

    is_flat: bool
    """Whether all arrays have the same contiguous layout."""
    dims: int
    numbers: tuple[int, ...]
    """The strides of the result, then of each operand, then the sizes."""
    vector_strides: tuple[int, ...] | None
    """The vector size, the number of dimensions, then the last stride of each operand, which is 1 or 0.

    None if the last dimension is not a multiple of a vector.
    """
    vectors: tuple[int, ...]
    """Like `numbers`, with strides and the last size in vectors."""


@arch_cache(4096)
def compute_walk(shape: tuple[int, ...], *arrays: tuple[tuple[int, ...], tuple[int, ...], int]) -> StridedWalk:
    """Return the walk over `arrays`, each given as (shape, strides, item size). The first array is the result, to which
    the other arrays are broadcast."""
    walks = [_element_strides(*one, shape) for one in arrays]
    order = sorted(range(len(shape)), key=lambda k: -abs(walks[0][k]))  # the memory order of the result
    sizes, strides = collapse_dimensions([shape[k] for k in order], [[walk[k] for k in order] for walk in walks])
    numbers = (*[by for per in strides for by in per], *sizes)
    last = [by[-1] for by in strides]
    rows = [by if step else [] for by, step in zip(strides, last, strict=True)]
    flat, lengths = strides == [[1]] * len(strides), (sizes[-1], *[step for by in rows for step in by[:-1]])
    if last[0] == 1 and {0, 1}.issuperset(last):
        for wide in WIDTHS:
            if not any(n % wide for n in lengths):
                lines = [[step // wide for step in by] if by[-1] else by for by in strides]
                vectors = (*[by for per in lines for by in per], *sizes[:-1], sizes[-1] // wide)
                return StridedWalk(flat, len(sizes), numbers, (wide, len(sizes), *last[1:]), vectors)
    return StridedWalk(flat, len(sizes), numbers, None, ())


def broadcast_strides(x: Any, shape: tuple[int, ...]) -> list[int]:
    """Return the strides of `x` broadcast to `shape`, in elements."""
    return _element_strides(x.shape, x.strides, x.itemsize, shape)


def _element_strides(sizes: Sequence[int], strides: Sequence[int], itemsize: int, shape: tuple[int, ...]) -> list[int]:
    new = len(shape) - len(sizes)
    return [0] * new + [0 if n == 1 else by // itemsize for n, by in zip(sizes, strides, strict=True)]


def collapse_dimensions(shape: Sequence[int], strides: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Remove dimensions of size 1, and merge adjacent dimensions that are contiguous."""
    sizes: list[int] = []
    walks: list[list[int]] = [[] for _ in strides]
    for k, n in enumerate(shape):
        if n == 1:
            continue
        if sizes and all(walk[-1] == per[k] * n for walk, per in zip(walks, strides, strict=True)):
            sizes[-1] *= n
            for walk, per in zip(walks, strides, strict=True):
                walk[-1] = per[k]
            continue
        sizes.append(n)
        for walk, per in zip(walks, strides, strict=True):
            walk.append(per[k])
    return (sizes, walks) if sizes else ([1], [[0] for _ in strides])
