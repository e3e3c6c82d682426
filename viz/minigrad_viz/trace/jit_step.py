"""The trace of a step captured by `mg.jit`. Kernel calls are nodes in execution order, and each compiled kernel is a
block whose title states what the kernel computes.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import minigrad as mg
from minigrad.compiler.jit.nodes import CONSTANT, FULL, address_of
from minigrad.core import graph
from minigrad.core.errors import ArgumentError
from minigrad.core.graph import copy_to_host
from minigrad_viz.trace.builder import Builder
from minigrad_viz.trace.names import Namespaces, names_of
from minigrad_viz.trace.notation import sanitize, shorten_name
from minigrad_viz.trace.rows import TensorData
from minigrad_viz.trace.titles import (
    BACKWARD_AND_UPDATE,
    PHASES,
    UPDATE_WORDS,
    TitledCall,
    is_only_updates,
    title_of_kernel,
)
from minigrad_viz.trace.trace import Trace

__all__ = ["trace_step"]

MAX_PARAMETER_LENGTH = 24  # maximum length of a parameter's name in a title
MAX_UNITS_PER_PHASE = 12  # maximum number of units in a phase before they are grouped by module


def trace_step(step: Any, namespaces: Namespaces) -> Trace:
    """Return the trace of the last run of a step of `mg.jit`.

    Arguments and existing memory are leaves. A call that writes to memory is a node, on which later reads depend. The
    values of parameters, optimizer state, gradients and results are shown if they are still in memory. There is no
    separate backward pass, because the step itself contains it. Raises ArgumentError for a step that was not captured.
    """
    recording = step.recording
    if recording is None:
        raise ArgumentError("draw: this step was not captured yet.\n  Call it once before drawing it.")
    function = getattr(step.__wrapped__, "__func__", step.__wrapped__)
    closure_variables = inspect.getclosurevars(function).nonlocals if inspect.isfunction(function) else {}
    builder = _StepTraceBuilder(recording, (*namespaces, closure_variables))
    units = _execution_units(recording)
    titled_calls = _titled_calls(
        recording.program.nodes, [k for unit in units for k in unit.calls], builder.memory_names
    )
    builder.add_units(_group_by_phase(units, titled_calls), titled_calls)
    return builder.finish()


# --- units of execution ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Unit:
    """A unit of execution: a call, a compiled kernel of several calls, or several units grouped under one name."""

    calls: list[int]
    kernel: str = ""
    megakernel: str = ""
    """The megakernel into which the unit was merged."""
    parts: list[_Unit] = field(default_factory=list)
    name: str = ""


def _execution_units(recording: Any) -> list[_Unit]:
    """Return the units of a step in execution order: its launches, or its calls if there is no replay."""
    launched, count = recording.replay, len(recording.program.nodes)
    if launched is None:
        return [_Unit([k]) for k in range(count)]
    groups = [group for group in launched.groups for _ in range(group.count)] or [None] * len(launched.launches)
    launched_calls, units = set[int](), []
    for launch, group in zip(launched.launches, groups, strict=True):
        calls = sorted(set(launch.calls) - launched_calls)
        launched_calls.update(calls)
        if calls:
            units.append(_Unit(calls, launch.kernel.name, "" if group is None else group.kernel.name))
    for k in range(count):
        if k not in launched_calls:  # no kernel is launched for this call
            later = (at for at, unit in enumerate(units) if unit.calls[0] > k)
            units.insert(next(later, len(units)), _Unit([k]))
    return units


def _titled_calls(nodes: Sequence[Any], order: Sequence[int], memory_names: Mapping[int, str]) -> dict[int, TitledCall]:
    """Return a description of each call for `title_of_kernel`. `memory_names` maps buffer numbers to names."""
    writer: dict[int, Any] = {}  # maps a buffer number to the last call that wrote to the buffer
    titled = {}
    for k in order:
        node = nodes[k]
        if node.op not in (FULL, CONSTANT):
            reads = [
                writer.get(x.buffer.index, x.buffer) if hasattr(x, "buffer") else None if x is None else repr(x)
                for x in node.inputs
            ]
            out, decoupled = node.outs[0], bool(node.attrs.get("decoupled", False))
            name = shorten_name(memory_names.get(out.buffer.index, ""), MAX_PARAMETER_LENGTH)
            dims = tuple([len(x.shape) if hasattr(x, "buffer") else 0 for x in (*node.inputs, out)])
            titled[k] = TitledCall(node.op, tuple(reads), k, dims, node.gradient_of, decoupled, name, node.scope)
        writer.update((view.buffer.index, k) for view in node.outs)
    return titled


def _group_by_phase(units: list[_Unit], titled_calls: Mapping[int, TitledCall]) -> list[_Unit]:
    """Group the units by phase: forward, backward and update. Long phases are also grouped by module."""
    calls_by_unit = [[titled_calls[k] for k in unit.calls if k in titled_calls] for unit in units]
    backward_units = [at for at, calls in enumerate(calls_by_unit) if any(call.gradient_of for call in calls)]
    update_units = [at for at, calls in enumerate(calls_by_unit) if any(one.op in UPDATE_WORDS for one in calls)]
    if not backward_units and not update_units:
        megakernels = {unit.megakernel for unit in units}
        is_one_megakernel = len(units) > 1 and len(megakernels) == 1 and "" not in megakernels
        return [_Unit([], megakernels.pop(), parts=units)] if is_one_megakernel else units
    first, last = (backward_units[0], backward_units[-1] + 1) if backward_units else (update_units[0], update_units[0])
    is_mixed = bool(update_units) and update_units[0] < last
    update_start = last if update_units else len(units)
    phases = zip(
        (PHASES[0], BACKWARD_AND_UPDATE if is_mixed else PHASES[1], PHASES[2]),
        (units[:first], units[first:update_start], units[update_start:]),
        strict=True,
    )
    is_single_update = len(units[update_start:]) == 1  # the title of a single unit already names the update
    groups = [_Unit([], parts=_group_by_module(some, titled_calls), name=phase) for phase, some in phases if some]
    return [*groups[:-1], *units[update_start:]] if is_single_update else groups


def _group_by_module(units: list[_Unit], titled_calls: Mapping[int, TitledCall]) -> list[_Unit]:
    """Group consecutive units of a long phase that belong to the same submodule of the outermost module."""
    if len(units) <= MAX_UNITS_PER_PHASE:
        return units
    groups = []
    for name, some in groupby(units, lambda unit: _module_of_unit(unit, titled_calls)):
        parts = list(some)
        groups += [_Unit([], parts=parts, name=name)] if name and len(parts) > 1 else parts
    return groups


def _module_of_unit(unit: _Unit, works: Mapping[int, TitledCall]) -> str:
    """Return the submodule of the outermost module to which all calls of a unit belong, with its class, or ""."""
    parts = {_module_part(works[k].scope) for k in unit.calls if k in works}
    return parts.pop() if len(parts) == 1 else ""


def _module_part(scope: Any) -> str:
    while scope and scope.outer is not None and scope.outer.outer is not None:
        scope = scope.outer
    if not scope or scope.outer is None:
        return ""
    kind = "" if scope.module is None else f" · {scope.module._get_name().lstrip('_')}"
    return f"{scope.name}{kind}"


def _title_and_note(unit: _Unit, works: Mapping[int, TitledCall]) -> tuple[str, str]:
    """Return the title and the note of a unit of several calls."""
    calls = [works[k] for k in _calls_of(unit) if k in works]
    if unit.name and not is_only_updates(calls):
        return unit.name, ""
    count = f"{len(unit.parts)} launches" if unit.parts else f"{len(unit.calls)} calls"
    megakernel_phrase = f", in {unit.megakernel}" if unit.megakernel else ""
    return title_of_kernel(calls), f"{unit.kernel}: {count}{megakernel_phrase}" if unit.kernel else ""


def _calls_of(unit: _Unit) -> list[int]:
    return [*unit.calls, *[k for part in unit.parts for k in _calls_of(part)]]


# --- the trace -------------------------------------------------------------------------------------------------------


class _StepTraceBuilder:
    """A trace under construction, with the last node that wrote to each buffer."""

    def __init__(self, recording: Any, namespaces: Namespaces) -> None:
        self._builder, self._recording, self._program = Builder(), recording, recording.program
        self._writer: dict[int, int] = {}  # maps a buffer number to the last node that wrote to it
        self._external: dict[int, int] = {}  # maps the number of an external buffer to its node
        self._names: dict[int, str] = {}  # names by node
        self._views: dict[int, Any] = {}  # maps a node to the view of its values
        called = _names_of_captured(recording, namespaces)
        self.memory_names = dict(enumerate(recording.arguments)) | _names_of_memory(recording, called)
        self._gradients = [(x, f"{called.get(x, 'argument')}.grad", k) for x, k in recording.gradients if k is not None]

    def add_units(self, units: Sequence[_Unit], works: Mapping[int, TitledCall], outer: int = 0) -> None:
        """Append the calls of units. Each kernel of several calls gets its own block."""
        for unit in units:
            is_block = unit.name or len([k for k in _calls_of(unit) if k in works]) > 1
            block = self._builder.add_block(*_title_and_note(unit, works), outer) if is_block else outer
            self.add_units(unit.parts, works, block)
            kernel = f"{unit.kernel} in {unit.megakernel}" if unit.megakernel else unit.kernel
            for k in unit.calls:
                details = {"computes": title_of_kernel([works[k]]) if k in works else "", "kernel": kernel}
                self._add_call(self._program.nodes[k], block, details)

    def _add_call(self, node: Any, block: int, details: dict[str, str]) -> None:
        """Append a call, after its operands that were not appended yet."""
        builder = self._builder
        if node.op in (FULL, CONSTANT):
            index = self._add_leaf(node.outs[0], node.attrs.get("value"))
        else:
            operands = {slot: self._operand_node(x) for slot, x in enumerate(node.inputs) if x is not None}
            builder.add_edges(operands, [False] * len(operands))
            index = builder.add("o", mg.OPS[node.op], None, "b", block)
            self._set_shape(index, node.outs[0])
            attrs = {name: _format_attribute(x) for name, x in node.attrs.items()}
            extra = {name: text for name, text in {**details, "module": _module_path(node.scope)}.items() if text}
            builder.trace.attrs[index] = {**attrs, **extra}
        for view in node.outs:
            self._writer[view.buffer.index] = index
            if node.is_in_place and view.buffer.index in self.memory_names:
                self._names.setdefault(index, f"{self.memory_names[view.buffer.index]}′")  # the updated parameter

    def _operand_node(self, x: Any) -> int:
        """Return the node of an operand, or of the memory of which it is a view."""
        builder = self._builder
        if not hasattr(x, "buffer"):
            x = getattr(x, "value", x)  # traced value of a symbolic scalar
            return builder.add("c", None, float(x), "b", 0)
        index = x.buffer.index
        if index not in self._writer:
            memory = self._program.fixed.get(index)
            is_constant = memory is not None and math.prod(x.shape) == 1 and index not in self.memory_names
            self._external[index] = self._writer[index] = self._add_leaf(
                x, memory.array_at(x).item() if is_constant else None
            )
            if index in self.memory_names:
                self._names[self._writer[index]] = self.memory_names[index]
        return self._writer[index]

    def _add_leaf(self, view: Any, value: Any) -> int:
        """Append a leaf for memory to which no call has written; a scalar becomes a constant."""
        value = getattr(value, "value", value)
        if value is not None and math.prod(view.shape) == 1:
            return self._builder.add("c", None, float(value), "b", 0)
        index = self._builder.add("l", None, None, "b", 0)
        self._set_shape(index, view)
        return index

    def _set_shape(self, index: int, view: Any) -> None:
        self._views[index] = view
        self._builder.trace.tensors[index] = TensorData(view.shape, view.dtype.name, None)

    def finish(self) -> Trace:
        """Return the completed trace, with a description of how the step is run."""
        trace, results = self._builder.trace, self._program.result_views
        for _, name, k in self._gradients:
            self._names.setdefault(self._writer[results[k].buffer.index], name)
        names = [self._names.get(k) for k in range(len(trace.kinds))]
        for index, array in self._available_values():
            if index in trace.tensors and trace.tensors[index].shape == array.shape:
                trace.tensors[index] = trace.tensors[index]._replace(array=copy_to_host(array))
        self._gather_parameters()
        inputs = [self._external[k] for k in range(len(self._recording.arguments)) if k in self._external]
        self._builder.finish(names, [self._writer[view.buffer.index] for view in results], inputs)
        trace.execution = sanitize(" ".join(self._recording.execution.split()))
        return trace

    def _gather_parameters(self) -> None:
        """Move captured tensors into one block if there are many and several phases use them."""
        trace, blocks_using = self._builder.trace, dict[int, set[int]]()
        for operand, result in zip(trace.operand, trace.result, strict=True):
            k = trace.block[result]
            while k and trace.blocks[k].outer:
                k = trace.blocks[k].outer
            blocks_using.setdefault(operand, set()).add(k)
        arguments = len(self._recording.arguments)
        shared = [at for k, at in self._external.items() if k >= arguments and len(blocks_using.get(at, ())) > 1]
        if len(shared) > MAX_UNITS_PER_PHASE:
            block = self._builder.add_block("parameters", "", 0)
            for at in shared:
                trace.block[at] = block

    def _available_values(self) -> Iterator[tuple[int, Any]]:
        """Yield the nodes whose values are still in memory (persistent buffers and results), with their arrays."""
        launched, results = self._recording.replay, self._program.result_views
        for buffer_index, index in self._writer.items():
            if (
                buffer_index in self._program.fixed
                and index in self._views
                and self._views[index].buffer.index == buffer_index
            ):
                yield index, self._program.fixed[buffer_index].array_at(self._views[index])
        for k, view in enumerate(results):
            if launched is not None and (array := launched.last_result(k)) is not None:
                yield self._writer[view.buffer.index], array
        for x, _, k in self._gradients:
            if hasattr(x, "grad") and x.grad is not None:
                yield self._writer[results[k].buffer.index], graph.raw_value(x.grad)


def _names_of_captured(recording: Any, namespaces: Namespaces) -> dict[Any, str]:
    """Return the names of captured tensors: the path from a variable, or else a description."""
    names = {x: sanitize(about) for x, about in recording.guarded_tensors}
    names |= names_of(list(names), namespaces)
    for space in reversed(namespaces):
        for variable, model in reversed(list(space.items())):
            if hasattr(model, "named_buffers") and not isinstance(model, type) and not variable.startswith("_"):
                parts = [*model.named_parameters(variable), *model.named_buffers(variable)]
                names |= {x: name for name, x in parts if x in names}
    for optimizer in recording.optimizers:
        for p, state in optimizer.state.items():
            tensors = {key: x for key, x in state.items() if isinstance(x, mg.Tensor) and x in names}
            names |= {x: f"{key} of {names[p]}" for key, x in tensors.items() if p in names}
    return names | {x.grad: f"{name}.grad" for x, name in names.items() if x.grad is not None}


def _names_of_memory(recording: Any, names_by_tensor: dict[Any, str]) -> dict[int, str]:
    """Return the names, by buffer number, of the memory that a step reads and writes in place."""
    names: dict[int, str] = {}
    for buffer_index, memory in recording.program.fixed.items():
        first = address_of(memory.flat)
        for x, name in names_by_tensor.items():
            if first <= address_of(graph.raw_value(x)) < first + max(memory.flat.nbytes, 1):
                names[buffer_index] = name
    return names


def _module_path(scope: str) -> str:
    """Return the path of a module within the outermost called module, or the name of the latter for itself."""
    name, _, inner = scope.partition("/")
    return sanitize(inner.replace("/", ".") or name.lstrip("_"))


def _format_attribute(x: Any) -> Any:
    """Format an attribute. An attribute that is read again at each call is replaced by its description."""
    return x.description if hasattr(x, "description") else x
