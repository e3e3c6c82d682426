"""Weights recomputed before each forward pass."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.core.errors import ArgumentError
from minigrad.nn import utils
from parity import assert_close
from strategies import PARITY

LAYERS = [("Linear(4, 3)", (2, 4)), ("Conv2d(2, 3, 3)", (2, 2, 5, 5)), ("ConvTranspose2d(2, 3, 3)", (2, 2, 5, 5))]


def make_layer(library, text):
    return eval(f"nn.{text}", {"nn": library.nn})


def random_array(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def train(library, layer, x, steps=3):
    """Return the output at each training step, and the final state."""
    optimizer, outputs = library.optim.SGD(layer.parameters(), lr=0.05), []
    for _ in range(steps):
        optimizer.zero_grad()
        y = layer(library.tensor(x))
        (y * y).sum().backward()
        optimizer.step()
        outputs.append(y.detach().numpy())
    return outputs, {name: p.detach().numpy() for name, p in layer.state_dict().items()}


def check_equal(results, expected):
    for actual, expected_array in zip(results[0], expected[0], strict=True):
        assert_close(actual, expected_array, PARITY["float32"])
    assert list(results[1]) == list(expected[1])
    # A gradient may be the rounding error of large terms.
    largest = max(np.abs(expected_array).max() for expected_array in expected[1].values())
    for name, expected_array in expected[1].items():
        np.testing.assert_allclose(
            results[1][name], expected_array, rtol=PARITY["float32"], atol=PARITY["float32"] * largest, err_msg=name
        )


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")  # PyTorch deprecates these functions
@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize(("text", "shape"), LAYERS)
def test_weight_norm_trains_as_in_pytorch(torch, text, shape, dim):
    layer, torch_layer = make_layer(mg, text), make_layer(torch, text)
    layer.load_state_dict(torch_layer.state_dict())
    assert utils.weight_norm(layer, dim=dim) is layer
    torch.nn.utils.weight_norm(torch_layer, dim=dim)
    check_equal(train(mg, layer, random_array(*shape)), train(torch, torch_layer, random_array(*shape)))


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("text", "shape"), LAYERS)
def test_spectral_norm_trains_as_in_pytorch(torch, text, shape):
    layer, torch_layer = make_layer(mg, text), make_layer(torch, text)
    utils.spectral_norm(layer, n_power_iterations=2)
    torch.nn.utils.spectral_norm(torch_layer, n_power_iterations=2)
    layer.load_state_dict(torch_layer.state_dict())  # including the random vectors
    check_equal(train(mg, layer, random_array(*shape)), train(torch, torch_layer, random_array(*shape)))


def test_the_spectral_norm_converges_to_1_and_is_fixed_in_eval_mode():
    layer = utils.spectral_norm(nn.Linear(6, 4))
    for _ in range(200):
        layer(mg.zeros(1, 6))
    assert np.linalg.norm(layer.weight.detach().numpy(), 2) == pytest.approx(1.0, abs=1e-3)
    layer.eval()
    before = layer.weight_u.tolist()
    layer(mg.zeros(1, 6))
    assert layer.weight_u.tolist() == before


@pytest.mark.parametrize("norm", ["weight_norm", "spectral_norm"])
def test_removing_a_norm_restores_the_layer_with_the_current_weight(norm):
    layer, x = nn.Linear(4, 3), mg.tensor(random_array(2, 4))
    names = list(layer.state_dict())
    getattr(utils, norm)(layer)
    assert sorted(layer.state_dict()) != sorted(names)
    expected = layer.eval()(x).tolist()
    assert getattr(utils, f"remove_{norm}")(layer) is layer
    assert sorted(layer.state_dict()) == sorted(names)
    assert np.allclose(layer(x).tolist(), expected, atol=1e-6)
    layer.weight.grad = None
    layer(x).sum().backward()
    assert layer.weight.grad is not None
    with pytest.raises(ArgumentError, match=f"remove_{norm}: {norm} of 'weight' not found in Linear"):
        getattr(utils, f"remove_{norm}")(layer)


def test_an_unknown_parameter_raises():
    with pytest.raises(ArgumentError, match="weight_norm: Linear has no parameter 'kernel'; it has weight, bias"):
        utils.weight_norm(nn.Linear(2, 2), "kernel")
    with pytest.raises(ArgumentError, match="expected n_power_iterations to be positive, but got 0"):
        utils.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)
