"""Optimizers: options, groups, states, hooks, gradients, and schedules between calls."""

from __future__ import annotations

import copy
import fractions
from functools import partial

import numpy as np

import minigrad as mg
from adversary import Knob, Scene, scene

SGD, Adam = mg.optim.SGD, mg.optim.Adam


def training_scene(world, make, knobs, before=None):
    """Return the scene of training steps with the optimizer that ``make(parameters)`` returns.

    ``knobs(optimizer)`` returns the knobs; the step calls ``before(optimizer)`` instead of `zero_grad`.
    """
    w, b = world.leaf(1.0, -2.0, 0.5), world.leaf(0.25, 2.0, 1.0)
    optimizer = make([w, b])

    def step(x):
        (before or mg.optim.Optimizer.zero_grad)(optimizer)
        loss = (x * w + b).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    created_knobs = knobs(optimizer)
    return Scene(step, created_knobs, [optimizer])


def option_builder(name, values, make, group=0):
    """Return a builder: an option of a group takes several values."""

    def build(world):
        return training_scene(world, make, lambda o: Knob(partial(o.param_groups[group].__setitem__, name), values))

    return build


def sgd(**options):
    return lambda p: SGD(p, **({"lr": 0.125} | options))


def adam(**options):
    return lambda p: Adam(p, **({"lr": 0.125} | options))


OPTIONS = {
    "lr of SGD, a float": ("lr", [0.125, 0.25, 0.0], sgd(), True),
    "lr of Adam, a float": ("lr", [0.125, 0.25], adam(), True),
    "lr that is an int": ("lr", [0.125, 1], sgd(), True),
    "lr that is a NumPy float64": ("lr", [0.125, np.float64(0.25), np.float64(0.5)], sgd(), False),
    "lr that is a NumPy float32": ("lr", [np.float32(0.125), np.float32(0.25)], sgd(lr=np.float64(0.125)), False),
    "lr that is a Fraction": ("lr", [0.125, fractions.Fraction(1, 4)], sgd(), False),
    "betas of Adam": ("betas", [(0.9, 0.999), (0.5, 0.9)], adam(), True),
    "eps of Adam": ("eps", [1e-8, 0.5], adam(), True),
    "weight_decay of SGD": ("weight_decay", [0.0, 0.25], sgd(), False),
    "weight_decay of Adam": ("weight_decay", [0.0, 0.25], adam(), False),
    "momentum of SGD": ("momentum", [0.5, 0.25, 0.0], sgd(momentum=0.5), False),
    "dampening of SGD": ("dampening", [0.0, 0.5], sgd(momentum=0.5), False),
    "nesterov of SGD": ("nesterov", [False, True], sgd(momentum=0.5), False),
    "maximize of SGD": ("maximize", [False, True], sgd(), False),
    "maximize of Adam": ("maximize", [False, True], adam(), False),
    "amsgrad of Adam": ("amsgrad", [False, True], adam(), False),
    "lr of the second of two groups": ("lr", [0.125, 0.5], lambda p: SGD([{"params": [x]} for x in p], lr=0.125), True),
    "alpha of RMSprop": ("alpha", [0.99, 0.5], lambda p: mg.optim.RMSprop(p, lr=0.125), True),
    "centered of RMSprop": ("centered", [False, True], lambda p: mg.optim.RMSprop(p, lr=0.125), False),
    "betas of Lion": ("betas", [(0.9, 0.99), (0.5, 0.9)], lambda p: mg.optim.Lion(p, lr=0.125), True),
    "lr_decay of Adagrad": ("lr_decay", [0.0, 0.5], lambda p: mg.optim.Adagrad(p, lr=0.125), True),
}
for _name, (_option, _values, _make, _symbolic) in OPTIONS.items():
    scene(_name, symbolic=_symbolic)(option_builder(_option, _values, _make))


