"""The training dashboard, as SVG, HTML and text.

It shows the loss curve, the gradient flow of all layers over the steps, and a row per layer with the statistics of one
step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from minigrad_viz.pictures import flow
from minigrad_viz.pictures.axes import Axis, ticks
from minigrad_viz.pictures.palette import Theme, stylesheet
from minigrad_viz.pictures.static_page import html_page, image_tag, svg_document, zoomable
from minigrad_viz.trace.arrays import bars
from minigrad_viz.trace.gradient_flow import Flow
from minigrad_viz.trace.notation import escape, fit, format_compact, format_pretty, text_width

__all__ = ["LayerRow", "TrainingView", "dashboard_text", "figure", "page", "render_dashboard"]

Point = tuple[int, float]

WIDTH = 840  # width in pixels, which fits into a notebook cell
_LEFT, _RIGHT, _TOP, _CURVE_HEIGHT = 58, 824, 44, 132  # position and height of the loss curve
_ROW_HEIGHT = 34
_BINS, _TEXT_BINS = 28, 12
_MAX_POINTS = 300  # maximum number of points of a curve
_COLUMNS = {"layer": 16, "values": 146, "gradients": 310, "norm": 492, "update": 614, "dead": 758}
_HISTOGRAM_WIDTH = 60  # width of a histogram
_DEAD_BAR_WIDTH = 20  # width of the bar for the fraction of dead units
_MIN_DECADE, _DECADE_SPAN = -6.0, 6.0  # logarithmic axis of update/weight
_USUAL_DECADES = (-4.0, -2.0)  # usual range of update/weight, around 1e-3
_MAX_DEAD_FRACTION = 0.5  # fraction of dead units that triggers a warning

SHAPES = (
    ".mg .curve{{fill:none;stroke-width:1.75;stroke-linejoin:round}}.mg .band{{stroke:none}}"
    ".mg .axis{{fill:none;stroke-width:1}}.mg .head2{{font-size:15px;font-weight:700}}.mg .warn{{font-weight:700}}"
    ".mg .end{{text-anchor:end}}.mg .kind{{font-size:10.5px}}"
)
COLOURS = (
    ".mg .curve{{stroke:{forward}}}.mg .curve.bw{{stroke:{backward};fill:none}}.mg .band{{fill:{forward};"
    "fill-opacity:.18}}.mg .axis{{stroke:{rim}}}.mg .zero2{{stroke:{line};fill:none}}.mg .warn{{fill:{alarm}}}"
    ".mg .track{{fill:{op}}}.mg .usual{{fill:{line};fill-opacity:.35}}.mg .dot{{fill:{backward}}}"
    ".mg .dot.warn{{fill:{alarm}}}.mg .stripe{{fill:{ink};fill-opacity:.03}}"
)


@dataclass
class LayerRow:
    """A row of the dashboard: samples of a layer's outputs and their gradients, and statistics of its parameters."""

    name: str
    kind: str
    values: Any = None
    gradients: Any = None
    norms: list[Point] = field(default_factory=list)
    """The norm of the parameters' gradient at each measured step."""
    update_ratio: float | None = None
    """The norm of the parameters' last update, divided by the norm of the parameters."""
    dead_fraction: float | None = None
    """The fraction of units for which a ReLU, in or after the layer, outputs 0 for the entire batch."""


@dataclass
class TrainingView:
    """The data of the dashboard."""

    model: str
    step: int = 0
    measured_step: int = 0
    """The step at which the layers were measured."""
    losses: list[Point] = field(default_factory=list)
    validation: list[Point] = field(default_factory=list)
    layers: list[LayerRow] = field(default_factory=list)
    hidden_count: int = 0
    """The number of layers that are not shown."""
    flow: Flow = field(default_factory=Flow)
    """The gradient norms of the layers at each measured step."""

    def summary(self) -> str:
        """Return a one-line summary."""
        if not self.losses:
            return f"{self.model}: no step yet"
        first, last = self.losses[0][1], self.losses[-1][1]
        parts = [f"{self.model} after {self.step:,} step{'' if self.step == 1 else 's'}"]
        parts.append(f"loss {_format_short(last)}, initially {_format_short(first)}")
        parts += [f"validation {_format_short(self.validation[-1][1])}"] if self.validation else []
        parts += [f"layers at step {self.measured_step:,}"] if self.measured_step else []
        return " · ".join(parts)


