"""Gaps: when two numbers or arrays differ, by how much, and by which simple factor."""

import math

import numpy as np
import pytest

from minigrad_viz.trace.gaps import TOLERANCES, Gap, Tolerance, describe_factor, format_ratio, gap

NAN, INF = math.nan, math.inf
DOUBLE, SINGLE, EXACT = TOLERANCES["float64"], TOLERANCES["float32"], Tolerance(0.0, 0.0)


@pytest.mark.parametrize(
    ("one", "other"),
    [(1.0, 1.0 + 9e-10), (1e20, 1e20 * (1 + 9e-10)), (0.0, 9e-13), (NAN, NAN), (INF, INF), (-0.0, 0.0), (None, None)],
)
def test_numbers_agree_within_tolerance_or_if_both_are_non_finite(one, other):
    assert gap(one, other, DOUBLE) is None
    assert gap(other, one, DOUBLE) is None


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (2.0, 3.0, Gap(1.0, 1 / 3, 1, 1)),
        (2.0, -2.0, Gap(4.0, 2.0, 1, 1, -1.0)),
        (2.0, 4.0, Gap(2.0, 0.5, 1, 1, 2.0)),
        (32.0, 1.0, Gap(31.0, 31 / 32, 1, 1, 1 / 32)),
        (0.0, 3.0, Gap(3.0, 1.0, 1, 1)),
        (3.0, 0.0, Gap(3.0, 1.0, 1, 1)),
        (1.0, INF, Gap(INF, INF, 1, 1)),
        (-INF, INF, Gap(INF, INF, 1, 1)),
        (None, 3.0, Gap(INF, INF, 1, 1)),
    ],
)
def test_differing_numbers_have_amount_ratio_and_factor(one, other, expected):
    assert gap(one, other, DOUBLE) == expected


def test_number_and_none_differ_infinitely():
    difference = gap(1.0, NAN, DOUBLE)
    assert math.isnan(difference.amount)
    assert math.isnan(difference.ratio)


@pytest.mark.parametrize("tolerance", [SINGLE, DOUBLE])
def test_cancellation_is_compared_with_the_median_of_its_array(tolerance):
    x = np.array([1.0, -3.0, 2.0, 1e-13])
    y = x + np.array([0.0, 0.0, 0.0, 0.9 * tolerance.rtol])
    assert gap(x, y, tolerance) is None
    assert gap(x, x + np.array([0.0, 0.0, 0.0, 9.0 * tolerance.rtol]), tolerance).cells == 1


def test_huge_element_does_not_hide_other_differences():
    masked = np.array([[-1e9, 1.0, 2.0], [3.0, 4.0, 5.0]])
    other = masked.copy()
    other[0, 1] = 1.001
    difference = gap(masked, other, SINGLE)
    assert (difference.cells, difference.size) == (1, 6)
    assert difference.amount == pytest.approx(1e-3)
    assert difference.ratio == pytest.approx(1e-3 / 3.5)  # the median of 1.001, 2, 3, 4, 5 and 1e9


def test_arrays_differ_if_only_one_is_finite():
    x, y = np.array([1.0, NAN, INF, NAN]), np.array([1.0, NAN, INF, 2.0])
    difference = gap(x, y, DOUBLE)
    assert (difference.cells, difference.size, difference.factor) == (1, 4, None)
    assert math.isnan(difference.ratio)
    assert gap(np.array([1.0, INF]), np.array([1.0, -INF]), DOUBLE).ratio == INF


def test_factor_is_given_if_all_elements_share_it():
    x = np.array([1.0, -2.0, 0.0, 3.0])
    assert [gap(x, k * x, DOUBLE).factor for k in (-1.0, 2.0, 0.25, 1.5)] == [-1.0, 2.0, 0.25, None]
    assert gap(x, np.array([2.0, -4.0, 1.0, 6.0]), DOUBLE).factor is None
    assert gap(np.zeros(3), np.ones(3), DOUBLE).factor is None


def test_zero_tolerance_requires_equality():
    assert gap(1.0, math.nextafter(1.0, 2.0), EXACT) is not None
    assert gap(np.array([1, 2]), np.array([1, 2]), EXACT) is None
    assert gap(np.array([True, False]), np.array([True, True]), EXACT).cells == 1


def test_overflowing_difference_is_a_gap():
    assert gap(1e308, -1e308, DOUBLE).amount == INF
    assert gap(np.array([1e308]), np.array([-1e308]), DOUBLE).amount == INF


def test_factor_descriptions():
    assert [format_ratio(Gap(1.0, ratio, 1, 1)) for ratio in (1.0, 0.0123, 1e-3, 9e-4)] == [
        "100%",
        "1.2%",
        "0.1%",
        "9.0e−4",
    ]
    assert describe_factor(Gap(1.0, 1.0, 1, 1, -1 / 8)) == "−1/8 of the first"
    assert describe_factor(Gap(1.0, 1.0, 1, 1, -3.0)) == "−3 times the first"
    assert str(DOUBLE) == "rtol 1e−9 and atol 1e−12"
