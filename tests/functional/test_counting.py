"""Counting beyond the sample table: nan, empty input, and invalid arguments."""

import pytest

import minigrad as mg
from minigrad.core.errors import DTypeError, ShapeError
from needs import needs

needs("numpy")


@pytest.mark.parity
@pytest.mark.parametrize("values", [[], [float("nan"), 1.0, float("nan"), -0.0, 0.0], [float("inf"), -float("inf")]])
def test_unique_of_special_values_matches_pytorch(values):
    import torch

    actual = mg.unique(mg.tensor(values), return_inverse=True, return_counts=True)
    expected = torch.unique(torch.tensor(values), return_inverse=True, return_counts=True)
    for a, b in zip(actual, expected, strict=True):
        assert str(a.tolist()) == str(b.tolist())


def test_invalid_arguments_raise():
    with pytest.raises(DTypeError, match=r"bincount: only supports .* integral inputs, but got float32"):
        mg.bincount(mg.ones(2))
    with pytest.raises(ShapeError, match=r"bincount: expected 1-d input .*, but got input \(2, 2\)"):
        mg.bincount(mg.tensor([[1, 2], [3, 4]]))
    with pytest.raises(ShapeError, match=r"bincount: only supports .* non-negative .*, but got -3"):
        mg.bincount(mg.tensor([1, -3]))
    with pytest.raises(ShapeError, match=r"unique: the slices of shape \(2, 0\) along dim=0 have no elements"):
        mg.unique(mg.ones(2, 0), dim=0)
    with pytest.raises(DTypeError, match=r"unique_consecutive: dim must be a single int, not \(0,\)"):
        mg.unique_consecutive(mg.ones(2, 2), dim=(0,))


def test_integer_weights_are_summed_in_float64():
    idx = mg.tensor([0, 2, 2])
    for dtype in (mg.int64, mg.int32, mg.uint8, mg.bool):
        result = mg.bincount(idx, mg.tensor([1, 200, 100], dtype=mg.int64).to(dtype))
        assert result.dtype is mg.float64
        assert result.tolist() == [1.0, 0.0, 2.0 if dtype is mg.bool else 300.0]
    assert mg.bincount(idx, mg.ones(3)).dtype is mg.float32
