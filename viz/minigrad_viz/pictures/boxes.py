"""Blocks in a drawing: a stack of sheets with a summary for a closed block, a frame for an open one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from minigrad_viz.pictures.cards import HEAD, PAD, ROW, strip
from minigrad_viz.pictures.quantities import shape_text, value
from minigrad_viz.trace.columns import finite
from minigrad_viz.trace.notation import escape, fit, text_width
from minigrad_viz.trace.rows import About
from minigrad_viz.trace.trace import Trace
from minigrad_viz.trace.visible import Item, Wire

__all__ = ["COLOURS", "SECOND", "SHAPES", "Frame", "Mention", "Stack", "stacks"]

_STACK = 6.0  # offset of the sheets behind a stack, in pixels
_WIDEST = 250.0  # maximum width of a label, in pixels
_MENTIONED = 170.0  # maximum width of the name in a mention, in pixels
SECOND = 16.0  # distance between the two lines of a name
_LISTED = 3  # maximum shapes that are listed

SHAPES = (
    ".mg .stack{{stroke-width:1}}.mg .hull{{stroke-width:1;stroke-dasharray:1 3;stroke-linecap:round}}"
    ".mg .part{{font-size:11.5px;font-weight:600}}.mg .many{{font-weight:400}}.mg .warn{{font-weight:700}}"
    ".mg .bit{{font-size:11px}}"
    ".mg .mention .box{{stroke-dasharray:2 2;stroke-width:1}}.mg .mention text{{font-size:11px}}"
)
COLOURS = (
    ".mg .stack{{fill:{card};stroke:{line}}}.mg .block .head{{fill:{rim}}}.mg .block.output .head{{fill:{output}}}"
    ".mg .hull{{fill:{ink};fill-opacity:.025;stroke:{line}}}.mg .bar{{fill:{rim};fill-opacity:.55}}"
    ".mg .warn{{fill:{alarm}}}"
)


@dataclass(slots=True)
class Frame:
    """The frame of an open block, sized by the layout."""

    name: str
    tooltip: str
    note: str

    @property
    def size(self) -> tuple[float, float]:
        """The minimum width and height, those of the header."""
        width = text_width(self.name, 11.5, True) + text_width(self.note, 11) + 2 * PAD
        return math.ceil(width + (8 if self.note else 0)), 22.0

    def draw(self, x: float, y: float, width: float, height: float) -> str:
        """Return the SVG of the frame, with its top left corner at (x, y)."""
        note = f'<tspan class="bit dim many" dx="8">{escape(self.note)}</tspan>' if self.note else ""
        return (
            f'<g class="frame" transform="translate({x:g} {y:g})"><title>{escape(self.tooltip)}</title>'
            f'<rect class="hull" width="{width:g}" height="{height:g}" rx="6"/>'
            f'<path class="bar" d="{strip(width, 0, 22, 6)}"/>'
            f'<text class="part" x="{PAD:g}" y="15">{escape(self.name)}{note}</text></g>'
        )


@dataclass(slots=True)
class Stack:
    """The box of a closed block."""

    name: str
    kind: str
    badge: str
    tooltip: str
    rows: tuple[tuple[str, str], ...]
    bad: bool
    output: bool
    width: float
    path: str
    """The name, prefixed with the names of the enclosing modules except the outermost."""
    more: str = ""
    """The second line of a long name."""
    progress: tuple[float, float] | None = None
    """At a moment, the fractions of its operations that are computed and of its gradients that are complete."""

    @property
    def head(self) -> float:
        """The height of its header."""
        return HEAD + (SECOND if self.more else 0.0)

    @property
    def height(self) -> float:
        """The height without the sheets behind it."""
        return self.head + ROW * len(self.rows) + (3 if self.progress is None else 18)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height with the sheets behind it."""
        return self.width + _STACK, self.height + _STACK

    def draw(self, x: float, y: float) -> str:
        """Return the SVG of the box, with its top left corner at (x, y)."""
        w, h = self.width, self.height
        marks = (" output" if self.output else "", " bad" if self.bad else "")
        classes = f"block{''.join(marks)}{' pale' if self.progress == (0.0, 0.0) else ''}"
        title = f"<title>{escape(self.tooltip)}</title>" if self.progress is None else ""
        parts = [f'<g class="{classes}" transform="translate({x:g} {y:g})">{title}']
        for off in (_STACK, _STACK / 2):
            parts.append(f'<rect class="stack" x="{off:g}" y="{off:g}" width="{w:g}" height="{h:g}" rx="5"/>')
        colour = "" if self.output else ' class="bw"'
        badge = f'<tspan class="many" dx="8">{escape(self.kind)}</tspan>' if self.kind else ""
        badge += f'<tspan{colour} dx="8">{self.badge}</tspan>' if self.badge else ""
        more = f'<tspan x="{PAD:g}" dy="{SECOND:g}">{escape(self.more)}</tspan>' if self.more else ""
        parts.append(
            f'<rect class="box" width="{w:g}" height="{h:g}" rx="5"/>'
            f'<path class="head" d="{strip(w, 0, self.head, 5)}"/>'
            f'<text class="name" x="{PAD:g}" y="17">{escape(self.name)}{more}{badge}</text>'
        )
        for at, (caption, text) in enumerate(self.rows):
            line = self.head + ROW * at + 15
            if caption:
                parts.append(f'<text class="bit dim" x="{PAD:g}" y="{line:g}">{caption}</text>')
                parts.append(f'<text class="num" x="{w - PAD:g}" y="{line:g}">{escape(text)}</text>')
            else:
                parts.append(f'<text class="bit" x="{PAD:g}" y="{line:g}">{escape(text)}</text>')
        for at, share in enumerate(self.progress or ()):
            bar = f'x="{PAD:g}" y="{h - 16 + 6 * at:g}" height="4" rx="2"'
            parts.append(f'<rect class="way" {bar} width="{w - 2 * PAD:g}"/>')
            parts.append(f'<rect class="{("fw", "bw")[at]}" {bar} width="{share * (w - 2 * PAD):g}"/>')
        parts.append(f'<rect class="box" style="fill:none" width="{w:g}" height="{h:g}" rx="5"/></g>')
        return "".join(parts)