# --- text ------------------------------------------------------------------------------------------------------------


def dashboard_text(view: TrainingView) -> str:
    """Return the dashboard as text, for terminals and diffs."""
    headers = ["layer", "values", "gradients", "|gradient|", "update/weight", "dead"]
    rows = [headers]
    for layer in view.layers:
        norm = _format_short(layer.norms[-1][1]) if layer.norms else ""
        dead = "" if layer.dead_fraction is None else f"{layer.dead_fraction:.0%}"
        update = "" if layer.update_ratio is None else _format_short(layer.update_ratio)
        rows.append([layer.name, _sample_text(layer.values), _sample_text(layer.gradients), norm, update, dead])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = [
        "  ".join(x.ljust(w) if k < 3 else x.rjust(w) for k, (x, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]
    gradients = flow.text_lines(view.flow, [layer.name for layer in view.layers])
    footer = [_hidden_note(view)] if view.hidden_count else []
    return "\n".join([view.summary(), *(line.rstrip() for line in table), *gradients, *footer])


def _sample_text(sample: Any) -> str:
    if sample is None:
        return ""
    low, high, counts, non_finite = _histogram(sample, _TEXT_BINS)
    warning = f" NaN or Inf! {non_finite}" if non_finite else ""
    return f"{_format_short(low)} … {_format_short(high)} {bars(counts)}{warning}"


def _hidden_note(view: TrainingView) -> str:
    return f"{view.hidden_count} more layers are not shown; select layers with watch(model, layers=[…])."


def _format_short(x: float | None) -> str:
    """Format a float with 3 significant digits.

    >>> [_format_short(x) for x in (0.0, 1234.5, 0.00012345, -2.0)]
    ['0.0', '1230.0', '0.000123', '−2.0']
    """
    return format_pretty(None if x is None else float(f"{x:.3g}"))


def _histogram(sample: Any, bins: int) -> tuple[float | None, float | None, list[int], int]:
    """Return the minimum and maximum of a sample, its histogram between them, and its number of non-finite elements."""
    import numpy as np

    finite = sample[np.isfinite(sample)]
    non_finite = int(sample.size - finite.size)
    if not finite.size:
        return None, None, [0] * bins, non_finite
    low, high = float(finite.min()), float(finite.max())
    if low == high:
        counts = [0] * bins
        counts[bins // 2] = int(finite.size)
        return low, high, counts, non_finite
    return low, high, np.histogram(finite, bins, (low, high))[0].tolist(), non_finite


# --- SVG -------------------------------------------------------------------------------------------------------------


def figure(view: TrainingView) -> str:
    """Return an HTML fragment with the dashboard as an image, which needs no JavaScript."""
    image = image_tag(render_dashboard(view), _text_alternative(view), WIDTH, f"{WIDTH}px")
    return f'<figure class="minigrad-watch" style="margin:0;overflow-x:auto">{image}</figure>'


def page(view: TrainingView, theme: Theme | None = None) -> str:
    """Return an HTML page with the dashboard and its text form."""
    picture = zoomable(render_dashboard(view, theme), WIDTH)
    text = f"<details><summary>As text</summary><pre>{escape(dashboard_text(view))}</pre></details>"
    return html_page(f"{view.model} · minigrad", f"<h1>{escape(view.summary())}</h1>{picture}{text}", theme)


def render_dashboard(view: TrainingView, theme: Theme | None = None) -> str:
    """Return the dashboard as SVG. It follows the user's theme unless `theme` is given."""
    names, kinds = [layer.name for layer in view.layers], [layer.kind for layer in view.layers]
    flow_svg, flow_height = flow.draw_flow(view.flow, names, kinds, _TOP + _CURVE_HEIGHT + 34)
    top = _TOP + _CURVE_HEIGHT + 58 + (round(flow_height) + 12 if flow_height else 0)
    rows = "".join(_layer_row(layer, top + _ROW_HEIGHT * k, k) for k, layer in enumerate(view.layers))
    end = top + _ROW_HEIGHT * len(view.layers) + 6
    legend = [
        "histograms and norms: one step",
        "update/weight: the usual range, 1e−4 to 1e−2, in grey",
        "dead: units whose ReLU outputs 0 for the entire batch",
        *([_hidden_note(view)] if view.hidden_count else []),
    ]
    lines = _wrap_items(" · ".join(legend), WIDTH - 32)
    legend_svg = "".join(
        f'<text class="key" x="16" y="{end + 14 + 17 * k}">{escape(line)}</text>' for k, line in enumerate(lines)
    )
    height = end + 10 + 17 * len(lines)
    summary = view.summary()
    heading = f'<text class="head2" x="16" y="26">{escape(summary)}</text>'
    content = f"{heading}{_loss_curve(view)}{flow_svg}{_column_headers(top - 12)}{rows}{legend_svg}"
    css = stylesheet(SHAPES + flow.SHAPES, COLOURS + flow.COLOURS, theme)
    return svg_document(content, (WIDTH, height), css, summary, _text_alternative(view))


def _text_alternative(view: TrainingView) -> str:
    """Return a text alternative of the dashboard, for screen readers."""
    gradients = flow.summary_line(view.flow, [layer.name for layer in view.layers])
    return " ".join(filter(None, [f"{view.summary()}.", gradients]))


def _wrap_items(text: str, width: float) -> list[str]:
    lines = [""]
    for item in text.split(" · "):
        candidate = f"{lines[-1]} · {item}" if lines[-1] else item
        lines[-1:] = [candidate] if text_width(candidate, 11.5) <= width else [lines[-1], item]
    return lines


def _column_headers(y: float) -> str:
    titles = {
        "layer": "layer",
        "values": "values",
        "gradients": "their gradients",
        "norm": "|gradient| of weights",
        "update": "update / weight",
        "dead": "dead",
    }
    return "".join(
        f'<text class="cap dim" x="{_COLUMNS[k]}" y="{y}">{escape(title)}</text>' for k, title in titles.items()
    )


# --- the loss ---


def _loss_curve(view: TrainingView) -> str:
    points = [(step, loss) for step, loss in view.losses if math.isfinite(loss)]
    finite_points = points + [(step, loss) for step, loss in view.validation if math.isfinite(loss)]
    if not finite_points:
        message = "no finite loss" if view.losses else "no loss yet"
        return f'<text class="dim" x="{_LEFT}" y="{_TOP + 30}">{message}</text>'
    low, high = min(y for _, y in finite_points), max(y for _, y in finite_points)
    is_log = low > 0 and high / low > 30
    if not is_log:
        low = min(low, 0.0) if low < 0.3 * high else low
    if high == low:
        low, high = low - 0.5, high + 0.5
    x_of = Axis(1, max(view.step, 2), _LEFT, _RIGHT).pixel
    y_of = Axis(low, high, _TOP + _CURVE_HEIGHT, _TOP, is_log).pixel
    parts = []
    for tick in ticks(low, high, is_log):
        y = y_of(tick)
        parts.append(f'<path class="axis" d="M{_LEFT} {y:.1f}H{_RIGHT}"/>')
        parts.append(f'<text class="cap dim end" x="{_LEFT - 8}" y="{y + 3.5:.1f}">{_format_short(tick)}</text>')
    bins = list(_downsample(points))
    if len(bins) < len(points):
        upper = "L".join(f"{x_of(step):.1f} {y_of(highest):.1f}" for step, _, _, highest in bins)
        lower = "L".join(f"{x_of(step):.1f} {y_of(lowest):.1f}" for step, _, lowest, _ in reversed(bins))
        parts.append(f'<path class="band" d="M{upper}L{lower}z"/>')
    parts.append(_polyline("curve", [(x_of(step), y_of(mean)) for step, mean, _, _ in bins]))
    for step, loss in view.validation:
        if math.isfinite(loss):
            parts.append(f'<circle class="dot" cx="{x_of(step):.1f}" cy="{y_of(loss):.1f}" r="3.5"/>')
    bottom = _TOP + _CURVE_HEIGHT + 16
    parts.append(f'<text class="cap dim" x="{_LEFT}" y="{bottom}">step 1</text>')
    parts.append(f'<text class="cap dim end" x="{_RIGHT}" y="{bottom}">{max(view.step, 2):,}</text>')
    scale = ", on a logarithmic scale" if is_log else ""
    spread = ": mean and range" if len(bins) < len(points) else ""
    parts.append(f'<text class="cap fw" x="{_LEFT + 60}" y="{bottom}">— loss{scale}{spread}</text>')
    if view.validation:
        parts.append(f'<text class="cap bw" x="{_LEFT + 350}" y="{bottom}">● validation</text>')
    return "".join(parts)


def _downsample(points: Sequence[Point]) -> Iterator[tuple[float, float, float, float]]:
    """Yield the mean step, mean, minimum and maximum of at most `_MAX_POINTS` bins of a curve."""
    size = -(-len(points) // _MAX_POINTS)
    for start in range(0, len(points), max(size, 1)):
        chunk = points[start : start + size]
        values = [y for _, y in chunk]
        yield sum(x for x, _ in chunk) / len(chunk), sum(values) / len(chunk), min(values), max(values)


def _polyline(css_class: str, points: Sequence[tuple[float, float]]) -> str:
    if len(points) == 1:
        points = [points[0], (points[0][0] + 2, points[0][1])]
    return f'<path class="{css_class}" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in points)}"/>' if points else ""


# --- a layer ---


def _layer_row(layer: LayerRow, y: float, index: int) -> str:
    stripe = f'<rect class="stripe" x="8" y="{y}" width="{WIDTH - 16}" height="{_ROW_HEIGHT}" rx="4"/>'
    parts = [stripe] if index % 2 else []
    parts.append(f'<text class="name" x="16" y="{y + 15}">{escape(fit(layer.name, 122, 13, True))}</text>')
    parts.append(f'<text class="kind dim" x="16" y="{y + 28}">{escape(fit(layer.kind, 122, 11))}</text>')
    parts.append(_histogram_svg(layer.values, _COLUMNS["values"], y, "fw"))
    parts.append(_histogram_svg(layer.gradients, _COLUMNS["gradients"], y, "bw"))
    if layer.norms:
        parts.append(_norm_sparkline(layer.norms, _COLUMNS["norm"], y))
    if layer.update_ratio is not None:
        parts.append(_update_axis(layer.update_ratio, _COLUMNS["update"], y))
    if layer.dead_fraction is not None:
        parts.append(_dead_bar(layer.dead_fraction, _COLUMNS["dead"], y))
    return "".join(parts)


def _histogram_svg(sample: Any, x: float, y: float, css_class: str) -> str:
    if sample is None:
        return f'<text class="dim" x="{x}" y="{y + 20}">—</text>'
    low, high, counts, non_finite = _histogram(sample, _BINS)
    max_count, bin_width = max(counts) or 1, _HISTOGRAM_WIDTH / _BINS
    bars = []
    for k, count in enumerate(counts):
        if count:
            bar_height = max(1.0, 24 * math.sqrt(count / max_count))
            bars.append(f"M{x + k * bin_width:.1f} {y + 29:g}v-{bar_height:.1f}h{bin_width:.2f}v{bar_height:.1f}z")
    parts = [f'<path class="{css_class}" d="{"".join(bars)}"/>' if bars else ""]
    parts.append(f'<path class="axis" d="M{x} {y + 29.5}h{_HISTOGRAM_WIDTH}"/>')
    if low is not None and high is not None and low < 0 < high:
        zero = x + _HISTOGRAM_WIDTH * -low / (high - low)
        parts.append(f'<path class="zero2" d="M{zero:.1f} {y + 29}v4"/>')
    label_x = x + _HISTOGRAM_WIDTH + 8
    span = format_compact(low) if low == high else f"{format_compact(low)} … {format_compact(high)}"
    parts.append(f'<text class="cap {css_class}" x="{label_x}" y="{y + 21}">{span}</text>')
    if non_finite:
        parts.append(f'<text class="cap warn" x="{label_x}" y="{y + 10}">! {non_finite} NaN or Inf</text>')
    return "".join(parts)


def _norm_sparkline(norms: Sequence[Point], x: float, y: float) -> str:
    """Return the SVG of a sparkline of a norm, on a logarithmic scale, with the current value."""
    finite_norms = [(step, math.log10(n)) for step, n in norms if 0 < n < math.inf]
    parts = []
    if finite_norms:
        low, high = min(n for _, n in finite_norms), max(n for _, n in finite_norms)
        span, first, last = max(high - low, 0.5), finite_norms[0][0], max(finite_norms[-1][0], finite_norms[0][0] + 1)
        points = [
            (x + 46 * (step - first) / (last - first), y + 28 - 22 * (n - low) / span)
            for step, n, _, _ in _downsample(finite_norms)
        ]
        parts.append(_polyline("curve bw", points))
    parts.append(f'<text class="cap bw" x="{x + 54}" y="{y + 21}">{_format_short(norms[-1][1])}</text>')
    return "".join(parts)


def _update_axis(ratio: float, x: float, y: float) -> str:
    """Return the SVG of the update/weight ratio, as a dot on a logarithmic axis of six decades."""
    width = 56
    decade = math.log10(ratio) if ratio > 0 else _MIN_DECADE  # 0 and NaN are drawn at the minimum.
    position = min(max(decade - _MIN_DECADE, 0.0), _DECADE_SPAN) / _DECADE_SPAN
    left, right = ((edge - _MIN_DECADE) / _DECADE_SPAN * width for edge in _USUAL_DECADES)
    is_usual = ratio == ratio and 10 ** (_USUAL_DECADES[0] - 1) <= ratio <= 10 ** (_USUAL_DECADES[1] + 1)
    return (
        f'<rect class="track" x="{x}" y="{y + 15}" width="{width}" height="4" rx="2"/>'
        f'<rect class="usual" x="{x + left:.1f}" y="{y + 15}" width="{right - left:.1f}" height="4"/>'
        f'<circle class="dot{"" if is_usual else " warn"}" cx="{x + width * position:.1f}" cy="{y + 17}" r="4.5"/>'
        f'<text class="cap {"bw" if is_usual else "warn"}" x="{x + width + 8}" y="{y + 21}">'
        f"{'' if is_usual else '! '}{_format_short(ratio)}</text>"
    )


def _dead_bar(fraction: float, x: float, y: float) -> str:
    is_warning = fraction >= _MAX_DEAD_FRACTION
    label = f"{'! ' if is_warning else ''}{fraction:.0%}"
    return (
        f'<rect class="track" x="{x}" y="{y + 15}" width="{_DEAD_BAR_WIDTH}" height="4" rx="2"/>'
        f'<rect class="{"warn" if is_warning else "fw"}" x="{x}" y="{y + 15}" width="{_DEAD_BAR_WIDTH * fraction:.1f}" '
        'height="4" rx="2"/>'
        f'<text class="cap{" warn" if is_warning else ""}" x="{x + _DEAD_BAR_WIDTH + 6}" y="{y + 21}">{label}</text>'
    )
