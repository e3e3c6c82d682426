"""Wrappers: layers between `mg.jit` and the function that does the work."""

from __future__ import annotations

import contextlib
import functools

import minigrad as mg
from adversary import wrapper


def wrap(function):
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapped


def wrap_without_metadata(function):
    def hidden(*args):
        return function(*args)

    return hidden


class Decorator:
    def __init__(self, function):
        self.function = function

    def __call__(self, x):
        return self.function(x)


class SlottedCallable:
    __slots__ = ("function",)

    def __init__(self, function):
        self.function = function

    def __call__(self, x):
        return self.function(x)


@contextlib.contextmanager
def block():
    yield


@contextlib.contextmanager
def no_grad_block():
    with mg.no_grad():
        yield


WRAPPERS = {
    "a helper": lambda step: lambda x: step(x),
    "a helper of a helper": lambda step: (lambda inner: lambda x: inner(x))(lambda x: step(x)),
    "mg.no_grad()": lambda step: mg.no_grad()(step),
    "mg.enable_grad()": lambda step: mg.enable_grad()(step),
    "mg.inference_mode()": lambda step: mg.inference_mode()(step),
    "mg.scope": lambda step: mg.scope("part")(step),
    "two decorators": lambda step: mg.enable_grad()(wrap(step)),
    "functools.wraps": wrap,
    "a decorator without functools.wraps": wrap_without_metadata,
    "a decorator that is a class": Decorator,
    "a callable object with slots": SlottedCallable,
    "functools.partial": functools.partial,
    "functools.partial with an argument": lambda step: functools.partial(lambda function, x: function(x), step),
    "functools.partial of a partial": lambda step: functools.partial(functools.partial(wrap(step))),
    "a lambda in a list": lambda step: (lambda steps: lambda x: steps[0](x))([step]),
    "contextlib.contextmanager as a decorator": lambda step: block()(step),
    "a with block of the user's": lambda step: no_grad_block()(step),
    "mg.jit": lambda step: mg.jit(step),
    "map": lambda step: lambda x: [*map(step, [x])],
    "a generator": lambda step: lambda x: [*(step(y) for y in [x])],
    "a comprehension": lambda step: lambda x: {k: step(y) for k, y in enumerate([x])},
    "star arguments": lambda step: lambda *args, **kwargs: step(*args, **kwargs),
}
for _name, _wrap in WRAPPERS.items():
    wrapper(_name)(lambda world, step, _wrap=_wrap: _wrap(step))


def class_wrapper(name, choose):
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


class_wrapper("a bound method", lambda cls: cls().method)
class_wrapper("a bound method that calls another", lambda cls: cls().calls)
class_wrapper("a static method", lambda cls: cls.fixed)
class_wrapper("a class method", lambda cls: cls.owned)
class_wrapper("a property", lambda cls: cls().ready)
class_wrapper("a callable object", lambda cls: cls())
class_wrapper("functools.partialmethod", lambda cls: cls().special)


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
    world.compared.append(optimizer)
    results = []

    def run(x):
        def closure():
            optimizer.zero_grad()
            results[:] = [step(x)]
            (w * 2.0).sum().backward()
            return w.sum()

        optimizer.step(closure)
        return results.pop()

    return run
