"""The trace of a graph of Values, with their backward passes.

The chain rule of `minigrad.core.graph` is implemented again here, on columns. A pass over 26,000 edges takes 0.07 s,
but 0.58 s as a list of engine events, which would nearly double the time of a trace.
`tests/viz/trace/test_trace_passes.py` checks that both implementations agree bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import minigrad as mg
from minigrad.core.dispatch import disable_taps
from minigrad.core.snapshot import NodeRecord, snapshot
from minigrad_viz.trace.alarms import add_alarms
from minigrad_viz.trace.builder import Builder
from minigrad_viz.trace.calls import scopes_by_node
from minigrad_viz.trace.columns import Pass
from minigrad_viz.trace.names import Namespaces, names_of
from minigrad_viz.trace.rows import Note
from minigrad_viz.trace.trace import Trace

__all__ = ["trace_values"]

# Maximum number of steps in all backward passes. Thousands of outputs would require thousands of passes.
MAX_PASS_STEPS = 50_000


def trace_values(roots: Sequence[mg.Value], namespaces: Namespaces) -> tuple[Trace, dict[Any, int]]:
    """Return the trace of the graph that computes `roots`, and the indices of its nodes."""
    builder = Builder()
    saved_attrs: dict[int, Any] = {}
    _add_values(builder, snapshot(roots), saved_attrs)
    trace = builder.trace
    names = names_of(list(builder.indices), namespaces)
    builder.finish(builder.resolve_names(names, namespaces), [builder.indices[root] for root in roots])
    with disable_taps():
        edges_without_local = _compute_local_derivatives(trace, saved_attrs)
        _run_backward(trace, saved_attrs, edges_without_local)
    add_alarms(trace)
    return trace, builder.indices


def _add_values(builder: Builder, records: Sequence[NodeRecord], saved_attrs: dict[int, Any]) -> None:
    """Append each Value after its constant operands, with its edges. `Builder.add` is inlined in the loop."""
    trace, indices, ops = builder.trace, builder.indices, builder.ops
    kinds, states, start, scopes = trace.kinds, trace.states, trace.start, scopes_by_node(records)
    operand, flows, slots, result = trace.operand, trace.flows, trace.slot, trace.result
    for record in records:
        value, op, inputs, requires_grad = record.node, record.op, record.operands, record.requires_grad
        block = builder.block_of(scopes[value]) if value in scopes else 0
        if op is not None:
            sources = [builder.add("c", None, x, "b", block) if x.__class__ is float else indices[x] for x in inputs]
            operand += sources
            slots += range(len(sources))
            rules = op.rules_for(len(sources))
            flows += [
                requires_grad and rule is not None and states[op_index] != "b"
                for op_index, rule in zip(sources, rules, strict=True)
            ]
            index = len(kinds)
            result += [index] * len(inputs)
            at = ops.get(op)
            trace.op.append(builder.add_op(op) if at is None else at)
            kinds.append("o")
        else:
            index = len(kinds)
            trace.op.append(-1)
            kinds.append("l")
        indices[value] = index
        grad = record.gradient
        states.append("b" if not requires_grad else "n" if grad is None else "f")
        trace.values.append(record.value)
        trace.block.append(block)
        start.append(len(operand))
        if grad is not None:
            trace.grads[index] = float(grad)
        if record.line is not None:
            builder.set_line(index, record.line)
        if record.attrs:
            saved_attrs[index] = record.attrs
            if op is not None and op.attrs:
                trace.attrs[index] = {name: record.attrs[name] for name in op.attrs}
        if record.stale:
            trace.modified_operands[index] = list(dict.fromkeys(indices[inputs[slot]] for slot in record.stale))
    trace.local = [None] * len(operand)


def _compute_local_derivatives(trace: Trace, saved_attrs: dict[int, Any]) -> set[int]:
    """Compute the local derivatives. Return the edges without one, whose rule would read a replaced value."""
    edges_without_local = set()
    values, local, start = trace.values, trace.local, trace.start
    for node, op_index in enumerate(trace.op):
        if op_index < 0:
            continue
        op, first, last = trace.ops[op_index], start[node], start[node + 1]
        y, operands = values[node], [values[x] for x in trace.operand[first:last]]
        rules, saved = op.rules_for(last - first), saved_attrs.get(node, {})
        plain: tuple[Any, ...] = op.simple_rules or ()
        replaced = trace.modified_operands.get(node, ())
        replaced_inputs = (
            [op.inputs[trace.slot[e]] for e in range(first, last) if trace.operand[e] in replaced] if replaced else ()
        )
        for edge in range(first, last):
            if not trace.flows[edge]:
                continue
            slot = trace.slot[edge]
            if replaced_inputs and not op.reads[slot].isdisjoint(replaced_inputs):
                edges_without_local.add(edge)
            else:
                local[edge] = (
                    plain[slot](1.0, y, *operands) if plain else op.vjps([slot], rules, 1.0, y, *operands, **saved)[0]
                )
    return edges_without_local


def _run_backward(trace: Trace, saved_attrs: dict[int, Any], edges_without_local: set[int]) -> None:
    """Append a backward pass from each output, unless a rule needs a value that was replaced."""
    steps = 0
    for done_count, root in enumerate(trace.outputs):
        if steps > MAX_PASS_STEPS:
            text = f"Backward steps are shown for the first {done_count:,} of {len(trace.outputs):,} outputs."
            trace.notes.append(Note("partial", None, text))
            return
        if trace.states[root] == "b":
            trace.passes.append(Pass(root, trace))
        elif (run := _backward_pass(trace, root, saved_attrs, edges_without_local)) is not None:
            trace.passes.append(run)
            steps += len(run.edge)


def _backward_pass(trace: Trace, root: int, saved_attrs: dict[int, Any], edges_without_local: set[int]) -> Pass | None:
    """Return the backward pass from `root`, in reverse tape order; None if the pass needs an edge in
    `edges_without_local`.
    """
    run = Pass(root, trace)
    totals: list[float | None] = [None] * (root + 1)
    totals[root] = 1.0
    values, start, operand, flows, slots = trace.values, trace.start, trace.operand, trace.flows, trace.slot
    for node in range(root, -1, -1):
        upstream, op_index = totals[node], trace.op[node]
        if upstream is None or op_index < 0:
            continue
        op, first, last = trace.ops[op_index], start[node], start[node + 1]
        y, operands = values[node], [values[x] for x in operand[first:last]]
        rules, saved = op.rules_for(last - first), saved_attrs.get(node, {})
        plain: tuple[Any, ...] = op.simple_rules or ()
        for edge in range(first, last):
            if not flows[edge]:
                continue
            if edge in edges_without_local:
                return None
            if not plain:
                product = op.vjps([slots[edge]], rules, upstream, y, *operands, **saved)[0]
            else:
                product = plain[slots[edge]](upstream, y, *operands)
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
