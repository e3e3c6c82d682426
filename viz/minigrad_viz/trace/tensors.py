"""The trace of a graph of tensors.

A graph built inside ``mg.record()`` saved the result of each operation. Any other graph is recomputed from its leaves,
even after ``backward()`` freed it; see `minigrad_viz.trace.replay`. If that fails, values come from variables that
still hold the tensors, or are unknown, and a note names the missing tensor.
"""

from __future__ import annotations

import inspect
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from linecache import getline
from numbers import Real
from typing import Any, cast

import numpy as np

import minigrad as mg
from minigrad.core.dispatch import disable_taps
from minigrad.core.errors import GraphError
from minigrad.core.graph import copy_to_host
from minigrad.core.snapshot import FREED, NodeRecord, get_node, snapshot
from minigrad_viz.trace.alarms import add_alarms
from minigrad_viz.trace.builder import Builder
from minigrad_viz.trace.calls import scopes_by_node
from minigrad_viz.trace.columns import Pass, count_phrase, is_close
from minigrad_viz.trace.names import Namespaces, names_of, tensors_by_node
from minigrad_viz.trace.notation import format_pretty, is_function, sanitize, shorten
from minigrad_viz.trace.replay import Replay
from minigrad_viz.trace.rows import Note, TensorData
from minigrad_viz.trace.trace import Trace

__all__ = ["trace_tensors"]

MAX_PASS_ELEMENTS = 50_000_000  # maximum number of elements in the events of all passes
_PICK = mg.OPS["pick"]

_Records = dict[Any, NodeRecord]  # records by node, in trace order


def trace_tensors(roots: Sequence[Any], namespaces: Namespaces) -> tuple[Trace, dict[Any, int]]:
    """Return the trace of the graph that computes `roots`, and the indices of its nodes, as
    `minigrad_viz.trace.graph.trace_graph` does.
    """
    with disable_taps():
        ends = dict(zip(map(get_node, roots), roots, strict=True))
        records = _topological_records(list(ends))
        return _build_trace(records, ends, namespaces)


def _build_trace(records: _Records, ends: dict[Any, Any], namespaces: Namespaces) -> tuple[Trace, dict[Any, int]]:
    builder, values = _TensorBuilder(records), _StepValues(records, ends, tensors_by_node(namespaces))
    parameter_scopes = _parameter_scopes(records, builder.scopes)
    for node, record in records.items():
        if node in builder.merged_picks:
            continue  # the pick is drawn as part of its operation
        if record.op is not None:
            _add_step(builder, record, values)
        else:
            _add_leaf(builder, node, parameter_scopes.get(node, record.scope))
    trace, indices = builder.trace, builder.indices
    names = builder.resolve_names(names_of(list(indices), namespaces, values.label), namespaces)
    builder.finish(names, [indices[end] for end in ends])
    _note_hidden_writes(trace, {indices[node]: tensor for node, tensor in values.rewritten.items()})
    hooked = [indices[node] for node, record in records.items() if record.hooked]
    gradients = _run_backward(builder, ends, values.replay)
    _note_lost(trace, indices, values.replay.failures)
    if values.replay.freed:
        _note_changed(trace, indices, values, ends)
    if hooked:
        subject = f"{trace.title(hooked[0])} has a hook" if len(hooked) == 1 else f"{len(hooked)} nodes have hooks"
        text = f"{subject}, which may modify its gradient: the backward pass shown runs no hooks."
        trace.notes.append(Note("hook", hooked[0], text, tuple(hooked)))
    add_alarms(trace)
    _fill_gradients(builder, records, gradients)  # after the alarms, since the engine did not retain these gradients
    return trace, indices


def _topological_records(ends: Sequence[Any]) -> _Records:
    """Return the nodes before `ends` in topological order, in which the operand with the longest path comes first.

    This keeps the steps of an unrolled loop in sequence; `topological` would start with the input of the last step.
    """
    record_by_node = {record.node: record for record in snapshot(ends)}
    depth: dict[Any, int] = {}
    for node, record in record_by_node.items():
        depth[node] = 1 + max((depth[x] for x in record.operands if x is not None), default=-1)
    order: _Records = {}
    stack = list(ends)[::-1]
    while stack:
        node = stack[-1]
        waiting = [x for x in record_by_node[node].operands[::-1] if x is not None and x not in order]
        if node in order or not waiting:
            order.setdefault(stack.pop(), record_by_node[node])
        else:
            stack += sorted(waiting, key=depth.__getitem__)
    return order


