"""Node cards, which show the name, formula, value and gradient of a node, or the error that it raised."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from minigrad.backends.formula import Formula
from minigrad_viz.pictures import heat
from minigrad_viz.pictures.node_text import STATE_SIGNS, format_gradient, format_shape, format_value, has_heatmap
from minigrad_viz.trace import Trace
from minigrad_viz.trace.arrays import format_summary, summary
from minigrad_viz.trace.captions import format_quantity
from minigrad_viz.trace.columns import is_finite
from minigrad_viz.trace.history import Moment
from minigrad_viz.trace.notation import escape, fit, format_float, formula_text, text_width

__all__ = ["HEADER_HEIGHT", "PADDING", "RING_OFFSET", "ROW_HEIGHT", "Card", "TensorHeatmaps", "make_card", "strip_path"]

PADDING, HEADER_HEIGHT, ROW_HEIGHT = 9.0, 25.0, 20.0
_MAX_HEADER_WIDTH = 210.0  # maximum width of the text in a header, in pixels
RING_OFFSET = 3.5  # distance between the two borders of an output, in pixels


@dataclass(slots=True)
class TensorHeatmaps:
    """The heatmaps of a tensor and its gradient. Placeholders are shown in place of missing heatmaps."""

    width: int
    height: int
    value: Mapping[str, Any] | None
    grad: Mapping[str, Any] | None
    value_placeholder: str
    grad_placeholder: str
    note: str
    max_magnitude: float
    """The magnitude that is drawn in full colour in both heatmaps."""
    divider_x: float = 0.0


@dataclass(slots=True)
class Card:
    """The card of a node, with its texts and heatmaps and its size."""

    kind: str
    tooltip: str
    name: str
    rule: str
    value: str
    grad: str
    sum_label: str
    width: float
    height: float
    is_blocked: bool
    """Whether gradients are blocked at the node. If so, the border is dashed."""
    has_alarm: bool
    """Whether the border has the alarm colour."""
    is_named: bool
    heatmaps: TensorHeatmaps | None = None
    state: str = ""
    """The CSS classes of a card at a moment: the state of the gradient, and "pale" before the node is computed."""
    formula: Formula | str | None = None
    """The formula whose text is `rule`."""
    is_call: bool = False
    """Whether the card shows a call of a captured step. If so, `grad` contains the formula and `value` the shape."""

    @property
    def size(self) -> tuple[float, float]:
        """The width and height, including the second border of an output."""
        ring = 2 * RING_OFFSET if "output" in self.kind else 0.0
        return self.width + ring, self.height + ring

    def draw(self, x: float, y: float) -> str:
        """Return the SVG of the card, with its top left corner at (x, y)."""
        return _draw_card(self, x, y)


@dataclass(slots=True)
class _CardText:
    """The texts of a card for its value and gradient, and their maximum widths over all moments."""

    value: str
    grad: str
    sum_label: str
    value_width: float
    grad_width: float
    sum_width: float
    has_alarm: bool
    state: str = ""


def make_card(trace: Trace, index: int, contributions: int, moment: Moment | None = None) -> Card:
    """Return the card of node `index`, in the final state or at a moment.

    Its gradient is a sum of `contributions` terms. The card of a moment is large enough for the contents of every
    moment.
    """
    node = trace.nodes[index]
    kind = f"{node.kind} output" if index in trace.outputs else node.kind
    heatmaps = _tensor_heatmaps(trace, index, moment) if has_heatmap(trace, index) else None
    card_text = _final_text(trace, index, contributions) if moment is None else _text_at_moment(trace, index, moment)
    tooltip = _tooltip(trace, index, heatmaps) if moment is None else ""
    if node.kind == "constant":
        width = max(52.0, text_width(card_text.value, 12.5) + text_width("const", 11) + 2 * PADDING + 10)
        return Card(kind, tooltip, "", "", card_text.value, "", "", width, 26.0, True, card_text.has_alarm, False)
    formula = trace.formula(index, in_block=True)
    rule = "" if formula is None else f" = {formula_text(formula)}"
    name = fit(trace.title(index, 60, in_block=True), 0.7 * _MAX_HEADER_WIDTH if rule else _MAX_HEADER_WIDTH, 13, True)
    name_width = text_width(name, 13, True)
    rule = fit(rule, _MAX_HEADER_WIDTH - name_width, 13)
    header = name_width + text_width(rule, 13)
    height = HEADER_HEIGHT + 2 * ROW_HEIGHT
    if node.kind == "broken":
        card_text.value, card_text.grad = "raised", fit(_error_line(trace, index), _MAX_HEADER_WIDTH + 90, 12.5)
        max_width = max(header, text_width(card_text.grad, 12.5), text_width(card_text.value, 12.5, True) + 24)
    elif trace.execution:
        return _call_card(trace, index, kind, tooltip, card_text.state)
    elif heatmaps:
        captions = (("data", heatmaps.value_placeholder, 0.0), ("grad", heatmaps.grad_placeholder, card_text.sum_width))
        if moment is not None:
            is_saved, is_gradient_blocked = trace.tensors[index].array is not None, node.state == "blocked"
            captions = (
                ("data", "" if is_saved else "not kept", 0.0),
                ("grad", "blocked" if is_gradient_blocked else "—", card_text.sum_width),
            )
        left, right = (
            max(heatmaps.width, text_width(f"{cap} {no}", 11) + extra_width) for cap, no, extra_width in captions
        )
        heatmaps.divider_x = math.ceil(PADDING + left + 7)
        max_width = max(header, text_width(heatmaps.note, 11), heatmaps.divider_x + 5 + right - PADDING)
        height = HEADER_HEIGHT + 18 + heatmaps.height + 22
    else:
        value_row_width = text_width("data", 11) + 12 + card_text.value_width
        grad_row_width = text_width("grad", 11) + 12 + card_text.grad_width + card_text.sum_width
        max_width = max(header, value_row_width, grad_row_width)
    width = math.ceil(max(76.0, max_width + 2 * PADDING))
    is_blocked, is_named = node.state == "blocked" and not trace.execution, node.name is not None
    header_texts, card_texts = (name, rule), (card_text.value, card_text.grad, card_text.sum_label)
    flags = (is_blocked, card_text.has_alarm, is_named)
    return Card(kind, tooltip, *header_texts, *card_texts, width, height, *flags, heatmaps, card_text.state, formula)


def _final_text(trace: Trace, index: int, contributions: int) -> _CardText:
    sum_label = f"Σ{contributions}" if contributions > 1 and not trace.execution else ""
    has_alarm = trace.is_alarming(index) or trace.kinds[index] == "x"
    value, grad = ("", "") if has_heatmap(trace, index) else (format_value(trace, index), format_gradient(trace, index))
    sum_width = text_width(sum_label, 11, True) + 6 if sum_label else 0.0
    return _CardText(value, grad, sum_label, text_width(value, 12.5), text_width(grad, 12.5), sum_width, has_alarm)


def _text_at_moment(trace: Trace, index: int, moment: Moment) -> _CardText:
    """Return the texts of a card at a moment, without values not yet computed, and with partial sums of gradients."""
    is_computed, gradient, sums = moment.is_computed(index), moment.gradient(index), moment.timeline.gradients(index)
    count, is_tensor = gradient.of, has_heatmap(trace, index)
    sign = STATE_SIGNS.get(gradient.state, "")
    labels = {"partial": f"Σ {gradient.met} of {count}", "final": f"Σ {count}"}
    sum_label = labels.get(gradient.state, "") if count > 1 else ""
    final_value = format_value(trace, index)
    value = "" if is_tensor or not is_computed else final_value
    grad = "" if is_tensor or not is_computed else sign or format_quantity(gradient.value)
    partial_sums = [] if is_tensor else [format_quantity(total) for total in sums]
    grad_width = max([text_width(sign, 12.5), *(text_width(text, 12.5, True) for text in partial_sums)])
    value_width = 0.0 if is_tensor else text_width(final_value, 12.5)
    sum_width = text_width(f"Σ {count} of {count}", 11, True) + 6 if count > 1 else 0.0
    is_non_finite = (is_computed and not is_finite(moment.value(index))) or not is_finite(gradient.value)
    has_alarm = is_non_finite or index in trace.modified_operands or trace.kinds[index] == "x"
    pale = " pale" if trace.kinds[index] == "o" and not is_computed else ""
    state = {"none": "wait"}.get(gradient.state, gradient.state) + pale
    return _CardText(value, grad, sum_label, value_width, grad_width, sum_width, has_alarm, state)


def _call_card(trace: Trace, index: int, kind: str, tooltip: str, state: str) -> Card:
    """Return the card of a call in a captured step, with the result's name, the formula and the output shape."""
    node, formula = trace.nodes[index], trace.formula(index, in_block=True)
    shape = format_shape(*trace.tensors[index][:2])
    name = fit(trace.title(index, 60, in_block=True), _MAX_HEADER_WIDTH, 13, True)
    computes = node.attrs.get("computes", "")
    if text_width(name, 13, True) + text_width(computes, 13) > _MAX_HEADER_WIDTH + 60:
        computes = "" if node.name else fit(computes, _MAX_HEADER_WIDTH, 13)
    formula_line = "" if formula is None else fit(formula_text(formula), _MAX_HEADER_WIDTH, 11)
    rule = f"  {computes}" if computes else ""
    max_width = max(
        text_width(name, 13, True) + text_width(rule, 13), text_width(formula_line, 11), text_width(shape, 11)
    )
    width = math.ceil(max(76.0, max_width + 2 * PADDING))
    height = HEADER_HEIGHT + ROW_HEIGHT * (2 if formula_line else 1)
    is_named = node.name is not None
    card_texts = (shape, formula_line, "")
    return Card(
        kind, tooltip, name, rule, *card_texts, width, height, False, False, is_named, None, state, formula, True
    )


