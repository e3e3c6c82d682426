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
from adversary import Knob, Probe, Scene, scene

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

EXTERNAL = {
    "time.time": (("time",), lambda: time.time() > 0),
    "time.perf_counter": (("perf_counter",), lambda: time.perf_counter() > -1),
    "time.monotonic_ns": (("monotonic_ns",), lambda: time.monotonic_ns() > -1),
    "datetime.now": (("now",), lambda: datetime.datetime.now().year > 0),
    "uuid.uuid4": (("uuid", "urandom"), lambda: uuid.uuid4().int >= 0),
    "os.urandom": (("urandom",), lambda: os.urandom(1)[0] >= 0),
    "secrets.randbits": (("randbits", "urandom"), lambda: secrets.randbits(8) >= 0),
}
for _name, (_refused, _read) in EXTERNAL.items():

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
    temporary = tempfile.TemporaryDirectory()
    world.cleanups.append(temporary.cleanup)
    return pathlib.Path(temporary.name)


def file_reading(name, refused, read):
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


def read_file(path):
    with open(path) as file:
        return float(file.read())


file_reading("a file that is opened", ("open", "read"), read_file)
file_reading("pathlib.Path.read_text", ("read_text", "open", "read"), lambda path: float(path.read_text()))
file_reading("the size of a file", ("getsize", "stat"), lambda path: os.path.getsize(path) + 1.0)


def file_check(name, refused, read):
    """Declare the scene of a step that checks for a file: ``read(path)`` returns whether it exists."""

    @scene(name, refused=refused, retraces=True)
    def _(world):
        path = folder(world) / "flag"

        def put(exists):
            path.unlink(missing_ok=True)
            if exists:
                path.write_text("")

        return Scene(lambda x: x * (2.0 if read(path) else 3.0), Knob(put, [False, True]))


file_check("os.path.exists", ("exists", "stat"), os.path.exists)
file_check("pathlib.Path.exists", ("exists", "stat"), lambda path: path.exists())
file_check("the names in a folder", ("listdir",), lambda path: os.listdir(path.parent))


@scene("a file that is written", refused=("open", "write"), retraces=True)
def _(world):
    path = folder(world) / "log"
    path.write_text("")

    def act():
        with open(path, "a") as file:
            file.write("a step\n")

    return effect_scene(act, Probe(path.read_text))


# --- iterators ---


def iterator_scene(name, refused, make, read=next):
    """Declare the scene of a step that takes the next item of an iterator."""

    @scene(name, refused=("stream", "next", *refused), retraces=True)
    def _(world):
        stream = make()
        return Scene(lambda x: x * read(stream), Knob(lambda k: read(stream), [0, 1], undone=False))


NUMBERS = [float(k) for k in range(100)]


def filled_queue():
    filled = queue.Queue()
    for k in range(100):
        filled.put(float(k))
    return filled


def batches():
    data = mg.data.TensorDataset(mg.arange(60.0).view(20, 3))
    return iter(mg.data.DataLoader(data, batch_size=1))


iterator_scene("next of an iterator of a list", ("iterator",), lambda: iter(NUMBERS))
iterator_scene("next of itertools.count", ("count",), lambda: itertools.count(1))
iterator_scene("next of itertools.cycle", ("cycle",), lambda: itertools.cycle([2.0, 3.0, 5.0]))
iterator_scene("next of a generator", ("generator",), lambda: (k * 2 for k in NUMBERS))
iterator_scene("next of a map", ("map",), lambda: map(float, NUMBERS))
iterator_scene("next of a zip", ("zip",), lambda: zip(NUMBERS, NUMBERS, strict=True), lambda stream: next(stream)[0])
iterator_scene(
    "a loop over an iterator",
    ("iterator",),
    lambda: iter(NUMBERS),
    lambda stream: sum([k for k, _ in zip(stream, "ab", strict=False)]),
)
iterator_scene("next of a DataLoader", ("DataLoader", "iterator"), batches, lambda stream: next(stream)[0])
iterator_scene("queue.Queue.get", ("Queue",), filled_queue, lambda stream: stream.get())
iterator_scene("list.pop", ("list", "pop"), lambda: list(NUMBERS), lambda stream: stream.pop())
iterator_scene("deque.popleft", ("deque", "pop"), lambda: collections.deque(NUMBERS), lambda stream: stream.popleft())
iterator_scene("dict.popitem", ("dict", "pop"), lambda: dict(enumerate(NUMBERS)), lambda stream: stream.popitem()[1])


