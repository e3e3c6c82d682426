"""Scatter reductions with nan."""

import pytest

import minigrad as mg
from parity import default_device

nan, inf = float("nan"), float("inf")


@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_scattered_extremes_propagate_nan(device):
    with default_device(device):
        groups, x = mg.tensor([0, 1, 0, 1, 2]), mg.tensor([1.0, nan, nan, -inf, inf])
        for reduce in ("amax", "amin"):
            for include in (True, False):
                result = mg.zeros(4).scatter_reduce(0, groups, x, reduce, include_self=include).tolist()
                assert [str(y) for y in result[:2]] == ["nan", "nan"]
                assert result[2:] == [0.0 if include and reduce == "amin" else inf, 0.0]
        least = mg.full((1,), 9, dtype=mg.uint8)
        assert least.scatter_reduce(0, mg.tensor([0, 0]), mg.tensor([0, 200], dtype=mg.uint8), "amin").tolist() == [0]
