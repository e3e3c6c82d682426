r"""Export to TikZ, for papers: TeX typesets all text, formulas and values in math mode.

The document compiles with pdflatex or lualatex and needs only amsmath and TikZ. A unit is a pixel of the SVG, 0.75 pt.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from minigrad_viz.pictures import heat, tex
from minigrad_viz.pictures.boxes import SECOND, Frame, Mention, Stack
from minigrad_viz.pictures.cards import HEAD, PAD, RIM, ROW, Card, Pictures
from minigrad_viz.pictures.curves import TIP, Point, short
from minigrad_viz.pictures.overlay import AROUND, Active, active_at, corner_of
from minigrad_viz.pictures.palette import THEMES, Theme
from minigrad_viz.pictures.scene import Box, Scene, scene
from minigrad_viz.pictures.strokes import Strokes
from minigrad_viz.pictures.svg import MARGIN, flowing
from minigrad_viz.pictures.tex import amount, math, name, text
from minigrad_viz.trace import Trace
from minigrad_viz.trace.history import Moment

__all__ = ["tikz"]

_PAGE = r"""% A graph drawn by minigrad_viz. Compile with pdflatex or lualatex.
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
_GLOWS = {
    "forward": ("mghalo", "mgforward"),
    "backward": ("mghot", "mghot"),
    "backward less": ("mgnegative", "mgnegative"),
}
_HEADS = {
    "leaf": ("leaf", "on-leaf"),
    "op": ("op", "on-op"),
    "block": ("rim", "ink"),
    "output": ("output", "on-output"),
    "leafoutput": ("output", "on-output"),
    "broken": ("op", "on-op"),
    "pale": ("page", "muted"),
}


def tikz(
    trace: Trace, opened: Collection[int] | None = None, now: Moment | None = None, theme: Theme | None = None
) -> str:
    """Return the drawing of a trace, or of a moment of it, as a LaTeX document; the arguments are as in `picture`."""
    seen = scene(trace, opened, now.timeline if now else None)
    colours = dict(THEMES[theme or "light"])
    if theme != "dark":
        colours["page"] = "#ffffff"  # the colour of paper
    around = AROUND if now else MARGIN
    width, height = seen.width + 2 * MARGIN, seen.height + 2 * around
    lines = [
        f"\\definecolor{{mg{key.replace('-', '')}}}{{HTML}}{{{colour[1:].upper()}}}" for key, colour in colours.items()
    ]
    for kind, (head, title) in _HEADS.items():
        lines.append(f"\\colorlet{{mg{kind}head}}{{mg{head.replace('-', '')}}}")
        lines.append(f"\\colorlet{{mg{kind}title}}{{mg{title.replace('-', '')}}}")
    corners = f"({-MARGIN:g},{-around:g}) rectangle ({short(seen.width + MARGIN)},{short(seen.height + around)})"
    ground = "\\fill[mgpage]" if theme == "dark" else "\\path"
    body = [f"  {ground} {corners};", *(f"  {line}" for line in _body(seen, now))]
    page = _PAGE.replace("COLOURS", "\n".join(lines)).replace("BODY", "\n".join(body))
    return page.replace("WIDTH", f"{0.75 * width:.2f}").replace("HEIGHT", f"{0.75 * height:.2f}")


def _body(seen: Scene, now: Moment | None) -> Iterator[str]:
    """Yield the drawing commands, from back to front."""
    active = active_at(seen, now) if now else None
    parts = [seen.part_at(at, now) for at in range(len(seen.items))] if now else seen.parts
    placed = [(f"n{k}", part, box) for k, (part, box) in enumerate(zip(parts, seen.boxes, strict=True))]
    for _, part, box in placed:
        if isinstance(part, Frame):
            yield from _frame(part, box)
    trace = seen.trace
    known = now is not None or (trace.grads and trace.fresh())
    strokes = Strokes(trace.passes[0] if known and trace.passes else None)
    for at in range(len(seen.wires)):
        yield _edge(seen, at, now, strokes)
    if active and active.wires:
        paths = " ".join(_route(seen.routes[at]) for at in active.wires)
        colour = _GLOWS[active.look][0]
        yield f"\\draw[{colour}, line width=3.4pt] {paths};"
    for at in range(len(seen.wires)):
        yield from _label(seen, at, now)
    for node, part, box in placed:
        if isinstance(part, Card):
            yield from _card(node, part, box)
        elif isinstance(part, Stack):
            yield from _stack(node, part, box)
        elif isinstance(part, Mention):
            yield _mention(node, part, box)
    if active:
        yield from _glow(seen, active, corner_of(parts[active.at]))


