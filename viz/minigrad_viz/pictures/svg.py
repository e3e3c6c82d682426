"""The SVG drawing: a card for each node, from left to right, and an arrow for each use of a value.

An open block is drawn as a frame around its contents, a closed block as a single box. See `build_scene`.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, NamedTuple

from minigrad_viz.pictures import boxes, heat, strokes
from minigrad_viz.pictures.boxes import Frame, Stack
from minigrad_viz.pictures.cards import Card
from minigrad_viz.pictures.curves import ARROWHEAD_LENGTH, Point, arrowhead_path, curve_path, format_coordinate
from minigrad_viz.pictures.palette import Theme, stylesheet
from minigrad_viz.pictures.scene import Scene, build_scene
from minigrad_viz.pictures.static_page import svg_document
from minigrad_viz.pictures.strokes import Stroke, Strokes
from minigrad_viz.trace import Trace, to_trace
from minigrad_viz.trace.notation import escape, fit, format_brief, text_width
from minigrad_viz.trace.visibility import Wire

__all__ = [
    "MARGIN",
    "Picture",
    "document",
    "edge_path",
    "has_gradient_flow",
    "label_svg",
    "render_svg",
    "to_svg",
    "wrap_text",
]

MARGIN = 18.0
_LINE_HEIGHT = 18.0  # line height of captions


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
    return render_svg(to_trace(x, *more)).svg


def render_svg(
    trace: Trace, open_blocks: Collection[int] | None = None, theme: Theme | None = None, css: str = ""
) -> Picture:
    """Return the drawing of a trace. `open_blocks` are the open blocks; by default, as many as remain legible.

    `theme` is "light", "dark", or None to follow the user's theme. `css` is additional CSS.
    """
    scene = build_scene(trace, open_blocks)
    width = max(scene.width, 300.0)
    captions, bottom = _captions(scene, width, scene.height + 2 * MARGIN)
    description = " ".join([trace.sentence(), *(note.text for note in trace.notes)])
    shapes, colours = (
        (boxes.SHAPES + heat.SHAPES, boxes.COLOURS + heat.COLOURS) if scene.has_special_parts else ("", "")
    )
    rules = (shapes, colours + strokes.COLOURS)
    content = f'<g transform="translate({MARGIN:g} {MARGIN:g})">{_draw_scene(scene)}</g>{captions}'
    size = math.ceil(width + 2 * MARGIN), math.ceil(bottom + 6)
    return document(trace, content, size, stylesheet(*rules, theme) + css, description)


def document(
    trace: Trace,
    content: str,
    size: tuple[float, float],
    css: str,
    description: str,
    display_size: tuple[int, int] | None = None,
    title: str | None = None,
) -> Picture:
    """Return an SVG document with the content `content` and a view box of `size`. `display_size` is the displayed size,
    if different, and `description` the text alternative. `title` defaults to the sentence of the trace.
    """
    svg = svg_document(content, size, css, title or trace.sentence(), description, display_size)
    return Picture(svg, math.ceil(size[0]), math.ceil(size[1]))


def _draw_scene(scene: Scene) -> str:
    """Return the SVG of the frames, edges, labels and cards in their final state."""
    trace = scene.trace
    lines, tips, backgrounds, labels, frames, cards = [], [], [], [], [], []
    edge_strokes = Strokes(trace.passes[0] if trace.grads and trace.is_fresh() else None)
    for index, (wire, route) in enumerate(zip(scene.wires, scene.routes, strict=True)):
        lines.append(
            edge_path(curve_path(route), "" if has_gradient_flow(trace, wire) else "none", edge_strokes.of(wire.edges))
        )
        tips.append(arrowhead_path(route[-1]))
        if label := scene.labels[index]:
            background, text = label_svg(trace, wire.edges[0], label, route[-1], scene.heights[index])
            backgrounds.append(background)
            labels.append(text)
    for part, (x, y, width, height) in zip(scene.parts, scene.boxes, strict=True):
        if isinstance(part, Frame):
            frames.append(part.draw(x, y, width, height))
        else:
            cards.append(part.draw(x, y))
    all_tips = f'<path class="tip" d="{"".join(tips)}"/>' if tips else ""
    background = f'<path class="ground" d="{"".join(backgrounds)}"/>' if backgrounds else ""
    return "".join([*frames, *lines, background, all_tips, *labels, *cards])


def edge_path(d: str, css_class: str = "", stroke: Stroke | None = None) -> str:
    """Return an edge as an SVG path."""
    classes = " ".join(filter(None, ["edge", css_class, stroke.sign if stroke else ""]))
    return f'<path class="{classes}" d="{d}"{stroke.attributes() if stroke else ""}/>'


def has_gradient_flow(trace: Trace, wire: Wire) -> bool:
    """Return whether a gradient flows back over a wire; always True for a captured step."""
    return bool(trace.execution) or any(trace.flows[edge] for edge in wire.edges)


def label_svg(trace: Trace, edge: int, label: str, end: Point, y: float, with_title: bool = True) -> tuple[str, str]:
    """Return the path of a label's background, which hides the edge behind the label, and the label as SVG text."""
    x, width = end[0] - ARROWHEAD_LENGTH - 6, text_width(label, 11)
    operand, result, _, _, _ = trace.edges[edge]
    derivative = f"∂{trace.title(result)}/∂{trace.title(operand)} = {trace.local_text(edge)}"
    title = f"<title>{escape(derivative)}</title>" if with_title else ""
    text = f'<text class="d" x="{format_coordinate(x)}" y="{format_coordinate(y + 3.9)}">{title}{escape(label)}</text>'
    return f"M{format_coordinate(x + 3)} {format_coordinate(y - 6)}v12h-{format_coordinate(width + 6)}v-12z", text


