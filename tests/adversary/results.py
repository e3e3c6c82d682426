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


class NamedResult(NamedTuple):
    y: Any
    by: Any


@dataclasses.dataclass
class DataResult:
    y: Any
    by: Any


@dataclasses.dataclass(slots=True)
class SlottedResult:
    y: Any
    by: Any


@dataclasses.dataclass(frozen=True)
class FrozenResult:
    y: Any
    by: Any


@dataclasses.dataclass
class PostInitResult:
    """A dataclass with a field that `__init__` does not accept."""

    y: Any
    by: Any = dataclasses.field(init=False)

    def __post_init__(self):
        self.by = self.y * 2


class DictWithAttribute(dict):
    """A dict with an attribute."""

    extra: Any = None


class PlainResult:
    def __init__(self, y):
        self.y = y


class Mode(enum.Enum):
    A = 1


def return_scene(name, make, *refused):
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


def dict_with_attribute(y, by):
    result = DictWithAttribute(a=y)
    result.extra = by
    return result


return_scene("a namedtuple that comes back", NamedResult)
return_scene("a dataclass that comes back", DataResult, "Data")
return_scene("a dataclass with slots that comes back", SlottedResult, "Slotted")
return_scene("a frozen dataclass that comes back", FrozenResult, "Frozen")
return_scene("a dataclass with a field of its own that comes back", lambda y, by: PostInitResult(y), "Made")
return_scene("a deque that comes back", lambda y, by: collections.deque([y, by], maxlen=3), "deque")
return_scene("a set that comes back", lambda y, by: {by, 1.0})
return_scene("a set of tensors that comes back", lambda y, by: {y}, "set")
return_scene("a dict that comes back", lambda y, by: {"y": y, 1: by, None: [y + 1]})
return_scene("an OrderedDict that comes back", lambda y, by: collections.OrderedDict(y=y, by=by))
return_scene("a defaultdict that comes back", lambda y, by: collections.defaultdict(list, y=[y]))
return_scene("a Counter that comes back", lambda y, by: collections.Counter(a=by))
return_scene("a ChainMap that comes back", lambda y, by: collections.ChainMap({"y": y}, {"by": by}), "ChainMap")
return_scene("a UserDict that comes back", lambda y, by: collections.UserDict(y=y), "UserDict")
return_scene("a MappingProxy that comes back", lambda y, by: types.MappingProxyType({"y": y}), "mappingproxy")
return_scene("a SimpleNamespace that comes back", lambda y, by: types.SimpleNamespace(y=y, by=by), "SimpleNamespace")
return_scene("a subclass of dict that comes back", dict_with_attribute, "Own")
return_scene("a nested structure that comes back", lambda y, by: ([{"a": (y, NamedResult(y + 1, [by]))}], None))
return_scene("scalars that come back", lambda y, by: (by, int(by), str(by), by > 2, None, mg.float32, Mode.A, 1j * by))
return_scene("a slice that comes back", lambda y, by: (slice(0, int(by)), y))
return_scene("a range that comes back", lambda y, by: (range(int(by)), y))
return_scene("nothing that comes back", lambda y, by: None if by > 2 else y)
return_scene("an empty list that comes back", lambda y, by: [] if by > 2 else [y])
return_scene("no tensor that comes back", lambda y, by: by * 2)
return_scene("a tensor twice", lambda y, by: (y, y))
return_scene("a constant tensor that comes back", lambda y, by: mg.full((2,), by))
return_scene("an integer tensor that comes back", lambda y, by: (y > by, y.argmax(), y.to(mg.int32)))
return_scene("a 0-d tensor that comes back", lambda y, by: y.sum() * 0 + by)
return_scene("an empty tensor that comes back", lambda y, by: y[:0] if by > 2 else y)


def alias_scene(name, make, use, harmless=False):
    """Declare the scene of a caller that writes to the result, ``use(result)``, and returns a part of it."""

    @scene(name, harmless=harmless)
    def _(world):
        by = 2.0
        inner = world.jit(lambda x: make(x * by))

        def put(new):
            nonlocal by
            by = new

        return Scene(lambda x: use(inner(x)), Knob(put, [2.0, 3.0]), jitted=True)


def overwrite(y):
    before = y.clone()
    y.fill_(7.0)
    return before


def overwrite_first(pair):
    first, second = pair
    first.mul_(2.0)
    return first, second.clone()


alias_scene("a result that the caller overwrites", lambda y: y, overwrite)
alias_scene(
    "a constant result that the caller overwrites", lambda y: mg.ones(2) * y[0, 0].abs().sign(), overwrite, True
)
alias_scene("a constant of the step that the caller overwrites", lambda y: (mg.full((2,), 3.0), y), overwrite_first)
alias_scene("two results that share memory", lambda y: (y, y.reshape(-1)), overwrite_first)
alias_scene("a result twice, of which one is overwritten", lambda y: (y, y), overwrite_first)
alias_scene("a result and a part of it", lambda y: (y, y[0]), overwrite_first)


@scene("a list that comes back and that the caller edits")
def _(world):
    by = 2.0
    inner = world.jit(lambda x: [x * by])

    def put(new):
        nonlocal by
        by = new

    def step(x):
        results = inner(x)
        results.append(1)
        return results

    return Scene(step, Knob(put, [2.0, 3.0]), jitted=True)


@scene("results that are kept")
def _(world):
    by, earlier = 2.0, []
    inner = world.jit(lambda x: (x * by, x + by))

    def put(new):
        nonlocal by
        by = new

    return Scene(lambda x: earlier.append(inner(x)), Knob(put, [2.0, 3.0]), [earlier], jitted=True)


@scene("gradients that are kept")
def _(world):
    w, by, earlier = world.leaf(1.0, 2.0, 3.0), 2.0, []

    def backward(x):
        w.grad = None
        (x * w * by).sum().backward()

    inner = world.jit(backward)

    def step(x):
        inner(x)
        earlier.append(w.grad)

    def put(new):
        nonlocal by
        by = new

    return Scene(step, Knob(put, [2.0, 3.0]), [earlier], jitted=True)


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


def lazy_scene(name, make, read, *refused):
    """Declare the scene of a step that returns ``make(x, by)``, which the caller evaluates later."""

    @scene(name, refused=refused)
    def _(world):
        by = 2.0
        inner = world.jit(lambda x: make(x * 1, by))

        def put(new):
            nonlocal by
            by = new

        return Scene(lambda x: read(inner(x)), Knob(put, [2.0, 3.0]), jitted=True)


lazy_scene("a function that comes back", lambda x, by: lambda: x * by, lambda f: f(), "function")
lazy_scene("a partial that comes back", lambda x, by: functools.partial(mg.mul, x, by), lambda f: f(), "partial")
lazy_scene("a method that comes back", lambda x, by: (x * by).sum, lambda f: f(), "method")
lazy_scene("a generator that comes back", lambda x, by: (x * k for k in (by, 1.0)), list, "generator")
lazy_scene("an iterator that comes back", lambda x, by: iter([x * by]), list, "iterator")
lazy_scene("a map that comes back", lambda x, by: map(x.mul, [by]), list, "map")
lazy_scene("a view of a dict that comes back", lambda x, by: {"y": x * by}.values(), list, "dict_values")
lazy_scene("the items of a dict that come back", lambda x, by: {"y": x * by}.items(), list, "dict_items")
lazy_scene(
    "an object in a list that comes back",
    lambda x, by: [PlainResult(x * by)],
    lambda container: container[0].y,
    "Plain",
)
lazy_scene("an array that comes back", lambda x, by: np.full(2, by), lambda a: a.sum(), "ndarray")
