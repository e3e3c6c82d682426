"""A comparison of two runs of one graph, as SVG, HTML and text. Nodes that agree are pale; nodes that differ have a
sign, a thick border and a colour; the first difference is flagged.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from minigrad_viz.pictures import boxes, heat, pairs
from minigrad_viz.pictures.boxes import Frame, Stack
from minigrad_viz.pictures.curves import TIP, Point, curve, short, tip
from minigrad_viz.pictures.pairs import Pair, apart, gradient_texts, pair, value_texts
from minigrad_viz.pictures.palette import Theme, stylesheet
from minigrad_viz.pictures.scene import WIDE, Overrides, Part, Scene, scene
from minigrad_viz.pictures.standalone import standalone, zoomed
from minigrad_viz.pictures.svg import MARGIN, Picture, document, flowing, wrapped
from minigrad_viz.trace.arrays import summary
from minigrad_viz.trace.differences import Differences, scalar
from minigrad_viz.trace.gaps import share
from minigrad_viz.trace.notation import compact, escape, fit_cells, plain, text_width
from minigrad_viz.trace.visible import Item, Wire

__all__ = ["described", "figure", "page", "picture", "table"]

_NARROWEST = 620.0  # minimum width, for the sentences above the drawing
_LINE = 18.0
_ROWS = 60  # maximum rows of the tables
_LONGEST = 20  # maximum length of a value in a column
_WORDS, _NUMBERS = (1, 2, 5, 8), (3, 4, 6, 7)  # left-aligned columns, columns of values


def picture(found: Differences, theme: Theme | None = None, alone: bool = True) -> Picture:
    """Return the drawing in `theme`, None to follow the user's. If `alone`, the findings are written above it."""
    seen = _opened(found)
    width = max(seen.width, _NARROWEST)
    above, top = _captions(found, width) if alone else ("", MARGIN)
    inside = f'<g transform="translate({MARGIN:g} {top:g})">{_drawn(found, seen)}</g>'
    key, below = _key(found, seen, width, top + seen.height + 26)
    css = stylesheet(boxes.SHAPES + heat.SHAPES + pairs.SHAPES, boxes.COLOURS + heat.COLOURS + pairs.COLOURS, theme)
    size = math.ceil(width + 2 * MARGIN), math.ceil(below)
    return document(found.common, above + inside + key, size, css, described(found), title=found.headline())


def described(found: Differences) -> str:
    """Return a text alternative of the drawing, for screen readers."""
    return " ".join([f"Two runs of one graph. {found.headline()}", *found.findings()])


def _opened(found: Differences) -> Scene:
    """Return the scene of the graph, with the blocks that contain the first differences open."""
    shown = Overrides(lambda item, part: _part(found, item, part), lambda wire, end: _label(found, wire, end))
    seen, trace = scene(found.common, shown=shown), found.common
    wanted = set()
    for node in (found.first_value, found.first_operation, found.first_gradient):
        if node is not None and seen.items[seen.item_of(node)].node != node:
            k = trace.block[node]
            while k > 0:
                wanted.add(k)
                k = trace.blocks[k].outer
    return scene(trace, seen.opened | wanted, shown=shown) if wanted else seen


def _part(found: Differences, item: Item, part: Part) -> Part:
    """Return the part that shows an item; a closed block counts the nodes in it that differ."""
    if item.node >= 0:
        return pair(found, item.node)
    if not isinstance(part, Stack):
        return part
    inside = _inside(found, item.block)
    count = sum(node in inside for node in found.nodes)
    said = f"≠ in {count:,} of {len(inside):,} nodes" if count else "no difference"
    wide = max(part.width, math.ceil(text_width(said, 12.5, True) + 20))
    return replace(part, rows=(*part.rows[:1], ("", said)), width=wide, bad=count > 0)


