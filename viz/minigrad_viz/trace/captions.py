"""Captions of the player's positions: the chain rule in symbols, its numbers, and the sum that they are added to.

The player's twins are `frontend/src/panels/saying.js` and `frontend/src/panels/wording.js`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from minigrad.backends.formula import Formula
from minigrad.core.errors import ShapeError
from minigrad.core.shapes import broadcast_shapes
from minigrad_viz.trace.arrays import summary
from minigrad_viz.trace.history import Arrival, Moment
from minigrad_viz.trace.notation import brief, for_formula, formula_of, number, plain, product_formula, shortened
from minigrad_viz.trace.trace import Trace

__all__ = ["Caption", "bracketed", "caption", "on_edge", "product_of", "quantity", "scalar_of", "summed_axes"]

_WORDS = {
    "add": "a sum",
    "sub": "a difference",
    "mul": "a product",
    "div": "a quotient",
    "neg": "the negative",
    "pow": "a power",
    "log": "the natural logarithm",
    "matmul": "a matrix product",
}
"""Full names of operations with abbreviated names."""

_PRODUCTS = frozenset({"contract", "linear", "matmul"})  # operands are not broadcast to the result's shape


_RULE = "each arrow multiplies the incoming gradient (upstream) by its derivative (local)"


class Caption(NamedTuple):
    """The caption of a moment: `chip` is the progress of the pass, `words` describe the event.

    Below them are `formula`, its `result`, and `total`, the sum it is added to; "" if there is none.
    """

    chip: str
    words: str
    formula: str = ""
    result: str = ""
    total: str = ""


def caption(now: Moment) -> Caption:
    """Return the caption of a moment.

    >>> import minigrad as mg
    >>> from minigrad_viz import to_trace
    >>> from minigrad_viz.trace.history import Timeline
    >>> a = mg.Value(3.0, "a")
    >>> for text in caption(Timeline(to_trace(a * a)).at(3)):
    ...     print(text)
    Backward 1 of 2
    From v₁ back to a: upstream × local, contribution 1 of 2.
    ∂v₁/∂a +=
    1.0 × 3.0 = 3.0
    where ∂v₁/∂a = a = 3.0; a.grad: 0 + 3.0 → 3.0
    """
    timeline, trace = now.timeline, now.timeline.trace
    if now.kind == "start":
        return Caption("Start", "The leaves have values; nothing is computed yet.")
    name = trace.title(now.node)
    if now.kind == "forward":
        return _computation(now, name)
    if now.kind == "seed":
        words = f"The backward pass begins at {name}: a change in {name} changes {name} by the same amount."
        return Caption("Backward", words, f"∂{name}/∂{name} =", quantity(timeline.seeding()), _RULE)
    return _chain_rule(now, name)


def _computation(now: Moment, name: str) -> Caption:
    """Caption the computation of a node: in names, in numbers, and the result."""
    timeline, trace, node = now.timeline, now.timeline.trace, now.node
    chip = f"Forward {now.position} of {timeline.forward}"
    if trace.kinds[node] == "x":
        return Caption(chip, f"{name} raised an error.", f"{name} =", "—")
    op = trace.ops[trace.op[node]]
    end = " The forward pass is complete." if now.position == timeline.forward and timeline.run else ""
    formula, numbers = trace.formula(node), [now.value(at) for at in _operands(trace, node)]
    ways = [name] if formula is None else [name, plain(formula)]
    if all(isinstance(x, float) for x in (now.value(node), *numbers)):
        exact = [trace.kinds[at] == "c" for at in _operands(trace, node)]
        shown = [x if same else shortened(x) for x, same in zip(numbers, exact, strict=True)]
        ways.append(plain(formula_of(op, shown, for_formula(trace.attrs.get(node, {})))))
    words = f"{name} is computed: {', '.join(filter(None, (op.name, _WORDS.get(op.name))))}.{end}"
    return Caption(chip, words, f"{' = '.join(ways)} =", quantity(now.value(node)))


def _operands(trace: Trace, node: int) -> list[int]:
    return trace.operand[trace.start[node] : trace.start[node + 1]]


def _chain_rule(now: Moment, name: str) -> Caption:
    """Caption a gradient that flows back over an edge."""
    timeline, trace, event = now.timeline, now.timeline.trace, now.event
    assert event is not None
    result, root = trace.title(trace.result[now.edge]), trace.title(timeline.root)
    chip = f"Backward {now.position - timeline.seed} of {timeline.last - timeline.seed}"
    end = " The backward pass is complete." if now.position == timeline.last else ""
    left = f"∂{root}/∂{name} {'+=' if event.of > 1 else '='}"
    total = _sum(name, event.before, event.contribution, event.total) if event.of > 1 else ""
    rule = product_of(trace, now.edge) if event.local is None else None
    if rule is not None:
        where = f", g = ∂{root}/∂{result}{_where_summed(trace, now.edge)}"
        words = f"From {result} back to {name}{where}.{end}"
        return Caption(chip, words, f"{left} {rule.text()} =", quantity(event.contribution), total)
    way = f", through {trace.ops[trace.op[trace.result[now.edge]]].name}" if event.local is None else ""
    which = f", contribution {event.met} of {event.of}" if event.of > 1 else ""
    words = f"From {result} back to {name}{way or ': upstream × local'}{which}."
    symbols = left if timeline.root == trace.result[now.edge] else f"{left} ∂{root}/∂{result} · ∂{result}/∂{name} ="
    factors = _factors(event.upstream, event.local, event.contribution)
    local = trace.local_text(now.edge, show=brief)
    where = f"where ∂{result}/∂{name} = {local}" if event.local is not None and " = " in local else ""
    return Caption(
        chip, words + _meaning(name, root, event) + end, symbols, factors, "; ".join(filter(None, (where, total)))
    )


def _meaning(name: str, root: str, event: Arrival) -> str:
    """Return what a gradient means once it is final, "" before."""
    if event.met < event.of or not isinstance(event.total, float) or not event.total:
        return ""
    way = "decreases" if event.total < 0 else "increases"
    return f" If {name} increases slightly, {root} {way} {brief(abs(event.total))} times as much."


def _factors(upstream: Any, local: float | None, contribution: Any) -> str:
    if not isinstance(upstream, float) or local is None:
        return quantity(contribution)
    return f"{brief(upstream)} × {bracketed(local)} = {brief(contribution)}"


def _sum(name: str, before: Any, contribution: Any, total: Any) -> str:
    if not isinstance(contribution, float):
        return f"{name}.grad → {quantity(total)}"
    return f"{name}.grad: {'0' if before is None else brief(before)} + {bracketed(contribution)} → {brief(total)}"


def _where_summed(trace: Trace, edge: int) -> str:
    axes = summed_axes(trace, edge)
    if not axes:
        return ""
    which = f"{'axes' if len(axes) > 1 else 'axis'} {', '.join(map(str, axes))}"
    return f", summed over {which}, where broadcasting repeated {trace.title(trace.operand[edge])}"


# --- quantities ------------------------------------------------------------------------------------------------------


def scalar_of(x: Any) -> Any:
    """Return the value of a one-element array as a float, and any other object unchanged."""
    return float(x.reshape(-1)[0]) if getattr(x, "size", 0) == 1 else x


def quantity(x: Any) -> str:
    """Format a number, or an array on one line; None becomes a dash.

    >>> import numpy as np
    >>> quantity(-2.0), quantity(np.array([1.0, float("nan"), 3.0])), quantity(None)
    ('−2.0', '(3,) from 1.0 to 3.0 NaN!', '—')
    """
    x = scalar_of(x)
    if x is None or isinstance(x, float):
        return brief(x)
    short = summary(x)
    alarm = f"{' NaN!' if short['nan'] else ''}{' Inf!' if short['inf'] else ''}"
    return f"{x.shape} from {brief(short['min'])} to {brief(short['max'])}{alarm}"


def on_edge(now: Moment) -> str:
    """Return the label of the edge over which a gradient flows, "" if there is none."""
    if (event := now.event) is None:
        return ""
    upstream, contribution = scalar_of(event.upstream), scalar_of(event.contribution)
    if isinstance(upstream, float) and event.local is not None:
        return f"{brief(upstream)} × {bracketed(event.local)} = {brief(contribution)}"
    if isinstance(contribution, float):
        return f"+ {bracketed(contribution)}"
    return f"+ [{'×'.join(map(str, contribution.shape))}]"


def bracketed(x: float | None, show: Callable[[float | None], str] = brief) -> str:
    """Format a number as a factor or a term: in parentheses if it is negative."""
    return f"({show(x)})" if number(x).startswith("-") else show(x)


# --- what an operation does to a gradient ----------------------------------------------------------------------------


def product_of(trace: Trace, edge: int) -> Formula | None:
    """Return the VJP of an edge between tensors, such as g bᵀ; None if it cannot be written."""
    result = trace.result[edge]
    attrs = for_formula(trace.attrs.get(result, {}))
    op = trace.ops[trace.op[result]]
    return product_formula(op, trace.slot[edge], trace.title(result), trace.symbols(result), attrs)


def summed_axes(trace: Trace, edge: int) -> list[int]:
    """Return the axes of a result along which an operand was broadcast, and over which its gradient is summed."""
    result, into = trace.result[edge], [trace.tensors.get(trace.operand[k]) for k in trace.into[trace.result[edge]]]
    shapes = [tuple(one.shape) if one is not None else () for one in into]
    shape, operand = tuple(trace.tensors[result].shape), trace.tensors[trace.operand[edge]].shape
    op = trace.ops[trace.op[result]].name
    if op in _PRODUCTS or (op != "expand" and (len(shapes) < 2 or _broadcast(shapes) != shape)):
        return []
    sizes = (1,) * (len(shape) - len(operand)) + tuple(operand)
    return [k for k, size in enumerate(sizes) if size < shape[k] or k < len(shape) - len(operand)]


def _broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    try:
        return broadcast_shapes(*shapes)
    except ShapeError:
        return None
