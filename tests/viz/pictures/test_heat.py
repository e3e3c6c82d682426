"""Heatmaps: the colour of every cell, outliers, and crosses for non-finite cells."""

import re
import xml.etree.ElementTree as ET
from collections import Counter

import numpy as np
import pytest

from minigrad_viz.pictures.heat import MAX_SIDE, draw_heatmap, heatmap_size
from minigrad_viz.trace.arrays import summary


def cells(svg: str) -> dict[tuple[int, int], tuple[str, float]]:
    """Return the sign and shade of each coloured cell, by (column, row)."""
    shades: dict[tuple[int, int], tuple[str, float]] = {}
    for path in ET.fromstring(f"<g>{svg}</g>").iter("path"):
        sign = path.get("class", "")
        if sign == "cross":
            continue
        shade = float(re.sub("[^0-9.]", "", path.get("style", "1")))
        for x, y, run_width in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\3z", path.get("d", "")):
            for column in range(int(x), int(x) + int(run_width)):
                assert (column, int(y)) not in shades
                shades[column, int(y)] = (sign, shade)
    return shades


def test_shades_grow_with_the_square_root_on_a_symmetric_scale():
    svg = draw_heatmap(summary(np.array([[-2.0, -0.5, 0.0], [0.125, 0.125, 0.5]])), 0, 0, 42, 28)
    assert cells(svg) == {
        (0, 0): ("minus", 1.0),
        (1, 0): ("minus", 0.5),
        (0, 1): ("plus", 0.25),
        (1, 1): ("plus", 0.25),
        (2, 1): ("plus", 0.5),
    }


def test_non_finite_cells_are_crossed():
    svg = draw_heatmap(summary(np.array([[np.nan, 1.0, -np.inf]])), 0, 0, 42, 14)
    assert cells(svg) == {(1, 0): ("plus", 1.0)}
    (cross,) = re.findall(r'class="cross"[^>]* d="([^"]*)"', svg)
    assert cross.count("L") == 4


@pytest.mark.parametrize("shape", [(), (7,), (3, 4), (2, 3, 4), (0,), (0, 5), (784, 128), (1, 2000), (500, 1)])
def test_every_shape_is_drawn_in_few_paths(shape):
    short = summary(np.random.default_rng(0).normal(size=shape))
    width, height = heatmap_size(shape, short)
    assert 12 <= width <= 64
    assert 12 <= height <= 44
    svg = draw_heatmap(short, 9, 43, width, height)
    counts = Counter(element.tag for element in ET.fromstring(f"<g>{svg}</g>").iter())
    assert counts["path"] <= 16
    assert len(svg) < 16_000
    assert len(cells(svg)) <= MAX_SIDE**2


def test_downsampling_preserves_outliers():
    array = np.zeros((90, 70))
    array[41, 33], array[80, 2] = -5.0, np.nan
    svg = draw_heatmap(summary(array), 0, 0, 34, 44)
    assert list(cells(svg).values()) == [("minus", 1.0)]
    assert 'class="cross"' in svg
