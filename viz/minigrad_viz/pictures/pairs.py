"""Comparison cards: the values and gradients of a node in two runs, with their difference.

A tensor is shown as heatmaps of both runs on one colour scale and, if they differ, a heatmap of the second run minus
the first, on a separate scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from minigrad_viz.pictures import heat
from minigrad_viz.pictures.cards import HEAD, PAD, RIM, ROW, strip
from minigrad_viz.pictures.quantities import shape_text
from minigrad_viz.trace.arrays import line, summary
from minigrad_viz.trace.differences import Differences, scalar
from minigrad_viz.trace.gaps import Gap, share, times
from minigrad_viz.trace.notation import brief, compact, escape, fit, plain, pretty, text_width

__all__ = ["COLOURS", "SHAPES", "Pair", "apart", "gradient_texts", "pair", "value_texts"]

_WIDEST = 230.0  # maximum width of a header, in pixels
_CAPTION = 32.0  # width of the column "data" and "grad"
_TAG = 22.0  # height of a flag above a card, with its margin
_BELOW = 16.0  # height of the caption below a heatmap
_SPACE = 10.0  # gap between heatmaps
_SHORT, _LONG = (3, 6, 9, 12, 17), (6, 9, 12, 17)  # significant digits to try until two values are distinguishable

SHAPES = (
    ".mg .ne{{font-weight:700}}.mg .flag{{stroke:none}}.mg .flag+text{{font-size:11px;font-weight:700}}"
    ".mg .differs .box,.mg .differs .ring{{stroke-width:2.5}}.mg .edge.differs{{stroke-width:3.5}}"
    ".mg .same .heat{{opacity:.6}}.mg .big{{font-size:15px;font-weight:700}}"
)
COLOURS = (
    ".mg .same text,.mg .same .head+text{{fill:{muted}}}.mg .same .box,.mg .same .ring{{stroke:{rim}}}"
    ".mg .same .head,.mg .same .wash{{fill:{card}}}.mg .same .stack{{stroke:{rim}}}"
    ".mg .differs .box,.mg .differs .ring{{stroke:{alarm}}}.mg .ne{{fill:{alarm}}}"
    ".mg .edge.same{{stroke:{line};stroke-opacity:.45}}.mg .tip.same{{fill:{line};fill-opacity:.45}}"
    ".mg .edge.differs{{stroke:{alarm}}}.mg .tip.differs{{fill:{alarm}}}"
    ".mg .flag{{fill:{alarm}}}.mg .flag+text{{fill:{on-alarm}}}"
)


@dataclass(slots=True)
class _NumberRow:
    """A row of two scalars."""

    caption: str
    colour: str
    both: tuple[str, str]
    mark: str

    @property
    def height(self) -> float:
        return ROW

    @property
    def widths(self) -> tuple[float, float, float]:
        """The widths of the two scalars and of the mark."""
        return text_width(self.both[0], 12.5), text_width(self.both[1], 12.5), text_width(self.mark, 12.5, True)

    def width(self, columns: tuple[float, float, float]) -> float:
        return _CAPTION + columns[0] + 16 + columns[1] + (columns[2] + 12 if columns[2] else 0)

    def draw(self, y: float, columns: tuple[float, float, float]) -> str:
        first = PAD + _CAPTION + columns[0]
        second, base = first + 16 + columns[1], y + 14.5
        mark = f'<text class="ne" x="{second + 12:g}" y="{base:g}">{escape(self.mark)}</text>' if self.mark else ""
        return (
            f'<text class="bit {self.colour}" x="{PAD:g}" y="{base:g}">{self.caption}</text>'
            f'<text class="num" x="{first:g}" y="{base:g}">{escape(self.both[0])}</text>'
            f'<text class="dim" x="{first + 6:g}" y="{base:g}">|</text>'
            f'<text class="num" x="{second:g}" y="{base:g}">{escape(self.both[1])}</text>{mark}'
        )


@dataclass(slots=True)
class _Heats:
    """A row of heatmaps: of the first run, of the second, and of the difference, if any."""

    caption: str
    colour: str
    pictures: list[tuple[dict[str, Any] | None, float, str]]
    """For each heatmap: the summary (None if missing), the magnitude with the full colour, and the caption."""
    side: tuple[int, int]
    mark: str

    @property
    def height(self) -> float:
        return 6 + self.side[1] + _BELOW

    @property
    def widths(self) -> tuple[float, float, float]:
        return 0.0, 0.0, 0.0

    @property
    def _each(self) -> list[float]:
        return [max(self.side[0], text_width(text, 11, text == self.mark)) for _, _, text in self.pictures]

    def width(self, columns: tuple[float, float, float]) -> float:
        return _CAPTION + sum(self._each) + _SPACE * (len(self.pictures) - 1)

    def draw(self, y: float, columns: tuple[float, float, float]) -> str:
        top, x = y + 6, PAD + _CAPTION
        parts = [f'<text class="bit {self.colour}" x="{PAD:g}" y="{top + 9:g}">{self.caption}</text>']
        for (short, most, text), wide in zip(self.pictures, self._each, strict=True):
            if short:
                parts.append(heat.drawn(short, x, top, *self.side, most))
            look = "bit ne" if text == self.mark else "bit dim"
            parts.append(f'<text class="{look}" x="{x:g}" y="{top + self.side[1] + 12:g}">{escape(text)}</text>')
            x += wide + _SPACE
        return "".join(parts)


@dataclass(slots=True)
class Pair:
    """A card with its contents. `tags` are the flags above it, which mark the first differences."""

    kind: str
    tooltip: str
    name: str
    rule: str
    named: bool
    rows: list[_NumberRow | _Heats]
    note: str
    tags: list[str]
    differs: bool
    still: bool

    @property
    def _columns(self) -> tuple[float, float, float]:
        first, second, third = (max(one) for one in zip(*(row.widths for row in self.rows), strict=True))
        return first, second, third

    @property
    def _inner(self) -> tuple[float, float]:
        header = text_width(self.name, 13, True) + text_width(self.rule, 13)
        tag = text_width(" · ".join(self.tags), 11, True) + 8 if self.tags else 0.0
        rows = [row.width(self._columns) for row in self.rows]
        width = math.ceil(max(76.0, header, tag, text_width(self.note, 11), *rows) + 2 * PAD)
        return width, HEAD + sum(row.height for row in self.rows) + (_BELOW if self.note else 0) + 2

    @property
    def shows_heat(self) -> bool:
        """Whether it contains heatmaps."""
        return any(isinstance(row, _Heats) for row in self.rows)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height, including the second border of an output and the flag."""
        rim = 2 * RIM if "output" in self.kind else 0.0
        width, height = self._inner
        return width + rim, height + rim + (_TAG if self.tags else 0.0)

    def draw(self, x: float, y: float) -> str:
        """Return the SVG of the card, with its top left corner at (x, y)."""
        (w, h), columns = self._inner, self._columns
        inset, radius = RIM if "output" in self.kind else 0.0, 12 if self.kind.startswith("leaf") else 4
        look = f"{self.kind}{' still' if self.still else ''} {'differs' if self.differs else 'same'}"
        top = y + inset + (_TAG if self.tags else 0.0)
        box = f'<rect class="box" width="{w:g}" height="{h:g}" rx="{radius}"'
        parts = [
            f'<g class="{look}" transform="translate({x + inset:g} {top:g})"><title>{escape(self.tooltip)}</title>'
        ]
        if self.tags:
            parts.append(self._flag(-inset))
        parts += [f"{box}/>", self._header(w, radius)]
        at = HEAD
        for row in self.rows:
            if row.colour == "bw" and row is self.rows[-1] and not self.note:
                parts.append(f'<path class="wash" d="{strip(w, at, h, radius)}"/>')
            elif row.colour == "bw":
                parts.append(f'<path class="wash" d="M0 {at:g}H{w:g}v{row.height:g}H0z"/>')
            parts.append(row.draw(at, columns))
            at += row.height
        if self.note:
            parts.append(f'<text class="bit dim" x="{PAD:g}" y="{h - 6:g}">{escape(self.note)}</text>')
        parts.append(f'{box} style="fill:none"/>')
        if inset:
            rim = f'width="{w + 2 * inset:g}" height="{h + 2 * inset:g}" rx="{radius + inset:g}"'
            parts.append(f'<rect class="ring" x="{-inset}" y="{-inset}" {rim}/>')
        return "".join([*parts, "</g>"])

    def _header(self, width: float, radius: float) -> str:
        weight = "" if self.named else ' style="font-weight:400;font-style:italic"'
        rule = f'<tspan class="rule" style="font-weight:400">{escape(self.rule)}</tspan>' if self.rule else ""
        return (
            f'<path class="head" d="{strip(width, 0, HEAD, radius)}"/>'
            f'<text x="{PAD:g}" y="17" class="name"><tspan{weight}>{escape(self.name)}</tspan>{rule}</text>'
        )

    def _flag(self, x: float) -> str:
        text = " · ".join(self.tags)
        wide, y = text_width(text, 11, True) + 16, -_TAG
        return (
            f'<rect class="flag" x="{x:g}" y="{y:g}" width="{wide:g}" height="17" rx="4"/>'
            f'<text x="{x + 8:g}" y="{y + 12.5:g}">{escape(text)}</text>'
        )


