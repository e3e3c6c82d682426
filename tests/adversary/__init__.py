"""An adversary of `mg.jit`: steps whose environment changes between calls, compared with the plain function.

A **kind** is one change that may happen behind a captured step: how the step reaches a value, what the value is, who
owns it. A kind builds a `Scene` in a `World`: a step, and knobs that change something that the step reads. To add a
kind, write in the module of this package that fits:

    @scene("an attribute of a user's object")
    def _(world):
        config = SimpleNamespace(scale=2.0)
        return Scene(lambda x: x * config.scale, Knob(partial(setattr, config, "scale"), [2.0, -0.5]))

The first value is the initial one, so every change can be undone. `routes`, `things`, `wrappers` and `bodies` are
parts of scenes that combine freely: a route is how a step reaches a value, a thing is what that value is, a wrapper
surrounds the step, and a body is what the step computes with the value.

Each case runs in two worlds, with the plain function and with the jitted one. After every call everything must be equal
bit for bit: results, tensors and their gradients, modules, optimizers, generators, the user's objects. Only a kind that
declares `refused` may raise CaptureError instead, and the error must name what cannot be captured.

    PYTHONPATH=tests:tests/helpers python -m adversary                            each kind separately
    PYTHONPATH=tests:tests/helpers python -m adversary --cases 2000 --seed 0      random combinations
    PYTHONPATH=tests:tests/helpers python -m adversary --case 4711                one of them again
    PYTHONPATH=tests:tests/helpers python -m adversary --kind "hook of a leaf"    kinds with such names

Each prints the failures, with the calls and changes that led to them, and a table of kinds and outcomes.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

import minigrad as mg

__all__ = [
    "FAMILIES",
    "Kind",
    "Knob",
    "Probe",
    "Scene",
    "Thing",
    "World",
    "body",
    "compose",
    "join_scenes",
    "kinds",
    "rng_of",
    "route",
    "scene",
    "thing",
    "wrapper",
]


@dataclass(frozen=True)
class Knob:
    """Something that changes between calls: `put` sets it to one of `values`, the first of which is the initial one.

    If `undone` is False, the first value cannot be restored, as for a list to which items are appended.
    """

    put: Callable[[Any], object]
    values: Sequence[Any]
    undone: bool = True


def _rows(k: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (mg.tensor([[1.5, -0.25, 2.0], [0.5, k * 0.5 - 1.0, -3.0]]),), {}


@dataclass
class Scene:
    """A step, the knobs that change what it reads, and the objects whose state it may change.

    Args:
        step: the function to capture. By default it is called with one tensor of shape (2, 3).
        knobs: one knob, or several.
        watched: objects that are compared after each call: tensors, modules, optimizers, the user's objects.
        arguments: returns the positional and keyword arguments of call k.
        jitted: whether the step itself calls `World.jit`, for a part of it or for a method.
    """

    step: Callable[..., Any]
    knobs: Knob | Sequence[Knob]
    compared: Sequence[Any] = ()
    arguments: Callable[[int], tuple[tuple[Any, ...], dict[str, Any]]] = _rows
    jitted: bool = False

    def __post_init__(self) -> None:
        self.knobs = [self.knobs] if isinstance(self.knobs, Knob) else list(self.knobs)


@dataclass
class Thing:
    """What a step reads: the values that it takes in turn, and `use`, a formula of a tensor and such a value.

    A thing that is modified in place is one value, with a knob that modifies it.
    """

    values: Sequence[Any]
    use: Callable[[Any, Any], Any]
    knob: Knob | None = None


@dataclass
class Probe:
    """A state to compare that is no object, such as a variable of a function or a file: the result of ``read()``."""

    read: Callable[[], Any]


@dataclass
class World:
    """The environment of a scene, built once for the plain function and once for the jitted one, from the same seed.

    `jit` is `mg.jit`, or returns the plain function. At the end of the case, the changes of `patch` are undone, and the
    functions in `cleanups` are called; objects in `compared` are compared after each call; `kept_alive` keeps
    references.
    """

    device: str
    jit: Callable[..., Any]
    patch: pytest.MonkeyPatch = field(default_factory=pytest.MonkeyPatch)
    compared: list[Any] = field(default_factory=list)
    kept_alive: list[Any] = field(default_factory=list)
    cleanups: list[Callable[[], object]] = field(default_factory=list)

    def module(self, source: str = "", name: str = "adversary_module", **names: Any) -> Any:
        """Return an importable Python module of this name, created from source code and from names in it."""
        python_module = types.ModuleType(name)
        vars(python_module).update(names)
        self.patch.setitem(sys.modules, name, python_module)
        exec(source, vars(python_module))
        return python_module

    def leaf(self, *values: float) -> Any:
        """Return a tensor of these values that requires grad and is compared after each call."""
        tensor = mg.tensor(list(values), requires_grad=True)
        self.compared.append(tensor)
        return tensor


@dataclass(frozen=True)
class Kind:
    """One kind of change. `build` returns a member of its family: a scene, a route, a thing, a wrapper or a body.

    Args:
        refused: names, one of which CaptureError must mention, if the step may be rejected; else it must be captured.
        required: whether it must be rejected because the worlds cannot be compared, as with clocks.
        retraces: whether every call may be captured again, since the step itself changes what it reads.
        symbolic: whether a change must not lead to another capture.
        harmless: whether the change alters nothing that a call computes.
        raises: whether the plain function raises for some of the values.
    """

    family: str
    name: str
    build: Callable[..., Any]
    refused: tuple[str, ...] = ()
    required: bool = False
    retraces: bool = False
    symbolic: bool = False
    harmless: bool = False
    raises: bool = False

    def __str__(self) -> str:
        return f"{self.family}: {self.name}"


FAMILIES = ("scene", "route", "thing", "wrapper", "body")
KINDS: dict[str, Kind] = {}


def _family(name: str) -> Callable[..., Callable[[Callable[..., Any]], Callable[..., Any]]]:
    def declare(kind: str, **flags: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def register(build: Callable[..., Any]) -> Callable[..., Any]:
            created = Kind(name, kind, build, **flags)
            if str(created) in KINDS:
                raise ValueError(f"duplicate kind {created}")
            KINDS[str(created)] = created
            return build

        return register

    return declare


scene = _family("scene")
"""Declare a function of a world that returns a `Scene`."""
route = _family("route")
"""Declare a function of (world, use, value) that returns a step, ``use(x, value)``, and a setter of the value."""
thing = _family("thing")
"""Declare a function of a world that returns a `Thing`."""
wrapper = _family("wrapper")
"""Declare a function of (world, step) that returns a function equivalent to the step."""
body = _family("body")
"""Declare a function of (world, use) that returns another formula of x and a value that calls `use`."""


def kinds(family: str = "") -> list[Kind]:
    """Return all kinds of a family, or of all families, in the order of their modules."""
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{__name__}.{module.name}")
    return [one for one in KINDS.values() if family in ("", one.family)]


def compose(world: World, route: Kind, thing: Kind, body: Kind, wrapper: Kind | None = None) -> Scene:
    """Return the scene of a step, inside a wrapper, that reaches a thing by a route and has a body."""
    reached = thing.build(world)
    step, put = route.build(world, body.build(world, reached.use), reached.values[0])
    knobs = [Knob(put, reached.values)] if len(reached.values) > 1 else []
    if reached.knob is not None:
        knobs.append(reached.knob)
    return Scene(step if wrapper is None else wrapper.build(world, step), knobs)


def join_scenes(world: World, *scenes: Scene) -> Scene:
    """Return the scene of a step that runs the steps of others, with the arguments and the knobs of all of them."""
    jitted = any(one.jitted for one in scenes)
    steps = [one.step if one.jitted or not jitted else world.jit(one.step) for one in scenes]

    def step(*arguments_by_scene: Any) -> list[Any]:
        return [one(*args, **kwargs) for one, (args, kwargs) in zip(steps, arguments_by_scene, strict=True)]

    def arguments(k: int) -> Any:
        return tuple([one.arguments(k) for one in scenes]), {}

    knobs, watched = [x for one in scenes for x in one.knobs], [x for one in scenes for x in one.compared]
    return Scene(step, knobs, watched, arguments, jitted)


def rng_of(*seeds: object) -> random.Random:
    """Return a Python random generator that depends only on these seeds."""
    return random.Random(repr(seeds))
