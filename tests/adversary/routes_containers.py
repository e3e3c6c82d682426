"""Routes through containers: those of the standard library, user-defined ones, and nested ones."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import enum
import heapq
import os
import queue
import types
from functools import partial
from typing import Any, NamedTuple

from adversary import Knob, Scene, route, scene


def item_route(make, key="thing", read=None):
    """Return a route through a container that ``make(value)`` returns, whose item `key` is set."""
    read = read or (lambda container: container[key])

    def build(world, use, value):
        container = make(value)
        return lambda x: use(x, read(container)), partial(container.__setitem__, key)

    return build


def attribute_route(make, put=setattr):
    """Return a route through an object that ``make(value)`` returns, whose attribute `thing` is set."""

    def build(world, use, value):
        container = make(value)
        return lambda x: use(x, container.thing), partial(put, container, "thing")

    return build


def rebinding_route(make, read):
    """Return a route through an immutable container, which is replaced."""

    def build(world, use, value):
        container = make(value)

        def put(new):
            nonlocal container
            container = make(new)

        return lambda x: use(x, read(container)), put

    return build


class UserMapping(collections.abc.MutableMapping):
    """A user-defined mapping."""

    def __init__(self, **items):
        self.items_ = items

    def __getitem__(self, key):
        return self.items_[key]

    def __setitem__(self, key, value):
        self.items_[key] = value

    def __delitem__(self, key):
        del self.items_[key]

    def __iter__(self):
        return iter(self.items_)

    def __len__(self):
        return len(self.items_)


class UserSequence(collections.abc.Sequence):
    """A user-defined sequence."""

    def __init__(self, *items):
        self.items_ = list(items)

    def __getitem__(self, key):
        return self.items_[key]

    def __setitem__(self, key, value):
        self.items_[key] = value

    def __len__(self):
        return len(self.items_)


class DictSubclass(dict):
    """A dict whose items are readable as attributes too."""

    __getattr__ = dict.__getitem__


@dataclasses.dataclass
class DataHolder:
    thing: Any


@dataclasses.dataclass(slots=True)
class SlottedHolder:
    thing: Any


@dataclasses.dataclass(frozen=True)
class FrozenHolder:
    thing: Any


class NamedHolder(NamedTuple):
    thing: Any


CONTAINERS = {
    "a list": item_route(lambda v: [0, v], 1),
    "a list that is iterated": item_route(lambda v: [v], 0, lambda container: next(iter([*container]))),
    "a list by a negative index": item_route(lambda v: [0, v], 1, lambda container: container[-1]),
    "a dict": item_route(lambda v: {"thing": v}),
    "dict.get": item_route(lambda v: {"thing": v}, read=lambda container: container.get("thing", 1.0)),
    "dict.items": item_route(lambda v: {"thing": v}, read=lambda container: dict(container.items())["thing"]),
    "dict.values": item_route(lambda v: {"thing": v}, read=lambda container: list(container.values()).pop()),
    "a dict unpacked into keywords": item_route(
        lambda v: {"thing": v}, read=lambda container: (lambda *, thing: thing)(**container)
    ),
    "a list unpacked into arguments": item_route(lambda v: [v], 0, lambda container: (lambda thing: thing)(*container)),
    "a match statement": item_route(lambda v: {"thing": v}, read=lambda container: match_thing(container)),
    "collections.deque": item_route(lambda v: collections.deque([0, v]), 1),
    "collections.OrderedDict": item_route(lambda v: collections.OrderedDict(thing=v)),
    "collections.defaultdict": item_route(lambda v: collections.defaultdict(int, thing=v)),
    "collections.Counter": item_route(lambda v: collections.Counter({"thing": v})),
    "collections.ChainMap": item_route(lambda v: collections.ChainMap({}, {"thing": v})),
    "collections.UserDict": item_route(lambda v: collections.UserDict(thing=v)),
    "collections.UserList": item_route(lambda v: collections.UserList([v]), 0),
    "a mapping of the user's": item_route(lambda v: UserMapping(thing=v)),
    "a sequence of the user's": item_route(lambda v: UserSequence(v), 0),
    "a subclass of dict": item_route(lambda v: DictSubclass(thing=v), read=lambda container: container.thing),
    "argparse.Namespace": attribute_route(lambda v: argparse.Namespace(thing=v)),
    "a dataclass": attribute_route(DataHolder),
    "a dataclass with slots": attribute_route(SlottedHolder),
    "a frozen dataclass": attribute_route(FrozenHolder, object.__setattr__),
    "a frozen dataclass that is replaced": rebinding_route(FrozenHolder, lambda container: container.thing),
    "a namedtuple that is replaced": rebinding_route(NamedHolder, lambda container: container.thing),
    "a tuple that is replaced": rebinding_route(lambda v: (0, v), lambda container: container[1]),
    "a tuple in a list in a dict that is replaced": rebinding_route(
        lambda v: {"a": [(0, v)]}, lambda container: container["a"][0][1]
    ),
    "a dict by a variable": rebinding_route(lambda v: {"a": 0, "b": v}, lambda container: container[max(container)]),
}
for _name, _route in CONTAINERS.items():
    route(_name)(_route)


def match_thing(container):
    match container:
        case {"thing": thing}:
            return thing
    return None


@route("a list in a dict in a tuple in an object")
def _(world, use, value):
    container = types.SimpleNamespace(inner=({"things": [0, [value]]}, 1))

    def put(new):
        container.inner[0]["things"][1][0] = new

    return lambda x: use(x, container.inner[0]["things"][1][0]), put


@route("the map before others in collections.ChainMap")
def _(world, use, value):
    first, second = {"thing": value}, {"thing": value}
    container = collections.ChainMap(first, second)

    def put(new):
        if "thing" in first:
            del first["thing"]
            second["thing"] = new
        else:
            first["thing"] = new

    return lambda x: use(x, container["thing"]), put


@route("types.MappingProxyType")
def _(world, use, value):
    behind = {"thing": value}
    container = types.MappingProxyType(behind)
    return lambda x: use(x, container["thing"]), partial(behind.__setitem__, "thing")


@route("a view of a dict that was kept")
def _(world, use, value):
    behind = {"thing": value}
    container = behind.values()
    return lambda x: use(x, list(container).pop()), partial(behind.__setitem__, "thing")


@route("the value of an enum member")
def _(world, use, value):
    Choice = enum.Enum("Choice", {"THING": object()})
    Choice.THING._value_ = value
    return lambda x: use(x, Choice.THING.value), partial(setattr, Choice.THING, "_value_")


@route("an attribute of an enum member")
def _(world, use, value):
    Choice = enum.Enum("Choice", ["A"])
    Choice.A.thing = value
    return lambda x: use(x, Choice["A"].thing), partial(setattr, Choice.A, "thing")


@route("a heap")
def _(world, use, value):
    container = [(0, value)]

    def put(new):
        heapq.heappop(container)
        heapq.heappush(container, (0, new))

    return lambda x: use(x, heapq.nsmallest(1, container)[0][1]), put


@route("the queue behind queue.Queue")
def _(world, use, value):
    container = queue.Queue()
    container.put(value)

    def put(new):
        container.get()
        container.put(new)

    return lambda x: use(x, container.queue[0]), put


def container_scene(name, start, states, put, read):
    """Declare a scene: a container of floats that takes several states, and what the step reads from it."""

    @scene(f"{name}")
    def _(world):
        container = start()
        return Scene(lambda x: x * read(container), Knob(lambda state: put(container, state), states))


def refill(container, state):
    container.clear()
    (container.update if hasattr(container, "update") else container.extend)(state)


LISTS = [[1.0, 2.0], [1.0, 2.0, 4.0], [], [2.0, 1.0], [1.0, 2.0]]
DICTS = [{"a": 1.0, "b": 2.0}, {"b": 2.0, "a": 1.0}, {"a": 1.0}, {"a": 1.0, "b": 2.0, "c": 3.0}]
READS = {
    "len of a list": (list, LISTS, lambda items: len(items) + 0.5),
    "sum of a list": (list, LISTS, lambda items: sum(items) + 0.5),
    "a list in a condition": (list, LISTS, lambda items: 2.0 if items else 3.0),
    "membership in a list": (list, LISTS, lambda items: 2.0 if 4.0 in items else 3.0),
    "max of a list with a default": (list, LISTS, lambda items: max(items, default=7.0)),
    "a loop over a list": (list, LISTS, lambda items: float("".join(f"{int(x)}" for x in items) or 0)),
    "enumerate of a list": (list, LISTS, lambda items: sum([k * x for k, x in enumerate(items)]) + 0.5),
    "zip of a list": (list, LISTS, lambda items: sum([a * b for a, b in zip(items, (3.0, 5.0, 7.0), strict=False)])),
    "sorted of a list": (list, LISTS, lambda items: [*sorted(items), 5.0][0]),
    "reversed of a list": (list, LISTS, lambda items: [*reversed(items), 5.0][0]),
    "a slice of a list": (list, LISTS, lambda items: sum(items[1:]) + 0.5),
    "equality of lists": (list, LISTS, lambda items: 2.0 if items == [1.0, 2.0] else 3.0),
    "list.index": (list, LISTS, lambda items: items.index(2.0) + 0.5 if 2.0 in items else 9.0),
    "list.count": (list, LISTS, lambda items: items.count(1.0) + 0.5),
    "len of a deque": (collections.deque, LISTS, lambda items: len(items) + 0.5),
    "len of a set": (set, [{1, 2}, {1}, {1, 2, 3}, set()], lambda items: len(items) + 0.5),
    "membership in a set": (set, [{1, 2}, {1}, {2, 3}, set()], lambda items: 2.0 if 2 in items else 3.0),
    "the difference of sets": (set, [{1, 2}, {1}, {2, 3}, set()], lambda items: len(items - {1}) + 0.5),
    "len of a dict": (dict, DICTS, lambda items: len(items) + 0.5),
    "membership in a dict": (dict, DICTS, lambda items: 2.0 if "b" in items else 3.0),
    "the order of a dict": (dict, DICTS, lambda items: 2.0 if list(items).index("a") == 0 else 3.0),
    "the keys of a dict": (dict, DICTS, lambda items: 2.0 if items.keys() >= {"a", "b"} else 3.0),
    "dict.get of a missing key": (dict, DICTS, lambda items: items.get("c", 5.0)),
    "dict.setdefault": (dict, DICTS, lambda items: items.setdefault("a", 5.0) + len(items)),
    "a missing key of defaultdict": (
        lambda items: collections.defaultdict(lambda: 7.0, items), DICTS, lambda items: dict(items).get("c", 7.0)
    ),
    "the order of OrderedDict": (
        collections.OrderedDict, DICTS, lambda items: 2.0 if next(iter(items)) == "a" else 3.0
    ),
    "Counter.most_common": (collections.Counter, DICTS, lambda items: items.most_common(1)[0][1]),
    "the union of dicts": (dict, DICTS, lambda items: sum(({"c": 5.0} | items).values())),
}  # fmt: skip
for _name, (_make, _states, _read) in READS.items():
    container_scene(_name, lambda make=_make, states=_states: make(states[0]), _states, refill, _read)


@scene("os.environ")
def _(world):
    world.patch.setenv("ADVERSARY", "2.0")
    put = partial(os.environ.__setitem__, "ADVERSARY")
    return Scene(lambda x: x * float(os.environ["ADVERSARY"]), Knob(put, ["2.0", "-0.5"]))


@scene("os.getenv of what may be missing")
def _(world):
    world.patch.setenv("ADVERSARY", "2.0")

    def put(text):
        os.environ.pop("ADVERSARY", None)
        if text:
            os.environ["ADVERSARY"] = text

    return Scene(lambda x: x * float(os.getenv("ADVERSARY", "3.0")), Knob(put, ["2.0", "", "-0.5"]))
