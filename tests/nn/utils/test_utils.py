"""Utilities for gradients and parameters."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.nn import utils
from parity import close
from strategies import PARITY


def trained(library, nn):
    """Create three parameters with gradients, one without."""
    parameters = [nn.Parameter(library.ones(*shape) * 0.5) for shape in ((2, 3), (4,), (1,), (2,))]
    for k, p in enumerate(parameters[:3]):
        (p**3 * (k - 1.5)).sum().backward()
    return parameters


@pytest.mark.parity
@pytest.mark.parametrize("kind", [2.0, 1.0, math.inf])
@pytest.mark.parametrize("limit", [0.5, 1e3])
def test_the_norm_is_clipped_as_pytorch_does(kind, limit, torch):
    mine, its = trained(mg, nn), trained(torch, torch.nn)
    found = utils.clip_grad_norm_(mine, limit, kind)
    expected = torch.nn.utils.clip_grad_norm_(its, limit, kind)
    close(found.numpy(), expected.numpy(), PARITY["float32"])
    for p, q in zip(mine[:3], its[:3], strict=True):
        close(p.grad.numpy(), q.grad.numpy(), PARITY["float32"])
    assert mine[3].grad is None


def test_one_parameter_and_none_have_a_norm_too():
    p = nn.Parameter(mg.zeros(2))
    assert utils.clip_grad_norm_(p, 1.0).item() == 0.0
    p.grad = mg.tensor([3.0, 4.0])
    assert utils.get_total_norm([p.grad]).item() == 5.0
    assert utils.clip_grad_norm_(iter([p]), 10.0).item() == 5.0
    assert p.grad.tolist() == [3.0, 4.0]
    utils.clip_grad_norm_(iter([p]), 1.0)
    assert utils.get_total_norm([p.grad]).item() == pytest.approx(1.0, abs=1e-5)


def test_a_norm_that_is_no_number_is_refused_if_asked_before_anything_is_written():
    p = nn.Parameter(mg.zeros(2))
    p.grad = mg.tensor([math.inf, 1.0])
    with pytest.raises(ArgumentError, match="total norm of the gradients is non-finite, inf"):
        utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
    assert p.grad.tolist() == [math.inf, 1.0]


@pytest.mark.parity
def test_gradients_are_clipped_by_a_norm_that_is_known(torch):
    mine, its = trained(mg, nn), trained(torch, torch.nn)
    utils.clip_grads_with_norm_(mine, 1.0, mg.tensor(4.0), foreach=True)
    torch.nn.utils.clip_grads_with_norm_(its, 1.0, torch.tensor(4.0))
    for p, q in zip(mine[:3], its[:3], strict=True):
        close(p.grad.numpy(), q.grad.numpy(), PARITY["float32"])


def test_values_are_clipped_one_by_one():
    p = nn.Parameter(mg.zeros(3))
    p.grad = mg.tensor([-3.0, 0.5, 9.0])
    utils.clip_grad_value_([p], 1.0)
    assert p.grad.tolist() == [-1.0, 0.5, 1.0]
    with pytest.raises(ArgumentError, match=r"clip_value must not be negative, but got -1.0"):
        utils.clip_grad_value_([p], -1.0)


def test_parameters_go_to_one_line_and_back():
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
def test_sequences_are_padded_as_in_pytorch_and_come_back(torch, batch_first, side):
    rows = [np.arange(6.0).reshape(3, 2), np.ones((1, 2)), np.zeros((0, 2))]
    options = {"batch_first": batch_first, "padding_value": -1.0, "padding_side": side}
    mine = utils.rnn.pad_sequence([mg.tensor(x) for x in rows], **options)
    its = torch.nn.utils.rnn.pad_sequence([torch.tensor(x) for x in rows], **options)
    assert mine.tolist() == its.tolist()
    if side == "right":
        back = utils.rnn.unpad_sequence(mine, mg.tensor([3, 1, 0]), batch_first=batch_first)
        assert [x.tolist() for x in back] == [x.tolist() for x in rows]


def test_no_sequences_have_no_length():
    with pytest.raises(ArgumentError, match="pad_sequence: expected at least one sequence"):
        utils.rnn.pad_sequence([])
