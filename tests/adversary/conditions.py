"""Conditions of a step: whether a name exists, the type or identity of an object, exceptions."""

from __future__ import annotations

import types
import weakref
from functools import partial

from adversary import Knob, Scene, scene


@scene("a value that is raised for", raises=True)
def _(world):
    limit = 1.0

    def step(x):
        if limit > 1:
            raise ValueError(f"the limit is {limit}")
        return x * limit

    def put(new):
        nonlocal limit
        limit = new

    return Scene(step, Knob(put, [1.0, 2.0, 0.5]))


@scene("assert on what is reached", raises=True)
def _(world):
    config = types.SimpleNamespace(ready=True)

    def step(x):
        assert config.ready, "not ready"
        return x * 2

    return Scene(step, Knob(partial(setattr, config, "ready"), [True, False]))


@scene("an exception that is caught in the step")
def _(world):
    table = {"a": 2.0}

    def step(x):
        try:
            return x * table["b"]
        except KeyError:
            return x * table["a"]

    def put(items):
        table.clear()
        table.update(items)

    return Scene(step, Knob(put, [{"a": 2.0}, {"a": 3.0, "b": 5.0}, {"a": 3.0}]))


@scene("a global variable that is missing at times")
def _(world):
    module = world.module(
        "def step(x):\n    try:\n        return x * thing\n    except NameError:\n        return x * 3"
    )

    def put(value):
        vars(module).pop("thing", None)
        if value is not None:
            module.thing = value

    return Scene(module.step, Knob(put, [None, 2.0, 5.0]))


@scene("a closure variable that is deleted at times")
def _(world):
    thing = 2.0

    def step(x):
        try:
            return x * thing
        except NameError:
            return x * 3

    def put(value):
        nonlocal thing
        thing = value
        if value is None:
            del thing

    return Scene(step, Knob(put, [2.0, None, 5.0]))


@scene("a global variable that hides a builtin")
def _(world):
    module = world.module("def step(x):\n    return x * max(2.0, 3.0)")

    def put(hidden):
        vars(module).pop("max", None)
        if hidden:
            module.max = min

    return Scene(module.step, Knob(put, [False, True]))


def missing_attribute(name, read):
    """Declare the scene of a step that reads an attribute which is sometimes missing."""

    @scene(name)
    def _(world):
        holder = types.SimpleNamespace()

        def put(value):
            vars(holder).pop("thing", None)
            if value is not None:
                holder.thing = value

        return Scene(lambda x: x * read(holder), Knob(put, [None, 2.0, 5.0]))


def read_or_default(holder):
    try:
        return holder.thing
    except AttributeError:
        return 3.0


missing_attribute("getattr with a default", lambda holder: getattr(holder, "thing", 3.0))
missing_attribute("hasattr", lambda holder: holder.thing if hasattr(holder, "thing") else 3.0)
missing_attribute("AttributeError that is caught", read_or_default)
missing_attribute("a name in vars", lambda holder: vars(holder).get("thing", 3.0))
missing_attribute("the names of dir", lambda holder: 2.0 if "thing" in dir(holder) else 3.0)


def branch_on(name, read, values):
    """Declare the scene of a step that branches on a property of the item of a dict."""

    @scene(name)
    def _(world):
        container = {"thing": values[0]}
        step = lambda x: x * (2.0 if read(container["thing"]) else 3.0)  # noqa: E731
        return Scene(step, Knob(partial(container.__setitem__, "thing"), values))


class CustomClass:
    pass


branch_on("isinstance", lambda thing: isinstance(thing, int), [1, "a", 2.5])
branch_on("type", lambda thing: type(thing) is bool, [1, True])
branch_on("callable", callable, [1, len])
branch_on("whether something is None", lambda thing: thing is None, [1, None])
branch_on("the truth of something", bool, [1, 0, [], [0], "", None])
branch_on("the class of an object", lambda thing: thing.__class__.__name__ == "CustomClass", [1, CustomClass()])
branch_on("comparison of strs", lambda thing: thing == "a", ["a", "b"])
branch_on("comparison of floats", lambda thing: 0 < thing < 2, [1.0, 3.0, 1.5])
branch_on("hash", lambda thing: hash(thing) % 2 == 0, [2, 3, 5])


@scene("the identity of objects")
def _(world):
    a, b = object(), object()
    container = [a, a]
    return Scene(
        lambda x: x * (2.0 if container[0] is container[1] else 3.0), Knob(partial(container.__setitem__, 1), [a, b])
    )


@scene("an object that is collected")
def _(world):
    container = [CustomClass()]
    reference = weakref.ref(container[0])

    def put(k):
        nonlocal reference
        container[0] = CustomClass()
        if not k:
            reference = weakref.ref(container[0])

    return Scene(lambda x: x * (2.0 if reference() else 3.0), Knob(put, [0, 1]))