def _at(x: float, y: float) -> str:
    return f"({short(x)},{short(y)})"


def _pt(pixels: float) -> str:
    return f"{0.75 * pixels:.2f}".rstrip("0").rstrip(".") + "pt"


# --- edges -----------------------------------------------------------------------------------------------------------


def _route(route: list[Point]) -> str:
    x, y = route[0]
    parts = [_at(x, y)]
    for to_x, to_y in route[1:]:
        middle = (x + to_x) / 2
        bent = f".. controls {_at(middle, y)} and {_at(middle, to_y)} .. "
        parts.append(f"{'-- ' if y == to_y else bent}{_at(to_x, to_y)}")
        x, y = to_x, to_y
    return " ".join(parts)


def _edge(seen: Scene, at: int, now: Moment | None, strokes: Strokes) -> str:
    wire = seen.wires[at]
    time = seen.time_of(wire, now) if now else ""
    back = now is not None and (time == "done" or now.edge in wire.edges)
    marks = ["edge", "" if flowing(seen.trace, wire) else "still", time, "back" if back else ""]
    if (now is None or time == "done") and (stroke := strokes.of(wire.edges)):
        colour = {"zero": "mgline, dashed", "wild": "mgalarm"}.get(stroke.sign, f"mg{stroke.sign}")
        marks.append(f"{colour}, line width={_pt(stroke.width)}, opacity={stroke.opacity:.2f}")
    return f"\\draw[{', '.join(filter(None, marks))}] {_route(seen.routes[at])};"


def _label(seen: Scene, at: int, now: Moment | None) -> Iterator[str]:
    """Yield the label with the local derivative: its formula, if that fits, and its value."""
    label = seen.label_at(at, now) if now else seen.labels[at]
    if label:
        (x, _), y = seen.routes[at][-1], seen.heights[at]
        rule, equals, number = label.rpartition(" = ")
        formula = seen.trace.local_formula(seen.wires[at].edges[0], 10)
        left = f"{tex.formula(formula)} = " if equals and formula is not None else text(rule)
        yield f"\\node[local] at {_at(x - TIP - 4, y)} {{${left}{math(number)}$}};"


# --- nodes -----------------------------------------------------------------------------------------------------------


def _card(node: str, card: Card, box: Box) -> Iterator[str]:
    """Yield a node: its name with its formula, its value and its gradient."""
    kind = _kind(card)
    x, y = box.x + (RIM if "output" in card.kind else 0), box.y + (RIM if "output" in card.kind else 0)
    width, options = _pt(card.width), f"[{', '.join(_marks(card))}]" if _marks(card) else ""
    if kind == "constant":
        yield (
            f"\\node[box, rounded corners=9pt, dashed, minimum width={width}, minimum height={_pt(card.height)}] "
            f"({node}) at {_at(x, y)} {{${math(card.value)}$}};"
        )
        return
    rule = "" if card.formula is None else f" = {tex.formula(card.formula)}"
    title = f"${name(card.name)}{rule}$" if not card.call else f"${name(card.name)}$ {text(card.rule.strip())}"
    if not card.call and card.pictures is None and card.height == HEAD + 2 * ROW and not card.kind.startswith("broken"):
        total = f"{text(card.sum)}\\enspace " if card.sum else ""
        grad = f"{{\\fontsize{{8}}{{10}}\\selectfont {total}}}" if total else ""
        yield (
            f"\\mgcard{options}{{{node}}}{{{kind}}}{{{_at(x, y)[1:-1]}}}{{{width}}}{{{title}}}"
            f"{{{amount(card.value)}}}{{{grad}{amount(card.grad)}}}"
        )
    else:
        corner = f"{_at(x, y)[1:-1]}"
        yield f"\\mgbox{options}{{{node}}}{{{kind}}}{{{corner}}}{{{width}}}{{{_pt(card.height)}}}{{}}{{{title}}}"
        yield from _inside(card, card.pictures, x, y)
    if "output" in card.kind:
        radius = 9 if "leaf" in card.kind else 3
        yield (
            f"\\draw[mgoutput, rounded corners={radius + 2}pt] ([shift={{(-2.6pt,2.6pt)}}]{node}.north west) "
            f"rectangle ([shift={{(2.6pt,-2.6pt)}}]{node}.south east);"
        )


