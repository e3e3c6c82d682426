"""Reach: the Python objects that a step can read, in their state before it runs, and those that it did read.

From the step, the objects among its arguments and the modules it calls, `Reach` follows closure variables, globals,
defaults, attributes, containers, wrappers and classes, and creates a guard for each link (see `objects`). After the
step has run, it selects the links that the step may have followed: those of functions that were entered, and of
attributes named in their code.
"""

from __future__ import annotations

import gc
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, partialmethod
from types import CellType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple, cast

from minigrad.compiler.jit.guards import Guard, absence, entry, is_value
from minigrad.compiler.jit.links import Link, Object
from minigrad.compiler.jit.objects import CACHED, describe
from minigrad.compiler.jit.watch import EntryWatch, is_user_code, names_in
from minigrad.core.symbolic import Traced, plain
from minigrad.core.tensor import Tensor
from minigrad.optim import Optimizer

__all__ = ["Chosen", "Reach"]

MOST_OBJECTS = 50_000
ANY_NAME = frozenset(
    ("getattr", "vars", "__dict__", "attrgetter", "asdict", "astuple", "copy", "deepcopy", "__getattribute__")
)
"""Names that allow a step to read attributes which its code does not name."""
ASKS = frozenset(("hasattr", "getattr", "AttributeError", "Exception"))
"""Names that allow a step to observe that an attribute is missing."""
_DESCRIPTORS = (property, staticmethod, classmethod, cached_property, partialmethod)


class Chosen(NamedTuple):
    """What a step read: guards, tensors as (tensor, name) by id, and messages about what cannot be guarded."""

    guards: list[Guard]
    tensors: dict[int, tuple[Any, str]]
    refused: list[str]