def _inside(found: Differences, block: int) -> set[int]:
    """Return the nodes in a block, including those in nested blocks."""
    blocks = found.common.blocks
    inner = {block}
    for k in range(block + 1, len(blocks)):
        if blocks[k].outer in inner:
            inner.add(k)
    return {node for node, k in enumerate(found.common.block) if k in inner}


# --- arrows ----------------------------------------------------------------------------------------------------------


def _differs(found: Differences, wire: Wire) -> bool:
    operands = (found.common.operand[edge] for edge in wire.edges)
    return any(edge in found.edges for edge in wire.edges) or any(operand in found.values for operand in operands)


def _label(found: Differences, wire: Wire, end: Item) -> str:
    """Return the label of a wire that differs: the sign, with the relative difference of a single gradient."""
    if not _differs(found, wire):
        return ""
    gaps = [found.edges[edge] for edge in wire.edges if edge in found.edges]
    return f"≠ {share(gaps[0])}" if len(gaps) == 1 and end.node >= 0 else "≠"


def _drawn(found: Differences, seen: Scene) -> str:
    """Return the frames, edges, labels and cards; edges that differ are drawn above the others."""
    lines: dict[bool, list[str]] = {False: [], True: []}
    tips: dict[bool, list[str]] = {False: [], True: []}
    grounds, texts, frames, cards = [], [], [], []
    for number, (wire, route) in enumerate(zip(seen.wires, seen.routes, strict=True)):
        differs = _differs(found, wire)
        look = f"edge {'differs' if differs else 'same'}{'' if flowing(found.common, wire) else ' none'}"
        lines[differs].append(
            f'<path class="{look}" d="{curve(route)}"><title>{escape(_way(found, wire))}</title></path>'
        )
        tips[differs].append(tip(route[-1], size=1.3 if differs else 1.0))
        if label := seen.labels[number]:
            ground, text = _placed(label, route[-1], seen.heights[number])
            grounds.append(ground)
            texts.append(text)
    for part, (x, y, width, height) in zip(seen.parts, seen.boxes, strict=True):
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
    ground = f'<path class="ground" d="{"".join(grounds)}"/>' if grounds else ""
    return "".join([*frames, *lines[False], *lines[True], ground, *heads, *texts, *cards])


def _placed(label: str, end: Point, y: float) -> tuple[str, str]:
    """Return the background patch of a label, which hides the edge behind it, and the label."""
    x, wide = end[0] - 1.3 * TIP - 5, text_width(label, 11, True)
    text = f'<text class="d ne" x="{short(x)}" y="{short(y + 3.9)}">{label}</text>'
    return f"M{short(x + 3)} {short(y - 6)}v12h-{short(wide + 6)}v-12z", text


def _way(found: Differences, wire: Wire) -> str:
    """Return the tooltip of an edge: its local derivative and gradient in both runs."""
    trace, edge = found.common, wire.edges[0]
    names = trace.title(trace.operand[edge]), trace.title(trace.result[edge])
    local = [run.local[edge] for run in (found.first, found.second)]
    said = [f"{names[0]} → {names[1]}"]
    if None not in local:
        said.append(
            f"∂{names[1]}/∂{names[0]}: {' | '.join(run.local_text(edge) for run in (found.first, found.second))}"
        )
    said += [f"{apart(found.edges[edge])} in the backward pass"] if edge in found.edges else []
    return "\n".join(said)


# --- around the graph ------------------------------------------------------------------------------------------------


def _captions(found: Differences, width: float) -> tuple[str, float]:
    """Return the headline and the findings, and the y at which the graph starts below them."""
    parts, y = [], MARGIN + 8
    for line in wrapped(found.headline(), width, 15):
        parts.append(f'<text class="big" x="{MARGIN:g}" y="{y:g}">{escape(line)}</text>')
        y += 21
    y += 2
    for sentence in found.findings():
        for at, line in enumerate(wrapped(sentence, width - 24, 12.5)):
            if not at:
                parts.append(f'<circle class="alarm" cx="{MARGIN + 7:g}" cy="{y - 4:g}" r="7.5"/>')
                parts.append(f'<text x="{MARGIN + 7:g}" y="{y:g}" style="font-weight:700;text-anchor:middle">!</text>')
            parts.append(f'<text x="{MARGIN + 24:g}" y="{y:g}">{escape(line)}</text>')
            y += _LINE
        y += 4
    return "".join(parts), y + 4


