"""What `Plot` draws inside its axes: curves, markers, text and the cells of a map, as SVG."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from minigrad.backends.formula.parser import SYMBOLS
from minigrad_viz.pictures.axes import Axis
from minigrad_viz.pictures.curves import Point
from minigrad_viz.pictures.curves import format_coordinate as fmt
from minigrad_viz.pictures.palette import SERIES
from minigrad_viz.trace.notation import escape, subscript, text_width

__all__ = [
    "COLOURS",
    "SHAPES",
    "Axes",
    "draw_axes",
    "draw_curve",
    "draw_dashes",
    "draw_legend",
    "draw_map",
    "draw_markers",
    "draw_rectangle",
    "draw_text",
    "label_text",
    "tick_width",
]

_TICK_LENGTH, _TICK_SIZE, _LABEL_SIZE = 4.0, 12.5, 13.5  # in pixels, as are all sizes
_X_TICKS, _Y_TICKS = 8, 6  # maximum number of ticks
_KEY_WIDTH, _KEY_HEIGHT = 24.0, 20.0  # of an entry of the legend

SHAPES = (
    ".mg .curve,.mg .axis,.mg .dashes{{fill:none;stroke-linejoin:round;stroke-linecap:round}}"
    ".mg .dashes{{stroke-dasharray:5 5}}.mg .area,.mg .mark{{fill:currentColor}}.mg .map{{shape-rendering:crispEdges}}"
    ".mg .it{{font-style:italic}}"
)
COLOURS = (
    ".mg .curve{{stroke:currentColor}}.mg .axis,.mg .dashes{{stroke:{line}}}.mg .mark{{stroke:{page}}}"
    ".mg .ground{{fill-opacity:.85}}"
) + "".join(
    f".mg .C{k}{{{{color:{{series{k}}}}}}}.mg text.C{k}{{{{fill:{{series{k}}}}}}}" for k in range(len(SERIES["light"]))
)
_FAR = 1e5  # farthest pixel of a line, since renderers compute in single precision


class Axes(NamedTuple):
    """The two axes of a plot, which map data to pixels."""

    x: Axis
    y: Axis

    def point(self, x: float, y: float) -> Point:
        """Return the pixels of a point, which are NaN if it is not finite."""
        if not (math.isfinite(x) and math.isfinite(y)):
            return math.nan, math.nan
        return max(-_FAR, min(self.x.pixel(x), _FAR)), max(-_FAR, min(self.y.pixel(y), _FAR))

    def contains(self, x: float, y: float) -> bool:
        """Return whether a point is within the axes."""
        return self.x.low <= x <= self.x.high and self.y.low <= y <= self.y.high

    def clip(self, content: str) -> str:
        """Return `content` without what is outside the axes, except for half the width of a line."""
        left, top, right, bottom = self.x.start - 1, self.y.end - 1, self.x.end + 1, self.y.start + 1
        x, y, width, height = map(fmt, (left, top, right - left, bottom - top))
        box = f'x="{x}" y="{y}" width="{width}" height="{height}" viewBox="{x} {y} {width} {height}"'
        return f"<svg {box}>{content}</svg>"


def draw_curve(points: Sequence[Point], css_class: str, width: float) -> str:
    """Return a line through `points`, which is interrupted where a point is NaN."""
    runs = [list(run) for is_gap, run in groupby(points, key=lambda point: math.isnan(point[0])) if not is_gap]
    path = "".join(f"M{'L'.join(_pair(point) for point in run)}{'h0' if len(run) == 1 else ''}" for run in runs)
    return f'<path class="curve {css_class}" stroke-width="{width:g}" d="{path}"/>' if path else ""


def draw_dashes(start: Point, end: Point) -> str:
    """Return a dashed line."""
    return f'<path class="dashes" d="M{_pair(start)}L{_pair(end)}"/>'


def draw_markers(points: Iterable[Point], css_class: str, shape: str, size: float) -> str:
    """Return a marker ("o", "^", "s") of about `size` pixels at each of `points`. They have equal areas."""
    r = size / 2
    outline = {
        "o": f"m{fmt(-r)} 0a{fmt(r)} {fmt(r)} 0 1 0 {fmt(size)} 0a{fmt(r)} {fmt(r)} 0 1 0 {fmt(-size)} 0z",
        "^": f"m0 {fmt(-1.4 * r)}l{fmt(1.3 * r)} {fmt(2.3 * r)}h{fmt(-2.6 * r)}z",
        "s": f"m{fmt(-0.9 * r)} {fmt(-0.9 * r)}h{fmt(1.8 * r)}v{fmt(1.8 * r)}h{fmt(-1.8 * r)}z",
    }[shape]
    path = "".join(f"M{_pair(point)}{outline}" for point in points)
    return f'<path class="mark {css_class}" d="{path}"/>' if path else ""


def draw_rectangle(axes: Axes, xs: Sequence[float], ys: Sequence[float], css_class: str, opacity: float) -> str:
    """Return a rectangle between two `xs` and two `ys`."""
    (left, right), (bottom, top) = map(axes.x.pixel, xs), map(axes.y.pixel, ys)
    path = _rectangle_path(left, right, bottom, top)
    return f'<path class="area {css_class}" fill-opacity="{opacity:g}" d="{path}"/>'


def _rectangle_path(left: float, right: float, bottom: float, top: float) -> str:
    return f"M{_pair((left, top))}H{fmt(right)}V{fmt(bottom)}H{fmt(left)}z"


def draw_map(axes: Axes, xs: Sequence[float], ys: Sequence[float], classes: Sequence[Sequence[int]]) -> str:
    """Return the cells of a map, coloured by class. Equal neighbours in a row are one rectangle."""
    lefts, bottoms = _cell_edges(axes.x, xs), _cell_edges(axes.y, ys)
    paths: dict[int, str] = {}
    for row, (bottom, top) in zip(classes, pairwise(bottoms), strict=True):
        for k, run in groupby(range(len(row)), key=row.__getitem__):
            columns = list(run)
            left, right = lefts[columns[0]], lefts[columns[-1] + 1]
            paths[k] = paths.get(k, "") + _rectangle_path(left, right, bottom, top)
    cells = (f'<path class="area map C{k}" fill-opacity=".22" d="{paths[k]}"/>' for k in sorted(paths))
    return "".join(cells)


def _cell_edges(axis: Axis, centers: Sequence[float]) -> list[float]:
    """Return the pixels between `centers`, and those of the first and the last, where the map ends."""
    pixels = list(map(axis.pixel, centers))
    return [pixels[0], *((a + b) / 2 for a, b in pairwise(pixels)), pixels[-1]]


def tick_width(axis: Axis) -> float:
    """Return the width of the ticks of a vertical axis, with their labels."""
    return max((text_width(label, _TICK_SIZE) for _, label in axis.labels(_Y_TICKS)), default=0.0) + 2 * _TICK_LENGTH


def draw_axes(axes: Axes, labels: tuple[str, str]) -> str:
    """Return the lines, ticks and labels of the axes; the label of y is above its axis."""
    (left, right), (bottom, top) = axes.x[2:4], axes.y[2:4]
    path, parts = f"M{_pair((left, top))}V{fmt(bottom)}H{fmt(right)}", []
    for x, label in axes.x.labels(_X_TICKS):
        path += f"M{_pair((x, bottom))}v{_TICK_LENGTH:g}"
        parts.append(draw_text(label, (x, bottom + 14), _TICK_SIZE, "dim", "middle"))
    for y, label in axes.y.labels(_Y_TICKS):
        path += f"M{_pair((left, y))}h-{_TICK_LENGTH:g}"
        parts.append(draw_text(label, (left - 2 * _TICK_LENGTH, y), _TICK_SIZE, "dim", "end"))
    if labels[0]:
        parts.append(draw_text(labels[0], ((left + right) / 2, bottom + 33), _LABEL_SIZE, "", "middle"))
    if labels[1]:
        parts.append(draw_text(labels[1], (left - tick_width(axes.y), top - 20), _LABEL_SIZE))
    return f'<path class="axis" d="{path}"/>{"".join(parts)}'


def draw_legend(axes: Axes, keys: Sequence[tuple[str, Callable[[Point, Point], str]]], corner: str) -> str:
    """Return the legend in a corner, such as "upper left". `keys` are labels, and functions that draw their samples."""
    if not keys:
        return ""
    width = _KEY_WIDTH + 16 + max(text_width(label_text(label), _TICK_SIZE) for label, _ in keys)
    left = axes.x.start + 8 if corner.endswith("left") else axes.x.end - width
    height = _KEY_HEIGHT * len(keys)
    top = axes.y.end if corner.startswith("upper") else axes.y.start - 8 - height
    parts = [f'<path class="ground" d="{_rectangle_path(left, left + width, top + height, top)}"/>']
    for k, (label, draw_key) in enumerate(keys):
        start = (left + 4, top + _KEY_HEIGHT * (k + 0.5))
        parts.append(draw_key(start, (start[0] + _KEY_WIDTH, start[1])))
        parts.append(draw_text(label, (start[0] + _KEY_WIDTH + 8, start[1]), _TICK_SIZE))
    return "".join(parts)


def draw_text(label: str, at: Point, size: float, css_class: str = "", anchor: str = "start") -> str:
    """Return a label, vertically centred at a point. Letters between dollar signs are italic."""
    content = "".join(
        re.sub(r"[^\W\d_₀-₉]+", r'<tspan class="it">\g<0></tspan>', escape(part)) if is_maths else escape(part)
        for part, is_maths in _parts(label)
    )
    attributes = f'class="{css_class}" text-anchor="{anchor}" font-size="{size:g}"'
    return f'<text {attributes} x="{fmt(at[0])}" y="{fmt(at[1])}" dy=".35em">{content}</text>'


def label_text(label: str) -> str:
    r"""Return a label without markup.

    >>> label_text(r"slope by $w_1$, $a \cdot \sigma(z)$, for $5")
    'slope by w₁, a · σ(z), for $5'
    """
    return "".join(part for part, _ in _parts(label))


def _parts(label: str) -> list[tuple[str, bool]]:
    """Split a label into parts, each with whether it is mathematics, and replace the commands of TeX there."""
    parts = re.split(r"\$([^$]+)\$", label)
    return [(_replace_commands(part), True) if k % 2 else (part, False) for k, part in enumerate(parts)]


def _replace_commands(maths: str) -> str:
    maths = re.sub(r"\\[A-Za-z]+|-", lambda match: SYMBOLS.get(match[0], match[0]), maths)
    return re.sub(r"_(\d)|_\{(\d+)\}", lambda match: subscript(int(match[1] or match[2])), maths)


def _pair(point: Point) -> str:
    return f"{fmt(point[0])} {fmt(point[1])}"
