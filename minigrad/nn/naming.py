"""Where in a model something happens: the scopes that calls of modules open, and the note on an error that leaves one.

A name is the path of attributes from the outermost module that was called, as in ``state_dict``: "blocks.0.attention".
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
        self.paths: dict[int, str] = {}  # of the modules in the outermost one that is running, by identity
        self.around: tuple[str, ...] = ()  # the paths of the modules that are running


_here = _Here()


def watched() -> bool:
    """Whether somebody looks at what is computed, and at where."""
    return bool(modes.gradient_passed or modes.scope or modes.lines or tapped())


@contextmanager
def entered(module: Any) -> Iterator[None]:
    """A scope for one call of `module`: its path in the module around it, or the name of its class.

    Its own parameters are labelled by their path, unless they have a label.
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
    """Note at the steps that the tensors in `result` come from that a call of `module` ended there, and the steps of
    what it was `given`: so that pictures show the call where nobody watched. No tensor is kept alive."""
    before = [*_steps_in(given)]
    for step in _steps_in(result):
        step._more = {**(getattr(step, "_more", None) or {}), module: before}


def _steps_in(x: Any) -> Iterator[Any]:
    """The steps of tensors in tuples, lists and dicts."""
    if getattr(x, "_step", None) is not None:
        yield x._step
    elif isinstance(x, tuple | list | dict):
        for part in x.values() if isinstance(x, dict) else x:
            yield from _steps_in(part)


def blamed(module: Any, error: MinigradError) -> None:
    """Note on `error`, which leaves `module`, where in the model it arose: each module around it knows more of that."""
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
