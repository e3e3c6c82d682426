"""One node as a card: its name and rule, its number, its gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass

from minigrad_viz.notation import escape, fit, number, plain, pretty, text_width
from minigrad_viz.trace import Trace

__all__ = ["Card", "card", "draw"]

PAD, HEAD, ROW = 9.0, 25.0, 20.0
_WIDEST = 210.0  # of a header, in pixels
_RIM = 3.5  # the second border of an output


@dataclass(slots=True)
class Card:
    """A card, measured: what it says, and how large it must be for that."""

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
    """Whether no gradient ever gets here; told by a dashed border."""
    bad: bool
    """Whether its border tells of an alarm."""
    named: bool

    @property
    def size(self) -> tuple[float, float]:
        """Width and height with the second border of an output."""
        rim = 2 * _RIM if "output" in self.kind else 0.0
        return self.width + rim, self.height + rim


def card(trace: Trace, index: int, contributions: int) -> Card:
    """The card of node `index`, whose gradient is the sum of so many `contributions`."""
    node = trace.nodes[index]
    output = index in trace.outputs
    kind = f"{node.kind} output" if output else node.kind
    bad = trace.alarming(index)
    grad = trace.gradient(index)
    many = f"Σ{contributions}" if contributions > 1 else ""
    formula = trace.formula(index)
    rule = "" if formula is None else f" = {plain(formula)}"
    if node.kind == "constant":
        width = max(52.0, text_width(pretty(node.value), 12.5) + text_width("const", 10.5) + 2 * PAD + 10)
        return Card(kind, _tooltip(trace, index), "", "", pretty(node.value), "", "", width, 26.0, True, bad, False)
    name = fit(trace.title(index, 60), 0.7 * _WIDEST if rule else _WIDEST, 13, True)
    taken = text_width(name, 13, True)
    rule = fit(rule, _WIDEST - taken, 13)
    header = taken + text_width(rule, 13)
    first = text_width("data", 10.5) + 12 + text_width(pretty(node.value), 12.5)
    second = text_width("grad", 10.5) + 12 + text_width(grad, 12.5)
    second += text_width(many, 10.5, True) + 6 if many else 0
    width = math.ceil(max(76.0, max(header, first, second) + 2 * PAD))
    still = node.state == "blocked"
    named = node.name is not None
    height = HEAD + 2 * ROW
    return Card(
        kind,
        _tooltip(trace, index),
        name,
        rule,
        pretty(node.value),
        grad,
        many,
        width,
        height,
        still,
        bad,
        named,
    )


def _tooltip(trace: Trace, index: int) -> str:
    """The whole name, however long, and what the card has no room for."""
    node = trace.nodes[index]
    formula = trace.formula(index, 60)
    head = node.name or trace.title(index)
    lines = [head if formula is None else f"{head} = {plain(formula)}", f"data {number(node.value)}"]
    if node.kind != "constant":
        lines.append(f"grad {trace.gradient(index, number)}")
    lines += [text for text in (node.scope and f"in {node.scope}", node.line) if text]
    return "\n".join(lines)


def draw(one: Card, x: float, y: float) -> str:
    """SVG of a card whose top left corner is at (x, y)."""
    classes = one.kind + (" still" if one.still else "") + (" bad" if one.bad else "")
    inset = _RIM if "output" in one.kind else 0.0
    parts = [f'<g class="{classes}" transform="translate({x + inset:g} {y + inset:g})">']
    parts.append(f"<title>{escape(one.tooltip)}</title>")
    if one.kind.startswith("constant"):
        parts.append(_constant(one))
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


def _rows(one: Card) -> str:
    w, h, edge = one.width, one.height, one.width - PAD
    r = 12 if one.kind.startswith("leaf") else 4  # round leaves, angular operations
    head = f"M0 {HEAD:g}V{r}a{r} {r} 0 0 1 {r} -{r}H{w - r:g}a{r} {r} 0 0 1 {r} {r}V{HEAD:g}z"
    wash = f"M0 {HEAD + ROW:g}H{w:g}V{h - r:g}a{r} {r} 0 0 1 -{r} {r}H{r}a{r} {r} 0 0 1 -{r} -{r}z"
    rule = f'<tspan class="rule" style="font-weight:400">{escape(one.rule)}</tspan>' if one.rule else ""
    weight = "" if one.named else ' style="font-weight:400;font-style:italic"'
    first, second = HEAD + 14.5, HEAD + ROW + 14.5
    total = f'<tspan class="sum" dx="5">{one.sum}</tspan>' if one.sum else ""
    return (
        f'<rect class="box" width="{w:g}" height="{h:g}" rx="{r}"/>'
        f'<path class="wash" d="{wash}"/><path class="head" d="{head}"/>'
        f'<text x="{PAD:g}" y="17" class="name"><tspan{weight}>{escape(one.name)}</tspan>{rule}</text>'
        f'<text class="cap fw" x="{PAD:g}" y="{first}">data</text>'
        f'<text class="num" x="{edge:g}" y="{first}">{escape(one.value)}</text>'
        f'<text class="cap bw" x="{PAD:g}" y="{second}">grad{total}</text>'
        f'<text class="num" x="{edge:g}" y="{second}">{escape(one.grad)}</text>'
        f'<rect class="box" style="fill:none" width="{w:g}" height="{h:g}" rx="{r}"/>'
    )