def _tensor_heatmaps(trace: Trace, index: int, moment: Moment | None) -> TensorHeatmaps:
    shape, dtype, array = trace.tensors[index]
    grad = trace.grads.get(index)
    grad_placeholder, is_pending = format_gradient(trace, index), False
    if moment is not None:
        is_pending, partial_gradient = not moment.is_computed(index), moment.gradient(index)
        array, grad = moment.value(index), partial_gradient.value
        grad_placeholder = "" if is_pending else STATE_SIGNS.get(partial_gradient.state, "")
    value_summary, grad_summary = (None if x is None else summary(x) for x in (array, grad))
    width, height = heat.heatmap_size(shape, value_summary or grad_summary if moment is None else None)
    value_placeholder = "" if value_summary or is_pending else format_value(trace, index)
    max_magnitude = heat.max_magnitude(value_summary, grad_summary) if moment is None else _max_magnitude(moment, index)
    note = fit(format_shape(shape, dtype), _MAX_HEADER_WIDTH, 11)
    return TensorHeatmaps(
        width,
        height,
        value_summary,
        grad_summary,
        value_placeholder,
        "" if grad_summary else grad_placeholder,
        note,
        max_magnitude,
    )


def _max_magnitude(moment: Moment, index: int) -> float:
    """Return the largest magnitude in the value of a node and in all partial sums of its gradient."""
    array = moment.timeline.trace.tensors[index].array
    arrays = [x for x in (array, *moment.timeline.gradients(index)) if x is not None]
    return heat.max_magnitude(*(summary(x) for x in arrays))


