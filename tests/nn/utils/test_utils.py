"""Utilities for gradients and parameters."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.nn import utils
from parity import assert_close
from strategies import PARITY


def make_parameters(library, nn):
    """Create three parameters with gradients, one without."""
    parameters = [nn.Parameter(library.ones(*shape) * 0.5) for shape in ((2, 3), (4,), (1,), (2,))]
    for k, p in enumerate(parameters[:3]):
        (p**3 * (k - 1.5)).sum().backward()
    return parameters


@pytest.mark.parity
@pytest.mark.parametrize("kind", [2.0, 1.0, math.inf])
@pytest.mark.parametrize("limit", [0.5, 1e3])
def test_the_norm_is_clipped_as_pytorch_does(kind, limit, torch):
    parameters, torch_parameters = make_parameters(mg, nn), make_parameters(torch, torch.nn)
    norm = utils.clip_grad_norm_(parameters, limit, kind)
    expected = torch.nn.utils.clip_grad_norm_(torch_parameters, limit, kind)
    assert_close(norm.numpy(), expected.numpy(), PARITY["float32"])
    for p, q in zip(parameters[:3], torch_parameters[:3], strict=True):
        assert_close(p.grad.numpy(), q.grad.numpy(), PARITY["float32"])
    assert parameters[3].grad is None


def test_one_parameter_and_none_have_a_norm_too():
    p = nn.Parameter(mg.zeros(2))
    assert utils.clip_grad_norm_(p, 1.0).item() == 0.0
    p.grad = mg.tensor([3.0, 4.0])
    assert utils.get_total_norm([p.grad]).item() == 5.0
    assert utils.clip_grad_norm_(iter([p]), 10.0).item() == 5.0
    assert p.grad.tolist() == [3.0, 4.0]
    utils.clip_grad_norm_(iter([p]), 1.0)
    assert utils.get_total_norm([p.grad]).item() == pytest.approx(1.0, abs=1e-5)


def test_a_nonfinite_norm_raises_before_writing():
    p = nn.Parameter(mg.zeros(2))
    p.grad = mg.tensor([math.inf, 1.0])
    with pytest.raises(ArgumentError, match="total norm of the gradients is non-finite, inf"):
        utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
    assert p.grad.tolist() == [math.inf, 1.0]


@pytest.mark.parity
def test_gradients_are_clipped_by_a_given_norm(torch):
    parameters, torch_parameters = make_parameters(mg, nn), make_parameters(torch, torch.nn)
    utils.clip_grads_with_norm_(parameters, 1.0, mg.tensor(4.0), foreach=True)
    torch.nn.utils.clip_grads_with_norm_(torch_parameters, 1.0, torch.tensor(4.0))
    for p, q in zip(parameters[:3], torch_parameters[:3], strict=True):
        assert_close(p.grad.numpy(), q.grad.numpy(), PARITY["float32"])


def test_gradient_values_are_clamped():
    p = nn.Parameter(mg.zeros(3))
    p.grad = mg.tensor([-3.0, 0.5, 9.0])
    utils.clip_grad_value_([p], 1.0)
    assert p.grad.tolist() == [-1.0, 0.5, 1.0]
    with pytest.raises(ArgumentError, match=r"clip_value must not be negative, but got -1.0"):
        utils.clip_grad_value_([p], -1.0)


def test_parameters_round_trip_through_a_vector():
    model, twin = nn.Linear(3, 2), nn.Linear(3, 2)
    line = utils.parameters_to_vector(model.parameters())
    assert line.shape == (8,)
    line.sum().backward()
    assert model.weight.grad.tolist() == [[1.0] * 3] * 2
    utils.vector_to_parameters(line, twin.parameters())
    assert (twin.weight == model.weight).all()
    assert (twin.bias == model.bias).all()
    with pytest.raises(ShapeError, match=r"have 8 elements, but vec has shape \(7,\)"):
        utils.vector_to_parameters(line[:7], twin.parameters())


@pytest.mark.parity
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_equals_pytorchs_and_round_trips(torch, batch_first, side):
    rows = [np.arange(6.0).reshape(3, 2), np.ones((1, 2)), np.zeros((0, 2))]
    options = {"batch_first": batch_first, "padding_value": -1.0, "padding_side": side}
    actual = utils.rnn.pad_sequence([mg.tensor(x) for x in rows], **options)
    expected = torch.nn.utils.rnn.pad_sequence([torch.tensor(x) for x in rows], **options)
    assert actual.tolist() == expected.tolist()
    if side == "right":
        back = utils.rnn.unpad_sequence(actual, mg.tensor([3, 1, 0]), batch_first=batch_first)
        assert [x.tolist() for x in back] == [x.tolist() for x in rows]


def test_padding_no_sequences_raises():
    with pytest.raises(ArgumentError, match="pad_sequence: expected at least one sequence"):
        utils.rnn.pad_sequence([])
