"""Gradients between calls, learning-rate schedules, several optimizers."""

from __future__ import annotations

from functools import partial

import minigrad as mg
from adversary import Knob, Scene, scene
from adversary.optimizers import sgd, training_scene

SGD, Adam = mg.optim.SGD, mg.optim.Adam


def gradient_builder(make):
    """Return a builder: gradients accumulate, and ``make(parameter)`` returns what changes them between calls."""

    def build(world):
        return training_scene(world, sgd(), lambda o: make(o.param_groups[0]["params"][0]), before=lambda o: None)

    return build


@scene("a gradient that is None or zero at times")
@gradient_builder
def _(p):
    return Knob(lambda new: setattr(p, "grad", new and mg.full((3,), new - 1)), [None, 1.0, 2.0], undone=True)


@scene("a gradient that is written in place", harmless=False)
@gradient_builder
def _(p):
    return Knob(lambda new: p.grad.fill_(new), [0.0, 1.0, 2.0], undone=False)


@scene("a gradient that was kept from before")
@gradient_builder
def _(p):
    earlier = mg.full((3,), 2.0)
    return Knob(lambda k: setattr(p, "grad", earlier if k else None), [0, 1])


def reset_scene(name, reset, harmless=True):
    """Declare the scene of a step that resets gradients, ``reset(optimizer)``, and runs no backward pass."""

    @scene(name, harmless=harmless)
    def _(world):
        w = world.leaf(1.0, 2.0, 3.0)
        optimizer = SGD([w], lr=0.125)

        def step(x):
            reset(optimizer)
            return x * w

        def put(value):
            w.grad = value and mg.full((3,), value)

        return Scene(step, Knob(put, [None, 1.0, 2.0]), [optimizer])


def clear_gradient(optimizer):
    optimizer.param_groups[0]["params"][0].grad = None


reset_scene("zero_grad alone", lambda optimizer: optimizer.zero_grad())
reset_scene("zero_grad(set_to_none=False) alone", lambda optimizer: optimizer.zero_grad(set_to_none=False), False)
reset_scene("a gradient that the step sets to None", clear_gradient)


@scene("zero_grad at the end of the step")
def _(world):
    w = world.leaf(1.0, 2.0, 3.0)
    optimizer = SGD([w], lr=0.125)

    def step(x):
        (x * w).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    def put(value):
        w.grad = value and mg.full((3,), value)

    return Scene(step, Knob(put, [None, 1.0, 2.0]), [optimizer])


@scene("a gradient that is set in the step")
def _(world):
    w, factor = world.leaf(1.0, 2.0, 3.0), 2.0

    def step(x):
        w.grad = x.sum(0) * factor
        return w * w.grad

    def put(new):
        nonlocal factor
        factor = new

    return Scene(step, Knob(put, [2.0, 3.0]))


@scene("max_norm of clip_grad_norm_")
def _(world):
    norm = 1.0
    w = world.leaf(1.0, 2.0, 3.0)

    def step(x):
        w.grad = None
        (x * w).sum().backward()
        return mg.nn.utils.clip_grad_norm_([w], norm)

    def put(new):
        nonlocal norm
        norm = new

    return Scene(step, Knob(put, [1.0, 0.25, 100.0]))


SCHEDULES = {
    "StepLR": lambda o: mg.optim.lr_scheduler.StepLR(o, 1, 0.5),
    "CosineAnnealingLR": lambda o: mg.optim.lr_scheduler.CosineAnnealingLR(o, 5),
    "LambdaLR": lambda o: mg.optim.lr_scheduler.LambdaLR(o, lambda k: 1 / (k + 1)),
    "OneCycleLR": lambda o: mg.optim.lr_scheduler.OneCycleLR(o, 0.5, total_steps=20),
}
for _name, _make in SCHEDULES.items():

    @scene(f"{_name} between calls")
    def _(world, make=_make):
        def knobs(optimizer):
            schedule = make(optimizer)
            return Knob(lambda k: schedule.step(), [0, 1, 2], undone=False)

        return training_scene(world, sgd(momentum=0.5), knobs)


@scene("ReduceLROnPlateau between calls")
def _(world):
    def knobs(optimizer):
        schedule = mg.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.5)
        return Knob(schedule.step, [1.0, 2.0, 3.0], undone=False)

    return training_scene(world, sgd(), knobs)


@scene("a scheduler that steps in the step", refused=("StepLR", "scheduler", "lr_scheduler"), retraces=True)
def _(world):
    w = world.leaf(1.0, 2.0, 3.0)
    optimizer = SGD([w], lr=0.125)
    schedule = mg.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)

    def step(x):
        optimizer.zero_grad()
        (x * w).sum().backward()
        optimizer.step()
        schedule.step()

    return Scene(step, Knob(partial(setattr, schedule, "gamma"), [0.5, 0.25]), [optimizer, schedule])


@scene("two optimizers of one parameter")
def _(world):
    w = world.leaf(1.0, 2.0, 3.0)
    first, second = SGD([w], lr=0.125), Adam([w], lr=0.25)

    def step(x):
        for optimizer in (first, second):
            optimizer.zero_grad()
            (x * w).sum().backward()
            optimizer.step()

    knobs = [Knob(partial(one.param_groups[0].__setitem__, "lr"), [0.125, 0.5, 0.25]) for one in (first, second)]
    second.param_groups[0]["lr"] = 0.125
    return Scene(step, knobs, [first, second])
