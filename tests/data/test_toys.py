"""Synthetic datasets: positions, class sizes, and the same points on every device for a seed."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.errors import ArgumentError
from minigrad.data import blobs, circles, moons, spirals

EXACT = 1e-6  # float32 rounding of values around 1


def without_noise(make, **options):
    x, y = make(noise=0.0, **options)
    return x.numpy().astype(float), y.numpy()


def test_moons_are_two_half_circles():
    x, y = without_noise(moons, n=101)
    upper, lower = x[y == 0], x[y == 1]
    assert (len(upper), len(lower)) == (51, 50)
    assert np.abs(np.hypot(*upper.T) - 1).max() < EXACT
    assert np.abs(np.hypot(*(lower - [1, 0.5]).T) - 1).max() < EXACT
    assert upper[:, 1].min() > -EXACT
    assert lower[:, 1].max() < 0.5 + EXACT


def test_circles_have_their_radii():
    x, y = without_noise(circles, n=40, factor=0.3)
    assert np.abs(np.hypot(*x.T) - np.where(y == 1, 0.3, 1.0)).max() < EXACT


def test_spirals_turn_with_their_radius():
    x, y = without_noise(spirals, n=90, classes=3, turns=0.5)
    radius, angle = np.hypot(*x.T), np.arctan2(x[:, 1], x[:, 0])
    expected = 2 * math.pi * (y / 3 + 0.5 * radius)
    distance = radius > 0.1
    assert np.abs(np.exp(1j * angle) - np.exp(1j * expected))[distance].max() < 1e-5
    assert np.bincount(y).tolist() == [30, 30, 30]


def test_blobs_lie_around_their_centres():
    x, y = blobs(9000, centers=[(0, 0), (20, 0), (0, 20)], std=2.0)
    for k, centre in enumerate([(0, 0), (20, 0), (0, 20)]):
        cloud = x[y == k].numpy()
        assert np.abs(cloud.mean(0) - centre).max() < 0.15
        assert np.abs(cloud.std(0) - 2).max() < 0.1
    drawn = blobs(5, centers=5, std=0.0)[0]
    assert drawn.abs().max().item() <= 10
    assert len({tuple(row) for row in drawn.tolist()}) == 5


@pytest.mark.parametrize("make", [moons, circles, spirals, blobs])
def test_a_seed_gives_the_same_points_on_every_device(make):
    x, y = make(30, seed=3)
    on_numpy, other_seed = make(30, seed=3, device="numpy"), make(30, seed=4)
    assert (x.tolist(), y.tolist()) == (on_numpy[0].tolist(), on_numpy[1].tolist())
    assert x.tolist() != other_seed[0].tolist()
    assert (x.dtype, y.dtype, x.device, on_numpy[0].device) == (mg.float32, mg.int64, mg.get_default_device(), "numpy")
    assert y.tolist() != sorted(y.tolist())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: moons(0), "moons: n should be a positive int, but got n=0"),
        (lambda: moons(noise=-1), "moons: the standard deviation should be finite and non-negative, but got -1"),
        (lambda: circles(factor=1), r"circles: factor, the inner radius, should be in \[0, 1\), but got factor=1"),
        (lambda: spirals(classes=0), "classes should be a positive int, but got classes=0"),
        (lambda: blobs(centers=0), "centers should be at least 1, but got centers=0"),
        (lambda: blobs(centers=[1.0, 2.0]), "centers should be a list of points"),
    ],
)
def test_arguments_out_of_range_raise(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()
