"""Captions of the player's positions: the chain rule in symbols and numbers, and the sum to which the product is added.

The counterparts in the player are `frontend/src/panels/caption.js` and `frontend/src/panels/momenttext.js`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from minigrad.backends.formula import Formula
from minigrad.core.errors import ShapeError
from minigrad.core.shapes import broadcast_shapes
from minigrad_viz.trace.arrays import summary
from minigrad_viz.trace.history import Arrival, Moment
from minigrad_viz.trace.notation import (
    format_brief,
    format_float,
    formula_attributes,
    formula_text,
    make_formula,
    product_formula,
    round_for_display,
)
from minigrad_viz.trace.trace import Trace

__all__ = [
    "Caption",
    "caption_of",
    "edge_label",
    "edge_vjp",
    "format_quantity",
    "parenthesize",
    "scalar_of",
    "summed_axes",
]

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
"""Descriptions of operations whose names are abbreviated."""

# Operations that do not broadcast operands to the result's shape.
NON_BROADCASTING = frozenset({"contract", "linear", "matmul"})


SEED_CAPTION = "each arrow multiplies the incoming gradient (upstream) by its derivative (local)"


class Caption(NamedTuple):
    """The caption of a moment. `chip` is the progress of the pass, `words` describe the event.

    `formula`, its `result`, and `total`, the sum to which the result is added, are shown below; each may be empty.
    """

    chip: str
    words: str
    formula: str = ""
    result: str = ""
    total: str = ""


def caption_of(moment: Moment) -> Caption:
    """Return the caption of a moment.

    >>> import minigrad as mg
    >>> from minigrad_viz import to_trace
    >>> from minigrad_viz.trace.history import Timeline
    >>> a = mg.Value(3.0, "a")
    >>> for text in caption_of(Timeline(to_trace(a * a)).at(3)):
    ...     print(text)
    Backward 1 of 2
    From v₁ back to a: upstream × local, contribution 1 of 2.
    ∂v₁/∂a +=
    1.0 × 3.0 = 3.0
    where ∂v₁/∂a = a = 3.0; a.grad: 0 + 3.0 → 3.0
    """
    timeline, trace = moment.timeline, moment.timeline.trace
    if moment.kind == "start":
        return Caption("Start", "The leaves have values; nothing is computed yet.")
    name = trace.title(moment.node)
    if moment.kind == "forward":
        return _forward_caption(moment, name)
    if moment.kind == "seed":
        words = f"The backward pass begins at {name}: a change in {name} changes {name} by the same amount."
        return Caption("Backward", words, f"∂{name}/∂{name} =", format_quantity(timeline.seed_gradient()), SEED_CAPTION)
    return _backward_caption(moment, name)


def _forward_caption(moment: Moment, name: str) -> Caption:
    """Return the caption for the computation of a node: its formula in names and in numbers, and the result."""
    timeline, trace, node = moment.timeline, moment.timeline.trace, moment.node
    chip = f"Forward {moment.position} of {timeline.forward}"
    if trace.kinds[node] == "x":
        return Caption(chip, f"{name} raised an error.", f"{name} =", "—")
    op = trace.ops[trace.op[node]]
    closing = " The forward pass is complete." if moment.position == timeline.forward and timeline.backward_pass else ""
    formula, operand_values = trace.formula(node), [moment.value(at) for at in _operands(trace, node)]
    equal_forms = [name] if formula is None else [name, formula_text(formula)]
    if all(isinstance(x, float) for x in (moment.value(node), *operand_values)):
        are_constant = [trace.kinds[at] == "c" for at in _operands(trace, node)]
        shown = [
            x if is_constant else round_for_display(x)
            for x, is_constant in zip(operand_values, are_constant, strict=True)
        ]
        equal_forms.append(formula_text(make_formula(op, shown, formula_attributes(trace.attrs.get(node, {})))))
    words = f"{name} is computed: {', '.join(filter(None, (op.name, _WORDS.get(op.name))))}.{closing}"
    return Caption(chip, words, f"{' = '.join(equal_forms)} =", format_quantity(moment.value(node)))


def _operands(trace: Trace, node: int) -> list[int]:
    return trace.operand[trace.start[node] : trace.start[node + 1]]


def _backward_caption(moment: Moment, name: str) -> Caption:
    """Return the caption for a gradient that flows back over an edge."""
    timeline, trace, event = moment.timeline, moment.timeline.trace, moment.event
    assert event is not None
    result, root = trace.title(trace.result[moment.edge]), trace.title(timeline.root)
    chip = f"Backward {moment.position - timeline.seed} of {timeline.last - timeline.seed}"
    closing = " The backward pass is complete." if moment.position == timeline.last else ""
    left = f"∂{root}/∂{name} {'+=' if event.of > 1 else '='}"
    total = _format_accumulation(name, event.before, event.contribution, event.total) if event.of > 1 else ""
    rule = edge_vjp(trace, moment.edge) if event.local is None else None
    if rule is not None:
        where_phrase = f", g = ∂{root}/∂{result}{_summed_axes_phrase(trace, moment.edge)}"
        words = f"From {result} back to {name}{where_phrase}.{closing}"
        return Caption(chip, words, f"{left} {rule.formula()} =", format_quantity(event.contribution), total)
    op_phrase = f", through {trace.ops[trace.op[trace.result[moment.edge]]].name}" if event.local is None else ""
    contribution_phrase = f", contribution {event.met} of {event.of}" if event.of > 1 else ""
    words = f"From {result} back to {name}{op_phrase or ': upstream × local'}{contribution_phrase}."
    symbols = left if timeline.root == trace.result[moment.edge] else f"{left} ∂{root}/∂{result} · ∂{result}/∂{name} ="
    factors = _format_factors(event.upstream, event.local, event.contribution)
    local = trace.local_text(moment.edge, formatter=format_brief)
    where_phrase = f"where ∂{result}/∂{name} = {local}" if event.local is not None and " = " in local else ""
    return Caption(
        chip,
        words + _interpretation(name, root, event) + closing,
        symbols,
        factors,
        "; ".join(filter(None, (where_phrase, total))),
    )


def _interpretation(name: str, root: str, event: Arrival) -> str:
    """Return a sentence that interprets a gradient once it is final, otherwise ""."""
    if event.met < event.of or not isinstance(event.total, float) or not event.total:
        return ""
    verb = "decreases" if event.total < 0 else "increases"
    return f" If {name} increases slightly, {root} {verb} {format_brief(abs(event.total))} times as much."


def _format_factors(upstream: Any, local: float | None, contribution: Any) -> str:
    if not isinstance(upstream, float) or local is None:
        return format_quantity(contribution)
    return f"{format_brief(upstream)} × {parenthesize(local)} = {format_brief(contribution)}"


def _format_accumulation(name: str, before: Any, contribution: Any, total: Any) -> str:
    if not isinstance(contribution, float):
        return f"{name}.grad → {format_quantity(total)}"
    return (
        f"{name}.grad: {'0' if before is None else format_brief(before)} + {parenthesize(contribution)} → "
        f"{format_brief(total)}"
    )


def _summed_axes_phrase(trace: Trace, edge: int) -> str:
    axes = summed_axes(trace, edge)
    if not axes:
        return ""
    axes_phrase = f"{'axes' if len(axes) > 1 else 'axis'} {', '.join(map(str, axes))}"
    return f", summed over {axes_phrase}, where broadcasting repeated {trace.title(trace.operand[edge])}"


# --- quantities ------------------------------------------------------------------------------------------------------


def scalar_of(x: Any) -> Any:
    """Return the value of a one-element array as a float, and any other object unchanged."""
    return float(x.reshape(-1)[0]) if getattr(x, "size", 0) == 1 else x


def format_quantity(x: Any) -> str:
    """Format a number, or an array on one line; None becomes a dash.

    >>> import numpy as np
    >>> format_quantity(-2.0), format_quantity(np.array([1.0, float("nan"), 3.0])), format_quantity(None)
    ('−2.0', '(3,) from 1.0 to 3.0 NaN!', '—')
    """
    x = scalar_of(x)
    if x is None or isinstance(x, float):
        return format_brief(x)
    stats = summary(x)
    alarm = f"{' NaN!' if stats['nan'] else ''}{' Inf!' if stats['inf'] else ''}"
    return f"{x.shape} from {format_brief(stats['min'])} to {format_brief(stats['max'])}{alarm}"


def edge_label(moment: Moment) -> str:
    """Return the label of the edge over which a gradient flows, or "" if there is none."""
    if (event := moment.event) is None:
        return ""
    upstream, contribution = scalar_of(event.upstream), scalar_of(event.contribution)
    if isinstance(upstream, float) and event.local is not None:
        return f"{format_brief(upstream)} × {parenthesize(event.local)} = {format_brief(contribution)}"
    if isinstance(contribution, float):
        return f"+ {parenthesize(contribution)}"
    return f"+ [{'×'.join(map(str, contribution.shape))}]"


def parenthesize(x: float | None, formatter: Callable[[float | None], str] = format_brief) -> str:
    """Format a number as a factor or a term, in parentheses if it is negative."""
    return f"({formatter(x)})" if format_float(x).startswith("-") else formatter(x)


# --- gradient rules --------------------------------------------------------------------------------------------------


def edge_vjp(trace: Trace, edge: int) -> Formula | None:
    """Return the VJP of an edge between tensors, such as g bᵀ; None if it cannot be expressed as a formula."""
    result = trace.result[edge]
    attrs = formula_attributes(trace.attrs.get(result, {}))
    op = trace.ops[trace.op[result]]
    return product_formula(op, trace.slot[edge], trace.title(result), trace.symbols(result), attrs)


def summed_axes(trace: Trace, edge: int) -> list[int]:
    """Return the axes of a result along which an operand was broadcast, and over which its gradient is summed."""
    result, operand_tensors = (
        trace.result[edge],
        [trace.tensors.get(trace.operand[k]) for k in trace.into[trace.result[edge]]],
    )
    shapes = [tuple(tensor.shape) if tensor is not None else () for tensor in operand_tensors]
    shape, operand = tuple(trace.tensors[result].shape), trace.tensors[trace.operand[edge]].shape
    op = trace.ops[trace.op[result]].name
    if op in NON_BROADCASTING or (op != "expand" and (len(shapes) < 2 or _broadcast_shape(shapes) != shape)):
        return []
    sizes = (1,) * (len(shape) - len(operand)) + tuple(operand)
    return [k for k, size in enumerate(sizes) if size < shape[k] or k < len(shape) - len(operand)]


def _broadcast_shape(shapes: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    try:
        return broadcast_shapes(*shapes)
    except ShapeError:
        return None
