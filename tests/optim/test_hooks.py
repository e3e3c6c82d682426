"""Hooks of optimizers run when PyTorch's do."""

import importlib
import re

import pytest

import minigrad as mg
from minigrad.core.errors import DTypeError
from stepped import Halving, give, leaf


def test_a_recording_sees_hooks_of_an_optimizer_come_and_go():
    w = mg.tensor([8.0], requires_grad=True)
    optimizer, called = mg.optim.SGD([w], lr=0.5), []

    @mg.jit
    def step():
        optimizer.zero_grad()
        w.sum().backward()
        optimizer.step()

    def halve(optimizer, args, kwargs):
        w.grad.mul_(0.5)

    for _ in range(3):
        step()
    halved = optimizer.register_step_pre_hook(halve)
    step()
    assert w.tolist() == [6.25]
    halved.remove()
    step()
    assert w.tolist() == [5.75]
    with mg.optim.optimizer.register_optimizer_step_post_hook(lambda o, args, kwargs: called.append(o)):
        step()
    assert called == [optimizer]
    assert w.tolist() == [5.25]


@pytest.mark.parity
def test_hooks_are_called_when_pytorch_calls_them(torch):
    told = []
    for library in (mg, torch):
        p = library.ones(2).requires_grad_()
        optimizer, heard = library.optim.SGD([p], lr=0.5), []
        everywhere = importlib.import_module(f"{library.__name__}.optim.optimizer")
        handles = [
            everywhere.register_optimizer_step_pre_hook(lambda o, a, k, heard=heard: heard.append("all before")),
            everywhere.register_optimizer_step_post_hook(lambda o, a, k, heard=heard: heard.append("all after")),
        ]
        optimizer.register_step_post_hook(lambda o, a, k, heard=heard: heard.append(("after", len(k))))
        optimizer.register_step_pre_hook(lambda o, a, k, heard=heard: heard.append(("before", len(k))))
        optimizer.register_state_dict_pre_hook(lambda o, heard=heard: heard.append("saving"))
        optimizer.register_state_dict_post_hook(lambda o, s: {**s, "more": 1})
        optimizer.register_state_dict_post_hook(lambda o, s, heard=heard: heard.append(sorted(s)), prepend=True)
        optimizer.register_load_state_dict_pre_hook(lambda o, s, heard=heard: heard.append(s.pop("more")))
        optimizer.register_load_state_dict_post_hook(lambda o, heard=heard: heard.append("loaded"))
        optimizer.step(closure=lambda heard=heard: heard.append("closure"))
        state = optimizer.state_dict()
        optimizer.load_state_dict(state)
        heard.append(state["more"])
        for handle in handles:
            handle.remove()
        optimizer.step()
        told.append(heard)
    assert told[0] == told[1]


def test_hooks_are_called_once_for_a_step_that_calls_its_base_class():
    p, heard = leaf(2), []
    optimizer = Halving([p])
    give([p], 0)
    handle = optimizer.register_step_pre_hook(lambda o, args, kwargs: heard.append((o is optimizer, args, kwargs)))
    optimizer.step(None)
    handle.remove()
    optimizer.step()
    assert heard == [(True, (None,), {})]
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(
        DTypeError,
        match=re.escape("Halving.step: a pre hook must return None or a tuple of (new_args, new_kwargs), but"),
    ):
        optimizer.step()
    assert optimizer.steps == 2
