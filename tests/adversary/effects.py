"""Side effects of a step: it reads external state, and changes Python objects.

The plain function does so at every call. The jitted one must do so too, or raise an error that names what cannot be
captured: the function that is called, directly or indirectly, the variable or the type of the object.
"""

from __future__ import annotations

import collections
import datetime
import io
import itertools
import logging
import os
import pathlib
import queue
import random
import secrets
import sys
import tempfile
import time
import types
import uuid
import warnings
from functools import partial

import numpy as np

import minigrad as mg
from adversary import Knob, Scene, Shown, scene

# --- random generators of other libraries ---

DRAWS = {
    "random.random": lambda: random.random(),
    "random.choice": lambda: random.choice([2.0, 3.0, 5.0, 7.0]),
    "random.uniform in a list": lambda: max([random.uniform(1, 2) for _ in range(2)]),
}
for _name, _draw in DRAWS.items():

    @scene(_name, refused=("random", "getrandbits"), retraces=True)
    def _(world, draw=_draw):
        random.seed(3)
        return Scene(lambda x: x * draw(), Knob(random.seed, [3, 4]))


@scene("a random.Random of the user's", refused=("random", "Random", "rng"), retraces=True)
def _(world):
    rng = random.Random(3)
    return Scene(lambda x: x * rng.random(), Knob(rng.seed, [3, 4]))


@scene("numpy.random", refused=("random", "rand"), retraces=True)
def _(world):
    world.patch.setattr(np.random, "rand", np.random.RandomState(3).rand)
    step = lambda x: x * float(np.random.rand())  # noqa: E731, NPY002
    return Scene(step, Knob(lambda k: np.random.rand(), [0, 1], undone=False))  # noqa: NPY002


@scene("a numpy.random.Generator of the user's", refused=("random", "Generator", "rng"), retraces=True)
def _(world):
    rng = np.random.default_rng(3)
    return Scene(lambda x: x * rng.random(), Knob(lambda k: rng.random(), [0, 1], undone=False))


# --- clocks and the like: the two worlds read different values, so a step must raise ---

OUTSIDE = {
    "time.time": (("time",), lambda: time.time() > 0),
    "time.perf_counter": (("perf_counter",), lambda: time.perf_counter() > -1),
    "time.monotonic_ns": (("monotonic_ns",), lambda: time.monotonic_ns() > -1),
    "datetime.now": (("now",), lambda: datetime.datetime.now().year > 0),
    "uuid.uuid4": (("uuid", "urandom"), lambda: uuid.uuid4().int >= 0),
    "os.urandom": (("urandom",), lambda: os.urandom(1)[0] >= 0),
    "secrets.randbits": (("randbits", "urandom"), lambda: secrets.randbits(8) >= 0),
}
for _name, (_refused, _read) in OUTSIDE.items():

    @scene(_name, refused=_refused, required=True)
    def _(world, read=_read):
        return Scene(lambda x: x * read(), Knob(lambda k: None, [0, 1]))


@scene("a clock that is replaced by a function of Python")
def _(world):
    now = [1.0]
    world.patch.setattr(time, "time", lambda: now[0])
    return Scene(lambda x: x * time.time(), Knob(partial(now.__setitem__, 0), [1.0, 2.0, 3.0]))


# --- files ---


def folder(world):
    """Return the path of a folder that is deleted at the end of the case."""
    made = tempfile.TemporaryDirectory()
    world.closing.append(made.cleanup)
    return pathlib.Path(made.name)


def reading(name, refused, read):
    """Declare the scene of a step that reads a file: ``read(path)`` returns a factor."""

    @scene(name, refused=refused, retraces=True)
    def _(world):
        path = folder(world) / "scale"
        path.write_text("2.0")

        def put(text):
            path.unlink(missing_ok=True)
            if text:
                path.write_text(text)

        return Scene(lambda x: x * read(path), Knob(put, ["2.0", "3.25", "17"]))


def opened(path):
    with open(path) as file:
        return float(file.read())


reading("a file that is opened", ("open", "read"), opened)
reading("pathlib.Path.read_text", ("read_text", "open", "read"), lambda path: float(path.read_text()))
reading("the size of a file", ("getsize", "stat"), lambda path: os.path.getsize(path) + 1.0)


def looking(name, refused, read):
    """Declare the scene of a step that checks for a file: ``read(path)`` returns whether it exists."""

    @scene(name, refused=refused, retraces=True)
    def _(world):
        path = folder(world) / "flag"

        def put(there):
            path.unlink(missing_ok=True)
            if there:
                path.write_text("")

        return Scene(lambda x: x * (2.0 if read(path) else 3.0), Knob(put, [False, True]))


looking("os.path.exists", ("exists", "stat"), os.path.exists)
looking("pathlib.Path.exists", ("exists", "stat"), lambda path: path.exists())
looking("the names in a folder", ("listdir",), lambda path: os.listdir(path.parent))


