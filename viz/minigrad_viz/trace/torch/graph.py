"""The graph that computes PyTorch tensors: autograd nodes, joined with what was recorded of the forward pass.

Gradients flow along the edges of autograd nodes (``grad_fn.next_functions``), so these are the edges of the graph. The
recording adds the values, the functions' names, and the operations without a gradient: constants, masks, what was
computed under ``torch.no_grad()`` or before a ``detach()``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

import torch

from minigrad_viz.trace.torch.internals import gradient_metadata, sequence_number
from minigrad_viz.trace.torch.recorder import RECORDINGS, TorchRecording
from minigrad_viz.trace.torch.rows import FunctionCall, OperationCall, TensorArgument, TensorValue

__all__ = ["Graph", "NodeRef", "StepOperand", "TorchStep", "build_graph", "is_computed", "operations_since"]

Key = tuple[Any, ...]
CREATION_OPERATIONS = frozenset(  # their results do not depend on the values of tensors
    (
        *("bernoulli_", "empty_like", "fill_", "full_like", "lift_fresh", "new_empty", "new_full", "new_ones"),
        *("new_zeros", "normal_", "ones_like", "rand_like", "randn_like", "uniform_", "zero_", "zeros_like"),
    )
)
UNNAMED_NODES = ("NotImplemented", "GeneratedBackwardFor")  # nodes of operations whose derivative has no name


@dataclass(frozen=True, slots=True)
class NodeRef:
    """Where an operand comes from: a leaf, or output `output` of a step."""

    key: Key
    output: int = 0


@dataclass(slots=True, eq=False)
class StepOperand:
    """A tensor operand of a step. `edge` is the index of the node's ``next_functions`` by which its gradient flows, or
    None. `value` is its recorded value, or None.
    """

    source: NodeRef
    edge: int | None
    value: TensorValue | None


@dataclass(slots=True)
class TorchStep:
    """One operation: an autograd node, a recorded call, or both."""

    key: Key
    name: str
    node: Any
    call: OperationCall | None
    recording: TorchRecording | None
    operands: list[StepOperand] = field(default_factory=list)
    outputs: dict[int, TensorValue] = field(default_factory=dict)
    """The recorded values of its outputs, by index."""
    written_by: OperationCall | None = None
    """For the node of a tensor that was modified through a view, the in-place operation on the view."""
    order: tuple[float, ...] = ()

    @property
    def function(self) -> FunctionCall | None:
        """The user's function call of which it is a part."""
        call = self.call or self.written_by
        if call is None or self.recording is None or call.function < 0:
            return None
        return self.recording.functions[call.function]

    @property
    def scope(self) -> Any:
        """The module call of which it is a part."""
        if self.call is not None:
            return self.call.scope
        return next((value.scope for value in self.outputs.values()), None)


@dataclass(slots=True)
class Graph:
    """The steps that compute `roots`, in the order of their execution, and the leaves by key."""

    roots: list[NodeRef]
    steps: dict[Key, TorchStep]
    leaves: dict[Key, Any]
    """A leaf is a tensor, or a `TensorValue` whose tensor no longer exists."""
    values: dict[Key, TensorValue]
    """The recorded values of leaves, the last one of a leaf that was modified between two operations."""


def build_graph(tensors: Iterable[torch.Tensor]) -> Graph:
    """Return the graph that computes `tensors`."""
    builder = _GraphBuilder()
    roots = [builder.root(x) for x in tensors]
    builder.expand()
    return Graph(roots, dict(_in_order(builder.steps)), builder.leaves, builder.values)


def is_computed(x: Any) -> bool:
    """Whether `x` is a tensor that a recorded operation computed, or any operation that requires a gradient."""
    if not isinstance(x, torch.Tensor):
        return False
    if x.grad_fn is not None:
        return True
    values = (recording.value_of(x) for recording in RECORDINGS)
    return any(value is not None and value.call is not None and bool(value.call.operands) for value in values)


def operations_since(result: torch.Tensor, x: torch.Tensor) -> int:
    """Return the number of operations that compute `result`, if it was computed from `x`; otherwise 0."""
    graph = build_graph([result])
    source = _GraphBuilder().root(x)
    return len(graph.steps) if source.key in graph.steps or source.key in graph.leaves else 0