@scene("a DataLoader that is iterated in the step", refused=("DataLoader", "loader", "generator"), retraces=True)
def _(world):
    data = mg.data.TensorDataset(mg.arange(6.0).view(2, 3))
    loader = mg.data.DataLoader(data, batch_size=1, shuffle=True)
    return Scene(lambda x: [x * row for (row,) in loader], Knob(mg.manual_seed, [5, 6]))


@scene("input", refused=("input", "next", "numbers_read"), retraces=True)
def _(world):
    numbers_read = itertools.count(1)
    world.patch.setattr("builtins.input", lambda prompt="": str(next(numbers_read)))
    return Scene(lambda x: x * float(input()), Knob(lambda k: next(numbers_read), [0, 1], undone=False))


# --- mutation of Python objects ---


def effect_scene(act, *watched, read=None):
    """Return the scene of a step with a side effect, ``act()``. The step multiplies by ``read()``."""
    scale = 2.0

    def step(x):
        act()
        return x * scale * (1.0 if read is None else read())

    def put(new):
        nonlocal scale
        scale = new

    return Scene(step, Knob(put, [2.0, 3.0]), watched)


def mutation(name, make, change, *refused, read=None):
    """Declare the scene of a step that mutates an object of the user's, ``change(object)``."""

    @scene(name, refused=("mutated", *refused), retraces=True)
    def _(world):
        mutated = make()
        return effect_scene(lambda: change(mutated), mutated, read=None if read is None else lambda: read(mutated))


def namespace():
    return types.SimpleNamespace(last=None, count=0)


def count(mutated):
    mutated.count += 1


def counting_module():
    model = mg.nn.Module()
    model.count = 0
    return model


mutation("list.append", list, lambda mutated: mutated.append(1.0), "append", "list")
mutation("list.append of a tensor", list, lambda mutated: mutated.append(mg.ones(2) * 2), "append", "list")
mutation("list.append of the length", list, lambda mutated: mutated.append(len(mutated)), "append", "list", read=len)
mutation("list.clear", lambda: [1.0], lambda mutated: mutated.clear(), "clear", "list")
mutation("list.extend", list, lambda mutated: mutated.extend([2.0]), "extend", "list")
mutation("a list item that counts", lambda: [0], lambda mutated: mutated.__setitem__(0, mutated[0] + 1), "list")
mutation("a dict item that is set", dict, lambda mutated: mutated.update(last=1.0), "update", "dict")
mutation(
    "a dict item that counts", lambda: {"n": 0}, lambda mutated: mutated.update(n=mutated["n"] + 1), "update", "dict"
)
mutation("dict.setdefault that adds", dict, lambda mutated: mutated.setdefault("a", []).append(1), "append", "dict")
mutation("set.add", set, lambda mutated: mutated.add(len(mutated)), "add", "set")
mutation(
    "deque.append", lambda: collections.deque(maxlen=3), lambda mutated: mutated.append(len(mutated)), "append", "deque"
)
mutation("Counter.update", collections.Counter, lambda mutated: mutated.update(a=1), "update", "Counter")
mutation("bytearray.append", bytearray, lambda mutated: mutated.append(1), "append", "bytearray")
mutation("an array element that is set", lambda: np.zeros(2), lambda mutated: mutated.__iadd__(1), "ndarray")
mutation("an attribute that is set", namespace, lambda mutated: setattr(mutated, "last", 1), "last")
mutation("an attribute that counts", namespace, count, "count")
mutation("an attribute that counts and is read", namespace, count, "count", read=lambda mutated: mutated.count)
mutation(
    "an attribute that keeps a tensor", namespace, lambda mutated: setattr(mutated, "last", mg.ones(2) * 2), "last"
)
mutation("an attribute of a module that counts", counting_module, count, "count", read=lambda mutated: mutated.count)
mutation(
    "the data of a Value that is set",
    lambda: mg.Value(1.0),
    lambda mutated: setattr(mutated, "data", mutated.data + 1),
    "data",
)