def _kind(card: Card) -> str:
    if "pale" in card.state:
        return "pale"
    kind, _, output = card.kind.partition(" ")
    return {"op": "output", "leaf": "leafoutput"}.get(kind, kind) if output else kind


def _marks(card: Card) -> list[str]:
    return [mark for mark, there in (("dashed", card.still), ("alarm", card.bad)) if there]


def _inside(card: Card, pictures: Pictures | None, x: float, y: float) -> Iterator[str]:
    """Yield the contents of the box of a tensor, of a call that raised, or of a call of a captured step."""
    if pictures is None:
        lines = [text(card.value), text(card.grad)]
        if card.call:
            lines = [f"${math(card.grad)}$" if card.grad else "", text(card.value)]
        for row, line in enumerate(filter(None, lines)):
            yield f"\\node[words, small] at {_at(x + PAD, y + HEAD + 14 + ROW * row)} {{{line}}};"
        return
    top, right = y + HEAD + 18, x + pictures.middle + 5
    wash = _at(x + pictures.middle, y + HEAD), _at(x + card.width - 0.8, top + pictures.height + 6)
    yield f"\\fill[{'mgpage' if 'pale' in card.state else 'mgwash'}] {wash[0]} rectangle {wash[1]};"
    for left, caption, colour, shown, none in (
        (x + PAD, "data", "mgforward", pictures.value, pictures.no_value),
        (right, f"grad {card.sum}".strip(), "mgbackward", pictures.grad, pictures.no_grad),
    ):
        said = f"{text(caption)} {amount(none)}".strip()
        yield f"\\node[words, small, text={colour}] at {_at(left, y + HEAD + 13)} {{{said}}};"
        if shown:
            yield from _heatmap(heat.cells_of(shown, pictures.most), Box(left, top, pictures.width, pictures.height))
    note = _at(x + PAD, top + pictures.height + 16)
    yield f"\\node[words, small, text=mgmuted] at {note} {{{text(pictures.note)}}};"


def _heatmap(cells: heat.Cells, box: Box) -> Iterator[str]:
    x, y, width, height = box
    if not cells.rows or not cells.cols:
        return
    yield f"\\begin{{scope}}[shift={{{_at(x, y)}}}, xscale={width / cells.cols:.4f}, yscale={height / cells.rows:.4f}]"
    yield f"  \\fill[mgzero] (0,0) rectangle ({cells.cols},{cells.rows});"
    for (sign, shade), runs in sorted(cells.runs.items()):
        paths = " ".join(f"({col},{row}) rectangle +({long},1)" for col, row, long in runs)
        yield f"  \\fill[mg{sign}!{100 * shade / heat.SHADES:g}!mgzero] {paths};"
    for col, row in cells.crossed:
        yield f"  \\draw[line width=0.4pt] ({col},{row}) -- +(1,1) ({col + 1},{row}) -- +(-1,1);"
    yield "\\end{scope}"
    yield f"\\draw[mgrim, line width=0.75pt] {_at(x, y)} rectangle {_at(x + width, y + height)};"


