"""`explain`: the forward and backward arithmetic of one node, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import minigrad as mg
from minigrad.core.errors import ArgumentError
from minigrad.core.graph import Node
from minigrad.core.snapshot import node_of
from minigrad_viz.pictures.quantities import shape_text
from minigrad_viz.trace import Pass, PassStep, Trace, placed
from minigrad_viz.trace.arrays import line, summary
from minigrad_viz.trace.captions import bracketed, product_of, summed_axes
from minigrad_viz.trace.names import Namespaces, callers
from minigrad_viz.trace.notation import formula_of, plain, pretty
from minigrad_viz.trace.positions import find, short_repr

__all__ = ["Explanation", "explain"]

_MOST, _EACH_END = 20, 5  # more than _MOST contributions are abbreviated to _EACH_END from each end


class Explanation(str):
    """A string whose repr is the string itself, so that notebooks and terminals show its lines."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def explain(node: Any, of: Any = None) -> Explanation:
    """Explain how the value and gradient of `node` are computed: each contribution, upstream × local, and their sum.

    The gradient is that of `of`, a result computed from `node`; by default, the last result in your variables that was
    computed from `node`. With `of`, `node` may be a name. Raises ArgumentError if `of` does not depend on `node`.

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
    if of is None and not isinstance(node, Node):
        raise ArgumentError(
            f"explain: expected a Value or a tensor, but got {short_repr(node)}.\n"
            '  Pass one, or its name together with the result: explain("a", of=loss).'
        )
    namespaces = callers()
    end = _end(node, namespaces) if of is None else of
    trace, places = placed(end, namespaces=namespaces)
    index = find(trace, places, node, "explain")
    lines = [_forward(trace, index)]
    for run in trace.passes[:1]:
        lines += _backward(trace, run, index)
    told = ("freed", "replayed") if trace.passes else ("freed", "replayed", "overwritten", "partial", "error")
    lines += [note.text for note in trace.notes if note.kind in told]
    return Explanation("\n".join(lines))


def _end(node: Any, namespaces: Namespaces) -> Any:
    """Return the variable with the largest graph that contains `node`, or else `node` itself."""
    if not isinstance(node, Node):
        return node
    best, most, wanted = node, 0, node_of(node)
    for namespace in namespaces:
        for held in list(namespace.values()):
            if isinstance(held, Node):
                order = mg.topological([node_of(held)])
                if len(order) > most and any(x is wanted for x in order):
                    best, most = held, len(order)
    return best


def _forward(trace: Trace, index: int) -> str:
    """Return ``y = a · b = 2.0 · (−3.0) = −6.0``, without repeated terms."""
    node, title = trace.nodes[index], trace.title(index)
    if node.op is None:
        return f"{title} = {_held(trace, index)}, a {node.kind}"
    formula = plain(_formula(trace, index))
    if index in trace.tensors:
        operands = [trace.operand[edge] for edge in trace.into[index]]
        given = [f"  {trace.title(at)}: {_held(trace, at)}" for at in dict.fromkeys(operands) if at in trace.tensors]
        return "\n".join([f"{title} = {formula}: {_held(trace, index)}", *given])
    numbers: list[Any] = [trace.values[trace.operand[edge]] for edge in trace.into[index]]
    plugged = plain(formula_of(node.op, numbers))
    return " = ".join([title, *dict.fromkeys([formula, plugged]), _held(trace, index)])


def _held(trace: Trace, index: int) -> str:
    """Return the value of a node; for a tensor its shape, range and spread, or that its values were freed."""
    shaped = trace.tensors.get(index)
    if shaped is not None and shaped.array is None and trace.how:
        return shape_text(shaped.shape, shaped.dtype)
    return pretty(trace.values[index]) if shaped is None else _shown(shaped.array)


def _shown(quantity: Any) -> str:
    """Return a formatted float, or a one-line summary of an array."""
    if quantity is None:
        return "values that are no longer available"
    return pretty(quantity) if isinstance(quantity, float) else line(summary(quantity))


def _backward(trace: Trace, run: Pass, index: int) -> Iterator[str]:
    """Yield the contributions of a backward pass to a node, and their sum."""
    name = trace.title(index)
    gradient = f"∂{trace.title(run.root)}/∂{name}, the gradient of {name},"
    events = [event for event in run.steps if trace.edges[event.edge].operand == index]
    if trace.states[index] == "b":
        yield f"{name} gets no gradient: it does not require grad, or it was detached"
    elif index == run.root:
        yield f"{gradient} is 1.0: the backward pass starts here"
    elif not events:
        yield f"{gradient} is not computed: no gradient arrives here"
    elif len(events) == 1:
        yield f"{gradient} arrives {_contribution(trace, events[0])}"
    else:
        yield f"{gradient} adds up {len(events):,} contributions:"
        skipped = len(events) - 2 * _EACH_END if len(events) > _MOST else 0
        first, last = (events[:_EACH_END], events[-_EACH_END:]) if skipped else (events, [])
        yield from (f"  {_contribution(trace, event)}" for event in first)
        if skipped:
            yield f"  … {skipped:,} contributions left out …"
        yield from (f"  {_contribution(trace, event)}" for event in last)
        if index in trace.tensors:
            yield f"  their sum: {_shown(events[-1].total)}"
        else:
            terms = [pretty(first[0].contribution), *[bracketed(e.contribution, pretty) for e in first[1:]]]
            terms += ["…"] * bool(skipped) + [bracketed(e.contribution, pretty) for e in last]
            yield f"  {' + '.join(terms)} = {pretty(events[-1].total)}"


def _contribution(trace: Trace, event: PassStep) -> str:
    edge = trace.edges[event.edge]
    if edge.operand in trace.tensors:
        rule = _rule(trace, event.edge) + _summed(trace, event.edge)
        return f"{rule}, where g is {_shown(event.upstream)}: {_shown(event.contribution)}"
    way = f"∂{trace.title(edge.result)}/∂{trace.title(edge.operand)}"
    result = f"{trace.title(edge.result)} = {plain(_formula(trace, edge.result))}"
    product = f"{pretty(event.upstream)} × {bracketed(event.local, pretty)} = {pretty(event.contribution)}"
    return f"through {result}: upstream × local = {product}, with {way} = {trace.local_text(event.edge)}"


def _rule(trace: Trace, edge: int) -> str:
    """Return the formula of an edge's vector-Jacobian product, such as ``through y = x @ w: xᵀ g``."""
    result = trace.result[edge]
    text = f"through {trace.title(result)} = {plain(_formula(trace, result))}"
    rule = product_of(trace, edge)
    return text if rule is None else f"{text}: {rule.text()}"


def _summed(trace: Trace, edge: int) -> str:
    axes = summed_axes(trace, edge)
    return f", summed over {'axes' if len(axes) > 1 else 'axis'} {', '.join(map(str, axes))}" if axes else ""


def _formula(trace: Trace, index: int) -> Any:
    formula = trace.formula(index)
    return "" if formula is None else formula
