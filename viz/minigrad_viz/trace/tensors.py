"""The trace of a graph of tensors.

Tensors forget: what an operation gave is only known if somebody kept it. A graph built inside ``mg.record()`` has all;
of another, the numbers of a node are those of a tensor that still holds them, the caller's variable or one that a rule
saved. Where neither does they are not known, and the drawing says how to keep them.
"""

from __future__ import annotations

import inspect
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, cast

import numpy as np

import minigrad as mg
from minigrad._step import Step, _version
from minigrad.errors import GraphError
from minigrad.graph import copied
from minigrad_viz.notation import is_function
from minigrad_viz.trace.alarms import raise_alarms
from minigrad_viz.trace.build import Builder
from minigrad_viz.trace.calls import scopes_in
from minigrad_viz.trace.columns import Note, Pass, Shaped, Trace
from minigrad_viz.trace.names import Namespaces, holders, names_of

__all__ = ["of_tensors"]

_MOST_NUMBERS = 50_000_000  # in the events of all passes together
_PICK = mg.OPS["pick"]
_RECORD = "Build it inside `with mg.record():`, and everything is kept."


def of_tensors(roots: Sequence[Any], namespaces: Namespaces) -> tuple[Trace, dict[Any, int]]:
    """The trace of the graph that ends in `roots`; and their places; see `minigrad_viz.trace.build.placed`."""
    ends = dict(zip(map(_node_of, roots), roots, strict=True))
    order = _as_computed(list(ends))
    builder, held = _Builder(order), _Held(order, ends, holders(namespaces))
    homes = _homes(order, builder.scopes)
    for node in order:
        if node in builder.parts:
            continue  # its numbers are those of the operation, or some of them
        if isinstance(node, Step):
            _add_step(builder, node, held)
        else:
            _add_leaf(builder, node, homes.get(node, node._note("scope")))
    trace, places = builder.trace, builder.places
    names = builder.names(names_of(list(places), namespaces, held.label), namespaces)
    builder.finish(names, [places[end] for end in ends])
    _note_hidden_writes(trace, {places[node]: tensor for node, tensor in held.rewritten.items()})
    hooked = [places[node] for node in order if node._note("hooks")]
    freed = [places[node] for node in order if isinstance(node, Step) and node._saved is None]
    if freed:
        text = f"backward() freed this graph, so that there is no way back to show. {_RECORD}"
        trace.notes.append(Note("freed", freed[0], text, tuple(freed)))
    else:
        _run_backward(builder, ends)
    if hooked:
        which = f"{trace.title(hooked[0])} has a hook" if len(hooked) == 1 else f"{len(hooked)} nodes have hooks"
        text = f"{which}, which may change the gradient there: what is shown is the pass without."
        trace.notes.append(Note("hook", hooked[0], text, tuple(hooked)))
    raise_alarms(trace)
    return trace, places


def _as_computed(ends: Sequence[Any]) -> list[Any]:
    """The nodes before `ends`, each after its operands: that with the longest way behind it first.

    So the steps of an unrolled loop follow each other, where `topological` would begin with the input of the last one.
    """
    depth: dict[Any, int] = {}
    for node in mg.topological(ends):
        depth[node] = 1 + max((depth[x] for x in _sources(node)), default=-1)
    order: dict[Any, None] = {}
    stack = list(ends)[::-1]
    while stack:
        node = stack[-1]
        waiting = [x for x in _sources(node) if x not in order]
        if node in order or not waiting:
            order.setdefault(stack.pop())
        else:
            stack += sorted(waiting, key=depth.__getitem__)
    return list(order)


def _sources(node: Any) -> list[Any]:
    """The nodes that a node was computed from, the last one first."""
    return [x for x in node.next_functions[::-1] if x is not None] if isinstance(node, Step) else []


