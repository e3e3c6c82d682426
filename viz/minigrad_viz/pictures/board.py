"""The training dashboard: the loss curve, the gradient flow of all layers over the steps, and a row per layer for one
step, as SVG, HTML and text.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from minigrad_viz.pictures import flow
from minigrad_viz.pictures.palette import Theme, stylesheet
from minigrad_viz.pictures.standalone import standalone, zoomed
from minigrad_viz.trace.arrays import bars
from minigrad_viz.trace.gradient_flow import Flow
from minigrad_viz.trace.notation import compact, escape, fit, pretty, text_width

__all__ = ["LayerRow", "TrainingView", "board", "figure", "lines", "page", "ticks"]

Point = tuple[int, float]

WIDTH = 840  # fits between the margins of a notebook without being scaled down
_LEFT, _RIGHT, _TOP, _HIGH = 58, 824, 44, 132  # box of the loss curve
_ROW = 34
_BINS, _TEXT_BINS = 28, 12
_POINTS = 300  # maximum points of a curve
_COLUMNS = {"layer": 16, "values": 146, "gradients": 310, "norm": 492, "update": 614, "dead": 758}
_WIDE = 60  # width of a histogram
_DEAD = 20  # width of a bar of dead units
_LOW, _SPAN = -6.0, 6.0  # axis of update/weight, in decades
_USUAL = (-4.0, -2.0)  # usual range in healthy training: about 1e-3
_DYING = 0.5  # fraction of dead units that triggers a warning

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
    """Measurements of a layer: samples of its outputs and their gradients, and statistics of its parameters."""

    name: str
    kind: str
    values: Any = None
    gradients: Any = None
    norms: list[Point] = field(default_factory=list)
    """The norm of the gradient of its parameters at each measured step."""
    update: float | None = None
    """The norm of the last update of its parameters, divided by the norm of the parameters."""
    dead: float | None = None
    """The fraction of its units for which a ReLU, in or after the layer, outputs 0 for the entire batch."""


@dataclass
class TrainingView:
    """The data of the dashboard."""

    model: str
    step: int = 0
    measured: int = 0
    """The step at which the layers were measured."""
    losses: list[Point] = field(default_factory=list)
    validation: list[Point] = field(default_factory=list)
    layers: list[LayerRow] = field(default_factory=list)
    hidden: int = 0
    """The number of layers that are not shown."""
    flow: Flow = field(default_factory=Flow)
    """The gradients of the layers at each measured step."""

    def sentence(self) -> str:
        """Return a one-line summary."""
        if not self.losses:
            return f"{self.model}: no step yet"
        first, last = self.losses[0][1], self.losses[-1][1]
        parts = [f"{self.model} after {self.step:,} step{'' if self.step == 1 else 's'}"]
        parts.append(f"loss {_short(last)}, initially {_short(first)}")
        parts += [f"validation {_short(self.validation[-1][1])}"] if self.validation else []
        parts += [f"layers at step {self.measured:,}"] if self.measured else []
        return " · ".join(parts)


# --- text ------------------------------------------------------------------------------------------------------------


def lines(view: TrainingView) -> str:
    """Return the dashboard as text, for terminals and diffs."""
    heads = ["layer", "values", "gradients", "|gradient|", "update/weight", "dead"]
    rows = [heads]
    for layer in view.layers:
        norm = _short(layer.norms[-1][1]) if layer.norms else ""
        dead = "" if layer.dead is None else f"{layer.dead:.0%}"
        update = "" if layer.update is None else _short(layer.update)
        rows.append([layer.name, _told(layer.values), _told(layer.gradients), norm, update, dead])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = [
        "  ".join(
            text.ljust(w) if k < 3 else text.rjust(w) for k, (text, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    gradients = flow.lines(view.flow, [layer.name for layer in view.layers])
    more = [_said_hidden(view)] if view.hidden else []
    return "\n".join([view.sentence(), *(line.rstrip() for line in table), *gradients, *more])


def _told(sample: Any) -> str:
    if sample is None:
        return ""
    low, high, counts, wild = _histogram(sample, _TEXT_BINS)
    return f"{_short(low)} … {_short(high)} {bars(counts)}" + (f" NaN or Inf! {wild}" if wild else "")


def _said_hidden(view: TrainingView) -> str:
    return f"{view.hidden} more layers are not shown; select layers with watch(model, layers=[…])."


def _short(x: float | None) -> str:
    """Format a float with 3 significant digits.

    >>> [_short(x) for x in (0.0, 1234.5, 0.00012345, -2.0)]
    ['0.0', '1230.0', '0.000123', '−2.0']
    """
    return pretty(None if x is None else float(f"{x:.3g}"))


def _histogram(sample: Any, bins: int) -> tuple[float | None, float | None, list[int], int]:
    """Return the minimum, the maximum, the bin counts between them, and the number of non-finite elements."""
    import numpy as np

    finite = sample[np.isfinite(sample)]
    wild = int(sample.size - finite.size)
    if not finite.size:
        return None, None, [0] * bins, wild
    low, high = float(finite.min()), float(finite.max())
    if low == high:
        counts = [0] * bins
        counts[bins // 2] = int(finite.size)
        return low, high, counts, wild
    return low, high, np.histogram(finite, bins, (low, high))[0].tolist(), wild


# --- SVG -------------------------------------------------------------------------------------------------------------


def figure(view: TrainingView) -> str:
    """Return an HTML fragment with the dashboard as an image, which needs no JavaScript."""
    encoded = base64.b64encode(board(view).encode()).decode()
    return (
        '<figure class="minigrad-watch" style="margin:0;overflow-x:auto"><img alt="'
        f'{escape(_described(view))}" src="data:image/svg+xml;base64,{encoded}" width="{WIDTH}" '
        f'style="width:{WIDTH}px;max-width:none;height:auto"></figure>'
    )


def page(view: TrainingView, theme: Theme | None = None) -> str:
    """Return a page with the dashboard and its text form."""
    picture = zoomed(board(view, theme), WIDTH)
    text = f"<details><summary>As text</summary><pre>{escape(lines(view))}</pre></details>"
    return standalone(f"{view.model} · minigrad", f"<h1>{escape(view.sentence())}</h1>{picture}{text}", theme)


def board(view: TrainingView, theme: Theme | None = None) -> str:
    """Return the dashboard as SVG, in `theme`, or following the user's theme."""
    names, kinds = [layer.name for layer in view.layers], [layer.kind for layer in view.layers]
    gradients, high = flow.drawn(view.flow, names, kinds, _TOP + _HIGH + 34)
    top = _TOP + _HIGH + 58 + (round(high) + 12 if high else 0)
    rows = "".join(_layer(layer, top + _ROW * k, k) for k, layer in enumerate(view.layers))
    end = top + _ROW * len(view.layers) + 6
    key = [
        "histograms and norms: one step",
        "update/weight: the usual range, 1e−4 to 1e−2, in grey",
        "dead: units whose ReLU outputs 0 for the entire batch",
        *([_said_hidden(view)] if view.hidden else []),
    ]
    below = "".join(
        f'<text class="key" x="16" y="{end + 14 + 17 * k}">{escape(line)}</text>'
        for k, line in enumerate(_wrapped(" · ".join(key), WIDTH - 32))
    )
    height = end + 10 + 17 * len(_wrapped(" · ".join(key), WIDTH - 32))
    said = escape(view.sentence())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="mg" role="img" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}"><title>{said}</title><desc>{escape(_described(view))}</desc>'
        f"<style>{_css(theme)}</style>"
        f'<rect class="page" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>'
        f'<text class="head2" x="16" y="26">{said}</text>{_curve(view)}{gradients}{_heads(top - 12)}{rows}{below}</svg>'
    )


