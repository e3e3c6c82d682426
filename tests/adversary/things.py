"""Things: the values that a step reads, and what it computes with them."""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import enum
import fractions
import functools
import math
import pathlib

import numpy as np

import minigrad as mg
from adversary import Knob, Thing, thing


def times(x, value):
    return x * value


def declare_values(name, values, use=times):
    """Declare a thing of immutable values."""
    thing(name)(lambda world: Thing([*values], use))


class Mode(enum.Enum):
    ADD = "add"
    MUL = "mul"


class Level(enum.IntEnum):
    LOW = 2
    HIGH = 5


declare_values("a float", [2.0, -0.5, 3.25])
declare_values("an int", [2, -3, 7])
declare_values("an int beyond the small ones", [1000, -1001, 100002])
declare_values("a bool", [True, False], lambda x, v: x * 2 if v else x - 1)
declare_values("a str", ["tanh", "exp", "sin"], lambda x, v: getattr(mg, v)(x))
declare_values("None or a value", [None, 2.0, 0.5], lambda x, v: x if v is None else x * v)
declare_values("a complex", [1 + 2j, 1 - 2j, 3 + 0j], lambda x, v: x * v.real + v.imag)
declare_values("fractions.Fraction", [fractions.Fraction(1, 2), fractions.Fraction(3, 4)], lambda x, v: x * float(v))
declare_values("decimal.Decimal", [decimal.Decimal("0.5"), decimal.Decimal("1.25")], lambda x, v: x * float(v))
declare_values("zero and minus zero", [0.0, -0.0], lambda x, v: x.abs() * v)
declare_values("nan and a float", [math.nan, 2.0])
declare_values("infinities", [math.inf, -math.inf, 1.0])
declare_values("neighbouring floats", [1.0, math.nextafter(1.0, 2.0)], lambda x, v: x.double() * v)
declare_values("1, True and 1.0", [1, True, 1.0], lambda x, v: (mg.tensor([1, 2]) * v, x * v, mg.tensor(v)))
declare_values("0, False, 0.0 and None", [0, False, 0.0, None], lambda x, v: x + 1 if v is None else x + mg.tensor(v))
declare_values("bytes", [b"ab", b"ac"], lambda x, v: x * v[1])
declare_values("a tuple of numbers", [(1.0, 2.0), (1.0, 3.0), (2.0,)], lambda x, v: sum([x * y for y in v]))
declare_values(
    "a tuple with a float that was an int", [(1, 2), (1, 2.0), (True, 2)], lambda x, v: [mg.tensor(y) for y in v]
)
declare_values("a frozenset", [frozenset({1, 2}), frozenset({1, 3})], lambda x, v: x * sum(v))
declare_values("a range", [range(3), range(1, 4), range(0, 8, 3)], lambda x, v: sum([x * k for k in v]))
declare_values("a slice", [slice(0, 2), slice(1, 3), slice(0, 3, 2)], lambda x, v: x[:, v].sum())
declare_values("an index of several kinds", [0, slice(0, 1), None, Ellipsis], lambda x, v: x[v] + 1)
declare_values("a shape", [(3, 2), (6,), (1, 6)], lambda x, v: x.reshape(v) + 1)
declare_values("a dtype", [mg.float64, mg.int32, mg.float32], lambda x, v: x.to(v) + 1)
declare_values("a dtype of NumPy", [np.dtype("float64"), np.dtype("int32")], lambda x, v: x.to(getattr(mg, v.name)) + 1)
declare_values("an enum member", [Mode.ADD, Mode.MUL], lambda x, v: x + 3 if v is Mode.ADD else x * 3)
declare_values("an int enum member", [Level.LOW, Level.HIGH])
declare_values(
    "a datetime.timedelta", [datetime.timedelta(seconds=2), datetime.timedelta(seconds=5)], lambda x, v: x * v.seconds
)
declare_values("a pathlib.Path", [pathlib.Path("a/b"), pathlib.Path("a/bc")], lambda x, v: x * len(v.name))
declare_values("a class", [float, int, bool], lambda x, v: x * v(2.5))
declare_values("an exception class", [ValueError, KeyError], lambda x, v: x * (2 if issubclass(v, LookupError) else 3))
declare_values("a function of minigrad", [mg.relu, mg.tanh, mg.exp], lambda x, v: v(x))
declare_values("a builtin function", [max, min, sum], lambda x, v: x * v([1.0, 2.0, 4.0]))
declare_values("a lambda", [lambda x: x * 2, lambda x: x * 3], lambda x, v: v(x))
declare_values(
    "functools.partial", [functools.partial(mg.clamp, min=0.0), functools.partial(mg.clamp, max=0.5)], lambda x, v: v(x)
)
declare_values("a format string", ["{:.1f}", "{:.0f}"], lambda x, v: x * float(v.format(2.26)))
declare_values("a very long int", [2**60 + 1, 2**60 + 3], lambda x, v: x + v % 1000)
declare_values("a list that is replaced", [[1.0, 2.0], [1.0, 2.5], [4.0]], lambda x, v: sum([x * y for y in v]))
declare_values("a dict that is replaced", [{"a": 1.0}, {"a": 2.0}, {"b": 1.0}], lambda x, v: x * v.get("a", 5.0))
declare_values(
    "an NumPy array that is replaced",
    [np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])],
    lambda x, v: x * float(v.sum()),
)
declare_values("an 0-d array", [np.array(2.0), np.array(-0.5)], lambda x, v: x * float(v))
declare_values(
    "a device", [mg.device("numpy"), mg.device("cpu")], lambda x, v: (x + 1, str(mg.ones(1, device=v).device) == "cpu")
)
for _type in (
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
):
    _of = getattr(np, _type)
    declare_values(f"a NumPy {_type}", [_of(2), _of(3), _of(5)], lambda x, v: x * v.item())
    declare_values(f"a NumPy {_type} as an operand", [_of(2), _of(3), _of(5)])
