r"""Export to TikZ, for papers. TeX typesets all text; formulas and values are in math mode.

The document compiles with pdflatex or lualatex and needs only amsmath and TikZ. A unit is an SVG pixel (0.75 pt).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from minigrad_viz.pictures import heat, tex
from minigrad_viz.pictures.boxes import SECOND_LINE_OFFSET, Frame, Mention, Stack
from minigrad_viz.pictures.cards import HEADER_HEIGHT, PADDING, RING_OFFSET, ROW_HEIGHT, Card, TensorHeatmaps
from minigrad_viz.pictures.curves import ARROWHEAD_LENGTH, Point, format_coordinate
from minigrad_viz.pictures.overlay import OVERLAY_MARGIN, Active, active_at, corner_radius
from minigrad_viz.pictures.palette import THEMES, Theme
from minigrad_viz.pictures.scene import Box, Scene, build_scene
from minigrad_viz.pictures.strokes import Strokes
from minigrad_viz.pictures.svg import MARGIN, has_gradient_flow
from minigrad_viz.pictures.tex import escape_tex, format_amount, format_math, format_name
from minigrad_viz.trace import Trace
from minigrad_viz.trace.history import Moment

__all__ = ["render_tikz"]

_TEMPLATE = r"""% A graph drawn by minigrad_viz. Compile with pdflatex or lualatex.
% To include it in another document, copy the lines from \usepackage to the last \newcommand to the preamble, and the
% tikzpicture to the body, in a \resizebox{\linewidth}{!}{...} if it is wider than the text.
\documentclass{article}
\usepackage{amsmath}
\usepackage{tikz}
\usetikzlibrary{arrows.meta}
COLOURS
\tikzset{
  mg/.style={x=0.75pt, y=-0.75pt, line width=0.9pt, font=\fontsize{9}{11}\selectfont, text=mgink},
  words/.style={anchor=base west, inner sep=0pt, outer sep=0pt},
  small/.style={font=\fontsize{8}{10}\selectfont},
  box/.style={draw=mgline, fill=mgcard, rounded corners=3pt, anchor=north west, inner sep=0pt, outer sep=0pt},
  leaf/.style={rounded corners=9pt, draw=mgleaf},
  op/.style={}, block/.style={},
  output/.style={draw=mgoutput},
  leafoutput/.style={rounded corners=9pt, draw=mgoutput},
  pale/.style={draw=mgrim, fill=mgpage, text=mgmuted},
  alarm/.style={draw=mgalarm, line width=1.9pt},
  edge/.style={draw=mgline, line width=1.1pt, -{Triangle[length=6pt, width=5.25pt]}},
  still/.style={dash pattern=on 1.5pt off 3pt},
  done/.style={draw=mgheat, line width=1.9pt},
  back/.style={{Triangle[length=6pt, width=5.25pt]}-},
  future/.style={draw=mgrim},
  local/.style={anchor=east, inner sep=1.5pt, outer sep=0pt, fill=mgpage, text=mgbackward, small},
  pill/.style={rounded corners=6pt, inner sep=3pt, fill=mgbackward, text=mgpage},
}
% The box of a node with two rows. Arguments: options, node name, kind, position, width, title, value, gradient
\newcommand\mgcard[8][]{%
  \mgbox[#1]{#2}{#3}{#4}{#5}{48.75pt}{\fill[sharp corners, mgwash]
    ([yshift=15pt]path picture bounding box.south west) rectangle (path picture bounding box.south east);}{#6}%
  \node[words, small, text=mgforward] at ([shift={(6.75pt,-29.6pt)}]#2.north west) {data};
  \node[words, anchor=base east] at ([shift={(-6.75pt,-29.6pt)}]#2.north east) {#7};
  \node[words, small, text=mgbackward] at ([shift={(6.75pt,-44.6pt)}]#2.north west) {grad};
  \node[words, anchor=base east] at ([shift={(-6.75pt,-44.6pt)}]#2.north east) {#8};}
% A box with a header. Arguments: options, node name, kind, position, width, height, background commands, title
\newcommand\mgbox[8][]{%
  \node[box, #3, minimum width=#5, minimum height=#6, path picture={%
    \fill[sharp corners, mg#3head] (path picture bounding box.north west)
      rectangle ([yshift=-18.75pt]path picture bounding box.north east);
    #7}, #1] (#2) at (#4) {};
  \node[words, text=mg#3title] at ([shift={(6.75pt,-12.75pt)}]#2.north west) {#8};}
% The page is as large as the picture.
\ifdefined\pagewidth\else\let\pagewidth\pdfpagewidth\let\pageheight\pdfpageheight\fi
\paperwidth=WIDTHpt \paperheight=HEIGHTpt \pagewidth=\paperwidth \pageheight=\paperheight
\hoffset=-1in \voffset=-1in \oddsidemargin=0pt \topmargin=0pt \headheight=0pt \headsep=0pt \topskip=0pt
\textwidth=2\pagewidth \textheight=2\pageheight \parindent=0pt \pagestyle{empty}
\begin{document}\noindent
\begin{tikzpicture}[mg]
BODY
\end{tikzpicture}%
\end{document}
"""
_GLOW_COLOURS = {
    "forward": ("mghalo", "mgforward"),
    "backward": ("mghot", "mghot"),
    "backward less": ("mgnegative", "mgnegative"),
}
_HEADER_COLOURS = {
    "leaf": ("leaf", "on-leaf"),
    "op": ("op", "on-op"),
    "block": ("rim", "ink"),
    "output": ("output", "on-output"),
    "leafoutput": ("output", "on-output"),
    "broken": ("op", "on-op"),
    "pale": ("page", "muted"),
}


def render_tikz(
    trace: Trace, open_blocks: Collection[int] | None = None, moment: Moment | None = None, theme: Theme | None = None
) -> str:
    """Return the drawing of a trace, optionally at a moment, as a LaTeX document. Arguments are those of `picture`."""
    scene = build_scene(trace, open_blocks, moment.timeline if moment else None)
    colours = dict(THEMES[theme or "light"])
    if theme != "dark":
        colours["page"] = "#ffffff"  # the colour of paper
    margin = OVERLAY_MARGIN if moment else MARGIN
    width, height = scene.width + 2 * MARGIN, scene.height + 2 * margin
    lines = [
        f"\\definecolor{{mg{key.replace('-', '')}}}{{HTML}}{{{colour[1:].upper()}}}" for key, colour in colours.items()
    ]
    for kind, (head, title) in _HEADER_COLOURS.items():
        lines.append(f"\\colorlet{{mg{kind}head}}{{mg{head.replace('-', '')}}}")
        lines.append(f"\\colorlet{{mg{kind}title}}{{mg{title.replace('-', '')}}}")
    corners = (
        f"({-MARGIN:g},{-margin:g}) rectangle "
        f"({format_coordinate(scene.width + MARGIN)},{format_coordinate(scene.height + margin)})"
    )
    background = "\\fill[mgpage]" if theme == "dark" else "\\path"
    body = [f"  {background} {corners};", *(f"  {line}" for line in _commands(scene, moment))]
    page = _TEMPLATE.replace("COLOURS", "\n".join(lines)).replace("BODY", "\n".join(body))
    return page.replace("WIDTH", f"{0.75 * width:.2f}").replace("HEIGHT", f"{0.75 * height:.2f}")


def _commands(scene: Scene, moment: Moment | None) -> Iterator[str]:
    """Yield the drawing commands, from back to front."""
    active = active_at(scene, moment) if moment else None
    parts = [scene.part_at(index, moment) for index in range(len(scene.items))] if moment else scene.parts
    boxed_parts = [(f"n{k}", part, box) for k, (part, box) in enumerate(zip(parts, scene.boxes, strict=True))]
    for _, part, box in boxed_parts:
        if isinstance(part, Frame):
            yield from _frame_commands(part, box)
    trace = scene.trace
    has_gradients = moment is not None or (trace.grads and trace.is_fresh())
    strokes = Strokes(trace.passes[0] if has_gradients and trace.passes else None)
    for at in range(len(scene.wires)):
        yield _edge_command(scene, at, moment, strokes)
    if active and active.wires:
        paths = " ".join(_path(scene.routes[at]) for at in active.wires)
        colour = _GLOW_COLOURS[active.css_class][0]
        yield f"\\draw[{colour}, line width=3.4pt] {paths};"
    for at in range(len(scene.wires)):
        yield from _label_commands(scene, at, moment)
    for node, part, box in boxed_parts:
        if isinstance(part, Card):
            yield from _card_commands(node, part, box)
        elif isinstance(part, Stack):
            yield from _stack_commands(node, part, box)
        elif isinstance(part, Mention):
            yield _mention_command(node, part, box)
    if active:
        yield from _overlay_commands(scene, active, corner_radius(parts[active.item]))


def _coordinate(x: float, y: float) -> str:
    return f"({format_coordinate(x)},{format_coordinate(y)})"


def _points(pixels: float) -> str:
    return f"{0.75 * pixels:.2f}".rstrip("0").rstrip(".") + "pt"


# --- edges -----------------------------------------------------------------------------------------------------------


def _path(route: list[Point]) -> str:
    x, y = route[0]
    parts = [_coordinate(x, y)]
    for to_x, to_y in route[1:]:
        middle = (x + to_x) / 2
        curve = f".. controls {_coordinate(middle, y)} and {_coordinate(middle, to_y)} .. "
        parts.append(f"{'-- ' if y == to_y else curve}{_coordinate(to_x, to_y)}")
        x, y = to_x, to_y
    return " ".join(parts)


def _edge_command(scene: Scene, index: int, moment: Moment | None, strokes: Strokes) -> str:
    wire = scene.wires[index]
    state = scene.wire_state(wire, moment) if moment else ""
    is_backward = moment is not None and (state == "done" or moment.edge in wire.edges)
    styles = ["edge", "" if has_gradient_flow(scene.trace, wire) else "still", state, "back" if is_backward else ""]
    if (moment is None or state == "done") and (stroke := strokes.of(wire.edges)):
        colour = {"zero": "mgline, dashed", "wild": "mgalarm"}.get(stroke.sign, f"mg{stroke.sign}")
        styles.append(f"{colour}, line width={_points(stroke.width)}, opacity={stroke.opacity:.2f}")
    return f"\\draw[{', '.join(filter(None, styles))}] {_path(scene.routes[index])};"


def _label_commands(scene: Scene, index: int, moment: Moment | None) -> Iterator[str]:
    """Yield the label of a wire: the formula of its local derivative, if that fits, and the value."""
    label = scene.label_at(index, moment) if moment else scene.labels[index]
    if label:
        (x, _), y = scene.routes[index][-1], scene.heights[index]
        rule, equals, value = label.rpartition(" = ")
        formula = scene.trace.local_formula(scene.wires[index].edges[0], 10)
        left = f"{tex.format_formula(formula)} = " if equals and formula is not None else escape_tex(rule)
        yield f"\\node[local] at {_coordinate(x - ARROWHEAD_LENGTH - 4, y)} {{${left}{format_math(value)}$}};"


# --- nodes -----------------------------------------------------------------------------------------------------------


def _card_commands(node: str, card: Card, box: Box) -> Iterator[str]:
    """Yield the commands that draw a node: its name with its formula, its value and its gradient."""
    kind = _style_name(card)
    x, y = box.x + (RING_OFFSET if "output" in card.kind else 0), box.y + (RING_OFFSET if "output" in card.kind else 0)
    width, options = _points(card.width), f"[{', '.join(_card_options(card))}]" if _card_options(card) else ""
    if kind == "constant":
        yield (
            f"\\node[box, rounded corners=9pt, dashed, minimum width={width}, minimum height={_points(card.height)}] "
            f"({node}) at {_coordinate(x, y)} {{${format_math(card.value)}$}};"
        )
        return
    rule = "" if card.formula is None else f" = {tex.format_formula(card.formula)}"
    title = (
        f"${format_name(card.name)}{rule}$"
        if not card.is_call
        else f"${format_name(card.name)}$ {escape_tex(card.rule.strip())}"
    )
    if (
        not card.is_call
        and card.heatmaps is None
        and card.height == HEADER_HEIGHT + 2 * ROW_HEIGHT
        and not card.kind.startswith("broken")
    ):
        total = f"{escape_tex(card.sum_label)}\\enspace " if card.sum_label else ""
        grad = f"{{\\fontsize{{8}}{{10}}\\selectfont {total}}}" if total else ""
        yield (
            f"\\mgcard{options}{{{node}}}{{{kind}}}{{{_coordinate(x, y)[1:-1]}}}{{{width}}}{{{title}}}"
            f"{{{format_amount(card.value)}}}{{{grad}{format_amount(card.grad)}}}"
        )
    else:
        corner = f"{_coordinate(x, y)[1:-1]}"
        yield f"\\mgbox{options}{{{node}}}{{{kind}}}{{{corner}}}{{{width}}}{{{_points(card.height)}}}{{}}{{{title}}}"
        yield from _card_contents(card, card.heatmaps, x, y)
    if "output" in card.kind:
        radius = 9 if "leaf" in card.kind else 3
        yield (
            f"\\draw[mgoutput, rounded corners={radius + 2}pt] ([shift={{(-2.6pt,2.6pt)}}]{node}.north west) "
            f"rectangle ([shift={{(2.6pt,-2.6pt)}}]{node}.south east);"
        )


def _style_name(card: Card) -> str:
    if "pale" in card.state:
        return "pale"
    kind, _, output = card.kind.partition(" ")
    return {"op": "output", "leaf": "leafoutput"}.get(kind, kind) if output else kind


def _card_options(card: Card) -> list[str]:
    return [mark for mark, is_set in (("dashed", card.is_blocked), ("alarm", card.has_alarm)) if is_set]


def _card_contents(card: Card, heatmaps: TensorHeatmaps | None, x: float, y: float) -> Iterator[str]:
    """Yield the commands that draw the contents of a tensor, of a call that raised, or of a call of a captured step."""
    if heatmaps is None:
        lines = [escape_tex(card.value), escape_tex(card.grad)]
        if card.is_call:
            lines = [f"${format_math(card.grad)}$" if card.grad else "", escape_tex(card.value)]
        for row, line in enumerate(filter(None, lines)):
            yield (
                f"\\node[words, small] at {_coordinate(x + PADDING, y + HEADER_HEIGHT + 14 + ROW_HEIGHT * row)} "
                f"{{{line}}};"
            )
        return
    top, right = y + HEADER_HEIGHT + 18, x + heatmaps.divider_x + 5
    wash = (
        _coordinate(x + heatmaps.divider_x, y + HEADER_HEIGHT),
        _coordinate(x + card.width - 0.8, top + heatmaps.height + 6),
    )
    yield f"\\fill[{'mgpage' if 'pale' in card.state else 'mgwash'}] {wash[0]} rectangle {wash[1]};"
    for left, caption, colour, stats, placeholder in (
        (x + PADDING, "data", "mgforward", heatmaps.value, heatmaps.value_placeholder),
        (right, f"grad {card.sum_label}".strip(), "mgbackward", heatmaps.grad, heatmaps.grad_placeholder),
    ):
        caption_tex = f"{escape_tex(caption)} {format_amount(placeholder)}".strip()
        yield f"\\node[words, small, text={colour}] at {_coordinate(left, y + HEADER_HEIGHT + 13)} {{{caption_tex}}};"
        if stats:
            yield from _heatmap_commands(
                heat.make_cells(stats, heatmaps.max_magnitude), Box(left, top, heatmaps.width, heatmaps.height)
            )
    note = _coordinate(x + PADDING, top + heatmaps.height + 16)
    yield f"\\node[words, small, text=mgmuted] at {note} {{{escape_tex(heatmaps.note)}}};"


def _heatmap_commands(cells: heat.Cells, box: Box) -> Iterator[str]:
    x, y, width, height = box
    if not cells.rows or not cells.cols:
        return
    yield (
        f"\\begin{{scope}}[shift={{{_coordinate(x, y)}}}, xscale={width / cells.cols:.4f}, "
        f"yscale={height / cells.rows:.4f}]"
    )
    yield f"  \\fill[mgzero] (0,0) rectangle ({cells.cols},{cells.rows});"
    for (sign, shade), runs in sorted(cells.runs.items()):
        paths = " ".join(f"({col},{row}) rectangle +({long},1)" for col, row, long in runs)
        yield f"  \\fill[mg{sign}!{100 * shade / heat.SHADES:g}!mgzero] {paths};"
    for col, row in cells.crossed:
        yield f"  \\draw[line width=0.4pt] ({col},{row}) -- +(1,1) ({col + 1},{row}) -- +(-1,1);"
    yield "\\end{scope}"
    yield f"\\draw[mgrim, line width=0.75pt] {_coordinate(x, y)} rectangle {_coordinate(x + width, y + height)};"


def _stack_commands(node: str, stack: Stack, box: Box) -> Iterator[str]:
    """Yield the commands that draw a closed block."""
    for offset in (6, 3):
        sides = f"minimum width={_points(stack.width)}, minimum height={_points(stack.height)}"
        yield f"\\node[box, {sides}] at {_coordinate(box.x + offset, box.y + offset)} {{}};"
    kind = "pale" if stack.progress == (0.0, 0.0) else "output" if stack.is_output else "block"
    title = " ".join(
        filter(None, [f"\\textbf{{{escape_tex(stack.name)}}}", escape_tex(stack.kind), escape_tex(stack.badge)])
    )
    options = "[alarm]" if stack.bad else ""
    sides = f"{{{_points(stack.width)}}}{{{_points(stack.height)}}}"
    second_header = ""
    if stack.second_line:
        corners = "path picture bounding box.north"
        second_header = (
            f"\\fill[sharp corners, mg{kind}head] ([yshift={_points(-HEADER_HEIGHT)}]{corners} west) "
            f"rectangle ([yshift={_points(-stack.header_height)}]{corners} east);"
        )
    corner = _coordinate(box.x, box.y)[1:-1]
    yield f"\\mgbox{options}{{{node}}}{{{kind}}}{{{corner}}}{sides}{{{second_header}}}{{{title}}}"
    if stack.second_line:
        position = _coordinate(box.x + PADDING, box.y + 17 + SECOND_LINE_OFFSET)
        yield f"\\node[words, text=mg{kind}title] at {position} {{\\textbf{{{escape_tex(stack.second_line)}}}}};"
    for row, (caption, label) in enumerate(stack.rows):
        y = box.y + stack.header_height + ROW_HEIGHT * row + 15
        yield (
            f"\\node[words, small, text=mgmuted] at {_coordinate(box.x + PADDING, y)} "
            f"{{{escape_tex(caption or label)}}};"
        )
        if caption:
            position = _coordinate(box.x + stack.width - PADDING, y)
            yield f"\\node[words, anchor=base east] at {position} {{{format_amount(label)}}};"
    for index, fraction in enumerate(stack.progress or ()):
        (x, y), length = (box.x + PADDING, box.y + stack.height - 14 + 6 * index), stack.width - 2 * PADDING
        colour = ("mgforward", "mgbackward")[index]
        yield f"\\draw[mgrim, line width=3pt] {_coordinate(x, y)} -- {_coordinate(x + length, y)};"
        if fraction:
            yield f"\\draw[{colour}, line width=3pt] {_coordinate(x, y)} -- {_coordinate(x + fraction * length, y)};"


def _mention_command(node: str, mention: Mention, box: Box) -> str:
    """Return the command that draws a mention of an item in an earlier row."""
    sides = f"minimum width={_points(box.width)}, minimum height={_points(box.height)}"
    style = f"box, rounded corners=7.5pt, densely dotted, small, text=mgmuted, {sides}"
    return f"\\node[{style}] ({node}) at {_coordinate(box.x, box.y)} {{{escape_tex(mention.text)}}};"


def _frame_commands(frame: Frame, box: Box) -> Iterator[str]:
    """Yield the commands that draw the frame of an open block."""
    x, y, width, height = box
    end = _coordinate(x + width, y + 22)
    yield f"\\fill[mgrim, opacity=0.55, rounded corners=2pt] {_coordinate(x, y)} rectangle {end};"
    yield (
        f"\\draw[mgline, densely dotted, rounded corners=4pt] {_coordinate(x, y)} rectangle "
        f"{_coordinate(x + width, y + height)};"
    )
    note = f"\\enspace {escape_tex(frame.note)}" if frame.note else ""
    yield f"\\node[words, small] at {_coordinate(x + PADDING, y + 15)} {{\\textbf{{{escape_tex(frame.name)}}}{note}}};"


def _overlay_commands(scene: Scene, active: Active, radius: float) -> Iterator[str]:
    """Yield the marks of the active event: a ring around the item, the gradient's arrowhead and the edge's pill."""
    box = scene.boxes[active.item]
    glow, core_colour = _GLOW_COLOURS[active.css_class]
    for offset, style in ((5, f"{glow}, opacity=0.5, line width=6.75pt"), (2, f"{core_colour}, line width=1.9pt")):
        start, end = (
            _coordinate(box.x - offset, box.y - offset),
            _coordinate(box.x + box.width + offset, box.y + box.height + offset),
        )
        yield f"\\draw[{style}, rounded corners={_points(radius + offset)}] {start} rectangle {end};"
    for wire in active.wires if active.direction == "backward" else ():
        x, y = scene.routes[wire][0]
        tips = [
            _coordinate(x + 1, y),
            _coordinate(x + 1 + 1.6 * ARROWHEAD_LENGTH, y - 5.6),
            _coordinate(x + 1 + 1.6 * ARROWHEAD_LENGTH, y + 5.6),
        ]
        yield f"\\fill[{glow}] {' -- '.join(tips)} -- cycle;"
    if active.label:
        (x, y), (to_x, to_y) = active.edge_midpoint, active.pill_center
        if active.wires and abs(y - to_y) >= 18 * active.pill_scale:
            yield f"\\draw[{glow}] {_coordinate(x, y)} -- {_coordinate(x + (to_x - x) * 0.3, to_y)};"
        fill = ", fill=mgnegative" if "less" in active.css_class else ""
        zoom = "" if active.pill_scale == 1 else f", scale={active.pill_scale:.3g}, transform shape"
        yield f"\\node[pill{fill}{zoom}] at {_coordinate(to_x, to_y)} {{${format_math(active.label)}$}};"
