"""Tensors, gradients, hooks, random numbers, modes, and user-defined autograd functions."""

from __future__ import annotations

from functools import partial

import numpy as np

import minigrad as mg
from adversary import Knob, Scene, scene


def hooks_of(register, hooks):
    """Return a knob that registers one of several hooks, or none."""
    handles = []

    def put(hook):
        while handles:
            handles.pop().remove()
        if hook is not None:
            handles.append(register(hook))

    return Knob(put, [None, *hooks])


def scale_by(factor):
    return lambda g: g * factor


def backward_scene(world, make, retain=False):
    """Return the scene of a backward pass into a leaf; ``make(leaf)`` returns the knob."""
    w = world.leaf(1.0, -2.0, 0.5)

    def step(x):
        w.grad = None
        y = x * w
        y.square().sum().backward()
        return w.grad

    return Scene(step, make(w))


@scene("a hook of a leaf")
def _(world):
    return backward_scene(world, lambda w: hooks_of(w.register_hook, [scale_by(0.0), scale_by(2.0), lambda g: None]))


@scene("a hook of a leaf beside another")
def _(world):
    def make(w):
        w.register_hook(lambda g: g + 1)
        return hooks_of(w.register_hook, [scale_by(0.0), scale_by(2.0)])

    return backward_scene(world, make)


@scene("a closure variable of a hook of a leaf")
def _(world):
    factor = 2.0

    def put(new):
        nonlocal factor
        factor = new

    def make(w):
        w.register_hook(lambda g: g * factor)
        return Knob(put, [2.0, 3.0])

    return backward_scene(world, make)


@scene("a hook of a parameter of a module")
def _(world):
    model = mg.nn.Sequential(mg.nn.Linear(3, 3), mg.nn.Linear(3, 2))

    def step(x):
        model.zero_grad()
        model(x).sum().backward()

    return Scene(step, hooks_of(model[0].weight.register_hook, [scale_by(0.0), scale_by(2.0)]), [model])


@scene("a hook of a parameter of an optimizer")
def _(world):
    w = world.leaf(1.0, 2.0, 3.0)
    optimizer = mg.optim.SGD([w], lr=0.125)

    def step(x):
        optimizer.zero_grad()
        (x * w).sum().backward()
        optimizer.step()

    return Scene(step, hooks_of(w.register_hook, [scale_by(0.0), scale_by(2.0)]))


@scene("a hook of a tensor that is no leaf")
def _(world):
    w, hook = world.leaf(1.0, 2.0, 3.0), scale_by(2.0)

    def step(x):
        w.grad = None
        y = x * w
        y.register_hook(hook)
        y.sum().backward()
        return w.grad

    def put(new):
        nonlocal hook
        hook = new

    return Scene(step, Knob(put, [scale_by(2.0), scale_by(3.0), lambda g: None]))


@scene("whether a tensor of the step has a hook")
def _(world):
    w, hooks = world.leaf(1.0, 2.0, 3.0), []

    def step(x):
        w.grad = None
        y = x * w
        for hook in hooks:
            y.register_hook(hook)
        y.sum().backward()
        return w.grad

    return Scene(step, Knob(lambda new: hooks.__setitem__(slice(None), new), [[], [scale_by(2.0)], [scale_by(3.0)]]))


@scene("a hook of a tensor that the step makes a leaf")
def _(world):
    factor = 2.0

    def step(x):
        c = x.detach().clone().requires_grad_()
        c.register_hook(lambda g: g * factor)
        c.square().sum().backward()
        return c.grad

    def put(new):
        nonlocal factor
        factor = new

    return Scene(step, Knob(put, [2.0, 3.0]))


@scene("a leaf that the step makes")
def _(world):
    scale = 2.0

    def step(x):
        c = x.clone().detach().requires_grad_(True)
        (c.square().sum() * scale).backward()
        return c.grad * 2

    def put(new):
        nonlocal scale
        scale = new

    return Scene(step, Knob(put, [2.0, 3.0]))


@scene("a leaf that the step makes, beside a parameter")
def _(world):
    w = world.leaf(1.0, 2.0, 3.0)
    optimizer = mg.optim.SGD([w], lr=0.125)

    def step(x):
        optimizer.zero_grad()
        c = x.clone().detach().requires_grad_(True)
        (c * w).square().sum().backward()
        optimizer.step()
        return c.grad

    return Scene(step, Knob(partial(optimizer.param_groups[0].__setitem__, "lr"), [0.125, 0.25]), [optimizer])