def _error_line(trace: Trace, index: int) -> str:
    messages = [note.text for note in trace.notes if note.node == index and note.kind == "error"]
    return (messages or [""])[0].partition("\n")[0]


def _tooltip(trace: Trace, index: int, heatmaps: TensorHeatmaps | None) -> str:
    """Return the tooltip of a node: its full name, formula, value, gradient, attributes, scope and source line."""
    node = trace.nodes[index]
    formula = trace.formula(index, 60)
    head = node.name or trace.title(index)
    lines = [head if formula is None else f"{head} = {formula_text(formula)}"]
    if node.kind == "broken":
        lines.append(_error_line(trace, index))
    elif trace.execution:
        lines += [format_shape(*trace.tensors[index][:2])] if index in trace.tensors else []
    elif heatmaps:
        lines.append(f"data {format_summary(heatmaps.value) if heatmaps.value else heatmaps.value_placeholder}")
        lines.append(f"grad {format_summary(heatmaps.grad) if heatmaps.grad else heatmaps.grad_placeholder}")
    else:
        lines.append(f"data {format_value(trace, index, format_float)}")
        if node.kind != "constant":
            lines.append(f"grad {format_gradient(trace, index, format_float)}")
    lines += [f"{name} = {text}" for name, text in node.attrs.items()]
    lines += [text for text in (node.scope and f"in {node.scope}", node.line) if text]
    return "\n".join(lines)


