"""`explain`: the arithmetic of one node as text, forward and backward."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import minigrad as mg
from minigrad.graph import Node
from minigrad_viz.names import Namespaces, callers
from minigrad_viz.notation import formula_of, number, plain, pretty
from minigrad_viz.player import find
from minigrad_viz.trace import Pass, Step, Trace, placed

__all__ = ["Explanation", "explain"]


class Explanation(str):
    """A text that a notebook and a terminal show by its lines."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def explain(node: Any, of: Any = None) -> Explanation:
    """How the number in `node` came about, and its gradient: each contribution, upstream × local, and their sum.

    The gradient is that of `of`, a result computed from `node`; if it is left out, of what you hold in variables and
    computed from `node`, the last. With `of`, `node` may be a name. Raises ArgumentError if `of` does not depend on it.

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
    namespaces = callers()
    end = _end(node, namespaces) if of is None else of
    trace, places = placed(end, namespaces=namespaces)
    index = find(trace, places, node, "explain")
    lines = [_forward(trace, index)]
    for run in trace.passes[:1]:
        lines += _backward(trace, run, index)
    return Explanation("\n".join(lines))


def _end(node: Any, namespaces: Namespaces) -> Any:
    """Of what the reader's variables hold, that with the largest graph that `node` is in; else `node` itself."""
    if not isinstance(node, Node):
        return node
    best, most = node, 0
    for namespace in namespaces:
        for held in list(namespace.values()):
            if isinstance(held, mg.Value) and held.op is not None:
                order = mg.topological([held])
                if len(order) > most and node in order:
                    best, most = held, len(order)
    return best


def _forward(trace: Trace, index: int) -> str:
    """``y = a · b = 2.0 · (−3.0) = −6.0``, without what would be said twice."""
    node = trace.nodes[index]
    if node.op is None:
        return f"{trace.title(index)} = {pretty(node.value)}, a {node.kind}"
    operands = [trace.nodes[trace.edges[edge].operand].value for edge in trace.into[index]]
    formulas = [plain(formula_of(node.op, trace.symbols(index))), plain(formula_of(node.op, operands))]
    return " = ".join([trace.title(index), *dict.fromkeys(formulas), pretty(node.value)])


def _backward(trace: Trace, run: Pass, index: int) -> Iterator[str]:
    """The events of a pass that reach a node, and their sum."""
    name = trace.title(index)
    gradient = f"∂{trace.title(run.root)}/∂{name}, the gradient of {name},"
    events = [event for event in run.steps if trace.edges[event.edge].operand == index]
    if index == run.root:
        yield f"{gradient} is 1.0: the backward pass begins here"
    elif not events:
        yield f"{gradient} is not computed: no gradient arrives here"
    elif len(events) == 1:
        yield f"{gradient} arrives {_contribution(trace, events[0])}"
    else:
        yield f"{gradient} adds up {len(events)} contributions:"
        yield from (f"  {_contribution(trace, event)}" for event in events)
        terms = " + ".join([pretty(events[0].contribution), *[_bracketed(e.contribution) for e in events[1:]]])
        yield f"  {terms} = {pretty(events[-1].total)}"


def _contribution(trace: Trace, event: Step) -> str:
    edge = trace.edges[event.edge]
    way = f"∂{trace.title(edge.result)}/∂{trace.title(edge.operand)}"
    formula = trace.formula(edge.result)
    result = f"{trace.title(edge.result)} = {'' if formula is None else plain(formula)}"
    product = f"{pretty(event.upstream)} × {_bracketed(event.local)} = {pretty(event.contribution)}"
    return f"through {result}: upstream × local = {product}, with {way} = {trace.local_text(event.edge)}"


def _bracketed(x: float | None) -> str:
    return f"({pretty(x)})" if number(x).startswith("-") else pretty(x)