def pair(found: Differences, node: int) -> Pair:
    """Return the comparison card of a node."""
    trace = found.common
    about = trace.nodes[node]
    kind = {"constant": "leaf"}.get(about.kind, about.kind) + (" output" if node in trace.outputs else "")
    formula = trace.formula(node, near=True)
    rule = "" if formula is None else f" = {plain(formula)}"
    name = "const" if about.kind == "constant" else trace.title(node, 60, near=True)
    name = fit(name, 0.7 * _WIDEST if rule else _WIDEST, 13, True)
    rule = fit(rule, _WIDEST - text_width(name, 13, True), 13)
    rows: list[_NumberRow | _Heats] = [_row(found, node, "data", found.held(node), found.values.get(node))]
    if about.kind != "constant":
        rows.append(_row(found, node, "grad", found.gradient(node), found.grads.get(node)))
    tensor = trace.tensors.get(node)
    note = shape_text(tensor.shape, tensor.dtype) if any(isinstance(row, _Heats) for row in rows) and tensor else ""
    tags = [
        text
        for at, text in ((found.first_value, "first value"), (found.first_gradient, "first gradient"))
        if at == node
    ]
    if found.first_operation == node != found.first_value:
        tags.append("first operation")
    tags = [f"! {tag}" for tag in tags]
    differs = node in found.values or node in found.grads
    still = about.state == "blocked"
    return Pair(kind, _tooltip(found, node), name, rule, about.name is not None, rows, note, tags, differs, still)


