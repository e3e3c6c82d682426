"""Axes: pixels, limits and ticks."""

import math

import pytest

from minigrad_viz.pictures.axes import Axis, fit_limits, ticks


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (-0.05, 1.05, "0.0 0.2 0.4 0.6 0.8 1.0"),
        (-4.16, 0.16, "−4 −3 −2 −1 0"),
        (0.0, 26_000.0, "0 5,000 10,000 15,000 20,000 25,000"),
        (0.000009, 0.000052, "0.00001 0.00002 0.00003 0.00004 0.00005"),
        (0.0, 3e-8, "0 5e−9 1e−8 1.5e−8 2e−8 2.5e−8 3e−8"),
        (0.0, 4e12, "0 1e12 2e12 3e12 4e12"),
    ],
)
def test_ticks_are_multiples_of_1_2_or_5_with_equal_decimals(low, high, labels):
    assert " ".join(text for _, text in Axis(low, high, 0.0, 100.0).labels(6)) == labels


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (1e-3, 10.0, "10⁻³ 10⁻² 10⁻¹ 10⁰ 10¹"),
        (1e-13, 1.0, "10⁻¹² 10⁻¹⁰ 10⁻⁸ 10⁻⁶ 10⁻⁴ 10⁻² 10⁰"),
        (0.3, 30.0, "0.5 1 2 5 10 20"),
    ],
)
def test_logarithmic_ticks_are_powers_of_ten_or_1_2_5_in_a_narrow_range(low, high, labels):
    assert " ".join(text for _, text in Axis(low, high, 0.0, 100.0, is_log=True).labels(6)) == labels


def test_equal_ratios_are_equally_far_apart_on_a_logarithmic_axis():
    axis = Axis(0.01, 100.0, 400.0, 0.0, is_log=True)
    assert [round(axis.pixel(x), 9) for x in (0.01, 0.1, 1.0, 10.0, 100.0)] == [400.0, 300.0, 200.0, 100.0, 0.0]


def test_a_widened_axis_keeps_its_middle():
    axis = Axis(0.0, 2.0, 100.0, 300.0).widen(0.05)
    assert (axis.low, axis.high, axis.unit) == (-4.0, 6.0, 0.05)


def test_limits_leave_space_beside_data_but_not_beside_edges_of_a_map():
    assert fit_limits([10.0, 20.0], [0.0, 100.0], (None, None)) == (0.0, 100.0)
    assert fit_limits([10.0, 125.0], [0.0, 100.0], (None, None)) == (0.0, 130.0)
    assert fit_limits([10.0, 20.0], [], (0.0, None)) == pytest.approx((0.0, 20.4))
    assert fit_limits([3.0], [], (None, None)) == pytest.approx((2.46, 3.54))
    assert fit_limits([], [], (None, 2.0)) == pytest.approx((0.46, 2.0))
    assert fit_limits([5.0, 6.0], [], (None, 2.0)) == (1.0, 2.0)
    assert fit_limits([5.0, 6.0], [], (7.0, None), is_log=True) == (7.0, 70.0)
    low, high = fit_limits([0.01, 100.0], [], (None, None), is_log=True)
    assert (math.log10(low), math.log10(high)) == pytest.approx((-2.16, 2.16))


def test_ticks_of_one_decade_are_within_the_limits():
    assert ticks(2.0, 4.9, True) == [2.0]
    assert ticks(0.5, 5.0, True) == [0.5, 1.0, 2.0, 5.0]
