"""Tensor printing: repr, compared with PyTorch's, and format."""

import re

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.errors import DTypeError


def to_minigrad_repr(text):
    """Convert PyTorch's repr to minigrad's terms, without line breaks before details."""
    text = re.sub(r"grad_fn=<(\w+?)Backward\d*>", r"grad_fn=<\1Backward>", text.replace("torch.", "minigrad."))
    return re.sub(r",\n {7}(\w)", r", \1", text)


def strip_extra_details(text):
    """Remove the details that PyTorch's repr lacks."""
    return re.sub(r", (nan|inf)=\d+", "", re.sub(r",\n {7}(\w)", r", \1", text))


SHAPES = [(), (1,), (3,), (2, 3), (40,), (2, 2, 5), (0,), (0, 3), (7, 9), (999,), (1, 1, 1), (2, 0)]


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "uint8", "bool"])
def test_repr_is_pytorch_s(torch, dtype, shape):
    generator = np.random.default_rng(0)
    for scale in (1e-6, 1e-3, 1.0, 10.0, 1e4, 1e9):
        for round in (lambda x: x, np.round, np.abs):
            array = np.asarray(round(generator.normal(size=shape) * scale)) + 0.0
            if not dtype.startswith("float"):
                array = np.clip(array, *((0, 255) if dtype == "uint8" else (-2e9, 2e9)))
            array = array.astype(dtype)
            if array.any() or array.size < 20:  # PyTorch exceeds the line width for zeros
                assert strip_extra_details(repr(mg.tensor(array))) == to_minigrad_repr(repr(torch.tensor(array)))


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize(
    "row",
    [
        [float("nan")],
        [float("nan"), 1.0],
        [float("nan"), 1.5, float("-inf")],
        [float("inf"), 1e-9],
        [1e5, 1.5],
        [1e8, 1e8],
        [2e8, 2e8],
        [0.00009],
        [0.0001],
        [1.0, 1000.0],
        [1.0, 1001.0],
        [0.0, -1.5],
    ],
    ids=str,
)
def test_repr_of_numbers_at_the_edges_is_pytorch_s(torch, row):
    for values in (row, row[0], [row, row]):
        actual, expected = strip_extra_details(repr(mg.tensor(values))), to_minigrad_repr(repr(torch.tensor(values)))
        assert re.sub(" +", " ", actual) == re.sub(" +", " ", expected)  # minigrad also aligns nan and integers


@pytest.mark.parity
@pytest.mark.parametrize("shape", [(2000,), (2, 1000), (20, 20, 20), (1000, 2), (5, 5, 100), (1, 1001), (7, 7, 7, 7)])
def test_repr_of_many_numbers_is_pytorch_s_and_says_the_size(torch, shape):
    array = np.random.default_rng(0).normal(size=shape)
    shown = strip_extra_details(repr(mg.tensor(array)))
    size = f", size={shape}"
    assert size in shown
    assert shown.replace(size, "") == to_minigrad_repr(repr(torch.tensor(array)))


@pytest.mark.parity
def test_repr_of_grad_fn_matches_pytorch(torch):
    for library in (mg, torch):
        x = library.ones(2, requires_grad=True)
        reprs = [repr(x), repr(x * 2.0), repr((x * 2.0).detach()), repr(library.ones(40, requires_grad=True) * 1.5)]
        if library is mg:
            expected = reprs
    assert expected == [
        to_minigrad_repr(text) if k < 3 else text.replace("Backward0", "Backward") for k, text in enumerate(reprs)
    ]


def test_repr_counts_nonfinite_elements_even_if_summarised():
    x = mg.zeros(3000)
    x[1500], x[1501], x[1502] = float("nan"), float("inf"), float("-inf")
    assert repr(x) == "tensor([0., 0., 0.,  ..., 0., 0., 0.], size=(3000,), nan=1, inf=2)"
    assert repr(mg.tensor([float("nan"), 1.5])) == "tensor([   nan, 1.5000], nan=1)"
    assert repr(mg.zeros(0, 3)) == "tensor([], size=(0, 3))"
    assert repr(mg.tensor([-0.0, 0.0])) == "tensor([-0.,  0.])"
    assert max(map(len, repr(mg.zeros(100)).splitlines())) <= 80


def test_format_spec_requires_a_0d_tensor():
    assert f"{mg.ones(2)}" == repr(mg.ones(2))
    with pytest.raises(DTypeError, match=r"format: unsupported format string '.2f' for a tensor of shape \(2,\)"):
        f"{mg.ones(2):.2f}"
