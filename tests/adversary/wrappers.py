"""Wrappers: layers between `mg.jit` and the function that does the work."""

from __future__ import annotations

import contextlib
import functools

import minigrad as mg
from adversary import wrapper


def wrapping(function):
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapped


def hiding(function):
    def hidden(*args):
        return function(*args)

    return hidden


class Decorator:
    def __init__(self, function):
        self.function = function

    def __call__(self, x):
        return self.function(x)


class Slotted:
    __slots__ = ("function",)

    def __init__(self, function):
        self.function = function

    def __call__(self, x):
        return self.function(x)


@contextlib.contextmanager
def block():
    yield


@contextlib.contextmanager
def nothing_recorded():
    with mg.no_grad():
        yield


WRAPPERS = {
    "a helper": lambda step: lambda x: step(x),
    "a helper of a helper": lambda step: (lambda inner: lambda x: inner(x))(lambda x: step(x)),
    "mg.no_grad()": lambda step: mg.no_grad()(step),
    "mg.enable_grad()": lambda step: mg.enable_grad()(step),
    "mg.inference_mode()": lambda step: mg.inference_mode()(step),
    "mg.scope": lambda step: mg.scope("part")(step),
    "two decorators": lambda step: mg.enable_grad()(wrapping(step)),
    "functools.wraps": wrapping,
    "a decorator without functools.wraps": hiding,
    "a decorator that is a class": Decorator,
    "a callable object with slots": Slotted,
    "functools.partial": functools.partial,
    "functools.partial with an argument": lambda step: functools.partial(lambda function, x: function(x), step),
    "functools.partial of a partial": lambda step: functools.partial(functools.partial(wrapping(step))),
    "a lambda in a list": lambda step: (lambda held: lambda x: held[0](x))([step]),
    "contextlib.contextmanager as a decorator": lambda step: block()(step),
    "a with block of the user's": lambda step: nothing_recorded()(step),
    "mg.jit": lambda step: mg.jit(step),
    "map": lambda step: lambda x: [*map(step, [x])],
    "a generator": lambda step: lambda x: [*(step(y) for y in [x])],
    "a comprehension": lambda step: lambda x: {k: step(y) for k, y in enumerate([x])},
    "star arguments": lambda step: lambda *args, **kwargs: step(*args, **kwargs),
}
for _name, _wrap in WRAPPERS.items():
    wrapper(_name)(lambda world, step, _wrap=_wrap: _wrap(step))


def in_class(name, choose):
    """Declare a wrapper: a function of a class, from which ``choose(class)`` selects the callable."""

    @wrapper(name)
    def _(world, step):
        class Trainer:
            def method(self, x):
                return step(x)

            @staticmethod
            def fixed(x):
                return step(x)

            @classmethod
            def owned(cls, x):
                return step(x)

            @property
            def ready(self):
                return lambda x: step(x)

            def __call__(self, x):
                return step(x)

            def general(self, flag, x):
                return step(x) if flag else x

            special = functools.partialmethod(general, True)
            attribute = step

            def calls(self, x):
                return self.method(x)

        return choose(Trainer)


in_class("a bound method", lambda cls: cls().method)
in_class("a bound method that calls another", lambda cls: cls().calls)
in_class("a static method", lambda cls: cls.fixed)
in_class("a class method", lambda cls: cls.owned)
in_class("a property", lambda cls: cls().ready)
in_class("a callable object", lambda cls: cls())
in_class("functools.partialmethod", lambda cls: cls().special)


@wrapper("a module")
def _(world, step):
    class Net(mg.nn.Module):
        def forward(self, x):
            return step(x)

    return Net()


@wrapper("a module in a module")
def _(world, step):
    class Inner(mg.nn.Module):
        def forward(self, x):
            return step(x)

    class Outer(mg.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x)

    model = Outer()
    return lambda x: model(x)


@wrapper("the closure of an optimizer's step")
def _(world, step):
    w = world.leaf(1.0, 2.0, 3.0)
    optimizer = mg.optim.SGD([w], lr=0.5)
    world.watched.append(optimizer)
    found = []

    def run(x):
        def closure():
            optimizer.zero_grad()
            found[:] = [step(x)]
            (w * 2.0).sum().backward()
            return w.sum()

        optimizer.step(closure)
        return found.pop()

    return run
