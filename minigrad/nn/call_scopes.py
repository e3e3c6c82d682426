"""Open scopes for module calls, and add the location in the model to errors.

A location is the attribute path from the outermost called module, such as "blocks.0.attention", as in ``state_dict``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from minigrad.core.dispatch import is_tapped
from minigrad.core.errors import MinigradError, printable
from minigrad.core.grad_mode import scope
from minigrad.core.modes import modes

__all__ = ["add_location_note", "is_observed", "module_scope", "record_call"]


class _ModuleStack(threading.local):
    def __init__(self) -> None:
        self.paths: dict[int, str] = {}  # maps ids of submodules of the outermost running module to paths
        self.enclosing: tuple[str, ...] = ()  # paths of the running modules, outermost first


_module_stack = _ModuleStack()


def is_observed() -> bool:
    """Return whether a listener or tap observes operations or scopes."""
    return bool(modes.gradient_passed or modes.scope or modes.lines or is_tapped())


@contextmanager
def module_scope(module: Any) -> Iterator[None]:
    """Open a scope for one call of `module`, named after its path in the enclosing module, or else its class.

    Parameters of the module itself that have no label are labelled with their path.
    """
    for listener in modes.module_called:
        listener.module_called(module)
    previous = _module_stack.paths, _module_stack.enclosing
    path = _module_stack.paths.get(id(module))
    if path is None or not previous[1]:
        _module_stack.paths = {id(part): name for name, part in module.named_modules()}
        _module_stack.enclosing = ("",)
        path, name = "", type(module).__name__
    else:
        parent_prefix = f"{previous[1][-1]}." if previous[1][-1] else ""
        name = path.removeprefix(parent_prefix) or type(module).__name__
        _module_stack.enclosing = (*previous[1], path)
    try:
        with scope(name):
            modes.scope.module = module
            for label, parameter in module.named_parameters(path, recurse=False):
                if getattr(parameter, "label", None) is None:
                    parameter.label = label
            yield
    finally:
        _module_stack.paths, _module_stack.enclosing = previous


def record_call(module: Any, inputs: Any, result: Any) -> None:
    """Mark the graph nodes of `result` as outputs of a call of `module`, and record the nodes of its `inputs`.

    Graph drawings can then show the call even if no tracer was active. No reference to a tensor is kept.
    """
    input_nodes = [*_iter_nodes(inputs)]
    for node in _iter_nodes(result):
        node._extras = {**(getattr(node, "_extras", None) or {}), module: input_nodes}


def _iter_nodes(x: Any) -> Iterator[Any]:
    """Iterate over the graph nodes of the tensors in nested tuples, lists and dicts."""
    if getattr(x, "_step", None) is not None:
        yield x._step
    elif isinstance(x, tuple | list | dict):
        for item in x.values() if isinstance(x, dict) else x:
            yield from _iter_nodes(item)


def add_location_note(module: Any, error: MinigradError) -> None:
    """Add a note with the location in the model to `error`. Each enclosing `module` extends the location."""
    modules = error.__dict__.setdefault("minigrad_modules", [])
    notes = error.__dict__.setdefault("__notes__", [])
    if modules:
        notes.pop()
        inner = next((name for name, submodule in module.named_modules() if submodule is modules[0]), None)
        path = "" if inner is None else f"{inner}, "
        notes.append(printable(f"  in {type(module).__name__}: {path}{_describe(modules[0])}"))
    else:
        notes.append(printable(f"  in {_describe(module)}"))
    modules.append(module)


def _describe(module: Any) -> str:
    return f"{type(module).__name__}({module.extra_repr()})"
