"""Colours that stand side by side in a drawing stay apart, also for who sees two of the three primary colours."""

import math
from itertools import pairwise

import pytest

from minigrad_viz.palette import DARK, FLOW, LIGHT

# What linear RGB becomes, by Machado, Oliveira and Fernandes (2009), "A physiologically-based model for simulation of
# color vision deficiency", at full severity.
SEEN = {
    "all three": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
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
APART = 15  # of CIE 1976 L*a*b*; 2.3 is a difference that can just be noticed


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def lab(colour, seen):
    """The colour in L*a*b*, as it is seen."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    seen_as = [min(1.0, max(0.0, c)) for c in times(seen, linear)]
    x, y, z = (
        t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116
        for t in (c / white for c, white in zip(times(XYZ, seen_as), WHITE, strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_that_mean_different_things_are_seen_apart(theme, seen):
    colours = {"light": LIGHT, "dark": DARK}[theme]
    apart = {
        (one, other): math.dist(lab(colours[one], SEEN[seen]), lab(colours[other], SEEN[seen])) for one, other in BESIDE
    }
    assert {pair: round(far) for pair, far in apart.items() if far < APART} == {}


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_shades_of_sizes_go_one_way_in_lightness_and_each_is_seen_apart_from_the_next_and_from_the_page(theme, seen):
    page, *shades = (
        lab(colour, SEEN[seen]) for colour in (LIGHT["page"] if theme == "light" else DARK["page"], *FLOW[theme])
    )
    lightness = [shade[0] for shade in shades]
    assert lightness == sorted(lightness, reverse=theme == "light")
    assert min(math.dist(one, other) for one, other in pairwise(shades)) > 7
    assert min(math.dist(page, shade) for shade in shades) > 12