declare_values("a NumPy bool", [np.True_, np.False_], lambda x, v: x * 2 if v else x * 3)
declare_values("a NumPy zero and minus zero", [np.float32(0.0), np.float32(-0.0)], lambda x, v: x.abs() * v)
declare_values("a NumPy str", [np.str_("tanh"), np.str_("exp")], lambda x, v: getattr(mg, v)(x))
declare_values(
    "a float and the same as NumPy's", [2.0, np.float32(2.0), np.float64(2.0), 2], lambda x, v: (x * v, mg.tensor(v))
)


@thing("a tensor that is replaced")
def _(world):
    return Thing([mg.tensor(2.0), mg.tensor(-0.5), mg.tensor([1.0, 2.0, 3.0])], times)


@thing("a tensor that is replaced by an equal one")
def _(world):
    values = [mg.tensor(2.0), mg.tensor(2.0)]

    def put(k):
        values[k].fill_(3.0 + k)

    return Thing(values, times, Knob(put, [0, 1], undone=False))


@thing("a tensor of another dtype")
def _(world):
    return Thing(
        [mg.tensor([2.0, 1.0, 0.5]), mg.tensor([2, 1, 5]), mg.tensor([2.0, 1.0, 0.5], dtype=mg.float64)], times
    )


@thing("a tensor on another device")
def _(world):
    return Thing(
        [mg.tensor(2.0), mg.tensor(3.0, device="cpu"), mg.tensor(5.0, device="numpy")], lambda x, v: (x, v + 1)
    )


@thing("a tensor that is written in place")
def _(world):
    value = mg.tensor([1.0, 2.0, 3.0])
    return Thing([value], times, Knob(value.fill_, [2.0, -0.5]))


@thing("a tensor whose data is assigned")
def _(world):
    tensor = mg.tensor([1.0, 2.0, 3.0])

    def put(value):
        tensor.data = mg.full((3,), value)

    return Thing([tensor], times, Knob(put, [2.0, -0.5]))


@thing("a tensor that shares memory with an array")
def _(world):
    behind = np.array([1.0, 2.0, 3.0], np.float32)
    return Thing([mg.from_numpy(behind)], times, Knob(behind.fill, [2.0, -0.5]))


@thing("a tensor whose base is written")
def _(world):
    base = mg.arange(6.0)
    return Thing([base[1:4]], times, Knob(base.fill_, [2.0, -0.5]))


@thing("a tensor that comes to require a gradient")
def _(world):
    tensor = mg.tensor([1.0, 2.0, 3.0])
    world.compared.append(tensor)

    def use(x, value):
        y = x * value
        if y.requires_grad:
            y.sum().backward()
        return y

    return Thing([tensor], use, Knob(tensor.requires_grad_, [False, True]))


@thing("a tensor whose gradient is read")
def _(world):
    tensor = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)

    def put(gradient):
        tensor.grad = None if gradient is None else mg.full((3,), gradient)

    return Thing([tensor], lambda x, v: x if v.grad is None else x * v.grad, Knob(put, [None, 2.0, 5.0]))


