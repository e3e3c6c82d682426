"""Arguments of a jitted step: structures, scalars and objects select a trace, tensors and floats are inputs."""

import collections
import dataclasses
import enum
import math
import types
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.errors import CaptureError
from minigrad.utils import pytree

Batch = collections.namedtuple("Batch", "x y")


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: object
    scale: float = 1.0
    name: str = "a"


@dataclasses.dataclass(slots=True)
class Slotted:
    x: object
    scale: object = dataclasses.field(default=2.0, init=False)


class Table(collections.UserDict):
    pass


def elements(result):
    """Return a result as a string: nan equals itself there, and 0.0 is not -0.0."""
    return repr(pytree.tree_map(lambda x: (x.dtype, x.tolist()) if isinstance(x, mg.Tensor) else x, result))


def both(function, *calls, traces):
    """Call a function and its jitted version with each of the (args, kwargs), and compare the results."""
    jitted = mg.jit(function, max_traces=100)
    for args, kwargs in calls:
        expected, found = function(*args, **kwargs), jitted(*args, **kwargs)
        assert elements(found) == elements(expected)
    assert jitted.trace_count == traces, jitted.captures
    return jitted


STRUCTURES = {
    "named tuples": (lambda b: b.x * b.y, lambda k: Batch(mg.ones(2) * k, mg.full((2,), 2.0))),
    "dataclasses": (lambda c: c.x * c.scale, lambda k: Frozen(mg.ones(2) * k, 0.5 * k)),
    "dataclasses with slots": (lambda c: c.x * c.scale, lambda k: Slotted(mg.ones(2) * k)),
    "mappings": (lambda t: t["x"] * t["n"], lambda k: Table(x=mg.ones(2) * k, n=3)),
    "namespaces": (lambda o: o.x[0] * o.by, lambda k: types.SimpleNamespace(x=[mg.ones(2)], by=float(k))),
    "deques": (lambda q: sum(q, mg.zeros(2)), lambda k: collections.deque([mg.ones(2) * k, mg.ones(2)], maxlen=2)),
    "sets": (lambda s: sum(s, mg.zeros(2)), lambda k: {mg.ones(2) * k, mg.ones(2)}),
    "views": (lambda v: sum(v, mg.zeros(2)), lambda k: {"a": mg.ones(2) * k, "b": mg.ones(2)}.values()),
    "slices": (lambda s: mg.arange(5.0)[s], lambda k: slice(1, 4, None)),
    "nested ones": (
        lambda d: d["a"][0].x * d["a"][1]["by"][0] + d["b"][0].y,
        lambda k: {"a": [Batch(mg.ones(2) * k, None), {"by": (0.5 * k,)}], "b": (Batch(None, mg.ones(2)),)},
    ),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_step_is_traced_once_for_arguments_that_are(name):
    function, make = STRUCTURES[name]
    both(function, *[((make(k),), {}) for k in range(1, 6)], traces=1)
    both(lambda *, given: function(given), *[((), {"given": make(k)}) for k in range(1, 4)], traces=1)


def test_other_structures_are_traced_apart():
    x, y = mg.ones(2), mg.zeros(2)
    given = [(x, y), [x, y], Batch(x, y), {"a": x, "b": y}, {"b": x, "a": y}, {"a": x, "b": None}, {"a": (x, y)}]
    given += [collections.OrderedDict(a=x, b=y), Frozen(x), Frozen(x, name="b"), {1: x}, {True: x}, {1.0: x}, {-0.0: x}]
    given += [{0.0: x}, collections.deque([x]), collections.deque([x], 1), (x, x), ((x,), y), None, ()]

    def described(tree):
        return pytree.tree_paths(pytree.tree_flatten(tree)[1]), type(tree).__name__

    both(described, *[((one,), {}) for one in [*given, *given[::-1]]], traces=len(given))


def scalars():
    """Return values of which no two have the same type and value."""
    return [
        *[
            True,
            1,
            False,
            0,
            2**70,
            "1",
            "",
            b"1",
            None,
            ...,
            1j,
            complex(0.0, -0.0),
            complex(-0.0, 0.0),
            complex(0, math.nan),
        ],
        *[np.float64(1), np.float32(1), np.int64(1), np.int32(1), np.bool_(True), np.float64(0), np.float64(-0.0)],
        *[np.float64(math.nan), np.array(1.0), np.array(-0.0), np.array(0.0), np.array([1, 2]), np.array([[1, 2]])],
        *[np.array([1.0, math.nan]), np.array([1.0, 2.0], np.float32)],
        *[Decimal(1), Decimal("1.0"), Decimal("-0"), Decimal(0), Decimal("nan"), Fraction(1), Fraction(1, 2)],
        *[range(3), range(4), int, float, mg.float32, mg.float64, mg.device("cpu"), mg.relu, np.dtype("f4")],
        *[
            enum.Enum("Kind", "ONE").ONE,
            (1,),
            (True,),
            [1],
            {"a": 1},
            {"a": True},
            frozenset((1,)),
            slice(1),
            slice(True),
        ],
    ]


def test_scalars_are_values_of_their_types():
    """1 is not True, nor NumPy's 1.0; 0.0 is not -0.0; nan equals itself. Each value is traced once."""
    given, step = scalars(), mg.jit(lambda x, value: (x * 2, repr(value)), max_traces=100)
    for _ in range(2):
        for value in given:
            found = step(mg.ones(1), value)
            assert (found[0].tolist(), found[1]) == ([2.0], repr(value))
    assert step.trace_count == len(given)
    for again in (
        float("1"),
        np.float64("nan"),
        np.array([1.0, np.nan]),
        Decimal("nan"),
        Fraction(2, 4),
        complex(0, math.nan),
    ):
        step(mg.ones(1), again)
    assert step.captures[len(given) :] == ["the first call with tensors of shapes (1,)"]  # for the float


def test_a_float_is_read_at_each_call_with_its_sign_nan_and_infinity():
    values = [0.5, 2.0, -0.0, 0.0, math.inf, -math.inf, math.nan, 1e-310, 1e30, 0.5]
    for function in (
        lambda x, by: x / by,
        lambda x, by: by * x,
        lambda x, by: x + (by - 1.0) ** 2,
        lambda x, by: x - abs(by),
    ):
        both(function, *[((mg.ones(2), by), {}) for by in values], traces=1)
    both(lambda x, *, by: (x * by, by, [by * 2]), *[((mg.ones(1),), {"by": by}) for by in values], traces=1)
    step = mg.jit(lambda x, by: (x, by))
    assert [type(step(mg.ones(1), by)[1]) for by in (1.0, 2.0, 3.0)] == [float] * 3


def test_where_python_looks_at_a_float_each_answer_is_traced_once():
    def step(x, by):
        return x * by if by > 0.5 else x - by

    values = [0.25, 1.0, 0.125, 2.0, 0.5, math.nan, -0.0]
    jitted = both(step, *[((mg.ones(2), by), {}) for by in values * 2], traces=2)
    assert jitted.captures[1] == "the argument `by` changed"
    both(lambda x, by: x * math.sqrt(by), *[((mg.ones(2), by), {}) for by in (1.0, 4.0, 1.0, 4.0)], traces=2)
    signs = [((mg.ones(1), by), {}) for by in (0.0, -0.0, 0.0, -0.0)]
    both(lambda x, by: x * math.copysign(2.0, by), *signs, traces=2)
    both(lambda x, by: x * float(by), *[((mg.ones(1), by), {}) for by in (math.nan, math.nan, math.inf)], traces=2)
    both(lambda x, by: x[: int(by)], *[((mg.ones(4), by), {}) for by in (1.0, 1.5, 2.75, 2.0)], traces=2)


def test_what_is_computed_behind_a_branch_that_is_not_taken_raises_nothing():
    both(lambda x, by: x * (1.0 / by) if by else x, *[((mg.ones(1), by), {}) for by in (2.0, 0.0, 4.0)], traces=2)
    step = mg.jit(lambda x, by: x * (1.0 / by))
    assert step(mg.ones(1), 2.0).item() == 0.5
    with pytest.raises(ZeroDivisionError):
        step(mg.ones(1), 0.0)
    assert step(mg.ones(1), 4.0).item() == 0.25


def test_floats_and_integers_are_not_confused():
    both(
        lambda x, by: (x * by, by), *[((mg.ones(1, dtype=mg.int64), by), {}) for by in (2, 2.0, True, 2, 3.0)], traces=3
    )


@pytest.mark.parametrize("kind", ["SGD", "Adam", "Muon"])
def test_an_option_of_an_optimizer_may_be_an_argument(kind):
    def run(wrap):
        mg.manual_seed(3)
        p = mg.randn(3, 3).requires_grad_()
        optimizer = getattr(mg.optim, kind)([p], lr=0.1)

        @wrap
        def step(x, rate):
            optimizer.param_groups[0]["lr"] = rate
            optimizer.zero_grad()
            (p * x).square().sum().backward()
            optimizer.step()

        found = []
        for rate in (0.1, 0.05, 0.025, 0.1, 0.1):
            step(mg.ones(3, 3), rate)
            found.append((p.tolist(), optimizer.param_groups[0]["lr"], type(optimizer.param_groups[0]["lr"])))
        return found

    assert run(mg.jit) == run(lambda step: step)


class Object:
    def __init__(self, by):
        vars(self)["by"] = by

    def __eq__(self, other):
        return True

    __hash__ = None


def test_objects_are_known_by_identity_also_where_they_say_that_they_are_equal():
    one, other = Object(2.0), Object(3.0)
    both(lambda x, o: x * o.by, *[((mg.ones(1), o), {}) for o in (one, other, one, other)], traces=2)


def test_an_object_whose_class_was_exchanged_is_another():
    other = type("Other", (Object,), {"by": property(lambda self: 3.0)})
    one = Object(2.0)
    step = mg.jit(lambda x, o: x * o.by)
    assert [step(mg.ones(1), one).item() for _ in range(3)] == [2.0] * 3
    one.__class__ = other
    assert [step(mg.ones(1), one).item() for _ in range(3)] == [3.0] * 3


def made():
    yield mg.ones(1)


class Foreign:
    """A tensor of another library."""

    def __array__(self, dtype=None, copy=None):
        return np.ones(2)


CYCLE = []
CYCLE.append(CYCLE)
REFUSED = {
    "an array": (
        lambda: np.ones((5, 4)),
        r"`x` is a NumPy array of shape \(5, 4\).*\n  Convert it to a tensor: mg.tensor",
    ),
    "an array of objects": (lambda: np.array([object()]), "`x` is a NumPy array"),
    "a generator": (made, r"`x` is a generator, and a replay would not call next\(\) on it.\n  Call it outside"),
    "an iterator": (lambda: iter([1]), "`x` is a list_iterator, and a replay"),
    "bytes that can be written": (lambda: bytearray(b"1"), "`x` is a bytearray, whose bytes a replay would not read"),
    "a tensor of another library": (
        Foreign,
        r"`x` is a Foreign, whose elements.*\n  Convert it to a tensor: mg.tensor",
    ),
    "an array in a dict": (lambda: {"a": [np.ones(40)]}, r"`x\['a'\]\[0\]` is a NumPy array"),
    "a cycle": (
        lambda: CYCLE,
        r"jit: of the arguments, a list contains itself, so that it has infinitely many leaves\.",
    ),
    "a tensor with a graph": (
        lambda: [mg.ones(2, requires_grad=True) * 2],
        r"`x\[0\]`, of shape \(2,\), has a grad_fn",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_what_to_do_is(name):
    make, words = REFUSED[name]
    with pytest.raises(CaptureError, match=words):
        mg.jit(lambda x: mg.ones(1))(make())


def test_arguments_are_named_as_the_function_names_them():
    def step(first, *rest, key=None, **more):
        return mg.ones(1)

    wrong = np.ones(40)
    for args, kwargs, name in [
        ((wrong,), {}, "first"),
        ((1, 2, [wrong]), {}, r"rest\[1\]\[0\]"),
        ((1,), {"key": Batch(1, wrong)}, r"key\.y"),
        ((1,), {"other": wrong}, "other"),
    ]:
        with pytest.raises(CaptureError, match=f"jit: the argument `{name}` is a NumPy array"):
            mg.jit(step)(*args, **kwargs)
    with pytest.raises(CaptureError, match=r"the argument `arguments\[0\]` is a NumPy array"):
        mg.jit(max)(wrong)


def append(x, tree):
    tree.append(x)


def put(x, tree):
    tree["more"] = x


def exchange(x, tree):
    tree["x"] = tree["x"] * 2


def assign(x, tree):
    tree.x = x


CHANGED = {
    "a list": (append, lambda: [1.5]),
    "a dict": (put, dict),
    "a tensor of a dict": (exchange, lambda: {"x": mg.ones(1)}),
    "a dataclass": (assign, lambda: Slotted(mg.ones(1))),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_step_that_changes_a_container_among_its_arguments_is_refused(name):
    change, tree = CHANGED[name]

    def step(x, tree):
        change(x, tree)
        return x

    with pytest.raises(CaptureError, match=r"jit: the step mutates its argument `tree`, a \w+, and a replay would not"):
        mg.jit(step)(mg.ones(1), tree())


def test_tensors_in_containers_may_be_written():
    def step(state):
        state["total"].add_(state["by"])
        return state["total"] * 1

    total = {"total": mg.zeros(2), "by": 0.5}
    jitted = mg.jit(step)
    assert [jitted(total).tolist() for _ in range(4)] == [[0.5] * 2, [1.0] * 2, [1.5] * 2, [2.0] * 2]
    assert jitted.trace_count == 1


def test_an_argument_without_floats_is_the_object_that_was_given():
    seen = []

    def step(a, b):
        seen.append((a, b))
        return a[0] * b["by"]

    a, b = [mg.ones(1)], {"by": 2.0}
    mg.jit(step)(a, b)
    assert seen[0][0] is a
    assert seen[0][1] is not b


def test_a_jitted_step_in_another_takes_its_floats():
    inner = mg.jit(lambda x, by: x * by)
    both(lambda x, by: inner(x, by + 1.0), *[((mg.ones(1), by), {}) for by in (1.0, 2.0, 3.0)], traces=1)


def test_arguments_like_the_last_ones_are_known_at_once_and_others_are_not():
    """Arguments like those of the last call skip the lookup of a trace; any difference is noticed."""

    @mg.jit
    def double(x, y):
        return (x + y) * 2

    x, y = mg.ones(2, 4) * 1, mg.ones(2, 4) * 1
    for _ in range(3):
        double(x, y)
    assert len(double.captures) == 1

    def captured(*arguments):
        expected = (arguments[0] + arguments[1]) * 2
        assert double(*arguments).tolist() == expected.tolist()
        found = len(double.captures)
        for _ in range(3):
            double(x, y)  # the last call has these arguments again
        assert len(double.captures) == found
        return found

    assert captured(y, x) == 1
    assert captured(x, x) == 2
    assert captured(x.T, y.T) == 3
    assert captured(x, mg.ones(2, 4, requires_grad=True)) == 4
    assert captured(x, mg.ones(2, 4, dtype=mg.float64)) == 5
    assert captured(x, mg.ones(4)) == 6
    assert captured(x, 1.0) == 7
    with mg.no_grad():
        assert captured(x, y) == 8
    whole = mg.ones(4, 4) * 1
    assert captured(whole[:2], whole[2:]) == 8
    assert captured(whole[:2], whole[:2]) == 9
    with pytest.raises(CaptureError, match="has a grad_fn, so it is not a leaf"):
        double(x, mg.ones(2, 4, requires_grad=True) * 2)
