"""Loops of a merged kernel, and barriers between loops that cores share.

Consecutive parallel loops are merged into one loop, in which each core processes its part of every loop and waits for
the other cores at spin barriers. Serial loops in between run on one core. This requires a running thread per core.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from textwrap import indent
from typing import Any, NamedTuple

import numpy as np

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.runtime import driver, muladd, thread_pool
from minigrad.backends.taichi.runtime.array import CACHE_LINE, register_constant

__all__ = ["PARALLEL", "PER_CORE", "SERIAL", "STATEMENT", "STEP", "KernelLoop", "can_use_barriers", "insert_barriers"]

SERIAL, PER_CORE, PARALLEL, STATEMENT = "by one core", "a round for each core", "rounds that cores share", "as it is"
STEP = "    "


class KernelLoop(NamedTuple):
    """A loop or statement of a kernel. For a loop, `name` is its index and `rounds` the number of iterations.

    `text` is the body of a parallel loop, or the source of the entire serial loop or statement.
    """

    kind: str
    text: str
    name: str = ""
    rounds: str = ""


def can_use_barriers() -> bool:
    """Return whether each core runs one iteration of a loop, so that barriers are safe."""
    return (
        muladd.FUSED
        and driver.arch() == "cpu"
        and 1 < source.CORES <= min(driver.thread_count(), len(os.sched_getaffinity(0)), thread_pool.thread_count())
    )


def barrier_counter() -> Any:
    """Allocate the counter of a spin barrier, in its own cache line."""
    return register_constant(np.zeros(CACHE_LINE // 4, np.int32))


def insert_barriers(loops: Sequence[KernelLoop], counter: str) -> str:
    """Return the statements of a kernel. Unless `counter`, an expression for the address of the barrier counter, is
    empty, the loops from the first to the last parallel loop are merged into one loop with barriers."""
    text, pending = "", list[KernelLoop]()
    for loop in (*loops, None):
        if loop is not None and loop.kind != STATEMENT:
            pending.append(loop)
            continue
        shared = [k for k, one in enumerate(pending) if one.kind != SERIAL]
        if counter and len(shared) > 1:
            first, last = shared[0], shared[-1] + 1
            text += "".join(map(_separate_loop, pending[:first])) + _loop_with_barriers(pending[first:last], counter)
            pending = pending[last:]
        text += "".join(map(_separate_loop, pending)) + (_separate_loop(loop) if loop is not None else "")
        pending = []
    return text


def _separate_loop(loop: KernelLoop) -> str:
    if loop.kind == STATEMENT:
        return indent(loop.text, STEP)
    if loop.kind == SERIAL:
        return f"{source.SERIALIZE}    for {loop.name} in range(1):\n{indent(loop.text, STEP * 2)}"
    body = loop.text if loop.kind == PARALLEL else f"if {loop.name} % 512 == 0:\n{indent(loop.text, STEP)}"
    return f"    for {loop.name} in range({loop.rounds}):\n{indent(body, STEP * 2)}"


def _loop_with_barriers(loops: Sequence[KernelLoop], counter: str) -> str:
    cores = source.CORES
    lines = f"{source.SERIALIZE}    for once in range(1):\n        barrier = {counter}\n"
    lines += (
        f"        muladd.barrier_reset(barrier)\n    for core in range({cores} * 512):\n        if core % 512 == 0:\n"
    )
    lines += f"            core_id = core // 512\n            barrier = {counter}\n            arrivals = 0\n"
    for k, loop in enumerate(loops):
        if k and not loop.kind == loops[k - 1].kind == SERIAL:
            lines += f"            arrivals += {cores}\n            muladd.barrier_wait(barrier, arrivals)\n"
        if loop.kind == SERIAL:
            head = "if core_id == 0:\n"
        elif loop.kind == PER_CORE:
            # a loop with one iteration, so that variables are local
            head = f"for {loop.name} in range(core_id * 512, core_id * 512 + 1):\n"
        else:
            head = f"per_core{k} = ti.raw_div({loop.rounds} + {cores - 1}, {cores})\n"
            end = f"ti.min({loop.rounds}, (core_id + 1) * per_core{k})"
            head += f"for {loop.name} in range(core_id * per_core{k}, {end}):\n"
        lines += indent(head + indent(loop.text, STEP), STEP * 3)
    return lines