class _Builder(Builder):
    """One that knows of operations with several outputs which of these are used.

    Each output is a node of the graph, a *pick*. Where there is but one, as of ``max`` along a dimension, it is drawn
    as the operation itself.
    """

    def __init__(self, order: Sequence[Any]) -> None:
        super().__init__()
        self.scopes = scopes_in(order)
        self.picks: dict[Any, dict[int, Step]] = defaultdict(dict)
        picks = [(node, node.next_functions[0]) for node in order if isinstance(node, Step) and node._op is _PICK]
        for pick, step in picks:
            self.picks[step].setdefault(pick._kept["index"], pick)
        self.parts: dict[Any, Any] = {pick: step for pick, step in picks if step and len(self.picks[step]) == 1}

    def output(self, step: Step) -> tuple[Step, ...]:
        """The steps whose numbers a node has: its own, or those of its outputs."""
        return tuple(self.picks[step][index] for index in sorted(self.picks[step])) if step in self.picks else (step,)

    def gradient(self, node: Any, gradient: Any) -> Any:
        """The gradient of a node as one array: of several outputs those that are used, and 0 where none came yet."""
        if not isinstance(gradient, tuple):
            return np.asarray(gradient)
        picks = sorted(self.picks[node].items())
        parts = [np.zeros(pick._shape, pick._dtype) if gradient[k] is None else gradient[k] for k, pick in picks]
        return _together([np.asarray(part) for part in parts])


def _together(arrays: Sequence[Any]) -> Any:
    """Several outputs as one array: in a new first dimension if they are alike, or else all their numbers in a row."""
    if len(arrays) == 1 or any(array is None for array in arrays):
        return arrays[0] if len(arrays) == 1 else None
    if len({array.shape for array in arrays}) == 1:
        return np.stack(arrays)
    return np.concatenate([array.reshape(-1) for array in arrays])


def _node_of(tensor: Any) -> Any:
    """The node of a tensor: its step, or itself."""
    return tensor if tensor.grad_fn is None else tensor.grad_fn


def _homes(order: Sequence[Any], scopes: Mapping[Any, Any]) -> dict[Any, Any]:
    """The scope of each parameter of a module: that of the step which takes it first, as it is made outside of any."""
    homes: dict[Any, Any] = {}
    for step in order:
        for source in step.next_functions if isinstance(step, Step) else ():
            if isinstance(source, mg.nn.Parameter):
                homes.setdefault(source, scopes.get(step))
    return homes


def _copied(tensor: Any) -> Any:
    """The numbers of a tensor, which may change later, as an array."""
    return None if tensor is None else copied(tensor)


class _Held:
    """Which tensor still holds the numbers of a node: an output, a variable, what a rule saved."""

    def __init__(self, order: Sequence[Any], roots: dict[Any, Any], variables: dict[Any, Any]) -> None:
        held = {**variables, **roots}
        self._labelled = held
        nodes = set(order)
        self.rewritten = {node: x for node, x in held.items() if node in nodes and _hides_write(x)}
        self._tensors = {node: tensor for node, tensor in held.items() if node not in self.rewritten}
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
        return getattr(self._labelled.get(node, node), "label", None)


def _hides_write(tensor: Any) -> bool:
    """Whether a computed tensor was written without a record: it does not hold what its step gave any more."""
    return tensor.grad_fn is not None and tensor._storage is not None and tensor._storage.unrecorded


def _note_hidden_writes(trace: Trace, rewritten: dict[int, Any]) -> None:
    for place, tensor in sorted(rewritten.items()):
        name = trace.title(place)
        text = (
            f"{name} was written after it was computed, unrecorded, by {tensor.storage.writer}: the numbers it holds "
            "now are not in this graph, and no gradient knows of them. Write it outside of no_grad()."
        )
        trace.notes.append(Note("overwritten", place, text, (place,)))


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


def _add_leaf(builder: _Builder, tensor: Any, scope: Any) -> int:
    """Append a tensor that no operation made, in the block of `scope`, unless it is there; where it is."""
    if tensor not in builder.places:
        grad = tensor.grad
        state = "b" if not tensor.requires_grad else "n" if grad is None else "f"
        place = builder.places[tensor] = builder.add("l", None, None, state, builder.block(scope))
        builder.trace.tensors[place] = Shaped(tensor.shape, tensor.dtype.name, _copied(tensor))
        if grad is not None:
            builder.trace.grads[place] = _copied(grad)
    return builder.places[tensor]