class _TensorBuilder(Builder):
    """A `Builder` that records which outputs of multi-output operations are used.

    Each output is a *pick* node of the graph. If only one output is used, as for ``max`` along a dimension, it is drawn
    as the operation itself.
    """

    def __init__(self, records: _Records) -> None:
        super().__init__()
        self.scopes = scopes_by_node(list(records.values()))
        self.picks: dict[Any, dict[int, NodeRecord]] = defaultdict(dict)
        picks = [(pick, pick.operands[0]) for pick in records.values() if pick.op is _PICK]
        for pick, step in picks:
            self.picks[step].setdefault(pick.attrs["index"], pick)
        self.merged_picks = {pick.node: step for pick, step in picks if step and len(self.picks[step]) == 1}

    def output_records(self, step: NodeRecord) -> tuple[NodeRecord, ...]:
        """Return the records that contain the values of a node: the step itself, or its picks."""
        picks = self.picks.get(step.node)
        return (step,) if picks is None else tuple([picks[index] for index in sorted(picks)])

    def combine_gradient(self, node: Any, gradient: Any) -> Any:
        """Return the gradient of a node as one array, combined from its used outputs. Missing gradients are 0."""
        if not isinstance(gradient, tuple):
            return np.asarray(gradient)
        picks = sorted(self.picks[node].items())
        parts = [np.zeros(pick.shape, pick.dtype) if gradient[k] is None else gradient[k] for k, pick in picks]
        return _combine_arrays([np.asarray(part) for part in parts])


def _combine_arrays(arrays: Sequence[Any]) -> Any:
    """Combine outputs into one array. They are stacked if their shapes agree, otherwise flattened and concatenated."""
    if len(arrays) == 1 or any(array is None for array in arrays):
        return arrays[0] if len(arrays) == 1 else None
    if len({array.shape for array in arrays}) == 1:
        return np.stack(arrays)
    return np.concatenate([array.reshape(-1) for array in arrays])