@scene("a file that is written", refused=("open", "write"), retraces=True)
def _(world):
    path = folder(world) / "log"
    path.write_text("")

    def act():
        with open(path, "a") as file:
            file.write("a step\n")

    return scaled(act, Shown(path.read_text))


# --- iterators ---


def iterating(name, refused, make, read=next):
    """Declare the scene of a step that takes the next item of an iterator."""

    @scene(name, refused=("held", "next", *refused), retraces=True)
    def _(world):
        held = make()
        return Scene(lambda x: x * read(held), Knob(lambda k: read(held), [0, 1], undone=False))


NUMBERS = [float(k) for k in range(100)]


def filled():
    held = queue.Queue()
    for k in range(100):
        held.put(float(k))
    return held


def batches():
    data = mg.data.TensorDataset(mg.arange(60.0).view(20, 3))
    return iter(mg.data.DataLoader(data, batch_size=1))


iterating("next of an iterator of a list", ("iterator",), lambda: iter(NUMBERS))
iterating("next of itertools.count", ("count",), lambda: itertools.count(1))
iterating("next of itertools.cycle", ("cycle",), lambda: itertools.cycle([2.0, 3.0, 5.0]))
iterating("next of a generator", ("generator",), lambda: (k * 2 for k in NUMBERS))
iterating("next of a map", ("map",), lambda: map(float, NUMBERS))
iterating("next of a zip", ("zip",), lambda: zip(NUMBERS, NUMBERS, strict=True), lambda held: next(held)[0])
iterating(
    "a loop over an iterator",
    ("iterator",),
    lambda: iter(NUMBERS),
    lambda held: sum([k for k, _ in zip(held, "ab", strict=False)]),
)
iterating("next of a DataLoader", ("DataLoader", "iterator"), batches, lambda held: next(held)[0])
iterating("queue.Queue.get", ("Queue",), filled, lambda held: held.get())
iterating("list.pop", ("list", "pop"), lambda: list(NUMBERS), lambda held: held.pop())
iterating("deque.popleft", ("deque", "pop"), lambda: collections.deque(NUMBERS), lambda held: held.popleft())
iterating("dict.popitem", ("dict", "pop"), lambda: dict(enumerate(NUMBERS)), lambda held: held.popitem()[1])


@scene("a DataLoader that is iterated in the step", refused=("DataLoader", "loader", "generator"), retraces=True)
def _(world):
    data = mg.data.TensorDataset(mg.arange(6.0).view(2, 3))
    loader = mg.data.DataLoader(data, batch_size=1, shuffle=True)
    return Scene(lambda x: [x * row for (row,) in loader], Knob(mg.manual_seed, [5, 6]))


@scene("input", refused=("input", "next", "made"), retraces=True)
def _(world):
    made = itertools.count(1)
    world.patch.setattr("builtins.input", lambda prompt="": str(next(made)))
    return Scene(lambda x: x * float(input()), Knob(lambda k: next(made), [0, 1], undone=False))


# --- mutation of Python objects ---


def scaled(act, *watched, read=None):
    """Return the scene of a step with a side effect, ``act()``. The step multiplies by ``read()``."""
    scale = 2.0

    def step(x):
        act()
        return x * scale * (1.0 if read is None else read())

    def put(new):
        nonlocal scale
        scale = new

    return Scene(step, Knob(put, [2.0, 3.0]), watched)


def changing(name, make, change, *refused, read=None):
    """Declare the scene of a step that mutates an object of the user's, ``change(object)``."""

    @scene(name, refused=("held", *refused), retraces=True)
    def _(world):
        held = make()
        return scaled(lambda: change(held), held, read=None if read is None else lambda: read(held))


def namespace():
    return types.SimpleNamespace(last=None, count=0)


def count(held):
    held.count += 1


def counted():
    model = mg.nn.Module()
    model.count = 0
    return model


changing("list.append", list, lambda held: held.append(1.0), "append", "list")
changing("list.append of a tensor", list, lambda held: held.append(mg.ones(2) * 2), "append", "list")
changing("list.append of the length", list, lambda held: held.append(len(held)), "append", "list", read=len)
changing("list.clear", lambda: [1.0], lambda held: held.clear(), "clear", "list")
changing("list.extend", list, lambda held: held.extend([2.0]), "extend", "list")
changing("a list item that counts", lambda: [0], lambda held: held.__setitem__(0, held[0] + 1), "list")
changing("a dict item that is set", dict, lambda held: held.update(last=1.0), "update", "dict")
changing("a dict item that counts", lambda: {"n": 0}, lambda held: held.update(n=held["n"] + 1), "update", "dict")
changing("dict.setdefault that adds", dict, lambda held: held.setdefault("a", []).append(1), "append", "dict")
changing("set.add", set, lambda held: held.add(len(held)), "add", "set")
changing("deque.append", lambda: collections.deque(maxlen=3), lambda held: held.append(len(held)), "append", "deque")
changing("Counter.update", collections.Counter, lambda held: held.update(a=1), "update", "Counter")
changing("bytearray.append", bytearray, lambda held: held.append(1), "append", "bytearray")
changing("an array element that is set", lambda: np.zeros(2), lambda held: held.__iadd__(1), "ndarray")
changing("an attribute that is set", namespace, lambda held: setattr(held, "last", 1), "last")
changing("an attribute that counts", namespace, count, "count")
changing("an attribute that counts and is read", namespace, count, "count", read=lambda held: held.count)
changing("an attribute that keeps a tensor", namespace, lambda held: setattr(held, "last", mg.ones(2) * 2), "last")
changing("an attribute of a module that counts", counted, count, "count", read=lambda held: held.count)
changing(
    "the data of a Value that is set", lambda: mg.Value(1.0), lambda held: setattr(held, "data", held.data + 1), "data"
)


