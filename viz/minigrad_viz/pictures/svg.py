"""The SVG drawing: a card for each node, from left to right, and an arrow for each use of a value.

An open block is a frame around its contents; a closed one is a single box: see `scene`.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, NamedTuple

from minigrad_viz.pictures import boxes, heat, strokes
from minigrad_viz.pictures.boxes import Frame, Stack
from minigrad_viz.pictures.cards import Card
from minigrad_viz.pictures.curves import TIP, Point, curve, short, tip
from minigrad_viz.pictures.palette import Theme, stylesheet
from minigrad_viz.pictures.scene import Scene, scene
from minigrad_viz.pictures.strokes import Stroke, Strokes
from minigrad_viz.trace import Trace, to_trace
from minigrad_viz.trace.notation import brief, escape, fit, text_width
from minigrad_viz.trace.visible import Wire

__all__ = ["MARGIN", "Picture", "document", "flowing", "line", "picture", "placed_label", "to_svg", "wrapped"]

MARGIN = 18.0
_LINE = 18.0  # line height of captions


class Picture(NamedTuple):
    """An SVG document and its size in pixels."""

    svg: str
    width: int
    height: int


def to_svg(x: Any, *more: Any) -> str:
    """Return the graph of `x`, one or several Values, as an SVG document that follows the user's light or dark theme.

    >>> import minigrad as mg
    >>> a = mg.Value(3.0, "a")
    >>> svg = to_svg(a * a)
    >>> svg[:4], svg.count('class="d"')
    ('<svg', 2)
    """
    return picture(to_trace(x, *more)).svg


def picture(trace: Trace, opened: Collection[int] | None = None, theme: Theme | None = None, more: str = "") -> Picture:
    """Return the drawing of a trace. `opened` are the open blocks; None opens as many as remain legible.

    `theme` is "light", "dark", or None to follow the user's theme. `more` is additional CSS.
    """
    seen = scene(trace, opened)
    width = max(seen.width, 300.0)
    captions, below = _captions(seen, width, seen.height + 2 * MARGIN)
    said = " ".join([trace.sentence(), *(note.text for note in trace.notes)])
    shapes, colours = (boxes.SHAPES + heat.SHAPES, boxes.COLOURS + heat.COLOURS) if seen.special else ("", "")
    rules = (shapes, colours + strokes.COLOURS)
    inside = f'<g transform="translate({MARGIN:g} {MARGIN:g})">{_drawn(seen)}</g>{captions}'
    size = math.ceil(width + 2 * MARGIN), math.ceil(below + 6)
    return document(trace, inside, size, stylesheet(*rules, theme) + more, said)


def document(
    trace: Trace,
    inside: str,
    size: tuple[float, float],
    css: str,
    said: str,
    shown: tuple[int, int] | None = None,
    title: str | None = None,
) -> Picture:
    """Return the SVG document with the content `inside` and a view box of `size`. `shown` is the displayed size, if
    different, and `said` the description. The default `title` is the sentence of the trace."""
    width, height = size
    sized = 'width="{:g}" height="{:g}"'.format(*shown or size) + f' viewBox="0 0 {width:g} {height:g}"'
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="mg" role="img" {sized}>'
        f"<title>{escape(title or trace.sentence())}</title><desc>{escape(said)}</desc>"
        f"<style>{_escape_css(css)}</style>"
        f'<rect class="page" x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="8"/>{inside}</svg>'
    )
    return Picture(svg, math.ceil(width), math.ceil(height))


def _escape_css(css: str) -> str:
    """Escape CSS for XML content, where quotes need no escaping."""
    return css.replace("&", "&amp;").replace("<", "&lt;")


def _drawn(seen: Scene) -> str:
    """Return the frames, edges, labels and cards in their final state."""
    trace = seen.trace
    lines, tips, grounds, texts, frames, cards = [], [], [], [], [], []
    passed = Strokes(trace.passes[0] if trace.grads and trace.fresh() else None)
    for number, (wire, route) in enumerate(zip(seen.wires, seen.routes, strict=True)):
        lines.append(line(curve(route), "" if flowing(trace, wire) else "none", passed.of(wire.edges)))
        tips.append(tip(route[-1]))
        if label := seen.labels[number]:
            ground, text = placed_label(trace, wire.edges[0], label, route[-1], seen.heights[number])
            grounds.append(ground)
            texts.append(text)
    for part, (x, y, width, height) in zip(seen.parts, seen.boxes, strict=True):
        if isinstance(part, Frame):
            frames.append(part.draw(x, y, width, height))
        else:
            cards.append(part.draw(x, y))
    all_tips = f'<path class="tip" d="{"".join(tips)}"/>' if tips else ""
    ground = f'<path class="ground" d="{"".join(grounds)}"/>' if grounds else ""
    return "".join([*frames, *lines, ground, all_tips, *texts, *cards])


def line(d: str, look: str = "", stroke: Stroke | None = None) -> str:
    """Return the path of an edge."""
    classes = " ".join(filter(None, ["edge", look, stroke.sign if stroke else ""]))
    return f'<path class="{classes}" d="{d}"{stroke.attributes() if stroke else ""}/>'


def flowing(trace: Trace, wire: Wire) -> bool:
    """Return whether a gradient flows back over a wire; always True for a captured step."""
    return bool(trace.how) or any(trace.flows[edge] for edge in wire.edges)


def placed_label(trace: Trace, edge: int, label: str, end: Point, y: float, titled: bool = True) -> tuple[str, str]:
    """Return the background patch of a label, which hides the edge behind it, and the label."""
    x, wide = end[0] - TIP - 6, text_width(label, 11)
    operand, result, _, _, _ = trace.edges[edge]
    way = f"∂{trace.title(result)}/∂{trace.title(operand)} = {trace.local_text(edge)}"
    title = f"<title>{escape(way)}</title>" if titled else ""
    text = f'<text class="d" x="{short(x)}" y="{short(y + 3.9)}">{title}{escape(label)}</text>'
    return f"M{short(x + 3)} {short(y - 6)}v12h-{short(wide + 6)}v-12z", text


# --- captions --------------------------------------------------------------------------------------------------------


def _captions(seen: Scene, width: float, top: float) -> tuple[str, float]:
    """Return the alarms, the summary and the legend, wrapped to `width`, and the y at which they end."""
    trace, parts = seen.trace, []
    y = top + 4
    for note in trace.notes:
        for at, line in enumerate(wrapped(note.text, width - 24, 12)):
            if not at:
                parts.append(f'<circle class="alarm" cx="{MARGIN + 7:g}" cy="{short(y - 4)}" r="7.5"/>')
                parts.append(
                    f'<text x="{MARGIN + 7:g}" y="{short(y)}" style="font-weight:700;text-anchor:middle">!</text>'
                )
            parts.append(f'<text class="said" x="{MARGIN + 24:g}" y="{short(y)}">{escape(line)}</text>')
            y += _LINE
        y += 3
    for line in wrapped(f"{trace.sentence()[:-1]} · {_key(seen)}", width, 11.5):
        parts.append(f'<text class="key" x="{MARGIN:g}" y="{short(y)}">{escape(line)}</text>')
        y += _LINE
    return "".join(parts), y - _LINE + 8


def _key(seen: Scene) -> str:
    """Return the legend of the marks that occur in the drawing."""
    trace = seen.trace
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
    if trace.grads and trace.fresh():
        most = Strokes(trace.passes[0]).most
        said.append(f"edge width: magnitude of its gradient, up to {brief(most)}; orange: positive, purple: negative")
    if any(edge.local is not None for edge in edges):
        said.append("on an arrow: local derivative")
    if any(isinstance(part, Card) and part.sum for part in seen.parts):
        said.append("Σn: the sum of n contributions")
    if not all(edge.flows for edge in edges):
        said.append("dotted: no gradient flows back")
    said += _heat_key(seen)
    if closed:
        said.append(f"a stack is a closed block: {closed} of {len(trace.blocks) - 1:,}")
    return " · ".join(said)


def _heat_key(seen: Scene) -> list[str]:
    """Return the legend of heatmaps."""
    pictures = [part.pictures for part in seen.parts if isinstance(part, Card) and part.pictures]
    shorts = [short for one in pictures for short in (one.value, one.grad) if short]
    said = ["heatmaps: green above 0, magenta below, full colour at the largest magnitude of each"] if shorts else []
    if any("step" in short or max(short["rows"], short["cols"]) > heat.MOST for short in shorts):
        said.append("in large ones a cell is the largest of several elements")
    return said + (["crossed: NaN or Inf"] if any(short["nan"] or short["inf"] for short in shorts) else [])


def wrapped(text: str, width: float, size: float) -> list[str]:
    """Wrap `text` to lines of at most `width` pixels at font size `size`."""
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
