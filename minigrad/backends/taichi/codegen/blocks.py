"""Reductions on CUDA, where a block of threads shares what one result is made of, or some that are beside one another.

Neighbours among threads read neighbours in memory: numbers of one result where these lie side by side, else numbers of
results side by side. What each thread has joined goes through memory that is near, where the first of them joins it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.runtime import driver
from minigrad.backends.taichi.runtime.array import current

__all__ = ["Cut", "beside", "cut_for", "text_of"]

THREADS = 256  # of a block
ENOUGH = 1024  # so many blocks keep a GPU busy
EACH = 8  # so many numbers at least are a thread's: else it is not worth sharing
KINDS = ("float32", "float64", "int32", "int64")


class Cut(NamedTuple):
    """How reductions are shared: so many results by a block, so many threads each, and pieces of each result."""

    results: int
    threads: int
    stretches: int
    beside: bool
    """Whether neighbours among threads read numbers of different results."""
    few: bool
    """Whether the blocks are few, as of `source.blocks`."""


def cut_for(outs: int, count: int, side_by_side: bool, kind: str) -> Cut | None:
    """The cut for `outs` results of `count` numbers each, whose numbers are `side_by_side` or apart; None where
    a thread does better alone, or this is no CUDA."""
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
    """Whether numbers of neighbouring results lie nearer to one another than those of one result do, by the steps of
    each array along dimensions of the result and of what is joined."""
    far = 1 << 30  # there is no step, or none but 0
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
    """The kernel of a reduction, and the kinds of its arguments, as `reduction` puts it together.

    `types` are those of the result, of what is joined, and of fractions in the snippet; `lines` find where the numbers
    of result `rest` begin, and number `left` of them; `snippet` is what is taken in, how it joins s, and what becomes
    of that.
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
    """How many are joined at a time, and how far apart they are."""
    return [(8, 1), (threads // 8, 8)] if threads > 8 else [(threads, 1)]
