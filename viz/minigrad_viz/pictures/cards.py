"""Node cards: the name and formula of a node, and its value and gradient, heatmaps of both, or the error it raised."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from minigrad.backends.formula import Formula
from minigrad_viz.pictures import heat
from minigrad_viz.pictures.quantities import SIGNS, gradient, pictured, shape_text, value
from minigrad_viz.trace import Trace
from minigrad_viz.trace.arrays import line, summary
from minigrad_viz.trace.captions import quantity
from minigrad_viz.trace.columns import finite
from minigrad_viz.trace.history import Moment
from minigrad_viz.trace.notation import escape, fit, number, plain, text_width

__all__ = ["HEAD", "PAD", "RIM", "ROW", "Card", "Pictures", "card", "strip"]

PAD, HEAD, ROW = 9.0, 25.0, 20.0
_WIDEST = 210.0  # maximum width of a header, in pixels
RIM = 3.5  # distance of the second border of an output


@dataclass(slots=True)
class Pictures:
    """The heatmaps of a tensor and its gradient, and the text in place of a missing one."""

    width: int
    height: int
    value: Mapping[str, Any] | None
    grad: Mapping[str, Any] | None
    no_value: str
    no_grad: str
    note: str
    most: float
    """The magnitude with the full colour in both."""
    middle: float = 0.0


@dataclass(slots=True)
class Card:
    """A card with its contents and the size that they need."""

    kind: str
    tooltip: str
    name: str
    rule: str
    value: str
    grad: str
    sum: str
    width: float
    height: float
    still: bool
    """Whether the node is blocked from gradients, shown as a dashed border."""
    bad: bool
    """Whether its border marks an alarm."""
    named: bool
    pictures: Pictures | None = None
    state: str = ""
    """At a moment, CSS classes: the state of its gradient, and "pale" before the node is computed."""
    formula: Formula | str | None = None
    """The formula that `rule` was formatted from."""
    call: bool = False
    """Whether it is a call of a captured step: then `grad` is the formula, and `value` the shape."""

    @property
    def size(self) -> tuple[float, float]:
        """Width and height, including the second border of an output."""
        rim = 2 * RIM if "output" in self.kind else 0.0
        return self.width + rim, self.height + rim

    def draw(self, x: float, y: float) -> str:
        """Return the SVG of the card, with its top left corner at (x, y)."""
        return _drawn(self, x, y)


@dataclass(slots=True)
class _Shown:
    """The texts of a card for its value and gradient, and the widths to reserve for them at any moment."""

    value: str
    grad: str
    sum: str
    value_room: float
    grad_room: float
    sum_room: float
    bad: bool
    state: str = ""


def card(trace: Trace, index: int, contributions: int, now: Moment | None = None) -> Card:
    """Return the card of node `index`, whose gradient is the sum of `contributions` terms, finally or at a moment.

    At a moment, the card is large enough for the contents of every moment.
    """
    node = trace.nodes[index]
    kind = f"{node.kind} output" if index in trace.outputs else node.kind
    pictures = _pictures(trace, index, now) if pictured(trace, index) else None
    shown = _shown(trace, index, contributions) if now is None else _shown_at(trace, index, now)
    tooltip = _tooltip(trace, index, pictures) if now is None else ""
    if node.kind == "constant":
        width = max(52.0, text_width(shown.value, 12.5) + text_width("const", 11) + 2 * PAD + 10)
        return Card(kind, tooltip, "", "", shown.value, "", "", width, 26.0, True, shown.bad, False)
    formula = trace.formula(index, near=True)
    rule = "" if formula is None else f" = {plain(formula)}"
    name = fit(trace.title(index, 60, near=True), 0.7 * _WIDEST if rule else _WIDEST, 13, True)
    taken = text_width(name, 13, True)
    rule = fit(rule, _WIDEST - taken, 13)
    header = taken + text_width(rule, 13)
    height = HEAD + 2 * ROW
    if node.kind == "broken":
        shown.value, shown.grad = "raised", fit(_error(trace, index), _WIDEST + 90, 12.5)
        widest = max(header, text_width(shown.grad, 12.5), text_width(shown.value, 12.5, True) + 24)
    elif trace.how:
        return _call(trace, index, kind, tooltip, shown.state)
    elif pictures:
        captions = (("data", pictures.no_value, 0.0), ("grad", pictures.no_grad, shown.sum_room))
        if now is not None:
            kept, blocked = trace.tensors[index].array is not None, node.state == "blocked"
            captions = (
                ("data", "" if kept else "not kept", 0.0),
                ("grad", "blocked" if blocked else "—", shown.sum_room),
            )
        left, right = (max(pictures.width, text_width(f"{cap} {no}", 11) + more) for cap, no, more in captions)
        pictures.middle = math.ceil(PAD + left + 7)
        widest = max(header, text_width(pictures.note, 11), pictures.middle + 5 + right - PAD)
        height = HEAD + 18 + pictures.height + 22
    else:
        first = text_width("data", 11) + 12 + shown.value_room
        second = text_width("grad", 11) + 12 + shown.grad_room + shown.sum_room
        widest = max(header, first, second)
    width = math.ceil(max(76.0, widest + 2 * PAD))
    still, named = node.state == "blocked" and not trace.how, node.name is not None
    numbers = (shown.value, shown.grad, shown.sum)
    return Card(
        kind, tooltip, name, rule, *numbers, width, height, still, shown.bad, named, pictures, shown.state, formula
    )


def _shown(trace: Trace, index: int, contributions: int) -> _Shown:
    """Return the texts of a card in the final state."""
    many = f"Σ{contributions}" if contributions > 1 and not trace.how else ""
    bad = trace.alarming(index) or trace.kinds[index] == "x"
    number, grad = ("", "") if pictured(trace, index) else (value(trace, index), gradient(trace, index))
    rooms = text_width(number, 12.5), text_width(grad, 12.5)
    return _Shown(number, grad, many, *rooms, text_width(many, 11, True) + 6 if many else 0.0, bad)


def _shown_at(trace: Trace, index: int, now: Moment) -> _Shown:
    """Return the texts of a card at a moment, as in the player: no value before it is computed, and the partial sum of
    an incomplete gradient."""
    known, gradient, sums = now.is_computed(index), now.gradient(index), now.timeline.gradients(index)
    of, several = gradient.of, pictured(trace, index)
    sign = SIGNS.get(gradient.state, "")
    said = {"partial": f"Σ {gradient.met} of {of}", "final": f"Σ {of}"}.get(gradient.state, "") if of > 1 else ""
    last = value(trace, index)
    number = "" if several or not known else last
    grad = "" if several or not known else sign or quantity(gradient.value)
    texts = [] if several else [quantity(total) for total in sums]
    grad_room = max([text_width(sign, 12.5), *(text_width(text, 12.5, True) for text in texts)])
    sum_room = text_width(f"Σ {of} of {of}", 11, True) + 6 if of > 1 else 0.0
    wild = (known and not finite(now.value(index))) or not finite(gradient.value)
    bad = wild or index in trace.late or trace.kinds[index] == "x"
    pale = " pale" if trace.kinds[index] == "o" and not known else ""
    state = {"none": "wait"}.get(gradient.state, gradient.state) + pale
    return _Shown(number, grad, said, 0.0 if several else text_width(last, 12.5), grad_room, sum_room, bad, state)


def _call(trace: Trace, index: int, kind: str, tooltip: str, state: str) -> Card:
    """Return the card of a call in a captured step: what it computes, its formula and its output shape."""
    node, formula = trace.nodes[index], trace.formula(index, near=True)
    shape = shape_text(*trace.tensors[index][:2])
    name = fit(trace.title(index, 60, near=True), _WIDEST, 13, True)
    computes = node.attrs.get("computes", "")
    if text_width(name, 13, True) + text_width(computes, 13) > _WIDEST + 60:
        computes = "" if node.name else fit(computes, _WIDEST, 13)
    below = "" if formula is None else fit(plain(formula), _WIDEST, 11)
    rule = f"  {computes}" if computes else ""
    widest = max(text_width(name, 13, True) + text_width(rule, 13), text_width(below, 11), text_width(shape, 11))
    width = math.ceil(max(76.0, widest + 2 * PAD))
    height = HEAD + ROW * (2 if below else 1)
    named = node.name is not None
    numbers = (shape, below, "")
    return Card(kind, tooltip, name, rule, *numbers, width, height, False, False, named, None, state, formula, True)


def _pictures(trace: Trace, index: int, now: Moment | None) -> Pictures:
    shape, dtype, array = trace.tensors[index]
    grad = trace.grads.get(index)
    no_grad, late = gradient(trace, index), False
    if now is not None:
        late, so_far = not now.is_computed(index), now.gradient(index)
        array, grad = now.value(index), so_far.value
        no_grad = "" if late else SIGNS.get(so_far.state, "")
    first, second = (None if x is None else summary(x) for x in (array, grad))
    width, height = heat.size_of(shape, first or second if now is None else None)
    no_value = "" if first or late else value(trace, index)
    most = heat.scale(first, second) if now is None else _scale(now, index)
    note = fit(shape_text(shape, dtype), _WIDEST, 11)
    return Pictures(width, height, first, second, no_value, "" if second else no_grad, note, most)


def _scale(now: Moment, index: int) -> float:
    """Return the largest magnitude in the value of a node and in all partial sums of its gradient."""
    array = now.timeline.trace.tensors[index].array
    held = [x for x in (array, *now.timeline.gradients(index)) if x is not None]
    return heat.scale(*(summary(x) for x in held))


def _error(trace: Trace, index: int) -> str:
    """Return the first line of the error message of a node."""
    texts = [note.text for note in trace.notes if note.node == index and note.kind == "error"]
    return (texts or [""])[0].partition("\n")[0]


def _tooltip(trace: Trace, index: int, pictures: Pictures | None) -> str:
    """Return the full name, formula, value and gradient of a node, its attributes, scope and line."""
    node = trace.nodes[index]
    formula = trace.formula(index, 60)
    head = node.name or trace.title(index)
    lines = [head if formula is None else f"{head} = {plain(formula)}"]
    if node.kind == "broken":
        lines.append(_error(trace, index))
    elif trace.how:
        lines += [shape_text(*trace.tensors[index][:2])] if index in trace.tensors else []
    elif pictures:
        lines.append(f"data {line(pictures.value) if pictures.value else pictures.no_value}")
        lines.append(f"grad {line(pictures.grad) if pictures.grad else pictures.no_grad}")
    else:
        lines.append(f"data {value(trace, index, number)}")
        if node.kind != "constant":
            lines.append(f"grad {gradient(trace, index, number)}")
    lines += [f"{name} = {text}" for name, text in node.attrs.items()]
    lines += [text for text in (node.scope and f"in {node.scope}", node.line) if text]
    return "\n".join(lines)


def _drawn(one: Card, x: float, y: float) -> str:
    marks = ("still" if one.still else "", "bad" if one.bad else "", one.state)
    classes = " ".join(filter(None, [one.kind, *marks]))
    inset = RIM if "output" in one.kind else 0.0
    parts = [f'<g class="{classes}" transform="translate({x + inset:g} {y + inset:g})">']
    if one.tooltip:
        parts.append(f"<title>{escape(one.tooltip)}</title>")
    if one.kind.startswith("constant"):
        parts.append(_constant(one))
    elif one.call:
        parts.append(_called(one))
    elif one.pictures:
        parts.append(_tensor(one, one.pictures))
    else:
        parts.append(_rows(one))
    if inset:
        width, height = one.size
        radius = 9 + inset if one.kind.startswith("leaf") else 4 + inset
        parts.append(
            f'<rect class="ring" x="{-inset}" y="{-inset}" width="{width:g}" height="{height:g}" rx="{radius:g}"/>'
        )
    return "".join([*parts, "</g>"])


def _constant(one: Card) -> str:
    return (
        f'<rect class="box" width="{one.width:g}" height="{one.height:g}" rx="13"/>'
        f'<text class="cap dim" x="{PAD + 1}" y="17">const</text>'
        f'<text class="num" x="{one.width - PAD - 1:g}" y="17.5">{escape(one.value)}</text>'
    )


def strip(width: float, top: float, bottom: float, radius: float) -> str:
    """Return the path of a strip across a card, with rounded upper corners if `top` is 0, else lower ones."""
    w, r = width, radius
    if not top:
        return f"M0 {bottom:g}V{r:g}a{r:g} {r:g} 0 0 1 {r:g} -{r:g}H{w - r:g}a{r:g} {r:g} 0 0 1 {r:g} {r:g}V{bottom:g}z"
    return f"M0 {top:g}H{w:g}V{bottom - r:g}a{r:g} {r:g} 0 0 1 -{r:g} {r:g}H{r:g}a{r:g} {r:g} 0 0 1 -{r:g} -{r:g}z"


def _radius(one: Card) -> float:
    return 12 if one.kind.startswith("leaf") else 4  # rounded leaves, angular operations


def _header(one: Card) -> str:
    rule = f'<tspan class="rule" style="font-weight:400">{escape(one.rule)}</tspan>' if one.rule else ""
    weight = "" if one.named else ' style="font-weight:400;font-style:italic"'
    return (
        f'<path class="head" d="{strip(one.width, 0, HEAD, _radius(one))}"/>'
        f'<text x="{PAD:g}" y="17" class="name"><tspan{weight}>{escape(one.name)}</tspan>{rule}</text>'
    )


def _total(one: Card) -> str:
    return f'<tspan class="sum" dx="5">{one.sum}</tspan>' if one.sum else ""


def _rows(one: Card) -> str:
    w, h, r, edge = one.width, one.height, _radius(one), one.width - PAD
    first, second = HEAD + 14.5, HEAD + ROW + 14.5
    less = " less" if one.grad.startswith("−") else " dim" if one.grad in SIGNS.values() else ""
    if one.kind.startswith("broken"):
        inside = (
            f'<text class="warn" x="{PAD:g}" y="{first}">{escape(one.value)}</text>'
            f'<text x="{PAD:g}" y="{second}">{escape(one.grad)}</text>'
        )
    else:
        inside = (
            f'<text class="cap fw" x="{PAD:g}" y="{first}">data</text>'
            f'<text class="num" x="{edge:g}" y="{first}">{escape(one.value)}</text>'
            f'<text class="cap bw" x="{PAD:g}" y="{second}">grad{_total(one)}</text>'
            f'<text class="num grad{less}" x="{edge:g}" y="{second}">{escape(one.grad)}</text>'
        )
    return (
        f'<rect class="box" width="{w:g}" height="{h:g}" rx="{r}"/>'
        f'<path class="wash" d="{strip(w, HEAD + ROW, h, r)}"/>{_header(one)}{inside}'
        f'<rect class="box" style="fill:none" width="{w:g}" height="{h:g}" rx="{r}"/>'
    )


def _called(one: Card) -> str:
    """Return the body of the card of a call: its formula and output shape instead of values."""
    box = f'<rect class="box" width="{one.width:g}" height="{one.height:g}" rx="{_radius(one)}"'
    lines = [(one.grad, ""), (one.value, " dim")] if one.grad else [(one.value, " dim")]
    said = [
        f'<text class="bit{shade}" x="{PAD:g}" y="{HEAD + ROW * k + 14:g}">{escape(text)}</text>'
        for k, (text, shade) in enumerate(lines)
    ]
    return f'{box}/>{_header(one)}{"".join(said)}{box} style="fill:none"/>'


def _tensor(one: Card, pictures: Pictures) -> str:
    w, h, r = one.width, one.height, _radius(one)
    top, middle = HEAD + 18, pictures.middle
    parts = [f'<rect class="box" width="{w:g}" height="{h:g}" rx="{r}"/>', _header(one)]
    parts.append(f'<path class="wash" d="M{middle:g} {HEAD:g}H{w:g}V{top + pictures.height + 6:g}H{middle:g}z"/>')
    for caption, x, short, none in (
        (f'class="cap fw" x="{PAD:g}" y="{HEAD + 13:g}">data', PAD, pictures.value, pictures.no_value),
        (
            f'class="cap bw" x="{middle + 5:g}" y="{HEAD + 13:g}">grad{_total(one)}',
            middle + 5,
            pictures.grad,
            pictures.no_grad,
        ),
    ):
        said = f'<tspan class="dim" dx="4">{escape(none)}</tspan>' if none else ""
        parts.append(f"<text {caption}{said}</text>")
        parts.append(heat.drawn(short, x, top, pictures.width, pictures.height, pictures.most) if short else "")
    parts.append(f'<text class="cap dim" x="{PAD:g}" y="{top + pictures.height + 16:g}">{escape(pictures.note)}</text>')
    parts.append(f'<rect class="box" style="fill:none" width="{w:g}" height="{h:g}" rx="{r}"/>')
    return "".join(parts)
