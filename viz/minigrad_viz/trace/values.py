"""The trace of a graph of Values: its values and its backward passes.

The chain rule of `minigrad.core.graph` is implemented again here, on columns: a pass over 26,000 edges takes 0.07 s,
but 0.58 s as a list of engine events, nearly doubling the time of a trace. `tests/viz/trace/test_trace_passes.py`
compares the two bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import minigrad as mg
from minigrad.core.dispatch import untapped
from minigrad.core.snapshot import NodeRecord, snapshot
from minigrad_viz.trace.alarms import raise_alarms
from minigrad_viz.trace.builder import Builder
from minigrad_viz.trace.calls import scopes_in
from minigrad_viz.trace.columns import Pass
from minigrad_viz.trace.names import Namespaces, names_of
from minigrad_viz.trace.rows import Note
from minigrad_viz.trace.trace import Trace

__all__ = ["of_values"]

_MOST_STEPS = 50_000  # in all backward passes: thousands of outputs would take thousands of passes


def of_values(roots: Sequence[mg.Value], namespaces: Namespaces) -> tuple[Trace, dict[Any, int]]:
    """Return the trace of the graph that computes `roots`, and the indices of its nodes."""
    builder = Builder()
    static: dict[int, Any] = {}
    _add_values(builder, snapshot(roots), static)
    trace = builder.trace
    names = names_of(list(builder.places), namespaces)
    builder.finish(builder.names(names, namespaces), [builder.places[root] for root in roots])
    with untapped():
        refused = _fill_locals(trace, static)
        _run_backward(trace, static, refused)
    raise_alarms(trace)
    return trace, builder.places


def _add_values(builder: Builder, records: Sequence[NodeRecord], static: dict[int, Any]) -> None:
    """Append each Value after its constant operands, with its edges: `Builder.add` inlined in one loop."""
    trace, places, ops = builder.trace, builder.places, builder.ops
    kinds, states, start, scopes = trace.kinds, trace.states, trace.start, scopes_in(records)
    operand, flows, slots, result = trace.operand, trace.flows, trace.slot, trace.result
    for record in records:
        value, op, inputs, needs = record.node, record.op, record.operands, record.requires_grad
        block = builder.block(scopes[value]) if value in scopes else 0
        if op is not None:
            sources = [builder.add("c", None, x, "b", block) if x.__class__ is float else places[x] for x in inputs]
            operand += sources
            slots += range(len(sources))
            rules = op.rules_for(len(sources))
            flows += [needs and rule is not None and states[at] != "b" for at, rule in zip(sources, rules, strict=True)]
            place = len(kinds)
            result += [place] * len(inputs)
            at = ops.get(op)
            trace.op.append(builder.new_op(op) if at is None else at)
            kinds.append("o")
        else:
            place = len(kinds)
            trace.op.append(-1)
            kinds.append("l")
        places[value] = place
        grad = record.gradient
        states.append("b" if not needs else "n" if grad is None else "f")
        trace.values.append(record.value)
        trace.block.append(block)
        start.append(len(operand))
        if grad is not None:
            trace.grads[place] = float(grad)
        if record.line is not None:
            builder.line(place, record.line)
        if record.attrs:
            static[place] = record.attrs
            if op is not None and op.attrs:
                trace.attrs[place] = {name: record.attrs[name] for name in op.attrs}
        if record.stale:
            trace.late[place] = list(dict.fromkeys(places[inputs[slot]] for slot in record.stale))
    trace.local = [None] * len(operand)


def _fill_locals(trace: Trace, static: dict[int, Any]) -> set[int]:
    """Compute the local derivatives; return the edges without one because their rule reads a replaced value."""
    refused = set()
    values, local, start = trace.values, trace.local, trace.start
    for node, at in enumerate(trace.op):
        if at < 0:
            continue
        op, first, last = trace.ops[at], start[node], start[node + 1]
        y, given = values[node], [values[x] for x in trace.operand[first:last]]
        rules, kept = op.rules_for(last - first), static.get(node, {})
        plain: tuple[Any, ...] = op.plain or ()
        replaced = trace.late.get(node, ())
        late = (
            [op.inputs[trace.slot[e]] for e in range(first, last) if trace.operand[e] in replaced] if replaced else ()
        )
        for edge in range(first, last):
            if not trace.flows[edge]:
                continue
            slot = trace.slot[edge]
            if late and not op.reads[slot].isdisjoint(late):
                refused.add(edge)
            else:
                local[edge] = (
                    plain[slot](1.0, y, *given) if plain else op.products([slot], rules, 1.0, y, *given, **kept)[0]
                )
    return refused


def _run_backward(trace: Trace, static: dict[int, Any], refused: set[int]) -> None:
    """Append a pass from each output, unless a rule needs a value that was replaced."""
    steps = 0
    for done, root in enumerate(trace.outputs):
        if steps > _MOST_STEPS:
            text = f"Backward steps are shown for the first {done:,} of {len(trace.outputs):,} outputs."
            trace.notes.append(Note("partial", None, text))
            return
        if trace.states[root] == "b":
            trace.passes.append(Pass(root, trace))
        elif (run := _pass_from(trace, root, static, refused)) is not None:
            trace.passes.append(run)
            steps += len(run.edge)


def _pass_from(trace: Trace, root: int, static: dict[int, Any], refused: set[int]) -> Pass | None:
    """Return the backward pass from `root`, in reverse tape order; None if it needs an edge in `refused`."""
    run = Pass(root, trace)
    totals: list[float | None] = [None] * (root + 1)
    totals[root] = 1.0
    values, start, operand, flows, slots = trace.values, trace.start, trace.operand, trace.flows, trace.slot
    for node in range(root, -1, -1):
        upstream, at = totals[node], trace.op[node]
        if upstream is None or at < 0:
            continue
        op, first, last = trace.ops[at], start[node], start[node + 1]
        y, given = values[node], [values[x] for x in operand[first:last]]
        rules, kept = op.rules_for(last - first), static.get(node, {})
        plain: tuple[Any, ...] = op.plain or ()
        for edge in range(first, last):
            if not flows[edge]:
                continue
            if edge in refused:
                return None
            if not plain:
                product = op.products([slots[edge]], rules, upstream, y, *given, **kept)[0]
            else:
                product = plain[slots[edge]](upstream, y, *given)
            if product is None:
                continue
            target = operand[edge]
            total = totals[target]
            totals[target] = total = product if total is None else total + product
            run.edge.append(edge)
            run.upstream.append(upstream)
            run.contribution.append(product)
            run.total.append(total)
    return run
