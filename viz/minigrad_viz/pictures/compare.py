"""Drawings of the comparison of two runs of one graph, as SVG, HTML and text.

Nodes that agree are pale. Nodes that differ have a sign, a thick border and a colour. The first differences have flags.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from minigrad_viz.pictures import boxes, heat, pairs
from minigrad_viz.pictures.boxes import Frame, Stack
from minigrad_viz.pictures.curves import ARROWHEAD_LENGTH, Point, arrowhead_path, curve_path, format_coordinate
from minigrad_viz.pictures.pairs import (
    ComparisonCard,
    difference_label,
    gradient_texts,
    make_comparison_card,
    value_texts,
)
from minigrad_viz.pictures.palette import Theme, stylesheet
from minigrad_viz.pictures.scene import OVERVIEW_WIDTH, Overrides, Part, Scene, build_scene
from minigrad_viz.pictures.static_page import html_page, zoomable
from minigrad_viz.pictures.svg import MARGIN, Picture, document, has_gradient_flow, wrap_text
from minigrad_viz.trace.arrays import summary
from minigrad_viz.trace.differences import Differences, scalar
from minigrad_viz.trace.gaps import format_ratio
from minigrad_viz.trace.notation import escape, fit_columns, format_compact, formula_text, text_width
from minigrad_viz.trace.visibility import Item, Wire

__all__ = ["figure", "page", "render_comparison", "table", "text_alternative"]

_MIN_WIDTH = 620.0  # minimum width of the drawing and the sentences above it, in pixels
_LINE_HEIGHT = 18.0
_MAX_ROWS = 60  # maximum number of rows of a table
_MAX_VALUE_LENGTH = 20  # maximum number of characters of a value in a column
_TEXT_COLUMNS, _VALUE_COLUMNS = (1, 2, 5, 8), (3, 4, 6, 7)  # indices of left-aligned columns and of columns with values


def render_comparison(differences: Differences, theme: Theme | None = None, with_captions: bool = True) -> Picture:
    """Return the drawing, with the differences listed above it if `with_captions`.

    If `theme` is None, the drawing follows the user's theme.
    """
    scene = _open_scene(differences)
    width = max(scene.width, _MIN_WIDTH)
    captions, top = _captions(differences, width) if with_captions else ("", MARGIN)
    content = f'<g transform="translate({MARGIN:g} {top:g})">{_draw_scene(differences, scene)}</g>'
    legend, bottom = _legend(differences, scene, width, top + scene.height + 26)
    css = stylesheet(boxes.SHAPES + heat.SHAPES + pairs.SHAPES, boxes.COLOURS + heat.COLOURS + pairs.COLOURS, theme)
    size = math.ceil(width + 2 * MARGIN), math.ceil(bottom)
    return document(
        differences.common,
        captions + content + legend,
        size,
        css,
        text_alternative(differences),
        title=differences.headline(),
    )


def text_alternative(differences: Differences) -> str:
    """Return a text alternative of the drawing, for screen readers."""
    return " ".join([f"Two runs of one graph. {differences.headline()}", *differences.findings()])


def _open_scene(differences: Differences) -> Scene:
    """Return the scene of the graph, with the blocks that contain the first differences open."""
    overrides = Overrides(
        lambda item, part: _item_part(differences, item, part), lambda wire, end: _wire_label(differences, wire, end)
    )
    scene, trace = build_scene(differences.common, overrides=overrides), differences.common
    blocks_to_open = set()
    for node in (differences.first_value, differences.first_operation, differences.first_gradient):
        if node is not None and scene.items[scene.item_of(node)].node != node:
            k = trace.block[node]
            while k > 0:
                blocks_to_open.add(k)
                k = trace.blocks[k].outer
    return build_scene(trace, scene.open_blocks | blocks_to_open, overrides=overrides) if blocks_to_open else scene


def _item_part(differences: Differences, item: Item, part: Part) -> Part:
    """Return the comparison card of a node, or else `part`; a stack shows the number of nodes in it that differ."""
    if item.node >= 0:
        return make_comparison_card(differences, item.node)
    if not isinstance(part, Stack):
        return part
    nodes = _block_nodes(differences, item.block)
    count = sum(node in nodes for node in differences.nodes)
    message = f"≠ in {count:,} of {len(nodes):,} nodes" if count else "no difference"
    width = max(part.width, math.ceil(text_width(message, 12.5, True) + 20))
    return replace(part, rows=(*part.rows[:1], ("", message)), width=width, bad=count > 0)


def _block_nodes(differences: Differences, block: int) -> set[int]:
    blocks = differences.common.blocks
    inner = {block}
    for k in range(block + 1, len(blocks)):
        if blocks[k].outer in inner:
            inner.add(k)
    return {node for node, k in enumerate(differences.common.block) if k in inner}


# --- edges -----------------------------------------------------------------------------------------------------------


def _wire_differs(differences: Differences, wire: Wire) -> bool:
    operands = (differences.common.operand[edge] for edge in wire.edges)
    return any(edge in differences.edges for edge in wire.edges) or any(
        operand in differences.values for operand in operands
    )


def _wire_label(differences: Differences, wire: Wire, target: Item) -> str:
    """Return "≠" for a wire that differs, followed by the relative difference if it has a single gradient."""
    if not _wire_differs(differences, wire):
        return ""
    gaps = [differences.edges[edge] for edge in wire.edges if edge in differences.edges]
    return f"≠ {format_ratio(gaps[0])}" if len(gaps) == 1 and target.node >= 0 else "≠"


def _draw_scene(differences: Differences, scene: Scene) -> str:
    """Return the SVG of all frames, edges, labels and cards. Edges that differ are drawn above the others."""
    lines: dict[bool, list[str]] = {False: [], True: []}
    tips: dict[bool, list[str]] = {False: [], True: []}
    backgrounds, labels, frames, cards = [], [], [], []
    for index, (wire, route) in enumerate(zip(scene.wires, scene.routes, strict=True)):
        differs = _wire_differs(differences, wire)
        css_class = (
            f"edge {'differs' if differs else 'same'}{'' if has_gradient_flow(differences.common, wire) else ' none'}"
        )
        lines[differs].append(
            f'<path class="{css_class}" '
            f'd="{curve_path(route)}"><title>{escape(_edge_tooltip(differences, wire))}</title></path>'
        )
        tips[differs].append(arrowhead_path(route[-1], size=1.3 if differs else 1.0))
        if label := scene.labels[index]:
            background, text = _label_svg(label, route[-1], scene.heights[index])
            backgrounds.append(background)
            labels.append(text)
    for part, (x, y, width, height) in zip(scene.parts, scene.boxes, strict=True):
        if isinstance(part, Frame):
            frames.append(part.draw(x, y, width, height))
        elif isinstance(part, Stack):
            cards.append(f'<g class="{"differs" if part.bad else "same"}">{part.draw(x, y)}</g>')
        else:
            cards.append(part.draw(x, y))
    heads = [
        f'<path class="tip {"differs" if differs else "same"}" d="{"".join(found_tips)}"/>'
        for differs, found_tips in tips.items()
        if found_tips
    ]
    background = f'<path class="ground" d="{"".join(backgrounds)}"/>' if backgrounds else ""
    return "".join([*frames, *lines[False], *lines[True], background, *heads, *labels, *cards])


def _label_svg(label: str, end: Point, y: float) -> tuple[str, str]:
    """Return the path of the background of a label, which hides the edge behind it, and the SVG of the label."""
    x, width = end[0] - 1.3 * ARROWHEAD_LENGTH - 5, text_width(label, 11, True)
    text = f'<text class="d ne" x="{format_coordinate(x)}" y="{format_coordinate(y + 3.9)}">{label}</text>'
    return f"M{format_coordinate(x + 3)} {format_coordinate(y - 6)}v12h-{format_coordinate(width + 6)}v-12z", text


def _edge_tooltip(differences: Differences, wire: Wire) -> str:
    """Return the tooltip of an edge, with its local derivative in both runs and the difference of its gradients."""
    trace, edge = differences.common, wire.edges[0]
    names = trace.title(trace.operand[edge]), trace.title(trace.result[edge])
    local = [run.local[edge] for run in (differences.first, differences.second)]
    lines = [f"{names[0]} → {names[1]}"]
    if None not in local:
        lines.append(
            f"∂{names[1]}/∂{names[0]}: "
            f"{' | '.join(run.local_text(edge) for run in (differences.first, differences.second))}"
        )
    lines += [f"{difference_label(differences.edges[edge])} in the backward pass"] if edge in differences.edges else []
    return "\n".join(lines)


# --- around the graph ------------------------------------------------------------------------------------------------


def _captions(differences: Differences, width: float) -> tuple[str, float]:
    """Return the SVG of the headline and the differences, and the y coordinate at which the graph starts below them."""
    parts, y = [], MARGIN + 8
    for line in wrap_text(differences.headline(), width, 15):
        parts.append(f'<text class="big" x="{MARGIN:g}" y="{y:g}">{escape(line)}</text>')
        y += 21
    y += 2
    for sentence in differences.findings():
        for row, line in enumerate(wrap_text(sentence, width - 24, 12.5)):
            if not row:
                parts.append(f'<circle class="alarm" cx="{MARGIN + 7:g}" cy="{y - 4:g}" r="7.5"/>')
                parts.append(f'<text x="{MARGIN + 7:g}" y="{y:g}" style="font-weight:700;text-anchor:middle">!</text>')
            parts.append(f'<text x="{MARGIN + 24:g}" y="{y:g}">{escape(line)}</text>')
            y += _LINE_HEIGHT
        y += 4
    return "".join(parts), y + 4


def _legend(differences: Differences, scene: Scene, width: float, top: float) -> tuple[str, float]:
    """Return the SVG of the legend, and the y coordinate at which it ends."""
    cards = [part for part in scene.parts if isinstance(part, ComparisonCard)]
    entries = ["first run | second run"]
    if differences.nodes:
        entries.append(
            "≠: beyond the tolerance, with the relative difference; on an arrow: of the gradient that flows back"
        )
        entries.append("pale: agrees")
    if differences.gradients and not any(node in differences.first.grads for node in differences.gradients):
        entries.append("grad: of one backward pass")
    if any("—" in pair for pair in (gradient_texts(differences, item.node) for item in scene.items if item.node >= 0)):
        entries.append("— not computed")
    if any(card.has_heatmaps for card in cards):
        entries.append("heatmaps: green above 0, magenta below, both runs on one scale, their difference on its own")
    if not all(has_gradient_flow(differences.common, wire) for wire in scene.wires):
        entries.append("dotted: no gradient flows back")
    closed_count = sum(isinstance(part, Stack) for part in scene.parts)
    if closed_count:
        entries.append(f"a stack is a closed block: {closed_count} of {len(differences.common.blocks) - 1:,}")
    lines = wrap_text(" · ".join(entries), width, 11.5)
    text_elements = [
        f'<text class="key" x="{MARGIN:g}" y="{format_coordinate(top + _LINE_HEIGHT * at)}">{escape(line)}</text>'
        for at, line in enumerate(lines)
    ]
    return "".join(text_elements), top + _LINE_HEIGHT * len(lines)


# --- HTML and text ---------------------------------------------------------------------------------------------------


def figure(differences: Differences) -> str:
    """Return an HTML fragment with the drawing as an image.

    The image shrinks with the page to at least 60%, and then scrolls. A very wide drawing is shown as an overview.
    """
    svg, width, _ = render_comparison(differences)
    min_width = round(width * 0.6) if width <= OVERVIEW_WIDTH else 900
    encoded = base64.b64encode(svg.encode()).decode()
    advice = "An overview: to zoom in, open the page that <code>compare(…).save(&quot;runs.html&quot;)</code> writes."
    return (
        '<figure class="minigrad-compare" style="margin:0;overflow-x:auto"><img '
        f'src="data:image/svg+xml;base64,{encoded}" alt="{escape(text_alternative(differences))}" width="{width}" '
        f'style="width:clamp({min_width}px,100%,{width}px);max-width:none;height:auto">'
        f"{f'<figcaption>{advice}</figcaption>' if width > OVERVIEW_WIDTH else ''}</figure>"
    )


def page(differences: Differences, theme: Theme | None = None) -> str:
    """Return an HTML page with a list of the differences, the drawing, and a table of the values in both runs."""
    items = "".join(
        f'<li><b aria-hidden="true">!</b><span>{escape(finding)}</span></li>' for finding in differences.findings()
    )
    svg, width, _ = render_comparison(differences, theme, with_captions=False)
    header = f"<h1>{escape(differences.headline())}</h1>{f'<ul>{items}</ul>' if items else ''}"
    return html_page(
        "Two runs compared · minigrad", f"{header}{zoomable(svg, width)}{_value_table(differences)}", theme, _CSS
    )


_CSS = """
ul{list-style:none;margin:0;padding:0}
li{display:flex;gap:.5rem;margin:.35rem 0;max-width:60rem}
li b{flex:none;width:1.35rem;height:1.35rem;line-height:1.35rem;border-radius:50%;text-align:center;
background:var(--alarm);color:var(--on-alarm)}
.wide{overflow-x:auto;width:fit-content;max-width:100%;border:1px solid var(--rim);border-radius:8px}
table{border-collapse:collapse;font-size:.92rem}
th,td{padding:.3rem .9rem;text-align:left;border-top:1px solid var(--rim);white-space:nowrap}
thead th{border-top:0;color:var(--muted);font-weight:500}
.r{text-align:right}
td.ne{color:var(--alarm);font-weight:700}
td svg{display:block;margin-left:auto}
"""
_HEADERS = ("#", "name", "made by", "data, first", "data, second", "", "grad, first", "grad, second", "")


def _value_table(differences: Differences) -> str:
    """Return the HTML table of the values in both runs."""
    headers = "".join(
        f"<th scope='col' class='{'' if at in _TEXT_COLUMNS else 'r'}'>{head or '≠'}</th>"
        for at, head in enumerate(_HEADERS)
    )
    rows, left_out = _listed_nodes(differences)
    body = "".join(_html_row(differences, node) for node in rows)
    footer = f"<p>{left_out:,} nodes that agree are left out.</p>" if left_out else ""
    return (
        "<h2>All values</h2><div class='wide' tabindex='0' role='region' aria-label='Table of nodes'>"
        f"<table><thead><tr>{headers}</tr></thead><tbody>{body}</tbody></table></div>{footer}"
    )


def _html_row(differences: Differences, node: int) -> str:
    row_cells = _table_row(differences, node)
    shown = [escape(text) for text in row_cells]
    for column, values in ((3, differences.values_of(node)), (6, differences.gradient(node))):
        summaries = [None if x is None or scalar(x) is not None else summary(x) for x in values]
        for k, stats in enumerate(summaries, column):
            if stats:
                shown[k] = _heatmap_cell(stats, heat.max_magnitude(*summaries), row_cells[k])
    cells = [
        f"<th scope='row'>{text}</th>"
        if at == 1
        else f"<td class='{'ne' if at in (5, 8) else '' if at in _TEXT_COLUMNS else 'r'}'>{text}</td>"
        for at, text in enumerate(shown)
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _heatmap_cell(stats: Mapping[str, Any], max_magnitude: float, label: str) -> str:
    """Return a table cell with the heatmap of a tensor, on the common scale of both runs, and its range."""
    width, height = heat.heatmap_size(tuple(stats["shape"]), stats)
    return (
        f'<svg class="mg" role="img" aria-label="{escape(label)}" width="{width + 2}" height="{height + 2}">'
        f"{heat.draw_heatmap(stats, 1, 1, width, height, max_magnitude)}</svg>"
        f"<small>{format_compact(stats['min'])} … {format_compact(stats['max'])}</small>"
    )


def table(differences: Differences) -> str:
    """Return the comparison as text: the headline, the differences, and the values of both runs in adjacent columns.

    Tensors with several elements are summarised on separate lines below their node, once if both runs agree.
    """
    rows, left_out = _listed_nodes(differences)
    cells = [_HEADERS, *(_table_row(differences, node) for node in rows)]
    short_rows = [cells[0], *(_drop_long_values(row) for row in cells[1:])]
    widths = [max(len(row[column]) for row in short_rows) for column in range(len(_HEADERS))]
    lines = []
    for full_row, row in zip(cells, short_rows, strict=True):
        padded = [
            text.ljust(width) if column in _TEXT_COLUMNS else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
        lines += [f"{' ' * widths[0]}  {text}" for text in _long_value_lines(full_row, row)]
    footer = [f"… {left_out:,} nodes that agree are left out"] if left_out else []
    return "\n".join(
        [differences.headline(), *(f"! {sentence}" for sentence in differences.findings()), *lines, *footer]
    )


def _drop_long_values(row: tuple[str, ...]) -> tuple[str, ...]:
    """Replace values that are too long for a column by ""."""
    return tuple("" if at in _VALUE_COLUMNS and len(text) > _MAX_VALUE_LENGTH else text for at, text in enumerate(row))


def _long_value_lines(full_row: tuple[str, ...], row: tuple[str, ...]) -> list[str]:
    """Return a line for each value that is too long for a column, or for both values if they are equal."""
    lines = []
    for first, mark in ((3, 5), (6, 8)):
        labelled_values = [(_HEADERS[at], full_row[at]) for at in (first, first + 1) if full_row[at] != row[at]]
        if len(labelled_values) == 2 and not full_row[mark] and labelled_values[0][1] == labelled_values[1][1]:
            labelled_values = [(f"{labelled_values[0][0].partition(',')[0]}, both", labelled_values[0][1])]
        lines += [f"{head}: {text}" for head, text in labelled_values]
    return lines


def _listed_nodes(differences: Differences) -> tuple[list[int], int]:
    """Return the nodes to list, which in a large graph are the first that differ, and the number of nodes left out."""
    count = len(differences.common.kinds)
    if count <= _MAX_ROWS:
        return list(range(count)), 0
    first_nodes = {
        node
        for node in (differences.first_value, differences.first_operation, differences.first_gradient)
        if node is not None
    }
    differing_nodes = differences.nodes
    rows = sorted({*differing_nodes[:_MAX_ROWS], *first_nodes})
    return rows, count - len(rows)


def _table_row(differences: Differences, node: int) -> tuple[str, ...]:
    trace = differences.common
    formula = trace.formula(node)
    made_by = trace.nodes[node].kind if formula is None else formula_text(formula)
    name = "" if trace.kinds[node] == "c" else trace.title(node)
    data = (*value_texts(differences, node), difference_label(differences.values.get(node)))
    grad = (
        ("", "", "")
        if trace.kinds[node] == "c"
        else (*gradient_texts(differences, node), difference_label(differences.grads.get(node)))
    )
    return str(node), name, fit_columns(made_by, 40), *data, *grad