def _row(found: Differences, node: int, caption: str, held: tuple[Any, Any], gap: Gap | None) -> _NumberRow | _Heats:
    colour = "fw" if caption == "data" else "bw"
    arrays = [x for x in held if x is not None and scalar(x) is None]
    if not arrays:
        return _NumberRow(caption, colour, _texts(found, node, caption, held, _SHORT), apart(gap))
    shorts = [None if x is None else summary(x) for x in held]
    most, mark = heat.scale(*shorts), apart(gap)
    if gap is not None and gap.amount < math.inf:
        mark += f", max {compact(gap.amount)}"
    names = ("first", "second")
    pictures = [
        (short, most, name if short else f"{name}: {_missing(found, node, which, caption)}")
        for which, (short, name) in enumerate(zip(shorts, names, strict=True))
    ]
    if gap is not None and held[0] is not None and held[1] is not None:
        change = summary(_change(*held))
        pictures.append((change, heat.scale(change), mark))
    elif gap is not None:
        pictures.append((None, 0.0, mark))
    side = heat.size_of(tuple(arrays[0].shape), shorts[0] or shorts[1])
    return _Heats(caption, colour, pictures, side, mark)


def _change(one: Any, other: Any) -> Any:
    """Return the second minus the first; 0 where they are equal, including non-finite elements."""
    import numpy as np

    x, y = (np.asarray(array, dtype=float) for array in (one, other))
    with np.errstate(all="ignore"):
        return np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, y - x)


