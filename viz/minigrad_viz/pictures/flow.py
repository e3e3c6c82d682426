"""Heatmaps of gradient flow, in SVG and text, with a row per layer, a column per measured step, and a log scale.

A cell is blank if nothing was measured, crossed if the gradient is not finite, and dashed if it is 0. An alarm is shown
as a sign in its first cell, and as a line of text below the heatmap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from minigrad_viz.pictures.axes import format_power
from minigrad_viz.pictures.palette import FLOW
from minigrad_viz.trace.gradient_flow import Alarm, Flow
from minigrad_viz.trace.notation import escape, fit, fit_columns, format_compact, text_width

__all__ = [
    "COLOURS",
    "SHAPES",
    "Scale",
    "alarm_lines",
    "draw_flow",
    "make_scale",
    "summary_line",
    "text_lines",
]

_SHADES = len(FLOW["light"])
_MAX_DECADES = 12  # maximum range of the colour scale; sizes below it have the lowest colour
_ROW_HEIGHT, _MAX_CELL_WIDTH = 19, 24.0  # height of a row and maximum width of a cell, in pixels
_SHADE_WIDTH = 28  # width of a shade in the legend, in pixels
_LEFT, _RIGHT = 146, 824  # left and right edges of the heatmap, in pixels
_SIGN_RADIUS = 6.5  # radius of the sign of an alarm, in pixels
_LINE_HEIGHT = 18
_MAX_NAMES = 4  # maximum number of layers listed in the text of an alarm
_MAX_TEXT_COLUMNS = 60
_BARS = "▁▂▃▄▅▆▇█"

SHAPES = (
    ".mg .cells{{shape-rendering:crispEdges}}.mg .wild{{fill:none;stroke-width:1}}.mg .nil{{fill:none;stroke-width:1}}"
    ".mg .here{{stroke-width:1.5}}.mg .bang{{font-size:11px;font-weight:700;text-anchor:middle}}"
    ".mg .mid{{text-anchor:middle}}.mg .sub{{font-size:13px;font-weight:700}}.mg .flow .key{{font-size:12px}}"
)
COLOURS = "".join(f".mg .g{k}{{{{fill:{{flow{k}}}}}}}" for k in range(_SHADES)) + (
    ".mg .wild{{stroke:{alarm}}}.mg .nil{{stroke:{muted}}}.mg .here{{fill:{alarm};stroke:{page}}}"
    ".mg .bang{{fill:{on-alarm}}}.mg .map{{fill:none;stroke:{rim}}}"
)


@dataclass(frozen=True)
class Scale:
    """A logarithmic scale from 10 to the power of `low` to 10 to the power of `high`."""

    low: int
    high: int

    def position(self, size: float) -> float:
        """Return the position of a positive size on the scale, from 0 to 1."""
        return min(max((math.log10(size) - self.low) / (self.high - self.low), 0.0), 1.0)

    def bin_index(self, size: float, steps: int) -> int:
        """Return the index of the bin of a positive size, if the scale is divided into `steps` equal bins."""
        return min(int(self.position(size) * steps), steps - 1)

    @property
    def ticks(self) -> list[int]:
        """The exponents of the ticks, either all or every n-th from the highest."""
        stride = -(-(self.high - self.low) // 6)
        return list(range(self.high, self.low - 1, -stride))[::-1]


def make_scale(flow: Flow) -> Scale:
    """Return a scale that includes the largest of the sizes in `flow`, and all others within 12 decades.

    >>> from minigrad_viz.trace.gradient_flow import StepMeasurement
    >>> flow = Flow()
    >>> flow.add(1, StepMeasurement({0: 2e-5, 1: 0.3, 2: 0.0}))
    >>> make_scale(flow), make_scale(Flow())
    (Scale(low=-5, high=0), Scale(low=-1, high=0))
    """
    sizes = [size for column in flow.columns for size in column.sizes.values() if 0 < size < math.inf]
    if not sizes:
        return Scale(-1, 0)
    high = math.ceil(math.log10(max(sizes)))
    low = max(math.floor(math.log10(min(sizes))), high - _MAX_DECADES)
    return Scale(min(low, high - 1), high)


# --- in words --------------------------------------------------------------------------------------------------------


def summary_line(flow: Flow, names: Sequence[str]) -> str:
    """Return a summary of the sizes and alarms; "" if nothing was measured."""
    if not flow.columns:
        return ""
    scale, count = make_scale(flow), sum(column.count for column in flow.columns)
    rows = len(flow.rows())
    summary = f"Gradient flow: {rows} layer{'' if rows == 1 else 's'} over {count:,} measured step"
    summary += f"{'' if count == 1 else 's'}, from {format_power(scale.low)} to {format_power(scale.high)}"
    return ". ".join([summary, *alarm_lines(flow, names)]) + "."


def alarm_lines(flow: Flow, names: Sequence[str]) -> list[str]:
    """Return a line of text for each kind of alarm, in the order of the first alarm of each kind."""
    alarms_by_kind: dict[str, list[Alarm]] = {}
    for alarm in flow.alarms:
        alarms_by_kind.setdefault(alarm.kind, []).append(alarm)
    return [
        f"{_steps_phrase(alarms)}: {_ALARM_FORMATTERS[kind](alarms, names)}" for kind, alarms in alarms_by_kind.items()
    ]


def _steps_phrase(alarms: Sequence[Alarm]) -> str:
    first, last = alarms[0].step, alarms[-1].step
    return f"step {first:,}" if first == last else f"steps {first:,} to {last:,}"


def _layers_phrase(alarms: Sequence[Alarm], names: Sequence[str]) -> str:
    rows = sorted(alarm.row for alarm in alarms)
    suffix = f" and {len(rows) - _MAX_NAMES} more" if len(rows) > _MAX_NAMES else ""
    return ", ".join(names[row] for row in rows[:_MAX_NAMES]) + suffix


def _non_finite_text(alarms: Sequence[Alarm], names: Sequence[str]) -> str:
    alarm = alarms[0]
    kind = "NaN" if math.isnan(alarm.size) else "infinity"
    subject = "the gradient of" if alarm.reference_row is None else "the output of"
    return f"the first {kind}, in {subject} {names[alarm.row]}"


def _ratio_text(adjective: str, select: Callable[..., Alarm]) -> Callable[[Sequence[Alarm], Sequence[str]], str]:
    def describe(alarms: Sequence[Alarm], names: Sequence[str]) -> str:
        alarm = select(alarms, key=lambda one: one.size)
        reference = f"{format_compact(alarm.reference_size)} in {names[alarm.reference_row or 0]}, nearest the loss"
        layers = _layers_phrase(alarms, names)
        size = (format_compact(alarm.size) if alarm.size else "0") + (
            f" in {names[alarm.row]}" if len(alarms) > 1 else ""
        )
        return f"{adjective} gradient in {layers}: {size}, versus {reference}"

    return describe


def _growth_text(alarms: Sequence[Alarm], names: Sequence[str]) -> str:
    alarm = max(alarms, key=lambda one: one.size)
    sizes = f"{format_compact(alarm.size)}, previously about {format_compact(alarm.reference_size)}"
    return f"exploding gradient in {_layers_phrase(alarms, names)}: {sizes}"


def _dead_text(alarms: Sequence[Alarm], names: Sequence[str]) -> str:
    fraction = max(alarm.size for alarm in alarms)
    return f"dead ReLUs in {_layers_phrase(alarms, names)}: {fraction:.0%} of the units"


def _stale_text(alarms: Sequence[Alarm], names: Sequence[str]) -> str:
    return f"stale gradients in {_layers_phrase(alarms, names)}: not cleared after the previous step; call zero_grad()"


_ALARM_FORMATTERS: dict[str, Callable[[Sequence[Alarm], Sequence[str]], str]] = {
    "nan": _non_finite_text,
    "inf": _non_finite_text,
    "vanishing": _ratio_text("vanishing", min),
    "exploding": _ratio_text("exploding", max),
    "grown": _growth_text,
    "dead": _dead_text,
    "stale": _stale_text,
}


def _column_text(flow: Flow) -> str:
    """Describe the steps that a column summarises."""
    if flow.every == 1:
        return "one column per measured step"
    return f"each column: maximum over {flow.every:,} measured steps"


# --- as text ---------------------------------------------------------------------------------------------------------


def text_lines(flow: Flow, names: Sequence[str]) -> list[str]:
    """Return the heatmap as text, with bars for sizes in at most 60 columns, and a line for each kind of alarm."""
    if not flow.columns:
        return []
    scale, rows = make_scale(flow), flow.rows()
    group_size = -(-len(flow.columns) // _MAX_TEXT_COLUMNS)
    groups = [
        flow.columns[group_index : group_index + group_size] for group_index in range(0, len(flow.columns), group_size)
    ]
    alarm_cells = {(alarm.row, flow.column_of(alarm.step) // group_size) for alarm in flow.alarms}
    name_width = max(len(names[row]) for row in rows)
    name_width = min(name_width, 32)
    row_lines = []
    for row in rows:
        marks = ""
        for at, group in enumerate(groups):
            sizes = [column.sizes[row] for column in group if row in column.sizes]
            marks += "!" if (row, at) in alarm_cells else _bar(sizes, scale)
        row_lines.append(f"{fit_columns(names[row], name_width).ljust(name_width)}  {marks}".rstrip())
    first, last = flow.columns[0].first, flow.columns[-1].last
    stride = flow.every * group_size
    column_text = (
        "one column per measured step" if stride == 1 else f"each column: maximum over {stride:,} measured steps"
    )
    head = f"gradient flow: root mean square of each layer's gradient; {column_text}, {first:,} to {last:,}"
    key = (
        f"{_BARS[0]} {format_power(scale.low)} … {_BARS[-1]} {format_power(scale.high)}, × NaN or Inf, 0 zero, ! start "
        "of an alarm"
    )
    return [head, *row_lines, key, *(f"! {line}" for line in alarm_lines(flow, names))]


def _bar(sizes: Sequence[float], scale: Scale) -> str:
    if not sizes:
        return " "
    if not all(map(math.isfinite, sizes)):
        return "×"
    return _BARS[scale.bin_index(max(sizes), len(_BARS))] if max(sizes) else "0"


# --- as SVG ----------------------------------------------------------------------------------------------------------


def draw_flow(flow: Flow, names: Sequence[str], kinds: Sequence[str], top: float) -> tuple[str, float]:
    """Return the SVG of the heatmap with its header, legend and alarms, below y = `top`, and its height.

    Return ("", 0) if nothing was measured. `names` are the paths of the modules, `kinds` their classes.
    """
    if not flow.columns:
        return "", 0.0
    scale, rows = make_scale(flow), flow.rows()
    head = f"root mean square of each layer's gradient · {_column_text(flow)}"
    parts = [f'<text class="sub" x="16" y="{top + 12:g}">Gradient flow</text>']
    parts.append(f'<text class="key" x="{_LEFT}" y="{top + 12:g}">{escape(head)}</text>')
    map_top = top + 24
    cell = min((_RIGHT - _LEFT) / len(flow.columns), _MAX_CELL_WIDTH)
    for index, row in enumerate(rows):
        y = map_top + _ROW_HEIGHT * index + 14
        name = fit(names[row], 122, 12.5)
        kind = fit(kinds[row], 114 - text_width(name, 12.5), 12.5)
        kind = f'<tspan class="dim" dx="7">{escape(kind)}</tspan>' if len(kind) > 2 else ""
        parts.append(f'<text x="16" y="{y:g}">{escape(name)}{kind}</text>')
    parts.append(_draw_cells(flow, rows, scale, map_top, cell))
    parts.append(_draw_alarms(flow, names, rows, map_top, cell))
    y = map_top + _ROW_HEIGHT * len(rows) + 15
    parts.append(_draw_axis(flow, y, cell))
    y += 23
    parts.append(_legend(flow, scale, y))
    y += 24
    for line in alarm_lines(flow, names):
        y += _LINE_HEIGHT
        sign = (
            f'<circle class="here" cx="23" cy="{y - 4:g}" r="{_SIGN_RADIUS}"/><text class="bang" x="23" '
            f'y="{y:g}">!</text>'
        )
        parts.append(f'{sign}<text class="said" x="36" y="{y:g}">{escape(fit(line, _RIGHT - 40, 12))}</text>')
    return f'<g class="flow">{"".join(parts)}</g>', y + 6 - top


def _draw_cells(flow: Flow, rows: Sequence[int], scale: Scale, top: float, cell: float) -> str:
    """Return the SVG of the cells. Adjacent cells with the same shade are merged, and each shade is a single path."""
    paths: dict[int, list[str]] = {}
    crosses, dashes = [], []
    for index, row in enumerate(rows):
        start, shades = 0, [_shade(column.sizes.get(row), scale) for column in flow.columns]
        for k, shade in enumerate(shades):
            if k + 1 == len(shades) or shades[k + 1] != shade:
                x, end, y = _LEFT + start * cell, _LEFT + (k + 1) * cell, top + index * _ROW_HEIGHT
                if isinstance(shade, int):
                    paths.setdefault(shade, []).append(f"M{x:.1f} {y:g}H{end:.1f}v{_ROW_HEIGHT - 1}H{x:.1f}z")
                elif shade == "×":
                    crosses.append(_crosses(x, y, end - x))
                elif shade == "0":
                    dashes.append(f"M{x:.1f} {y + _ROW_HEIGHT / 2:g}H{end:.1f}")
                start = k + 1
    parts = [f'<path class="g{shade}" d="{"".join(path)}"/>' for shade, path in sorted(paths.items())]
    parts += [f'<path class="nil" d="{"".join(dashes)}"/>'] if dashes else []
    grid = f'<g class="cells">{"".join(parts)}</g>'
    map_width = len(flow.columns) * cell
    border = (
        f'<rect class="map" x="{_LEFT - 0.5}" y="{top - 0.5:g}" width="{map_width + 1:.1f}" '
        f'height="{_ROW_HEIGHT * len(rows)}"/>'
    )
    return grid + (f'<path class="wild" d="{"".join(crosses)}"/>' if crosses else "") + border


def _shade(size: float | None, scale: Scale) -> int | str:
    if size is None:
        return ""
    if not math.isfinite(size):
        return "×"
    return scale.bin_index(size, _SHADES) if size else "0"


def _crosses(x: float, y: float, width: float) -> str:
    """Return the path data of a row of crosses, whose size does not depend on the width of the cells."""
    height = _ROW_HEIGHT - 1
    count = max(1, round(width / height))
    side = width / count
    return "".join(
        f"M{x + k * side + 1:.1f} {y + 2:g}l{side - 2:.1f} {height - 4}M{x + (k + 1) * side - 1:.1f} {y + 2:g}"
        f"l-{side - 2:.1f} {height - 4}"
        for k in range(count)
    )


def _draw_alarms(flow: Flow, names: Sequence[str], rows: Sequence[int], top: float, cell: float) -> str:
    """Return the SVG of a sign in each cell in which an alarm starts."""
    alarms_by_cell: dict[tuple[int, int], list[Alarm]] = {}
    for alarm in flow.alarms:
        alarms_by_cell.setdefault((rows.index(alarm.row), flow.column_of(alarm.step)), []).append(alarm)
    parts = []
    for (row, column), alarms in alarms_by_cell.items():
        x, y = _LEFT + (column + 0.5) * cell, top + row * _ROW_HEIGHT + (_ROW_HEIGHT - 1) / 2
        tooltip = "\n".join(f"step {alarm.step:,}: {_ALARM_FORMATTERS[alarm.kind]([alarm], names)}" for alarm in alarms)
        parts.append(
            f'<g class="begins"><title>{escape(tooltip)}</title><circle class="here" cx="{x:.1f}" cy="{y:g}" '
            f'r="{_SIGN_RADIUS}"/><text class="bang" x="{x:.1f}" y="{y + 4:g}">!</text></g>'
        )
    return "".join(parts)


def _draw_axis(flow: Flow, y: float, cell: float) -> str:
    """Return the SVG of tick labels with the steps of at most six columns, without overlaps."""
    labels, last_right = [], -math.inf
    count = len(flow.columns)
    tick_columns = sorted({round(k * (count - 1) / 5) for k in range(6)})
    for column in tick_columns:
        step = flow.columns[column].first if column < count - 1 else flow.columns[column].last
        text = f"step {step:,}" if not column else f"{step:,}"
        middle, half = _LEFT + (column + 0.5) * cell, text_width(text, 12) / 2
        x = min(max(middle, _LEFT + half), _RIGHT - half)
        if x - half > last_right + 8:
            labels.append(f'<text class="key mid" x="{x:.1f}" y="{y:g}">{text}</text>')
            last_right = x + half
    return "".join(labels)


def _legend(flow: Flow, scale: Scale, y: float) -> str:
    """Return the SVG of the legend, with the colour scale and the signs that occur."""
    sizes = [column.sizes.get(row) for column in flow.columns for row in flow.rows()]
    parts, x = [], float(_LEFT)
    if any(size and math.isfinite(size) for size in sizes):
        parts.append(_colour_scale(flow, scale, y))
        x += _SHADE_WIDTH * _SHADES + 32
    for is_shown, sign, text in (
        (any(size is not None and not math.isfinite(size) for size in sizes), "wild", "NaN or Inf"),
        (0.0 in sizes, "nil", "0"),
        (None in sizes, "", "blank: no gradient measured"),
        (bool(flow.alarms), "!", "start of an alarm"),
    ):
        if is_shown:
            parts.append(_legend_sign(sign, x, y - 4))
            parts.append(f'<text class="key" x="{x + (20 if sign else 0):.1f}" y="{y:g}">{text}</text>')
            x += text_width(text, 12) + (44 if sign else 24)
    return "".join(parts)


def _colour_scale(flow: Flow, scale: Scale, y: float) -> str:
    """Return the SVG of the colour scale, with powers of ten as ticks."""
    parts = [
        f'<rect class="g{k}" x="{_LEFT + _SHADE_WIDTH * k}" y="{y - 10:g}" width="{_SHADE_WIDTH}" height="11"/>'
        for k in range(_SHADES)
    ]
    for tick in scale.ticks:
        x = _LEFT + _SHADE_WIDTH * _SHADES * scale.position(10.0**tick)
        prefix = "≤ " if tick == scale.low and _has_sizes_below(flow, scale) else ""
        parts.append(f'<path class="nil" d="M{x:.1f} {y + 1:g}v3"/>')
        x -= text_width(prefix, 12) / 2
        parts.append(f'<text class="key mid" x="{x:.1f}" y="{y + 17:g}">{prefix}{format_power(tick)}</text>')
    return "".join(parts)


def _has_sizes_below(flow: Flow, scale: Scale) -> bool:
    low = 10.0**scale.low
    return any(0 < size < low * 0.999 for column in flow.columns for size in column.sizes.values())


def _legend_sign(sign: str, x: float, y: float) -> str:
    if sign == "wild":
        return f'<path class="wild" d="M{x:.1f} {y - 6:g}l12 12m0 -12l-12 12"/>'
    if sign == "nil":
        return f'<path class="nil" d="M{x:.1f} {y:g}h14"/>'
    if sign == "!":
        return (
            f'<circle class="here" cx="{x + 7:.1f}" cy="{y:g}" r="{_SIGN_RADIUS}"/>'
            f'<text class="bang" x="{x + 7:.1f}" y="{y + 4:g}">!</text>'
        )
    return ""
