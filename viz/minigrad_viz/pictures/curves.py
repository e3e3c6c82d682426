"""Edge routes as curves, with S-curves between columns, as in `frontend/src/drawing/curves.js`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

__all__ = [
    "ARROWHEAD_LENGTH",
    "Point",
    "arrowhead_path",
    "curve_path",
    "format_coordinate",
    "midpoint",
    "sample_curve",
    "y_at",
]

Point = tuple[float, float]

ARROWHEAD_LENGTH = 8.0  # length of an arrowhead, in pixels
_SAMPLES_PER_CURVE = 8  # samples per S-curve


def format_coordinate(x: float) -> str:
    """Format a coordinate with at most one decimal."""
    return f"{x:.1f}".removesuffix(".0")


def curve_path(route: Sequence[Point], backward: bool = False) -> str:
    """Return the SVG path data of a route, which ends inside the arrowhead.

    If `backward`, the arrowhead is at the start.
    """
    points = list(route)
    index, direction = (0, 1) if backward else (-1, -1)
    points[index] = (points[index][0] + direction * (ARROWHEAD_LENGTH - 1), points[index][1])
    x, y = points[0]
    parts = [f"M{format_coordinate(x)} {format_coordinate(y)}"]
    for to_x, to_y in points[1:]:
        if to_y == y:
            parts.append(f"H{format_coordinate(to_x)}")
        else:
            middle = format_coordinate((x + to_x) / 2)
            parts.append(
                f"C{middle} {format_coordinate(y)} {middle} {format_coordinate(to_y)} {format_coordinate(to_x)} "
                f"{format_coordinate(to_y)}"
            )
        x, y = to_x, to_y
    return "".join(parts)


def arrowhead_path(end: Point, direction: int = 1, size: float = 1.0) -> str:
    """Return the SVG path data of an arrowhead at `end`, which points right if `direction` is 1, left if -1."""
    return (
        f"M{format_coordinate(end[0])} {format_coordinate(end[1])}l{-direction * ARROWHEAD_LENGTH * size:g} "
        f"{-3.5 * size:g}v{7 * size:g}z"
    )


def y_at(route: Sequence[Point], x: float) -> float:
    """Return the y coordinate of the curve of a route at `x`."""
    for (x0, y0), (x1, y1) in pairwise(route):
        if x > x1:
            continue
        if y0 == y1 or x <= x0:
            return y0
        low, high = 0.0, 1.0
        for _ in range(20):
            t = (low + high) / 2
            low, high = (t, high) if _s_curve_point((x0, y0), (x1, y1), t)[0] < x else (low, t)
        return _s_curve_point((x0, y0), (x1, y1), t)[1]
    return route[-1][1]


def _s_curve_point(start: Point, end: Point, t: float) -> Point:
    """Evaluate an S-curve, a cubic Bézier curve whose inner control points have the mean x, at t in [0, 1].

    y(t) = y0 + (y1 - y0) (3 t^2 - 2 t^3).
    """
    (x0, y0), (x1, y1) = start, end
    return x0 + (x1 - x0) * (1.5 * t * (1 - t) + t * t * t), y0 + (y1 - y0) * t * t * (3 - 2 * t)


def sample_curve(route: Sequence[Point]) -> list[Point]:
    """Return points along the curve of a route, from start to end."""
    points = [route[0]]
    for start, end in pairwise(route):
        sample_count = 1 if start[1] == end[1] else _SAMPLES_PER_CURVE
        points += [_s_curve_point(start, end, at / sample_count) for at in range(1, sample_count)]
        points.append(end)
    return points


def midpoint(route: Sequence[Point]) -> Point:
    """Return the midpoint, by arc length, of the curve of a route."""
    points = sample_curve(route)
    lengths = [math.dist(start, end) for start, end in pairwise(points)]
    remaining = sum(lengths) / 2
    for (start, end), length in zip(pairwise(points), lengths, strict=True):
        if remaining <= length:
            fraction = remaining / length if length else 0.0
            return start[0] + fraction * (end[0] - start[0]), start[1] + fraction * (end[1] - start[1])
        remaining -= length
    return points[-1]