@scene("parameters that an inner loop makes")
def _(world):
    w, rate = world.leaf(1.0, 2.0, 3.0), 0.125

    def step(x):
        w.grad = None
        inner = w
        for _ in range(2):
            gradient = mg.autograd.grad((x * inner).square().mean(), [inner], create_graph=True)[0]
            inner = inner - rate * gradient
        (x * inner).square().mean().backward()
        return w.grad

    def put(new):
        nonlocal rate
        rate = new

    return Scene(step, Knob(put, [0.125, 0.5]))


@scene("a second derivative")
def _(world):
    w, power = world.leaf(1.0, 2.0, 3.0), 2

    def step(x):
        g = mg.autograd.grad((x * w**power).sum(), [w], create_graph=True)[0]
        return mg.autograd.grad(g.sum(), [w])[0]

    def put(new):
        nonlocal power
        power = new

    return Scene(step, Knob(put, [2, 3]))


@scene("retain_grad in the step")
def _(world):
    w, recorded = world.leaf(1.0, 2.0, 3.0), True

    def step(x):
        w.grad = None
        y = x * w
        if recorded:
            y.retain_grad()
        y.square().sum().backward()
        return y.grad

    def put(new):
        nonlocal recorded
        recorded = new

    return Scene(step, Knob(put, [True, False]))


@scene("a closure tensor that comes to require a gradient")
def _(world):
    w = world.leaf(1.0, 2.0, 3.0)
    b = mg.tensor([1.0, 2.0, 4.0])
    world.compared.append(b)

    def step(x):
        w.grad = b.grad = None
        (x * w + b).square().sum().backward()

    return Scene(step, Knob(b.requires_grad_, [False, True]))


@scene("a leaf that is replaced")
def _(world):
    w = world.leaf(1.0, 2.0, 3.0)
    leaves = [w, world.leaf(2.0, 3.0, 4.0), world.leaf(0.0, 1.0, 0.5)]

    def step(x):
        w.grad = None
        (x * w).square().sum().backward()
        return w.grad

    def put(k):
        nonlocal w
        w = leaves[k]

    return Scene(step, Knob(put, [0, 1, 2]))


@scene("a leaf whose data is assigned")
def _(world):
    def make(w):
        return Knob(lambda value: setattr(w, "data", mg.full((3,), value)), [1.0, 2.0], undone=False)

    return backward_scene(world, make)


@scene("the gradient that is added to")
def _(world):
    w = world.leaf(1.0, 2.0, 3.0)

    def step(x):
        (x * w).square().sum().backward()

    def put(value):
        w.grad = None if value is None else mg.full((3,), value)

    return Scene(step, Knob(put, [None, 0.0, 5.0], undone=False))


@scene("requires_grad of a tensor that is looked at")
def _(world):
    t = mg.tensor([1.0, 2.0, 3.0])
    return Scene(lambda x: x * (2.0 if t.requires_grad else 3.0), Knob(t.requires_grad_, [False, True]))


@scene("whether a gradient is there")
def _(world):
    t = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    put = lambda value: setattr(t, "grad", value and mg.full((3,), value))  # noqa: E731
    return Scene(lambda x: x * (2.0 if t.grad is None else 3.0), Knob(put, [None, 1.0]))


@scene("the shape of a tensor that is looked at")
def _(world):
    container = {"t": mg.ones(3)}
    tensors = [container["t"], mg.ones(5), mg.ones(2, 2)]
    return Scene(
        lambda x: x * container["t"].shape[0] + container["t"].ndim, Knob(partial(container.__setitem__, "t"), tensors)
    )


@scene("the identity of tensors")
def _(world):
    a, b = mg.tensor(1.0), mg.tensor(1.0)
    container = [a, b]
    return Scene(
        lambda x: x * (2.0 if container[0] is container[1] else 3.0), Knob(partial(container.__setitem__, 1), [b, a])
    )


@scene("an attribute that the user gives to a tensor")
def _(world):
    t = mg.nn.Parameter(mg.ones(3))
    t.label = "a"
    put = partial(setattr, t, "label")
    return Scene(lambda x: x * t * (2.0 if t.label == "a" else 3.0), Knob(put, ["a", "b"]))


