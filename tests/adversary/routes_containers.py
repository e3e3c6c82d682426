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


def item(made, key="thing", read=None):
    """Return a route through a container that ``made(value)`` returns, whose item `key` is set."""
    read = read or (lambda held: held[key])

    def of(world, use, value):
        held = made(value)
        return lambda x: use(x, read(held)), partial(held.__setitem__, key)

    return of


def attribute(made, put=setattr):
    """Return a route through an object that ``made(value)`` returns, whose attribute `thing` is set."""

    def of(world, use, value):
        held = made(value)
        return lambda x: use(x, held.thing), partial(put, held, "thing")

    return of


def rebound(made, read):
    """Return a route through an immutable container, which is replaced."""

    def of(world, use, value):
        held = made(value)

        def put(new):
            nonlocal held
            held = made(new)

        return lambda x: use(x, read(held)), put

    return of


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
class Data:
    thing: Any


@dataclasses.dataclass(slots=True)
class SlottedData:
    thing: Any


@dataclasses.dataclass(frozen=True)
class FrozenData:
    thing: Any


class Named(NamedTuple):
    thing: Any


CONTAINERS = {
    "a list": item(lambda v: [0, v], 1),
    "a list that is iterated": item(lambda v: [v], 0, lambda held: next(iter([*held]))),
    "a list by a negative index": item(lambda v: [0, v], 1, lambda held: held[-1]),
    "a dict": item(lambda v: {"thing": v}),
    "dict.get": item(lambda v: {"thing": v}, read=lambda held: held.get("thing", 1.0)),
    "dict.items": item(lambda v: {"thing": v}, read=lambda held: dict(held.items())["thing"]),
    "dict.values": item(lambda v: {"thing": v}, read=lambda held: list(held.values()).pop()),
    "a dict unpacked into keywords": item(lambda v: {"thing": v}, read=lambda held: (lambda *, thing: thing)(**held)),
    "a list unpacked into arguments": item(lambda v: [v], 0, lambda held: (lambda thing: thing)(*held)),
    "a match statement": item(lambda v: {"thing": v}, read=lambda held: matched(held)),
    "collections.deque": item(lambda v: collections.deque([0, v]), 1),
    "collections.OrderedDict": item(lambda v: collections.OrderedDict(thing=v)),
    "collections.defaultdict": item(lambda v: collections.defaultdict(int, thing=v)),
    "collections.Counter": item(lambda v: collections.Counter({"thing": v})),
    "collections.ChainMap": item(lambda v: collections.ChainMap({}, {"thing": v})),
    "collections.UserDict": item(lambda v: collections.UserDict(thing=v)),
    "collections.UserList": item(lambda v: collections.UserList([v]), 0),
    "a mapping of the user's": item(lambda v: UserMapping(thing=v)),
    "a sequence of the user's": item(lambda v: UserSequence(v), 0),
    "a subclass of dict": item(lambda v: DictSubclass(thing=v), read=lambda held: held.thing),
    "argparse.Namespace": attribute(lambda v: argparse.Namespace(thing=v)),
    "a dataclass": attribute(Data),
    "a dataclass with slots": attribute(SlottedData),
    "a frozen dataclass": attribute(FrozenData, object.__setattr__),
    "a frozen dataclass that is replaced": rebound(FrozenData, lambda held: held.thing),
    "a namedtuple that is replaced": rebound(Named, lambda held: held.thing),
    "a tuple that is replaced": rebound(lambda v: (0, v), lambda held: held[1]),
    "a tuple in a list in a dict that is replaced": rebound(lambda v: {"a": [(0, v)]}, lambda held: held["a"][0][1]),
    "a dict by a variable": rebound(lambda v: {"a": 0, "b": v}, lambda held: held[max(held)]),
}
for _name, _route in CONTAINERS.items():
    route(_name)(_route)


def matched(held):
    match held:
        case {"thing": thing}:
            return thing
    return None


@route("a list in a dict in a tuple in an object")
def _(world, use, value):
    held = types.SimpleNamespace(inner=({"things": [0, [value]]}, 1))

    def put(new):
        held.inner[0]["things"][1][0] = new

    return lambda x: use(x, held.inner[0]["things"][1][0]), put


@route("the map before others in collections.ChainMap")
def _(world, use, value):
    first, second = {"thing": value}, {"thing": value}
    held = collections.ChainMap(first, second)

    def put(new):
        if "thing" in first:
            del first["thing"]
            second["thing"] = new
        else:
            first["thing"] = new

    return lambda x: use(x, held["thing"]), put


@route("types.MappingProxyType")
def _(world, use, value):
    behind = {"thing": value}
    held = types.MappingProxyType(behind)
    return lambda x: use(x, held["thing"]), partial(behind.__setitem__, "thing")


