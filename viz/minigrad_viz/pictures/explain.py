"""`explain`, which describes the computation of the value and gradient of a node as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import minigrad as mg
from minigrad.core.errors import ArgumentError
from minigrad.core.graph import Node
from minigrad.core.snapshot import get_node
from minigrad_viz.pictures.node_text import format_shape
from minigrad_viz.trace import Pass, PassStep, Trace, trace_with_indices
from minigrad_viz.trace.arrays import format_summary, summary
from minigrad_viz.trace.captions import edge_vjp, parenthesize, summed_axes
from minigrad_viz.trace.names import Namespaces, caller_namespaces, is_torch
from minigrad_viz.trace.notation import format_pretty, formula_text, make_formula
from minigrad_viz.trace.positions import find_node, short_repr
from minigrad_viz.trace.recording import largest_result

__all__ = ["Explanation", "explain"]

_MAX_CONTRIBUTIONS, _EACH_END = 20, 5  # From a longer sum, only the first and last _EACH_END contributions are listed.


class Explanation(str):
    """A string whose repr is the string itself, so that notebooks and terminals show its lines."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def explain(node: Any, of: Any = None) -> Explanation:
    """Explain how the value and gradient of `node` are computed: each contribution, upstream × local, and their sum.

    The gradient is that of the result `of`, which depends on `node`; by default, it is the last result among your
    variables that depends on `node`. With `of`, `node` may be a name. Raises ArgumentError if `of` does not depend on
    `node`.

    >>> import minigrad as mg
    >>> a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
    >>> y = a * b + a
    >>> explain(a, of=y)
    a = 2.0, a leaf
    ∂y/∂a, the gradient of a, adds up 2 contributions:
      through y = v₂ + a: upstream × local = 1.0 × 1.0 = 1.0, with ∂y/∂a = 1.0
      through v₂ = a · b: upstream × local = 1.0 × (−3.0) = −3.0, with ∂v₂/∂a = b = −3.0
      1.0 + (−3.0) = −2.0
    """
    if of is None and not (isinstance(node, Node) or is_torch(node)):
        raise ArgumentError(
            f"explain: expected a Value or a tensor, but got {short_repr(node)}.\n"
            '  Pass one, or its name together with the result: explain("a", of=loss).'
        )
    namespaces = caller_namespaces()
    output = _find_output(node, namespaces) if of is None else of
    trace, indices = trace_with_indices(output, namespaces=namespaces)
    index = find_node(trace, indices, node, "explain")
    lines = [_forward_text(trace, index)]
    for backward_pass in trace.passes[:1]:
        lines += _backward_lines(trace, backward_pass, index)
    note_kinds = ("freed", "replayed") if trace.passes else ("freed", "replayed", "overwritten", "partial", "error")
    lines += [note.text for note in trace.notes if note.kind in note_kinds]
    return Explanation("\n".join(lines))


def _find_output(node: Any, namespaces: Namespaces) -> Any:
    """Return the variable whose graph contains `node` and is the largest, or `node` itself if there is none."""
    if is_torch(node):
        variables = [x for namespace in namespaces for x in list(namespace.values()) if not isinstance(x, list | tuple)]
        result = largest_result(node, variables)
        return node if result is None else result
    best, max_nodes, target = node, 0, get_node(node)
    for namespace in namespaces:
        for variable in list(namespace.values()):
            if isinstance(variable, Node):
                order = mg.topological([get_node(variable)])
                if len(order) > max_nodes and any(x is target for x in order):
                    best, max_nodes = variable, len(order)
    return best


def _forward_text(trace: Trace, index: int) -> str:
    """Return the computation of a node, such as ``y = a · b = 2.0 · (−3.0) = −6.0``, without repeated terms."""
    node, title = trace.nodes[index], trace.title(index)
    if node.op is None:
        return f"{title} = {_value_text(trace, index)}, a {node.kind}"
    formula = formula_text(_formula_or_empty(trace, index))
    if index in trace.tensors:
        operands = [trace.operand[edge] for edge in trace.into[index]]
        operand_lines = [
            f"  {trace.title(at)}: {_value_text(trace, at)}" for at in dict.fromkeys(operands) if at in trace.tensors
        ]
        return "\n".join([f"{title} = {formula}: {_value_text(trace, index)}", *operand_lines])
    operand_values: list[Any] = [trace.values[trace.operand[edge]] for edge in trace.into[index]]
    numeric_formula = formula_text(make_formula(node.op, operand_values))
    return " = ".join([title, *dict.fromkeys([formula, numeric_formula]), _value_text(trace, index)])


