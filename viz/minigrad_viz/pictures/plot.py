"""Plots of lines, points, text and maps that follow the user's theme, without NumPy or matplotlib."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from minigrad.core.errors import ArgumentError, DTypeError, ShapeError, describe_type
from minigrad_viz.pictures import marks
from minigrad_viz.pictures.axes import Axis, fit_limits
from minigrad_viz.pictures.curves import Point
from minigrad_viz.pictures.file_writers import FileWriter, check_theme, save
from minigrad_viz.pictures.marks import Axes
from minigrad_viz.pictures.palette import SERIES, Theme, stylesheet
from minigrad_viz.pictures.rendering import render_png
from minigrad_viz.pictures.static_page import image_tag, svg_document
from minigrad_viz.trace.notation import format_brief, sanitize, shorten

__all__ = ["Plot"]

_COLORS = tuple([f"C{k}" for k in range(len(SERIES["light"]))])
_MARKERS = ("o", "^", "s")
_ANCHORS = {"left": "start", "center": "middle", "right": "end"}
_MARGIN, _LINE_HEIGHT = 16.0, 20.0  # in pixels
_MAX_ZOOM = 1.2  # a plot fills its column up to this multiple of its width


class _Mark(NamedTuple):
    """A line, a set of points, a text or a map of a plot."""

    kind: str
    draw: Callable[[Axes], str]
    xs: Sequence[float] = ()
    ys: Sequence[float] = ()
    label: str = ""
    details: str = ""
    """More about its data, for screen readers."""
    draw_key: Callable[[Point, Point], str] | None = None
    """Return the sample beside its label in the legend, between two points."""
    is_flush: bool = False
    """Whether the axes may end at its edges."""

    @property
    def name(self) -> str:
        return marks.label_text(self.label) or self.kind


class Plot:
    r"""A plot, which a notebook displays at the end of a cell. Its methods add to it, and return it.

    Each line and each set of points has the next of four colours, "C0" (blue), "C1" (orange), "C2" (green) and "C3"
    (grey), unless it is given one. Letters between dollar signs are italic, as in "weight $w_1$"; signs and Greek
    letters are written as in TeX, ``\cdot`` and ``\sigma``. Data are iterables of real numbers.

    `xlim` and `ylim` are the limits of the axes, (low, high); None selects a limit around the data. `xscale` and
    `yscale` are "linear" or "log", `legend` is "upper left", "upper right", "lower left" or "lower right". With
    ``aspect="equal"`` instead of "auto", both axes have the same scale; with ``axis=False``, no axes are drawn. `width`
    and `height` are in pixels. Raises ArgumentError for other options.

    >>> plot = Plot(xlabel="weight $w$", ylabel="answer $y$", ylim=(0, None))
    >>> plot.line([0, 1, 2], [0.5, 0.25, 0.125], "the neuron").points([1], [0.25])
    Plot(answer y over weight w: the neuron; 1 point)
    """

    def __init__(
        self,
        *,
        xlabel: str = "",
        ylabel: str = "",
        xlim: tuple[float | None, float | None] = (None, None),
        ylim: tuple[float | None, float | None] = (None, None),
        xscale: str = "linear",
        yscale: str = "linear",
        legend: str = "upper right",
        aspect: str = "auto",
        axis: bool = True,
        width: int = 480,
        height: int = 300,
    ) -> None:
        scales = ("linear", "log")
        self._is_log = [
            _check("Plot: xscale", xscale, scales) == "log",
            _check("Plot: yscale", yscale, scales) == "log",
        ]
        self._limits = [_check_limits("xlim", xlim, self._is_log[0]), _check_limits("ylim", ylim, self._is_log[1])]
        corners = [f"{vertical} {side}" for vertical in ("upper", "lower") for side in ("left", "right")]
        self._legend = _check("Plot: legend", legend, corners)
        self._has_equal_scales = _check("Plot: aspect", aspect, ("auto", "equal")) == "equal"
        self._labels, self._has_axes, self._size = (sanitize(xlabel), sanitize(ylabel)), axis, (width, height)
        self._marks: list[_Mark] = []
        self._series_count = 0

    # --- marks ---

    def line(
        self,
        xs: Iterable[float],
        ys: Iterable[float],
        label: str = "",
        *,
        color: str | None = None,
        marker: str = "",
        linewidth: float = 2.2,
        markersize: float = 6.0,
    ) -> Plot:
        """Add a line through the points (x, y), with a `marker` at each: "o", "^", "s", or "" for none.

        It is interrupted where a coordinate is NaN or infinite. Raises ShapeError unless `xs` and `ys` have the same
        length, DTypeError for data that are not numbers, ArgumentError for 0 and below on a logarithmic axis.

        >>> Plot().line(range(3), [1.0, float("nan"), 4.0], "loss")
        Plot(loss)
        """
        xs, ys = self._series("line", xs, ys)
        color = self._color("line", color)
        _check("line: marker", marker, ("", *_MARKERS))

        def draw(axes: Axes) -> str:
            line = marks.draw_curve([axes.point(x, y) for x, y in zip(xs, ys, strict=True)], color, linewidth)
            return axes.clip(line) + (_draw_points(axes, xs, ys, color, marker, markersize) if marker else "")

        def draw_key(start: Point, end: Point) -> str:
            line = marks.draw_curve([start, end], color, linewidth)
            return line + (marks.draw_markers([_middle(start, end)], color, marker, markersize) if marker else "")

        ends = [f"{_format(ys[k])} at {_format(xs[k])}" for k in (0, -1)] if xs else ["no point"]
        return self._add(_Mark("line", draw, xs, ys, sanitize(label), f" from {' to '.join(ends)}", draw_key))

    def points(
        self,
        xs: Iterable[float],
        ys: Iterable[float],
        label: str = "",
        *,
        color: str | None = None,
        marker: str | None = None,
        markersize: float = 8.0,
    ) -> Plot:
        """Add a marker at each point (x, y): "o", "^" or "s". By default it depends on the colour. Raises like `line`.

        >>> Plot().points([1, 2], [3, 4], "setosa").points([3], [5], color="C0", marker="s")
        Plot(setosa; 1 point)
        """
        xs, ys = self._series("points", xs, ys)
        color = self._color("points", color)
        default_marker = _MARKERS[_COLORS.index(color) % len(_MARKERS)]
        shape = default_marker if marker is None else _check("points: marker", marker, _MARKERS)

        def draw(axes: Axes) -> str:
            return _draw_points(axes, xs, ys, color, shape, markersize)

        def draw_key(start: Point, end: Point) -> str:
            return marks.draw_markers([_middle(start, end)], color, shape, markersize)

        kind = f"{len(xs)} point{'' if len(xs) == 1 else 's'}"
        return self._add(_Mark(kind, draw, xs, ys, sanitize(label), f" ({kind})" if label else "", draw_key))

    def hline(self, y: float, label: str = "") -> Plot:
        """Add a dashed horizontal line.

        >>> Plot().hline(3, "the goal")
        Plot(the goal)
        """
        (y,) = self._finite("hline: y", [y], 1)

        def draw(axes: Axes) -> str:
            return axes.clip(marks.draw_dashes((axes.x.start, axes.y.pixel(y)), (axes.x.end, axes.y.pixel(y))))

        kind = f"horizontal line at {_format(y)}"
        return self._add(_Mark(kind, draw, (), [y], sanitize(label), f" ({kind})" if label else "", marks.draw_dashes))

    def text(
        self, x: float, y: float, text: str, *, ha: str = "left", color: str | None = None, fontsize: float = 12.5
    ) -> Plot:
        r"""Add text with its left end, "center" or "right" end (`ha`) at the point (x, y), vertically centred there.

        Its size in pixels is `fontsize`. The limits of the axes do not depend on it.

        >>> Plot(xlim=(0, 2)).text(1, 0.5, r"$a \cdot b$", ha="center")
        Plot(“a · b”)
        """
        (x,), (y,) = self._finite("text: x", [x], 0), self._finite("text: y", [y], 1)
        anchor = _ANCHORS[_check("text: ha", ha, _ANCHORS)]
        css_class = "" if color is None else _check("text: color", color, _COLORS)
        content = sanitize(text)

        def draw(axes: Axes) -> str:
            return marks.draw_text(content, axes.point(x, y), fontsize, css_class, anchor)

        return self._add(_Mark(f"“{marks.label_text(content)}”", draw))

    def rectangle(
        self, x: float, y: float, width: float, height: float, *, color: str = "C0", alpha: float = 1.0
    ) -> Plot:
        """Add a filled rectangle with its lower left corner at (x, y), and the opacity `alpha` from 0 to 1.

        >>> Plot(aspect="equal").rectangle(0, 0, 3, 2, color="C1")
        Plot(rectangle)
        """
        xs, ys = self._finite("rectangle: x", [x, x + width], 0), self._finite("rectangle: y", [y, y + height], 1)
        _check("rectangle: color", color, _COLORS)

        def draw(axes: Axes) -> str:
            return axes.clip(marks.draw_rectangle(axes, xs, ys, color, alpha))

        return self._add(_Mark("rectangle", draw, xs, ys, is_flush=True))

    def regions(self, xs: Iterable[float], ys: Iterable[float], classes: Iterable[Iterable[int]]) -> Plot:
        """Add a map: each point of a grid is the middle of a cell, in the colour of its class, 0 to 3.

        `classes` has a row for each of `ys` and a column for each of `xs`. Raises ShapeError for another number of rows
        or columns, ArgumentError for other classes, and for `xs` or `ys` that do not increase.

        >>> Plot().regions([0, 1, 2], [0, 1], [[0, 0, 1], [0, 1, 1]])
        Plot(map of 2 classes)
        """
        xs, ys = self._finite("regions: xs", xs, 0), self._finite("regions: ys", ys, 1)
        rows = [[int(k) for k in row] for row in classes]
        lengths = sorted({len(row) for row in rows})
        if len(rows) != len(ys) or lengths != [len(xs)]:
            raise ShapeError(
                f"regions: expected {len(ys)} rows of {len(xs)} classes, one for each of ys and of xs, but got "
                f"{len(rows)} rows of {' or '.join(map(str, lengths)) or 'none'}."
            )
        found = sorted({k for row in rows for k in row})
        if not 0 <= found[0] <= found[-1] < len(_COLORS):
            raise ArgumentError(f"regions: expected classes from 0 to {len(_COLORS) - 1}, but got {found}.")
        for name, values in (("xs", xs), ("ys", ys)):
            if len(values) < 2 or not all(a < b for a, b in pairwise(values)):
                raise ArgumentError(f"regions: expected at least two increasing {name}, but got {values}.")
        kind = f"map of {len(found)} class{'' if len(found) == 1 else 'es'}"
        return self._add(_Mark(kind, lambda axes: axes.clip(marks.draw_map(axes, xs, ys, rows)), xs, ys, is_flush=True))

    def _add(self, mark: _Mark) -> Plot:
        self._marks.append(mark)
        return self

    def _series(self, caller: str, xs: Iterable[float], ys: Iterable[float]) -> tuple[list[float], list[float]]:
        columns = self._floats(f"{caller}: xs", xs, 0), self._floats(f"{caller}: ys", ys, 1)
        if len(columns[0]) != len(columns[1]):
            raise ShapeError(f"{caller}: got {len(columns[0])} xs but {len(columns[1])} ys.\n  Pass a y for each x.")
        return columns

    def _finite(self, name: str, values: Iterable[float], axis: int) -> list[float]:
        floats = self._floats(name, values, axis)
        if not all(map(math.isfinite, floats)):
            raise ArgumentError(f"{name} must be finite, but got {shorten(repr(floats), 60)}.")
        return floats

    def _floats(self, name: str, values: Iterable[float], axis: int) -> list[float]:
        try:
            floats = [float(x) for x in values]
        except (TypeError, ValueError):
            raise DTypeError(
                f"{name} must be real numbers, but got {shorten(repr(values), 60)}, {describe_type(values)}."
            ) from None
        for k, x in enumerate(floats):
            if self._is_log[axis] and x <= 0:
                raise ArgumentError(
                    f"{name}[{k}] is {x}, but a logarithmic axis has only positive numbers.\n  Omit it, or pass NaN."
                )
        return floats

    def _color(self, caller: str, color: str | None) -> str:
        if color is not None:
            return _check(f"{caller}: color", color, _COLORS)
        self._series_count += 1
        return _COLORS[(self._series_count - 1) % len(_COLORS)]

    # --- results ---

    def svg(self, theme: Theme | None = None) -> str:
        """Return the plot as SVG. It follows the user's light or dark theme unless `theme` is given."""
        css = stylesheet(marks.SHAPES, marks.COLOURS, check_theme(theme))
        axes = self._layout()
        keys = [(mark.label, mark.draw_key) for mark in self._marks if mark.label and mark.draw_key]
        parts = [marks.draw_axes(axes, self._labels)] if self._has_axes else []
        parts += [*(mark.draw(axes) for mark in self._marks), marks.draw_legend(axes, keys, self._legend)]
        return svg_document("".join(parts), self._size, css, repr(self), self._alternative())

    def save(self, path: str | os.PathLike[str], *, theme: Theme | None = None) -> None:
        """Save the plot as ``.svg``, ``.png`` (twice the size, with the extra ``pictures``) or ``.txt``.

        Raises like `Drawing.save`.

        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "loss.svg")
        ...     Plot().line([0, 1], [2, 1]).save(path)
        ...     path.read_text(encoding="utf-8")[:4]
        '<svg'
        """
        width, height = self._size
        png = FileWriter(lambda theme="light": render_png(self.svg(theme), (2 * width, 2 * height)), ("theme",))
        writers = {".svg": FileWriter(self.svg, ("theme",)), ".png": png, ".txt": FileWriter(self.__repr__)}
        save(path, writers, "plot.save('plot.svg')", theme=theme)

    def __repr__(self) -> str:
        return f"Plot({self._describe([mark.name for mark in self._marks])})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        width = f"min(100%,{self._size[0] * _MAX_ZOOM:g}px)"
        image = image_tag(self.svg(), self._alternative(), self._size[0], width)
        return {
            "text/html": f'<figure class="minigrad-plot" style="margin:0">{image}</figure>',
            "text/plain": repr(self),
        }

    def _describe(self, names: Sequence[str]) -> str:
        over = " over ".join(filter(None, map(marks.label_text, reversed(self._labels))))
        counts = [name if n == 1 else f"{n} × {name}" for name, n in Counter(names).items()]
        return f"{over}{': ' if over and names else ''}{'; '.join(counts)}"

    def _alternative(self) -> str:
        return f"Plot of {self._describe([mark.name + mark.details for mark in self._marks])}."

    def _layout(self) -> Axes:
        """Return the axes, with room for their labels if they are drawn."""
        width, height = self._size
        limits = []
        for axis, is_log, given in zip(("xs", "ys"), self._is_log, self._limits, strict=True):
            data: dict[bool, list[float]] = {False: [], True: []}
            for mark in self._marks:
                data[mark.is_flush] += filter(math.isfinite, getattr(mark, axis))
            limits.append(fit_limits(data[False], data[True], given, is_log))
        top = _MARGIN + _LINE_HEIGHT * bool(self._labels[1])
        bottom = height - _MARGIN - _LINE_HEIGHT * (self._has_axes + bool(self._labels[0]))
        y = Axis(*limits[1], bottom, top, self._is_log[1])
        left = _MARGIN + (marks.tick_width(y) if self._has_axes else 0.0)
        x = Axis(*limits[0], left, width - _MARGIN, self._is_log[0])
        if self._has_equal_scales:
            unit = max(x.unit, y.unit)
            return Axes(x.widen(unit), y.widen(unit))
        return Axes(x, y)


