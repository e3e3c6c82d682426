"""Uses of `mg.jit`: methods, modules, optimizers, several jitted functions of one state."""

from __future__ import annotations

import types
from functools import partial

import minigrad as mg
from adversary import Knob, Scene, scene


def trainer(world):
    """Return a class of the user's with a jitted method."""

    class Trainer:
        def __init__(self, scale):
            self.scale = scale

        @world.jit
        def step(self, x):
            return x * self.scale

    return Trainer


@scene("a recorded method and an attribute of its object")
def _(world):
    one = trainer(world)(2.0)
    return Scene(lambda x: one.step(x), Knob(partial(setattr, one, "scale"), [2.0, 3.0]), jitted=True)


@scene("a recorded method of two objects")
def _(world):
    cls = trainer(world)
    one, other = cls(2.0), cls(5.0)
    knobs = [Knob(partial(setattr, one, "scale"), [2.0, 3.0]), Knob(partial(setattr, other, "scale"), [5.0, 7.0])]
    return Scene(lambda x: (one.step(x), other.step(x)), knobs, jitted=True)


@scene("a recorded method and a tensor of its object")
def _(world):
    one = trainer(world)(mg.tensor(2.0))
    put = partial(setattr, one, "scale")
    return Scene(lambda x: one.step(x), Knob(put, [one.scale, mg.tensor(3.0)]), jitted=True)


@scene("a recorded method and its class")
def _(world):
    cls = trainer(world)
    one = cls(2.0)
    derived = type("Derived", (cls,), {"scale": property(lambda self: 3.0)})
    return Scene(lambda x: one.step(x), Knob(partial(setattr, one, "__class__"), [cls, derived]), jitted=True)


@scene("a module that is recorded itself")
def _(world):
    model = mg.nn.Sequential(mg.nn.Linear(3, 3), mg.nn.LeakyReLU(0.5))
    put = partial(setattr, model[1], "negative_slope")
    return Scene(world.jit(model), Knob(put, [0.5, 0.25]), [model], jitted=True)


@scene("forward that is recorded")
def _(world):
    model = mg.nn.Sequential(mg.nn.Linear(3, 3), mg.nn.LeakyReLU(0.5))
    model.forward = world.jit(model.forward)
    put = partial(setattr, model[1], "negative_slope")
    return Scene(lambda x: model(x), Knob(put, [0.5, 0.25]), jitted=True)


@scene("an optimizer's step that is recorded", retraces=True)
def _(world):
    w = world.leaf(1.0, 2.0, 3.0)
    optimizer = mg.optim.SGD([w], lr=0.125)
    update = world.jit(optimizer.step)

    def step(x):
        optimizer.zero_grad()
        (x * w).sum().backward()
        update()

    return Scene(
        step, Knob(partial(optimizer.param_groups[0].__setitem__, "lr"), [0.125, 0.5]), [optimizer], jitted=True
    )


@scene("two recorded functions that write one tensor")
def _(world):
    total, scale = mg.zeros(3), types.SimpleNamespace(by=2.0)

    def add(x):
        total.add_(x.sum(0) * scale.by)

    first, second = world.jit(add), world.jit(lambda: total.mul_(0.5) * scale.by)
    step = lambda x: (first(x), second())[1]  # noqa: E731
    return Scene(step, Knob(partial(setattr, scale, "by"), [2.0, 3.0]), [total], jitted=True)


@scene("a plain function that writes what a recorded one reads")
def _(world):
    outer = mg.ones(3)
    read = world.jit(lambda x: x * outer)

    def step(x):
        outer.add_(1)
        return read(x)

    return Scene(step, Knob(outer.fill_, [1.0, 2.0]), [outer], jitted=True)


@scene("a recorded function in a function that changes a variable", retraces=True)
def _(world):
    scale = 2.0
    inner = world.jit(lambda x: x * scale)

    def step(x):
        nonlocal scale
        first = inner(x)
        scale += 1
        second = inner(x)
        scale -= 1
        return first, second

    def put(new):
        nonlocal scale
        scale = new

    return Scene(step, Knob(put, [2.0, 5.0]), jitted=True)


@scene("a recorded function behind mg.no_grad")
def _(world):
    scale = 2.0
    inner = world.jit(lambda x: x * scale)

    def put(new):
        nonlocal scale
        scale = new

    return Scene(mg.no_grad()(inner), Knob(put, [2.0, 3.0]), jitted=True)


@scene("a recorded function of which there are two")
def _(world):
    scale = 2.0

    def plain(x):
        return x * scale

    first, second = world.jit(plain), world.jit(plain)

    def put(new):
        nonlocal scale
        scale = new

    return Scene(lambda x: (first(x), second(x)), Knob(put, [2.0, 3.0]), jitted=True)


@scene("gradients between recorded functions", retraces=True)
def _(world):
    w = world.leaf(1.0, 2.0, 3.0)
    optimizer = mg.optim.SGD([w], lr=0.125)
    power = 1

    def backward(x):
        ((x * w).sum() ** power).backward()

    first, second, third = world.jit(optimizer.zero_grad), world.jit(backward), world.jit(optimizer.step)

    def put(new):
        nonlocal power
        power = new

    step = lambda x: (first(), second(x), third())[0]  # noqa: E731
    return Scene(step, Knob(put, [1, 2]), [optimizer], jitted=True)
