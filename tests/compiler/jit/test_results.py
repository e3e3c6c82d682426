"""Results of a jitted step: containers are rebuilt around new tensors, and what cannot be is refused by name."""

import collections
import dataclasses
import functools
import gc
import types
import weakref

import pytest

import minigrad as mg
from minigrad.core.errors import CaptureError
from minigrad.utils.pytree import register_pytree_node, tree_flatten, tree_map

Pair = collections.namedtuple("Pair", "y n")


@dataclasses.dataclass
class Plain:
    y: object
    extra: list = dataclasses.field(default_factory=list, init=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    y: object
    twice: object = dataclasses.field(default=None, init=False)

    def __post_init__(self):
        object.__setattr__(self, "twice", self.y * 2)


class Output(collections.OrderedDict):
    """Output class as in some libraries: entries are also attributes."""

    def __setitem__(self, name, value):
        super().__setitem__(name, value)
        setattr(self, name, value)


class Registered:
    def __init__(self, y, note=None):
        self.y, self.note = y, note


class Opaque:
    __slots__ = ("y",)

    def __init__(self, y):
        self.y = y


register_pytree_node(Registered, lambda x: ([x.y], x.note), lambda children, note: Registered(children[0], note))


def counted(x):
    counts = collections.defaultdict(list)
    counts["a"].append(x * 2)
    return counts


def filled(x):
    plain = Plain(x * 1)
    plain.extra.append((x * 3, None))
    return plain


RETURNED = {
    "a tensor": lambda x: x * 1,
    "a tuple": lambda x: (x * 1, 3, "text", None, x.exp()),
    "a list in a dict": lambda x: {"b": [x * 2, [x * 3]], "a": x},
    "an OrderedDict": lambda x: collections.OrderedDict(b=x * 1, a=2.5),
    "a defaultdict": counted,
    "a Counter": lambda x: collections.Counter(a=x * 1),
    "a deque": lambda x: collections.deque([x * 1, x * 2, x * 3], maxlen=2),
    "a named tuple": lambda x: Pair(x * 1, Pair(x * 2, 3)),
    "a named tuple of the library": lambda x: x.max(0),
    "a dataclass": filled,
    "a frozen dataclass with slots": lambda x: Slotted(x * 1),
    "a namespace": lambda x: types.SimpleNamespace(y=x * 1, deep=types.SimpleNamespace(z=[x * 2])),
    "a mapping": lambda x: collections.UserDict(y=x * 1),
    "a proxy": lambda x: types.MappingProxyType({"y": x * 1}),
    "several mappings": lambda x: collections.ChainMap({"y": x * 1}, {"y": x * 2}),
    "keys": lambda x: {"y": x * 1, "z": 2}.keys(),
    "values": lambda x: {"y": x * 1, "z": x * 2}.values(),
    "items": lambda x: collections.OrderedDict(y=x * 1, z=x * 2).items(),
    "a set": lambda x: {x * 1},
    "a slice": lambda x: slice(x * 1, None),
    "a dict with attributes": lambda x: Output(y=x * 1, z=(x * 2,)),
    "a registered class": lambda x: [Registered(x * 1, "note")],
    "nothing": lambda x: None,
    "types": lambda x: (x.dtype, x.device, mg.float32, int),
}


def described(tree):
    leaves, spec = tree_flatten(tree, lambda x: isinstance(x, mg.Tensor))
    return repr(spec), [x.tolist() if isinstance(x, mg.Tensor) else x for x in leaves]


@pytest.mark.parametrize("name", RETURNED)
def test_results_are_rebuilt_around_new_tensors_for(name):
    function = RETURNED[name]
    jitted, earlier = mg.jit(function), []
    for k in range(1, 6):
        x = mg.tensor([1.0, float(k)])
        result = jitted(x)
        assert type(result) is type(function(x))
        assert described(result) == described(function(x))
        assert not any(x.requires_grad for x in tree_flatten(result)[0] if isinstance(x, mg.Tensor))
        earlier.append((result, described(result)))
    assert all(described(result) == then for result, then in earlier)  # earlier results are unchanged
    assert jitted.trace_count == 1


def test_a_returned_container_may_be_mutated():
    step = mg.jit(lambda x: {"y": x * 2, "list": [x], "set": {1}, "number": 3})
    for _ in range(4):
        result = step(mg.ones(1))
        assert (result["y"].tolist(), len(result["list"]), result["set"], result["number"]) == ([2.0], 1, {1}, 3)
        result["list"].append(3)
        result["set"].add(2)
        result["number"] = None
        result["y"].zero_()


def test_attributes_and_defaults_are_preserved():
    step = mg.jit(lambda x: (Output(y=x * 2), counted(x), collections.deque([x], maxlen=1), Slotted(x)))
    for _ in range(3):
        output, attributes, queue, slotted = step(mg.ones(1))
        assert (output.y is output["y"], output.y.tolist(), queue.maxlen) == (True, [2.0], 1)
        assert (attributes["new"], slotted.twice.tolist()) == ([], [2.0])
        with pytest.raises(dataclasses.FrozenInstanceError):
            slotted.y = 3


def test_the_same_tensor_is_returned_where_the_step_returns_the_same():
    step = mg.jit(lambda x: (lambda y: (y, {"y": y}, y * 1))(x * 2))
    for _ in range(3):
        a, b, c = step(mg.ones(1))
        assert a is b["y"]
        assert a is not c


def test_a_returned_float_is_one():
    step = mg.jit(lambda x, by: {"by": (by, -by, by > 0.0), by: by * 2, "sum": sum([by, 1.0])})
    for by in (0.5, 0.25, 0.5):
        result = step(mg.ones(1), by)
        assert result == {"by": (by, -by, True), by: by * 2, "sum": by + 1.0}
        assert [type(x) for x in result] == [str, float, str]
        assert [type(x) for x in tree_flatten(result)[0]] == [float, float, bool, float, float]


class Cell:
    """An object that contains a list with an object."""

    def __init__(self, y):
        self.inner = types.SimpleNamespace(parts=[Opaque(y)])


def closed_over(y):
    return lambda: y


def yielding(y):
    yield y


def default(y):
    def function(y=y):
        return y

    return function


def model(x):
    module = mg.nn.Linear(1, 1)
    module.weight = mg.nn.Parameter(x * 1)
    return module


REFUSED = {
    "an object": (lambda x: Opaque(x * 1), "an Opaque with tensors"),
    "an object in a tuple": (lambda x: (1, {"a": Opaque(x * 1)}), "an Opaque with tensors"),
    "an object in a list in an object": (lambda x: Cell(x * 1), "a Cell with tensors"),
    "an object in a dataclass": (lambda x: Plain(Opaque(x * 1)), "an Opaque with tensors"),
    "an object with an argument": (Opaque, "an Opaque with tensors"),
    "a function that closes over one": (lambda x: closed_over(x * 1), "a function with tensors"),
    "a function with a default": (lambda x: default(x * 1), "a function with tensors"),
    "a partial function": (lambda x: functools.partial(max, x * 1), "a partial with tensors"),
    "a method of a tensor": (lambda x: (x * 1).sum, "a method with tensors"),
    "a factory of defaults": (
        lambda x: collections.defaultdict(closed_over(x * 1)),
        "a defaultdict with a tensor in its keys",
    ),
    "a key": (lambda x: {x * 1: 1}, "a dict with a tensor in its keys"),
    "a module that the step makes": (model, "a Linear with tensors"),
    "a generator": (lambda x: yielding(x * 1), r"a generator, which can be consumed only once.\n  Return list\(x\)"),
    "a map": (lambda x: map(abs, [x * 1]), "a map, which can be consumed only once"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_type_and_advice(name):
    function, words = REFUSED[name]
    with pytest.raises(CaptureError, match=f"jit: the step returns {words}") as caught:
        mg.jit(function)(mg.ones(1))
    if "with tensors" in words:
        assert "register_pytree_node(" in str(caught.value)


def test_an_object_with_a_float_of_the_arguments_is_refused_too():
    with pytest.raises(CaptureError, match="an Opaque with tensors or float arguments"):
        mg.jit(lambda x, by: Opaque([by * 2]))(mg.ones(1), 0.5)
    step = mg.jit(lambda x, by: Registered(x * by, "note"))
    assert [step(mg.ones(1), by).y.item() for by in (1.0, 2.0)] == [1.0, 2.0]


def test_outer_modules_optimizers_and_plain_objects_can_be_returned():
    net, note = mg.nn.Linear(1, 1), object()
    optimizer = mg.optim.SGD(net.parameters(), lr=0.1)
    step = mg.jit(lambda x: (net, optimizer, note, net.forward, x * 1))
    for _ in range(3):
        result = step(mg.ones(1))
        assert [a is b for a, b in zip(result, (net, optimizer, note), strict=False)] == [True] * 3
        assert result[3] == net.forward


class Strict:
    def __init__(self, y):
        self.y = y


def broken(children, context):
    raise ValueError("not like this")


class Odd:
    def __init__(self, y):
        self.y = y


register_pytree_node(Strict, lambda x: ([x.y], None), broken)
register_pytree_node(Odd, lambda x: ([x.y], None), lambda children, _: Odd(children[0].detach()))


def test_what_cannot_be_built_again_is_named():
    with pytest.raises(CaptureError, match=r"jit: a Strict cannot be rebuilt .*: ValueError: not like this") as caught:
        mg.jit(lambda x: [Strict(x * 1)])(mg.ones(1))
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(CaptureError, match="jit: the step returns a list, which has other leaves after it is rebuilt"):
        mg.jit(lambda x: [Odd(x * 1)])(mg.ones(1))


def test_a_cycle_is_refused():
    def step(x):
        cycle = [x * 1]
        cycle.append(cycle)
        return cycle

    with pytest.raises(
        CaptureError, match="jit: of what the step returns, a list contains itself, so that it has infinitely many"
    ):
        mg.jit(step)(mg.ones(1))


def test_returned_tensors_have_the_gradients_of_the_step():
    def owned(x):
        leaf = (x * 1).detach().requires_grad_()
        (leaf * leaf).sum().backward()
        return leaf, leaf * 1, {"grad": leaf.grad}

    def recorded(x):
        leaf = x.detach().clone().requires_grad_()
        y = leaf * 3
        y.retain_grad()
        (y * y).sum().backward()
        return [y]

    for function in (owned, recorded):
        step, plain = mg.jit(function), function
        for k in range(1, 5):
            x = mg.full((2,), float(k))
            actual, expected = tree_flatten(step(x))[0], tree_flatten(plain(x))[0]
            assert [y.tolist() for y in actual] == [y.tolist() for y in expected]
            grads = [[None if y.grad is None else y.grad.tolist() for y in all_of] for all_of in (actual, expected[:1])]
            assert grads[0][0] == grads[1][0]
            assert grads[0][0] is not None
            assert not actual[0].requires_grad


def test_returned_tensors_have_no_earlier_gradient():
    w = mg.ones(1, requires_grad=True)
    step = mg.jit(lambda: w * 1)
    w.grad = mg.ones(1)
    assert [step().grad for _ in range(3)] == [None] * 3


def test_results_and_their_graph_are_not_kept_alive():
    w = mg.ones(3, requires_grad=True)
    references = []

    def step(x):
        y = (w * x).exp()
        references.append(weakref.ref(y))
        return {"y": y}

    jitted = mg.jit(step)
    jitted(mg.ones(3))
    gc.collect()
    assert references[0]() is None
    assert jitted(mg.ones(3))["y"].shape == (3,)
    assert tree_map(type, jitted(mg.ones(3))) == {"y": mg.Tensor}
