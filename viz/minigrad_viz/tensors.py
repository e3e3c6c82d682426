"""The trace of a graph of tensors.

Tensors forget: what an operation gave is only known if somebody kept it. A graph built inside ``mg.record()`` has all;
of another, the numbers of a node are those of a tensor that still holds them, the caller's variable or one that a rule
saved. Where neither does they are not known, and the drawing says how to keep them.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

import minigrad as mg
from minigrad._step import Step
from minigrad.errors import GraphError
from minigrad_viz.alarms import raise_alarms
from minigrad_viz.columns import Note, Pass, Shaped, Trace
from minigrad_viz.names import Namespaces, holders, names_of
from minigrad_viz.trace import Builder

__all__ = ["of_tensors"]

_MOST_NUMBERS = 50_000_000  # in the events of all passes together
_RECORD = "Build it inside `with mg.record():`, and everything is kept."


def of_tensors(roots: Sequence[Any], namespaces: Namespaces) -> tuple[Trace, dict[Any, int]]:
    """The trace of the graph that ends in `roots`; and their places; see `minigrad_viz.trace.placed`."""
    ends = [_node_of(root) for root in roots]
    order: list[Any] = mg.topological(ends)
    builder, held = Builder(), _Held(order, dict(zip(ends, roots, strict=True)), holders(namespaces))
    for node in order:
        if isinstance(node, Step):
            _add_step(builder, node, held)
        else:
            _add_leaf(builder, node)
    trace, places = builder.trace, builder.places
    names: list[str | None] = [None] * len(trace.kinds)
    for node, name in names_of(list(places), namespaces, held.label).items():
        names[places[node]] = name
    builder.finish(names, [places[end] for end in ends])
    freed = [places[node] for node in order if isinstance(node, Step) and node._saved is None]
    if freed:
        text = f"backward() freed this graph, so that there is no way back to show. {_RECORD}"
        trace.notes.append(Note("freed", freed[0], text, tuple(freed)))
    else:
        _run_backward(trace, places, dict(zip(ends, roots, strict=True)))
    raise_alarms(trace)
    return trace, places


def _node_of(tensor: Any) -> Any:
    """The node of a tensor: its step, or itself."""
    return tensor if tensor.grad_fn is None else tensor.grad_fn


def _copied(tensor: Any) -> Any:
    """The numbers of a tensor, which may change later, as an array."""
    return None if tensor is None else np.array(tensor._raw())


class _Held:
    """Which tensor still holds the numbers of a node: an output, a variable, what a rule saved."""

    def __init__(self, order: Sequence[Any], roots: dict[Any, Any], variables: dict[Any, Any]) -> None:
        self._tensors = roots | {node: tensor for node, tensor in variables.items() if node not in roots}
        for node in order:
            if isinstance(node, Step):
                for slot, source in enumerate((node, *node.next_functions)):
                    saved, version = _saved(node, slot)
                    if source is not None and hasattr(saved, "grad_fn") and saved._version == version:
                        self._tensors.setdefault(source, saved)

    def array(self, step: Step) -> Any:
        """The numbers that `step` gave; None if nobody kept them."""
        return _copied(self._tensors.get(step)) if step.output is None else step.output

    def label(self, node: Any) -> str | None:
        """What the tensor of a node is labelled."""
        return getattr(self._tensors.get(node, node), "label", None)


def _saved(step: Step, slot: int) -> tuple[Any, int]:
    """Of (output, *operands) what a rule will read, else None; with its version when it was saved."""
    saved = step._saved or ()
    if slot >= len(saved):
        return None, 0
    return saved[slot], step._versions[slot] if step._versions else 0


def _operand(step: Step, slot: int) -> tuple[Any, int]:
    """A tensor or number that the step took, if that was kept, with its version then."""
    kept = step.constants[slot] if step.constants else None
    if kept is None:
        return _saved(step, slot + 1)
    return kept if isinstance(kept, tuple) else (kept, 0)


def _add_leaf(builder: Builder, tensor: Any) -> int:
    """Append a tensor that no operation made, unless it is there; where it is."""
    if tensor not in builder.places:
        grad = tensor.grad
        state = "b" if not tensor.requires_grad else "n" if grad is None else "f"
        place = builder.places[tensor] = builder.add("l", None, None, state, builder.block(tensor._note("scope")))
        builder.trace.tensors[place] = Shaped(tensor.shape, tensor.dtype.name, _copied(tensor))
        if grad is not None:
            builder.trace.grads[place] = _copied(grad)
    return builder.places[tensor]


def _add_step(builder: Builder, step: Step, held: _Held) -> None:
    """Append what `step` took and is not there yet, its edges, and itself."""
    trace, op, sources = builder.trace, step._op, step.next_functions
    assert op is not None  # a step is of an operation
    rules = op.rules_for(len(sources))
    operands, flows, late = {}, [], []
    for slot, source in enumerate(sources):
        kept, version = _operand(step, slot)
        is_tensor = hasattr(kept, "grad_fn")
        if source is None and step.constants and not (is_tensor or isinstance(kept, Real)):
            continue  # an operand that was left out, or an argument of a Function that is no number
        if source is not None:
            operands[slot] = builder.places[source]
        elif is_tensor:
            operands[slot] = _add_leaf(builder, kept)
        else:
            operands[slot] = builder.add(
                "c", None, None if kept is None else float(kept), "b", builder.block(step.scope)
            )
        flows.append(source is not None and rules[slot] is not None)
        if is_tensor and kept._version != version:
            late.append(operands[slot])
    builder.lead(operands, flows)
    output, version = _saved(step, 0)
    if hasattr(output, "grad_fn") and output._version != version:
        late.append(len(trace.kinds))
    place = builder.places[step] = _add_output(builder, step, held)
    if step.line is not None:
        builder.line(place, step.line)
    attrs = {name: step._kept[name] for name in op.attrs if name in step._kept}
    if attrs:
        trace.attrs[place] = attrs
    if late:
        trace.late[place] = list(dict.fromkeys(late))


def _add_output(builder: Builder, step: Step, held: _Held) -> int:
    """Append the node of `step`, with its numbers and its gradient as far as they are known."""
    grad = step.grad
    if grad is None and step.retainer is not None:
        grad = _copied(step.retainer.grad)
    state = "f" if grad is not None else "p" if step._saved is None else "n"
    place = builder.add("o", step._op, None, state, builder.block(step.scope))
    builder.trace.tensors[place] = Shaped(step._shape, str(step._dtype), held.array(step))
    if grad is not None:
        builder.trace.grads[place] = np.asarray(grad)
    return place


# --- backward --------------------------------------------------------------------------------------------------------


def _run_backward(trace: Trace, places: dict[Any, int], roots: dict[Any, Any]) -> None:
    """Fill in a pass from each output, which are the engine's own events; from several numbers that of their sum."""
    numbers = 0
    for done, (end, root) in enumerate(roots.items()):
        if numbers > _MOST_NUMBERS:
            text = f"The backward steps of the first {done:,} outputs are kept, of {len(roots):,}."
            trace.notes.append(Note("partial", None, text))
            return
        run = Pass(places[end], trace)
        try:
            events = mg.events(root, None if root.numel() == 1 else mg.ones_like(root))
        except GraphError:
            continue  # a number was overwritten, which a note says
        for event in events:
            at = places[event.source]
            into = range(trace.start[at], trace.start[at + 1])
            run.edge.append(next(edge for edge in into if trace.slot[edge] == event.slot))
            run.upstream.append(_one(event.upstream))
            run.contribution.append(_one(event.contribution))
            run.total.append(_one(event.total))
            numbers += run.total[-1].size
        trace.passes.append(run)


def _one(gradient: Any) -> Any:
    """The gradient of an operation as an array: of one with several outputs, that of the first which has one."""
    if isinstance(gradient, tuple):
        gradient = next(part for part in gradient if part is not None)
    return np.asarray(gradient)
