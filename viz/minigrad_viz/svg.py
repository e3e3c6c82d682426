"""The picture: a card for each node, left to right, and an arrow for each use of a number.

Up to `FULL` nodes are drawn as cards. A larger graph is drawn small, as marks without text, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import minigrad as mg
from minigrad_viz.cards import card, draw
from minigrad_viz.layout import layout
from minigrad_viz.notation import escape, fit, text_width
from minigrad_viz.palette import stylesheet
from minigrad_viz.trace import Trace, to_trace

__all__ = ["Picture", "picture", "to_svg"]

Point = tuple[float, float]

_MARGIN = 18.0
_TIP = 8.0  # length of an arrowhead
_LABELLED = 60  # up to so many nodes an arrow also carries the rule of its local derivative, where that is short
_NEAR = 15.0  # a label is at most so far above or below the end of its arrow, which may be steep
_PITCH = 11.5  # from one label to the next below
_LINE = 18.0  # of the captions


class Picture(NamedTuple):
    """An SVG document, and its size in pixels."""

    svg: str
    width: int
    height: int


def to_svg(x: Any, *more: mg.Value) -> str:
    """The graph of `x`, a Value or several, as SVG: one file, which follows the reader's light or dark theme.

    >>> a = mg.Value(3.0, "a")
    >>> svg = to_svg(a * a)
    >>> svg[:4], svg.count('class="d"')
    ('<svg', 2)
    """
    return picture(to_trace(x, *more)).svg


def picture(trace: Trace) -> Picture:
    """The picture of a trace."""
    body, width, height = _cards(trace) if trace.full else _marks(trace)
    width = max(width, 300.0)
    captions, below = _captions(trace, width, height + 2 * _MARGIN)
    full_width, full_height = math.ceil(width + 2 * _MARGIN), math.ceil(below + 6)
    size = f'width="{full_width}" height="{full_height}" viewBox="0 0 {full_width} {full_height}"'
    said = " ".join([trace.sentence(), *(note.text for note in trace.notes)])
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="mg" role="img" {size}>'
        f"<title>{escape(trace.sentence())}</title><desc>{escape(said)}</desc><style>{_escape_css(stylesheet())}</style>"
        f'<rect class="page" x=".5" y=".5" width="{full_width - 1}" height="{full_height - 1}" rx="8"/>'
        f'<g transform="translate({_MARGIN:g} {_MARGIN:g})">{body}</g>{captions}</svg>'
    )
    return Picture(svg, full_width, full_height)


def _escape_css(css: str) -> str:
    """CSS as XML content; quotes may stay."""
    return css.replace("&", "&amp;").replace("<", "&lt;")


# --- cards and arrows ------------------------------------------------------------------------------------------------


def _cards(trace: Trace) -> tuple[str, float, float]:
    counts = trace.contributions()
    cards = [card(trace, index, counts[index]) for index in range(len(trace.nodes))]
    labels = [_label(trace, edge) for edge in range(len(trace.edges))]
    widest = max((text_width(label, 11) for label in labels), default=0.0)
    sizes = [one.size for one in cards]
    ends = [(edge.operand, edge.result) for edge in trace.edges]
    placed = layout(sizes, ends, gap_x=max(56.0, widest + 40.0), gap_y=18.0)
    heights = _label_heights(trace, labels, placed.routes)
    lines, tips, grounds, texts = [], [], [], []
    for number, route in enumerate(placed.routes):
        flows = trace.edges[number].flows
        lines.append(f'<path class="edge{"" if flows else " none"}" d="{_curve(route)}"/>')
        tips.append(_tip(route[-1]))
        if labels[number]:
            ground, text = _placed_label(trace, number, labels[number], route[-1], heights[number])
            grounds.append(ground)
            texts.append(text)
    boxes = [
        draw(one, x - one.size[0] / 2, y - one.size[1] / 2) for one, (x, y) in zip(cards, placed.centers, strict=True)
    ]
    tip = f'<path class="tip" d="{"".join(tips)}"/>' if tips else ""
    ground = f'<path class="ground" d="{"".join(grounds)}"/>' if grounds else ""
    return "".join([*lines, ground, tip, *texts, *boxes]), placed.width, placed.height


def _label(trace: Trace, edge: int) -> str:
    """What stands on an arrow: the local derivative, with its rule where there is room."""
    local = trace.edges[edge].local
    if local is None:
        return ""
    text = trace.local_text(edge, 10)
    short = len(trace.nodes) <= _LABELLED and text_width(text, 11) <= 100
    return text if short else text.rpartition(" = ")[2]


def _label_heights(trace: Trace, labels: Sequence[str], routes: Sequence[Sequence[Point]]) -> list[float]:
    """The y of each label: on its arrow, but near the end of it, and clear of the other labels there."""
    heights = [0.0] * len(labels)
    for edges in trace.into:
        for edge in edges:
            x, port = routes[edge][-1]
            y = _height_at(routes[edge], x - _TIP - 6 - text_width(labels[edge], 11) / 3)
            heights[edge] = min(max(y, port - _NEAR), port + _NEAR)
        if any(heights[one] + _PITCH > heights[two] for one, two in pairwise(edges)):
            for edge in edges:  # arrows from one place, or that cross: only at their ports are they apart
                heights[edge] = routes[edge][-1][1]
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


# --- the small form --------------------------------------------------------------------------------------------------

_ROOM = (1800.0, 1100.0)  # a small picture is no larger, in pixels
_MARKS = (("leaf", "round", 1.0), ("op", "square", 0.85), ("constant", "round", 0.6), ("bad", "round", 1.4))


def _marks(trace: Trace) -> tuple[str, float, float]:
    """Circles for leaves, squares for operations, points for constants: a path for each kind, so the file stays small.

    Marks and lines that fall on each other are written once.
    """
    sizes = [(7.0, 7.0)] * len(trace.nodes)
    placed = layout(sizes, [(edge.operand, edge.result) for edge in trace.edges], gap_x=14.0, gap_y=4.0)
    wide = max(placed.width, min(placed.height * 0.8, 6 * placed.width))
    across = min(wide, _ROOM[0]) / (placed.width or 1.0)
    down = min(1.0, _ROOM[1] / (placed.height or 1.0))
    centers = [(round(x * across), round(y * down)) for x, y in placed.centers]
    dots: dict[str, dict[str, None]] = {kind: {} for kind, _, _ in _MARKS}
    for node, (x, y) in zip(trace.nodes, centers, strict=True):
        dots["bad" if node.kind == "broken" or node.stale or not math.isfinite(node.value) else node.kind][
            f"M{x} {y}h0"
        ] = None
    edges = dict.fromkeys(_small_curve(route, across, down) for route in placed.routes)
    thin = "stroke-width:.75" if len(trace.nodes) < 3000 else "stroke-width:.5;opacity:.5"
    parts = [f'<path class="edge" style="{thin}" d="{"".join(edges)}"/>']
    size = 8.0 * max(0.55, min(1.0, across, down))
    for kind, cap, share in _MARKS:
        if dots[kind]:
            style = f"stroke-width:{_short(size * share)};stroke-linecap:{cap}"
            parts.append(f'<path class="dots {kind}" style="{style}" d="{"".join(dots[kind])}"/>')
    rings = dict.fromkeys(centers[output] for output in trace.outputs)
    parts += [f'<circle class="ring" cx="{x}" cy="{y}" r="{_short(size + 1)}"/>' for x, y in rings]
    return "".join(parts), placed.width * across, placed.height * down


def _small_curve(route: Sequence[Point], across: float, down: float) -> str:
    """As `_curve`, in whole steps from point to point, to be short."""
    x, y = round(route[0][0] * across), round(route[0][1] * down)
    parts = [f"M{x} {y}"]
    for point in route[1:]:
        dx, dy = round(point[0] * across) - x, round(point[1] * down) - y
        if dx or dy:
            parts.append(f"l{dx} {dy}" if dy else f"h{dx}")
        x, y = x + dx, y + dy
    return "".join(parts)


# --- captions --------------------------------------------------------------------------------------------------------


def _captions(trace: Trace, width: float, top: float) -> tuple[str, float]:
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
    for line in _wrapped(f"{trace.sentence()[:-1]} · {_key(trace)}", width, 11.5):
        parts.append(f'<text class="key" x="{_MARGIN:g}" y="{_short(y)}">{escape(line)}</text>')
        y += _LINE
    return "".join(parts), y - _LINE + 8


def _key(trace: Trace) -> str:
    """How to read the picture: only what occurs in it."""
    if not trace.full:
        return (
            f"drawn small, for it has {len(trace.nodes):,} nodes: circles are leaves, squares operations, points "
            "constants, a ring is the output · draw a part of it to see its numbers"
        )
    said = [f"grad: ∂{trace.title(trace.outputs[0])}/∂node" if trace.fresh() else "grad: what .grad holds"]
    states = {node.state for node in trace.nodes if node.kind != "constant"}
    said += ["— not computed yet"] if "none" in states else []
    said += ["blocked: gets no gradient"] if "blocked" in states else []
    if any(edge.local is not None for edge in trace.edges):
        said.append("on an arrow: its local derivative")
    if max(trace.contributions(), default=0) > 1:
        said.append("Σn: the sum of n contributions")
    if not all(edge.flows for edge in trace.edges):
        said.append("dotted: no gradient flows back")
    return " · ".join(said)


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
