"""Arguments: structures, values that change, tensors that share memory, defaults that are passed or omitted."""

from __future__ import annotations

import collections
import dataclasses
import enum
import fractions
import types
from typing import Any, NamedTuple

import numpy as np

import minigrad as mg
from adversary import Knob, Scene, scene


def argument_scene(step, make, values):
    """Return the scene of a step whose arguments are ``make(value, x)``: a tuple, or a tuple and a dict of keywords."""
    current = values[0]

    def put(new):
        nonlocal current
        current = new

    def arguments(k):
        x = mg.tensor([[1.5, -0.25, 2.0], [0.5, k * 0.5 - 1.0, -3.0]])
        built = make(current, x)
        return built if len(built) == 2 and isinstance(built[1], dict) else (built, {})

    return Scene(step, Knob(put, values), arguments=arguments)


class NamedArguments(NamedTuple):
    x: Any
    by: Any


@dataclasses.dataclass
class DataArguments:
    x: Any
    by: Any


@dataclasses.dataclass(frozen=True)
class FrozenArguments:
    x: Any
    by: Any


@dataclasses.dataclass(slots=True)
class SlottedArguments:
    x: Any
    by: Any


class PlainArguments:
    def __init__(self, x, by):
        self.x, self.by = x, by


class HashableArguments(PlainArguments):
    """An object that equals all others of its class, like a config with `__eq__` and `__hash__`."""

    def __eq__(self, other):
        return isinstance(other, HashableArguments)

    def __hash__(self):
        return 1


class ReadOnlyMapping(collections.abc.Mapping):
    def __init__(self, **items):
        self._items = items

    def __getitem__(self, key):
        return self._items[key]

    def __iter__(self):
        return iter(self._items)

    def __len__(self):
        return len(self._items)


class Mode(enum.Enum):
    HALF = 0.5
    DOUBLE = 2.0


def product(a):
    return a.x * a.by


def items(a):
    return a["x"] * a["by"]


def namespace(x, by):
    return types.SimpleNamespace(x=x, by=by)


# Objects that are not registered as pytrees.
OPAQUE = {PlainArguments: ("Plain",), HashableArguments: ("Hashed",), namespace: ("SimpleNamespace",)}

for _name, _make in {
    "a namedtuple": NamedArguments,
    "a dataclass": DataArguments,
    "a frozen dataclass": FrozenArguments,
    "a dataclass with slots": SlottedArguments,
    "types.SimpleNamespace": namespace,
    "an object": PlainArguments,
    "an object that is equal to others": HashableArguments,
}.items():
    # an unregistered object is a new one at each call
    @scene(f"{_name} as an argument", refused=OPAQUE.get(_make, ()), retraces=_make in OPAQUE)
    def _(world, make=_make):
        return argument_scene(product, lambda by, x: (make(x, by),), [2.0, 3.0])

    @scene(f"{_name} with two tensors as an argument", refused=OPAQUE.get(_make, ()), retraces=_make in OPAQUE)
    def _(world, make=_make):
        return argument_scene(product, lambda by, x: (make(x, mg.full((3,), by)),), [2.0, 3.0])


for _name, _make in {
    "a dict": dict,
    "an OrderedDict": collections.OrderedDict,
    "a mapping of the user's": ReadOnlyMapping,
    "a ChainMap": lambda **items: collections.ChainMap(items),
    "a UserDict": lambda **items: collections.UserDict(items),
    "a MappingProxy": lambda **items: types.MappingProxyType(items),
}.items():

    @scene(f"{_name} as an argument")
    def _(world, make=_make):
        return argument_scene(items, lambda by, x: (make(x=x, by=mg.full((3,), by)),), [2.0, 3.0])


@scene("a nested structure as an argument")
def _(world):
    step = lambda a: a["b"][0].x * a["b"][1][0]  # noqa: E731
    return argument_scene(step, lambda by, x: ({"b": (NamedArguments(x, 1), [mg.full((3,), by)])},), [2.0, 3.0])


@scene("a deque as an argument", refused=("deque",))
def _(world):
    return argument_scene(lambda a: a[0] * a[1], lambda by, x: (collections.deque([x, by]),), [2.0, 3.0])


@scene("a float that changes at every call", symbolic=True)
def _(world):
    calls = [0]

    def arguments(by, x):
        calls[0] += 1
        return x, by + calls[0] / 8

    return argument_scene(lambda x, by: x * by, arguments, [2.0, 3.0])


@scene("a float in a formula with tensors and Python", symbolic=True)
def _(world):
    return argument_scene(lambda x, by: x * (by * 2 + 1) - by, lambda by, x: (x, by), [2.0, 3.0, 0.5, 0.25, 7.0])


