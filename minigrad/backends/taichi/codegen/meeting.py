"""Loops of a merged kernel, and barriers between loops that cores share.

Waking a core takes 50 µs, and each parallel loop wakes all of them again. So consecutive parallel loops become one
loop, in which each core processes its part of every loop and waits for the others at spin barriers; serial loops run on
one core there. This requires a running thread per core: if Linux schedules two threads on one core, as it does when
they are woken together, a step takes twice as long. So each thread is pinned to a core, also for eager code.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from textwrap import indent
from typing import Any, NamedTuple

import numpy as np

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.runtime import driver, muladd
from minigrad.backends.taichi.runtime.array import LINE, lasting
from minigrad.backends.taichi.runtime.kernel import Kernel

__all__ = ["CORE", "EACH", "ONE", "OTHER", "STEP", "Phase", "can_meet", "joined"]

ONE, CORE, EACH, OTHER = "by one core", "a round for each core", "rounds that cores share", "as it is"
STEP = "    "
WHO = f"""@ti.kernel
def who_kernel(names_: {source.array_of("int32")}, place: ti.i64):
{{}}"""


class Phase(NamedTuple):
    """A loop or statement: its kind and source; for a loop also the name and the number of its iterations.

    For a serial loop the source is the entire loop, else its body.
    """

    kind: str
    text: str
    name: str = ""
    rounds: str = ""


def can_meet() -> bool:
    """Return whether each core gets one iteration of a loop, so that barriers are safe. Then pin the threads."""
    there = muladd.FUSED and 1 < source.CORES <= min(driver.threads(), len(os.sched_getaffinity(0)))
    if there and _Threads.program is not driver.program():
        _Threads.program = driver.program()
        _keep_apart()
    return there


class _Threads:
    program: Any = None  # the program whose threads are pinned


def _keep_apart() -> None:
    """Pin each thread of Taichi to its own core, if the operating system allows it."""
    names, place = lasting(np.zeros(source.CORES, np.int32)), meeting_place()
    loop = Phase(CORE, "who = 0\nmuladd.who(who)\nnames_[each // 512] = who\n", "each")
    made = Kernel("who", WHO.format(_met([loop, loop], "place")), "ai")
    made.unheard((names.ctypes.data, len(names), names.nbytes), place.ctypes.data)
    for name, core in zip(names.tolist(), sorted(os.sched_getaffinity(0)), strict=False):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(name, {core})


def _settle() -> None:
    """Pin the threads at startup: eager code also waits for the last thread of each parallel loop."""
    if driver.arch() == "cpu" and driver.started_by_us():
        can_meet()


driver.on_restart(_settle)


def meeting_place() -> Any:
    """Allocate the counter of a spin barrier, in a cache line of its own."""
    return lasting(np.zeros(LINE // 4, np.int32))


def joined(loops: Sequence[Phase], place: str) -> str:
    """Return the statements of a kernel. From the first to the last parallel loop they are one loop with barriers, if
    `place` is an expression of the counter's address rather than ""."""
    text, run = "", list[Phase]()
    for loop in (*loops, None):
        if loop is not None and loop.kind != OTHER:
            run.append(loop)
            continue
        shared = [k for k, one in enumerate(run) if one.kind != ONE]
        if place and len(shared) > 1:
            first, last = shared[0], shared[-1] + 1
            text += "".join(map(_alone, run[:first])) + _met(run[first:last], place)
            run = run[last:]
        text += "".join(map(_alone, run)) + (_alone(loop) if loop is not None else "")
        run = []
    return text


def _alone(loop: Phase) -> str:
    if loop.kind == OTHER:
        return indent(loop.text, STEP)
    if loop.kind == ONE:
        return f"{source.ONCE}    for {loop.name} in range(1):\n{indent(loop.text, STEP * 2)}"
    body = loop.text if loop.kind == EACH else f"if {loop.name} % 512 == 0:\n{indent(loop.text, STEP)}"
    return f"    for {loop.name} in range({loop.rounds}):\n{indent(body, STEP * 2)}"


def _met(loops: Sequence[Phase], place: str) -> str:
    cores = source.CORES
    lines = f"{source.ONCE}    for once in range(1):\n        meeting = {place}\n        muladd.apart(meeting)\n"
    lines += f"    for core in range({cores} * 512):\n        if core % 512 == 0:\n            me = core // 512\n"
    lines += f"            meeting = {place}\n            come = 0\n"
    for k, loop in enumerate(loops):
        if k and not loop.kind == loops[k - 1].kind == ONE:
            lines += f"            come += {cores}\n            muladd.meet(meeting, come)\n"
        if loop.kind == ONE:
            head = "if me == 0:\n"
        elif loop.kind == CORE:
            head = f"for {loop.name} in range(me * 512, me * 512 + 1):\n"  # a loop, so that its variables are local
        else:
            head = f"share{k} = ti.raw_div({loop.rounds} + {cores - 1}, {cores})\n"
            head += f"for {loop.name} in range(me * share{k}, ti.min({loop.rounds}, (me + 1) * share{k})):\n"
        lines += indent(head + indent(loop.text, STEP), STEP * 3)
    return lines
