"""Heatmaps as SVG paths. Zeros have the colour of the card, positive cells are green, and negative cells magenta.

The value and the gradient of a node share one colour scale. Gradients are often much smaller, so the shade is
proportional to the square root of the magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from minigrad_viz.trace.arrays import grid
from minigrad_viz.trace.notation import escape

__all__ = [
    "COLOURS",
    "MAX_SIDE",
    "SHADES",
    "SHAPES",
    "Cells",
    "draw_heatmap",
    "heatmap_size",
    "make_cells",
    "max_magnitude",
    "standalone_svg",
]

MAX_SIDE = 24  # Maximum number of rows and of columns. A cell of a larger array shows its element of largest magnitude.
SHADES = 8  # number of shades per colour
_ROUNDING = 1e-4  # rounding tolerance, in shades (see `arrays`)

SHAPES = ".mg .heat{{shape-rendering:crispEdges}}.mg .rim{{fill:none}}.mg .cross{{fill:none;stroke-width:1}}"
COLOURS = (
    ".mg .zero{{fill:{zero}}}.mg .plus{{fill:{plus}}}.mg .minus{{fill:{minus}}}.mg .cross{{stroke:{ink}}}"
    ".mg .rim{{stroke:{rim}}}"
)


def heatmap_size(shape: tuple[int, ...], stats: Mapping[str, Any] | None) -> tuple[int, int]:
    """Return the width and height in pixels of the heatmap of an array, with the array's aspect ratio if legible."""
    rows, cols = (stats["rows"], stats["cols"]) if stats else grid(shape)[:2]
    if not rows or not cols:
        return 40, 14
    side = min(64 / cols, 44 / rows, 14)
    return max(round(cols * side), 14), max(round(rows * side), 12)


def max_magnitude(*summaries: Mapping[str, Any] | None) -> float:
    """Return the largest magnitude in the summaries of several arrays."""
    ends = [short[end] for short in summaries if short for end in ("min", "max")]
    return max((abs(end) for end in ends if end is not None), default=0.0)


class Cells(NamedTuple):
    """The cells of a heatmap.

    `runs` maps each shade, ("plus" or "minus", 1 to 8), to its horizontal runs of cells as (column, row, length).
    `crossed` contains the (column, row) of each non-finite cell.
    """

    rows: int
    cols: int
    runs: dict[tuple[str, int], list[tuple[int, int, int]]]
    crossed: list[tuple[int, int]]


def make_cells(stats: Mapping[str, Any], peak: float) -> Cells:
    """Return the cells of the heatmap of a summary, in which the magnitude `peak` has the full colour."""
    cells = _downsample(stats)
    result = Cells(len(cells), len(cells[0]) if cells else 0, {}, [])
    for row, line in enumerate(cells):
        shades = [_shade(cell, peak) for cell in line]
        start = 0
        for col in range(result.cols):
            if shades[col] is None:
                result.crossed.append((col, row))
            if col + 1 == result.cols or shades[col + 1] != shades[col]:
                if shade := shades[col]:
                    key = "plus" if shade > 0 else "minus", abs(shade)
                    result.runs.setdefault(key, []).append((start, row, col + 1 - start))
                start = col + 1
    return result


def draw_heatmap(
    stats: Mapping[str, Any], x: float, y: float, width: int, height: int, peak: float | None = None
) -> str:
    """Return the SVG of the heatmap of a summary, with its top left corner at (x, y).

    The magnitude `peak`, by default the largest, has the full colour. Non-finite cells are crossed.
    """
    rows, cols, runs, crossed = make_cells(stats, max_magnitude(stats) if peak is None else peak)
    parts = [f'<rect class="zero" width="{cols}" height="{rows}"/>'] if rows else []
    for (sign, shade), segments in sorted(runs.items()):
        part = "" if shade == SHADES else f' style="fill-opacity:{shade / SHADES:g}"'
        path = "".join(f"M{col} {row}h{long}v1h-{long}z" for col, row, long in segments)
        parts.append(f'<path class="{sign}"{part} d="{path}"/>')
    transform = f'transform="translate({x:g} {y:g})'
    zoom = f' scale({width / cols:g} {height / rows:g})"' if rows and cols else '"'
    crosses = "".join(_cross(col, row, width / cols, height / rows) for col, row in crossed)
    cross = f'<path class="cross" {transform}" d="{crosses}"/>' if crosses else ""
    border = f'<rect class="rim" x="{x - 0.5:g}" y="{y - 0.5:g}" width="{width + 1}" height="{height + 1}"/>'
    return f'<g class="heat" {transform}{zoom}>{"".join(parts)}</g>{cross}{border}'


def standalone_svg(stats: Mapping[str, Any], title: str) -> str:
    """Return the heatmap as a separate SVG element, which uses the stylesheet of the page."""
    width, height = heatmap_size(tuple(stats["shape"]), stats)
    return (
        f'<svg class="mg" role="img" aria-label="{escape(title)}" width="{width + 2}" height="{height + 2}">'
        f"{draw_heatmap(stats, 1, 1, width, height)}</svg>"
    )


def _downsample(stats: Mapping[str, Any]) -> list[list[float]]:
    """Return the rows of cells, max-pooled by magnitude to at most `MAX_SIDE` per side to preserve outliers."""
    rows, cols, cells = stats["rows"], stats["cols"], stats["cells"]
    factor = min(1.0, MAX_SIDE / max(rows, cols, 1))
    height, width = (max(1, round(side * factor)) if side else 0 for side in (rows, cols))
    if (height, width) == (rows, cols):
        return [cells[row * cols : (row + 1) * cols] for row in range(rows)]
    result = [[0.0] * width for _ in range(height)]
    for index, cell in enumerate(cells):
        target_row, target_column = result[index // cols * height // rows], index % cols * width // cols
        current = target_row[target_column]
        if math.isfinite(current) and not abs(cell) <= abs(current):  # also for NaN
            target_row[target_column] = cell
    return result


def _shade(x: float, peak: float) -> int | None:
    """Return the shade of an element, from -8 to 8, or None if it is not finite."""
    if not math.isfinite(x):
        return None
    return int(math.copysign(math.floor(math.sqrt(abs(x / peak)) * SHADES + 0.5 + _ROUNDING), x)) if peak else 0


def _cross(col: int, row: int, width: float, height: float) -> str:
    left, top, right, bottom = col * width + 0.5, row * height + 0.5, (col + 1) * width - 0.5, (row + 1) * height - 0.5
    return f"M{left:.1f} {top:.1f}L{right:.1f} {bottom:.1f}M{right:.1f} {top:.1f}L{left:.1f} {bottom:.1f}"