@thing("a list of tensors")
def _(world):
    tensors = [mg.tensor(1.0), mg.tensor(2.0)]

    def put(values):
        tensors[:] = [mg.tensor(value) for value in values]

    return Thing([tensors], lambda x, v: sum([x * y for y in v]), Knob(put, [[1.0, 2.0], [1.0], [3.0, 4.0, 5.0]]))


@thing("a dict of tensors")
def _(world):
    tensors = {"a": mg.tensor(1.0), "b": mg.tensor(2.0)}

    def put(values):
        tensors.clear()
        tensors.update({name: mg.tensor(value) for name, value in values.items()})

    states = [{"a": 1.0, "b": 2.0}, {"b": 2.0}, {"a": 3.0, "c": 1.0}]
    return Thing([tensors], lambda x, v: {name: x * y for name, y in v.items()}, Knob(put, states))


@thing("an array that is written in place")
def _(world):
    array_ = np.array([1.0, 2.0, 3.0])
    return Thing([array_], lambda x, v: x * float(v.sum()), Knob(array_.fill, [2.0, -0.5]))


@thing("an array that becomes a tensor in the step")
def _(world):
    array_ = np.array([1.0, 2.0, 3.0], np.float32)
    return Thing([array_], lambda x, v: x * mg.tensor(v), Knob(array_.fill, [2.0, -0.5]))


@thing("an array that is wrapped in the step")
def _(world):
    array_ = np.array([1.0, 2.0, 3.0], np.float32)
    return Thing([array_], lambda x, v: x * mg.from_numpy(v), Knob(array_.fill, [2.0, -0.5]))


@thing("a list that becomes a tensor in the step")
def _(world):
    floats = [1.0, 2.0, 3.0]

    def put(values):
        floats[:] = values

    return Thing([floats], lambda x, v: x * mg.tensor(v), Knob(put, [[1.0, 2.0, 3.0], [1.0, 2.0, 4.0], [5.0]]))


@thing("an array of bools as a mask")
def _(world):
    mask = np.array([True, False, True])
    return Thing([mask], lambda x, v: mg.where(mg.tensor(v), x, 0.0), Knob(mask.fill, [True, False]))


@thing("a bytearray")
def _(world):
    buffer = bytearray(b"ab")

    def put(value):
        buffer[0] = value

    return Thing([buffer], lambda x, v: x * v[0], Knob(put, [97, 3, 5]))


@thing("array.array")
def _(world):
    floats = array.array("d", [1.0, 2.0])

    def put(value):
        floats[0] = value

    return Thing([floats], lambda x, v: x * v[0], Knob(put, [1.0, 2.5]))


@thing("a memoryview")
def _(world):
    buffer = bytearray(b"ab")

    def put(value):
        buffer[0] = value

    return Thing([memoryview(buffer)], lambda x, v: x * v[0], Knob(put, [97, 3, 5]))


@thing("a Value")
def _(world):
    return Thing([mg.Value(2.0), mg.Value(-0.5)], lambda x, v: x * v.data)


@thing("a Value whose data is assigned")
def _(world):
    scalar = mg.Value(2.0)
    return Thing([scalar], lambda x, v: x * v.data, Knob(lambda new: setattr(scalar, "data", new), [2.0, -0.5]))


@thing("a module")
def _(world):
    return Thing([mg.nn.Linear(3, 2), mg.nn.Linear(3, 2), mg.nn.ReLU()], lambda x, v: v(x))


@thing("a generator of random numbers")
def _(world):
    values = [mg.Generator(1), mg.Generator(2)]
    world.compared.extend(values)
    return Thing(values, lambda x, v: x * mg.rand(3, generator=v))


@thing("an object whose operator is the user's")
def _(world):
    class Scaling:
        def __init__(self, by):
            self.by = by

        def __mul__(self, x):
            return x * self.by

        def __float__(self):
            return self.by

        def __bool__(self):
            return self.by > 0

        def __len__(self):
            return int(abs(self.by))

        def __eq__(self, other):
            return self.by == other

        __hash__ = None

    scaling = Scaling(2.0)
    return Thing(
        [scaling],
        lambda x, v: (v * x, x * float(v), x if v else -x, x * len(v), x if v == 2.0 else -x),
        Knob(lambda new: setattr(scaling, "by", new), [2.0, -3.0, 5.0]),
    )


@thing("a str whose methods choose")
def _(world):
    return Thing(["relu+tanh", "tanh", ""], lambda x, v: [getattr(mg, y)(x) for y in v.split("+") if y] or x)


@thing("a namedtuple")
def _(world):
    Point = collections.namedtuple("Point", "a b")
    return Thing([Point(1.0, 2.0), Point(1.0, 3.0)], lambda x, v: x * v.a + v.b)
