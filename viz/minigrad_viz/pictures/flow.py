"""Gradient flow as a heatmap, in SVG and text: a row per layer, a column per measured step, logarithmic colours.

A cell is blank if nothing was measured, crossed if the gradient is not finite, and dashed if it is 0. An alarm is a
sign in the cell where it starts, and a line of text below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from minigrad_viz.pictures.palette import FLOW
from minigrad_viz.trace.gradient_flow import Alarm, Flow
from minigrad_viz.trace.notation import compact, escape, fit, fit_cells, text_width

__all__ = ["COLOURS", "SHAPES", "Scale", "alarm_lines", "drawn", "lines", "power", "scale_of", "sentence"]

_SHADES = len(FLOW["light"])
_DECADES = 12  # maximum range of a scale, below the largest size; smaller sizes have the lowest colour
_ROW, _WIDEST = 19, 24.0  # height of a row, maximum width of a cell
_SHADE = 28  # width of a shade in the legend
_LEFT, _RIGHT = 146, 824  # left and right edges of the heatmap; the names are to its left
_SIGN = 6.5  # radius
_LINE = 18
_NAMES = 4  # maximum layers that an alarm names
_TEXT_COLUMNS = 60
_BARS = "▁▂▃▄▅▆▇█"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

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
    """A logarithmic scale between the powers of ten `low` and `high`."""

    low: int
    high: int

    def place(self, size: float) -> float:
        """Return the position of a positive size, from 0 to 1."""
        return min(max((math.log10(size) - self.low) / (self.high - self.low), 0.0), 1.0)

    def step(self, size: float, steps: int) -> int:
        """Return the index of a positive size among `steps` equal steps."""
        return min(int(self.place(size) * steps), steps - 1)

    @property
    def marks(self) -> list[int]:
        """The exponents of the ticks: all, or every second, third …, from the highest."""
        every = -(-(self.high - self.low) // 6)
        return list(range(self.high, self.low - 1, -every))[::-1]


def scale_of(flow: Flow) -> Scale:
    """Return a scale that covers all sizes, of at most 12 decades.

    >>> from minigrad_viz.trace.gradient_flow import Measured
    >>> flow = Flow()
    >>> flow.add(1, Measured({0: 2e-5, 1: 0.3, 2: 0.0}))
    >>> scale_of(flow), scale_of(Flow())
    (Scale(low=-5, high=0), Scale(low=-1, high=0))
    """
    sizes = [size for column in flow.columns for size in column.sizes.values() if 0 < size < math.inf]
    if not sizes:
        return Scale(-1, 0)
    high = math.ceil(math.log10(max(sizes)))
    low = max(math.floor(math.log10(min(sizes))), high - _DECADES)
    return Scale(min(low, high - 1), high)


def power(exponent: int) -> str:
    """Format a power of ten.

    >>> power(-12)
    '10⁻¹²'
    """
    return f"10{str(exponent).translate(_SUPERSCRIPTS)}"


# --- in words --------------------------------------------------------------------------------------------------------


def sentence(flow: Flow, names: Sequence[str]) -> str:
    """Return a one-line summary; "" if nothing was measured."""
    if not flow.columns:
        return ""
    scale, count = scale_of(flow), sum(column.count for column in flow.columns)
    rows = len(flow.rows())
    said = f"Gradient flow: {rows} layer{'' if rows == 1 else 's'} over {count:,} measured step"
    said += f"{'' if count == 1 else 's'}, from {power(scale.low)} to {power(scale.high)}"
    return ". ".join([said, *alarm_lines(flow, names)]) + "."


def alarm_lines(flow: Flow, names: Sequence[str]) -> list[str]:
    """Return a line for each kind of alarm, in the order of their first occurrence."""
    together: dict[str, list[Alarm]] = {}
    for alarm in flow.alarms:
        together.setdefault(alarm.kind, []).append(alarm)
    return [f"{_when(alarms)}: {_SAID[kind](alarms, names)}" for kind, alarms in together.items()]


def _when(alarms: Sequence[Alarm]) -> str:
    first, last = alarms[0].step, alarms[-1].step
    return f"step {first:,}" if first == last else f"steps {first:,} to {last:,}"


def _which(alarms: Sequence[Alarm], names: Sequence[str]) -> str:
    rows = sorted(alarm.row for alarm in alarms)
    more = f" and {len(rows) - _NAMES} more" if len(rows) > _NAMES else ""
    return ", ".join(names[row] for row in rows[:_NAMES]) + more


def _wild(alarms: Sequence[Alarm], names: Sequence[str]) -> str:
    alarm = alarms[0]
    what = "NaN" if math.isnan(alarm.size) else "infinity"
    where = "the gradient of" if alarm.near is None else "the output of"
    return f"the first {what}, in {where} {names[alarm.row]}"


def _apart(what: str, worst: Callable[..., Alarm]) -> Callable[[Sequence[Alarm], Sequence[str]], str]:
    def said(alarms: Sequence[Alarm], names: Sequence[str]) -> str:
        alarm = worst(alarms, key=lambda one: one.size)
        near = f"{compact(alarm.other)} in {names[alarm.near or 0]}, nearest the loss"
        which = _which(alarms, names)
        size = (compact(alarm.size) if alarm.size else "0") + (f" in {names[alarm.row]}" if len(alarms) > 1 else "")
        return f"{what} gradient in {which}: {size}, versus {near}"

    return said


def _grown(alarms: Sequence[Alarm], names: Sequence[str]) -> str:
    alarm = max(alarms, key=lambda one: one.size)
    times = f"{compact(alarm.size)}, previously about {compact(alarm.other)}"
    return f"exploding gradient in {_which(alarms, names)}: {times}"


def _dead(alarms: Sequence[Alarm], names: Sequence[str]) -> str:
    share = max(alarm.size for alarm in alarms)
    return f"dead ReLUs in {_which(alarms, names)}: {share:.0%} of the units"


def _stale(alarms: Sequence[Alarm], names: Sequence[str]) -> str:
    return f"stale gradients in {_which(alarms, names)}: not cleared after the previous step; call zero_grad()"


_SAID: dict[str, Callable[[Sequence[Alarm], Sequence[str]], str]] = {
    "nan": _wild,
    "inf": _wild,
    "vanishing": _apart("vanishing", min),
    "exploding": _apart("exploding", max),
    "grown": _grown,
    "dead": _dead,
    "stale": _stale,
}


def _head(flow: Flow) -> str:
    """Return a description of a column."""
    if flow.every == 1:
        return "one column per measured step"
    return f"each column: maximum over {flow.every:,} measured steps"


# --- as text ---------------------------------------------------------------------------------------------------------


def lines(flow: Flow, names: Sequence[str]) -> list[str]:
    """Return the heatmap as text in at most 60 columns, with bars for sizes."""
    if not flow.columns:
        return []
    scale, rows = scale_of(flow), flow.rows()
    each = -(-len(flow.columns) // _TEXT_COLUMNS)
    groups = [flow.columns[at : at + each] for at in range(0, len(flow.columns), each)]
    begins = {(alarm.row, flow.column_of(alarm.step) // each) for alarm in flow.alarms}
    wide = max(len(names[row]) for row in rows)
    wide = min(wide, 32)
    shown = []
    for row in rows:
        marks = ""
        for at, group in enumerate(groups):
            sizes = [column.sizes[row] for column in group if row in column.sizes]
            marks += "!" if (row, at) in begins else _mark(sizes, scale)
        shown.append(f"{fit_cells(names[row], wide).ljust(wide)}  {marks}".rstrip())
    first, last = flow.columns[0].first, flow.columns[-1].last
    every = flow.every * each
    a = "one column per measured step" if every == 1 else f"each column: maximum over {every:,} measured steps"
    head = f"gradient flow: root mean square of each layer's gradient; {a}, {first:,} to {last:,}"
    key = f"{_BARS[0]} {power(scale.low)} … {_BARS[-1]} {power(scale.high)}, × NaN or Inf, 0 zero, ! start of an alarm"
    return [head, *shown, key, *(f"! {line}" for line in alarm_lines(flow, names))]


def _mark(sizes: Sequence[float], scale: Scale) -> str:
    if not sizes:
        return " "
    if not all(map(math.isfinite, sizes)):
        return "×"
    return _BARS[scale.step(max(sizes), len(_BARS))] if max(sizes) else "0"


# --- as SVG ----------------------------------------------------------------------------------------------------------


def drawn(flow: Flow, names: Sequence[str], kinds: Sequence[str], top: float) -> tuple[str, float]:
    """Return the SVG of the heatmap with its header, legend and alarms, below y = `top`, and its height; ("", 0) if
    nothing was measured. `names` are the paths of modules, `kinds` their classes."""
    if not flow.columns:
        return "", 0.0
    scale, rows = scale_of(flow), flow.rows()
    head = f"root mean square of each layer's gradient · {_head(flow)}"
    parts = [f'<text class="sub" x="16" y="{top + 12:g}">Gradient flow</text>']
    parts.append(f'<text class="key" x="{_LEFT}" y="{top + 12:g}">{escape(head)}</text>')
    begin = top + 24
    cell = min((_RIGHT - _LEFT) / len(flow.columns), _WIDEST)
    for at, row in enumerate(rows):
        y = begin + _ROW * at + 14
        name = fit(names[row], 122, 12.5)
        kind = fit(kinds[row], 114 - text_width(name, 12.5), 12.5)
        kind = f'<tspan class="dim" dx="7">{escape(kind)}</tspan>' if len(kind) > 2 else ""
        parts.append(f'<text x="16" y="{y:g}">{escape(name)}{kind}</text>')
    parts.append(_cells(flow, rows, scale, begin, cell))
    parts.append(_signs(flow, names, rows, begin, cell))
    y = begin + _ROW * len(rows) + 15
    parts.append(_axis(flow, y, cell))
    y += 23
    parts.append(_legend(flow, scale, y))
    y += 24
    for line in alarm_lines(flow, names):
        y += _LINE
        sign = f'<circle class="here" cx="23" cy="{y - 4:g}" r="{_SIGN}"/><text class="bang" x="23" y="{y:g}">!</text>'
        parts.append(f'{sign}<text class="said" x="36" y="{y:g}">{escape(fit(line, _RIGHT - 40, 12))}</text>')
    return f'<g class="flow">{"".join(parts)}</g>', y + 6 - top


def _cells(flow: Flow, rows: Sequence[int], scale: Scale, top: float, cell: float) -> str:
    """Return the cells: a path of horizontal runs for each shade, with crosses and dashes above them."""
    paths: dict[int, list[str]] = {}
    crossed, dashed = [], []
    for at, row in enumerate(rows):
        start, shades = 0, [_shade(column.sizes.get(row), scale) for column in flow.columns]
        for k, shade in enumerate(shades):
            if k + 1 == len(shades) or shades[k + 1] != shade:
                x, end, y = _LEFT + start * cell, _LEFT + (k + 1) * cell, top + at * _ROW
                if isinstance(shade, int):
                    paths.setdefault(shade, []).append(f"M{x:.1f} {y:g}H{end:.1f}v{_ROW - 1}H{x:.1f}z")
                elif shade == "×":
                    crossed.append(_crosses(x, y, end - x))
                elif shade == "0":
                    dashed.append(f"M{x:.1f} {y + _ROW / 2:g}H{end:.1f}")
                start = k + 1
    parts = [f'<path class="g{shade}" d="{"".join(path)}"/>' for shade, path in sorted(paths.items())]
    parts += [f'<path class="nil" d="{"".join(dashed)}"/>'] if dashed else []
    grid = f'<g class="cells">{"".join(parts)}</g>'
    wide = len(flow.columns) * cell
    rim = f'<rect class="map" x="{_LEFT - 0.5}" y="{top - 0.5:g}" width="{wide + 1:.1f}" height="{_ROW * len(rows)}"/>'
    return grid + (f'<path class="wild" d="{"".join(crossed)}"/>' if crossed else "") + rim


def _shade(size: float | None, scale: Scale) -> int | str:
    if size is None:
        return ""
    if not math.isfinite(size):
        return "×"
    return scale.step(size, _SHADES) if size else "0"


def _crosses(x: float, y: float, wide: float) -> str:
    """Return the path of a row of crosses, of a legible size however narrow the cells are."""
    high = _ROW - 1
    count = max(1, round(wide / high))
    side = wide / count
    return "".join(
        f"M{x + k * side + 1:.1f} {y + 2:g}l{side - 2:.1f} {high - 4}M{x + (k + 1) * side - 1:.1f} {y + 2:g}"
        f"l-{side - 2:.1f} {high - 4}"
        for k in range(count)
    )


def _signs(flow: Flow, names: Sequence[str], rows: Sequence[int], top: float, cell: float) -> str:
    """Return a sign for each cell where an alarm starts."""
    found: dict[tuple[int, int], list[Alarm]] = {}
    for alarm in flow.alarms:
        found.setdefault((rows.index(alarm.row), flow.column_of(alarm.step)), []).append(alarm)
    parts = []
    for (at, column), alarms in found.items():
        x, y = _LEFT + (column + 0.5) * cell, top + at * _ROW + (_ROW - 1) / 2
        said = "\n".join(f"step {alarm.step:,}: {_SAID[alarm.kind]([alarm], names)}" for alarm in alarms)
        parts.append(
            f'<g class="begins"><title>{escape(said)}</title><circle class="here" cx="{x:.1f}" cy="{y:g}" r="{_SIGN}"/>'
            f'<text class="bang" x="{x:.1f}" y="{y + 4:g}">!</text></g>'
        )
    return "".join(parts)


def _axis(flow: Flow, y: float, cell: float) -> str:
    """Return tick labels with the steps of some columns, as many as fit."""
    texts, taken = [], -math.inf
    count = len(flow.columns)
    places = sorted({round(k * (count - 1) / 5) for k in range(6)})
    for at in places:
        step = flow.columns[at].first if at < count - 1 else flow.columns[at].last
        text = f"step {step:,}" if not at else f"{step:,}"
        middle, half = _LEFT + (at + 0.5) * cell, text_width(text, 12) / 2
        x = min(max(middle, _LEFT + half), _RIGHT - half)
        if x - half > taken + 8:
            texts.append(f'<text class="key mid" x="{x:.1f}" y="{y:g}">{text}</text>')
            taken = x + half
    return "".join(texts)


def _legend(flow: Flow, scale: Scale, y: float) -> str:
    """Return the legend: the colour scale, and the signs that occur."""
    sizes = [column.sizes.get(row) for column in flow.columns for row in flow.rows()]
    parts, x = [], float(_LEFT)
    if any(size and math.isfinite(size) for size in sizes):
        parts.append(_ramp(flow, scale, y))
        x += _SHADE * _SHADES + 32
    for shown, sign, text in (
        (any(size is not None and not math.isfinite(size) for size in sizes), "wild", "NaN or Inf"),
        (0.0 in sizes, "nil", "0"),
        (None in sizes, "", "blank: no gradient measured"),
        (bool(flow.alarms), "!", "start of an alarm"),
    ):
        if shown:
            parts.append(_sample(sign, x, y - 4))
            parts.append(f'<text class="key" x="{x + (20 if sign else 0):.1f}" y="{y:g}">{text}</text>')
            x += text_width(text, 12) + (44 if sign else 24)
    return "".join(parts)


def _ramp(flow: Flow, scale: Scale, y: float) -> str:
    """Return the colour scale, with powers of ten as ticks."""
    parts = [
        f'<rect class="g{k}" x="{_LEFT + _SHADE * k}" y="{y - 10:g}" width="{_SHADE}" height="11"/>'
        for k in range(_SHADES)
    ]
    for mark in scale.marks:
        x = _LEFT + _SHADE * _SHADES * scale.place(10.0**mark)
        below = "≤ " if mark == scale.low and _below(flow, scale) else ""
        parts.append(f'<path class="nil" d="M{x:.1f} {y + 1:g}v3"/>')
        x -= text_width(below, 12) / 2
        parts.append(f'<text class="key mid" x="{x:.1f}" y="{y + 17:g}">{below}{power(mark)}</text>')
    return "".join(parts)


def _below(flow: Flow, scale: Scale) -> bool:
    low = 10.0**scale.low
    return any(0 < size < low * 0.999 for column in flow.columns for size in column.sizes.values())


def _sample(sign: str, x: float, y: float) -> str:
    if sign == "wild":
        return f'<path class="wild" d="M{x:.1f} {y - 6:g}l12 12m0 -12l-12 12"/>'
    if sign == "nil":
        return f'<path class="nil" d="M{x:.1f} {y:g}h14"/>'
    if sign == "!":
        return (
            f'<circle class="here" cx="{x + 7:.1f}" cy="{y:g}" r="{_SIGN}"/>'
            f'<text class="bang" x="{x + 7:.1f}" y="{y + 4:g}">!</text>'
        )
    return ""