@dataclass(slots=True)
class Mention:
    """A small card that stands for an item of an earlier row."""

    name: str
    tooltip: str

    @property
    def size(self) -> tuple[float, float]:
        """Width and height."""
        return math.ceil(text_width(self.text, 11) + 18.0), 20.0

    @property
    def text(self) -> str:
        """The name, truncated to the available width."""
        return fit(self.name, _MENTIONED, 11)

    def draw(self, x: float, y: float) -> str:
        """Return the SVG of the card, with its top left corner at (x, y)."""
        width, height = self.size
        return (
            f'<g class="mention" transform="translate({x:g} {y:g})"><title>{escape(self.tooltip)}</title>'
            f'<rect class="box" width="{width:g}" height="{height:g}" rx="10"/>'
            f'<text class="dim" x="9" y="14">{escape(self.text)}</text></g>'
        )


def stacks(trace: Trace, items: Sequence[Item], wires: Sequence[Wire]) -> dict[int, Stack | Frame]:
    """Return the stacks and frames of a drawing, by item."""
    inside = _contents(trace)
    enter: dict[int, dict[int, None]] = {}
    leave: dict[int, dict[int, None]] = {}
    for wire in wires:
        values = dict.fromkeys(trace.operand[edge] for edge in wire.edges)
        enter.setdefault(wire.end, {}).update(values)
        leave.setdefault(wire.start, {}).update(values)
    return {
        at: _frame(trace, item.block, inside)
        if item.framed
        else _stack(trace, item.block, inside, list(enter.get(at, ())), list(leave.get(at, ())))
        for at, item in enumerate(items)
        if item.block >= 0
    }


@dataclass(slots=True)
class _Inside:
    """The contents of a block, including nested blocks."""

    ops: Counter[str]
    leaves: int
    bad: bool
    outputs: list[int]


def _contents(trace: Trace) -> list[_Inside]:
    inside = [_Inside(Counter(), 0, False, []) for _ in trace.blocks]
    for (k, op), n in Counter(zip(trace.block, trace.op, strict=True)).items():
        if op >= 0:
            inside[k].ops[trace.ops[op].name] += n
    for (k, kind), n in Counter(zip(trace.block, trace.kinds, strict=True)).items():
        inside[k].leaves += n if kind == "l" else 0
        inside[k].bad |= kind == "x"
    for index in {*trace.late, *trace.not_finite(), *(at for at, grad in trace.grads.items() if not finite(grad))}:
        inside[trace.block[index]].bad = True
    for output in trace.outputs:
        inside[trace.block[output]].outputs.append(output)
    for k in range(len(inside) - 1, 0, -1):
        box, outer = inside[k], inside[trace.blocks[k].outer]
        outer.ops += box.ops
        outer.leaves += box.leaves
        outer.bad |= box.bad
        outer.outputs += box.outputs
    return inside


def _said(inside: _Inside) -> str:
    """Return the numbers of operations and leaves in a block, as text."""
    ops, leaves = inside.ops.total(), inside.leaves
    parts = [(ops, "operation"), (leaves, "leaf")]
    words = {"operation": "operations", "leaf": "leaves"}
    return " · ".join(f"{n:,} {one if n == 1 else words[one]}" for n, one in parts if n) or "constants"


