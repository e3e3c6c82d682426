"""Pytrees: every container round-trips, and structures are equal if everything but the leaves is."""

import collections
import dataclasses
import enum
import types
from collections.abc import Mapping
from typing import NamedTuple

import pytest

import minigrad as mg
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from minigrad.utils.pytree import (
    TreeSpec,
    register_pytree_node,
    tree_flatten,
    tree_map,
    tree_paths,
    tree_unflatten,
    type_sensitive_key,
)


class Point(NamedTuple):
    x: object
    y: object


class Noted(Point):
    """A named tuple with additional attributes."""


@dataclasses.dataclass
class Plain:
    x: object
    y: object = dataclasses.field(default=None, init=False)


@dataclasses.dataclass(frozen=True)
class Still:
    x: object
    y: object = dataclasses.field(default=None, init=False)


@dataclasses.dataclass(frozen=True)
class Frozen(Still):
    z: object = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    x: object
    __y: object = dataclasses.field(default=0, init=False)

    def __post_init__(self):
        object.__setattr__(self, "_Slotted__y", self.x)


class Base:
    __slots__ = ("empty", "first")


@dataclasses.dataclass
class Both(Base):
    """Slots of its base, and a dict; its `__init__` cannot be called with its contents."""

    total: dataclasses.InitVar[int]

    def __post_init__(self, total):
        self.first, self.second = total, [total]


class Table(Mapping):
    def __init__(self, *rows):
        self.rows = dict(rows)

    def __getitem__(self, key):
        return self.rows[key]

    def __iter__(self):
        return iter(self.rows)

    def __len__(self):
        return len(self.rows)


class Hiding(dict):
    """A dict with overridden methods that must not be called, since they hide its contents."""

    def __setitem__(self, key, value):
        pass

    def keys(self):
        return ()

    values = items = keys


class Listed(list):
    pass


class Kind(enum.Enum):
    ONE = (1, 2)


class Registered:
    def __init__(self, parts, name):
        self.parts, self.name = parts, name

    def __eq__(self, other):
        return (self.parts, self.name) == (other.parts, other.name)


register_pytree_node(Registered, lambda x: (x.parts, x.name), Registered)


def factory():
    return 7


def noted(cls, *items, **attributes):
    outputs = cls(*items)
    vars(outputs).update(attributes)
    return outputs


def with_y(x, y):
    vars(x)["y"] = y
    return x