def _key(found: Differences, seen: Scene, width: float, top: float) -> tuple[str, float]:
    """Return the legend, and the y at which it ends."""
    cards = [part for part in seen.parts if isinstance(part, Pair)]
    said = ["first run | second run"]
    if found.nodes:
        said.append(
            "≠: beyond the tolerance, with the relative difference; on an arrow: of the gradient that flows back"
        )
        said.append("pale: agrees")
    if found.gradients and not any(node in found.first.grads for node in found.gradients):
        said.append("grad: of one backward pass")
    if any("—" in both for both in (gradient_texts(found, item.node) for item in seen.items if item.node >= 0)):
        said.append("— not computed")
    if any(card.shows_heat for card in cards):
        said.append("heatmaps: green above 0, magenta below, both runs on one scale, their difference on its own")
    if not all(flowing(found.common, wire) for wire in seen.wires):
        said.append("dotted: no gradient flows back")
    closed = sum(isinstance(part, Stack) for part in seen.parts)
    if closed:
        said.append(f"a stack is a closed block: {closed} of {len(found.common.blocks) - 1:,}")
    lines = wrapped(" · ".join(said), width, 11.5)
    texts = [
        f'<text class="key" x="{MARGIN:g}" y="{short(top + _LINE * at)}">{escape(line)}</text>'
        for at, line in enumerate(lines)
    ]
    return "".join(texts), top + _LINE * len(lines)


# --- in a notebook, in a page, as text -------------------------------------------------------------------------------


def figure(found: Differences) -> str:
    """Return an HTML fragment with the drawing as an image, which shrinks to 60% and then scrolls. A very wide drawing
    is shown as an overview."""
    svg, width, _ = picture(found)
    least = round(width * 0.6) if width <= WIDE else 900
    encoded = base64.b64encode(svg.encode()).decode()
    advice = "An overview: to zoom in, open the page that <code>compare(…).save(&quot;runs.html&quot;)</code> writes."
    return (
        '<figure class="minigrad-compare" style="margin:0;overflow-x:auto"><img '
        f'src="data:image/svg+xml;base64,{encoded}" alt="{escape(described(found))}" width="{width}" '
        f'style="width:clamp({least}px,100%,{width}px);max-width:none;height:auto">'
        f"{f'<figcaption>{advice}</figcaption>' if width > WIDE else ''}</figure>"
    )


def page(found: Differences, theme: Theme | None = None) -> str:
    """Return a page with the findings, the drawing and a table of both runs."""
    items = "".join(f'<li><b aria-hidden="true">!</b><span>{escape(said)}</span></li>' for said in found.findings())
    svg, width, _ = picture(found, theme, alone=False)
    words = f"<h1>{escape(found.headline())}</h1>{f'<ul>{items}</ul>' if items else ''}"
    return standalone("Two runs compared · minigrad", f"{words}{zoomed(svg, width)}{_numbers(found)}", theme, _CSS)


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
_HEADS = ("#", "name", "made by", "data, first", "data, second", "", "grad, first", "grad, second", "")


def _numbers(found: Differences) -> str:
    """Return the table of all values in a page."""
    heads = "".join(
        f"<th scope='col' class='{'' if at in _WORDS else 'r'}'>{head or '≠'}</th>" for at, head in enumerate(_HEADS)
    )
    rows, left_out = _chosen(found)
    body = "".join(_html_row(found, node) for node in rows)
    more = f"<p>{left_out:,} nodes that agree are left out.</p>" if left_out else ""
    return (
        "<h2>All values</h2><div class='wide' tabindex='0' role='region' aria-label='Table of nodes'>"
        f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>{more}"
    )