def _format(x: float) -> str:
    return format_brief(x).removesuffix(".0")


def _middle(start: Point, end: Point) -> Point:
    return (start[0] + end[0]) / 2, (start[1] + end[1]) / 2


def _draw_points(axes: Axes, xs: Sequence[float], ys: Sequence[float], *style: Any) -> str:
    points = [axes.point(x, y) for x, y in zip(xs, ys, strict=True) if axes.contains(x, y)]
    return marks.draw_markers(points, *style)


def _check(name: str, x: str, choices: Iterable[str]) -> str:
    """Return `x` if it is one of `choices`. Raises ArgumentError otherwise."""
    if x not in choices:
        raise ArgumentError(f"{name} must be one of {', '.join(map(repr, choices))}, but got {x!r}.")
    return x


def _check_limits(name: str, limits: Any, is_log: bool) -> tuple[float | None, float | None]:
    """Return `limits` if they are increasing, and positive on a logarithmic axis. Raises ArgumentError otherwise."""
    try:
        low, high = [None if x is None else float(x) for x in limits]
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    finite = [x for x in (low, high) if x is not None]
    if not all((0 if is_log else -math.inf) < x < math.inf for x in finite) or finite != sorted(set(finite)):
        positive = ", positive on a logarithmic axis" if is_log else ""
        raise ArgumentError(
            f"Plot: {name} must be (low, high), two increasing numbers or None{positive}, but got {limits!r}."
        )
    return low, high
