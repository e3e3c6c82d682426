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
    made = world.module("def step(x):\n    try:\n        return x * thing\n    except NameError:\n        return x * 3")

    def put(value):
        vars(made).pop("thing", None)
        if value is not None:
            made.thing = value

    return Scene(made.step, Knob(put, [None, 2.0, 5.0]))


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
    made = world.module("def step(x):\n    return x * max(2.0, 3.0)")

    def put(hidden):
        vars(made).pop("max", None)
        if hidden:
            made.max = min

    return Scene(made.step, Knob(put, [False, True]))


def missing(name, read):
    """Declare the scene of a step that reads an attribute which is sometimes missing."""

    @scene(name)
    def _(world):
        held = types.SimpleNamespace()

        def put(value):
            vars(held).pop("thing", None)
            if value is not None:
                held.thing = value

        return Scene(lambda x: x * read(held), Knob(put, [None, 2.0, 5.0]))


def caught(held):
    try:
        return held.thing
    except AttributeError:
        return 3.0


missing("getattr with a default", lambda held: getattr(held, "thing", 3.0))
missing("hasattr", lambda held: held.thing if hasattr(held, "thing") else 3.0)
missing("AttributeError that is caught", caught)
missing("a name in vars", lambda held: vars(held).get("thing", 3.0))
missing("the names of dir", lambda held: 2.0 if "thing" in dir(held) else 3.0)


def asking(name, read, values):
    """Declare the scene of a step that branches on a property of the item of a dict."""

    @scene(name)
    def _(world):
        held = {"thing": values[0]}
        step = lambda x: x * (2.0 if read(held["thing"]) else 3.0)  # noqa: E731
        return Scene(step, Knob(partial(held.__setitem__, "thing"), values))


class Own:
    pass


asking("isinstance", lambda thing: isinstance(thing, int), [1, "a", 2.5])
asking("type", lambda thing: type(thing) is bool, [1, True])
asking("callable", callable, [1, len])
asking("whether something is None", lambda thing: thing is None, [1, None])
asking("the truth of something", bool, [1, 0, [], [0], "", None])
asking("the class of an object", lambda thing: thing.__class__.__name__ == "Own", [1, Own()])
asking("comparison of strs", lambda thing: thing == "a", ["a", "b"])
asking("comparison of floats", lambda thing: 0 < thing < 2, [1.0, 3.0, 1.5])
asking("hash", lambda thing: hash(thing) % 2 == 0, [2, 3, 5])


@scene("the identity of objects")
def _(world):
    a, b = object(), object()
    held = [a, a]
    return Scene(lambda x: x * (2.0 if held[0] is held[1] else 3.0), Knob(partial(held.__setitem__, 1), [a, b]))


@scene("an object that is collected")
def _(world):
    held = [Own()]
    reference = weakref.ref(held[0])

    def put(k):
        nonlocal reference
        held[0] = Own()
        if not k:
            reference = weakref.ref(held[0])

    return Scene(lambda x: x * (2.0 if reference() else 3.0), Knob(put, [0, 1]))