def _draw_card(card: Card, x: float, y: float) -> str:
    state_classes = ("still" if card.is_blocked else "", "bad" if card.has_alarm else "", card.state)
    classes = " ".join(filter(None, [card.kind, *state_classes]))
    inset = RING_OFFSET if "output" in card.kind else 0.0
    parts = [f'<g class="{classes}" transform="translate({x + inset:g} {y + inset:g})">']
    if card.tooltip:
        parts.append(f"<title>{escape(card.tooltip)}</title>")
    if card.kind.startswith("constant"):
        parts.append(_constant_body(card))
    elif card.is_call:
        parts.append(_call_body(card))
    elif card.heatmaps:
        parts.append(_tensor_body(card, card.heatmaps))
    else:
        parts.append(_scalar_body(card))
    if inset:
        width, height = card.size
        radius = 9 + inset if card.kind.startswith("leaf") else 4 + inset
        parts.append(
            f'<rect class="ring" x="{-inset}" y="{-inset}" width="{width:g}" height="{height:g}" rx="{radius:g}"/>'
        )
    return "".join([*parts, "</g>"])


def _constant_body(card: Card) -> str:
    return (
        f'<rect class="box" width="{card.width:g}" height="{card.height:g}" rx="13"/>'
        f'<text class="cap dim" x="{PADDING + 1}" y="17">const</text>'
        f'<text class="num" x="{card.width - PADDING - 1:g}" y="17.5">{escape(card.value)}</text>'
    )


def strip_path(width: float, top: float, bottom: float, radius: float) -> str:
    """Return the path of a strip across a card. Its upper corners are rounded if `top` is 0, else its lower corners."""
    w, r = width, radius
    if not top:
        return f"M0 {bottom:g}V{r:g}a{r:g} {r:g} 0 0 1 {r:g} -{r:g}H{w - r:g}a{r:g} {r:g} 0 0 1 {r:g} {r:g}V{bottom:g}z"
    return f"M0 {top:g}H{w:g}V{bottom - r:g}a{r:g} {r:g} 0 0 1 -{r:g} {r:g}H{r:g}a{r:g} {r:g} 0 0 1 -{r:g} -{r:g}z"


def _radius(card: Card) -> float:
    return 12 if card.kind.startswith("leaf") else 4  # rounded leaves, angular operations


def _header(card: Card) -> str:
    rule = f'<tspan class="rule" style="font-weight:400">{escape(card.rule)}</tspan>' if card.rule else ""
    weight = "" if card.is_named else ' style="font-weight:400;font-style:italic"'
    return (
        f'<path class="head" d="{strip_path(card.width, 0, HEADER_HEIGHT, _radius(card))}"/>'
        f'<text x="{PADDING:g}" y="17" class="name"><tspan{weight}>{escape(card.name)}</tspan>{rule}</text>'
    )