@scene("a nonlocal variable that counts", refused=("count",), retraces=True)
def _(world):
    count = 0

    def act():
        nonlocal count
        count += 1

    return effect_scene(act, Probe(lambda: count), read=lambda: count)


@scene("a nonlocal variable that counts and is not read", refused=("count",), retraces=True)
def _(world):
    count = 0

    def act():
        nonlocal count
        count += 1

    return effect_scene(act, Probe(lambda: count))


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

    return Scene(step, Knob(put, [2.0, 3.0]), [Probe(lambda: hidden)])


@scene("a global variable that counts", refused=("count",), retraces=True)
def _(world):
    module = world.module("def step(x):\n    global count\n    count += 1\n    return x * scale", count=0, scale=2.0)
    return Scene(module.step, Knob(partial(setattr, module, "scale"), [2.0, 3.0]), [Probe(lambda: module.count)])


@scene("a function's attribute that counts", refused=("count",), retraces=True)
def _(world):
    def act():
        act.count += 1

    act.count = 0
    return effect_scene(act, Probe(lambda: act.count), read=lambda: act.count)


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

    return effect_scene(lambda: read(1), calls, read=lambda: read(2))


@scene("os.environ that the step sets", refused=("environ", "environment"), retraces=True)
def _(world):
    world.patch.setenv("ADVERSARY", "0")

    def act():
        os.environ["ADVERSARY"] = str(int(os.environ["ADVERSARY"]) + 1)

    return effect_scene(act, Probe(lambda: os.environ["ADVERSARY"]), read=lambda: float(os.environ["ADVERSARY"]))


@scene("a context variable that the step sets", refused=("ContextVar", "variable"), retraces=True)
def _(world):
    import contextvars

    variable = contextvars.ContextVar("variable", default=0)
    return effect_scene(lambda: variable.set(variable.get() + 1), Probe(variable.get), read=variable.get)


# --- output of the step ---


def output_scene(name, refused, act, output_of):
    """Declare the scene of a step that prints, logs or warns; ``output_of(world)`` returns the output.

    A step that cannot be rejected prints when it is captured, and later output is not compared.
    """

    @scene(name, refused=refused, retraces=True)
    def _(world):
        shown = output_of(world)
        return effect_scene(act, shown) if refused else effect_scene(act)


def stream_output(name):
    def output_of(world):
        file = io.StringIO()
        world.patch.setattr(sys, name, file)
        return Probe(file.getvalue)

    return output_of


def log_output(world):
    file = io.StringIO()
    handler, logger = logging.StreamHandler(file), logging.getLogger("adversary")
    logger.addHandler(handler)
    world.cleanups.append(lambda: logger.removeHandler(handler))
    return Probe(file.getvalue)


def warning_output(world):
    messages = []
    world.patch.setattr(warnings, "showwarning", lambda message, *rest: messages.append(str(message)))
    warnings.simplefilter("always")
    return messages


output_scene("print", (), lambda: print("a step"), stream_output("stdout"))
output_scene("sys.stderr.write", ("write", "stderr"), lambda: sys.stderr.write("a step"), stream_output("stderr"))
output_scene("logging", (), lambda: logging.getLogger("adversary").warning("a step"), log_output)
output_scene("warnings.warn", ("warn",), lambda: warnings.warn("a step", stacklevel=1), warning_output)