@scene("lr that is a tensor, replaced", symbolic=False)
def _(world):
    rates = [mg.tensor(0.125), mg.tensor(0.25)]
    return training_scene(world, sgd(lr=rates[0]), lambda o: Knob(partial(o.param_groups[0].__setitem__, "lr"), rates))


@scene("lr that is a tensor, written in place", symbolic=True)
def _(world):
    rate = mg.tensor(0.125)
    return training_scene(world, sgd(lr=rate), lambda o: Knob(rate.fill_, [0.125, 0.25]))


@scene("lr that becomes a tensor")
def _(world):
    return training_scene(
        world, sgd(), lambda o: Knob(partial(o.param_groups[0].__setitem__, "lr"), [0.125, mg.tensor(0.5)])
    )


@scene("betas that are tensors")
def _(world):
    betas = [(mg.tensor(0.5), mg.tensor(0.75)), (mg.tensor(0.25), mg.tensor(0.5)), (0.5, 0.75)]
    return training_scene(
        world, adam(), lambda o: Knob(partial(o.param_groups[0].__setitem__, "betas"), [(0.9, 0.999), *betas])
    )


@scene("a group that is replaced")
def _(world):
    def knobs(o):
        groups = [o.param_groups[0], {**o.param_groups[0], "lr": 0.5}]
        return Knob(partial(o.param_groups.__setitem__, 0), groups)

    return training_scene(world, sgd(), knobs)


@scene("param_groups that is assigned")
def _(world):
    def knobs(o):
        groups = [o.param_groups, [{**o.param_groups[0], "lr": 0.5}]]
        return Knob(partial(setattr, o, "param_groups"), groups)

    return training_scene(world, sgd(), knobs)


@scene("a group that is added")
def _(world):
    def knobs(o):
        extra = [mg.tensor([1.0], requires_grad=True), mg.tensor([2.0], requires_grad=True)]
        for p in extra:
            p.grad = mg.ones(1)
        world.compared.extend(extra)
        return Knob(lambda k: o.add_param_group({"params": [extra.pop()]}) if extra else None, [0, 1, 2], undone=False)

    return training_scene(
        world,
        sgd(momentum=0.5),
        knobs,
        before=lambda o: [p.requires_grad_() for g in o.param_groups for p in g["params"]] and None,
    )


@scene("a group that is removed and comes back")
def _(world):
    def knobs(o):
        groups = list(o.param_groups)
        return Knob(lambda count: o.param_groups.__setitem__(slice(None), groups[:count]), [2, 1, 0])

    return training_scene(world, lambda p: SGD([{"params": [x]} for x in p], lr=0.125), knobs)


@scene("the order of groups")
def _(world):
    def knobs(o):
        return Knob(lambda k: o.param_groups.reverse(), [0, 1])

    return training_scene(
        world,
        lambda p: SGD([{"params": [x], "lr": 0.125 * (k + 1)} for k, x in enumerate(p)], lr=0.1),
        knobs,
    )


def parameter_list_builder(make):
    """Return a builder: the list of parameters of a group changes as ``make(optimizer, others)`` determines."""

    def build(world):
        other = world.leaf(3.0, 4.0, 5.0)
        other.grad = mg.ones(3)
        return training_scene(world, sgd(momentum=0.5), lambda o: make(o.param_groups[0], other), before=reset)

    def reset(optimizer):
        for p in optimizer.param_groups[0]["params"]:
            p.grad = mg.ones(3)

    return build


@scene("a parameter of a group that is replaced")
@parameter_list_builder
def _(group, other):
    return Knob(partial(group["params"].__setitem__, 0), [group["params"][0], other])


@scene("a parameter that is added to a group")
@parameter_list_builder
def _(group, other):
    first = list(group["params"])
    return Knob(lambda added: group["params"].__setitem__(slice(None), [*first, *added]), [[], [other]])


