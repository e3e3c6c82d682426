"""`TorchBuilder`: a trace under construction, to which leaves and steps of PyTorch are appended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Real
from typing import Any

import torch

from minigrad.core.grad_mode import Scope
from minigrad_viz.trace.array_summary import joined_shape
from minigrad_viz.trace.builder import Builder
from minigrad_viz.trace.rows import TensorData
from minigrad_viz.trace.torch.graph import Graph, NodeRef, StepOperand
from minigrad_viz.trace.torch.groups import TraceStep
from minigrad_viz.trace.torch.internals import gradient_metadata, schema_of
from minigrad_viz.trace.torch.operations import bind_arguments, opaque_op
from minigrad_viz.trace.torch.recorder import RECORDINGS
from minigrad_viz.trace.torch.rows import TensorArgument, TensorValue
from minigrad_viz.trace.torch.summaries import copy_to_host, dtype_name

__all__ = ["TorchBuilder"]


MEMORY_ARGUMENTS = ("memory_format", "non_blocking", "pin_memory")  # they do not affect the values


class TorchBuilder(Builder):
    """A `Builder` that appends PyTorch leaves and steps."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.edge_of: dict[tuple[int, int], int] = {}
        """The trace's edge for each autograd edge: the number of a node, and an index of its ``next_functions``."""
        self.step_of_node: dict[int, TraceStep] = {}
        """The step of the trace to which an autograd node belongs, by the node's number."""
        self.picks: dict[tuple[Any, int], int] = {}
        """The node of each output of a step of which several outputs are used."""
        self.hidden_writes: set[int] = set()
        """Nodes that were modified without being recorded by autograd."""
        self._buffers: set[int] = set()  # by id: leaves that are buffers of modules
        self._function_scopes: dict[int, Scope] = {}

    def index_of(self, source: NodeRef) -> int:
        """Return the index of the node that a source stands for; append a leaf that is not there yet."""
        if source.key in self.graph.leaves:
            return self._add_leaf(source.key, None)
        pick = self.picks.get((source.key, source.output))
        return self.indices[source.key] if pick is None else pick

    def node_of_source(self, source: NodeRef) -> Any:
        """Return the key in `indices` of a source's node."""
        if source.key[0] == "leaf":
            return self.graph.leaves[source.key]
        return ("pick", source) if (source.key, source.output) in self.picks else source.key

    def tensors_with_indices(self) -> Iterator[tuple[torch.Tensor, int]]:
        """Yield the leaves, and the tensors that still have the value of a node, with the node's index."""
        graph = self.graph
        for leaf in graph.leaves.values():
            if isinstance(leaf, torch.Tensor):
                yield leaf, self.indices[leaf]
        sources = {id(value): NodeRef(key, k) for key, step in graph.steps.items() for k, value in step.outputs.items()}
        sources |= {id(value): NodeRef(key) for key, value in graph.values.items()}
        for recording in RECORDINGS:
            for reference, value, _, _ in list(recording.tensors.values()):
                source, x = sources.get(id(recording.values[value])), reference()
                if source is not None and x is not None and self.node_of_source(source) in self.indices:
                    yield x, self.index_of(source)

    # --- leaves ---

    def _add_leaf(self, key: Any, scope: Any) -> int:
        leaf = self.graph.leaves[key]
        node = leaf if isinstance(leaf, torch.Tensor) else key
        if node in self.indices:
            return self.indices[node]
        value = self.graph.values.get(key)
        grad = None
        if isinstance(leaf, TensorValue):
            data, state = TensorData(leaf.shape, leaf.dtype, leaf.values), "b"
        else:
            values = copy_to_host(leaf) if value is None else value.values
            data = TensorData(() if leaf.is_nested else tuple(leaf.shape), dtype_name(leaf.dtype), values)
            grad = None if leaf.grad is None else copy_to_host(leaf.grad)
            state = "f" if grad is not None else "b" if not leaf.requires_grad else "n" if leaf.grad is None else "p"
        index = self.indices[node] = self.add("l", None, None, state, self.block_of(scope))
        self.trace.tensors[index] = data
        if grad is not None:
            self.trace.grads[index] = grad
        return index

    def _is_in_module(self, leaf: Any, scope: Any) -> bool:
        """Whether a leaf is a parameter, or a buffer of the module that is called in `scope`."""
        if isinstance(leaf, torch.nn.Parameter) or scope is None or scope.module is None:
            return isinstance(leaf, torch.nn.Parameter)
        is_buffer = any(leaf is buffer for buffer in scope.module.buffers(recurse=False))
        if is_buffer:
            self._buffers.add(id(leaf))
        return is_buffer

    def _input_leaves(self, names: Sequence[str | None]) -> set[int]:
        buffers = {index for leaf, index in self.indices.items() if id(leaf) in self._buffers}
        return super()._input_leaves(names) - buffers

    # --- steps ---

    def add_step(self, step: TraceStep) -> None:
        """Append the leaves among the operands of a step, its edges, and the step itself."""
        trace, scope = self.trace, self._scope_of(step)
        for operand in step.operands:
            if operand.source.key in self.graph.leaves:
                leaf = self.graph.leaves[operand.source.key]
                self._add_leaf(operand.source.key, scope if self._is_in_module(leaf, scope) else None)
        op, order, attrs = self._operation(step)
        operands: dict[int, int] = {}
        flows: list[bool] = []
        autograd_edges: list[list[tuple[int, int]]] = []
        block = self.block_of(scope)
        modified: list[int] = []
        for slot, item in enumerate(order):
            if item is None:
                continue
            if isinstance(item, StepOperand):
                operands[slot] = self.index_of(item.source)
                edges = step.edges[step.operands.index(item)]
                if item.value is not None and item.value.is_modified:
                    self.hidden_writes.add(operands[slot])
                if item.value is not None and item.value is not self.graph.values.get(item.source.key, item.value):
                    modified.append(operands[slot])
            else:
                operands[slot], edges = self.add("c", None, float(item), "b", block), []
            flows.append(bool(edges))
            autograd_edges.append(edges)
        first_edge = len(trace.operand)
        self.add_edges(operands, flows)
        for position, edges in enumerate(autograd_edges):
            self.edge_of.update(dict.fromkeys(edges, first_edge + position))
        index = self.add("o", op, None, "n" if step.final.node is not None else "b", block)
        self.indices[step.final.key] = index
        if modified:
            trace.modified_operands[index] = list(dict.fromkeys(modified))
        for part in step.steps:
            if part.node is not None:
                self.step_of_node[part.key[1]] = step
        if step.function is not None and step.function.line is not None:
            self.set_line(index, step.function.line)
        if attrs:
            trace.attrs[index] = attrs
        self._add_outputs(step, index, block)

    def _operation(self, step: TraceStep) -> tuple[Any, list[Any], dict[str, Any]]:
        """Return the operation of a node, its operands by slot (operands, numbers, or None), and its attributes."""
        match = step.counterpart()
        if match is not None:
            remaining = list(step.operands)
            order: list[Any] = []
            for argument in match.operands:
                at = step.operand_of(argument, remaining) if isinstance(argument, TensorArgument) else None
                order.append(argument if at is None else remaining.pop(at))
            if not remaining and all(isinstance(item, StepOperand | Real) or item is None for item in order):
                return match.op, order, match.attrs
        return opaque_op(step.name), list(step.operands), _extra_attributes(step)

    def _add_outputs(self, step: TraceStep, index: int, block: int) -> None:
        trace = self.trace
        shaped = [_tensor_data(step, k) for k in step.used_outputs]
        if len(shaped) == 1:
            trace.tensors[index] = shaped[0]
            return
        trace.tensors[index] = TensorData(joined_shape([data.shape for data in shaped]), shaped[0].dtype, None)
        for output, data in zip(step.used_outputs, shaped, strict=True):
            flows = step.final.node is not None and data.dtype.startswith(("float", "bfloat", "complex"))
            self.add_edges({0: index}, [flows])
            pick = self.add("o", opaque_op("output"), None, trace.states[index] if flows else "b", block)
            trace.tensors[pick], trace.attrs[pick] = data, {"index": output}
            source = NodeRef(step.final.key, output)
            self.picks[source.key, output] = self.indices["pick", source] = pick

    def _scope_of(self, step: TraceStep) -> Any:
        scope = step.final.scope
        if step.block is None:
            return scope
        if id(step.block) not in self._function_scopes:
            name = step.block.name.strip("_")
            self._function_scopes[id(step.block)] = Scope(name, scope)
        return self._function_scopes[id(step.block)]


def _tensor_data(step: TraceStep, output: int) -> TensorData:
    value = step.final.outputs.get(output)
    if value is not None:
        return TensorData(value.shape, value.dtype, value.values)
    metadata = gradient_metadata(step.final.node)[output]
    shape = () if metadata.is_nested_tensor else tuple(metadata.shape)
    return TensorData(shape, dtype_name(metadata.dtype), None)


def _extra_attributes(step: TraceStep) -> dict[str, Any]:
    """Return the arguments of a call that are not tensors and differ from their defaults."""
    call = step.core.call
    if call is None:
        return {}
    attrs, arguments = {}, bind_arguments(call)
    for argument in schema_of(call.operation).arguments:
        x = arguments.get(argument.name)
        default = argument.default_value if argument.has_default_value() else None
        is_number_or_text = isinstance(x, int | float | str)
        is_plain = is_number_or_text or (isinstance(x, tuple) and all(isinstance(item, int | float) for item in x))
        is_default = x == (tuple(default) if isinstance(default, list) else default)
        if is_plain and not is_default and argument.name not in MEMORY_ARGUMENTS:
            attrs[argument.name] = x
    return attrs