@scene("a nonlocal variable that counts", refused=("count",), retraces=True)
def _(world):
    count = 0

    def act():
        nonlocal count
        count += 1

    return scaled(act, Shown(lambda: count), read=lambda: count)


@scene("a nonlocal variable that counts and is not read", refused=("count",), retraces=True)
def _(world):
    count = 0

    def act():
        nonlocal count
        count += 1

    return scaled(act, Shown(lambda: count))


@scene("a nonlocal variable that keeps a tensor", refused=("hidden",), retraces=True)
def _(world):
    hidden, scale = mg.zeros(3), 2.0

    def step(x):
        nonlocal hidden
        hidden = hidden * 0.5 + x.sum(0)
        return hidden * scale

    def put(new):
        nonlocal scale
        scale = new

    return Scene(step, Knob(put, [2.0, 3.0]), [Shown(lambda: hidden)])


@scene("a global variable that counts", refused=("count",), retraces=True)
def _(world):
    made = world.module("def step(x):\n    global count\n    count += 1\n    return x * scale", count=0, scale=2.0)
    return Scene(made.step, Knob(partial(setattr, made, "scale"), [2.0, 3.0]), [Shown(lambda: made.count)])


@scene("a function's attribute that counts", refused=("count",), retraces=True)
def _(world):
    def act():
        act.count += 1

    act.count = 0
    return scaled(act, Shown(lambda: act.count), read=lambda: act.count)


@scene("an attribute of self that counts", refused=("count",), retraces=True)
def _(world):
    class Trainer:
        count = 0

        def step(self, x):
            self.count += 1
            return x * self.count * self.scale

    trainer = Trainer()
    trainer.scale = 2.0
    return Scene(trainer.step, Knob(partial(setattr, trainer, "scale"), [2.0, 3.0]), [trainer])


@scene("functools.cache that is filled in the step", refused=("cache",), retraces=True)
def _(world):
    import functools

    calls = []

    @functools.cache
    def read(k):
        calls.append(k)
        return k + 1.0

    return scaled(lambda: read(1), calls, read=lambda: read(2))


@scene("os.environ that the step sets", refused=("environ", "environment"), retraces=True)
def _(world):
    world.patch.setenv("ADVERSARY", "0")

    def act():
        os.environ["ADVERSARY"] = str(int(os.environ["ADVERSARY"]) + 1)

    return scaled(act, Shown(lambda: os.environ["ADVERSARY"]), read=lambda: float(os.environ["ADVERSARY"]))


@scene("a context variable that the step sets", refused=("ContextVar", "variable"), retraces=True)
def _(world):
    import contextvars

    variable = contextvars.ContextVar("variable", default=0)
    return scaled(lambda: variable.set(variable.get() + 1), Shown(variable.get), read=variable.get)


# --- output of the step ---


def saying(name, refused, act, arrives):
    """Declare the scene of a step that prints, logs or warns; ``arrives(world)`` returns the output.

    A step that cannot be rejected prints when it is captured, and later output is not compared.
    """

    @scene(name, refused=refused, retraces=True)
    def _(world):
        shown = arrives(world)
        return scaled(act, shown) if refused else scaled(act)


def in_stream(name):
    def arrives(world):
        file = io.StringIO()
        world.patch.setattr(sys, name, file)
        return Shown(file.getvalue)

    return arrives


def in_log(world):
    file = io.StringIO()
    handler, logger = logging.StreamHandler(file), logging.getLogger("adversary")
    logger.addHandler(handler)
    world.closing.append(lambda: logger.removeHandler(handler))
    return Shown(file.getvalue)


def in_warnings(world):
    seen = []
    world.patch.setattr(warnings, "showwarning", lambda message, *rest: seen.append(str(message)))
    warnings.simplefilter("always")
    return seen


saying("print", (), lambda: print("a step"), in_stream("stdout"))
saying("sys.stderr.write", ("write", "stderr"), lambda: sys.stderr.write("a step"), in_stream("stderr"))
saying("logging", (), lambda: logging.getLogger("adversary").warning("a step"), in_log)
saying("warnings.warn", ("warn",), lambda: warnings.warn("a step", stacklevel=1), in_warnings)