class Reach:
    """The objects reachable from those that are added."""

    def __init__(self) -> None:
        self._objects: dict[int, Object] = {}
        self._tensors: dict[int, tuple[Any, str]] = {}
        self._roots: list[Any] = []
        self._names: set[str] = set()  # names in the code of all reachable functions
        self._given: set[str] = set()  # attribute names stored in objects such as `attrgetter`
        self._codes: set[int] = set()  # ids of the code of those functions
        self._late: set[int] = set()  # objects first seen while the step ran, which it may have created
        self._waiting: deque[Object] = deque()
        self._attributed: list[Object] = []

    # --- before the step runs ---

    def add(self, x: Any, path: str) -> None:
        """Add `x`, which counts as read, and all objects reachable from it."""
        self._roots.append(x)
        self._visit(x, path)
        self._follow()

    def enter(self, frame: FrameType) -> None:
        """Add a function that is about to run, unless it is known, such as one that only a library references."""
        code = frame.f_code
        if id(code) in self._codes:
            return
        self._codes |= _within(code)
        functions = [x for x in gc.get_referrers(code) if isinstance(x, FunctionType) and x.__code__ is code]
        cells = tuple([CellType() for _ in code.co_freevars])
        known = len(self._objects)
        for function in functions or [FunctionType(code, frame.f_globals, closure=cells)]:
            self.add(function, function.__qualname__)
        self._late.update(list(self._objects)[known:])

    def _visit(self, x: Any, path: str) -> None:
        if is_value(x) or id(x) in self._objects:
            return
        if isinstance(x, Tensor):
            self._tensors.setdefault(id(x), (x, path))
        found = self._objects[id(x)] = Object(x, path)
        if len(self._objects) > MOST_OBJECTS:
            found.refused = f"which leads to more than {MOST_OBJECTS:,} reachable objects"
            return
        describe(found)
        self._given |= found.names
        self._names |= found.names
        if found.code is not None:
            self._codes |= _within(found.code)
            if is_user_code(found.code, x.__globals__):
                self._names |= names_in(found.code)
        self._waiting.append(found)
        if found.tables:
            self._attributed.append(found)

    def _follow(self) -> None:
        """Visit all reachable objects until no new names appear."""
        while True:
            while self._waiting:
                for link in self._waiting.popleft().links:
                    self._visit(link.to, link.path)
            before = len(self._names)
            for found in list(self._attributed):
                self._take(found)
            if not self._waiting and before == len(self._names):
                return

    def _take(self, found: Object) -> None:
        """Follow the attributes of an object that are named in the reachable functions."""
        known = found.named
        for guarded, names in found.tables:
            if ANY_NAME & self._names and not isinstance(found.x, ModuleType):
                wanted = set(names)
            else:
                wanted = self._names & set(names)
                if isinstance(found.x, type):
                    wanted |= {name for name in names if _codes_of(found.x.__dict__[name])}
            for name in sorted(wanted - known.keys()):
                guard = guarded(name)
                known[name] = Link(guard, guard.value, f"{found.path}.{name}")
                self._visit(guard.value, known[name].path)

    @property
    def optimizers(self) -> list[Optimizer]:
        """The optimizers whose groups the step may read itself."""
        found = [x.x for x in self._objects.values() if isinstance(x.x, Optimizer)]
        named = "param_groups" in self._names
        return [one for one in found if named or any(id(group) in self._objects for group in one.param_groups)]

    # --- after it has run ---

    def settle(self) -> None:
        """Replace symbolic scalars that the step stored in reachable objects, as a scheduler does, by their values."""
        for x in [found.x for key, found in self._objects.items() if key not in self._late]:
            table = x if isinstance(x, dict | list) else getattr(x, "__dict__", None)
            pairs = list(table.items() if isinstance(table, dict) else enumerate(table if type(table) is list else ()))
            for key, value in pairs:
                if type(value) is Traced or (type(value) in (tuple, list) and Traced in map(type, value)):
                    cast(Any, table)[key] = plain(value)

    def chosen(self, watch: EntryWatch, optimizers: Iterable[Optimizer] = ()) -> Chosen:
        """Return what the entered functions may have read, except groups of `optimizers`, which have other guards."""
        groups = {id(group) for one in optimizers for group in (one.param_groups, *one.param_groups)}
        if watch.reads_environment:
            self.add(os.environ, "os.environ")
        cached = [x.x.__wrapped__.__code__ for x in self._objects.values() if isinstance(x.x, CACHED)]
        entered = {**watch.entered, **{id(code): code for code in cached}}
        names = watch.names.union(self._given, *map(names_in, cached))
        found = Chosen([], {}, list(watch.impure))
        methods = vars(Tensor)
        found.guards.extend([entry(methods, name, f"Tensor.{name}") for name in sorted(names & methods.keys())])
        seen: set[int] = set()
        waiting = deque(self._roots)
        while waiting:
            x = waiting.popleft()
            if id(x) in seen:
                continue
            seen.add(id(x))
            if id(x) in self._tensors:
                found.tensors[id(x)] = self._tensors[id(x)]
            if id(x) in self._objects and id(x) not in groups:
                waiting += self._read(self._objects[id(x)], entered, names, found)
        return found

    def _read(self, of: Object, entered: Mapping[int, CodeType], names: set[str], found: Chosen) -> Iterator[Any]:
        """Collect the guards of an object's links that were read, and yield the objects they lead to."""
        if of.code is not None and id(of.code) not in entered:
            return
        if of.refused:
            found.refused.append(f"{of.path}, {of.refused}")
        every = bool(ANY_NAME & names) and not isinstance(of.x, ModuleType)
        read = [
            link
            for name, link in of.named.items()
            if name in names
            or (every and not self._refuses(link.to))
            or any(id(code) in entered for code in _codes_of(link.to))
        ]
        if names & ASKS and of.absent is not None:
            absent = frozenset(names - of.absent.keys())
            found.guards.append(absence(of.absent, absent, f"an attribute of {of.path}"))
        for link in of.links + read:
            if link.guard is not None:
                found.guards.append(link.guard)
            yield link.to

    def _refuses(self, x: Any) -> bool:
        return id(x) in self._objects and bool(self._objects[id(x)].refused)


def _within(code: CodeType) -> set[int]:
    """Return the ids of a function's code and of functions nested in it, which are created when it runs."""
    return {id(code)}.union(*[_within(x) for x in code.co_consts if isinstance(x, CodeType)])


def _codes_of(x: Any) -> list[CodeType]:
    """Return the code of a function, or of a descriptor's functions, which a library may call without their names."""
    inner = (
        [getattr(x, name, None) for name in ("fget", "fset", "__func__", "func")]
        if isinstance(x, _DESCRIPTORS)
        else [x]
    )
    return [f.__code__ for f in inner if isinstance(f, FunctionType)]