@scene("a float that is asked about")
def _(world):
    step = lambda x, by: x * by if by > 1 else x - by  # noqa: E731
    return argument_scene(step, lambda by, x: (x, by), [2.0, 3.0, 0.5])


@scene("a float that is converted")
def _(world):
    return argument_scene(lambda x, by: x * int(by) + float(by), lambda by, x: (x, by), [2.5, 2.25, 3.0])


@scene("a float as a key of a dict")
def _(world):
    return argument_scene(lambda x, by: x * {2.0: 5.0}.get(by, 7.0), lambda by, x: (x, by), [2.0, 3.0])


@scene("a float in a format string")
def _(world):
    return argument_scene(lambda x, by: x * len(f"{by}"), lambda by, x: (x, by), [2.0, 3.125])


@scene("a float that comes back")
def _(world):
    return argument_scene(lambda x, by: (x * by, by, [by + 1]), lambda by, x: (x, by), [2.0, 3.0])


@scene("a float that is a shape's bound")
def _(world):
    return argument_scene(lambda x, by: mg.arange(0.0, by) + x.sum(), lambda by, x: (x, by), [2.0, 3.0])


@scene("zero and minus zero as arguments")
def _(world):
    return argument_scene(lambda x, by: x.abs() * by, lambda by, x: (x, by), [0.0, -0.0])


@scene("nan and infinities as arguments")
def _(world):
    return argument_scene(lambda x, by: x * by, lambda by, x: (x, by), [float("nan"), float("inf"), 1.0])


@scene("1, True and 1.0 as arguments")
def _(world):
    return argument_scene(lambda x, by: (x * by, mg.tensor(by)), lambda by, x: (x, by), [1, True, 1.0])


@scene("an int as an argument")
def _(world):
    return argument_scene(lambda x, n: x * n + mg.ones(n).sum(), lambda n, x: (x, n), [2, 3, 5])


@scene("a str as an argument")
def _(world):
    return argument_scene(lambda x, name: getattr(mg, name)(x), lambda name, x: (x, name), ["tanh", "exp"])


@scene("None or a tensor as an argument")
def _(world):
    step = lambda x, b: x if b is None else x + b  # noqa: E731
    return argument_scene(step, lambda b, x: (x, None if b is None else mg.full((3,), b)), [None, 2.0])


@scene("a function as an argument")
def _(world):
    return argument_scene(lambda x, f: f(x), lambda f, x: (x, f), [mg.tanh, mg.exp, lambda x: x * 2])


@scene("a dtype as an argument")
def _(world):
    return argument_scene(lambda x, dtype: x.to(dtype) + 1, lambda dtype, x: (x, dtype), [mg.float64, mg.int32])


@scene("an enum member as an argument")
def _(world):
    return argument_scene(lambda x, mode: x * mode.value, lambda mode, x: (x, mode), [Mode.HALF, Mode.DOUBLE])


@scene("a Fraction as an argument")
def _(world):
    values = [fractions.Fraction(1, 2), fractions.Fraction(3, 4)]
    return argument_scene(lambda x, by: x * float(by), lambda by, x: (x, by), values)


@scene("a slice as an argument")
def _(world):
    return argument_scene(lambda x, s: x[:, s], lambda s, x: (x, s), [slice(0, 2), slice(1, 3)])


@scene("a NumPy scalar as an argument")
def _(world):
    return argument_scene(lambda x, by: x * by, lambda by, x: (x, by), [np.float32(2.0), np.float64(2.0), np.int64(3)])


@scene("an array as an argument", refused=("ndarray",))
def _(world):
    step = lambda x, a: x * mg.tensor(a)  # noqa: E731
    return argument_scene(step, lambda by, x: (x, np.full(3, by, np.float32)), [2.0, 3.0])


@scene("a set as an argument", refused=("set",))
def _(world):
    return argument_scene(lambda x, s: x * sum(s), lambda s, x: (x, s), [{1, 2}, {1, 5}])


@scene("a module as an argument")
def _(world):
    models = [mg.nn.Linear(3, 2), mg.nn.Linear(3, 2), mg.nn.Tanh()]
    return argument_scene(lambda model, x: model(x), lambda k, x: (models[k], x), [0, 1, 2])


@scene("an attribute of a module that is an argument")
def _(world):
    model = mg.nn.LeakyReLU(0.5)

    def make(negative_slope, x):
        model.negative_slope = negative_slope
        return model, x

    return argument_scene(lambda model, x: model(x), make, [0.5, 0.25])


@scene("an attribute of an object that is an argument")
def _(world):
    argument = PlainArguments(None, 2.0)

    def make(by, x):
        argument.by = by
        return argument, x

    return argument_scene(lambda a, x: x * a.by, make, [2.0, 3.0])