@scene("a tensor of NumPy's elements that are converted in the step")
def _(world):
    array = np.arange(6.0).reshape(2, 3)
    return Scene(lambda x: x + mg.as_tensor(array).float(), Knob(array.fill, [1.0, 2.0]))


@scene("a method of Tensor that is patched")
def _(world):
    relu = mg.Tensor.relu
    put = lambda new: world.patch.setattr(mg.Tensor, "relu", new)  # noqa: E731
    return Scene(lambda x: x.relu(), Knob(put, [relu, lambda self: relu(self) * 2]))


@scene("a function of minigrad that is patched")
def _(world):
    relu = mg.relu
    put = lambda new: world.patch.setattr(mg, "relu", new)  # noqa: E731
    return Scene(lambda x: mg.relu(x), Knob(put, [relu, lambda x: relu(x) * 2]))


@scene("a function of minigrad.functional that is patched")
def _(world):
    gelu = mg.functional.gelu
    put = lambda new: world.patch.setattr(mg.functional, "gelu", new)  # noqa: E731
    return Scene(lambda x: mg.functional.gelu(x), Knob(put, [gelu, lambda x: gelu(x) * 2]))


@scene("a function of minigrad behind a layer that is patched")
def _(world):
    softmax, layer = mg.functional.softmax, mg.nn.Softmax(1)
    put = lambda new: world.patch.setattr(mg.functional, "softmax", new)  # noqa: E731
    return Scene(lambda x: layer(x), Knob(put, [softmax, lambda *args, **kwargs: softmax(*args, **kwargs) * 2]))


def custom_function():
    """Return a user-defined autograd function whose attributes may change."""

    class Scaled(mg.autograd.Function):
        factor = 2.0

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * Scaled.factor

        @staticmethod
        def backward(ctx, g):
            return g * Scaled.factor

    return Scaled


def custom_function_scene(world, make):
    """Return the scene of a step that applies such a function; ``make(function)`` returns the knob."""
    w, cls = world.leaf(1.0, 2.0, 3.0), custom_function()

    def step(x):
        w.grad = None
        y = cls.apply(x * w)
        y.sum().backward()
        return y

    return Scene(step, make(cls))


@scene("a class attribute of an autograd.Function")
def _(world):
    return custom_function_scene(world, lambda cls: Knob(partial(setattr, cls, "factor"), [2.0, 3.0]))


@scene("forward of an autograd.Function")
def _(world):
    forward = staticmethod(lambda ctx, x: x * 5)
    return custom_function_scene(
        world, lambda cls: Knob(partial(setattr, cls, "forward"), [cls.__dict__["forward"], forward])
    )


@scene("backward of an autograd.Function")
def _(world):
    other = staticmethod(lambda ctx, g: g * 5)
    return custom_function_scene(
        world, lambda cls: Knob(partial(setattr, cls, "backward"), [cls.__dict__["backward"], other])
    )


@scene("a kernel of the user's")
def _(world):
    from minigrad.core.dispatch import get_kernels

    before = dict(get_kernels("sinh"))
    device = mg.get_default_device()
    world.cleanups.append(lambda: mg.kernel("sinh", device)(before[device]))
    versions = [before[device], lambda a: a * 0 + 5]
    return Scene(lambda x: x.sinh(), Knob(lambda new: mg.kernel("sinh", device)(new), versions))


@scene("a graph of Values in the step")
def _(world):
    v = mg.Value(2.0)

    def step(x):
        v.grad = None
        y = v * v + 1
        y.backward()
        return x * y.data + v.grad

    return Scene(step, Knob(partial(setattr, v, "data"), [2.0, 3.0]))


@scene("a dataset that is indexed")
def _(world):
    rows = [mg.tensor([1.0, 2.0, 3.0]), mg.tensor([4.0, 5.0, 6.0])]
    index = 0

    def step(x):
        return x * rows[index]

    def put(new):
        nonlocal index
        index = new

    return Scene(step, Knob(put, [0, 1]))


@scene("the tensors of a TensorDataset")
def _(world):
    data = mg.data.TensorDataset(mg.arange(6.0).view(2, 3))
    tensors = [data.tensors, (mg.ones(2, 3),)]
    return Scene(lambda x: x * data[1][0], Knob(partial(setattr, data, "tensors"), tensors))