class _GraphBuilder:
    def __init__(self) -> None:
        self.steps: dict[Key, TorchStep] = {}
        self.leaves: dict[Key, Any] = {}
        self.values: dict[Key, TensorValue] = {}
        self._recordings = sorted(RECORDINGS, key=lambda recording: recording.number)
        self._nodes: dict[int, Any] = {}  # autograd nodes by sequence number
        self._waiting: list[TorchStep] = []

    def root(self, x: torch.Tensor) -> NodeRef:
        """Return the source of a tensor whose graph is drawn."""
        if x.grad_fn is not None:
            self._collect_nodes(x.grad_fn)
            return self._source_of_node(x.grad_fn, x.output_nr)
        for recording in self._recordings:
            value = recording.value_of(x)
            if value is not None and value.tensor is None:
                return self._source_of_value(recording, value)
        return self._leaf(x)

    def expand(self) -> None:
        """Find the operands of all steps."""
        while self._waiting:
            step = self._waiting.pop()
            step.operands = list(self._operands(step))

    def _collect_nodes(self, node: Any) -> None:
        stack = [node]
        while stack:
            node = stack.pop()
            if hasattr(node, "variable") or sequence_number(node) in self._nodes:
                continue
            self._nodes[sequence_number(node)] = node
            stack += [inner for inner, _ in node.next_functions if inner is not None]

    # --- operands ---

    def _operands(self, step: TorchStep) -> Iterator[StepOperand]:
        """Yield the operands of a step in the order of its arguments."""
        edges = [] if step.node is None else list(step.node.next_functions)
        sources = [None if inner is None else self._source_of_node(inner, k) for inner, k in edges]
        recording = step.recording
        if step.call is None or recording is None:
            yield from (StepOperand(source, k, None) for k, source in enumerate(sources) if source is not None)
            return
        for index in step.call.operands:
            value = recording.values[index]
            source = self._source_of_value(recording, value)
            edge = sources.index(source) if source in sources else None
            if edge is not None:
                sources[edge] = None  # another operand with this source uses another edge
            yield StepOperand(source, edge, value)
        yield from (StepOperand(source, k, None) for k, source in enumerate(sources) if source is not None)

    def _source_of_node(self, node: Any, output: int) -> NodeRef:
        if hasattr(node, "variable"):
            return self._leaf(node.variable)
        key = ("node", sequence_number(node))
        if key not in self.steps:
            recording, call = self._recorded_call(node)
            step = TorchStep(key, _step_name(node, call), node, call, recording)
            if _node_name(node) == "CopySlices":
                step.recording, step.written_by = self._last_write(sequence_number(node))
                step.name = step.name if step.written_by is None else step.written_by.name
            self._add_step(step)
            self._set_outputs(self.steps[key], sequence_number(node))
        return NodeRef(key, output)

    def _source_of_value(self, recording: TorchRecording, value: TensorValue) -> NodeRef:
        if value.tensor is not None:
            return self._leaf(value.tensor, value)
        call = value.call
        number, output = value.node or (call.node if call is not None else None, 0)
        if number in self._nodes and (call is None or self._recorded_call(self._nodes[number])[1] is call):
            if value.node is None and call is not None:
                output = call.outputs.index(value.index)
            return self._source_of_node(self._nodes[number], output)
        if call is not None and call.node is None and (not call.operands or _creates(call)):
            return self._leaf_value(recording, value)
        if call is not None:
            key: Key = ("call", id(recording), call.index)
            if key not in self.steps:
                self._add_step(TorchStep(key, call.name, None, call, recording))
                self.steps[key].outputs = {k: recording.values[index] for k, index in enumerate(call.outputs)}
            return NodeRef(key, call.outputs.index(value.index))
        if value.written_by < 0:
            return self._leaf_value(recording, value)
        key = ("alias", id(recording), value.index)
        if key not in self.steps:
            self.steps[key] = step = TorchStep(key, "alias", None, None, recording, outputs={0: value})
            written = recording.values[value.written_by]
            step.operands = [StepOperand(self._source_of_value(recording, written), None, written)]
            call_index = -1 if written.call is None else written.call.index
            step.order = (self._recordings.index(recording), call_index + 0.5)
        return NodeRef(key)

    def _leaf_value(self, recording: TorchRecording, value: TensorValue) -> NodeRef:
        """Return the source of a value that no step of the graph computes, such as that of ``torch.zeros(3)``."""
        key = ("value", id(recording), value.index)
        self.leaves[key], self.values[key] = value, value
        return NodeRef(key)

    def _leaf(self, x: torch.Tensor, value: TensorValue | None = None) -> NodeRef:
        key = ("leaf", id(x))
        self.leaves[key] = x
        if value is not None and (key not in self.values or self.values[key].index < value.index):
            self.values[key] = value
        return NodeRef(key)

    # --- steps ---

    def _add_step(self, step: TorchStep) -> None:
        self.steps[step.key] = step
        self._waiting.append(step)
        if step.call is not None and step.recording is not None:
            step.order = (self._recordings.index(step.recording), step.call.index)
        else:
            step.order = self._order_of_node(sequence_number(step.node))

    def _order_of_node(self, number: int) -> tuple[float, ...]:
        """Return the position of an autograd node that no call created: after the last call whose node is older."""
        older = [
            (created, at, call.index)
            for at, recording in enumerate(self._recordings)
            for created, call in recording.call_of_node.items()
            if created < number
        ]
        _, at, index = max(older, default=(-1, -1, -1))
        return at, index + 0.5, number

    def _recorded_call(self, node: Any) -> tuple[TorchRecording | None, OperationCall | None]:
        """Return the call that created a node."""
        number = sequence_number(node)
        for recording in self._recordings:
            call = recording.call_of_node.get(number)
            if call is not None and _is_node_of(call, _node_name(node)):
                return recording, call
        return None, None

    def _last_write(self, number: int) -> tuple[TorchRecording | None, OperationCall | None]:
        """Return the in-place operation after which an autograd node was created."""
        writes = [
            (following, at, call.index)
            for at, recording in enumerate(self._recordings)
            for following, call in recording.in_place_calls
            if following <= number
        ]
        if not writes:
            return None, None
        _, at, index = max(writes)
        return self._recordings[at], self._recordings[at].calls[index]

    def _set_outputs(self, step: TorchStep, number: int) -> None:
        if step.call is not None and step.recording is not None:
            step.outputs = {k: step.recording.values[index] for k, index in enumerate(step.call.outputs)}
        for recording in self._recordings:
            for output in range(len(gradient_metadata(step.node))):
                index = recording.value_of_output.get((number, output))
                if index is not None and (step.recording is recording or recording.values[index].call is None):
                    step.outputs[output] = recording.values[index]