def _sum_span(card: Card) -> str:
    return f'<tspan class="sum" dx="5">{card.sum_label}</tspan>' if card.sum_label else ""


def _scalar_body(card: Card) -> str:
    w, h, r, right = card.width, card.height, _radius(card), card.width - PADDING
    first, second = HEADER_HEIGHT + 14.5, HEADER_HEIGHT + ROW_HEIGHT + 14.5
    grad_class = " less" if card.grad.startswith("−") else " dim" if card.grad in STATE_SIGNS.values() else ""
    if card.kind.startswith("broken"):
        content = (
            f'<text class="warn" x="{PADDING:g}" y="{first}">{escape(card.value)}</text>'
            f'<text x="{PADDING:g}" y="{second}">{escape(card.grad)}</text>'
        )
    else:
        content = (
            f'<text class="cap fw" x="{PADDING:g}" y="{first}">data</text>'
            f'<text class="num" x="{right:g}" y="{first}">{escape(card.value)}</text>'
            f'<text class="cap bw" x="{PADDING:g}" y="{second}">grad{_sum_span(card)}</text>'
            f'<text class="num grad{grad_class}" x="{right:g}" y="{second}">{escape(card.grad)}</text>'
        )
    return (
        f'<rect class="box" width="{w:g}" height="{h:g}" rx="{r}"/>'
        f'<path class="wash" d="{strip_path(w, HEADER_HEIGHT + ROW_HEIGHT, h, r)}"/>{_header(card)}{content}'
        f'<rect class="box" style="fill:none" width="{w:g}" height="{h:g}" rx="{r}"/>'
    )


def _call_body(card: Card) -> str:
    box = f'<rect class="box" width="{card.width:g}" height="{card.height:g}" rx="{_radius(card)}"'
    lines = [(card.grad, ""), (card.value, " dim")] if card.grad else [(card.value, " dim")]
    text_elements = [
        f'<text class="bit{shade}" x="{PADDING:g}" y="{HEADER_HEIGHT + ROW_HEIGHT * k + 14:g}">{escape(text)}</text>'
        for k, (text, shade) in enumerate(lines)
    ]
    return f'{box}/>{_header(card)}{"".join(text_elements)}{box} style="fill:none"/>'


def _tensor_body(card: Card, heatmaps: TensorHeatmaps) -> str:
    w, h, r = card.width, card.height, _radius(card)
    top, middle = HEADER_HEIGHT + 18, heatmaps.divider_x
    parts = [f'<rect class="box" width="{w:g}" height="{h:g}" rx="{r}"/>', _header(card)]
    parts.append(
        f'<path class="wash" d="M{middle:g} {HEADER_HEIGHT:g}H{w:g}V{top + heatmaps.height + 6:g}H{middle:g}z"/>'
    )
    for caption, x, stats, placeholder in (
        (
            f'class="cap fw" x="{PADDING:g}" y="{HEADER_HEIGHT + 13:g}">data',
            PADDING,
            heatmaps.value,
            heatmaps.value_placeholder,
        ),
        (
            f'class="cap bw" x="{middle + 5:g}" y="{HEADER_HEIGHT + 13:g}">grad{_sum_span(card)}',
            middle + 5,
            heatmaps.grad,
            heatmaps.grad_placeholder,
        ),
    ):
        placeholder_span = f'<tspan class="dim" dx="4">{escape(placeholder)}</tspan>' if placeholder else ""
        parts.append(f"<text {caption}{placeholder_span}</text>")
        parts.append(
            heat.draw_heatmap(stats, x, top, heatmaps.width, heatmaps.height, heatmaps.max_magnitude) if stats else ""
        )
    parts.append(
        f'<text class="cap dim" x="{PADDING:g}" y="{top + heatmaps.height + 16:g}">{escape(heatmaps.note)}</text>'
    )
    parts.append(f'<rect class="box" style="fill:none" width="{w:g}" height="{h:g}" rx="{r}"/>')
    return "".join(parts)