@route("a view of a dict that was kept")
def _(world, use, value):
    behind = {"thing": value}
    held = behind.values()
    return lambda x: use(x, list(held).pop()), partial(behind.__setitem__, "thing")


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
    held = [(0, value)]

    def put(new):
        heapq.heappop(held)
        heapq.heappush(held, (0, new))

    return lambda x: use(x, heapq.nsmallest(1, held)[0][1]), put


@route("the queue behind queue.Queue")
def _(world, use, value):
    held = queue.Queue()
    held.put(value)

    def put(new):
        held.get()
        held.put(new)

    return lambda x: use(x, held.queue[0]), put


def containing(name, start, states, put, read):
    """Declare a scene: a container of floats that takes several states, and what the step reads from it."""

    @scene(f"{name}")
    def _(world):
        held = start()
        return Scene(lambda x: x * read(held), Knob(lambda state: put(held, state), states))


def refill(held, state):
    held.clear()
    (held.update if hasattr(held, "update") else held.extend)(state)


LISTS = [[1.0, 2.0], [1.0, 2.0, 4.0], [], [2.0, 1.0], [1.0, 2.0]]
DICTS = [{"a": 1.0, "b": 2.0}, {"b": 2.0, "a": 1.0}, {"a": 1.0}, {"a": 1.0, "b": 2.0, "c": 3.0}]
READS = {
    "len of a list": (list, LISTS, lambda held: len(held) + 0.5),
    "sum of a list": (list, LISTS, lambda held: sum(held) + 0.5),
    "a list in a condition": (list, LISTS, lambda held: 2.0 if held else 3.0),
    "membership in a list": (list, LISTS, lambda held: 2.0 if 4.0 in held else 3.0),
    "max of a list with a default": (list, LISTS, lambda held: max(held, default=7.0)),
    "a loop over a list": (list, LISTS, lambda held: float("".join(f"{int(x)}" for x in held) or 0)),
    "enumerate of a list": (list, LISTS, lambda held: sum([k * x for k, x in enumerate(held)]) + 0.5),
    "zip of a list": (list, LISTS, lambda held: sum([a * b for a, b in zip(held, (3.0, 5.0, 7.0), strict=False)])),
    "sorted of a list": (list, LISTS, lambda held: [*sorted(held), 5.0][0]),
    "reversed of a list": (list, LISTS, lambda held: [*reversed(held), 5.0][0]),
    "a slice of a list": (list, LISTS, lambda held: sum(held[1:]) + 0.5),
    "equality of lists": (list, LISTS, lambda held: 2.0 if held == [1.0, 2.0] else 3.0),
    "list.index": (list, LISTS, lambda held: held.index(2.0) + 0.5 if 2.0 in held else 9.0),
    "list.count": (list, LISTS, lambda held: held.count(1.0) + 0.5),
    "len of a deque": (collections.deque, LISTS, lambda held: len(held) + 0.5),
    "len of a set": (set, [{1, 2}, {1}, {1, 2, 3}, set()], lambda held: len(held) + 0.5),
    "membership in a set": (set, [{1, 2}, {1}, {2, 3}, set()], lambda held: 2.0 if 2 in held else 3.0),
    "the difference of sets": (set, [{1, 2}, {1}, {2, 3}, set()], lambda held: len(held - {1}) + 0.5),
    "len of a dict": (dict, DICTS, lambda held: len(held) + 0.5),
    "membership in a dict": (dict, DICTS, lambda held: 2.0 if "b" in held else 3.0),
    "the order of a dict": (dict, DICTS, lambda held: 2.0 if list(held).index("a") == 0 else 3.0),
    "the keys of a dict": (dict, DICTS, lambda held: 2.0 if held.keys() >= {"a", "b"} else 3.0),
    "dict.get of a missing key": (dict, DICTS, lambda held: held.get("c", 5.0)),
    "dict.setdefault": (dict, DICTS, lambda held: held.setdefault("a", 5.0) + len(held)),
    "a missing key of defaultdict": (
        lambda items: collections.defaultdict(lambda: 7.0, items), DICTS, lambda held: dict(held).get("c", 7.0)
    ),
    "the order of OrderedDict": (
        collections.OrderedDict, DICTS, lambda held: 2.0 if next(iter(held)) == "a" else 3.0
    ),
    "Counter.most_common": (collections.Counter, DICTS, lambda held: held.most_common(1)[0][1]),
    "the union of dicts": (dict, DICTS, lambda held: sum(({"c": 5.0} | held).values())),
}  # fmt: skip
for _name, (_made, _states, _read) in READS.items():
    containing(_name, lambda made=_made, states=_states: made(states[0]), _states, refill, _read)


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