def _css(theme: Theme | None) -> str:
    css = stylesheet(SHAPES + flow.SHAPES, COLOURS + flow.COLOURS, theme)
    return css.replace("&", "&amp;").replace("<", "&lt;")


def _described(view: TrainingView) -> str:
    """Return a text alternative of the dashboard, for screen readers."""
    gradients = flow.sentence(view.flow, [layer.name for layer in view.layers])
    return " ".join(filter(None, [f"{view.sentence()}.", gradients]))


def _wrapped(text: str, width: float) -> list[str]:
    found = [""]
    for part in text.split(" · "):
        longer = f"{found[-1]} · {part}" if found[-1] else part
        found[-1:] = [longer] if text_width(longer, 11.5) <= width else [found[-1], part]
    return found


def _heads(y: float) -> str:
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


def _curve(view: TrainingView) -> str:
    points = [(step, loss) for step, loss in view.losses if math.isfinite(loss)]
    shown = points + [(step, loss) for step, loss in view.validation if math.isfinite(loss)]
    if not shown:
        said = "no finite loss" if view.losses else "no loss yet"
        return f'<text class="dim" x="{_LEFT}" y="{_TOP + 30}">{said}</text>'
    low, high = min(y for _, y in shown), max(y for _, y in shown)
    logs = low > 0 and high / low > 30
    if not logs:
        low = min(low, 0.0) if low < 0.3 * high else low
    if high == low:
        low, high = low - 0.5, high + 0.5
    of = math.log10 if logs else float
    last = max(view.step, 2)

    def x_of(step: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (step - 1) / (last - 1)

    def y_of(loss: float) -> float:
        return _TOP + _HIGH * (1 - (of(loss) - of(low)) / (of(high) - of(low)))

    parts = []
    for tick in ticks(low, high, logs):
        y = y_of(tick)
        parts.append(f'<path class="axis" d="M{_LEFT} {y:.1f}H{_RIGHT}"/>')
        parts.append(f'<text class="cap dim end" x="{_LEFT - 8}" y="{y + 3.5:.1f}">{_short(tick)}</text>')
    rows = list(_thinned(points))
    if len(rows) < len(points):
        upper = "L".join(f"{x_of(step):.1f} {y_of(most):.1f}" for step, _, _, most in rows)
        lower = "L".join(f"{x_of(step):.1f} {y_of(least):.1f}" for step, _, least, _ in reversed(rows))
        parts.append(f'<path class="band" d="M{upper}L{lower}z"/>')
    parts.append(_path("curve", [(x_of(step), y_of(mean)) for step, mean, _, _ in rows]))
    for step, loss in view.validation:
        if math.isfinite(loss):
            parts.append(f'<circle class="dot" cx="{x_of(step):.1f}" cy="{y_of(loss):.1f}" r="3.5"/>')
    bottom = _TOP + _HIGH + 16
    parts.append(f'<text class="cap dim" x="{_LEFT}" y="{bottom}">step 1</text>')
    parts.append(f'<text class="cap dim end" x="{_RIGHT}" y="{bottom}">{last:,}</text>')
    key = (
        "loss" + (", on a logarithmic scale" if logs else "") + (": mean and range" if len(rows) < len(points) else "")
    )
    parts.append(f'<text class="cap fw" x="{_LEFT + 60}" y="{bottom}">— {key}</text>')
    if view.validation:
        parts.append(f'<text class="cap bw" x="{_LEFT + 350}" y="{bottom}">● validation</text>')
    return "".join(parts)


def _thinned(points: Sequence[Point]) -> Iterator[tuple[float, float, float, float]]:
    """Downsample a curve to at most `_POINTS` bins: yield the mean step and the mean, minimum and maximum of each."""
    size = -(-len(points) // _POINTS)
    for start in range(0, len(points), max(size, 1)):
        part = points[start : start + size]
        values = [y for _, y in part]
        yield sum(x for x, _ in part) / len(part), sum(values) / len(part), min(values), max(values)


def ticks(low: float, high: float, logs: bool) -> list[float]:
    """Return round tick values between `low` and `high`; with `logs`, powers of ten.

    >>> ticks(0.0, 2.3, False), ticks(0.004, 3.0, True)
    ([0.0, 1.0, 2.0], [0.01, 0.1, 1.0])
    """
    if logs:
        decades = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
        every = max(1, -(-len(decades) // 4))
        return [10.0**k for k in decades][::every]
    rough = (high - low) / 3
    unit = 10.0 ** math.floor(math.log10(rough))
    size = next(unit * k for k in (1, 2, 5, 10) if unit * k >= rough)
    return [k * size for k in range(math.ceil(low / size), math.floor(high / size) + 1)]


def _path(look: str, points: Sequence[tuple[float, float]]) -> str:
    if len(points) == 1:
        points = [points[0], (points[0][0] + 2, points[0][1])]
    return f'<path class="{look}" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in points)}"/>' if points else ""


# --- a layer ---


def _layer(layer: LayerRow, y: float, place: int) -> str:
    parts = [f'<rect class="stripe" x="8" y="{y}" width="{WIDTH - 16}" height="{_ROW}" rx="4"/>'] if place % 2 else []
    parts.append(f'<text class="name" x="16" y="{y + 15}">{escape(fit(layer.name, 122, 13, True))}</text>')
    parts.append(f'<text class="kind dim" x="16" y="{y + 28}">{escape(fit(layer.kind, 122, 11))}</text>')
    parts.append(_histogram_of(layer.values, _COLUMNS["values"], y, "fw"))
    parts.append(_histogram_of(layer.gradients, _COLUMNS["gradients"], y, "bw"))
    if layer.norms:
        parts.append(_norms(layer.norms, _COLUMNS["norm"], y))
    if layer.update is not None:
        parts.append(_update(layer.update, _COLUMNS["update"], y))
    if layer.dead is not None:
        parts.append(_dead(layer.dead, _COLUMNS["dead"], y))
    return "".join(parts)


def _histogram_of(sample: Any, x: float, y: float, look: str) -> str:
    if sample is None:
        return f'<text class="dim" x="{x}" y="{y + 20}">—</text>'
    low, high, counts, wild = _histogram(sample, _BINS)
    most, wide = max(counts) or 1, _WIDE / _BINS
    bars = []
    for k, count in enumerate(counts):
        if count:
            high_ = max(1.0, 24 * math.sqrt(count / most))
            bars.append(f"M{x + k * wide:.1f} {y + 29:g}v-{high_:.1f}h{wide:.2f}v{high_:.1f}z")
    parts = [f'<path class="{look}" d="{"".join(bars)}"/>' if bars else ""]
    parts.append(f'<path class="axis" d="M{x} {y + 29.5}h{_WIDE}"/>')
    if low is not None and high is not None and low < 0 < high:
        zero = x + _WIDE * -low / (high - low)
        parts.append(f'<path class="zero2" d="M{zero:.1f} {y + 29}v4"/>')
    beside = x + _WIDE + 8
    span = compact(low) if low == high else f"{compact(low)} … {compact(high)}"
    parts.append(f'<text class="cap {look}" x="{beside}" y="{y + 21}">{span}</text>')
    if wild:
        parts.append(f'<text class="cap warn" x="{beside}" y="{y + 10}">! {wild} NaN or Inf</text>')
    return "".join(parts)


def _norms(norms: Sequence[Point], x: float, y: float) -> str:
    """Return a sparkline of a norm on a logarithmic scale, with its current value."""
    there = [(step, math.log10(n)) for step, n in norms if 0 < n < math.inf]
    parts = []
    if there:
        low, high = min(n for _, n in there), max(n for _, n in there)
        span, first, last = max(high - low, 0.5), there[0][0], max(there[-1][0], there[0][0] + 1)
        points = [
            (x + 46 * (step - first) / (last - first), y + 28 - 22 * (n - low) / span)
            for step, n, _, _ in _thinned(there)
        ]
        parts.append(_path("curve bw", points))
    parts.append(f'<text class="cap bw" x="{x + 54}" y="{y + 21}">{_short(norms[-1][1])}</text>')
    return "".join(parts)


def _update(update: float, x: float, y: float) -> str:
    """Return the update/weight ratio as a dot on an axis of six decades."""
    wide = 56
    place = min(max((math.log10(update) if update > 0 else _LOW) - _LOW, 0.0), _SPAN) / _SPAN if update == update else 0
    left, right = ((edge - _LOW) / _SPAN * wide for edge in _USUAL)
    usual = update == update and 10 ** (_USUAL[0] - 1) <= update <= 10 ** (_USUAL[1] + 1)
    return (
        f'<rect class="track" x="{x}" y="{y + 15}" width="{wide}" height="4" rx="2"/>'
        f'<rect class="usual" x="{x + left:.1f}" y="{y + 15}" width="{right - left:.1f}" height="4"/>'
        f'<circle class="dot{"" if usual else " warn"}" cx="{x + wide * place:.1f}" cy="{y + 17}" r="4.5"/>'
        f'<text class="cap {"bw" if usual else "warn"}" x="{x + wide + 8}" y="{y + 21}">'
        f"{'' if usual else '! '}{_short(update)}</text>"
    )


def _dead(dead: float, x: float, y: float) -> str:
    dying = dead >= _DYING
    said = f"{'! ' if dying else ''}{dead:.0%}"
    return (
        f'<rect class="track" x="{x}" y="{y + 15}" width="{_DEAD}" height="4" rx="2"/>'
        f'<rect class="{"warn" if dying else "fw"}" x="{x}" y="{y + 15}" width="{_DEAD * dead:.1f}" height="4" rx="2"/>'
        f'<text class="cap{" warn" if dying else ""}" x="{x + _DEAD + 6}" y="{y + 21}">{said}</text>'
    )