def _stack(node: str, stack: Stack, box: Box) -> Iterator[str]:
    """Yield a closed block."""
    for off in (6, 3):
        sides = f"minimum width={_pt(stack.width)}, minimum height={_pt(stack.height)}"
        yield f"\\node[box, {sides}] at {_at(box.x + off, box.y + off)} {{}};"
    kind = "pale" if stack.progress == (0.0, 0.0) else "output" if stack.output else "block"
    title = " ".join(filter(None, [f"\\textbf{{{text(stack.name)}}}", text(stack.kind), text(stack.badge)]))
    options = "[alarm]" if stack.bad else ""
    sides = f"{{{_pt(stack.width)}}}{{{_pt(stack.height)}}}"
    head = ""
    if stack.more:
        corners = "path picture bounding box.north"
        head = (
            f"\\fill[sharp corners, mg{kind}head] ([yshift={_pt(-HEAD)}]{corners} west) "
            f"rectangle ([yshift={_pt(-stack.head)}]{corners} east);"
        )
    yield f"\\mgbox{options}{{{node}}}{{{kind}}}{{{_at(box.x, box.y)[1:-1]}}}{sides}{{{head}}}{{{title}}}"
    if stack.more:
        place = _at(box.x + PAD, box.y + 17 + SECOND)
        yield f"\\node[words, text=mg{kind}title] at {place} {{\\textbf{{{text(stack.more)}}}}};"
    for row, (caption, said) in enumerate(stack.rows):
        y = box.y + stack.head + ROW * row + 15
        yield f"\\node[words, small, text=mgmuted] at {_at(box.x + PAD, y)} {{{text(caption or said)}}};"
        if caption:
            place = _at(box.x + stack.width - PAD, y)
            yield f"\\node[words, anchor=base east] at {place} {{{amount(said)}}};"
    for at, share in enumerate(stack.progress or ()):
        (x, y), long = (box.x + PAD, box.y + stack.height - 14 + 6 * at), stack.width - 2 * PAD
        colour = ("mgforward", "mgbackward")[at]
        yield f"\\draw[mgrim, line width=3pt] {_at(x, y)} -- {_at(x + long, y)};"
        if share:
            yield f"\\draw[{colour}, line width=3pt] {_at(x, y)} -- {_at(x + share * long, y)};"


def _mention(node: str, mention: Mention, box: Box) -> str:
    """Return the card that stands for an item of an earlier row."""
    sides = f"minimum width={_pt(box.width)}, minimum height={_pt(box.height)}"
    style = f"box, rounded corners=7.5pt, densely dotted, small, text=mgmuted, {sides}"
    return f"\\node[{style}] ({node}) at {_at(box.x, box.y)} {{{text(mention.text)}}};"


def _frame(frame: Frame, box: Box) -> Iterator[str]:
    """Yield an open block."""
    x, y, width, height = box
    end = _at(x + width, y + 22)
    yield f"\\fill[mgrim, opacity=0.55, rounded corners=2pt] {_at(x, y)} rectangle {end};"
    yield f"\\draw[mgline, densely dotted, rounded corners=4pt] {_at(x, y)} rectangle {_at(x + width, y + height)};"
    note = f"\\enspace {text(frame.note)}" if frame.note else ""
    yield f"\\node[words, small] at {_at(x + PAD, y + 15)} {{\\textbf{{{text(frame.name)}}}{note}}};"


def _glow(seen: Scene, active: Active, corner: float) -> Iterator[str]:
    """Yield the active marks: a ring around the item, the arrowhead of the gradient, and the pill on the edge."""
    box = seen.boxes[active.at]
    glow, core = _GLOWS[active.look]
    for out, style in ((5, f"{glow}, opacity=0.5, line width=6.75pt"), (2, f"{core}, line width=1.9pt")):
        start, end = _at(box.x - out, box.y - out), _at(box.x + box.width + out, box.y + box.height + out)
        yield f"\\draw[{style}, rounded corners={_pt(corner + out)}] {start} rectangle {end};"
    for at in active.wires if active.way == "backward" else ():
        x, y = seen.routes[at][0]
        tips = [_at(x + 1, y), _at(x + 1 + 1.6 * TIP, y - 5.6), _at(x + 1 + 1.6 * TIP, y + 5.6)]
        yield f"\\fill[{glow}] {' -- '.join(tips)} -- cycle;"
    if active.words:
        (x, y), (to_x, to_y) = active.middle, active.place
        if active.wires and abs(y - to_y) >= 18 * active.large:
            yield f"\\draw[{glow}] {_at(x, y)} -- {_at(x + (to_x - x) * 0.3, to_y)};"
        hue = ", fill=mgnegative" if "less" in active.look else ""
        zoom = "" if active.large == 1 else f", scale={active.large:.3g}, transform shape"
        yield f"\\node[pill{hue}{zoom}] at {_at(to_x, to_y)} {{${math(active.words)}$}};"
