"""Adjacent colours of a drawing are distinguishable, also under colour blindness."""

import math
from itertools import combinations, pairwise

import pytest

from colour_vision import MATRICES, matvec, simulate
from minigrad_viz.pictures.palette import DARK, FLOW, LIGHT, SERIES

XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
WHITE = [0.9505, 1.0, 1.089]
BESIDE = [
    ("positive", "negative"),
    ("forward", "positive"),
    ("forward", "negative"),
    ("mixed", "positive"),
    ("mixed", "negative"),
    ("alarm", "forward"),
    ("alarm", "positive"),
    ("alarm", "negative"),
    ("plus", "minus"),
    ("plus", "zero"),
    ("minus", "zero"),
]
MIN_DIFFERENCE = 15  # of CIE 1976 L*a*b*; 2.3 is a just noticeable difference


def lab(colour, kind):
    """Return the perceived colour in L*a*b*."""
    channels = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    x, y, z = (
        t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116
        for t in (c / white for c, white in zip(matvec(XYZ, simulate(channels, kind)), WHITE, strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("kind", MATRICES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_with_different_meanings_are_distinguishable(theme, kind):
    colours = {"light": LIGHT, "dark": DARK}[theme]
    apart = {(one, other): math.dist(lab(colours[one], kind), lab(colours[other], kind)) for one, other in BESIDE}
    assert {pair: round(far) for pair, far in apart.items() if far < MIN_DIFFERENCE} == {}


@pytest.mark.parametrize("kind", MATRICES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colour_scale_is_monotonic_and_shades_are_distinguishable(theme, kind):
    page, *shades = (
        lab(colour, kind) for colour in (LIGHT["page"] if theme == "light" else DARK["page"], *FLOW[theme])
    )
    lightness = [shade[0] for shade in shades]
    assert lightness == sorted(lightness, reverse=theme == "light")
    assert min(math.dist(one, other) for one, other in pairwise(shades)) > 7
    assert min(math.dist(page, shade) for shade in shades) > 12


@pytest.mark.parametrize("kind", MATRICES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_series_of_a_plot_are_distinguishable_from_each_other_and_the_page(theme, kind):
    colours = [{"light": LIGHT, "dark": DARK}[theme]["page"], *SERIES[theme]]
    apart = {pair: math.dist(*(lab(colour, kind) for colour in pair)) for pair in combinations(colours, 2)}
    assert {pair: round(far) for pair, far in apart.items() if far < MIN_DIFFERENCE} == {}