@scene("a parameter that is taken from a group")
@parameter_list_builder
def _(group, other):
    first = list(group["params"])
    return Knob(lambda count: group["params"].__setitem__(slice(None), first[:count]), [2, 1, 0])


@scene("the list of parameters that is assigned")
@parameter_list_builder
def _(group, other):
    first = group["params"]
    return Knob(partial(group.__setitem__, "params"), [first, [other], first[1:]])


@scene("the order of the parameters in a group")
@parameter_list_builder
def _(group, other):
    return Knob(lambda k: group["params"].reverse(), [0, 1])


STATES = {
    "a state that is cleared": lambda o: o.state.clear(),
    "a memory that is written in place": lambda o: [state["exp_avg"].zero_() for state in o.state.values()],
    "a memory that is replaced": lambda o: [state.update(exp_avg=mg.zeros(3)) for state in o.state.values()],
    "a memory that is deleted": lambda o: o.state.pop(o.param_groups[0]["params"][0], None),
    "the count of steps that is set": lambda o: [state.update(step=10) for state in o.state.values()],
    "a state that is assigned": lambda o: setattr(o, "state", copy.copy(o.state)) or o.state.clear(),
    "a state that is loaded": lambda o: o.load_state_dict(modified_state(o)),
    "a state that is loaded with another lr": lambda o: o.load_state_dict(modified_state(o, lr=0.5)),
    "__setstate__": lambda o: o.__setstate__({"state": copy.copy(o.state)}) or o.state.clear(),
}


def modified_state(optimizer, **options):
    state = copy.deepcopy(optimizer.state_dict())
    state["param_groups"][0].update(options)
    for buffers in state["state"].values():
        buffers["exp_avg"].mul_(2)
    return state


for _name, _change in STATES.items():

    @scene(_name)
    def _(world, change=_change):
        def put(optimizer, k):
            change(optimizer)

        return training_scene(world, adam(), lambda o: Knob(partial(put, o), [0, 1, 2], undone=False))


def hook_knob(register, hooks):
    """Return a knob that registers one of several hooks, or none."""
    handles = []

    def put(hook):
        while handles:
            handles.pop().remove()
        if hook is not None:
            handles.append(register(hook))

    return Knob(put, [None, *hooks])


def scale_parameters(factor):
    def hook(optimizer, args, kwargs):
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad.mul_(factor)

    return hook


def decay_parameters(optimizer, args, kwargs):
    with mg.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.mul_(0.5)


@scene("a hook before the optimizer's step")
def _(world):
    return training_scene(
        world, sgd(), lambda o: hook_knob(o.register_step_pre_hook, [scale_parameters(2.0), scale_parameters(4.0)])
    )


@scene("a hook after the optimizer's step")
def _(world):
    return training_scene(world, sgd(), lambda o: hook_knob(o.register_step_post_hook, [decay_parameters]))


def global_hook_scene(world, register, hooks):
    """Return a scene with a hook of all optimizers, which is removed at the end of the case."""
    knob = []

    def knobs(optimizer):
        knob.append(hook_knob(register, hooks))
        return knob[0]

    created_scene = training_scene(world, sgd(), knobs)
    world.cleanups.append(lambda: knob[0].put(None))
    return created_scene


@scene("a hook before the step of every optimizer")
def _(world):
    return global_hook_scene(
        world, mg.optim.optimizer.register_optimizer_step_pre_hook, [scale_parameters(2.0), scale_parameters(4.0)]
    )


@scene("a hook after the step of every optimizer")
def _(world):
    return global_hook_scene(world, mg.optim.optimizer.register_optimizer_step_post_hook, [decay_parameters])


@scene("a closure variable of an optimizer's hook")
def _(world):
    factor = 2.0

    def put(new):
        nonlocal factor
        factor = new

    def knobs(optimizer):
        optimizer.register_step_pre_hook(
            lambda o, args, kwargs: [p.grad.mul_(factor) for p in o.param_groups[0]["params"]] and None
        )
        return Knob(put, [2.0, 4.0])

    return training_scene(world, sgd(), knobs)


