"""Launchers: functions that fill a launch context of Taichi's with arguments and hand it over, written out as text.

A loop over the arguments would take longer than all the rest.
"""

from __future__ import annotations

import functools
from typing import Any

from minigrad.core.specialise import compile_function

__all__ = ["buffer_launcher", "launcher"]


@functools.cache
def launcher(kinds: str) -> Any:
    """What makes a function that launches with arguments of these kinds.

    It keeps its context, and gives Taichi only what is another than last time: each array costs a microsecond.
    """
    changed = "            if x{k} != k{k}:\n"
    changed += "                k{k} = None\n                {set}\n                k{k} = x{k}\n"
    lines = {  # what an interrupt leaves half done is not known; and -0.0 is no other number than 0.0
        "a": changed.replace("{set}", "array(({k},), x{k}[0], x{k}[2], (x{k}[1],), 0)"),
        "i": changed.replace("{set}", "whole(({k},), x{k})"),
        "p": changed.replace("{set}", "whole(({k},), x{k}[0])"),
        "f": "            fraction(({k},), x{k})\n",
    }
    sets = "".join(lines[kind].format(k=k) for k, kind in enumerate(kinds))
    known = [f"k{k}" for k, kind in enumerate(kinds) if kind != "f"]
    text = (
        f"def launcher(lock, make, launch, ready, core, again):\n    program, context = core.prog, make()\n"
        f"{_setters(kinds, spaces=4)}    {' = '.join(known)} = None\n"
        f"    def launched({_names(kinds)}):\n        nonlocal {', '.join(known)}\n"
        f"        if core.prog is not program:\n            return again({_names(kinds)})\n"
        f"        with lock:\n{sets}            launch(ready, context)\n"
        "    return launched\n"
    )
    return compile_function("launcher", text)


@functools.cache
def buffer_launcher(kinds: str, sizes: tuple[int, ...], written: tuple[bool, ...]) -> Any:
    """The same with buffers, each with its place to begin: they are filled before, and known to be written after."""
    before, sets, after, at, array = "", "", "", 0, 0
    for k, kind in enumerate(kinds):
        if kind == "a":
            before += f"        b{k} = x{k}[3]\n        if not b{k}.above:\n            b{k}.raise_up()\n"
            sets += f"            buffer(({at},), b{k}.buffer.raw)\n"
            sets += f"            whole(({at + 1},), (x{k}[0] - b{k}.address) // {sizes[array]})\n"
            after += f"        b{k}.below = False\n" * written[array]
        elif kind == "h":
            sets += f"            array(({at},), x{k}[0], x{k}[2], (x{k}[1],), 0)\n            whole(({at + 1},), 0)\n"
        else:
            sets += f"            {'whole' if kind == 'i' else 'fraction'}(({at},), x{k})\n"
        array += kind in "ah"
        at += 2 if kind in "ah" else 1
    text = (
        f"def launcher(lock, make, launch, ready, core, again):\n    program = core.prog\n"
        f"    def launched({_names(kinds)}):\n        if core.prog is not program:\n"
        f"            return again({_names(kinds)})\n{before}"
        f"        with lock:\n            context = make()\n{_setters(kinds + 'i', 'buffer')}{sets}"
        f"            launch(ready, context)\n{after}    return launched\n"
    )
    return compile_function("launcher", text)


def _names(kinds: str) -> str:
    return ", ".join(f"x{k}" for k in range(len(kinds)))


def _setters(kinds: str, array: str = "array", spaces: int = 12) -> str:
    """Lines that give short names to the functions which fill a context."""
    named = {
        "array": "array = context.set_arg_external_array_with_shape",
        "buffer": "buffer = context.set_arg_ndarray",
        "i": "whole = context.set_arg_int",
        "f": "fraction = context.set_arg_float",
    }
    which = {{"a": array, "h": "array", "p": "i"}.get(kind, kind) for kind in kinds}
    return "".join(f"{' ' * spaces}{named[one]}\n" for one in sorted(which))
