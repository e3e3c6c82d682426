"""Match the nodes of two traces of the same graph by operation, operands and shape, starting at the outputs."""

from __future__ import annotations

from dataclasses import replace

import minigrad as mg
from minigrad.core.errors import ArgumentError
from minigrad.core.op import is_builtin
from minigrad_viz.trace.columns import Pass
from minigrad_viz.trace.notation import formula_text
from minigrad_viz.trace.trace import Trace

__all__ = ["match_traces"]


def match_traces(first: Trace, second: Trace) -> Trace:
    """Return the second trace with its nodes and edges reordered as in the first.

    Values and attributes may differ, and a custom op or a Function may replace another operation, so that a gradient
    rule can be compared with a reference. The order may differ as well: the position of a leaf depends on whether it
    requires a gradient.

    Raises ArgumentError if the graphs differ; the message names the first node, in the order of the first trace, whose
    operation, operands or shape differ.

    >>> from minigrad_viz import to_trace
    >>> a, b = mg.Value(2.0, "a"), mg.Value(3.0, "b")
    >>> try:
    ...     match_traces(to_trace(a * b), to_trace(a + b))
    ... except ArgumentError as error:
    ...     print(str(error).splitlines()[1])
      The first mismatch is node 2: v₂ = a · b in the first, v₂ = a + b in the second.
    """
    second_of_first, wrong = _pair_nodes(first, second)
    if wrong:
        node, why = min(wrong)
        raise _mismatch_error(first, second, f"The first mismatch is node {node}: {why}.")
    order = [second_of_first[node] for node in range(len(first.kinds))]
    return second if order == list(range(len(order))) else _reorder(second, order)


def _mismatch_error(first: Trace, second: Trace, reason: str) -> ArgumentError:
    counts = len(first.kinds), len(second.kinds)
    return ArgumentError(
        f"compare: these are not two runs of one graph: the first has {counts[0]:,} nodes, the second {counts[1]:,}.\n"
        f"  {reason}\n  Compare two runs of the same code, with other values, on another device or with another rule."
    )


def _pair_nodes(first: Trace, second: Trace) -> tuple[dict[int, int], list[tuple[int, str]]]:
    """Return a mapping from nodes of the first trace to nodes of the second, and the mismatches as (node, text)."""
    ends = list(zip(first.outputs, second.outputs, strict=False))
    second_of_first: dict[int, int] = {}
    first_of_second: dict[int, int] = {}
    mismatches: list[tuple[int, str]] = []
    stack = [(*pair, pair) for pair in reversed(ends)]  # nodes of both traces, and the results that use them
    while stack:
        first_node, second_node, results = stack.pop()
        if first_node in second_of_first or second_node in first_of_second:
            if second_of_first.get(first_node) != second_node:
                mismatches.append((results[0], _describe_both(first, second, *results)))
            continue
        second_of_first[first_node], first_of_second[second_node] = second_node, first_node
        operands = _operands(first, first_node), _operands(second, second_node)
        if why := _mismatch(first, second, first_node, second_node):
            mismatches.append((first_node, why))
        if len(operands[0]) == len(operands[1]):  # an earlier node may differ too
            pairs = zip(*operands, strict=True)
            stack += [
                (operand, second_operand, (first_node, second_node)) for (operand, _), (second_operand, _) in pairs
            ][::-1]
    if len(first.outputs) != len(second.outputs) and not mismatches:
        counts = [len(trace.outputs) for trace in (first, second)]
        raise _mismatch_error(first, second, f"The first ends in {counts[0]} outputs, the second in {counts[1]}.")
    return second_of_first, mismatches


def _mismatch(first: Trace, second: Trace, first_node: int, second_node: int) -> str:
    """Describe a node in both traces if its operation, slots or shape differ, otherwise return ""."""
    slots = [
        [slot for _, slot in _operands(trace, node)] for trace, node in ((first, first_node), (second, second_node))
    ]
    if not _is_comparable(_operation(first, first_node), _operation(second, second_node)) or slots[0] != slots[1]:
        return _describe_both(first, second, first_node, second_node)
    shapes = [
        trace.tensors[node].shape if node in trace.tensors else ()
        for trace, node in ((first, first_node), (second, second_node))
    ]
    if shapes[0] != shapes[1]:
        return f"{_describe_node(first, first_node)} has shape {shapes[0]} in the first and {shapes[1]} in the second"
    return ""


def _describe_both(first: Trace, second: Trace, first_node: int, second_node: int) -> str:
    return f"{_describe_node(first, first_node)} in the first, {_describe_node(second, second_node)} in the second"


def _operation(trace: Trace, node: int) -> mg.Op | None:
    return None if trace.op[node] < 0 else trace.ops[trace.op[node]]


def _is_comparable(first_op: mg.Op | None, second_op: mg.Op | None) -> bool:
    if first_op is None or second_op is None:
        return first_op is second_op
    return first_op.name == second_op.name or not (is_builtin(first_op) and is_builtin(second_op))


def _operands(trace: Trace, node: int) -> list[tuple[int, int]]:
    """Return the operands of a node as pairs (operand, slot)."""
    return [(trace.operand[edge], trace.slot[edge]) for edge in range(trace.start[node], trace.start[node + 1])]


def _describe_node(trace: Trace, node: int) -> str:
    """Describe a node by its name and its formula."""
    if trace.kinds[node] == "x":
        return f"{trace.title(node)}, which raised an error,"
    formula = trace.formula(node)
    if formula is None:
        return f"{trace.title(node)}, a {'constant' if trace.kinds[node] == 'c' else 'leaf'},"
    return f"{trace.title(node)} = {formula_text(formula)}"


def _reorder(trace: Trace, order: list[int]) -> Trace:
    """Return a trace with its nodes in another order, the edges reordered with them, and without notes."""
    new_index = {node: position for position, node in enumerate(order)}
    edges = [edge for node in order for edge in range(trace.start[node], trace.start[node + 1])]
    start = [0]
    for node in order:
        start.append(start[-1] + trace.start[node + 1] - trace.start[node])
    reordered = replace(
        trace,
        kinds=[trace.kinds[node] for node in order],
        op=[trace.op[node] for node in order],
        names=[trace.names[node] for node in order],
        values=[trace.values[node] for node in order],
        states=[trace.states[node] for node in order],
        grads={new_index[node]: grad for node, grad in trace.grads.items()},
        block=[trace.block[node] for node in order],
        lines={new_index[node]: line for node, line in trace.lines.items()},
        modified_operands={
            new_index[node]: [new_index[x] for x in modified] for node, modified in trace.modified_operands.items()
        },
        attrs={new_index[node]: attrs for node, attrs in trace.attrs.items()},
        tensors={new_index[node]: shaped for node, shaped in trace.tensors.items()},
        operand=[new_index[trace.operand[edge]] for edge in edges],
        result=[new_index[trace.result[edge]] for edge in edges],
        slot=[trace.slot[edge] for edge in edges],
        flows=[trace.flows[edge] for edge in edges],
        local=[trace.local[edge] for edge in edges],
        start=start,
        outputs=[new_index[output] for output in trace.outputs],
        notes=[],
    )
    new_edge = {edge: position for position, edge in enumerate(edges)}
    reordered.passes = [
        Pass(
            new_index[run.root],
            reordered,
            [new_edge[edge] for edge in run.edge],
            run.upstream,
            run.contribution,
            run.total,
        )
        for run in trace.passes
    ]
    return reordered
