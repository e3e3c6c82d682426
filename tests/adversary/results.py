"""Results: containers that a step returns, tensors in them that share memory, and how the caller uses them."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import types
from typing import Any, NamedTuple

import numpy as np

import minigrad as mg
from adversary import Knob, Scene, scene


class Named(NamedTuple):
    y: Any
    by: Any


@dataclasses.dataclass
class Data:
    y: Any
    by: Any


@dataclasses.dataclass(slots=True)
class Slotted:
    y: Any
    by: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    y: Any
    by: Any


@dataclasses.dataclass
class Made:
    """A dataclass with a field that `__init__` does not accept."""

    y: Any
    by: Any = dataclasses.field(init=False)

    def __post_init__(self):
        self.by = self.y * 2


class Own(dict):
    """A dict with an attribute."""

    extra: Any = None


class Plain:
    def __init__(self, y):
        self.y = y


class Mode(enum.Enum):
    A = 1


def returning(name, make, *refused):
    """Declare the scene of a step that returns ``make(y, by)``: y is a tensor, `by` is a float that changes."""

    @scene(name, refused=refused)
    def _(world):
        by = 2.0

        def step(x):
            return make(x * by, by)

        def put(new):
            nonlocal by
            by = new

        return Scene(step, Knob(put, [2.0, 3.0]))


def own(y, by):
    made = Own(a=y)
    made.extra = by
    return made


returning("a namedtuple that comes back", Named)
returning("a dataclass that comes back", Data, "Data")
returning("a dataclass with slots that comes back", Slotted, "Slotted")
returning("a frozen dataclass that comes back", Frozen, "Frozen")
returning("a dataclass with a field of its own that comes back", lambda y, by: Made(y), "Made")
returning("a deque that comes back", lambda y, by: collections.deque([y, by], maxlen=3), "deque")
returning("a set that comes back", lambda y, by: {by, 1.0})
returning("a set of tensors that comes back", lambda y, by: {y}, "set")
returning("a dict that comes back", lambda y, by: {"y": y, 1: by, None: [y + 1]})
returning("an OrderedDict that comes back", lambda y, by: collections.OrderedDict(y=y, by=by))
returning("a defaultdict that comes back", lambda y, by: collections.defaultdict(list, y=[y]))
returning("a Counter that comes back", lambda y, by: collections.Counter(a=by))
returning("a ChainMap that comes back", lambda y, by: collections.ChainMap({"y": y}, {"by": by}), "ChainMap")
returning("a UserDict that comes back", lambda y, by: collections.UserDict(y=y), "UserDict")
returning("a MappingProxy that comes back", lambda y, by: types.MappingProxyType({"y": y}), "mappingproxy")
returning("a SimpleNamespace that comes back", lambda y, by: types.SimpleNamespace(y=y, by=by), "SimpleNamespace")
returning("a subclass of dict that comes back", own, "Own")
returning("a nested structure that comes back", lambda y, by: ([{"a": (y, Named(y + 1, [by]))}], None))
returning("scalars that come back", lambda y, by: (by, int(by), str(by), by > 2, None, mg.float32, Mode.A, 1j * by))
returning("a slice that comes back", lambda y, by: (slice(0, int(by)), y))
returning("a range that comes back", lambda y, by: (range(int(by)), y))
returning("nothing that comes back", lambda y, by: None if by > 2 else y)
returning("an empty list that comes back", lambda y, by: [] if by > 2 else [y])
returning("no tensor that comes back", lambda y, by: by * 2)
returning("a tensor twice", lambda y, by: (y, y))
returning("a constant tensor that comes back", lambda y, by: mg.full((2,), by))
returning("an integer tensor that comes back", lambda y, by: (y > by, y.argmax(), y.to(mg.int32)))
returning("a 0-d tensor that comes back", lambda y, by: y.sum() * 0 + by)
returning("an empty tensor that comes back", lambda y, by: y[:0] if by > 2 else y)


def aliasing(name, make, use, harmless=False):
    """Declare the scene of a caller that writes to the result, ``use(result)``, and returns a part of it."""

    @scene(name, harmless=harmless)
    def _(world):
        by = 2.0
        inner = world.jit(lambda x: make(x * by))

        def put(new):
            nonlocal by
            by = new

        return Scene(lambda x: use(inner(x)), Knob(put, [2.0, 3.0]), jitted=True)


def overwritten(y):
    before = y.clone()
    y.fill_(7.0)
    return before


def of_two(pair):
    first, second = pair
    first.mul_(2.0)
    return first, second.clone()


aliasing("a result that the caller overwrites", lambda y: y, overwritten)
aliasing("a constant result that the caller overwrites", lambda y: mg.ones(2) * y[0, 0].abs().sign(), overwritten, True)
aliasing("a constant of the step that the caller overwrites", lambda y: (mg.full((2,), 3.0), y), of_two)
aliasing("two results that share memory", lambda y: (y, y.reshape(-1)), of_two)
aliasing("a result twice, of which one is overwritten", lambda y: (y, y), of_two)
aliasing("a result and a part of it", lambda y: (y, y[0]), of_two)


@scene("a list that comes back and that the caller edits")
def _(world):
    by = 2.0
    inner = world.jit(lambda x: [x * by])

    def put(new):
        nonlocal by
        by = new

    def step(x):
        found = inner(x)
        found.append(1)
        return found

    return Scene(step, Knob(put, [2.0, 3.0]), jitted=True)


@scene("results that are kept")
def _(world):
    by, kept = 2.0, []
    inner = world.jit(lambda x: (x * by, x + by))

    def put(new):
        nonlocal by
        by = new

    return Scene(lambda x: kept.append(inner(x)), Knob(put, [2.0, 3.0]), [kept], jitted=True)


@scene("gradients that are kept")
def _(world):
    w, by, kept = world.leaf(1.0, 2.0, 3.0), 2.0, []

    def backward(x):
        w.grad = None
        (x * w * by).sum().backward()

    inner = world.jit(backward)

    def step(x):
        inner(x)
        kept.append(w.grad)

    def put(new):
        nonlocal by
        by = new

    return Scene(step, Knob(put, [2.0, 3.0]), [kept], jitted=True)


@scene("an argument that comes back")
def _(world):
    by = 2.0

    def step(x):
        return x, x * by

    def put(new):
        nonlocal by
        by = new

    return Scene(step, Knob(put, [2.0, 3.0]))


@scene("an argument that comes back and is overwritten")
def _(world):
    by = 2.0
    inner = world.jit(lambda x: (x, x * by))

    def step(x):
        same, y = inner(x)
        same.fill_(5.0)
        return x.clone(), y

    def put(new):
        nonlocal by
        by = new

    return Scene(step, Knob(put, [2.0, 3.0]), jitted=True)


@scene("a parameter that comes back")
def _(world):
    w, by = world.leaf(1.0, 2.0, 3.0), 2.0

    def step(x):
        with mg.no_grad():
            w.add_(by)
        return w

    def put(new):
        nonlocal by
        by = new

    return Scene(step, Knob(put, [2.0, 3.0]))


@scene("a gradient that comes back")
def _(world):
    w, by = world.leaf(1.0, 2.0, 3.0), 2.0

    def step(x):
        w.grad = None
        (x * w * by).sum().backward()
        return w.grad

    def put(new):
        nonlocal by
        by = new

    return Scene(step, Knob(put, [2.0, 3.0]))


@scene("a model that comes back")
def _(world):
    model, by = mg.nn.Linear(3, 2), 2.0

    def step(x):
        return model, model(x) * by

    def put(new):
        nonlocal by
        by = new

    return Scene(step, Knob(put, [2.0, 3.0]), [model])


def lazily(name, make, read, *refused):
    """Declare the scene of a step that returns ``make(x, by)``, which the caller evaluates later."""

    @scene(name, refused=refused)
    def _(world):
        by = 2.0
        inner = world.jit(lambda x: make(x * 1, by))

        def put(new):
            nonlocal by
            by = new

        return Scene(lambda x: read(inner(x)), Knob(put, [2.0, 3.0]), jitted=True)


lazily("a function that comes back", lambda x, by: lambda: x * by, lambda f: f(), "function")
lazily("a partial that comes back", lambda x, by: functools.partial(mg.mul, x, by), lambda f: f(), "partial")
lazily("a method that comes back", lambda x, by: (x * by).sum, lambda f: f(), "method")
lazily("a generator that comes back", lambda x, by: (x * k for k in (by, 1.0)), list, "generator")
lazily("an iterator that comes back", lambda x, by: iter([x * by]), list, "iterator")
lazily("a map that comes back", lambda x, by: map(x.mul, [by]), list, "map")
lazily("a view of a dict that comes back", lambda x, by: {"y": x * by}.values(), list, "dict_values")
lazily("the items of a dict that come back", lambda x, by: {"y": x * by}.items(), list, "dict_items")
lazily("an object in a list that comes back", lambda x, by: [Plain(x * by)], lambda held: held[0].y, "Plain")
lazily("an array that comes back", lambda x, by: np.full(2, by), lambda a: a.sum(), "ndarray")
