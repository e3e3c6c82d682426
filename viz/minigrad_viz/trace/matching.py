"""Match two traces of the same graph: from the outputs back, the same operations, operands and shapes."""

from __future__ import annotations

from dataclasses import replace

import minigrad as mg
from minigrad.core.errors import ArgumentError
from minigrad.core.op import is_own
from minigrad_viz.trace.columns import Pass
from minigrad_viz.trace.notation import plain
from minigrad_viz.trace.trace import Trace

__all__ = ["matched"]


def matched(first: Trace, second: Trace) -> Trace:
    """Return the second trace with its nodes and edges reordered as in the first.

    Values and attributes may differ, and a custom op or a Function may replace another operation, so that a gradient
    rule can be compared with a reference. The order may differ as well: that of a leaf depends on whether it requires a
    gradient.

    Raises ArgumentError if the graphs differ; the message names the first node, in the order of the first trace, whose
    operation, operands or shape differ.

    >>> from minigrad_viz import to_trace
    >>> a, b = mg.Value(2.0, "a"), mg.Value(3.0, "b")
    >>> try:
    ...     matched(to_trace(a * b), to_trace(a + b))
    ... except ArgumentError as error:
    ...     print(str(error).splitlines()[1])
      The first mismatch is node 2: v₂ = a · b in the first, v₂ = a + b in the second.
    """
    places, wrong = _paired(first, second)
    if wrong:
        node, why = min(wrong)
        raise _refusal(first, second, f"The first mismatch is node {node}: {why}.")
    order = [places[node] for node in range(len(first.kinds))]
    return second if order == list(range(len(order))) else _in_order(second, order)


def _refusal(first: Trace, second: Trace, why: str) -> ArgumentError:
    counts = len(first.kinds), len(second.kinds)
    return ArgumentError(
        f"compare: these are not two runs of one graph: the first has {counts[0]:,} nodes, the second {counts[1]:,}.\n"
        f"  {why}\n  Compare two runs of the same code, with other values, on another device or with another rule."
    )


def _paired(first: Trace, second: Trace) -> tuple[dict[int, int], list[tuple[int, str]]]:
    """Return the node of the second trace by node of the first, and the mismatches with their nodes."""
    ends = list(zip(first.outputs, second.outputs, strict=False))
    places: dict[int, int] = {}
    taken: dict[int, int] = {}
    wrong: list[tuple[int, str]] = []
    waiting = [(*pair, pair) for pair in reversed(ends)]  # and the pair of results that they are operands of
    while waiting:
        one, other, above = waiting.pop()
        if one in places or other in taken:
            if places.get(one) != other:
                wrong.append((above[0], _in_both(first, second, *above)))
            continue
        places[one], taken[other] = other, one
        operands = _operands(first, one), _operands(second, other)
        if why := _mismatch(first, second, one, other):
            wrong.append((one, why))
        if len(operands[0]) == len(operands[1]):  # an earlier node may differ too
            pairs = zip(*operands, strict=True)
            waiting += [(operand, its, (one, other)) for (operand, _), (its, _) in pairs][::-1]
    if len(first.outputs) != len(second.outputs) and not wrong:
        counts = [len(trace.outputs) for trace in (first, second)]
        raise _refusal(first, second, f"The first ends in {counts[0]} outputs, the second in {counts[1]}.")
    return places, wrong


def _mismatch(first: Trace, second: Trace, one: int, other: int) -> str:
    """Describe a node in both traces if its operation, slots or shape differ, otherwise return ""."""
    slots = [[slot for _, slot in _operands(trace, node)] for trace, node in ((first, one), (second, other))]
    if not _comparable(_operation(first, one), _operation(second, other)) or slots[0] != slots[1]:
        return _in_both(first, second, one, other)
    shapes = [
        trace.tensors[node].shape if node in trace.tensors else () for trace, node in ((first, one), (second, other))
    ]
    if shapes[0] != shapes[1]:
        return f"{_made(first, one)} has shape {shapes[0]} in the first and {shapes[1]} in the second"
    return ""


def _in_both(first: Trace, second: Trace, one: int, other: int) -> str:
    return f"{_made(first, one)} in the first, {_made(second, other)} in the second"


def _operation(trace: Trace, node: int) -> mg.Op | None:
    return None if trace.op[node] < 0 else trace.ops[trace.op[node]]


def _comparable(one: mg.Op | None, other: mg.Op | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.name == other.name or not (is_own(one) and is_own(other))


def _operands(trace: Trace, node: int) -> list[tuple[int, int]]:
    """Return the operands of a node, with their slots."""
    return [(trace.operand[edge], trace.slot[edge]) for edge in range(trace.start[node], trace.start[node + 1])]


def _made(trace: Trace, node: int) -> str:
    """Describe a node by its name and its formula."""
    if trace.kinds[node] == "x":
        return f"{trace.title(node)}, which raised an error,"
    formula = trace.formula(node)
    if formula is None:
        return f"{trace.title(node)}, a {'constant' if trace.kinds[node] == 'c' else 'leaf'},"
    return f"{trace.title(node)} = {plain(formula)}"


def _in_order(trace: Trace, order: list[int]) -> Trace:
    """Return a trace with its nodes in another order, the edges reordered with them, and without notes."""
    now = {node: place for place, node in enumerate(order)}
    edges = [edge for node in order for edge in range(trace.start[node], trace.start[node + 1])]
    start = [0]
    for node in order:
        start.append(start[-1] + trace.start[node + 1] - trace.start[node])
    made = replace(
        trace,
        kinds=[trace.kinds[node] for node in order],
        op=[trace.op[node] for node in order],
        names=[trace.names[node] for node in order],
        values=[trace.values[node] for node in order],
        states=[trace.states[node] for node in order],
        grads={now[node]: grad for node, grad in trace.grads.items()},
        block=[trace.block[node] for node in order],
        lines={now[node]: line for node, line in trace.lines.items()},
        late={now[node]: [now[x] for x in late] for node, late in trace.late.items()},
        attrs={now[node]: attrs for node, attrs in trace.attrs.items()},
        tensors={now[node]: shaped for node, shaped in trace.tensors.items()},
        operand=[now[trace.operand[edge]] for edge in edges],
        result=[now[trace.result[edge]] for edge in edges],
        slot=[trace.slot[edge] for edge in edges],
        flows=[trace.flows[edge] for edge in edges],
        local=[trace.local[edge] for edge in edges],
        start=start,
        outputs=[now[output] for output in trace.outputs],
        notes=[],
    )
    new = {edge: place for place, edge in enumerate(edges)}
    made.passes = [
        Pass(now[run.root], made, [new[edge] for edge in run.edge], run.upstream, run.contribution, run.total)
        for run in trace.passes
    ]
    return made