@scene("an optimizer that is rebound")
def _(world):
    w = world.leaf(1.0, 2.0, 3.0)
    optimizers = [SGD([w], lr=0.125), SGD([w], lr=0.5), Adam([w], lr=0.125)]
    optimizer = optimizers[0]

    def step(x):
        optimizer.zero_grad()
        (x * w).sum().backward()
        optimizer.step()

    def put(k):
        nonlocal optimizer
        optimizer = optimizers[k]

    return Scene(step, Knob(put, [0, 1, 2]), optimizers)


@scene("an optimizer in a dict")
def _(world):
    w = world.leaf(1.0, 2.0, 3.0)
    optimizers = [SGD([w], lr=0.125), SGD([w], lr=0.5)]
    current = {"now": optimizers[0]}

    def step(x):
        current["now"].zero_grad()
        (x * w).sum().backward()
        current["now"].step()

    return Scene(step, Knob(lambda k: current.update(now=optimizers[k]), [0, 1]), optimizers)


class ScaledOptimizer(mg.optim.Optimizer):
    """A custom optimizer with options of several types, and an attribute."""

    factor = 1.0

    def update(self, p, grad, state, group):
        p.sub_(grad * (group["lr"] * self.factor))
        if group["how"] == "decay":
            p.mul_(0.5)
        for value in group["more"]:
            p.add_(value)


def scaled_optimizer(**options):
    return lambda p: ScaledOptimizer(p, {"lr": 0.125, "how": "plain", "more": []} | options)


for _name, _option, _values in (
    ("lr of an optimizer of the user's", "lr", [0.125, 0.25]),
    ("a str option of an optimizer", "how", ["plain", "decay"]),
    ("a list option of an optimizer, replaced", "more", [[], [1.0], [2.0]]),
):
    scene(_name)(option_builder(_option, _values, scaled_optimizer()))


@scene("a list option of an optimizer, edited")
def _(world):
    extra = []
    return training_scene(
        world,
        scaled_optimizer(more=extra),
        lambda o: Knob(lambda new: extra.__setitem__(slice(None), new), [[], [1.0]]),
    )


@scene("an attribute of an optimizer of the user's")
def _(world):
    return training_scene(world, scaled_optimizer(), lambda o: Knob(partial(setattr, o, "factor"), [1.0, 2.0]))


@scene("a class attribute of an optimizer of the user's")
def _(world):
    cls = type("Own", (ScaledOptimizer,), {"factor": 1.0})
    make = lambda p: cls(p, {"lr": 0.125, "how": "plain", "more": []})  # noqa: E731
    return training_scene(world, make, lambda o: Knob(partial(setattr, cls, "factor"), [1.0, 2.0]))


@scene("update of an optimizer that is patched")
def _(world):
    cls = type("Own", (ScaledOptimizer,), {})
    make = lambda p: cls(p, {"lr": 0.125, "how": "plain", "more": []})  # noqa: E731

    def other(self, p, grad, state, group):
        p.sub_(grad)

    return training_scene(world, make, lambda o: Knob(partial(setattr, cls, "update"), [ScaledOptimizer.update, other]))


@scene("step of an optimizer that is patched")
def _(world):
    def knobs(o):
        step = o.step
        versions = [step, lambda: (step(), step())[1]]
        return Knob(partial(setattr, o, "step"), versions)

    return training_scene(world, sgd(), knobs)


@scene("defaults of an optimizer and a group in the step", retraces=True)
def _(world):
    w = world.leaf(1.0, 2.0, 3.0)
    options = {"lr": 0.125}

    def step(x):
        optimizer = SGD([w], **options)
        optimizer.zero_grad()
        (x * w).sum().backward()
        optimizer.step()

    return Scene(step, Knob(partial(options.__setitem__, "lr"), [0.125, 0.5]))
