"""Edge routes as curves: horizontal segments, and S-curves between columns, as in `frontend/src/drawing/curves.js`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

__all__ = ["TIP", "Point", "curve", "height_at", "middle_of", "samples_of", "short", "tip"]

Point = tuple[float, float]

TIP = 8.0  # length of an arrowhead, in pixels
_EACH = 8  # samples per S-curve


def short(x: float) -> str:
    """Format a coordinate with one decimal."""
    return f"{x:.1f}".removesuffix(".0")


def curve(route: Sequence[Point], back: bool = False) -> str:
    """Return the path data of a route. The end with the arrowhead (with `back`, the start) is inside the arrowhead."""
    points = list(route)
    end, way = (0, 1) if back else (-1, -1)
    points[end] = (points[end][0] + way * (TIP - 1), points[end][1])
    x, y = points[0]
    parts = [f"M{short(x)} {short(y)}"]
    for to_x, to_y in points[1:]:
        if to_y == y:
            parts.append(f"H{short(to_x)}")
        else:
            middle = short((x + to_x) / 2)
            parts.append(f"C{middle} {short(y)} {middle} {short(to_y)} {short(to_x)} {short(to_y)}")
        x, y = to_x, to_y
    return "".join(parts)


def tip(end: Point, way: int = 1, size: float = 1.0) -> str:
    """Return the path of an arrowhead at `end`, which points right if `way` is 1, left if -1."""
    return f"M{short(end[0])} {short(end[1])}l{-way * TIP * size:g} {-3.5 * size:g}v{7 * size:g}z"


def height_at(route: Sequence[Point], x: float) -> float:
    """Return the y of the curve at `x`."""
    for (x0, y0), (x1, y1) in pairwise(route):
        if x > x1:
            continue
        if y0 == y1 or x <= x0:
            return y0
        low, high = 0.0, 1.0
        for _ in range(20):
            t = (low + high) / 2
            low, high = (t, high) if _piece((x0, y0), (x1, y1), t)[0] < x else (low, t)
        return _piece((x0, y0), (x1, y1), t)[1]
    return route[-1][1]


def _piece(start: Point, end: Point, t: float) -> Point:
    """Evaluate an S-curve, a cubic Bézier with both handles at the middle x, at t in [0, 1].

    y(t) = y0 + (y1 - y0) (3 t^2 - 2 t^3).
    """
    (x0, y0), (x1, y1) = start, end
    return x0 + (x1 - x0) * (1.5 * t * (1 - t) + t * t * t), y0 + (y1 - y0) * t * t * (3 - 2 * t)


def samples_of(route: Sequence[Point]) -> list[Point]:
    """Return points along the curve, from start to end."""
    points = [route[0]]
    for start, end in pairwise(route):
        each = 1 if start[1] == end[1] else _EACH
        points += [_piece(start, end, at / each) for at in range(1, each)]
        points.append(end)
    return points


def middle_of(route: Sequence[Point]) -> Point:
    """Return the midpoint of the curve by arc length."""
    points = samples_of(route)
    lengths = [math.dist(start, end) for start, end in pairwise(points)]
    left = sum(lengths) / 2
    for (start, end), length in zip(pairwise(points), lengths, strict=True):
        if left <= length:
            share = left / length if length else 0.0
            return start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])
        left -= length
    return points[-1]
