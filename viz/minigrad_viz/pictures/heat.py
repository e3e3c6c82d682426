"""Heatmaps as a few SVG paths: zero has the colour of the card, positive cells are green, negative ones magenta.

The value and the gradient of a node share one colour scale. Gradients are often much smaller, so the colour grows with
the square root of the magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from minigrad_viz.trace.arrays import grid
from minigrad_viz.trace.notation import escape

__all__ = ["COLOURS", "MOST", "SHADES", "SHAPES", "Cells", "alone", "cells_of", "drawn", "scale", "size_of"]

MOST = 24  # maximum rows and columns; beyond that a cell shows the element of largest magnitude that it covers
SHADES = 8  # per colour
_BRINK = 1e-4  # rounding tolerance, in shades: see `arrays`

SHAPES = ".mg .heat{{shape-rendering:crispEdges}}.mg .rim{{fill:none}}.mg .cross{{fill:none;stroke-width:1}}"
COLOURS = (
    ".mg .zero{{fill:{zero}}}.mg .plus{{fill:{plus}}}.mg .minus{{fill:{minus}}}.mg .cross{{stroke:{ink}}}"
    ".mg .rim{{stroke:{rim}}}"
)


def size_of(shape: tuple[int, ...], short: Mapping[str, Any] | None) -> tuple[int, int]:
    """Return the width and height of the heatmap of an array, in pixels, with its aspect ratio as far as is legible."""
    rows, cols = (short["rows"], short["cols"]) if short else grid(shape)[:2]
    if not rows or not cols:
        return 40, 14
    side = min(64 / cols, 44 / rows, 14)
    return max(round(cols * side), 14), max(round(rows * side), 12)


def scale(*shorts: Mapping[str, Any] | None) -> float:
    """Return the largest magnitude in some summaries."""
    ends = [short[end] for short in shorts if short for end in ("min", "max")]
    return max((abs(end) for end in ends if end is not None), default=0.0)


class Cells(NamedTuple):
    """The cells of a heatmap: for each shade, ("plus" or "minus", 1 to 8), the runs of its cells as (column, row,
    length), and the (column, row) of each non-finite cell."""

    rows: int
    cols: int
    runs: dict[tuple[str, int], list[tuple[int, int, int]]]
    crossed: list[tuple[int, int]]


def cells_of(short: Mapping[str, Any], most: float) -> Cells:
    """Return the cells of a summary; the magnitude `most` has the full colour."""
    cells = _shrunk(short)
    found = Cells(len(cells), len(cells[0]) if cells else 0, {}, [])
    for row, line in enumerate(cells):
        shades = [_shade(cell, most) for cell in line]
        start = 0
        for col in range(found.cols):
            if shades[col] is None:
                found.crossed.append((col, row))
            if col + 1 == found.cols or shades[col + 1] != shades[col]:
                if shade := shades[col]:
                    key = "plus" if shade > 0 else "minus", abs(shade)
                    found.runs.setdefault(key, []).append((start, row, col + 1 - start))
                start = col + 1
    return found


def drawn(short: Mapping[str, Any], x: float, y: float, width: int, height: int, most: float | None = None) -> str:
    """Return the heatmap of a summary in a box. `most`, by default the largest magnitude, has the full colour; cells
    that are not finite are crossed."""
    rows, cols, runs, crossed = cells_of(short, scale(short) if most is None else most)
    parts = [f'<rect class="zero" width="{cols}" height="{rows}"/>'] if rows else []
    for (sign, shade), found in sorted(runs.items()):
        part = "" if shade == SHADES else f' style="fill-opacity:{shade / SHADES:g}"'
        path = "".join(f"M{col} {row}h{long}v1h-{long}z" for col, row, long in found)
        parts.append(f'<path class="{sign}"{part} d="{path}"/>')
    at = f'transform="translate({x:g} {y:g})'
    zoom = f' scale({width / cols:g} {height / rows:g})"' if rows and cols else '"'
    crosses = "".join(_cross(col, row, width / cols, height / rows) for col, row in crossed)
    cross = f'<path class="cross" {at}" d="{crosses}"/>' if crosses else ""
    rim = f'<rect class="rim" x="{x - 0.5:g}" y="{y - 0.5:g}" width="{width + 1}" height="{height + 1}"/>'
    return f'<g class="heat" {at}{zoom}>{"".join(parts)}</g>{cross}{rim}'


def alone(short: Mapping[str, Any], title: str) -> str:
    """Return the heatmap as a separate SVG element, styled by the stylesheet of the page."""
    width, height = size_of(tuple(short["shape"]), short)
    return (
        f'<svg class="mg" role="img" aria-label="{escape(title)}" width="{width + 2}" height="{height + 2}">'
        f"{drawn(short, 1, 1, width, height)}</svg>"
    )


def _shrunk(short: Mapping[str, Any]) -> list[list[float]]:
    """Return the cells, row by row, max-pooled by magnitude to at most `MOST` a side, so that no outlier is lost."""
    rows, cols, cells = short["rows"], short["cols"], short["cells"]
    share = min(1.0, MOST / max(rows, cols, 1))
    high, wide = (max(1, round(side * share)) if side else 0 for side in (rows, cols))
    if (high, wide) == (rows, cols):
        return [cells[row * cols : (row + 1) * cols] for row in range(rows)]
    small = [[0.0] * wide for _ in range(high)]
    for at, cell in enumerate(cells):
        line, place = small[at // cols * high // rows], at % cols * wide // cols
        old = line[place]
        if math.isfinite(old) and not abs(cell) <= abs(old):  # also for NaN
            line[place] = cell
    return small


def _shade(x: float, most: float) -> int | None:
    """Return the shade from -8 to 8; None if `x` is not finite."""
    if not math.isfinite(x):
        return None
    return int(math.copysign(math.floor(math.sqrt(abs(x / most)) * SHADES + 0.5 + _BRINK), x)) if most else 0


def _cross(col: int, row: int, width: float, height: float) -> str:
    left, top, right, bottom = col * width + 0.5, row * height + 0.5, (col + 1) * width - 0.5, (row + 1) * height - 0.5
    return f"M{left:.1f} {top:.1f}L{right:.1f} {bottom:.1f}M{right:.1f} {top:.1f}L{left:.1f} {bottom:.1f}"
