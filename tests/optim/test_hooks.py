"""Hooks of optimizers run when PyTorch's do."""

import importlib
import re

import pytest

import minigrad as mg
from minigrad.core.errors import DTypeError
from optimizer_cases import Halving, leaf, set_gradients


def test_a_jitted_step_respects_added_and_removed_hooks():
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
    calls_by_library = []
    for library in (mg, torch):
        p = library.ones(2).requires_grad_()
        optimizer, calls = library.optim.SGD([p], lr=0.5), []
        everywhere = importlib.import_module(f"{library.__name__}.optim.optimizer")
        handles = [
            everywhere.register_optimizer_step_pre_hook(lambda o, a, k, heard=calls: heard.append("all before")),
            everywhere.register_optimizer_step_post_hook(lambda o, a, k, heard=calls: heard.append("all after")),
        ]
        optimizer.register_step_post_hook(lambda o, a, k, heard=calls: heard.append(("after", len(k))))
        optimizer.register_step_pre_hook(lambda o, a, k, heard=calls: heard.append(("before", len(k))))
        optimizer.register_state_dict_pre_hook(lambda o, heard=calls: heard.append("saving"))
        optimizer.register_state_dict_post_hook(lambda o, s: {**s, "more": 1})
        optimizer.register_state_dict_post_hook(lambda o, s, heard=calls: heard.append(sorted(s)), prepend=True)
        optimizer.register_load_state_dict_pre_hook(lambda o, s, heard=calls: heard.append(s.pop("more")))
        optimizer.register_load_state_dict_post_hook(lambda o, heard=calls: heard.append("loaded"))
        optimizer.step(closure=lambda heard=calls: heard.append("closure"))
        state = optimizer.state_dict()
        optimizer.load_state_dict(state)
        calls.append(state["more"])
        for handle in handles:
            handle.remove()
        optimizer.step()
        calls_by_library.append(calls)
    assert calls_by_library[0] == calls_by_library[1]


def test_hooks_are_called_once_for_a_step_that_calls_its_base_class():
    p, calls = leaf(2), []
    optimizer = Halving([p])
    set_gradients([p], 0)
    handle = optimizer.register_step_pre_hook(lambda o, args, kwargs: calls.append((o is optimizer, args, kwargs)))
    optimizer.step(None)
    handle.remove()
    optimizer.step()
    assert calls == [(True, (None,), {})]
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(
        DTypeError,
        match=re.escape("Halving.step: a pre hook must return None or a tuple of (new_args, new_kwargs), but"),
    ):
        optimizer.step()
    assert optimizer.steps == 2
