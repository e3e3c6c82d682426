"""Gaps: when two numbers or arrays differ, by how much, and by which simple factor."""

import math

import numpy as np
import pytest

from minigrad_viz.trace.gaps import TOLERANCES, Gap, Tolerance, gap, share, times

NAN, INF = math.nan, math.inf
DOUBLE, SINGLE, EXACT = TOLERANCES["float64"], TOLERANCES["float32"], Tolerance(0.0, 0.0)


@pytest.mark.parametrize(
    ("one", "other"),
    [(1.0, 1.0 + 9e-10), (1e20, 1e20 * (1 + 9e-10)), (0.0, 9e-13), (NAN, NAN), (INF, INF), (-0.0, 0.0), (None, None)],
)
def test_numbers_agree_within_the_tolerance_and_where_neither_is_finite(one, other):
    assert gap(one, other, DOUBLE) is None
    assert gap(other, one, DOUBLE) is None


@pytest.mark.parametrize(
    ("one", "other", "found"),
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
def test_numbers_that_differ_have_a_largest_difference_a_relative_one_and_a_simple_factor(one, other, found):
    assert gap(one, other, DOUBLE) == found


def test_a_number_and_none_are_not_apart_by_a_number():
    found = gap(1.0, NAN, DOUBLE)
    assert math.isnan(found.amount)
    assert math.isnan(found.ratio)


@pytest.mark.parametrize("tolerance", [SINGLE, DOUBLE])
def test_what_cancels_to_nearly_0_is_compared_with_what_is_usual_in_its_array(tolerance):
    x = np.array([1.0, -3.0, 2.0, 1e-13])
    y = x + np.array([0.0, 0.0, 0.0, 0.9 * tolerance.rtol])
    assert gap(x, y, tolerance) is None
    assert gap(x, x + np.array([0.0, 0.0, 0.0, 9.0 * tolerance.rtol]), tolerance).cells == 1


def test_one_huge_element_does_not_hide_what_differs_in_the_others():
    masked = np.array([[-1e9, 1.0, 2.0], [3.0, 4.0, 5.0]])
    other = masked.copy()
    other[0, 1] = 1.001
    found = gap(masked, other, SINGLE)
    assert (found.cells, found.size) == (1, 6)
    assert found.amount == pytest.approx(1e-3)
    assert found.ratio == pytest.approx(1e-3 / 3.5)  # the median of 1.001, 2, 3, 4, 5 and 1e9


def test_arrays_differ_where_one_is_not_finite_and_the_other_is():
    x, y = np.array([1.0, NAN, INF, NAN]), np.array([1.0, NAN, INF, 2.0])
    found = gap(x, y, DOUBLE)
    assert (found.cells, found.size, found.factor) == (1, 4, None)
    assert math.isnan(found.ratio)
    assert gap(np.array([1.0, INF]), np.array([1.0, -INF]), DOUBLE).ratio == INF


def test_a_factor_is_told_if_it_holds_for_all_elements():
    x = np.array([1.0, -2.0, 0.0, 3.0])
    assert [gap(x, k * x, DOUBLE).factor for k in (-1.0, 2.0, 0.25, 1.5)] == [-1.0, 2.0, 0.25, None]
    assert gap(x, np.array([2.0, -4.0, 1.0, 6.0]), DOUBLE).factor is None
    assert gap(np.zeros(3), np.ones(3), DOUBLE).factor is None


def test_with_no_tolerance_they_have_to_be_equal():
    assert gap(1.0, math.nextafter(1.0, 2.0), EXACT) is not None
    assert gap(np.array([1, 2]), np.array([1, 2]), EXACT) is None
    assert gap(np.array([True, False]), np.array([True, True]), EXACT).cells == 1


def test_sizes_that_a_float_cannot_hold_the_difference_of_are_apart():
    assert gap(1e308, -1e308, DOUBLE).amount == INF
    assert gap(np.array([1e308]), np.array([-1e308]), DOUBLE).amount == INF


def test_words():
    assert [share(Gap(1.0, ratio, 1, 1)) for ratio in (1.0, 0.0123, 1e-3, 9e-4)] == ["100%", "1.2%", "0.1%", "9.0e−4"]
    assert times(Gap(1.0, 1.0, 1, 1, -1 / 8)) == "−1/8 of the first"
    assert times(Gap(1.0, 1.0, 1, 1, -3.0)) == "−3 times the first"
    assert str(DOUBLE) == "rtol 1e−9 and atol 1e−12"
