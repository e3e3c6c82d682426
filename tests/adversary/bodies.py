"""Bodies: what a step computes with the value that it reaches."""

from __future__ import annotations

import collections

import minigrad as mg
from adversary import body


def tensors_in(x):
    """Yield the tensors in the result of a formula."""
    if isinstance(x, mg.Tensor):
        yield x
    elif isinstance(x, dict):
        for one in x.values():
            yield from tensors_in(one)
    elif isinstance(x, list | tuple):
        for one in x:
            yield from tensors_in(one)


def loss_of(x):
    return sum([one.double().sum() for one in tensors_in(x)])


@body("a formula")
def _(world, use):
    return use


@body("a formula after another")
def _(world, use):
    return lambda x, value: (use(x, value), use(x.tanh() + 1, value))


@body("nested results")
def _(world, use):
    Pair = collections.namedtuple("Pair", "first second")
    return lambda x, value: {"a": [use(x, value), (None, 3, "text")], "b": Pair(x + 1, {"inner": use(-x, value)})}


@body("a backward pass whose gradient is returned")
def _(world, use):
    w = world.leaf(1.0, -2.0, 0.5)

    def run(x, value):
        w.grad = None
        loss = loss_of(use(x * w, value)) + (w * 3.0).double().sum()
        if loss.requires_grad:
            loss.backward()
        return w.grad

    return run


@body("a backward pass that adds up")
def _(world, use):
    w = world.leaf(1.0, -2.0, 0.5)

    def run(x, value):
        loss = loss_of(use(x * w, value)) + (w * 3.0).double().sum()
        if loss.requires_grad:
            loss.backward()
        return loss.detach()

    return run


def training_body(name, make):
    """Declare a body that is a training step with the optimizer that ``make(parameters)`` returns."""

    @body(name)
    def _(world, use):
        w = world.leaf(1.0, -2.0, 0.5)
        optimizer = make([w])
        world.compared.append(optimizer)

        def run(x, value):
            optimizer.zero_grad()
            loss = loss_of(use(x * w, value)) * 1e-2 + (w * 3.0).double().sum()
            if loss.requires_grad:
                loss.backward()
            optimizer.step()
            return loss.detach()

        return run


training_body("a step of SGD", lambda p: mg.optim.SGD(p, lr=0.25, momentum=0.5))
training_body("a step of Adam", lambda p: mg.optim.Adam(p, lr=0.1))


@body("mg.autograd.grad")
def _(world, use):
    w = world.leaf(1.0, -2.0, 0.5)

    def run(x, value):
        loss = loss_of(use(x * w, value)) + (w * 3.0).double().sum()
        return mg.autograd.grad(loss, [w])[0] if loss.requires_grad else loss

    return run


@body("a value that stays")
def _(world, use):
    total = mg.zeros(())
    world.compared.append(total)

    def run(x, value):
        with mg.no_grad():
            total.mul_(0.5).add_(loss_of(use(x, value)).detach().float())
        return total * 2

    return run


@body("a random draw beside it")
def _(world, use):
    return lambda x, value: (use(x, value), mg.rand(3) + 1)
