"""The trace of a step captured by `mg.jit`: kernel calls are nodes in execution order, and each compiled kernel is a
block titled by what it computes.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import minigrad as mg
from minigrad.compiler.jit.nodes import CONSTANT, FULL, start_of
from minigrad.core import graph
from minigrad.core.errors import ArgumentError
from minigrad.core.graph import copied
from minigrad_viz.trace.builder import Builder
from minigrad_viz.trace.names import Namespaces, names_of
from minigrad_viz.trace.notation import clean, shorten_name
from minigrad_viz.trace.rows import Shaped
from minigrad_viz.trace.titles import MIXED, UPDATES, WAYS, TitledCall, only_updates, title_of_kernel
from minigrad_viz.trace.trace import Trace

__all__ = ["of_step"]

_LONGEST = 24  # characters of the parameter in a title
_MANY = 12  # units in a phase: more are grouped by module


def of_step(step: Any, namespaces: Namespaces) -> Trace:
    """Return the trace of the last run of a step of `mg.jit`.

    Arguments and existing memory are leaves; a call that writes to memory is a node that later reads depend on. Values
    are shown if memory still holds them: parameters, optimizer state, gradients and results. There is no backward pass:
    the step computed it itself. Raises ArgumentError for a step that was not captured.
    """
    recording = step.recording
    if recording is None:
        raise ArgumentError("draw: this step was not captured yet.\n  Call it once before drawing it.")
    function = getattr(step.__wrapped__, "__func__", step.__wrapped__)
    around = inspect.getclosurevars(function).nonlocals if inspect.isfunction(function) else {}
    made = _RecordedTrace(recording, (*namespaces, around))
    units = _units(recording)
    works = _works(recording.program.nodes, [k for unit in units for k in unit.calls], made.known)
    made.fill(_arranged(units, works), works)
    return made.finished()


# --- units of execution ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Unit:
    """A unit of execution: a call, a compiled kernel of several calls, or several units grouped under the name
    `called`.
    """

    calls: list[int]
    kernel: str = ""
    joined: str = ""
    """The megakernel that it was merged into."""
    parts: list[_Unit] = field(default_factory=list)
    called: str = ""


def _units(recording: Any) -> list[_Unit]:
    """Return the calls of a step as launched, in execution order."""
    launched, count = recording.launched, len(recording.program.nodes)
    if launched is None:
        return [_Unit([k]) for k in range(count)]
    groups = [group for group in launched.groups for _ in range(group.count)] or [None] * len(launched.launches)
    seen, units = set[int](), []
    for launch, group in zip(launched.launches, groups, strict=True):
        calls = sorted(set(launch.calls) - seen)
        seen.update(calls)
        if calls:
            units.append(_Unit(calls, launch.kernel.name, "" if group is None else group.kernel.name))
    for k in range(count):
        if k not in seen:  # nothing is launched for it
            later = (at for at, unit in enumerate(units) if unit.calls[0] > k)
            units.insert(next(later, len(units)), _Unit([k]))
    return units


def _works(nodes: Sequence[Any], order: Sequence[int], known: Mapping[int, str]) -> dict[int, TitledCall]:
    """Describe each call for `title_of_kernel`; `known` has the names of memory by buffer number."""
    last: dict[int, Any] = {}  # by buffer number, the last call that wrote to it
    works = {}
    for k in order:
        node = nodes[k]
        if node.op not in (FULL, CONSTANT):
            reads = [
                last.get(x.buffer.number, x.buffer) if hasattr(x, "buffer") else None if x is None else repr(x)
                for x in node.inputs
            ]
            out, decoupled = node.outs[0], bool(node.attrs.get("decoupled", False))
            name = shorten_name(known.get(out.buffer.number, ""), _LONGEST)
            dims = tuple([len(x.shape) if hasattr(x, "buffer") else 0 for x in (*node.inputs, out)])
            works[k] = TitledCall(node.op, tuple(reads), k, dims, node.gradient_of, decoupled, name, node.scope)
        last.update((view.buffer.number, k) for view in node.outs)
    return works


def _arranged(units: list[_Unit], works: Mapping[int, TitledCall]) -> list[_Unit]:
    """Group the units by phase: forward, backward, update. Long phases are grouped further by module."""
    done = [[works[k] for k in unit.calls if k in works] for unit in units]
    back = [at for at, calls in enumerate(done) if any(one.of for one in calls)]
    update = [at for at, calls in enumerate(done) if any(one.op in UPDATES for one in calls)]
    if not back and not update:
        joined = {unit.joined for unit in units}
        whole = len(units) > 1 and len(joined) == 1 and "" not in joined
        return [_Unit([], joined.pop(), parts=units)] if whole else units
    first, last = (back[0], back[-1] + 1) if back else (update[0], update[0])
    mixed = bool(update) and update[0] < last
    turn = last if update else len(units)
    ways = zip(
        (WAYS[0], MIXED if mixed else WAYS[1], WAYS[2]), (units[:first], units[first:turn], units[turn:]), strict=True
    )
    alone = len(units[turn:]) == 1  # a single unit's own title names the update
    found = [_Unit([], parts=_by_module(some, works), called=way) for way, some in ways if some]
    return [*found[:-1], *units[turn:]] if alone else found


def _by_module(units: list[_Unit], works: Mapping[int, TitledCall]) -> list[_Unit]:
    """Group consecutive units of a long phase that belong to one part of a model."""
    if len(units) <= _MANY:
        return units
    found = []
    for name, some in groupby(units, lambda unit: _module(unit, works)):
        parts = list(some)
        found += [_Unit([], parts=parts, called=name)] if name and len(parts) > 1 else parts
    return found


def _module(unit: _Unit, works: Mapping[int, TitledCall]) -> str:
    """Return the part of the outermost module that all calls of a unit belong to, with its class; "" if none."""
    parts = {_part(works[k].scope) for k in unit.calls if k in works}
    return parts.pop() if len(parts) == 1 else ""


def _part(scope: Any) -> str:
    while scope and scope.outer is not None and scope.outer.outer is not None:
        scope = scope.outer
    if not scope or scope.outer is None:
        return ""
    kind = "" if scope.module is None else f" · {scope.module._get_name().lstrip('_')}"
    return f"{scope.name}{kind}"


def _titled(unit: _Unit, works: Mapping[int, TitledCall]) -> tuple[str, str]:
    """Return the title of a unit of several calls, and its note."""
    calls = [works[k] for k in _calls_of(unit) if k in works]
    if unit.called and not only_updates(calls):
        return unit.called, ""
    count = f"{len(unit.parts)} launches" if unit.parts else f"{len(unit.calls)} calls"
    joined = f", in {unit.joined}" if unit.joined else ""
    return title_of_kernel(calls), f"{unit.kernel}: {count}{joined}" if unit.kernel else ""


def _calls_of(unit: _Unit) -> list[int]:
    return [*unit.calls, *[k for part in unit.parts for k in _calls_of(part)]]


# --- the trace -------------------------------------------------------------------------------------------------------


class _RecordedTrace:
    """A trace under construction, with the last node that wrote to each buffer."""

    def __init__(self, recording: Any, namespaces: Namespaces) -> None:
        self._builder, self._recording, self._program = Builder(), recording, recording.program
        self._last: dict[int, int] = {}  # by buffer number
        self._first: dict[int, int] = {}  # by number of an external buffer
        self._names: dict[int, str] = {}  # by node
        self._views: dict[int, Any] = {}  # by node: the view of its values
        called = _names(recording, namespaces)
        self.known = dict(enumerate(recording.arguments)) | _memories(recording, called)
        self._gradients = [(x, f"{called.get(x, 'argument')}.grad", k) for x, k in recording.gradients if k is not None]

    def fill(self, units: Sequence[_Unit], works: Mapping[int, TitledCall], outer: int = 0) -> None:
        """Append the calls of units, each kernel of several calls in a block of its own."""
        for unit in units:
            several = unit.called or len([k for k in _calls_of(unit) if k in works]) > 1
            block = self._builder.enter(*_titled(unit, works), outer) if several else outer
            self.fill(unit.parts, works, block)
            kernel = f"{unit.kernel} in {unit.joined}" if unit.joined else unit.kernel
            for k in unit.calls:
                about = {"computes": title_of_kernel([works[k]]) if k in works else "", "kernel": kernel}
                self._add(self._program.nodes[k], block, about)

    def _add(self, node: Any, block: int, about: dict[str, str]) -> None:
        """Append a call, after its operands that were not appended yet."""
        builder = self._builder
        if node.op in (FULL, CONSTANT):
            place = self._leaf(node.outs[0], node.attrs.get("value"))
        else:
            given = {slot: self._source(x) for slot, x in enumerate(node.inputs) if x is not None}
            builder.lead(given, [False] * len(given))
            place = builder.add("o", mg.OPS[node.op], None, "b", block)
            self._shaped(place, node.outs[0])
            attrs = {name: _told(x) for name, x in node.attrs.items()}
            more = {name: text for name, text in {**about, "module": _path(node.scope)}.items() if text}
            builder.trace.attrs[place] = {**attrs, **more}
        for view in node.outs:
            self._last[view.buffer.number] = place
            if node.writes and view.buffer.number in self.known:
                self._names.setdefault(place, f"{self.known[view.buffer.number]}′")  # the updated parameter

    def _source(self, x: Any) -> int:
        """Return the node of an operand, or of the memory it is a view of."""
        builder = self._builder
        if not hasattr(x, "buffer"):
            x = getattr(x, "value", x)  # the traced value of a symbolic scalar
            return builder.add("c", None, float(x), "b", 0)
        number = x.buffer.number
        if number not in self._last:
            fixed = self._program.fixed.get(number)
            alone = fixed is not None and math.prod(x.shape) == 1 and number not in self.known
            self._first[number] = self._last[number] = self._leaf(x, fixed.at(x).item() if alone else None)
            if number in self.known:
                self._names[self._last[number]] = self.known[number]
        return self._last[number]

    def _leaf(self, view: Any, value: Any) -> int:
        """Append memory that no call has written to; a scalar becomes a constant."""
        value = getattr(value, "value", value)
        if value is not None and math.prod(view.shape) == 1:
            return self._builder.add("c", None, float(value), "b", 0)
        place = self._builder.add("l", None, None, "b", 0)
        self._shaped(place, view)
        return place

    def _shaped(self, place: int, view: Any) -> None:
        self._views[place] = view
        self._builder.trace.tensors[place] = Shaped(view.shape, view.dtype.name, None)

    def finished(self) -> Trace:
        """Return the completed trace, with a description of how the step is run."""
        trace, wanted = self._builder.trace, self._program.wanted
        for _, name, k in self._gradients:
            self._names.setdefault(self._last[wanted[k].buffer.number], name)
        names = [self._names.get(k) for k in range(len(trace.kinds))]
        for place, array in self._held():
            if place in trace.tensors and trace.tensors[place].shape == array.shape:
                trace.tensors[place] = trace.tensors[place]._replace(array=copied(array))
        self._gather_parameters()
        given = [self._first[k] for k in range(len(self._recording.arguments)) if k in self._first]
        self._builder.finish(names, [self._last[view.buffer.number] for view in wanted], given)
        trace.how = clean(" ".join(self._recording.how.split()))
        return trace

    def _gather_parameters(self) -> None:
        """Move captured tensors into one block if there are many and several phases use them."""
        trace, ways = self._builder.trace, dict[int, set[int]]()
        for operand, result in zip(trace.operand, trace.result, strict=True):
            k = trace.block[result]
            while k and trace.blocks[k].outer:
                k = trace.blocks[k].outer
            ways.setdefault(operand, set()).add(k)
        arguments = len(self._recording.arguments)
        shared = [at for k, at in self._first.items() if k >= arguments and len(ways.get(at, ())) > 1]
        if len(shared) > _MANY:
            block = self._builder.enter("parameters", "", 0)
            for at in shared:
                trace.block[at] = block

    def _held(self) -> Iterator[tuple[int, Any]]:
        """Yield the nodes whose values are still in memory (persistent buffers and results), with the arrays."""
        launched, wanted = self._recording.launched, self._program.wanted
        for number, place in self._last.items():
            if number in self._program.fixed and place in self._views and self._views[place].buffer.number == number:
                yield place, self._program.fixed[number].at(self._views[place])
        for k, view in enumerate(wanted):
            if launched is not None and (array := launched.last(k)) is not None:
                yield self._last[view.buffer.number], array
        for x, _, k in self._gradients:
            if hasattr(x, "grad") and x.grad is not None:
                yield self._last[wanted[k].buffer.number], graph.number(x.grad)


def _names(recording: Any, namespaces: Namespaces) -> dict[Any, str]:
    """Return the names of captured tensors: paths from a variable, or else descriptions."""
    found = {x: clean(about) for x, about in recording.held}
    found |= names_of(list(found), namespaces)
    for space in reversed(namespaces):
        for variable, model in reversed(list(space.items())):
            if hasattr(model, "named_buffers") and not isinstance(model, type) and not variable.startswith("_"):
                parts = [*model.named_parameters(variable), *model.named_buffers(variable)]
                found |= {x: name for name, x in parts if x in found}
    for optimizer in recording.optimizers:
        for p, kept in optimizer.state.items():
            tensors = {what: x for what, x in kept.items() if isinstance(x, mg.Tensor) and x in found}
            found |= {x: f"{what} of {found[p]}" for what, x in tensors.items() if p in found}
    return found | {x.grad: f"{name}.grad" for x, name in found.items() if x.grad is not None}


def _memories(recording: Any, called: dict[Any, str]) -> dict[int, str]:
    """Return by buffer number the names of memory that a step reads and writes in place."""
    found: dict[int, str] = {}
    for number, memory in recording.program.fixed.items():
        first = start_of(memory.flat)
        for x, name in called.items():
            if first <= start_of(graph.number(x)) < first + max(memory.flat.nbytes, 1):
                found[number] = name
    return found


def _path(scope: str) -> str:
    """Return a module's path in the outermost called module, or the latter's name for that module itself."""
    name, _, inner = scope.partition("/")
    return clean(inner.replace("/", ".") or name.lstrip("_"))


def _told(x: Any) -> Any:
    """Format an attribute; one that is re-read at each call is given by its description."""
    return x.what if hasattr(x, "what") else x