def _parameter_scopes(records: _Records, scopes: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the scope in which each module parameter is first used, since parameters are created outside of scopes."""
    scopes_by_parameter: dict[Any, Any] = {}
    for step, record in records.items():
        for source in record.operands:
            if isinstance(source, mg.nn.Parameter):
                scopes_by_parameter.setdefault(source, scopes.get(step))
    return scopes_by_parameter


def _copy_values(tensor: Any) -> Any:
    """Return a copy of a tensor's values as an array, since the tensor may be modified later."""
    return None if tensor is None else copy_to_host(tensor)


class _StepValues:
    """The values of each step: recorded, replayed, or read from a tensor in a variable."""

    def __init__(self, records: _Records, roots: dict[Any, Any], variables: dict[Any, Any]) -> None:
        tensor_by_node = {**variables, **roots}
        self._tensors = tensor_by_node
        self.rewritten = {node: x for node, x in tensor_by_node.items() if node in records and _has_unrecorded_write(x)}
        steps = [record for record in records.values() if record.op is not None]
        freed = any(step.saved is None for step in steps)
        has_all_values = not freed and all(step.value is not None for step in steps)
        tensors = {node: tensor for node, tensor in tensor_by_node.items() if node not in self.rewritten}
        self.replay = Replay([] if has_all_values else list(records.values()), tensors, freed)

    def array(self, step: NodeRecord) -> Any:
        """Return the values that `step` computed; None if unknown."""
        if self.replay.freed or step.value is None:
            return _copy_values(self.replay.tensors.get(step.node))
        return step.value

    def label(self, node: Any) -> str | None:
        """Return the label of a node's tensor."""
        return getattr(self._tensors.get(node, node), "label", None)


def _has_unrecorded_write(tensor: Any) -> bool:
    """Whether a computed tensor was modified without being recorded, and so differs from its step's result."""
    return tensor.grad_fn is not None and tensor.storage.has_unrecorded_write


def _note_hidden_writes(trace: Trace, rewritten: dict[int, Any]) -> None:
    for node, tensor in sorted(rewritten.items()):
        name = trace.title(node)
        text = (
            f"{name} was modified in-place after it was computed, unrecorded, by {tensor.storage.last_writer}: its "
            "current values are not in this graph and have no gradient. Modify it outside of no_grad()."
        )
        trace.notes.append(Note("overwritten", node, text, (node,)))


def _add_leaf(builder: _TensorBuilder, tensor: Any, scope: Any) -> int:
    """Append a tensor that no operation created, in the block of `scope`, if it is missing. Return its index."""
    if tensor not in builder.indices:
        grad = tensor.grad
        state = "b" if not tensor.requires_grad else "n" if grad is None else "f"
        index = builder.indices[tensor] = builder.add("l", None, None, state, builder.block_of(scope))
        builder.trace.tensors[index] = TensorData(tensor.shape, tensor.dtype.name, _copy_values(tensor))
        if grad is not None:
            builder.trace.grads[index] = _copy_values(grad)
    return builder.indices[tensor]


def _add_step(builder: _TensorBuilder, step: NodeRecord, values: _StepValues) -> None:
    """Append a step, preceded by its missing operands and its edges."""
    trace, op, scope = builder.trace, step.op, builder.scopes.get(step.node)
    assert op is not None  # a step has an operation
    rules = op.rules_for(len(step.operands))
    operands, flows, modified = {}, [], []
    constants = values.replay.constants(step)
    arguments, block = _function_arguments(step, constants), builder.block_of(scope)
    for slot, (source, constant) in enumerate(zip(step.operands, constants, strict=True)):
        if source is not None:
            operands[slot] = builder.indices[source]
        elif isinstance(constant, mg.Tensor):
            frozen = isinstance(constant, mg.nn.Parameter)
            operands[slot] = _add_leaf(builder, constant, scope if frozen else constant.scope)
        elif slot in arguments:
            continue
        elif isinstance(constant, Real):
            operands[slot] = builder.add("c", None, float(constant), "b", block)
        elif constant is FREED:
            operands[slot] = builder.add("c", None, None, "b", block)
        else:
            continue  # an omitted operand
        flows.append(source is not None and rules[slot] is not None)
        if not values.replay.freed and slot in step.stale:
            modified.append(operands[slot])
    builder.add_edges(operands, flows)
    if step.overwritten:  # the step's gradient rule reads the result
        modified.append(len(trace.kinds))
    index = builder.indices[step.node] = _add_output(builder, step, values)
    if step.line is not None:
        builder.set_line(index, step.line)
    attrs = {name: x for some in arguments.values() for name, x in some.items()}
    attrs |= {name: step.attrs[name] for name in op.attrs if name in step.attrs}
    outputs = builder.output_records(step)
    for pick in outputs:
        if pick.node in builder.merged_picks:
            builder.indices[pick.node] = index
            attrs |= {"output": pick.attrs["index"]} if pick.attrs["index"] else {}
    if len(outputs) > 1:
        attrs["outputs"] = " and ".join(str(pick.shape) for pick in outputs)
    if attrs:
        trace.attrs[index] = attrs
    if modified:
        trace.modified_operands[index] = list(dict.fromkeys(modified))


def _function_arguments(step: NodeRecord, constants: Sequence[Any]) -> dict[int, dict[str, Any]]:
    """Return the non-tensor arguments of a Function by slot, named after `forward`'s parameters if they were saved."""
    function = step.function
    if function is None or not is_function(cast(mg.Op, step.op)):
        return {}
    names = list(inspect.signature(function.forward).parameters)[not hasattr(function, "setup_context") :]
    arguments: dict[int, dict[str, Any]] = {}
    for slot, (source, constant) in enumerate(zip(step.operands, constants, strict=True)):
        if source is None and constant is not FREED and not isinstance(constant, mg.Tensor):
            arguments[slot] = {} if constant is ... or slot >= len(names) else {names[slot]: constant}
    return arguments


def _add_output(builder: _TensorBuilder, step: NodeRecord, values: _StepValues) -> int:
    """Append the node of `step` with its values, and with its gradient if known."""
    outputs = builder.output_records(step)
    grad = _combine_arrays([_gradient_array(record.gradient) for record in outputs])
    state = "f" if grad is not None else "p" if step.saved is None else "n"
    index = builder.add("o", step.op, None, state, builder.block_of(builder.scopes.get(step.node)))
    shapes = [x.shape for x in outputs]
    is_stacked = len(set(shapes)) == 1
    combined_shape = (len(shapes), *shapes[0]) if is_stacked else (sum(math.prod(x) for x in shapes),)
    shape = shapes[0] if len(shapes) == 1 else combined_shape
    array = _combine_arrays([values.array(x) for x in outputs])
    builder.trace.tensors[index] = TensorData(shape, outputs[0].dtype, array)
    if grad is not None:
        builder.trace.grads[index] = np.asarray(grad)
    return index


def _gradient_array(gradient: Any) -> Any:
    """Return a gradient, which may be an array or a tensor, as an array."""
    return copy_to_host(gradient) if isinstance(gradient, mg.Tensor) else gradient


# --- backward --------------------------------------------------------------------------------------------------------


def _run_backward(builder: _TensorBuilder, roots: dict[Any, Any], replay: Replay) -> dict[int, Any]:
    """Append a pass of engine events from each output, seeded with ones.

    Returns the gradients that these passes accumulate, by node.
    """
    element_count = 0
    trace, indices, gradients = builder.trace, builder.indices, defaultdict[int, Any](int)
    for done_count, (end, root) in enumerate(roots.items()):
        if element_count > MAX_PASS_ELEMENTS:
            text = f"Backward steps are shown for the first {done_count:,} of {len(roots):,} outputs."
            trace.notes.append(Note("partial", None, text))
            break
        root = replay.tensors.get(end) if replay.freed else root
        if root is None or (end is not roots[end] and root.grad_fn is None):
            continue  # the output was not recomputed
        run, seed = Pass(indices[end], trace), None if root.numel() == 1 else mg.ones_like(root)
        try:
            events = mg.events(root, seed)
        except GraphError:
            continue  # a saved tensor was modified in-place; a note reports it
        for event in events:
            source, target = (replay.nodes.get(node, node) for node in (event.source, event.target))
            index = indices[source]
            if indices[target] == index:
                continue  # this edge leads from an operation's only output to the operation
            incoming_edges = range(trace.start[index], trace.start[index + 1])
            run.edge.append(next(edge for edge in incoming_edges if trace.slot[edge] == event.slot))
            run.upstream.append(builder.combine_gradient(source, event.upstream))
            run.contribution.append(builder.combine_gradient(target, event.contribution))
            run.total.append(builder.combine_gradient(target, event.total))
            element_count += run.total[-1].size
        trace.passes.append(run)
        for index, total in (trace.totals(run) | {run.root: np.ones(root.shape, root.dtype.name)}).items():
            gradients[index] = gradients[index] + total
    return gradients


def _fill_gradients(builder: _TensorBuilder, records: _Records, gradients: dict[int, Any]) -> None:
    """Set the gradients of the steps of a backward pass, which the engine has freed.

    Freed steps were part of a pass. So were all steps if the ``.grad`` of the leaves equals the computed gradients.
    Otherwise, the seed of a non-scalar output is unknown, and so are all gradients computed from it.
    """
    trace = builder.trace
    leaves = [at for at in gradients if trace.kinds[at] == "l"]
    leaves_match = bool(leaves) and all(at in trace.grads and is_close(trace.grads[at], gradients[at]) for at in leaves)
    scalar = all(math.prod(trace.tensors[at].shape) == 1 for at in trace.outputs)
    fillable_states = "np" if leaves_match else "p" if scalar else ""
    steps = {builder.indices[node] for node, record in records.items() if record.op is not None}
    for index in steps & gradients.keys():
        if trace.states[index] in fillable_states:
            trace.states[index], trace.grads[index] = "f", gradients[index]


# --- differences from the original graph -----------------------------------------------------------------------------


def _note_lost(trace: Trace, indices: Mapping[Any, int], lost: Mapping[Any, tuple[str, str]]) -> None:
    """Report which operation cannot be recomputed, which data is missing, and how to retain the data."""
    lost_nodes = [(indices[node], *reason) for node, reason in lost.items()]
    if lost_nodes:
        lost_index, why, advice = lost_nodes[0]
        unknown_nodes = tuple(at for at, shaped in trace.tensors.items() if shaped.array is None)
        suffix = f" and {count_phrase(len(lost_nodes) - 1, 'more node', 'more nodes')}" if len(lost_nodes) > 1 else ""
        text = f"{trace.title(lost_index)}{suffix} cannot be recomputed: {why}. {advice}"
        trace.notes.append(Note("freed", lost_index, sanitize(text), unknown_nodes))


def _note_changed(trace: Trace, indices: Mapping[Any, int], values: _StepValues, ends: Mapping[Any, Any]) -> None:
    """Report differences between the recomputed and the original graph: modified leaves, and changed outputs."""
    written = list(values.replay.modified)
    changed = ""
    for end, root in ends.items():
        before, after = copy_to_host(root), trace.tensors[indices[end]].array
        if end is not root and end not in values.rewritten and after is not None and not is_close(before, after):
            was, now = (
                format_pretty(float(x.reshape(-1)[0])) if x.size == 1 else "other values" for x in (before, after)
            )
            changed = f"{trace.title(indices[end])} was {was} and is {now}"
            break
    if written:
        names = [trace.title(indices[x]) for x in written if x in indices] or ["A constant"]
        names_phrase = " and ".join(names) if len(names) < 3 else f"{', '.join(names[:2])} and {len(names) - 2} more"
        storage = max((x.storage for x in written), key=lambda storage: storage.last_write_count)
        line = shorten(getline(*storage.location).strip(), 40)
        text = (
            f"{names_phrase} {'was' if len(names) == 1 else 'were'} modified in-place after this was computed, by "
            f"{storage.last_writer}{f' in `{line}`' if line else ''}. The drawing is recomputed from the current values"
            f"{f': {changed}' if changed else ''}."
        )
        if any(x.grad is not None for x in written):
            text += " Their .grad is from before the change; draw before that line to see that pass."
    elif changed and not values.replay.failures:
        text = (
            f"{changed} when recomputed: something that it depends on was changed, such as a NumPy array that shares "
            "memory with a tensor."
        )
    else:
        return
    trace.notes.append(Note("replayed", None, sanitize(text)))
