"""Hooks of modules observe and replace arguments, outputs and gradients."""

import pytest

import minigrad as mg
from nn_models import Block


def test_forward_hooks_see_and_replace_arguments_and_outputs_in_order():
    layer, calls = Block(4), []
    first = layer.register_forward_pre_hook(lambda m, args: (args[0] * 2.0,))
    layer.register_forward_pre_hook(lambda m, args: calls.append(args[0][0, 0].item()))
    layer.register_forward_hook(lambda m, args, output: output * 0.0)
    layer.register_forward_hook(lambda m, args, output: calls.append("first"), prepend=True)
    assert (layer(mg.ones(1, 4)) == 0.0).all()
    assert calls == [2.0, "first"]
    first.remove()
    layer(mg.ones(1, 4))
    assert calls[2:] == [1.0, "first"]


def test_hooks_with_keywords_see_and_replace_them():
    layer, calls = Block(4), []
    layer.register_forward_pre_hook(lambda m, args, kwargs: (args, {"scale": 0.0}), with_kwargs=True)
    layer.register_forward_hook(lambda m, args, kwargs, output: calls.append(kwargs), with_kwargs=True)
    x = mg.randn(1, 4)
    assert (layer(x, scale=5.0) == x).all()
    assert calls == [{"scale": 0.0}]


def run_backward_hooks(library, make):
    """Return what backward hooks of a module observe, and the input gradient after one replaces it."""
    module, calls = make(library), []
    x = library.ones(2, 3, requires_grad=True)
    module.register_full_backward_pre_hook(lambda m, outputs: (outputs[0] * 2.0,))
    module.register_full_backward_hook(
        lambda m, inputs, outputs: calls.append([None if g is None else g.tolist() for g in (*inputs, *outputs)])
    )
    handle = module.register_full_backward_hook(lambda m, inputs, outputs: (inputs[0] * 10.0,))
    module(x).sum().backward()
    handle.remove()
    module(x.detach()).sum().backward()
    return calls, x.grad.tolist()


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_backward_hooks_equal_pytorchs(torch):
    def make(library):
        layer = library.nn.Linear(3, 2)
        with library.no_grad():
            layer.weight.copy_(library.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
        return layer

    assert run_backward_hooks(mg, make) == run_backward_hooks(torch, make)
