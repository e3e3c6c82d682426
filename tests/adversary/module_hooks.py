"""Hooks of modules: registered, removed and changed, in the forward and in the backward pass."""

from __future__ import annotations

from functools import partial

import minigrad as mg
from adversary import Knob, Scene, scene

nn = mg.nn


def hook_scene(register, hooks, backward=False, model=None):
    """Return the scene of a step with a model whose hook is one of several; None means no hook."""
    model = model or nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    handles = []

    def put(hook):
        while handles:
            handles.pop().remove()
        if hook is not None:
            handles.append(register(model[0], hook))

    def step(x):
        model.zero_grad()
        y = model(x)
        if backward:
            y.sum().backward()
        return y

    return Scene(step, Knob(put, [None, *hooks]), [model])


def scale_output(factor):
    return lambda module, args, output: output * factor


def scale_input(factor):
    return lambda module, args: args[0] * factor


def scale_gradients(factor):
    return lambda module, inputs, outputs: tuple([None if g is None else g * factor for g in inputs])


@scene("a forward hook")
def _(world):
    return hook_scene(nn.Module.register_forward_hook, [scale_output(2.0), scale_output(3.0)])


@scene("a forward hook that changes nothing")
def _(world):
    return hook_scene(nn.Module.register_forward_hook, [lambda module, args, output: None, scale_output(3.0)])


@scene("a forward hook with keyword arguments")
def _(world):
    register = partial(nn.Module.register_forward_hook, with_kwargs=True)
    return hook_scene(register, [lambda module, args, kwargs, output: output * 2.0])


@scene("a forward pre-hook")
def _(world):
    return hook_scene(nn.Module.register_forward_pre_hook, [scale_input(2.0), scale_input(3.0)])


@scene("a full backward hook")
def _(world):
    return hook_scene(
        nn.Module.register_full_backward_hook, [scale_gradients(2.0), scale_gradients(3.0)], backward=True
    )


@scene("a full backward hook of a middle layer")
def _(world):
    model = nn.Sequential(nn.Tanh(), nn.Linear(3, 2))
    return hook_scene(lambda _, hook: model[1].register_full_backward_hook(hook), [scale_gradients(2.0)], True, model)


@scene("a full backward pre-hook")
def _(world):
    double = lambda module, outputs: tuple([g * 2 for g in outputs])  # noqa: E731
    return hook_scene(nn.Module.register_full_backward_pre_hook, [double], backward=True)


@scene("two forward hooks and their order")
def _(world):
    model = nn.Linear(3, 2)
    handles = []

    def put(hooks):
        while handles:
            handles.pop().remove()
        handles.extend([model.register_forward_hook(hook) for hook in hooks])

    add, double = (lambda module, args, output: output + 1), scale_output(2.0)
    return Scene(lambda x: model(x), Knob(put, [[], [add, double], [double, add], [add]]), [model])


@scene("a hook that is put before others")
def _(world):
    model, handles = nn.Linear(3, 2), []
    model.register_forward_hook(scale_output(2.0))

    def put(prepend):
        while handles:
            handles.pop().remove()
        handles.append(model.register_forward_hook(lambda m, args, output: output + 1, prepend=prepend))

    put(False)
    return Scene(lambda x: model(x), Knob(put, [False, True]), [model])


@scene("a closure variable of a forward hook")
def _(world):
    factor = 2.0
    model = nn.Linear(3, 2)
    model.register_forward_hook(lambda module, args, output: output * factor)

    def put(new):
        nonlocal factor
        factor = new

    return Scene(lambda x: model(x), Knob(put, [2.0, 3.0]))


@scene("a closure variable of a backward hook")
def _(world):
    factor = 2.0
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    model[1].register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * factor,))

    def put(new):
        nonlocal factor
        factor = new

    def step(x):
        model.zero_grad()
        model(x).sum().backward()

    return Scene(step, Knob(put, [2.0, 3.0]), [model])


@scene("a hook of a part that comes from elsewhere")
def _(world):
    layer, handles = nn.Linear(3, 2), []
    layers = [layer]

    def put(hook):
        while handles:
            handles.pop().remove()
        if hook:
            handles.append(layer.register_forward_hook(hook))

    return Scene(lambda x: layers[0](x), Knob(put, [None, scale_output(2.0)]))


@scene("a hook that records what passes", refused=("shapes", "list"), retraces=True)
def _(world):
    shapes, model, scale = [], nn.Linear(3, 2), 2.0
    model.register_forward_hook(lambda module, args, output: shapes.append(output.shape))

    def put(new):
        nonlocal scale
        scale = new

    return Scene(lambda x: model(x) * scale, Knob(put, [2.0, 3.0]), [shapes])