def _add_step(builder: _Builder, step: Step, held: _Held) -> None:
    """Append what `step` took and is not there yet, its edges, and itself."""
    trace, op, sources = builder.trace, step._op, step.next_functions
    assert op is not None  # a step is of an operation
    rules = op.rules_for(len(sources))
    operands, flows, late = {}, [], []
    beside = _beside(step)
    for slot, source in enumerate(sources):
        if slot in beside:
            continue
        kept, version = _operand(step, slot)
        is_tensor = hasattr(kept, "grad_fn")
        unknown = source is None and not (is_tensor or isinstance(kept, Real))
        if unknown and (step.constants or not _stands_in_formula(op, slot)):
            continue  # an operand that was left out, or an argument of a Function that is no number
        if source is not None:
            operands[slot] = builder.places[source]
        elif is_tensor:
            frozen = isinstance(kept, mg.nn.Parameter)
            operands[slot] = _add_leaf(builder, kept, builder.scopes.get(step) if frozen else kept._note("scope"))
        else:
            operands[slot] = builder.add(
                "c", None, None if kept is None else float(kept), "b", builder.block(builder.scopes.get(step))
            )
        flows.append(source is not None and rules[slot] is not None)
        if is_tensor and kept._version != version:
            late.append(operands[slot])
    builder.lead(operands, flows)
    output, version = _saved(step, 0)
    if _version(output) != version:
        late.append(len(trace.kinds))
    place = builder.places[step] = _add_output(builder, step, held)
    if step.line is not None:
        builder.line(place, step.line)
    attrs = {name: x for some in beside.values() for name, x in some.items()}
    attrs |= {name: step._kept[name] for name in op.attrs if name in step._kept}
    outputs = builder.output(step)
    for pick in outputs:
        if pick in builder.parts:
            builder.places[pick] = place
            attrs |= {"output": pick._kept["index"]} if pick._kept["index"] else {}
    if len(outputs) > 1:
        attrs["outputs"] = " and ".join(str(pick._shape) for pick in outputs)
    if attrs:
        trace.attrs[place] = attrs
    if late:
        trace.late[place] = list(dict.fromkeys(late))


def _beside(step: Step) -> dict[int, dict[str, Any]]:
    """What a Function was given beside tensors, by its place: by the name that `forward` has for it, if it is known."""
    op = cast(mg.Op, step._op)
    if not is_function(op):
        return {}
    context = step._kept.get("ctx")
    names: list[str] = []
    if context is not None:
        function = context._function
        names = list(inspect.signature(function.forward).parameters)[not hasattr(function, "setup_context") :]
    found: dict[int, dict[str, Any]] = {}
    for slot, source in enumerate(step.next_functions):
        kept = step.constants[slot] if step.constants else None
        if source is None and not (isinstance(kept, tuple) and kept and hasattr(kept[0], "grad_fn")):
            found[slot] = {names[slot]: kept} if step.constants and slot < len(names) else {}
    return found


def _stands_in_formula(op: mg.Op, slot: int) -> bool:
    """Whether an operand of which nothing is known is likely there: those that may be left out, formulas leave out."""
    return op.variadic or f"{{{op.inputs[slot]}}}" in op.formula


def _add_output(builder: _Builder, step: Step, held: _Held) -> int:
    """Append the node of `step`, with its numbers and its gradient as far as they are known."""
    outputs = builder.output(step)
    grad = _together([_gradient_of(one) for one in outputs])
    state = "f" if grad is not None else "p" if step._saved is None else "n"
    place = builder.add("o", step._op, None, state, builder.block(builder.scopes.get(step)))
    alike = len({one._shape for one in outputs}) == 1
    several = (len(outputs), *outputs[0]._shape) if alike else (sum(math.prod(one._shape) for one in outputs),)
    shape = outputs[0]._shape if len(outputs) == 1 else several
    builder.trace.tensors[place] = Shaped(shape, str(outputs[0]._dtype), _together([held.array(x) for x in outputs]))
    if grad is not None:
        builder.trace.grads[place] = np.asarray(grad)
    return place


def _gradient_of(step: Step) -> Any:
    """What `grad` of its tensor holds, as an array, or None."""
    if step.grad is not None or step.retainer is None:
        return step.grad
    return _copied(step.retainer.grad)


# --- backward --------------------------------------------------------------------------------------------------------


def _run_backward(builder: _Builder, roots: dict[Any, Any]) -> None:
    """Fill in a pass from each output, which are the engine's own events; from several numbers that of their sum."""
    numbers = 0
    trace, places = builder.trace, builder.places
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
            at, source, target = places[event.source], event.source, event.target
            if places[target] == at:
                continue  # from the only output of an operation to that
            into = range(trace.start[at], trace.start[at + 1])
            run.edge.append(next(edge for edge in into if trace.slot[edge] == event.slot))
            run.upstream.append(builder.gradient(source, event.upstream))
            run.contribution.append(builder.gradient(target, event.contribution))
            run.total.append(builder.gradient(target, event.total))
            numbers += run.total[-1].size
        trace.passes.append(run)
