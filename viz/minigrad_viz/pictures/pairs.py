"""Comparison cards, which show the values and gradients of a node in two runs, and their differences.

A tensor is shown as heatmaps of both runs on one colour scale and, if they differ, a heatmap of the second run minus
the first, on a separate scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from minigrad_viz.pictures import heat
from minigrad_viz.pictures.cards import HEADER_HEIGHT, PADDING, RING_OFFSET, ROW_HEIGHT, strip_path
from minigrad_viz.pictures.node_text import format_shape
from minigrad_viz.trace.arrays import format_summary, summary
from minigrad_viz.trace.differences import Differences, scalar
from minigrad_viz.trace.gaps import Gap, describe_factor, format_ratio
from minigrad_viz.trace.notation import (
    escape,
    fit,
    format_brief,
    format_compact,
    format_pretty,
    formula_text,
    text_width,
)

__all__ = [
    "COLOURS",
    "SHAPES",
    "ComparisonCard",
    "difference_label",
    "gradient_texts",
    "make_comparison_card",
    "value_texts",
]

_MAX_HEADER_WIDTH = 230.0  # maximum width of the text in a header, in pixels
_CAPTION_WIDTH = 32.0  # width of the column of the captions "data" and "grad", in pixels
_FLAG_HEIGHT = 22.0  # height of a flag above a card, with its margin, in pixels
_NOTE_HEIGHT = 16.0  # height of the caption below a heatmap, in pixels
_HEATMAP_GAP = 10.0  # gap between heatmaps
# Numbers of significant digits to try until two values are distinguishable.
_SHORT_DIGITS, _LONG_DIGITS = (3, 6, 9, 12, 17), (6, 9, 12, 17)

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
class _ScalarRow:
    """A row of a comparison card with the scalars of both runs."""

    caption: str
    colour: str
    labels: tuple[str, str]
    mark: str

    @property
    def height(self) -> float:
        return ROW_HEIGHT

    @property
    def widths(self) -> tuple[float, float, float]:
        """The widths of the two scalars and of the label of their difference."""
        return text_width(self.labels[0], 12.5), text_width(self.labels[1], 12.5), text_width(self.mark, 12.5, True)

    def width(self, columns: tuple[float, float, float]) -> float:
        return _CAPTION_WIDTH + columns[0] + 16 + columns[1] + (columns[2] + 12 if columns[2] else 0)

    def draw(self, y: float, columns: tuple[float, float, float]) -> str:
        first = PADDING + _CAPTION_WIDTH + columns[0]
        second, base = first + 16 + columns[1], y + 14.5
        mark = f'<text class="ne" x="{second + 12:g}" y="{base:g}">{escape(self.mark)}</text>' if self.mark else ""
        return (
            f'<text class="bit {self.colour}" x="{PADDING:g}" y="{base:g}">{self.caption}</text>'
            f'<text class="num" x="{first:g}" y="{base:g}">{escape(self.labels[0])}</text>'
            f'<text class="dim" x="{first + 6:g}" y="{base:g}">|</text>'
            f'<text class="num" x="{second:g}" y="{base:g}">{escape(self.labels[1])}</text>{mark}'
        )


@dataclass(slots=True)
class _HeatmapRow:
    """A row of a comparison card with heatmaps of the first run, the second run and, if they differ, the difference."""

    caption: str
    colour: str
    heatmaps: list[tuple[dict[str, Any] | None, float, str]]
    """The summary (or None), the magnitude with the full colour, and the caption of each heatmap."""
    heatmap_size: tuple[int, int]
    mark: str

    @property
    def height(self) -> float:
        return 6 + self.heatmap_size[1] + _NOTE_HEIGHT

    @property
    def widths(self) -> tuple[float, float, float]:
        return 0.0, 0.0, 0.0

    @property
    def _heatmap_widths(self) -> list[float]:
        return [max(self.heatmap_size[0], text_width(text, 11, text == self.mark)) for _, _, text in self.heatmaps]

    def width(self, columns: tuple[float, float, float]) -> float:
        return _CAPTION_WIDTH + sum(self._heatmap_widths) + _HEATMAP_GAP * (len(self.heatmaps) - 1)

    def draw(self, y: float, columns: tuple[float, float, float]) -> str:
        top, x = y + 6, PADDING + _CAPTION_WIDTH
        parts = [f'<text class="bit {self.colour}" x="{PADDING:g}" y="{top + 9:g}">{self.caption}</text>']
        for (stats, peak, text), width in zip(self.heatmaps, self._heatmap_widths, strict=True):
            if stats:
                parts.append(heat.draw_heatmap(stats, x, top, *self.heatmap_size, peak))
            css_class = "bit ne" if text == self.mark else "bit dim"
            parts.append(
                f'<text class="{css_class}" x="{x:g}" y="{top + self.heatmap_size[1] + 12:g}">{escape(text)}</text>'
            )
            x += width + _HEATMAP_GAP
        return "".join(parts)


@dataclass(slots=True)
class ComparisonCard:
    """A card that compares a node in two runs. `tags` are the texts of its flag, which marks first differences."""

    kind: str
    tooltip: str
    name: str
    rule: str
    is_named: bool
    rows: list[_ScalarRow | _HeatmapRow]
    note: str
    tags: list[str]
    is_different: bool
    is_blocked: bool

    @property
    def _column_widths(self) -> tuple[float, float, float]:
        first, second, third = (max(one) for one in zip(*(row.widths for row in self.rows), strict=True))
        return first, second, third

    @property
    def _inner_size(self) -> tuple[float, float]:
        header = text_width(self.name, 13, True) + text_width(self.rule, 13)
        tag = text_width(" · ".join(self.tags), 11, True) + 8 if self.tags else 0.0
        rows = [row.width(self._column_widths) for row in self.rows]
        width = math.ceil(max(76.0, header, tag, text_width(self.note, 11), *rows) + 2 * PADDING)
        return width, HEADER_HEIGHT + sum(row.height for row in self.rows) + (_NOTE_HEIGHT if self.note else 0) + 2

    @property
    def has_heatmaps(self) -> bool:
        """Whether the card contains heatmaps."""
        return any(isinstance(row, _HeatmapRow) for row in self.rows)

    @property
    def size(self) -> tuple[float, float]:
        """The width and height, including the second border of an output and the flag."""
        rim = 2 * RING_OFFSET if "output" in self.kind else 0.0
        width, height = self._inner_size
        return width + rim, height + rim + (_FLAG_HEIGHT if self.tags else 0.0)

    def draw(self, x: float, y: float) -> str:
        """Return the SVG of the card, with its top left corner at (x, y)."""
        (w, h), columns = self._inner_size, self._column_widths
        inset, radius = RING_OFFSET if "output" in self.kind else 0.0, 12 if self.kind.startswith("leaf") else 4
        css_class = f"{self.kind}{' still' if self.is_blocked else ''} {'differs' if self.is_different else 'same'}"
        top = y + inset + (_FLAG_HEIGHT if self.tags else 0.0)
        box = f'<rect class="box" width="{w:g}" height="{h:g}" rx="{radius}"'
        parts = [
            f'<g class="{css_class}" transform="translate({x + inset:g} {top:g})"><title>{escape(self.tooltip)}</title>'
        ]
        if self.tags:
            parts.append(self._draw_flag(-inset))
        parts += [f"{box}/>", self._header(w, radius)]
        y_offset = HEADER_HEIGHT
        for row in self.rows:
            if row.colour == "bw" and row is self.rows[-1] and not self.note:
                parts.append(f'<path class="wash" d="{strip_path(w, y_offset, h, radius)}"/>')
            elif row.colour == "bw":
                parts.append(f'<path class="wash" d="M0 {y_offset:g}H{w:g}v{row.height:g}H0z"/>')
            parts.append(row.draw(y_offset, columns))
            y_offset += row.height
        if self.note:
            parts.append(f'<text class="bit dim" x="{PADDING:g}" y="{h - 6:g}">{escape(self.note)}</text>')
        parts.append(f'{box} style="fill:none"/>')
        if inset:
            ring_size = f'width="{w + 2 * inset:g}" height="{h + 2 * inset:g}" rx="{radius + inset:g}"'
            parts.append(f'<rect class="ring" x="{-inset}" y="{-inset}" {ring_size}/>')
        return "".join([*parts, "</g>"])

    def _header(self, width: float, radius: float) -> str:
        weight = "" if self.is_named else ' style="font-weight:400;font-style:italic"'
        rule = f'<tspan class="rule" style="font-weight:400">{escape(self.rule)}</tspan>' if self.rule else ""
        return (
            f'<path class="head" d="{strip_path(width, 0, HEADER_HEIGHT, radius)}"/>'
            f'<text x="{PADDING:g}" y="17" class="name"><tspan{weight}>{escape(self.name)}</tspan>{rule}</text>'
        )

    def _draw_flag(self, x: float) -> str:
        text = " · ".join(self.tags)
        width, y = text_width(text, 11, True) + 16, -_FLAG_HEIGHT
        return (
            f'<rect class="flag" x="{x:g}" y="{y:g}" width="{width:g}" height="17" rx="4"/>'
            f'<text x="{x + 8:g}" y="{y + 12.5:g}">{escape(text)}</text>'
        )


def make_comparison_card(differences: Differences, node: int) -> ComparisonCard:
    trace = differences.common
    node_info = trace.nodes[node]
    kind = {"constant": "leaf"}.get(node_info.kind, node_info.kind) + (" output" if node in trace.outputs else "")
    formula = trace.formula(node, in_block=True)
    rule = "" if formula is None else f" = {formula_text(formula)}"
    name = "const" if node_info.kind == "constant" else trace.title(node, 60, in_block=True)
    name = fit(name, 0.7 * _MAX_HEADER_WIDTH if rule else _MAX_HEADER_WIDTH, 13, True)
    rule = fit(rule, _MAX_HEADER_WIDTH - text_width(name, 13, True), 13)
    rows: list[_ScalarRow | _HeatmapRow] = [
        _make_row(differences, node, "data", differences.values_of(node), differences.values.get(node))
    ]
    if node_info.kind != "constant":
        rows.append(_make_row(differences, node, "grad", differences.gradient(node), differences.grads.get(node)))
    tensor = trace.tensors.get(node)
    note = (
        format_shape(tensor.shape, tensor.dtype) if any(isinstance(row, _HeatmapRow) for row in rows) and tensor else ""
    )
    tags = [
        text
        for at, text in ((differences.first_value, "first value"), (differences.first_gradient, "first gradient"))
        if at == node
    ]
    if differences.first_operation == node != differences.first_value:
        tags.append("first operation")
    tags = [f"! {tag}" for tag in tags]
    is_different = node in differences.values or node in differences.grads
    is_blocked = node_info.state == "blocked"
    return ComparisonCard(
        kind,
        _tooltip(differences, node),
        name,
        rule,
        node_info.name is not None,
        rows,
        note,
        tags,
        is_different,
        is_blocked,
    )


def _make_row(
    differences: Differences, node: int, caption: str, values: tuple[Any, Any], gap: Gap | None
) -> _ScalarRow | _HeatmapRow:
    colour = "fw" if caption == "data" else "bw"
    arrays = [x for x in values if x is not None and scalar(x) is None]
    if not arrays:
        return _ScalarRow(
            caption, colour, _format_pair(differences, node, caption, values, _SHORT_DIGITS), difference_label(gap)
        )
    summaries = [None if x is None else summary(x) for x in values]
    max_magnitude, mark = heat.max_magnitude(*summaries), difference_label(gap)
    if gap is not None and gap.amount < math.inf:
        mark += f", max {format_compact(gap.amount)}"
    names = ("first", "second")
    pictures = [
        (short, max_magnitude, name if short else f"{name}: {_missing_reason(differences, node, run_index, caption)}")
        for run_index, (short, name) in enumerate(zip(summaries, names, strict=True))
    ]
    if gap is not None and values[0] is not None and values[1] is not None:
        difference = summary(_difference(*values))
        pictures.append((difference, heat.max_magnitude(difference), mark))
    elif gap is not None:
        pictures.append((None, 0.0, mark))
    heatmap_size = heat.heatmap_size(tuple(arrays[0].shape), summaries[0] or summaries[1])
    return _HeatmapRow(caption, colour, pictures, heatmap_size, mark)


def _difference(first: Any, second: Any) -> Any:
    """Return the second array minus the first. Equal elements have difference 0, including infinities and NaN."""
    import numpy as np

    x, y = (np.asarray(array, dtype=float) for array in (first, second))
    with np.errstate(all="ignore"):
        return np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, y - x)


def difference_label(gap: Gap | None) -> str:
    """Format a difference as "≠" and its relative size; return "" if there is none."""
    return "" if gap is None else f"≠ {format_ratio(gap)}"


def value_texts(differences: Differences, node: int) -> tuple[str, str]:
    """Format the values of a node in both runs.

    Scalars have enough digits to distinguish them. Arrays are summarised in one line. A missing value is replaced by
    the reason.
    """
    return _format_pair(differences, node, "data", differences.values_of(node), _LONG_DIGITS)


def gradient_texts(differences: Differences, node: int) -> tuple[str, str]:
    """Format the gradients of a node in both runs. See `value_texts`."""
    return _format_pair(differences, node, "grad", differences.gradient(node), _LONG_DIGITS)


def _format_pair(
    differences: Differences, node: int, caption: str, values: tuple[Any, Any], digit_choices: tuple[int, ...]
) -> tuple[str, str]:
    scalars = [scalar(x) for x in values]
    digits = digit_choices[0]
    if None not in scalars and scalars[0] != scalars[1]:
        digits = next(
            (n for n in digit_choices if _format_digits(scalars[0], n) != _format_digits(scalars[1], n)),
            digit_choices[-1],
        )
    formatted = [
        _missing_reason(differences, node, run_index, caption)
        if x is None
        else _format_digits(one, digits)
        if one is not None
        else ""
        for run_index, (x, one) in enumerate(zip(values, scalars, strict=True))
    ]
    first, second = (text or format_summary(summary(x)) for text, x in zip(formatted, values, strict=True))
    return first, second


def _format_digits(x: float | None, digits: int) -> str:
    if x is None or digits == 6:
        return format_pretty(x)
    return format_brief(x) if digits == 3 else f"{x:.{digits}g}".replace("-", "−")


def _missing_reason(differences: Differences, node: int, run_index: int, caption: str) -> str:
    """Return the text to show in place of the missing value or gradient of a run."""
    trace = (differences.first, differences.second)[run_index]
    if caption == "data":
        return "raised" if trace.kinds[node] == "x" else "not kept"
    if trace.states[node] == "b":
        return "blocked"
    return "none" if node in differences.gradients else "—"


def _tooltip(differences: Differences, node: int) -> str:
    """Return the tooltip of a node, with its full names, values, gradients, attributes and source line in both runs."""
    trace = differences.common
    formula = trace.formula(node, 60)
    names = list(
        dict.fromkeys(name for name in (differences.first.names[node], differences.second.names[node]) if name)
    )
    head = " | ".join(names) or trace.title(node)
    lines = [head if formula is None else f"{head} = {formula_text(formula)}"]
    for caption, value_pair, gap in (
        ("data", value_texts(differences, node), differences.values.get(node)),
        ("grad", gradient_texts(differences, node), differences.grads.get(node)),
    ):
        if caption == "grad" and trace.kinds[node] == "c":
            continue
        lines += [f"{caption}, first run: {value_pair[0]}", f"{caption}, second run: {value_pair[1]}"]
        lines += [f"{caption} {difference_label(gap)}, {_gap_text(gap)}"] if gap is not None else []
    first_attrs, second_attrs = (run.nodes[node].attrs for run in (differences.first, differences.second))
    for key in {**first_attrs, **second_attrs}:
        is_same = first_attrs.get(key) == second_attrs.get(key)
        lines.append(
            f"{key} = {first_attrs[key]}"
            if is_same
            else f"{key} = {first_attrs.get(key, '—')} | {second_attrs.get(key, '—')}"
        )
    node_info = trace.nodes[node]
    return "\n".join(
        [*lines, *(text for text in (node_info.scope and f"in {node_info.scope}", node_info.line) if text)]
    )


def _gap_text(gap: Gap) -> str:
    """Describe the largest absolute difference, and the number of elements that differ."""
    cells = f" in {gap.cells:,} of {gap.size:,} elements" if gap.size > 1 else ""
    return (
        "largest absolute difference "
        f"{format_compact(gap.amount)}{cells}{f': {describe_factor(gap)}' if describe_factor(gap) else ''}"
    )
