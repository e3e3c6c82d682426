"""Locations in a model: the scopes that module calls open, and the notes that they add to errors.

A name is the attribute path from the outermost module called, as in ``state_dict``: "blocks.0.attention".
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from minigrad.core.dispatch import tapped
from minigrad.core.errors import MinigradError, printable
from minigrad.core.grad_mode import scope
from minigrad.core.modes import modes

__all__ = ["blamed", "entered", "note_call", "watched"]


class _Here(threading.local):
    def __init__(self) -> None:
        self.paths: dict[int, str] = {}  # by id, of the submodules of the outermost running module
        self.around: tuple[str, ...] = ()  # the paths of the running modules, outermost first


_here = _Here()


def watched() -> bool:
    """Whether a listener or tap observes operations or scopes."""
    return bool(modes.gradient_passed or modes.scope or modes.lines or tapped())


@contextmanager
def entered(module: Any) -> Iterator[None]:
    """Open a scope for one call of `module`, named by its path in the enclosing module, or else by its class.

    Its own parameters without a label are labelled by their path.
    """
    for listener in modes.module_called:
        listener.module_called(module)
    before = _here.paths, _here.around
    path = _here.paths.get(id(module))
    if path is None or not before[1]:
        _here.paths = {id(part): name for name, part in module.named_modules()}
        _here.around = ("",)
        path, name = "", type(module).__name__
    else:
        outer = f"{before[1][-1]}." if before[1][-1] else ""
        name = path.removeprefix(outer) or type(module).__name__
        _here.around = (*before[1], path)
    try:
        with scope(name):
            modes.scope.module = module
            for label, parameter in module.named_parameters(path, recurse=False):
                if getattr(parameter, "label", None) is None:
                    parameter.label = label
            yield
    finally:
        _here.paths, _here.around = before


def note_call(module: Any, given: Any, result: Any) -> None:
    """Record on the graph nodes of `result` that they end a call of `module`, with the nodes of the inputs `given`.

    Graph drawings can then show the call even if no tracer was active. No tensor is kept alive.
    """
    before = [*_steps_in(given)]
    for step in _steps_in(result):
        step._more = {**(getattr(step, "_more", None) or {}), module: before}


def _steps_in(x: Any) -> Iterator[Any]:
    """Iterate over the graph nodes of the tensors in nested tuples, lists and dicts."""
    if getattr(x, "_step", None) is not None:
        yield x._step
    elif isinstance(x, tuple | list | dict):
        for part in x.values() if isinstance(x, dict) else x:
            yield from _steps_in(part)


def blamed(module: Any, error: MinigradError) -> None:
    """Add a note to `error`, raised in `module`, with its location in the model; enclosing modules extend it."""
    trail = error.__dict__.setdefault("minigrad_modules", [])
    notes = error.__dict__.setdefault("__notes__", [])
    if trail:
        notes.pop()
        inner = next((name for name, part in module.named_modules() if part is trail[0]), None)
        path = "" if inner is None else f"{inner}, "
        notes.append(printable(f"  in {type(module).__name__}: {path}{_line(trail[0])}"))
    else:
        notes.append(printable(f"  in {_line(module)}"))
    trail.append(module)


def _line(module: Any) -> str:
    return f"{type(module).__name__}({module.extra_repr()})"
