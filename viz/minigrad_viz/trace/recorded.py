"""The trace of a recorded step, of `mg.jit`: its kernel calls as nodes, and each compiled kernel as the block of those
that it does."""

from __future__ import annotations

import inspect
import math
from typing import Any

import minigrad as mg
from minigrad._jit.capture import CONSTANT, FULL, start_of
from minigrad.errors import ArgumentError
from minigrad.graph import Scope
from minigrad_viz.notation import clean
from minigrad_viz.trace.build import Builder
from minigrad_viz.trace.columns import Shaped, Trace
from minigrad_viz.trace.names import Namespaces, names_of

__all__ = ["of_step"]


def of_step(step: Any, namespaces: Namespaces) -> Trace:
    """The trace of what a step of `mg.jit` ran last.

    Memory that was there before, and arguments, are leaves; a call that writes to memory is a node from which what
    reads there afterwards begins. There are no numbers and no way back: the step has computed that itself.
    Raises ArgumentError for a step that was not recorded.
    """
    recording = step.recording
    if recording is None:
        raise ArgumentError("draw: this step was not recorded yet.\n  Call it once, and draw it then.")
    function = getattr(step.__wrapped__, "__func__", step.__wrapped__)
    around = inspect.getclosurevars(function).nonlocals if inspect.isfunction(function) else {}
    made = _Made(recording, (*namespaces, around))
    for k, node in enumerate(recording.program.nodes):
        made.add(k, node)
    return made.finished(recording.how)


class _Made:
    """A trace in the making, and which node has written last to each piece of memory."""

    def __init__(self, recording: Any, namespaces: Namespaces) -> None:
        self._builder, self._program = Builder(), recording.program
        self._last: dict[int, int] = {}
        self._names: dict[int, str] = {}  # by node
        called = _names(recording, namespaces)
        self._known = dict(enumerate(recording.arguments)) | _memories(recording, called)
        wanted = self._program.wanted
        self._gradients = [
            (f"{called.get(x, 'argument')}.grad", wanted[k]) for x, k in recording.gradients if k is not None
        ]
        launched = recording.launched
        self._scopes: dict[int, Scope] = {}  # by the number of a compiled kernel
        self._in = {} if launched is None else launched.kernels

    def add(self, k: int, node: Any) -> None:
        """Append call number `k`, after what it reads that is not there yet."""
        builder = self._builder
        scope: Scope | None = None
        for number, name in self._in.get(k, []):
            scope = self._scopes.setdefault(number, Scope(name, scope))
        block = builder.block(scope)
        if node.op in (FULL, CONSTANT):
            place = self._leaf(node.outs[0], node.attrs.get("value"))
        else:
            given = {slot: self._source(x) for slot, x in enumerate(node.inputs) if x is not None}
            builder.lead(given, [False] * len(given))
            place = builder.add("o", mg.OPS[node.op], None, "b", block)
            self._shaped(place, node.outs[0])
            if node.attrs:
                builder.trace.attrs[place] = {name: _told(x) for name, x in node.attrs.items()}
        for view in node.outs:
            self._last[view.buffer.number] = place
            if node.writes and view.buffer.number in self._known:
                self._names[place] = f"{self._known[view.buffer.number]}′"

    def _source(self, x: Any) -> int:
        """The node that an operand is, or lies in the memory of."""
        builder = self._builder
        if not hasattr(x, "buffer"):
            x = getattr(x, "value", x)  # of a traced number what it was
            return builder.add("c", None, float(x), "b", 0)
        number = x.buffer.number
        if number not in self._last:
            fixed = self._program.fixed.get(number)
            alone = fixed is not None and math.prod(x.shape) == 1 and number not in self._known
            self._last[number] = self._leaf(x, fixed.at(x).item() if alone else None)
            if number in self._known:
                self._names[self._last[number]] = self._known[number]
        return self._last[number]

    def _leaf(self, view: Any, value: Any) -> int:
        """Memory that no call has written to; a number alone is a constant."""
        value = getattr(value, "value", value)
        if value is not None and math.prod(view.shape) == 1:
            return self._builder.add("c", None, float(value), "b", 0)
        place = self._builder.add("l", None, None, "b", 0)
        self._shaped(place, view)
        return place

    def _shaped(self, place: int, view: Any) -> None:
        self._builder.trace.tensors[place] = Shaped(view.shape, view.dtype.name, None)

    def finished(self, how: str) -> Trace:
        """The trace, with what is said of how the step is run."""
        trace = self._builder.trace
        for name, view in self._gradients:
            self._names.setdefault(self._last[view.buffer.number], name)
        names = [self._names.get(k) for k in range(len(trace.kinds))]
        self._builder.finish(names, [self._last[view.buffer.number] for view in self._program.wanted])
        trace.how = clean(" ".join(how.split()))
        return trace


def _names(recording: Any, namespaces: Namespaces) -> dict[Any, str]:
    """What the tensors are called that a step has from elsewhere: as a part of a variable, or else what they are."""
    found = {x: clean(about) for x, about in recording.held}
    found |= names_of(list(found), namespaces)
    for space in reversed(namespaces):
        for variable, model in reversed(list(space.items())):
            if hasattr(model, "named_parameters") and not variable.startswith("_"):
                parts = [*model.named_parameters(variable), *model.named_buffers(variable)]
                found |= {x: name for name, x in parts if x in found}
    return found | {x.grad: f"{name}.grad" for x, name in found.items() if x.grad is not None}


def _memories(recording: Any, called: dict[Any, str]) -> dict[int, str]:
    """By its number, what the memory is called that a step reads and writes where it is."""
    found: dict[int, str] = {}
    for number, memory in recording.program.fixed.items():
        first = start_of(memory.flat)
        for x, name in called.items():
            if first <= start_of(x._array) < first + max(memory.flat.nbytes, 1):
                found[number] = name
    return found


def _told(x: Any) -> Any:
    """An attribute as it is to be read: a number that is read anew by what it is."""
    return x.what if hasattr(x, "what") else x