def _value_text(trace: Trace, index: int) -> str:
    """Format the value of a node, or a one-line summary of a tensor."""
    tensor = trace.tensors.get(index)
    if tensor is not None and tensor.array is None and trace.execution:
        return format_shape(tensor.shape, tensor.dtype)
    return format_pretty(trace.values[index]) if tensor is None else _quantity_text(tensor.array)


def _quantity_text(quantity: Any) -> str:
    """Format a float, or a one-line summary of an array."""
    if quantity is None:
        return "values that are no longer available"
    return format_pretty(quantity) if isinstance(quantity, float) else format_summary(summary(quantity))


def _backward_lines(trace: Trace, backward_pass: Pass, index: int) -> Iterator[str]:
    """Yield lines that describe the contributions to the gradient of a node, and their sum."""
    name = trace.title(index)
    gradient = f"∂{trace.title(backward_pass.root)}/∂{name}, the gradient of {name},"
    events = [event for event in backward_pass.steps if trace.edges[event.edge].operand == index]
    if trace.states[index] == "b":
        yield f"{name} gets no gradient: it does not require grad, or it was detached"
    elif index == backward_pass.root:
        yield f"{gradient} is 1.0: the backward pass starts here"
    elif not events:
        yield f"{gradient} is not computed: no gradient arrives here"
    elif len(events) == 1:
        yield f"{gradient} arrives {_contribution_text(trace, events[0])}"
    else:
        yield f"{gradient} adds up {len(events):,} contributions:"
        skipped = len(events) - 2 * _EACH_END if len(events) > _MAX_CONTRIBUTIONS else 0
        first, last = (events[:_EACH_END], events[-_EACH_END:]) if skipped else (events, [])
        yield from (f"  {_contribution_text(trace, event)}" for event in first)
        if skipped:
            yield f"  … {skipped:,} contributions left out …"
        yield from (f"  {_contribution_text(trace, event)}" for event in last)
        if index in trace.tensors:
            yield f"  their sum: {_quantity_text(events[-1].total)}"
        else:
            terms = [
                format_pretty(first[0].contribution),
                *[parenthesize(e.contribution, format_pretty) for e in first[1:]],
            ]
            terms += ["…"] * bool(skipped) + [parenthesize(e.contribution, format_pretty) for e in last]
            yield f"  {' + '.join(terms)} = {format_pretty(events[-1].total)}"


def _contribution_text(trace: Trace, event: PassStep) -> str:
    edge = trace.edges[event.edge]
    if edge.operand in trace.tensors:
        rule = _vjp_text(trace, event.edge) + _summed_axes_text(trace, event.edge)
        return f"{rule}, where g is {_quantity_text(event.upstream)}: {_quantity_text(event.contribution)}"
    derivative = f"∂{trace.title(edge.result)}/∂{trace.title(edge.operand)}"
    result = f"{trace.title(edge.result)} = {formula_text(_formula_or_empty(trace, edge.result))}"
    product = (
        f"{format_pretty(event.upstream)} × {parenthesize(event.local, format_pretty)} = "
        f"{format_pretty(event.contribution)}"
    )
    return f"through {result}: upstream × local = {product}, with {derivative} = {trace.local_text(event.edge)}"


def _vjp_text(trace: Trace, edge: int) -> str:
    """Return the formula of an edge's vector-Jacobian product, such as ``through y = x @ w: xᵀ g``."""
    result = trace.result[edge]
    text = f"through {trace.title(result)} = {formula_text(_formula_or_empty(trace, result))}"
    rule = edge_vjp(trace, edge)
    return text if rule is None else f"{text}: {rule.formula()}"


def _summed_axes_text(trace: Trace, edge: int) -> str:
    axes = summed_axes(trace, edge)
    return f", summed over {'axes' if len(axes) > 1 else 'axis'} {', '.join(map(str, axes))}" if axes else ""


def _formula_or_empty(trace: Trace, index: int) -> Any:
    formula = trace.formula(index)
    return "" if formula is None else formula