@scene("a list that is an argument and changes")
def _(world):
    argument = [2.0]

    def make(values, x):
        argument[:] = values
        return argument, x

    return argument_scene(lambda a, x: x * sum(a) + len(a), make, [[2.0], [3.0], [1.0, 1.0]])


@scene("an optimizer as an argument")
def _(world):
    w = world.leaf(1.0, 2.0, 3.0)
    optimizers = [mg.optim.SGD([w], lr=0.125), mg.optim.SGD([w], lr=0.5)]
    world.compared.extend(optimizers)

    def step(optimizer, x):
        optimizer.zero_grad()
        (x * w).sum().backward()
        optimizer.step()

    return argument_scene(step, lambda k, x: (optimizers[k], x), [0, 1])


@scene("a generator of random numbers as an argument")
def _(world):
    generators = [mg.Generator(1), mg.Generator(2)]
    world.compared.extend(generators)
    return argument_scene(lambda g, x: x * mg.rand(3, generator=g), lambda k, x: (generators[k], x), [0, 1])


@scene("an argument that is given or left to its default")
def _(world):
    return argument_scene(lambda x, by=2.0: x * by, lambda by, x: (x,) if by is None else (x, by), [None, 3.0, 2.0])


@scene("a keyword that is given or left out")
def _(world):
    return argument_scene(
        lambda x, *, by=2.0: x * by, lambda by, x: ((x,), {} if by is None else {"by": by}), [None, 3.0]
    )


@scene("an argument by position or by name")
def _(world):
    return argument_scene(
        lambda x, by: x * by, lambda named, x: ((x,), {"by": 2.0}) if named else ((x, 2.0), {}), [False, True]
    )


@scene("the order of keywords")
def _(world):
    orders = [["a", "b"], ["b", "a"]]
    values = {"a": 2.0, "b": 3.0}
    step = lambda x, **kw: x * next(iter(kw.values())) + len(kw)  # noqa: E731
    return argument_scene(step, lambda order, x: ((x,), {name: values[name] for name in order}), orders)


@scene("more arguments than before")
def _(world):
    return argument_scene(lambda *xs: sum([k * x for k, x in enumerate(xs, 1)]), lambda n, x: tuple([x] * n), [2, 3, 1])


@scene("tensors that are the same or not")
def _(world):
    step = lambda a, b: (a.mul_(2), (a + b).sum())[1]  # noqa: E731
    return argument_scene(step, lambda same, x: (x, x) if same else (x, x.clone()), [True, False])


@scene("tensors that share memory or not")
def _(world):
    def make(offset, x):
        base = mg.arange(8.0) * x.sum()
        return base[:3], base[offset : offset + 3]

    return argument_scene(lambda a, b: (a.mul_(2), (a + b).sum())[1], make, [0, 1, 5])


@scene("the shape of an argument")
def _(world):
    return argument_scene(lambda x: x.sum(0) * x.shape[0], lambda n, x: (x[:n],), [2, 1])


@scene("the dtype of an argument")
def _(world):
    return argument_scene(lambda x: x * 2 + 1, lambda dtype, x: (x.to(dtype),), [mg.float32, mg.float64, mg.int32])


@scene("the device of an argument")
def _(world):
    return argument_scene(lambda x: x * 2 + 1, lambda device, x: (x.to(device),), ["numpy", "cpu"])


@scene("the strides of an argument", harmless=True)
def _(world):
    return argument_scene(lambda x: x.sum(0), lambda turned, x: (x.mT.contiguous().mT if turned else x,), [False, True])


@scene("whether an argument requires a gradient")
def _(world):
    def step(x):
        y = (x * 2).sum()
        if y.requires_grad:
            y.backward()
        return x.grad

    return argument_scene(step, lambda needs, x: (x.requires_grad_(needs),), [False, True])


@scene("a hook of an argument")
def _(world):
    def make(factor, x):
        x.requires_grad_()
        if factor:
            x.register_hook(lambda g: g * factor)
        return (x,)

    def step(x):
        (x * 2).sum().backward()
        return x.grad

    return argument_scene(step, make, [None, 2.0, 3.0])


@scene("the gradient of an argument")
def _(world):
    def make(value, x):
        x.requires_grad_()
        x.grad = None if value is None else mg.full((2, 3), value)
        return (x,)

    def step(x):
        (x * 2).sum().backward()
        return x.grad

    return argument_scene(step, make, [None, 2.0, 3.0])


@scene("an argument that is also a closure tensor")
def _(world):
    w, other = mg.tensor([1.0, 2.0, 3.0]), mg.tensor([4.0, 5.0, 6.0])
    return argument_scene(lambda x, a: x * a + w, lambda same, x: (x, w if same else other), [True, False])
