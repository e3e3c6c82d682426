"""Weights recomputed before each forward pass."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.core.errors import ArgumentError
from minigrad.nn import utils
from parity import close
from strategies import PARITY

LAYERS = [("Linear(4, 3)", (2, 4)), ("Conv2d(2, 3, 3)", (2, 2, 5, 5)), ("ConvTranspose2d(2, 3, 3)", (2, 2, 5, 5))]


def made(library, text):
    return eval(f"nn.{text}", {"nn": library.nn})


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def trained(library, layer, x, steps=3):
    """Return the output at each training step, and the final state."""
    optimizer, found = library.optim.SGD(layer.parameters(), lr=0.05), []
    for _ in range(steps):
        optimizer.zero_grad()
        y = layer(library.tensor(x))
        (y * y).sum().backward()
        optimizer.step()
        found.append(y.detach().numpy())
    return found, {name: p.detach().numpy() for name, p in layer.state_dict().items()}


def alike(found, expected):
    for mine, its in zip(found[0], expected[0], strict=True):
        close(mine, its, PARITY["float32"])
    assert list(found[1]) == list(expected[1])
    largest = max(
        np.abs(its).max() for its in expected[1].values()
    )  # a gradient may be the rounding error of large terms
    for name, its in expected[1].items():
        np.testing.assert_allclose(
            found[1][name], its, rtol=PARITY["float32"], atol=PARITY["float32"] * largest, err_msg=name
        )


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")  # PyTorch deprecates these functions
@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize(("text", "shape"), LAYERS)
def test_weight_norm_learns_what_it_learns_in_pytorch(torch, text, shape, dim):
    mine, its = made(mg, text), made(torch, text)
    mine.load_state_dict(its.state_dict())
    assert utils.weight_norm(mine, dim=dim) is mine
    torch.nn.utils.weight_norm(its, dim=dim)
    alike(trained(mg, mine, numbers(*shape)), trained(torch, its, numbers(*shape)))


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("text", "shape"), LAYERS)
def test_spectral_norm_learns_what_it_learns_in_pytorch(torch, text, shape):
    mine, its = made(mg, text), made(torch, text)
    utils.spectral_norm(mine, n_power_iterations=2)
    torch.nn.utils.spectral_norm(its, n_power_iterations=2)
    mine.load_state_dict(its.state_dict())  # including the random vectors
    alike(trained(mg, mine, numbers(*shape)), trained(torch, its, numbers(*shape)))


def test_a_spectral_norm_comes_to_be_1_and_stays_still_in_eval_mode():
    layer = utils.spectral_norm(nn.Linear(6, 4))
    for _ in range(200):
        layer(mg.zeros(1, 6))
    assert np.linalg.norm(layer.weight.detach().numpy(), 2) == pytest.approx(1.0, abs=1e-3)
    layer.eval()
    before = layer.weight_u.tolist()
    layer(mg.zeros(1, 6))
    assert layer.weight_u.tolist() == before


@pytest.mark.parametrize("norm", ["weight_norm", "spectral_norm"])
def test_what_is_removed_leaves_a_layer_as_it_was_made_with_the_weight_of_now(norm):
    layer, x = nn.Linear(4, 3), mg.tensor(numbers(2, 4))
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


def test_what_is_no_parameter_is_refused():
    with pytest.raises(ArgumentError, match="weight_norm: Linear has no parameter 'kernel'; it has weight, bias"):
        utils.weight_norm(nn.Linear(2, 2), "kernel")
    with pytest.raises(ArgumentError, match="expected n_power_iterations to be positive, but got 0"):
        utils.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)
