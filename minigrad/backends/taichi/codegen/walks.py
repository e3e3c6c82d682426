"""How kernels walk over arrays of any shape, by strides: in as few dimensions as can be, and where in vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from minigrad.backends.taichi.runtime.caches import cached

__all__ = ["Walk", "collapsed", "stretched", "walk_of"]

WIDTHS = 16, 8, 4  # numbers that can be computed at once


class Walk(NamedTuple):
    """How a kernel goes over the result and its operands, in as few dimensions as can be."""

    flat: bool
    """Whether all lie in memory alike, without gaps."""
    dims: int
    numbers: tuple[int, ...]
    """The strides of the result, then of each operand, then the sizes."""
    along: tuple[int, ...] | None
    """The numbers in a vector, the dimensions, then how each operand goes along the last, by 1 or by 0.

    None unless that is whole vectors.
    """
    vectors: tuple[int, ...]
    """The numbers of that: strides and the last size in vectors."""


@cached(4096)
def walk_of(shape: tuple[int, ...], *arrays: tuple[tuple[int, ...], tuple[int, ...], int]) -> Walk:
    """The walk over the result, given first, and operands that broadcast: each by shape, strides and bytes a number."""
    walks = [_steps(*one, shape) for one in arrays]
    order = sorted(range(len(shape)), key=lambda k: -abs(walks[0][k]))  # as the result lies in memory
    sizes, strides = collapsed([shape[k] for k in order], [[walk[k] for k in order] for walk in walks])
    numbers = (*[by for per in strides for by in per], *sizes)
    last = [by[-1] for by in strides]
    rows = [by if step else [] for by, step in zip(strides, last, strict=True)]
    flat, lengths = strides == [[1]] * len(strides), (sizes[-1], *[step for by in rows for step in by[:-1]])
    if last[0] == 1 and {0, 1}.issuperset(last):
        for wide in WIDTHS:
            if not any(n % wide for n in lengths):
                lines = [[step // wide for step in by] if by[-1] else by for by in strides]
                vectors = (*[by for per in lines for by in per], *sizes[:-1], sizes[-1] // wide)
                return Walk(flat, len(sizes), numbers, (wide, len(sizes), *last[1:]), vectors)
    return Walk(flat, len(sizes), numbers, None, ())


def stretched(x: Any, shape: tuple[int, ...]) -> list[int]:
    """By how many numbers each step along a dimension of `shape` moves in the memory of `x`."""
    return _steps(x.shape, x.strides, x.itemsize, shape)


def _steps(sizes: Sequence[int], strides: Sequence[int], itemsize: int, shape: tuple[int, ...]) -> list[int]:
    new = len(shape) - len(sizes)
    return [0] * new + [0 if n == 1 else by // itemsize for n, by in zip(sizes, strides, strict=True)]


def collapsed(shape: Sequence[int], strides: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """The same walk in as few dimensions as can be: those of size 1 left out, neighbours joined that are one row."""
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