# --- captions --------------------------------------------------------------------------------------------------------


def _captions(scene: Scene, width: float, top: float) -> tuple[str, float]:
    """Return the SVG of the alarms, the summary and the legend, wrapped to `width`, and their bottom y coordinate."""
    trace, parts = scene.trace, []
    y = top + 4
    for note in trace.notes:
        for row, line in enumerate(wrap_text(note.text, width - 24, 12)):
            if not row:
                parts.append(f'<circle class="alarm" cx="{MARGIN + 7:g}" cy="{format_coordinate(y - 4)}" r="7.5"/>')
                parts.append(
                    f'<text x="{MARGIN + 7:g}" y="{format_coordinate(y)}" '
                    'style="font-weight:700;text-anchor:middle">!</text>'
                )
            parts.append(f'<text class="said" x="{MARGIN + 24:g}" y="{format_coordinate(y)}">{escape(line)}</text>')
            y += _LINE_HEIGHT
        y += 3
    for line in wrap_text(f"{trace.sentence()[:-1]} · {_legend(scene)}", width, 11.5):
        parts.append(f'<text class="key" x="{MARGIN:g}" y="{format_coordinate(y)}">{escape(line)}</text>')
        y += _LINE_HEIGHT
    return "".join(parts), y - _LINE_HEIGHT + 8


def _legend(scene: Scene) -> str:
    """Return the legend of the marks that occur in the drawing."""
    trace = scene.trace
    nodes = [trace.nodes[item.node] for item in scene.items if item.node >= 0]
    edges = [trace.edges[edge] for wire in scene.wires if scene.items[wire.end].node >= 0 for edge in wire.edges]
    closed_count = sum(isinstance(part, Stack) for part in scene.parts)
    entries = []
    if trace.execution:
        return trace.execution
    if nodes:
        entries.append(
            f"grad: ∂{trace.title(trace.outputs[0])}/∂node" if trace.is_fresh() else "grad: what .grad holds"
        )
    states = {node.state for node in nodes if node.kind in ("leaf", "op")}
    entries += ["— not computed yet"] if "none" in states else []
    entries += ["blocked: gets no gradient"] if "blocked" in states else []
    if trace.grads and trace.is_fresh():
        max_magnitude = Strokes(trace.passes[0]).max_magnitude
        entries.append(
            f"edge width: magnitude of its gradient, up to {format_brief(max_magnitude)}; orange: positive, purple: "
            "negative"
        )
    if any(edge.local is not None for edge in edges):
        entries.append("on an arrow: local derivative")
    if any(isinstance(part, Card) and part.sum_label for part in scene.parts):
        entries.append("Σn: the sum of n contributions")
    if not all(edge.flows for edge in edges):
        entries.append("dotted: no gradient flows back")
    entries += _heatmap_legend(scene)
    if closed_count:
        entries.append(f"a stack is a closed block: {closed_count} of {len(trace.blocks) - 1:,}")
    return " · ".join(entries)


def _heatmap_legend(scene: Scene) -> list[str]:
    """Return the legend of heatmaps."""
    heatmaps = [part.heatmaps for part in scene.parts if isinstance(part, Card) and part.heatmaps]
    summaries = [short for one in heatmaps for short in (one.value, one.grad) if short]
    entries = (
        ["heatmaps: green above 0, magenta below, full colour at the largest magnitude of each"] if summaries else []
    )
    if any("step" in short or max(short["rows"], short["cols"]) > heat.MAX_SIDE for short in summaries):
        entries.append("in large ones a cell is the largest of several elements")
    return entries + (["crossed: NaN or Inf"] if any(short["nan"] or short["inf"] for short in summaries) else [])


def wrap_text(text: str, width: float, size: float) -> list[str]:
    """Wrap `text` to lines of at most `width` pixels at font size `size`."""
    lines, line = [], ""
    for word in text.split(" "):
        word = fit(word, width, size)
        candidate = f"{line} {word}" if line else word
        if line and text_width(candidate, size) > width:
            lines.append(line)
            line = word
        else:
            line = candidate
    return [*lines, line]
