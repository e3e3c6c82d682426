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
from minigrad.core.dispatch import untapped
from minigrad.core.errors import GraphError
from minigrad.core.graph import copied
from minigrad.core.snapshot import FREED, NodeRecord, node_of, snapshot
from minigrad_viz.trace.alarms import raise_alarms
from minigrad_viz.trace.builder import Builder
from minigrad_viz.trace.calls import scopes_in
from minigrad_viz.trace.columns import Pass, count, same
from minigrad_viz.trace.names import Namespaces, holders, names_of
from minigrad_viz.trace.notation import clean, is_function, pretty, shorten
from minigrad_viz.trace.replay import Replay
from minigrad_viz.trace.rows import Note, Shaped
from minigrad_viz.trace.trace import Trace

__all__ = ["of_tensors"]

_MOST_NUMBERS = 50_000_000  # elements in the events of all passes
_PICK = mg.OPS["pick"]

_Records = dict[Any, NodeRecord]  # by node, in trace order


def of_tensors(roots: Sequence[Any], namespaces: Namespaces) -> tuple[Trace, dict[Any, int]]:
    """Return the trace of the graph that computes `roots`, and node indices; see
    `minigrad_viz.trace.graph.of_graph`.
    """
    with untapped():
        ends = dict(zip(map(node_of, roots), roots, strict=True))
        records = _as_computed(list(ends))
        return _traced(records, ends, namespaces)


def _traced(records: _Records, ends: dict[Any, Any], namespaces: Namespaces) -> tuple[Trace, dict[Any, int]]:
    builder, held = _Builder(records), _Held(records, ends, holders(namespaces))
    homes = _homes(records, builder.scopes)
    for node, record in records.items():
        if node in builder.parts:
            continue  # drawn as part of its operation
        if record.op is not None:
            _add_step(builder, record, held)
        else:
            _add_leaf(builder, node, homes.get(node, record.scope))
    trace, places = builder.trace, builder.places
    names = builder.names(names_of(list(places), namespaces, held.label), namespaces)
    builder.finish(names, [places[end] for end in ends])
    _note_hidden_writes(trace, {places[node]: tensor for node, tensor in held.rewritten.items()})
    hooked = [places[node] for node, record in records.items() if record.hooked]
    arrived = _run_backward(builder, ends, held.replay)
    _note_lost(trace, places, held.replay.lost)
    if held.replay.freed:
        _note_changed(trace, places, held, ends)
    if hooked:
        which = f"{trace.title(hooked[0])} has a hook" if len(hooked) == 1 else f"{len(hooked)} nodes have hooks"
        text = f"{which}, which may modify its gradient: the backward pass shown runs no hooks."
        trace.notes.append(Note("hook", hooked[0], text, tuple(hooked)))
    raise_alarms(trace)
    _fill_gradients(builder, records, arrived)  # after the alarms: the engine did not retain these
    return trace, places


def _as_computed(ends: Sequence[Any]) -> _Records:
    """Return the nodes before `ends` in topological order, operands with the longest path first.

    This keeps the steps of an unrolled loop in sequence; `topological` would start with the input of the last step.
    """
    found = {record.node: record for record in snapshot(ends)}
    depth: dict[Any, int] = {}
    for node, record in found.items():
        depth[node] = 1 + max((depth[x] for x in record.operands if x is not None), default=-1)
    order: _Records = {}
    stack = list(ends)[::-1]
    while stack:
        node = stack[-1]
        waiting = [x for x in found[node].operands[::-1] if x is not None and x not in order]
        if node in order or not waiting:
            order.setdefault(stack.pop(), found[node])
        else:
            stack += sorted(waiting, key=depth.__getitem__)
    return order


