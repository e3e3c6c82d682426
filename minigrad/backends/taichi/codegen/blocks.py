"""Reductions on CUDA, where the threads of a block share the elements of one result, or of adjacent results.

Adjacent threads read adjacent memory: elements of one result if they are contiguous, else elements of adjacent
results. The partial results of threads are combined in shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.runtime import driver
from minigrad.backends.taichi.runtime.array import current

__all__ = ["Cut", "beside", "cut_for", "text_of"]

THREADS = 256  # threads per block
ENOUGH = 1024  # number of blocks that keeps a GPU busy
EACH = 8  # minimum number of elements per thread that is worth a partition
KINDS = ("float32", "float64", "int32", "int64")


class Cut(NamedTuple):
    """The partition of a reduction: results per block, threads per result, and chunks per result."""

    results: int
    threads: int
    stretches: int
    beside: bool
    """Whether adjacent threads read elements of different results."""
    few: bool
    """Whether there are few blocks, see `source.blocks`."""


def cut_for(outs: int, count: int, side_by_side: bool, kind: str) -> Cut | None:
    """Return the partition for `outs` results of `count` elements each, contiguous if `side_by_side`; None if one
    thread per result is faster, or the device is not CUDA."""
    if driver.arch() != "cuda" or current().narrow or kind not in KINDS:
        return None
    results = 32 if side_by_side else 8 if outs >= 8 else 1
    threads = THREADS // results
    if count < min(2 * threads, EACH * 4):
        return None
    groups = -(-outs // results)
    stretches = max(1, min(ENOUGH // groups, count // (threads * EACH)))
    return Cut(results, threads, stretches, side_by_side, groups * stretches <= source.FEW_BLOCKS)


def beside(outer: Sequence[Sequence[int]], inner: Sequence[Sequence[int]]) -> bool:
    """Return whether elements of adjacent results are closer in memory than those of one result, by the strides of
    each array along the outer and the reduced dimensions."""
    far = 1 << 30  # no stride, or only strides of 0
    steps = zip(outer, inner, strict=True)
    ways = [[min(map(abs, filter(None, by)), default=far) for by in both] for both in steps]
    return sum(across < along for across, along in ways) > sum(along < across for across, along in ways)


def text_of(
    name: str,
    takes: Sequence[source.Taken],
    types: tuple[str, str, str],
    sizes: Sequence[str],
    lines: tuple[str, str, str, str],
    snippet: tuple[str, str, str],
    cut: Cut,
) -> tuple[str, str]:
    """Return the source of a reduction kernel and the kinds of its arguments, from the parts that `reduction` prepares.

    `types` are those of the result, the accumulator, and float literals in the snippet; `lines` compute the offsets of
    result `rest` and of its element `left`; `snippet` is the element, how the accumulator s is updated, and the final
    expression.
    """
    out, kind, work = types
    start, split, walk, read = lines
    taken, update, end = snippet
    which, part = ("lane % {0}", "lane // {0}") if cut.beside else ("lane // {1}", "lane % {1}")
    step = cut.results if cut.beside else 1
    body = f"""        ti.simt.block.sync()
        held = ti.simt.block.SharedArray(({THREADS},), ti.{source.TI[kind]})
        lane = t % {THREADS}
        groups = (outs + {cut.results - 1}) // {cut.results}
        result = t // {THREADS} % groups * {cut.results} + {which.format(cut.results, cut.threads)}
        part = {part.format(cut.results, cut.threads)}
        stretch = t // {THREADS} // groups
        rest = ti.min(result, outs - 1)
{split}        i0 = rest
{walk}        first = stretch * length
        s = {start}
        for turn in range((ti.min(length, count - first) - part + {cut.threads - 1}) // {cut.threads}):
            left = first + part + turn * {cut.threads}
{read}            x = {taken}
            s = {update}
        held[lane] = s
        ti.simt.block.sync()
"""
    for many, apart in _joins(cut.threads):
        body += f"""        if part % {many * apart} == 0:
            for k in range(1, {many}):
                x = held[lane + k * {apart * step}]
                s = {update}
            held[lane] = s
        ti.simt.block.sync()
"""
    body += f"""        if (part == 0) & (result < outs):
            y_[stretch * outs + result] = ti.cast({end}, ti.{source.TI[out]})
"""
    numbers = ["outs", "stretches", "length", "count", *sizes]
    count = f"stretches * ((outs + {cut.results - 1}) // {cut.results})"
    return source.wrapped(name, takes, out, work, numbers, count, body, False, threads=(THREADS, cut.few))


def _joins(threads: int) -> list[tuple[int, int]]:
    """Return the steps of the tree reduction, as (number of operands, distance between them)."""
    return [(8, 1), (threads // 8, 8)] if threads > 8 else [(threads, 1)]
