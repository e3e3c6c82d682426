"""The state of an optimizer: saved, loaded, and rejected if it does not match."""

import copy
import re

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from optimizer_cases import NAMES, OPTIONS, Halving, leaf, make_optimizer, run_steps
from strategies import SINGLE, TRAJECTORY


def test_a_state_of_another_shape_raises_before_any_change():
    p = leaf(2, 2)
    optimizer = mg.optim.Adam([p])
    run_steps(optimizer, [p], 0, 1)
    before = p.tolist()
    optimizer.state[p]["exp_avg"] = mg.ones(3)
    with pytest.raises(ShapeError, match=re.escape("Adam.step: a parameter of shape (2, 2) and dtype float32")):
        optimizer.step()
    assert p.tolist() == before


@pytest.mark.parametrize("name", NAMES)
def test_resumed_training_equals_uninterrupted_training_bit_for_bit(name):
    params = [leaf(3, 4), leaf(5, 2, seed=1)]
    optimizer = make_optimizer(name, params)
    run_steps(optimizer, params, 0, 5)
    saved = copy.deepcopy(optimizer.state_dict())
    again = [p.detach().clone().requires_grad_() for p in params]
    resumed = make_optimizer(name, again, lr=0.5)
    resumed.load_state_dict(saved)
    run_steps(optimizer, params, 5, 10)
    run_steps(resumed, again, 5, 10)
    for p, q in zip(params, again, strict=True):
        assert (p == q).all()


@pytest.mark.parity
@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("Lion", "Muon")])
def test_a_pytorch_state_can_be_resumed(torch, name):
    starts = [np.random.default_rng(k).normal(size=(4, 3)) for k in range(2)]
    twins = [torch.tensor(x).requires_grad_() for x in starts]
    twin = getattr(torch.optim, name)(twins, **OPTIONS.get(name, {}))

    def train_with_pytorch(first, last):
        for k in range(first, last):
            for i, p in enumerate(twins):
                p.grad = torch.tensor(np.random.default_rng(100 * k + i).normal(size=(4, 3)))
            twin.step()

    train_with_pytorch(0, 5)
    params = [mg.tensor(p.detach().numpy(), requires_grad=True) for p in twins]
    optimizer = make_optimizer(name, params)
    optimizer.load_state_dict(twin.state_dict())
    train_with_pytorch(5, 10)
    run_steps(optimizer, params, 5, 10)
    tolerance = SINGLE if name == "NAdam" else TRAJECTORY
    for p, q in zip(params, twins, strict=True):
        assert abs(p.detach().numpy() - q.detach().numpy()).max() <= tolerance


def test_loading_a_mismatched_state_changes_nothing():
    p, q = leaf(2, 2), leaf(3, seed=1)
    optimizer = mg.optim.Adam([p, q])
    run_steps(optimizer, [p, q], 0, 1)
    before = copy.deepcopy(optimizer.state_dict())
    other = mg.optim.Adam([leaf(2, 2)])
    swapped = mg.optim.Adam([q, p])
    text = (
        "Adam.load_state_dict: the loaded state dict has parameter groups of sizes [1] that don't match the "
        "optimizer's, [2]."
    )
    with pytest.raises(ArgumentError, match=re.escape(text)):
        optimizer.load_state_dict(other.state_dict())
    text = "Adam.load_state_dict: size mismatch: exp_avg has shape (2, 2), but its parameter has (3,)."
    with pytest.raises(ShapeError, match=re.escape(text)):
        swapped.load_state_dict(optimizer.state_dict())
    assert not swapped.state
    assert str(optimizer.state_dict()) == str(before)


def test_a_loaded_state_is_a_copy():
    p, q = leaf(2, 2), leaf(2, 2)
    first, second = mg.optim.Adam([p]), mg.optim.Adam([q])
    run_steps(first, [p], 0, 1)
    second.load_state_dict(first.state_dict())
    before = second.state[q]["exp_avg"].tolist()
    run_steps(first, [p], 1, 2)
    assert second.state[q]["exp_avg"].tolist() == before


@pytest.mark.parametrize(
    ("state", "description"), [({}, r"one with \[\]"), ("state", "a str"), ({"lr": 1}, r"one with \['lr'\]")]
)
def test_loading_another_object_raises(state, description):
    optimizer = mg.optim.SGD([mg.ones(2, requires_grad=True)], lr=0.1)
    with pytest.raises(DTypeError, match=rf"SGD\.load_state_dict: expected a dict with .*, but got {description}\."):
        optimizer.load_state_dict(state)


def test_a_loaded_option_that_is_a_tensor_is_a_copy():
    rate = mg.tensor(0.5)
    first, second = mg.optim.SGD([leaf(2)], lr=rate), mg.optim.SGD([leaf(2)], lr=0.1)
    second.load_state_dict(first.state_dict())
    rate.zero_()
    assert second.param_groups[0]["lr"].item() == 0.5


def test_a_subclass_completes_the_groups_of_an_older_state():
    class Newer(Halving):
        def __setstate__(self, state):
            super().__setstate__(state)
            for group in self.param_groups:
                group.setdefault("momentum", 0.25)

    optimizer = Newer([leaf(2)])
    del optimizer.param_groups[0]["lr"]
    optimizer.load_state_dict(Halving([leaf(2)]).state_dict())
    assert (optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]) == (0.5, 0.25)


def test_nested_and_global_state_is_saved_and_copied():
    p, q = leaf(2), leaf(2)
    first, second = Halving([p]), Halving([q])
    first.state[p]["old"] = [mg.ones(2), {"more": mg.zeros(2)}]
    first.state["rounds"] = {"count": 3}
    state = first.state_dict()
    assert state["state"]["rounds"] == {"count": 3}
    second.load_state_dict(state)
    first.state[p]["old"][0].zero_()
    assert second.state[q]["old"][0].tolist() == [1.0, 1.0]
    assert second.state["rounds"] == {"count": 3}