class _Builder(Builder):
    """A `Builder` that records which outputs of multi-output operations are used.

    Each output is a *pick* node of the graph. If only one is used, as of ``max`` along a dimension, it is drawn as the
    operation itself.
    """

    def __init__(self, records: _Records) -> None:
        super().__init__()
        self.scopes = scopes_in(list(records.values()))
        self.picks: dict[Any, dict[int, NodeRecord]] = defaultdict(dict)
        picks = [(pick, pick.operands[0]) for pick in records.values() if pick.op is _PICK]
        for pick, step in picks:
            self.picks[step].setdefault(pick.attrs["index"], pick)
        self.parts: dict[Any, Any] = {pick.node: step for pick, step in picks if step and len(self.picks[step]) == 1}

    def output(self, step: NodeRecord) -> tuple[NodeRecord, ...]:
        """Return the steps that hold the values of a node: the step itself, or its picks."""
        picks = self.picks.get(step.node)
        return (step,) if picks is None else tuple([picks[index] for index in sorted(picks)])

    def gradient(self, node: Any, gradient: Any) -> Any:
        """Return the gradient of a node as one array: that of its used outputs, 0 if none arrived yet."""
        if not isinstance(gradient, tuple):
            return np.asarray(gradient)
        picks = sorted(self.picks[node].items())
        parts = [np.zeros(pick.shape, pick.dtype) if gradient[k] is None else gradient[k] for k, pick in picks]
        return _together([np.asarray(part) for part in parts])


def _together(arrays: Sequence[Any]) -> Any:
    """Combine several outputs into one array: stacked if their shapes agree, otherwise flattened and concatenated."""
    if len(arrays) == 1 or any(array is None for array in arrays):
        return arrays[0] if len(arrays) == 1 else None
    if len({array.shape for array in arrays}) == 1:
        return np.stack(arrays)
    return np.concatenate([array.reshape(-1) for array in arrays])