def _in_order(steps: dict[Key, TorchStep]) -> Iterator[tuple[Key, TorchStep]]:
    """Yield the steps topologically; steps that are independent are in the order of their execution."""
    waiting = dict.fromkeys(steps, 0)
    results: dict[Key, list[Key]] = {}
    for key, step in steps.items():
        for operand in {operand.source.key for operand in step.operands} & steps.keys():
            waiting[key] += 1
            results.setdefault(operand, []).append(key)
    ready: list[tuple[tuple[float, ...], Key]] = []
    for key, count in waiting.items():
        if not count:
            heappush(ready, (steps[key].order, key))
    while ready:
        _, key = heappop(ready)
        yield key, steps[key]
        for result in results.get(key, ()):
            waiting[result] -= 1
            if not waiting[result]:
                heappush(ready, (steps[result].order, result))


def _step_name(node: Any, call: OperationCall | None) -> str:
    """Return the name of an operation: that of its call, or of the `torch.autograd.Function`, or of its node."""
    if call is not None:
        return call.name
    name = _node_name(node)
    if isinstance(node, torch.autograd.function.BackwardCFunction):
        return name
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _node_name(node: Any) -> str:
    """Return "Addmm" for AddmmBackward0."""
    return re.sub(r"Backward\d*$", "", node.name().rpartition("::")[2])


def _creates(call: OperationCall) -> bool:
    return call.name in CREATION_OPERATIONS and not any(isinstance(x, TensorArgument) for x in call.args[1:])


def _is_node_of(call: OperationCall, name: str) -> bool:
    return name.startswith(UNNAMED_NODES) or _normalise(call.name) == _normalise(name)


def _normalise(name: str) -> str:
    """Return a name that is the same for an ATen operation and its node: "addmm", "nllloss"."""
    return re.sub(r"_forward$|_", "", name).lower()