def apart(gap: Gap | None) -> str:
    """Format a difference as its sign and relative size; "" for none."""
    return "" if gap is None else f"≠ {share(gap)}"


def value_texts(found: Differences, node: int) -> tuple[str, str]:
    """Format the values of a node in the two runs: scalars with enough digits to distinguish them, one-line summaries
    of arrays, or why a value is missing."""
    return _texts(found, node, "data", found.held(node), _LONG)


def gradient_texts(found: Differences, node: int) -> tuple[str, str]:
    """Format the gradients of a node in the two runs, as `value_texts` does."""
    return _texts(found, node, "grad", found.gradient(node), _LONG)


def _texts(
    found: Differences, node: int, caption: str, held: tuple[Any, Any], enough: tuple[int, ...]
) -> tuple[str, str]:
    numbers = [scalar(x) for x in held]
    digits = enough[0]
    if None not in numbers and numbers[0] != numbers[1]:
        digits = next((n for n in enough if _digits(numbers[0], n) != _digits(numbers[1], n)), enough[-1])
    said = [
        _missing(found, node, which, caption) if x is None else _digits(one, digits) if one is not None else ""
        for which, (x, one) in enumerate(zip(held, numbers, strict=True))
    ]
    first, second = (text or line(summary(x)) for text, x in zip(said, held, strict=True))
    return first, second


def _digits(x: float | None, digits: int) -> str:
    if x is None or digits == 6:
        return pretty(x)
    return brief(x) if digits == 3 else f"{x:.{digits}g}".replace("-", "−")


def _missing(found: Differences, node: int, which: int, caption: str) -> str:
    """Return why a run has no value or gradient, as text."""
    trace = (found.first, found.second)[which]
    if caption == "data":
        return "raised" if trace.kinds[node] == "x" else "not kept"
    if trace.states[node] == "b":
        return "blocked"
    return "none" if node in found.gradients else "—"


def _tooltip(found: Differences, node: int) -> str:
    """Return the full names and the details of a node in both runs."""
    trace = found.common
    formula = trace.formula(node, 60)
    names = list(dict.fromkeys(name for name in (found.first.names[node], found.second.names[node]) if name))
    head = " | ".join(names) or trace.title(node)
    lines = [head if formula is None else f"{head} = {plain(formula)}"]
    for caption, both, gap in (
        ("data", value_texts(found, node), found.values.get(node)),
        ("grad", gradient_texts(found, node), found.grads.get(node)),
    ):
        if caption == "grad" and trace.kinds[node] == "c":
            continue
        lines += [f"{caption}, first run: {both[0]}", f"{caption}, second run: {both[1]}"]
        lines += [f"{caption} {apart(gap)}, {_far(gap)}"] if gap is not None else []
    one, other = (run.nodes[node].attrs for run in (found.first, found.second))
    for key in {**one, **other}:
        same = one.get(key) == other.get(key)
        lines.append(f"{key} = {one[key]}" if same else f"{key} = {one.get(key, '—')} | {other.get(key, '—')}")
    about = trace.nodes[node]
    return "\n".join([*lines, *(text for text in (about.scope and f"in {about.scope}", about.line) if text)])


def _far(gap: Gap) -> str:
    """Return the absolute size of a difference, as text."""
    cells = f" in {gap.cells:,} of {gap.size:,} elements" if gap.size > 1 else ""
    return f"largest absolute difference {compact(gap.amount)}{cells}{f': {times(gap)}' if times(gap) else ''}"
