"""Launchers: generated functions that fill a launch context of Taichi with arguments and submit it.

A loop over the arguments would take longer than the rest of the launch.
"""

from __future__ import annotations

import functools
from textwrap import indent
from typing import Any

from minigrad.core.specialise import compile_function

__all__ = ["buffer_launcher", "launcher"]

NEWLINE = "\n"
MAX_CONTEXTS = 256  # contexts kept per kernel, of 1.5 KiB each, besides the one whose arguments change
MAX_CHANGES = 1  # arguments that are set, rather than looking up a context


@functools.cache
def launcher(kinds: str) -> Any:
    """Return a factory of functions that launch with arguments of these kinds.

    Setting an array takes a microsecond. A launch function therefore keeps a context, in which it sets only the
    arguments that differ from the previous launch. Since each step of a training loop has the same addresses (the pool
    returns the same memory), combinations of arguments recur, such as those of several layers. If more than
    `MAX_CHANGES` arguments differ, a combination that was launched before gets a context of its own, of which up to
    `MAX_CONTEXTS` are kept. Floats are not compared, since -0.0 == 0.0, and are always set.
    """
    lines = {
        "a": "array(({k},), x{k}[0], x{k}[2], (x{k}[1],), 0)",
        "i": "whole(({k},), x{k})",
        "p": "whole(({k},), x{k}[0])",
    }
    sets = {k: lines[kind].format(k=k) for k, kind in enumerate(kinds) if kind != "f"}
    floats = [f"context.set_arg_float(({k},), x{k})" for k, kind in enumerate(kinds) if kind == "f"]
    # An interrupt may leave an argument set or not, so it is forgotten first.
    compared = [
        f"if x{k} != y{k}:\n    y{k}, changes = None, changes + 1\n    {line}\n    y{k} = x{k}"
        for k, line in sets.items()
    ]
    key, previous = "".join(f"x{k}, " for k in sets), [f"y{k}" for k in sets]
    setters = _setters(kinds.replace("f", ""), spaces=0)
    source = f"""def launcher(lock, make, launch, ready, core, again):
    program, contexts, seen, shared = core.prog, {{}}, set(), make()
    {" = ".join([*previous, "last"])} = None
    def launched({_parameter_names(kinds)}):
        nonlocal {", ".join([*previous, "last"])}
        if core.prog is not program:
            return again({_parameter_names(kinds)})
        key, context = ({key}), shared
        with lock:
            if key != last and (context := contexts.get(key)) is None:
                context, last, changes = shared, None, 0
{indent(setters + NEWLINE.join(compared), " " * 16)}
                last = key
                if changes > {MAX_CHANGES}:
                    if key in seen and len(contexts) < {MAX_CONTEXTS}:
                        context = make()
{indent(setters + NEWLINE.join(sets.values()), " " * 24)}
                        contexts[key] = context
                    elif len(seen) >= {MAX_CONTEXTS}:
                        seen.clear()
                    seen.add(key)
{indent(NEWLINE.join(floats), " " * 12)}
            launch(ready, context)
    return launched
"""
    return compile_function("launcher", source)


@functools.cache
def buffer_launcher(kinds: str, sizes: tuple[int, ...], written: tuple[bool, ...]) -> Any:
    """Like `launcher`, for GPU buffers with offsets. The function uploads buffers before the launch, and marks those
    that the kernel has written."""
    before, sets, after, position, array = "", "", "", 0, 0
    for k, kind in enumerate(kinds):
        if kind == "a":
            before += f"        b{k} = x{k}[3]\n        if not b{k}.on_device:\n            b{k}.upload()\n"
            sets += f"            buffer(({position},), b{k}.buffer.raw)\n"
            sets += f"            whole(({position + 1},), (x{k}[0] - b{k}.address) // {sizes[array]})\n"
            after += f"        b{k}.on_host = False\n" * written[array]
        elif kind == "h":
            sets += (
                f"            array(({position},), x{k}[0], x{k}[2], (x{k}[1],), 0)\n"
                f"            whole(({position + 1},), 0)\n"
            )
        else:
            sets += f"            {'whole' if kind == 'i' else 'fraction'}(({position},), x{k})\n"
        array += kind in "ah"
        position += 2 if kind in "ah" else 1
    source = (
        f"def launcher(lock, make, launch, ready, core, again):\n    program = core.prog\n"
        f"    def launched({_parameter_names(kinds)}):\n        if core.prog is not program:\n"
        f"            return again({_parameter_names(kinds)})\n{before}"
        f"        with lock:\n            context = make()\n{_setters(kinds + 'i', 'buffer')}{sets}"
        f"            launch(ready, context)\n{after}    return launched\n"
    )
    return compile_function("launcher", source)


def _parameter_names(kinds: str) -> str:
    return ", ".join(f"x{k}" for k in range(len(kinds)))


def _setters(kinds: str, array: str = "array", spaces: int = 12) -> str:
    """Return lines that bind the setters of a context to local names."""
    bindings = {
        "array": "array = context.set_arg_external_array_with_shape",
        "buffer": "buffer = context.set_arg_ndarray",
        "i": "whole = context.set_arg_int",
        "f": "fraction = context.set_arg_float",
    }
    used = {{"a": array, "h": "array", "p": "i"}.get(kind, kind) for kind in kinds}
    return "".join(f"{' ' * spaces}{bindings[one]}\n" for one in sorted(used))