def _tooltip(trace: Trace, k: int, inside: _Inside) -> str:
    """Return the tooltip of a block: its path, and its operations by descending count."""
    path = []
    at = k
    while at > 0:
        path.append(trace.blocks[at].name)
        at = trace.blocks[at].outer
    most = sorted(inside.ops.items(), key=lambda pair: (-pair[1], pair[0]))
    counts = ", ".join(f"{n:,} {name}" for name, n in most[:8]) + (", …" if len(most) > 8 else "")
    about = trace.modules.get(k)
    said = [] if about is None else [f"{about.kind} {_parameters(about)}".strip(), *about.shared]
    return "\n".join(filter(None, [" / ".join(reversed(path)), *said, _said(inside), counts]))


def _parameters(about: About) -> str:
    """Return the parameter count of a module as text; "" for none."""
    return f"{about.parameters:,} parameter{'' if about.parameters == 1 else 's'}" if about.parameters else ""


def _badge(trace: Trace, k: int) -> str:
    copies = trace.blocks[k].copies
    return f"×{copies:,}" if copies else ""


def _frame(trace: Trace, k: int, inside: Sequence[_Inside]) -> Frame:
    about = trace.modules.get(k)
    kind = "" if about is None else about.kind
    said = [] if about is None else [kind, _parameters(about), *about.shared[:1]]
    note = " · ".join(filter(None, [_badge(trace, k), *said]))
    return Frame(fit(trace.blocks[k].name, _WIDEST, 11.5, True), _tooltip(trace, k, inside[k]), note)


def _stack(trace: Trace, k: int, inside: Sequence[_Inside], enter: list[int], leave: list[int]) -> Stack:
    box, badge = inside[k], _badge(trace, k)
    leave = [*leave, *(output for output in box.outputs if output not in leave)]
    name, more = _lines(trace.blocks[k].name)
    about = trace.modules.get(k)
    kind = "" if about is None else about.kind
    rows = [("", _said(box) if about is None else _parameters(about) or _said(box))]
    rows += [("", fit(text, _WIDEST, 11)) for text in (() if about is None else about.shared[:_LISTED])]
    rows += [("in", fit(_values(trace, enter), _WIDEST, 12.5))] if enter else []
    rows += [("out", fit(_values(trace, leave), _WIDEST, 12.5))] if leave else []
    widths = [text_width(text, 12.5) + text_width(caption, 11) + (14 if caption else 0) for caption, text in rows]
    widths.append(
        max(text_width(name, 13, True), text_width(more, 13, True))
        + (text_width(kind, 13) + 8 if kind else 0)
        + (text_width(badge, 13, True) + 10 if badge else 0)
    )
    width = math.ceil(max(96.0, *widths) + 2 * PAD)
    return Stack(
        name,
        kind,
        badge,
        _tooltip(trace, k, box),
        tuple(rows),
        box.bad,
        bool(box.outputs),
        width,
        _path(trace, k),
        more,
    )


def _path(trace: Trace, k: int) -> str:
    """Return the name of a block qualified by its enclosing modules, for use outside of them."""
    name, k = trace.blocks[k].name, trace.blocks[k].outer
    while k > 0:
        around, k = trace.blocks[k], trace.blocks[k].outer
        if k > 0 and around.module is not None:
            name = f"{around.name}.{name}"
    return name


def _lines(name: str) -> tuple[str, str]:
    """Split a long name at a space into two lines of similar length; the second is "" for a short name."""
    if text_width(name, 13, True) <= _WIDEST or " " not in name:
        return fit(name, _WIDEST, 13, True), ""
    middle = len(name) / 2
    at = min((k for k, letter in enumerate(name) if letter == " "), key=lambda k: (name[k - 1] != ",", abs(k - middle)))
    return fit(name[:at], _WIDEST, 13, True), fit(name[at + 1 :], _WIDEST, 13, True)


def _values(trace: Trace, nodes: list[int]) -> str:
    """Return the inputs or outputs of a block as text: a value, shapes, or a count."""
    tensors = [trace.tensors[node] for node in nodes if node in trace.tensors]
    if len(tensors) == len(nodes):
        shapes = Counter(shape_text(tensor.shape) for tensor in tensors)
        if len(shapes) <= _LISTED:
            return ", ".join(shape if n == 1 else f"{n:,} of {shape}" for shape, n in shapes.items())
    if len(nodes) == 1:
        return value(trace, nodes[0])
    return f"{len(nodes):,} {'tensors' if len(tensors) == len(nodes) else 'scalars' if not tensors else 'values'}"
