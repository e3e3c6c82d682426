"""The picture: a card for each node, left to right, and an arrow for each use of a number.

Blocks are frames around their parts. Of a graph of more than `FULL` nodes, or with scopes in it, so many are closed, as
one box each, that few things are to be seen.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from minigrad_viz.layout import Ports, layout
from minigrad_viz.layout.nesting import nest
from minigrad_viz.notation import escape, fit, text_width
from minigrad_viz.palette import stylesheet
from minigrad_viz.pictures import boxes, heat, rows
from minigrad_viz.pictures.boxes import Frame, Stack, stacks
from minigrad_viz.pictures.cards import Card, card, pictured
from minigrad_viz.pictures.rows import PAGE, Mention, Part, in_rows
from minigrad_viz.trace import Trace, to_trace
from minigrad_viz.trace.blocks import Item, Wire, visible
from minigrad_viz.trace.modules import begin_open

__all__ = ["WIDE", "Picture", "picture", "to_svg"]

Point = tuple[float, float]

WIDE = 3000  # pixels: a picture wider than this is only an overview

_HIGH = 1500  # a picture in rows is at most so high, if blocks can be closed

_MARGIN = 18.0
_TIP = 8.0  # length of an arrowhead
_BUDGETS = (40, 25, 15, 8)  # items at first in a graph with blocks: as many as make a picture that can be read
_LABELLED = 60  # up to so many nodes an arrow also carries the rule of its local derivative, where that is short
_NEAR = 15.0  # a label is at most so far above or below the end of its arrow, which may be steep
_PITCH = 13.5  # from one label to the next below: letters below the line and their ground included
_LINE = 18.0  # of the captions


class Picture(NamedTuple):
    """An SVG document, and its size in pixels."""

    svg: str
    width: int
    height: int


def to_svg(x: Any, *more: Any) -> str:
    """The graph of `x`, a Value or several, as SVG: one file, which follows the reader's light or dark theme.

    >>> import minigrad as mg
    >>> a = mg.Value(3.0, "a")
    >>> svg = to_svg(a * a)
    >>> svg[:4], svg.count('class="d"')
    ('<svg', 2)
    """
    return picture(to_trace(x, *more)).svg


def picture(trace: Trace, opened: Collection[int] | None = None) -> Picture:
    """The picture of a trace; `opened` are the blocks to show so, None for as many as make one that can be read."""
    highest = _HIGH if trace.modules or trace.how else math.inf
    for budget in _BUDGETS if opened is None else _BUDGETS[:1]:
        seen = _seen(trace, budget, opened)
        body, width, height = _stacked(trace, seen)
        if (width <= WIDE and height <= highest) or len(seen.opened) == 1:
            break
    width = max(width, 300.0)
    captions, below = _captions(trace, seen, width, height + 2 * _MARGIN)
    full_width, full_height = math.ceil(width + 2 * _MARGIN), math.ceil(below + 6)
    size = f'width="{full_width}" height="{full_height}" viewBox="0 0 {full_width} {full_height}"'
    said = " ".join([trace.sentence(), *(note.text for note in trace.notes)])
    small = any(not isinstance(part, Card) or part.call for part in seen.parts)
    shapes = boxes.SHAPES + heat.SHAPES + (boxes.SMALL + rows.SHAPES if small else "")
    more = (shapes, boxes.COLOURS + heat.COLOURS) if seen.special else ()
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="mg" role="img" {size}>'
        f"<title>{escape(trace.sentence())}</title><desc>{escape(said)}</desc>"
        f"<style>{_escape_css(stylesheet(*more))}</style>"
        f'<rect class="page" x=".5" y=".5" width="{full_width - 1}" height="{full_height - 1}" rx="8"/>'
        f'<g transform="translate({_MARGIN:g} {_MARGIN:g})">{body}</g>{captions}</svg>'
    )
    return Picture(svg, full_width, full_height)


@dataclass(slots=True)
class _Seen:
    """What is to be seen, item by item; and whether there is anything but plain cards of numbers."""

    items: list[Item]
    wires: list[Wire]
    opened: set[int]
    parts: list[Part]
    special: bool


def _seen(trace: Trace, budget: int, chosen: Collection[int] | None) -> _Seen:
    small = chosen is None and trace.full and not any(block.kind == "scope" for block in trace.blocks)
    where = [0] * len(trace.block) if small else trace.block
    opened = {0} if small else begin_open(trace, budget) if chosen is None else {0, *chosen}
    items, wires = visible(trace.blocks, where, list(zip(trace.operand, trace.result, strict=True)), opened)
    blocks = stacks(trace, items, wires)
    counts = trace.contributions()
    parts: list[Part] = [
        blocks[at] if item.node < 0 else card(trace, item.node, counts[item.node]) for at, item in enumerate(items)
    ]
    shown = [item.node for item in items if item.node >= 0]
    special = bool(blocks) or any(pictured(trace, node) or trace.kinds[node] == "x" for node in shown)
    return _Seen(items, wires, opened, parts, special)


def _escape_css(css: str) -> str:
    """CSS as XML content; quotes may stay."""
    return css.replace("&", "&amp;").replace("<", "&lt;")


# --- cards and arrows ------------------------------------------------------------------------------------------------


class _Placed(NamedTuple):
    """Left, top, width and height of each item, and the points of each wire."""

    boxes: list[tuple[float, float, float, float]]
    routes: list[list[Point]]
    width: float
    height: float


_BETWEEN = 22.0  # rows


def _stacked(trace: Trace, seen: _Seen) -> tuple[str, float, float]:
    """The drawing, of a model or a recorded step in rows where it is wider than a page."""
    labels, placed = _laid_out(trace, seen)
    if placed.width <= PAGE or not (trace.modules or trace.how):
        return _drawn(trace, seen, labels, placed), placed.width, placed.height

    def width_of(row: rows.Row) -> float:
        return _laid_out(trace, _Seen(*row[:2], seen.opened, row[2], True))[1].width

    def mention(wire: Wire) -> Mention:
        part, value = seen.parts[wire.start], wire.value
        name = trace.names[value] if value >= 0 else None
        if name is None:
            name = part.path if isinstance(part, Stack) else trace.title(value)
        return Mention(name, part.tooltip)

    whole = (seen.items, seen.wires, seen.parts)
    body, width, height = [], 0.0, -_BETWEEN
    for items, wires, parts in in_rows(whole, placed.boxes, width_of, mention):
        row = _Seen(items, wires, seen.opened, parts, True)
        labels, placed = _laid_out(trace, row)
        y = height + _BETWEEN
        body.append(f'<g transform="translate(0 {_short(y)})">{_drawn(trace, row, labels, placed)}</g>')
        width, height = max(width, placed.width), y + placed.height
    return "".join(body), width, height


def _laid_out(trace: Trace, seen: _Seen) -> tuple[list[str], _Placed]:
    """The label of each wire, and where everything goes."""
    labels = [_label(trace, seen, wire) for wire in seen.wires]
    widest = max((text_width(label, 11) for label in labels), default=0.0)
    framed = any(item.framed for item in seen.items)  # then borders take columns too
    return labels, _placed(seen, max(36.0 if framed else 56.0, widest + 40.0))


def _drawn(trace: Trace, seen: _Seen, labels: Sequence[str], placed: _Placed) -> str:
    heights = _label_heights(seen, labels, placed.routes)
    lines, tips, grounds, texts, frames, cards = [], [], [], [], [], []
    for number, (wire, route) in enumerate(zip(seen.wires, placed.routes, strict=True)):
        flows = bool(trace.how) or any(trace.flows[edge] for edge in wire.edges)
        lines.append(f'<path class="edge{"" if flows else " none"}" d="{_curve(route)}"/>')
        tips.append(_tip(route[-1]))
        if labels[number]:
            ground, text = _placed_label(trace, wire.edges[0], labels[number], route[-1], heights[number])
            grounds.append(ground)
            texts.append(text)
    for part, (x, y, width, height) in zip(seen.parts, placed.boxes, strict=True):
        if isinstance(part, Frame):
            frames.append(part.draw(x, y, width, height))
        else:
            cards.append(part.draw(x, y))
    tip = f'<path class="tip" d="{"".join(tips)}"/>' if tips else ""
    ground = f'<path class="ground" d="{"".join(grounds)}"/>' if grounds else ""
    return "".join([*frames, *lines, ground, tip, *texts, *cards])


def _placed(seen: _Seen, gap: float) -> _Placed:
    sizes = [part.size for part in seen.parts]
    ends = [(wire.start, wire.end) for wire in seen.wires]
    if all(item.block < 0 for item in seen.items):
        plain = layout(sizes, ends, gap_x=gap, gap_y=18.0)
        corners = zip(plain.centers, sizes, strict=True)
        around = [(x - width / 2, y - height / 2, width, height) for (x, y), (width, height) in corners]
        return _Placed(around, plain.routes, plain.width, plain.height)
    ports = Ports([wire.value for wire in seen.wires], _leave(seen))
    outer = [item.outer for item in seen.items]
    nested = nest(sizes, outer, ends, gap_x=gap, gap_y=18.0, padding=14.0, ports=ports)
    return _Placed(nested.boxes, nested.routes, nested.width, nested.height)


def _leave(seen: _Seen) -> list[float]:
    """How far below its middle each wire leaves an item: several values of a block leave one below the other."""
    values: dict[int, dict[int, int]] = {}
    for wire in seen.wires:
        of = values.setdefault(wire.start, {})
        of.setdefault(wire.value, len(of))
    heights = []
    for wire in seen.wires:
        of = values[wire.start]
        step = min(9.0, (seen.parts[wire.start].size[1] - 20.0) / len(of))
        heights.append((of[wire.value] - (len(of) - 1) / 2) * step)
    return heights


def _label(trace: Trace, seen: _Seen, wire: Wire) -> str:
    """What stands on an arrow into a node: the local derivative, with its rule where there is room."""
    edge = wire.edges[0]
    local = trace.local[edge]
    if local is None or seen.items[wire.end].node < 0:
        return ""
    text = trace.local_text(edge, 10, near=True)
    plain = len(seen.items) <= _LABELLED and not any(item.framed for item in seen.items)
    short = plain and text_width(text, 11) <= 100
    return text if short else text.rpartition(" = ")[2]


def _label_heights(seen: _Seen, labels: Sequence[str], routes: Sequence[Sequence[Point]]) -> list[float]:
    """The y of each label: on its arrow, but near the end of it, and clear of the other labels there."""
    heights = [0.0] * len(labels)
    into: dict[int, list[int]] = {}
    for number, wire in enumerate(seen.wires):
        if labels[number]:
            into.setdefault(wire.end, []).append(number)
    for edges in into.values():
        for edge in edges:
            x, port = routes[edge][-1]
            y = _height_at(routes[edge], x - _TIP - 6 - text_width(labels[edge], 11) / 3)
            heights[edge] = min(max(y, port - _NEAR), port + _NEAR)
        if any(heights[one] + _PITCH > heights[two] for one, two in pairwise(edges)):
            # Arrows from one place, or that cross: only at their ports are they apart, and hardly enough for a text.
            first, last = routes[edges[0]][-1][1], routes[edges[-1]][-1][1]
            for at, edge in enumerate(edges):
                heights[edge] = (first + last - (len(edges) - 1) * _PITCH) / 2 + at * _PITCH
    return heights


def _placed_label(trace: Trace, edge: int, label: str, end: Point, y: float) -> tuple[str, str]:
    """The patch that hides the arrow behind a label, and the label."""
    x, wide = end[0] - _TIP - 6, text_width(label, 11)
    operand, result, _, _, _ = trace.edges[edge]
    way = f"∂{trace.title(result)}/∂{trace.title(operand)} = {trace.local_text(edge)}"
    text = f'<text class="d" x="{_short(x)}" y="{_short(y + 3.9)}"><title>{escape(way)}</title>{escape(label)}</text>'
    return f"M{_short(x + 3)} {_short(y - 6)}v12h-{_short(wide + 6)}v-12z", text


def _short(x: float) -> str:
    return f"{x:.1f}".removesuffix(".0")


def _curve(route: Sequence[Point]) -> str:
    """A route as a path: level where the route is, and an S between columns. It ends inside the arrowhead."""
    points = [*route[:-1], (route[-1][0] - _TIP + 1, route[-1][1])]
    x, y = points[0]
    parts = [f"M{_short(x)} {_short(y)}"]
    for to_x, to_y in points[1:]:
        if to_y == y:
            parts.append(f"H{_short(to_x)}")
        else:
            middle = _short((x + to_x) / 2)
            parts.append(f"C{middle} {_short(y)} {middle} {_short(to_y)} {_short(to_x)} {_short(to_y)}")
        x, y = to_x, to_y
    return "".join(parts)


def _tip(end: Point) -> str:
    return f"M{_short(end[0])} {_short(end[1])}l-{_TIP:g} -3.5v7z"


def _height_at(route: Sequence[Point], x: float) -> float:
    """The y of the drawn curve at x."""
    for (x0, y0), (x1, y1) in pairwise(route):
        if x > x1:
            continue
        if y0 == y1 or x <= x0:
            return y0
        low, high = 0.0, 1.0
        for _ in range(20):  # of the S: x(t) has both handles in the middle, y(t) = y0 + (y1 - y0) (3 t^2 - 2 t^3)
            t = (low + high) / 2
            at = x0 + (x1 - x0) * (1.5 * t * (1 - t) + t * t * t)
            low, high = (t, high) if at < x else (low, t)
        return y0 + (y1 - y0) * t * t * (3 - 2 * t)
    return route[-1][1]


# --- captions --------------------------------------------------------------------------------------------------------


def _captions(trace: Trace, seen: _Seen, width: float, top: float) -> tuple[str, float]:
    """Alarms, what is drawn, and the key, in lines that fit in `width`; with where they end."""
    parts = []
    y = top + 4
    for note in trace.notes:
        for at, line in enumerate(_wrapped(note.text, width - 24, 12)):
            if not at:
                parts.append(f'<circle class="alarm" cx="{_MARGIN + 7:g}" cy="{_short(y - 4)}" r="7.5"/>')
                parts.append(
                    f'<text x="{_MARGIN + 7:g}" y="{_short(y)}" style="font-weight:700;text-anchor:middle">!</text>'
                )
            parts.append(f'<text class="said" x="{_MARGIN + 24:g}" y="{_short(y)}">{escape(line)}</text>')
            y += _LINE
        y += 3
    for line in _wrapped(f"{trace.sentence()[:-1]} · {_key(trace, seen)}", width, 11.5):
        parts.append(f'<text class="key" x="{_MARGIN:g}" y="{_short(y)}">{escape(line)}</text>')
        y += _LINE
    return "".join(parts), y - _LINE + 8


def _key(trace: Trace, seen: _Seen) -> str:
    """How to read the picture: only what occurs in it."""
    shown = [trace.nodes[item.node] for item in seen.items if item.node >= 0]
    edges = [trace.edges[edge] for wire in seen.wires if seen.items[wire.end].node >= 0 for edge in wire.edges]
    closed = sum(isinstance(part, Stack) for part in seen.parts)
    said = []
    if trace.how:
        return trace.how
    if shown:
        said.append(f"grad: ∂{trace.title(trace.outputs[0])}/∂node" if trace.fresh() else "grad: what .grad holds")
    states = {node.state for node in shown if node.kind in ("leaf", "op")}
    said += ["— not computed yet"] if "none" in states else []
    said += ["blocked: gets no gradient"] if "blocked" in states else []
    if any(edge.local is not None for edge in edges):
        said.append("on an arrow: its local derivative")
    if any(isinstance(part, Card) and part.sum for part in seen.parts):
        said.append("Σn: the sum of n contributions")
    if not all(edge.flows for edge in edges):
        said.append("dotted: no gradient flows back")
    said += _heat_key(seen)
    if closed:
        said.append(f"a stack is a closed block: {closed} of {len(trace.blocks) - 1:,}")
    return " · ".join(said)


def _heat_key(seen: _Seen) -> list[str]:
    """How to read heatmaps."""
    pictures = [part.pictures for part in seen.parts if isinstance(part, Card) and part.pictures]
    shorts = [short for one in pictures for short in (one.value, one.grad) if short]
    said = ["heatmaps: blue above 0, orange below, full colour at the largest magnitude of each"] if shorts else []
    if any("step" in short or max(short["rows"], short["cols"]) > heat.MOST for short in shorts):
        said.append("in large ones a cell is the largest of several numbers")
    return said + (["crossed: NaN or Inf"] if any(short["nan"] or short["inf"] for short in shorts) else [])


def _wrapped(text: str, width: float, size: float) -> list[str]:
    lines, line = [], ""
    for word in text.split(" "):
        word = fit(word, width, size)
        longer = f"{line} {word}" if line else word
        if line and text_width(longer, size) > width:
            lines.append(line)
            line = word
        else:
            line = longer
    return [*lines, line]
