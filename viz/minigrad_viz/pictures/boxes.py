"""Blocks in a drawing: closed blocks are stacks of sheets with a summary, open blocks are frames."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from minigrad_viz.pictures.cards import HEADER_HEIGHT, PADDING, ROW_HEIGHT, strip_path
from minigrad_viz.pictures.node_text import format_shape, format_value
from minigrad_viz.trace.columns import is_finite
from minigrad_viz.trace.notation import escape, fit, text_width
from minigrad_viz.trace.rows import ModuleInfo
from minigrad_viz.trace.trace import Trace
from minigrad_viz.trace.visibility import Item, Wire

__all__ = ["COLOURS", "SECOND_LINE_OFFSET", "SHAPES", "Frame", "Mention", "Stack", "make_block_parts"]

_STACK_OFFSET = 6.0  # offset between the front and back of a stack, in pixels
_MAX_LABEL_WIDTH = 250.0  # maximum width of a label, in pixels
_MAX_MENTION_WIDTH = 170.0  # maximum width of the name in a `Mention`, in pixels
SECOND_LINE_OFFSET = 16.0  # distance between the two lines of a name
_MAX_LISTED_SHAPES = 3  # maximum number of shapes in a summary

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
    """The frame of an open block, whose size is determined by the layout."""

    name: str
    tooltip: str
    note: str

    @property
    def size(self) -> tuple[float, float]:
        """The minimum width and height, which are those of the header."""
        width = text_width(self.name, 11.5, True) + text_width(self.note, 11) + 2 * PADDING
        return math.ceil(width + (8 if self.note else 0)), 22.0

    def draw(self, x: float, y: float, width: float, height: float) -> str:
        """Return the SVG of the frame, with its top left corner at (x, y)."""
        note = f'<tspan class="bit dim many" dx="8">{escape(self.note)}</tspan>' if self.note else ""
        return (
            f'<g class="frame" transform="translate({x:g} {y:g})"><title>{escape(self.tooltip)}</title>'
            f'<rect class="hull" width="{width:g}" height="{height:g}" rx="6"/>'
            f'<path class="bar" d="{strip_path(width, 0, 22, 6)}"/>'
            f'<text class="part" x="{PADDING:g}" y="15">{escape(self.name)}{note}</text></g>'
        )


@dataclass(slots=True)
class Stack:
    """The box of a closed block, drawn as a stack of sheets."""

    name: str
    kind: str
    badge: str
    tooltip: str
    rows: tuple[tuple[str, str], ...]
    bad: bool
    is_output: bool
    width: float
    qualified_name: str
    """The name with the names of the enclosing modules, except the outermost, as prefixes."""
    second_line: str = ""
    """The second line of a name that is too long for one line."""
    progress: tuple[float, float] | None = None
    """The fractions of computed operations and of complete gradients, if the drawing shows a moment."""

    @property
    def header_height(self) -> float:
        """The height of the header."""
        return HEADER_HEIGHT + (SECOND_LINE_OFFSET if self.second_line else 0.0)

    @property
    def height(self) -> float:
        """The height of the front sheet."""
        return self.header_height + ROW_HEIGHT * len(self.rows) + (3 if self.progress is None else 18)

    @property
    def size(self) -> tuple[float, float]:
        """The width and height of all sheets."""
        return self.width + _STACK_OFFSET, self.height + _STACK_OFFSET

    def draw(self, x: float, y: float) -> str:
        """Return the SVG of the box, with its top left corner at (x, y)."""
        w, h = self.width, self.height
        state_classes = (" output" if self.is_output else "", " bad" if self.bad else "")
        classes = f"block{''.join(state_classes)}{' pale' if self.progress == (0.0, 0.0) else ''}"
        title = f"<title>{escape(self.tooltip)}</title>" if self.progress is None else ""
        parts = [f'<g class="{classes}" transform="translate({x:g} {y:g})">{title}']
        for offset in (_STACK_OFFSET, _STACK_OFFSET / 2):
            parts.append(f'<rect class="stack" x="{offset:g}" y="{offset:g}" width="{w:g}" height="{h:g}" rx="5"/>')
        colour = "" if self.is_output else ' class="bw"'
        badge = f'<tspan class="many" dx="8">{escape(self.kind)}</tspan>' if self.kind else ""
        badge += f'<tspan{colour} dx="8">{self.badge}</tspan>' if self.badge else ""
        second_line = (
            f'<tspan x="{PADDING:g}" dy="{SECOND_LINE_OFFSET:g}">{escape(self.second_line)}</tspan>'
            if self.second_line
            else ""
        )
        parts.append(
            f'<rect class="box" width="{w:g}" height="{h:g}" rx="5"/>'
            f'<path class="head" d="{strip_path(w, 0, self.header_height, 5)}"/>'
            f'<text class="name" x="{PADDING:g}" y="17">{escape(self.name)}{second_line}{badge}</text>'
        )
        for index, (caption, text) in enumerate(self.rows):
            line = self.header_height + ROW_HEIGHT * index + 15
            if caption:
                parts.append(f'<text class="bit dim" x="{PADDING:g}" y="{line:g}">{caption}</text>')
                parts.append(f'<text class="num" x="{w - PADDING:g}" y="{line:g}">{escape(text)}</text>')
            else:
                parts.append(f'<text class="bit" x="{PADDING:g}" y="{line:g}">{escape(text)}</text>')
        for index, fraction in enumerate(self.progress or ()):
            bar = f'x="{PADDING:g}" y="{h - 16 + 6 * index:g}" height="4" rx="2"'
            parts.append(f'<rect class="way" {bar} width="{w - 2 * PADDING:g}"/>')
            parts.append(f'<rect class="{("fw", "bw")[index]}" {bar} width="{fraction * (w - 2 * PADDING):g}"/>')
        parts.append(f'<rect class="box" style="fill:none" width="{w:g}" height="{h:g}" rx="5"/></g>')
        return "".join(parts)


@dataclass(slots=True)
class Mention:
    """A small card that refers to an item in an earlier row of the drawing."""

    name: str
    tooltip: str

    @property
    def size(self) -> tuple[float, float]:
        """The width and height of the card."""
        return math.ceil(text_width(self.text, 11) + 18.0), 20.0

    @property
    def text(self) -> str:
        """The name, truncated to the available width."""
        return fit(self.name, _MAX_MENTION_WIDTH, 11)

    def draw(self, x: float, y: float) -> str:
        """Return the SVG of the card, with its top left corner at (x, y)."""
        width, height = self.size
        return (
            f'<g class="mention" transform="translate({x:g} {y:g})"><title>{escape(self.tooltip)}</title>'
            f'<rect class="box" width="{width:g}" height="{height:g}" rx="10"/>'
            f'<text class="dim" x="9" y="14">{escape(self.text)}</text></g>'
        )


def make_block_parts(trace: Trace, items: Sequence[Item], wires: Sequence[Wire]) -> dict[int, Stack | Frame]:
    """Return a dict that maps each block in `items` to its stack or frame."""
    contents = _block_contents(trace)
    incoming: dict[int, dict[int, None]] = {}
    outgoing: dict[int, dict[int, None]] = {}
    for wire in wires:
        values = dict.fromkeys(trace.operand[edge] for edge in wire.edges)
        incoming.setdefault(wire.end, {}).update(values)
        outgoing.setdefault(wire.start, {}).update(values)
    return {
        at: _make_frame(trace, item.block, contents)
        if item.is_frame
        else _make_stack(trace, item.block, contents, list(incoming.get(at, ())), list(outgoing.get(at, ())))
        for at, item in enumerate(items)
        if item.block >= 0
    }


@dataclass(slots=True)
class _BlockContents:
    """Statistics of a block, including its nested blocks."""

    op_counts: Counter[str]
    leaves: int
    has_alarm: bool
    outputs: list[int]


def _block_contents(trace: Trace) -> list[_BlockContents]:
    contents = [_BlockContents(Counter(), 0, False, []) for _ in trace.blocks]
    for (k, op), n in Counter(zip(trace.block, trace.op, strict=True)).items():
        if op >= 0:
            contents[k].op_counts[trace.ops[op].name] += n
    for (k, kind), n in Counter(zip(trace.block, trace.kinds, strict=True)).items():
        contents[k].leaves += n if kind == "l" else 0
        contents[k].has_alarm |= kind == "x"
    for index in {
        *trace.modified_operands,
        *trace.non_finite_nodes(),
        *(at for at, grad in trace.grads.items() if not is_finite(grad)),
    }:
        contents[trace.block[index]].has_alarm = True
    for output in trace.outputs:
        contents[trace.block[output]].outputs.append(output)
    for k in range(len(contents) - 1, 0, -1):
        inner, outer = contents[k], contents[trace.blocks[k].outer]
        outer.op_counts += inner.op_counts
        outer.leaves += inner.leaves
        outer.has_alarm |= inner.has_alarm
        outer.outputs += inner.outputs
    return contents


def _size_text(contents: _BlockContents) -> str:
    ops, leaves = contents.op_counts.total(), contents.leaves
    parts = [(ops, "operation"), (leaves, "leaf")]
    words = {"operation": "operations", "leaf": "leaves"}
    return " · ".join(f"{n:,} {one if n == 1 else words[one]}" for n, one in parts if n) or "constants"


def _tooltip(trace: Trace, k: int, contents: _BlockContents) -> str:
    """Return the tooltip of a block, with its path, its size, and its operations by descending count."""
    names = []
    block = k
    while block > 0:
        names.append(trace.blocks[block].name)
        block = trace.blocks[block].outer
    ops_by_count = sorted(contents.op_counts.items(), key=lambda pair: (-pair[1], pair[0]))
    counts = ", ".join(f"{n:,} {name}" for name, n in ops_by_count[:8]) + (", …" if len(ops_by_count) > 8 else "")
    module = trace.modules.get(k)
    details = [] if module is None else [f"{module.kind} {_parameter_text(module)}".strip(), *module.shared]
    return "\n".join(filter(None, [" / ".join(reversed(names)), *details, _size_text(contents), counts]))


def _parameter_text(module: ModuleInfo) -> str:
    return f"{module.parameters:,} parameter{'' if module.parameters == 1 else 's'}" if module.parameters else ""


def _badge(trace: Trace, k: int) -> str:
    copies = trace.blocks[k].copies
    return f"×{copies:,}" if copies else ""


def _make_frame(trace: Trace, k: int, contents: Sequence[_BlockContents]) -> Frame:
    module = trace.modules.get(k)
    kind = "" if module is None else module.kind
    details = [] if module is None else [kind, _parameter_text(module), *module.shared[:1]]
    note = " · ".join(filter(None, [_badge(trace, k), *details]))
    return Frame(fit(trace.blocks[k].name, _MAX_LABEL_WIDTH, 11.5, True), _tooltip(trace, k, contents[k]), note)


def _make_stack(
    trace: Trace, k: int, contents: Sequence[_BlockContents], inputs: list[int], outputs: list[int]
) -> Stack:
    block_contents, badge = contents[k], _badge(trace, k)
    outputs = [*outputs, *(output for output in block_contents.outputs if output not in outputs)]
    name, second_line = _split_name(trace.blocks[k].name)
    module = trace.modules.get(k)
    kind = "" if module is None else module.kind
    rows = [
        ("", _size_text(block_contents) if module is None else _parameter_text(module) or _size_text(block_contents))
    ]
    rows += [
        ("", fit(text, _MAX_LABEL_WIDTH, 11)) for text in (() if module is None else module.shared[:_MAX_LISTED_SHAPES])
    ]
    rows += [("in", fit(_values_text(trace, inputs), _MAX_LABEL_WIDTH, 12.5))] if inputs else []
    rows += [("out", fit(_values_text(trace, outputs), _MAX_LABEL_WIDTH, 12.5))] if outputs else []
    widths = [text_width(text, 12.5) + text_width(caption, 11) + (14 if caption else 0) for caption, text in rows]
    widths.append(
        max(text_width(name, 13, True), text_width(second_line, 13, True))
        + (text_width(kind, 13) + 8 if kind else 0)
        + (text_width(badge, 13, True) + 10 if badge else 0)
    )
    width = math.ceil(max(96.0, *widths) + 2 * PADDING)
    return Stack(
        name,
        kind,
        badge,
        _tooltip(trace, k, block_contents),
        tuple(rows),
        block_contents.has_alarm,
        bool(block_contents.outputs),
        width,
        _qualified_name(trace, k),
        second_line,
    )


def _qualified_name(trace: Trace, k: int) -> str:
    """Return the name of a block with the names of its enclosing modules, except the outermost, as prefixes."""
    name, k = trace.blocks[k].name, trace.blocks[k].outer
    while k > 0:
        ancestor, k = trace.blocks[k], trace.blocks[k].outer
        if k > 0 and ancestor.module is not None:
            name = f"{ancestor.name}.{name}"
    return name


def _split_name(name: str) -> tuple[str, str]:
    """Split a long name at a space into two lines of similar length. The second line of a short name is ""."""
    if text_width(name, 13, True) <= _MAX_LABEL_WIDTH or " " not in name:
        return fit(name, _MAX_LABEL_WIDTH, 13, True), ""
    middle = len(name) / 2
    split = min(
        (k for k, letter in enumerate(name) if letter == " "), key=lambda k: (name[k - 1] != ",", abs(k - middle))
    )
    return fit(name[:split], _MAX_LABEL_WIDTH, 13, True), fit(name[split + 1 :], _MAX_LABEL_WIDTH, 13, True)


def _values_text(trace: Trace, nodes: list[int]) -> str:
    """Describe the inputs or outputs of a block by their shapes, by their value if single, or by their number."""
    tensors = [trace.tensors[node] for node in nodes if node in trace.tensors]
    if len(tensors) == len(nodes):
        shapes = Counter(format_shape(tensor.shape) for tensor in tensors)
        if len(shapes) <= _MAX_LISTED_SHAPES:
            return ", ".join(shape if n == 1 else f"{n:,} of {shape}" for shape, n in shapes.items())
    if len(nodes) == 1:
        return format_value(trace, nodes[0])
    return f"{len(nodes):,} {'tensors' if len(tensors) == len(nodes) else 'scalars' if not tensors else 'values'}"
