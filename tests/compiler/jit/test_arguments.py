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


def described_result(result):
    """Return a result as a string: nan equals itself there, and 0.0 is not -0.0."""
    return repr(pytree.tree_map(lambda x: (x.dtype, x.tolist()) if isinstance(x, mg.Tensor) else x, result))


def compare_calls(function, *calls, traces):
    """Call a function and its jitted version with each of the (args, kwargs), and compare the results."""
    jitted = mg.jit(function, max_traces=100)
    for args, kwargs in calls:
        expected, actual = function(*args, **kwargs), jitted(*args, **kwargs)
        assert described_result(actual) == described_result(expected)
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
def test_arguments_are_traced_once_for(name):
    function, make = STRUCTURES[name]
    compare_calls(function, *[((make(k),), {}) for k in range(1, 6)], traces=1)
    compare_calls(lambda *, argument: function(argument), *[((), {"argument": make(k)}) for k in range(1, 4)], traces=1)


def test_each_structure_has_its_own_trace():
    x, y = mg.ones(2), mg.zeros(2)
    arguments = [(x, y), [x, y], Batch(x, y), {"a": x, "b": y}, {"b": x, "a": y}, {"a": x, "b": None}, {"a": (x, y)}]
    arguments += [
        collections.OrderedDict(a=x, b=y),
        Frozen(x),
        Frozen(x, name="b"),
        {1: x},
        {True: x},
        {1.0: x},
        {-0.0: x},
    ]
    arguments += [{0.0: x}, collections.deque([x]), collections.deque([x], 1), (x, x), ((x,), y), None, ()]

    def described(tree):
        return pytree.tree_paths(pytree.tree_flatten(tree)[1]), type(tree).__name__

    compare_calls(described, *[((one,), {}) for one in [*arguments, *arguments[::-1]]], traces=len(arguments))


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
    values, step = scalars(), mg.jit(lambda x, value: (x * 2, repr(value)), max_traces=100)
    for _ in range(2):
        for value in values:
            result = step(mg.ones(1), value)
            assert (result[0].tolist(), result[1]) == ([2.0], repr(value))
    assert step.trace_count == len(values)
    for again in (
        float("1"),
        np.float64("nan"),
        np.array([1.0, np.nan]),
        Decimal("nan"),
        Fraction(2, 4),
        complex(0, math.nan),
    ):
        step(mg.ones(1), again)
    assert step.captures[len(values) :] == ["the first call with tensors of shapes (1,)"]  # for the float


def test_a_float_is_read_at_each_call_with_its_sign_nan_and_infinity():
    values = [0.5, 2.0, -0.0, 0.0, math.inf, -math.inf, math.nan, 1e-310, 1e30, 0.5]
    for function in (
        lambda x, by: x / by,
        lambda x, by: by * x,
        lambda x, by: x + (by - 1.0) ** 2,
        lambda x, by: x - abs(by),
    ):
        compare_calls(function, *[((mg.ones(2), by), {}) for by in values], traces=1)
    compare_calls(lambda x, *, by: (x * by, by, [by * 2]), *[((mg.ones(1),), {"by": by}) for by in values], traces=1)
    step = mg.jit(lambda x, by: (x, by))
    assert [type(step(mg.ones(1), by)[1]) for by in (1.0, 2.0, 3.0)] == [float] * 3


def test_each_outcome_of_reading_a_float_is_traced_once():
    def step(x, by):
        return x * by if by > 0.5 else x - by

    values = [0.25, 1.0, 0.125, 2.0, 0.5, math.nan, -0.0]
    jitted = compare_calls(step, *[((mg.ones(2), by), {}) for by in values * 2], traces=2)
    assert jitted.captures[1] == "the argument `by` changed"
    compare_calls(lambda x, by: x * math.sqrt(by), *[((mg.ones(2), by), {}) for by in (1.0, 4.0, 1.0, 4.0)], traces=2)
    signs = [((mg.ones(1), by), {}) for by in (0.0, -0.0, 0.0, -0.0)]
    compare_calls(lambda x, by: x * math.copysign(2.0, by), *signs, traces=2)
    compare_calls(
        lambda x, by: x * float(by), *[((mg.ones(1), by), {}) for by in (math.nan, math.nan, math.inf)], traces=2
    )
    compare_calls(lambda x, by: x[: int(by)], *[((mg.ones(4), by), {}) for by in (1.0, 1.5, 2.75, 2.0)], traces=2)


def test_computation_in_a_branch_not_taken_does_not_raise():
    compare_calls(
        lambda x, by: x * (1.0 / by) if by else x, *[((mg.ones(1), by), {}) for by in (2.0, 0.0, 4.0)], traces=2
    )
    step = mg.jit(lambda x, by: x * (1.0 / by))
    assert step(mg.ones(1), 2.0).item() == 0.5
    with pytest.raises(ZeroDivisionError):
        step(mg.ones(1), 0.0)
    assert step(mg.ones(1), 4.0).item() == 0.25


def test_floats_and_integers_are_not_confused():
    compare_calls(
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

        records = []
        for rate in (0.1, 0.05, 0.025, 0.1, 0.1):
            step(mg.ones(3, 3), rate)
            records.append((p.tolist(), optimizer.param_groups[0]["lr"], type(optimizer.param_groups[0]["lr"])))
        return records

    assert run(mg.jit) == run(lambda step: step)


class Object:
    def __init__(self, by):
        vars(self)["by"] = by

    def __eq__(self, other):
        return True

    __hash__ = None


def test_objects_are_compared_by_identity_despite_equality():
    one, other = Object(2.0), Object(3.0)
    compare_calls(lambda x, o: x * o.by, *[((mg.ones(1), o), {}) for o in (one, other, one, other)], traces=2)


def test_an_object_with_a_new_class_is_retraced():
    other = type("Other", (Object,), {"by": property(lambda self: 3.0)})
    one = Object(2.0)
    step = mg.jit(lambda x, o: x * o.by)
    assert [step(mg.ones(1), one).item() for _ in range(3)] == [2.0] * 3
    one.__class__ = other
    assert [step(mg.ones(1), one).item() for _ in range(3)] == [3.0] * 3


def generator_of_tensors():
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
    "a generator": (
        generator_of_tensors,
        r"`x` is a generator, and a replay would not call next\(\) on it.\n  Call it outside",
    ),
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
def test_refused_with_advice(name):
    make, words = REFUSED[name]
    with pytest.raises(CaptureError, match=words):
        mg.jit(lambda x: mg.ones(1))(make())


def test_errors_use_the_parameter_names():
    def step(first, *rest, key=None, **options):
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
    received = []

    def step(a, b):
        received.append((a, b))
        return a[0] * b["by"]

    a, b = [mg.ones(1)], {"by": 2.0}
    mg.jit(step)(a, b)
    assert received[0][0] is a
    assert received[0][1] is not b


def test_a_jitted_step_in_another_takes_its_floats():
    inner = mg.jit(lambda x, by: x * by)
    compare_calls(lambda x, by: inner(x, by + 1.0), *[((mg.ones(1), by), {}) for by in (1.0, 2.0, 3.0)], traces=1)


def test_the_check_of_the_last_trace_accepts_only_equal_keys():
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
        trace_count = len(double.captures)
        for _ in range(3):
            double(x, y)  # the last call has these arguments again
        assert len(double.captures) == trace_count
        return trace_count

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