def _homes(records: _Records, scopes: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the scope of each module parameter: that of the first step that uses it, since parameters are created
    outside.
    """
    homes: dict[Any, Any] = {}
    for step, record in records.items():
        for source in record.operands:
            if isinstance(source, mg.nn.Parameter):
                homes.setdefault(source, scopes.get(step))
    return homes


def _copied(tensor: Any) -> Any:
    """Return a copy of a tensor's values as an array, since they may change later."""
    return None if tensor is None else copied(tensor)


class _Held:
    """The values of each step: recorded, replayed, or still held by a variable."""

    def __init__(self, records: _Records, roots: dict[Any, Any], variables: dict[Any, Any]) -> None:
        held = {**variables, **roots}
        self._labelled = held
        self.rewritten = {node: x for node, x in held.items() if node in records and _hides_write(x)}
        steps = [record for record in records.values() if record.op is not None]
        freed = any(step.saved is None for step in steps)
        known = not freed and all(step.value is not None for step in steps)
        tensors = {node: tensor for node, tensor in held.items() if node not in self.rewritten}
        self.replay = Replay([] if known else list(records.values()), tensors, freed)

    def array(self, step: NodeRecord) -> Any:
        """Return the values that `step` computed; None if unknown."""
        if self.replay.freed or step.value is None:
            return _copied(self.replay.tensors.get(step.node))
        return step.value

    def label(self, node: Any) -> str | None:
        """Return the label of a node's tensor."""
        return getattr(self._labelled.get(node, node), "label", None)


def _hides_write(tensor: Any) -> bool:
    """Whether a computed tensor was modified without being recorded, so that it no longer holds its step's result."""
    return tensor.grad_fn is not None and tensor.storage.unrecorded


def _note_hidden_writes(trace: Trace, rewritten: dict[int, Any]) -> None:
    for place, tensor in sorted(rewritten.items()):
        name = trace.title(place)
        text = (
            f"{name} was modified in-place after it was computed, unrecorded, by {tensor.storage.writer}: its current "
            "values are not in this graph and have no gradient. Modify it outside of no_grad()."
        )
        trace.notes.append(Note("overwritten", place, text, (place,)))


def _add_leaf(builder: _Builder, tensor: Any, scope: Any) -> int:
    """Append a tensor that no operation created, in the block of `scope`, unless it was already added; return its
    index.
    """
    if tensor not in builder.places:
        grad = tensor.grad
        state = "b" if not tensor.requires_grad else "n" if grad is None else "f"
        place = builder.places[tensor] = builder.add("l", None, None, state, builder.block(scope))
        builder.trace.tensors[place] = Shaped(tensor.shape, tensor.dtype.name, _copied(tensor))
        if grad is not None:
            builder.trace.grads[place] = _copied(grad)
    return builder.places[tensor]


def _add_step(builder: _Builder, step: NodeRecord, held: _Held) -> None:
    """Append the operands of `step` that are missing, its edges, and itself."""
    trace, op, scope = builder.trace, step.op, builder.scopes.get(step.node)
    assert op is not None  # a step has an operation
    rules = op.rules_for(len(step.operands))
    operands, flows, late = {}, [], []
    constants = held.replay.constants(step)
    beside, block = _beside(step, constants), builder.block(scope)
    for slot, (source, known) in enumerate(zip(step.operands, constants, strict=True)):
        if source is not None:
            operands[slot] = builder.places[source]
        elif isinstance(known, mg.Tensor):
            frozen = isinstance(known, mg.nn.Parameter)
            operands[slot] = _add_leaf(builder, known, scope if frozen else known.scope)
        elif slot in beside:
            continue
        elif isinstance(known, Real):
            operands[slot] = builder.add("c", None, float(known), "b", block)
        elif known is FREED:
            operands[slot] = builder.add("c", None, None, "b", block)
        else:
            continue  # an omitted operand
        flows.append(source is not None and rules[slot] is not None)
        if not held.replay.freed and slot in step.stale:
            late.append(operands[slot])
    builder.lead(operands, flows)
    if step.overwritten:  # its gradient rule reads the result
        late.append(len(trace.kinds))
    place = builder.places[step.node] = _add_output(builder, step, held)
    if step.line is not None:
        builder.line(place, step.line)
    attrs = {name: x for some in beside.values() for name, x in some.items()}
    attrs |= {name: step.attrs[name] for name in op.attrs if name in step.attrs}
    outputs = builder.output(step)
    for pick in outputs:
        if pick.node in builder.parts:
            builder.places[pick.node] = place
            attrs |= {"output": pick.attrs["index"]} if pick.attrs["index"] else {}
    if len(outputs) > 1:
        attrs["outputs"] = " and ".join(str(pick.shape) for pick in outputs)
    if attrs:
        trace.attrs[place] = attrs
    if late:
        trace.late[place] = list(dict.fromkeys(late))


def _beside(step: NodeRecord, constants: Sequence[Any]) -> dict[int, dict[str, Any]]:
    """Return the non-tensor arguments of a Function by slot, named after `forward`'s parameters if they were saved."""
    function = step.function
    if function is None or not is_function(cast(mg.Op, step.op)):
        return {}
    names = list(inspect.signature(function.forward).parameters)[not hasattr(function, "setup_context") :]
    found: dict[int, dict[str, Any]] = {}
    for slot, (source, known) in enumerate(zip(step.operands, constants, strict=True)):
        if source is None and known is not FREED and not isinstance(known, mg.Tensor):
            found[slot] = {} if known is ... or slot >= len(names) else {names[slot]: known}
    return found


def _add_output(builder: _Builder, step: NodeRecord, held: _Held) -> int:
    """Append the node of `step`, with its values and its gradient if known."""
    outputs = builder.output(step)
    grad = _together([_array(one.gradient) for one in outputs])
    state = "f" if grad is not None else "p" if step.saved is None else "n"
    place = builder.add("o", step.op, None, state, builder.block(builder.scopes.get(step.node)))
    alike = len({one.shape for one in outputs}) == 1
    several = (len(outputs), *outputs[0].shape) if alike else (sum(math.prod(one.shape) for one in outputs),)
    shape = outputs[0].shape if len(outputs) == 1 else several
    builder.trace.tensors[place] = Shaped(shape, outputs[0].dtype, _together([held.array(x) for x in outputs]))
    if grad is not None:
        builder.trace.grads[place] = np.asarray(grad)
    return place


def _array(gradient: Any) -> Any:
    """Return a gradient as an array; it may be an array or a tensor."""
    return copied(gradient) if isinstance(gradient, mg.Tensor) else gradient


# --- backward --------------------------------------------------------------------------------------------------------


def _run_backward(builder: _Builder, roots: dict[Any, Any], replay: Replay) -> dict[int, Any]:
    """Append a pass of engine events from each output, or from the sum of an output's elements.

    Returns the gradients that these passes accumulate, by node.
    """
    numbers = 0
    trace, places, arrived = builder.trace, builder.places, defaultdict[int, Any](int)
    for done, (end, root) in enumerate(roots.items()):
        if numbers > _MOST_NUMBERS:
            text = f"Backward steps are shown for the first {done:,} of {len(roots):,} outputs."
            trace.notes.append(Note("partial", None, text))
            break
        root = replay.tensors.get(end) if replay.freed else root
        if root is None or (end is not roots[end] and root.grad_fn is None):
            continue  # the replay did not reach it
        run, seed = Pass(places[end], trace), None if root.numel() == 1 else mg.ones_like(root)
        try:
            events = mg.events(root, seed)
        except GraphError:
            continue  # a saved tensor was modified in-place; a note reports it
        for event in events:
            source, target = (replay.nodes.get(node, node) for node in (event.source, event.target))
            at = places[source]
            if places[target] == at:
                continue  # from an operation's only output to the operation
            into = range(trace.start[at], trace.start[at + 1])
            run.edge.append(next(edge for edge in into if trace.slot[edge] == event.slot))
            run.upstream.append(builder.gradient(source, event.upstream))
            run.contribution.append(builder.gradient(target, event.contribution))
            run.total.append(builder.gradient(target, event.total))
            numbers += run.total[-1].size
        trace.passes.append(run)
        for at, total in (trace.totals(run) | {run.root: np.ones(root.shape, root.dtype.name)}).items():
            arrived[at] = arrived[at] + total
    return arrived


def _fill_gradients(builder: _Builder, records: _Records, arrived: dict[int, Any]) -> None:
    """Set the gradients of steps that a backward pass went through, which the engine frees.

    A pass went through freed steps, and through all steps if the leaves' ``.grad`` equals what arrived there. Otherwise
    the seed of a non-scalar output is unknown, and with it all gradients computed from it.
    """
    trace = builder.trace
    leaves = [at for at in arrived if trace.kinds[at] == "l"]
    passed = bool(leaves) and all(at in trace.grads and same(trace.grads[at], arrived[at]) for at in leaves)
    scalar = all(math.prod(trace.tensors[at].shape) == 1 for at in trace.outputs)
    waiting = "np" if passed else "p" if scalar else ""
    for place in {builder.places[node] for node, record in records.items() if record.op is not None} & arrived.keys():
        if trace.states[place] in waiting:
            trace.states[place], trace.grads[place] = "f", arrived[place]


# --- steps that cannot be replayed, and changed values ---------------------------------------------------------------


def _note_lost(trace: Trace, places: Mapping[Any, int], lost: Mapping[Any, tuple[str, str]]) -> None:
    """Report which operation cannot be recomputed, what is missing, and how to retain that."""
    found = [(places[node], *what) for node, what in lost.items()]
    if found:
        place, why, advice = found[0]
        unknown = tuple(at for at, shaped in trace.tensors.items() if shaped.array is None)
        more = f" and {count(len(found) - 1, 'more node', 'more nodes')}" if len(found) > 1 else ""
        text = f"{trace.title(place)}{more} cannot be recomputed: {why}. {advice}"
        trace.notes.append(Note("freed", place, clean(text), unknown))


def _note_changed(trace: Trace, places: Mapping[Any, int], held: _Held, ends: Mapping[Any, Any]) -> None:
    """Report where the recomputed graph differs from the original: modified leaves, and changed outputs."""
    written = list(held.replay.written)
    changed = ""
    for end, root in ends.items():
        then, now = copied(root), trace.tensors[places[end]].array
        if end is not root and end not in held.rewritten and now is not None and not same(then, now):
            was, is_now = (pretty(float(x.reshape(-1)[0])) if x.size == 1 else "other values" for x in (then, now))
            changed = f"{trace.title(places[end])} was {was} and is {is_now}"
            break
    if written:
        names = [trace.title(places[x]) for x in written if x in places] or ["A constant"]
        named = " and ".join(names) if len(names) < 3 else f"{', '.join(names[:2])} and {len(names) - 2} more"
        storage = max((x.storage for x in written), key=lambda storage: storage.latest)
        line = shorten(getline(*storage.place).strip(), 40)
        text = (
            f"{named} {'was' if len(names) == 1 else 'were'} modified in-place after this was computed, by "
            f"{storage.writer}{f' in `{line}`' if line else ''}. The drawing is recomputed from the current values"
            f"{f': {changed}' if changed else ''}."
        )
        if any(x.grad is not None for x in written):
            text += " Their .grad is from before the change; draw before that line to see that pass."
    elif changed and not held.replay.lost:
        text = (
            f"{changed} when recomputed: something that it depends on was changed, such as a NumPy array that shares "
            "memory with a tensor."
        )
    else:
        return
    trace.notes.append(Note("replayed", None, clean(text)))
