"""Reductions on CUDA, where the threads of a block share the elements of one result, or of adjacent results.

Adjacent threads read adjacent memory: elements of one result if they are contiguous, else elements of adjacent
results. The partial results of threads are combined in shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.runtime import driver
from minigrad.backends.taichi.runtime.array import current_target

__all__ = ["Partition", "is_outer_contiguous", "kernel_source", "partition_for"]

THREADS = 256  # threads per block
TARGET_BLOCKS = 1024  # number of blocks that keeps a GPU busy
MIN_ELEMENTS_PER_THREAD = 8  # minimum number of elements per thread for which a partition is worthwhile
KINDS = ("float32", "float64", "int32", "int64")


class Partition(NamedTuple):
    """The partition of a reduction: results per block, threads per result, and chunks per result."""

    results: int
    threads: int
    chunks: int
    is_interleaved: bool
    """Whether adjacent threads read elements of different results."""
    is_few: bool
    """Whether there are few blocks; see `block_loop`."""


def partition_for(outs: int, count: int, is_interleaved: bool, kind: str) -> Partition | None:
    """Return the partition for `outs` results of `count` elements each, or None if one thread per result is faster or
    the device is not CUDA. If `is_interleaved`, elements of adjacent results are contiguous."""
    if driver.arch() != "cuda" or current_target().lacks_float64 or kind not in KINDS:
        return None
    results = 32 if is_interleaved else 8 if outs >= 8 else 1
    threads = THREADS // results
    if count < min(2 * threads, MIN_ELEMENTS_PER_THREAD * 4):
        return None
    groups = -(-outs // results)
    chunks = max(1, min(TARGET_BLOCKS // groups, count // (threads * MIN_ELEMENTS_PER_THREAD)))
    return Partition(results, threads, chunks, is_interleaved, groups * chunks <= source.MAX_SINGLE_LAUNCH_BLOCKS)


def is_outer_contiguous(outer: Sequence[Sequence[int]], inner: Sequence[Sequence[int]]) -> bool:
    """Return whether elements of adjacent results are closer in memory than those of one result, judging by the strides
    of each array along the outer and the reduced dimensions."""
    no_stride = 1 << 30  # used if there are no nonzero strides
    steps = zip(outer, inner, strict=True)
    min_strides = [[min(map(abs, filter(None, by)), default=no_stride) for by in both] for both in steps]
    return sum(across < along for across, along in min_strides) > sum(along < across for across, along in min_strides)


def kernel_source(
    name: str,
    takes: Sequence[source.KernelArgument],
    types: tuple[str, str, str],
    sizes: Sequence[str],
    lines: tuple[str, str, str, str],
    snippet: tuple[str, str, str],
    partition: Partition,
) -> tuple[str, str]:
    """Return the source of a reduction kernel and the kinds of its arguments, from the parts that `reduction` prepares.

    `types` are the dtypes of the result, of the accumulator, and of float literals in the snippet. `lines` compute the
    offsets of result `outer_index` and of its element `inner_index`. `snippet` consists of the element, the update of
    the accumulator s, and the final expression.
    """
    out, kind, work = types
    start, split, walk, read = lines
    element, update, end = snippet
    which, part = ("lane % {0}", "lane // {0}") if partition.is_interleaved else ("lane // {1}", "lane % {1}")
    step = partition.results if partition.is_interleaved else 1
    body = f"""        ti.simt.block.sync()
        partials = ti.simt.block.SharedArray(({THREADS},), ti.{source.TAICHI_NAMES[kind]})
        lane = t % {THREADS}
        groups = (outs + {partition.results - 1}) // {partition.results}
        result = t // {THREADS} % groups * {partition.results} + {which.format(partition.results, partition.threads)}
        thread = {part.format(partition.results, partition.threads)}
        chunk = t // {THREADS} // groups
        outer_index = ti.min(result, outs - 1)
{split}        i0 = outer_index
{walk}        first = chunk * length
        s = {start}
        for iteration in range((ti.min(length, count - first) - thread + {partition.threads - 1})\
 // {partition.threads}):
            inner_index = first + thread + iteration * {partition.threads}
{read}            x = {element}
            s = {update}
        partials[lane] = s
        ti.simt.block.sync()
"""
    for many, apart in _tree_steps(partition.threads):
        body += f"""        if thread % {many * apart} == 0:
            for k in range(1, {many}):
                x = partials[lane + k * {apart * step}]
                s = {update}
            partials[lane] = s
        ti.simt.block.sync()
"""
    body += f"""        if (thread == 0) & (result < outs):
            y_[chunk * outs + result] = ti.cast({end}, ti.{source.TAICHI_NAMES[out]})
"""
    numbers = ["outs", "chunks", "length", "count", *sizes]
    count = f"chunks * ((outs + {partition.results - 1}) // {partition.results})"
    return source.wrap_kernel(name, takes, out, work, numbers, count, body, False, threads=(THREADS, partition.is_few))


def _tree_steps(threads: int) -> list[tuple[int, int]]:
    """Return the steps of the tree reduction, as (number of operands, distance between them)."""
    return [(8, 1), (threads // 8, 8)] if threads > 8 else [(threads, 1)]