CONTAINERS = {
    "tuple": ((1, 2), [1, 2]),
    "empty tuple": ((), []),
    "list": ([1, [2, 3]], [1, 2, 3]),
    "dict": ({"b": 1, "a": {"c": 2}}, [1, 2]),
    "OrderedDict": (collections.OrderedDict(b=1, a=2), [1, 2]),
    "defaultdict": (collections.defaultdict(factory, a=1), [1]),
    "Counter": (collections.Counter(a=2, b=1), [2, 1]),
    "deque": (collections.deque([1, 2], maxlen=3), [1, 2]),
    "named tuple": (Point(1, (2, 3)), [1, 2, 3]),
    "named tuple with an attribute": (noted(Noted, 1, 2, note=3), [1, 2, 3]),
    "dataclass": (with_y(Plain(1), 2), [1, 2]),
    "frozen dataclass that inherits": (with_y(Frozen(1), 2), [1, 3, 2]),
    "frozen dataclass with slots": (Slotted(4), [4, 4]),
    "dataclass with slots of its base": (Both(5), [5, 5]),
    "mapping": (Table(("a", 1), ("b", [2])), [1, 2]),
    "ChainMap": (collections.ChainMap({"a": 1}, {"a": 2}), [1, 2]),
    "UserDict": (collections.UserDict(a=1), [1]),
    "mappingproxy": (types.MappingProxyType({"a": 1}), [1]),
    "SimpleNamespace": (types.SimpleNamespace(a=1, b=(2,)), [1, 2]),
    "dict with methods of its own": (Hiding(a=1), [1]),
    "list with an attribute": (noted(Listed, [1], more=2), [1, 2]),
    "slice": (slice(1, None, 2), [1, 2]),
    "None": (None, []),
    "None in a list": ([None, 1], [1]),
    "registered": (Registered([1, (2,)], "n"), [1, 2]),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_round_trip(name):
    x, leaves = CONTAINERS[name]
    results, spec = tree_flatten(x)
    assert results == leaves
    assert spec.num_leaves == len(leaves)
    second = tree_unflatten(results, spec)
    assert (type(second), second) == (type(x), x)
    assert getattr(second, "__dict__", None) == getattr(x, "__dict__", None)
    assert second is not x or x in ((), None)
    assert tree_flatten(tree_map(str, x)) == ([str(leaf) for leaf in leaves], spec)
    options = tree_unflatten([f"{k}" for k in range(len(leaves))], spec)
    assert tree_flatten(options)[0] == [f"{k}" for k in range(len(leaves))]


def test_attributes_of_containers_round_trip():
    second = [tree_map(lambda x: x, CONTAINERS[name][0]) for name in ("defaultdict", "deque", "Counter", "ChainMap")]
    assert (second[0]["new"], second[1].maxlen, second[2]["none"], len(second[3].maps)) == (7, 3, 0, 2)
    slotted = tree_map(lambda x: x + 1, Slotted(4))
    assert (slotted.x, slotted._Slotted__y) == (5, 5)
    pair = tree_map(lambda x: x + 1, Both(5))
    assert (pair.first, pair.second, hasattr(pair, "empty")) == (6, [6], False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        tree_map(lambda x: x, Frozen(1)).x = 3
    result = tree_map(lambda x: x, noted(Listed, [1], more=2))
    assert (result, result.more, type(result)) == ([1], 2, Listed)


@pytest.mark.parametrize("mapping", [dict, collections.OrderedDict], ids=lambda mapping: mapping.__name__)
def test_dict_views_and_sets_round_trip(mapping):
    x = mapping(b=1, a=2)
    keys, values, items = [tree_map(lambda x: 10 * x, view) for view in (x.keys(), x.values(), x.items())]
    assert (type(keys), list(keys)) == (type(x.keys()), ["b", "a"])
    assert (type(values), list(values)) == (type(x.values()), [10, 20])
    assert (type(items), list(items)) == (type(x.items()), [("b", 10), ("a", 20)])
    for item in ({1, 2, 3}, frozenset((1, 2))):
        results = tree_map(lambda x: 10 * x, item)
        assert (type(results), results) == (type(item), {10 * x for x in item})


LEAVES = [1, 2.5, True, "text", b"b", 1j, object(), Kind.ONE, int, len, range(3)]


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda x: type(x).__name__)
def test_everything_else_is_a_leaf(leaf):
    leaves, spec = tree_flatten(leaf)
    assert leaves == [leaf]
    assert leaves[0] is leaf
    assert (repr(spec), tree_unflatten(["other"], spec)) == ("*", "other")


DIFFERENT = {
    "types": ((1, 2), [1, 2]),
    "lengths": ((1, 2), (1, 2, 3)),
    "nesting": ([[1], 2], [1, [2]]),
    "keys": ({"a": 1}, {"b": 1}),
    "order of keys": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "a key that is an integer and one that is a float": ({1: 0}, {1.0: 0}),
    "a key that is an integer and one that is a bool": ({1: 0}, {True: 0}),
    "signs of a key": ({0.0: 0}, {-0.0: 0}),
    "keys in tuples": ({(1, 2): 0}, {(1, 2.0): 0}),
    "default factories": (collections.defaultdict(list), collections.defaultdict(dict)),
    "lengths that a deque may have": (collections.deque([1], 2), collections.deque([1], 3)),
    "attributes": (types.SimpleNamespace(a=1), types.SimpleNamespace(b=1)),
    "None and a leaf": ([None], [1]),
    "contexts": (Registered([1], "n"), Registered([1], "m")),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_structures_differ_in(name):
    a, b = [tree_flatten(x)[1] for x in DIFFERENT[name]]
    assert a != b
    assert a == tree_flatten(DIFFERENT[name][0])[1]
    assert hash(a) == hash(tree_flatten(DIFFERENT[name][0])[1])


def test_structures_are_equal_where_only_leaves_differ():
    nan = {float("nan"): 1}, {float("nan"): 2}
    assert tree_flatten(nan[0])[1] == tree_flatten(nan[1])[1]
    assert tree_flatten([1, {"a": "b"}])[1] == tree_flatten([None.__class__, {"a": 2.5}])[1]
    assert tree_flatten(1)[1] != 1
    assert isinstance(tree_flatten(1)[1], TreeSpec)


def test_exact_distinguishes_types_and_values():
    from decimal import Decimal
    from fractions import Fraction

    values = [0, 0.0, -0.0, False, 1, 1.0, True, 0j, complex(-0.0, 0.0), complex(0.0, -0.0), float("nan"), float("inf")]
    values += [Decimal("1.0"), Decimal("1.00"), Decimal(0), Decimal("-0"), Fraction(1), "1", b"1", (1,), [1], (1.0,)]
    values += [None, frozenset((1,)), frozenset((1.0,)), (0.0, (1,)), (0.0, (True,)), Decimal("nan")]
    for j, x in enumerate(values):
        for k, y in enumerate(values):
            assert (type_sensitive_key(x) == type_sensitive_key(y)) == (j == k), (x, y)
    assert type_sensitive_key(Decimal("nan")) == type_sensitive_key(Decimal("nan"))


def test_is_leaf_stops_the_traversal():
    assert tree_flatten([(1, 2), [3]], lambda x: isinstance(x, tuple))[0] == [(1, 2), 3]
    assert tree_map(len, [(1, 2), (3,)], is_leaf=lambda x: isinstance(x, tuple)) == [2, 1]


def test_a_repeated_object_is_flattened_twice():
    shared = [1]
    leaves, spec = tree_flatten((shared, shared))
    assert leaves == [1, 1]
    assert tree_unflatten([2, 3], spec) == ([2], [3])


def test_a_circular_container_raises():
    x = [1]
    x.append({"again": x})
    with pytest.raises(ArgumentError, match=r"tree_flatten: a list contains itself.*\n  Remove the circular"):
        tree_flatten((x,))
    views = {}
    views["keys"] = views.values()
    with pytest.raises(ArgumentError, match="tree_flatten: a dict_values contains itself"):
        tree_flatten(views)
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ArgumentError, match="tree_flatten: a list is nested deeper than"):
        tree_flatten(deep)
    while deep:  # freeing it at once would recurse as deeply
        deep = deep.pop()


def test_paths_are_expressions():
    x = {"a": [1, Point(2, 3)], 4: types.SimpleNamespace(b=(5,)), "c": None}
    leaves, spec = tree_flatten(x)
    paths = tree_paths(spec, "x")
    assert paths == ["x['a'][0]", "x['a'][1].x", "x['a'][1].y", "x[4].b[0]"]
    assert [eval(path, {"x": x}) for path in paths] == leaves
    points = "list([0]: *, [1]: Point(.x: *, .y: *))"
    assert repr(spec) == f"dict(['a']: {points}, [4]: SimpleNamespace(.b: tuple([0]: *)), ['c']: NoneType())"


def test_tree_map_accepts_several_trees_of_equal_structure():
    assert tree_map(lambda *x: sum(x), {"a": [1]}, {"a": [10]}, {"a": [100]}) == {"a": [111]}
    with pytest.raises(
        ShapeError, match=r"tree_map: the tree structures list\(\[0\]: \*\) and tuple\(\[0\]: \*\) differ"
    ):
        tree_map(lambda x, y: x, [1], (1,))
    with pytest.raises(ShapeError, match=r"tree_unflatten: got 1 leaves but expected 2: tuple"):
        tree_unflatten([1], tree_flatten((1, 2))[1])


def test_only_unregistered_classes_can_be_registered():
    class Own:
        pass

    for cls in (Registered, dict, tuple, collections.deque):
        with pytest.raises(ArgumentError, match=f"register_pytree_node: {cls.__name__} is already registered"):
            register_pytree_node(cls, len, len)
    with pytest.raises(DTypeError, match="register_pytree_node: 3 is an int; expected a class"):
        register_pytree_node(3, len, len)
    with pytest.raises(DTypeError, match="register_pytree_node: 3 is an int; expected a callable"):
        register_pytree_node(Own, 3, len)
    with pytest.raises(DTypeError, match="register_pytree_node: 3 is an int; expected a callable"):
        register_pytree_node(Own, len, 3)
    assert tree_flatten(Own())[1].type is None
    assert mg.register_pytree_node is register_pytree_node


def test_registration_overrides_the_default_of_a_subclass():
    @dataclasses.dataclass
    class Cached:
        x: object
        cache: object = None

    register_pytree_node(Cached, lambda x: ([x.x], None), lambda children, _: Cached(*children))
    assert tree_map(lambda x: x + 1, Cached(1, 5)) == Cached(2)