def _html_row(found: Differences, node: int) -> str:
    texts = _row(found, node)
    shown = [escape(text) for text in texts]
    for at, both in ((3, found.held(node)), (6, found.gradient(node))):
        shorts = [None if x is None or scalar(x) is not None else summary(x) for x in both]
        for k, one in enumerate(shorts, at):
            if one:
                shown[k] = _held(one, heat.scale(*shorts), texts[k])
    cells = [
        f"<th scope='row'>{text}</th>"
        if at == 1
        else f"<td class='{'ne' if at in (5, 8) else '' if at in _WORDS else 'r'}'>{text}</td>"
        for at, text in enumerate(shown)
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _held(held: Mapping[str, Any], most: float, said: str) -> str:
    """Return a table cell with the heatmap of a tensor, on the scale of both runs, and its range."""
    width, height = heat.size_of(tuple(held["shape"]), held)
    return (
        f'<svg class="mg" role="img" aria-label="{escape(said)}" width="{width + 2}" height="{height + 2}">'
        f"{heat.drawn(held, 1, 1, width, height, most)}</svg>"
        f"<small>{compact(held['min'])} … {compact(held['max'])}</small>"
    )


def table(found: Differences) -> str:
    """Return the text form: the headline, the findings, and the values of both runs in adjacent columns.

    Tensors with several elements are summarised on separate lines below their node, once if both runs agree.
    """
    rows, left_out = _chosen(found)
    cells = [_HEADS, *(_row(found, node) for node in rows)]
    short = [cells[0], *(_shortened(row) for row in cells[1:])]
    widths = [max(len(row[column]) for row in short) for column in range(len(_HEADS))]
    lines = []
    for whole, row in zip(cells, short, strict=True):
        padded = [
            text.ljust(width) if column in _WORDS else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
        lines += [f"{' ' * widths[0]}  {text}" for text in _long(whole, row)]
    more = [f"… {left_out:,} nodes that agree are left out"] if left_out else []
    return "\n".join([found.headline(), *(f"! {sentence}" for sentence in found.findings()), *lines, *more])


def _shortened(row: tuple[str, ...]) -> tuple[str, ...]:
    """Return a row with the values that are too long for a column replaced by ""."""
    return tuple("" if at in _NUMBERS and len(text) > _LONGEST else text for at, text in enumerate(row))


def _long(whole: tuple[str, ...], row: tuple[str, ...]) -> list[str]:
    """Return the lines for the values that are too long for a column."""
    lines = []
    for first, mark in ((3, 5), (6, 8)):
        both = [(_HEADS[at], whole[at]) for at in (first, first + 1) if whole[at] != row[at]]
        if len(both) == 2 and not whole[mark] and both[0][1] == both[1][1]:
            both = [(f"{both[0][0].partition(',')[0]}, both", both[0][1])]
        lines += [f"{head}: {text}" for head, text in both]
    return lines


def _chosen(found: Differences) -> tuple[list[int], int]:
    """Return the nodes to list and how many are left out. A large graph lists only (the first) nodes that differ."""
    count = len(found.common.kinds)
    if count <= _ROWS:
        return list(range(count)), 0
    firsts = {node for node in (found.first_value, found.first_operation, found.first_gradient) if node is not None}
    differ = found.nodes
    rows = sorted({*differ[:_ROWS], *firsts})
    return rows, count - len(rows)


def _row(found: Differences, node: int) -> tuple[str, ...]:
    trace = found.common
    formula = trace.formula(node)
    made_by = trace.nodes[node].kind if formula is None else plain(formula)
    name = "" if trace.kinds[node] == "c" else trace.title(node)
    data = (*value_texts(found, node), apart(found.values.get(node)))
    grad = ("", "", "") if trace.kinds[node] == "c" else (*gradient_texts(found, node), apart(found.grads.get(node)))
    return str(node), name, fit_cells(made_by, 40), *data, *grad
