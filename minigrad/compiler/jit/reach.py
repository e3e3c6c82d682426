"""The Python objects that a step can read, which are recorded before it runs, and the objects that it has read.

Starting from the step, the objects among its arguments and the modules that it calls, `Reach` follows closure
variables, globals, defaults, attributes, containers, wrappers and classes, and creates a guard for each link (see
`objects`). After the step has run, it selects the links that the step may have followed: those of functions that were
entered, and of attributes named in their code.
"""

from __future__ import annotations

import gc
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, partialmethod
from types import CellType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple, cast

from minigrad.compiler.jit.guards import Guard, guard_absence, guard_entry, is_value
from minigrad.compiler.jit.links import Link, ReachableObject
from minigrad.compiler.jit.objects import LRU_CACHE_TYPE, describe
from minigrad.compiler.jit.watch import EntryWatch, is_user_code, names_in
from minigrad.core.symbolic import SymbolicScalar, concrete
from minigrad.core.tensor import Tensor
from minigrad.optim import Optimizer

__all__ = ["Reach", "ReadSet"]

MAX_OBJECTS = 50_000
REFLECTION_NAMES = frozenset(
    ("getattr", "vars", "__dict__", "attrgetter", "asdict", "astuple", "copy", "deepcopy", "__getattribute__")
)
"""Names that allow a step to read attributes which its code does not name."""
ABSENCE_NAMES = frozenset(("hasattr", "getattr", "AttributeError", "Exception"))
"""Names that allow a step to observe that an attribute is missing."""
_DESCRIPTORS = (property, staticmethod, classmethod, cached_property, partialmethod)


class ReadSet(NamedTuple):
    """Objects that a step read: guards, tensors as (tensor, name) by id, and messages about objects that cannot be
    guarded."""

    guards: list[Guard]
    tensors: dict[int, tuple[Any, str]]
    unguardable: list[str]


class Reach:
    """The objects that are reachable from the added roots."""

    def __init__(self) -> None:
        self._objects: dict[int, ReachableObject] = {}
        self._tensors: dict[int, tuple[Any, str]] = {}
        self._roots: list[Any] = []
        self._names: set[str] = set()  # names in the code of all reachable functions
        self._stored_names: set[str] = set()  # attribute names stored in objects such as `attrgetter`
        self._codes: set[int] = set()  # ids of the code objects of all reachable functions
        self._late_ids: set[int] = set()  # ids of objects first seen during the step, which may have created them
        self._queue: deque[ReachableObject] = deque()
        self._with_attributes: list[ReachableObject] = []

    # --- before the step runs ---

    def add(self, x: Any, path: str) -> None:
        """Add `x`, which counts as read, and all objects reachable from it."""
        self._roots.append(x)
        self._visit(x, path)
        self._follow()

    def enter(self, frame: FrameType) -> None:
        """Add the function of a frame that is about to run, unless it is known. Only a library may reference it."""
        code = frame.f_code
        if id(code) in self._codes:
            return
        self._codes |= _nested_code_ids(code)
        functions = [x for x in gc.get_referrers(code) if isinstance(x, FunctionType) and x.__code__ is code]
        cells = tuple([CellType() for _ in code.co_freevars])
        count = len(self._objects)
        for function in functions or [FunctionType(code, frame.f_globals, closure=cells)]:
            self.add(function, function.__qualname__)
        self._late_ids.update(list(self._objects)[count:])

    def _visit(self, x: Any, path: str) -> None:
        if is_value(x) or id(x) in self._objects:
            return
        if isinstance(x, Tensor):
            self._tensors.setdefault(id(x), (x, path))
        node = self._objects[id(x)] = ReachableObject(x, path)
        if len(self._objects) > MAX_OBJECTS:
            node.unguardable_reason = f"which leads to more than {MAX_OBJECTS:,} reachable objects"
            return
        describe(node)
        self._stored_names |= node.names
        self._names |= node.names
        if node.code is not None:
            self._codes |= _nested_code_ids(node.code)
            if is_user_code(node.code, x.__globals__):
                self._names |= names_in(node.code)
        self._queue.append(node)
        if node.tables:
            self._with_attributes.append(node)

    def _follow(self) -> None:
        """Visit all reachable objects until no new names appear."""
        while True:
            while self._queue:
                for link in self._queue.popleft().links:
                    self._visit(link.target, link.path)
            before = len(self._names)
            for node in list(self._with_attributes):
                self._follow_attributes(node)
            if not self._queue and before == len(self._names):
                return

    def _follow_attributes(self, node: ReachableObject) -> None:
        """Follow the attributes of an object that are named in the reachable functions."""
        links = node.named_links
        for guard_factory, names in node.tables:
            if REFLECTION_NAMES & self._names and not isinstance(node.object, ModuleType):
                followed = set(names)
            else:
                followed = self._names & set(names)
                if isinstance(node.object, type):
                    followed |= {name for name in names if _codes_of(node.object.__dict__[name])}
            for name in sorted(followed - links.keys()):
                guard = guard_factory(name)
                links[name] = Link(guard, guard.value, f"{node.path}.{name}")
                self._visit(guard.value, links[name].path)

    @property
    def optimizers(self) -> list[Optimizer]:
        """The optimizers whose parameter groups the code of the step may read."""
        optimizers = [x.object for x in self._objects.values() if isinstance(x.object, Optimizer)]
        named = "param_groups" in self._names
        return [one for one in optimizers if named or any(id(group) in self._objects for group in one.param_groups)]

    # --- after it has run ---

    def restore_scalars(self) -> None:
        """Replace symbolic scalars that the step stored in reachable objects, as a scheduler does, by their values."""
        for x in [node.object for key, node in self._objects.items() if key not in self._late_ids]:
            table = x if isinstance(x, dict | list) else getattr(x, "__dict__", None)
            pairs = list(table.items() if isinstance(table, dict) else enumerate(table if type(table) is list else ()))
            for key, value in pairs:
                if type(value) is SymbolicScalar or (
                    type(value) in (tuple, list) and SymbolicScalar in map(type, value)
                ):
                    cast(Any, table)[key] = concrete(value)

    def select_read(self, watch: EntryWatch, optimizers: Iterable[Optimizer] = ()) -> ReadSet:
        """Return what the entered functions may have read. Groups of `optimizers` are omitted, since they are guarded
        separately."""
        groups = {id(group) for one in optimizers for group in (one.param_groups, *one.param_groups)}
        if watch.reads_environment:
            self.add(os.environ, "os.environ")
        cached = [x.object.__wrapped__.__code__ for x in self._objects.values() if isinstance(x.object, LRU_CACHE_TYPE)]
        entered = {**watch.entered, **{id(code): code for code in cached}}
        names = watch.names.union(self._stored_names, *map(names_in, cached))
        read_set = ReadSet([], {}, list(watch.impure))
        methods = vars(Tensor)
        read_set.guards.extend(
            [guard_entry(methods, name, f"Tensor.{name}") for name in sorted(names & methods.keys())]
        )
        visited: set[int] = set()
        queue = deque(self._roots)
        while queue:
            x = queue.popleft()
            if id(x) in visited:
                continue
            visited.add(id(x))
            if id(x) in self._tensors:
                read_set.tensors[id(x)] = self._tensors[id(x)]
            if id(x) in self._objects and id(x) not in groups:
                queue += self._collect_guards(self._objects[id(x)], entered, names, read_set)
        return read_set

    def _collect_guards(
        self, node: ReachableObject, entered: Mapping[int, CodeType], names: set[str], read_set: ReadSet
    ) -> Iterator[Any]:
        """Collect the guards of those links of an object that were read, and yield the targets of these links."""
        if node.code is not None and id(node.code) not in entered:
            return
        if node.unguardable_reason:
            read_set.unguardable.append(f"{node.path}, {node.unguardable_reason}")
        reads_all = bool(REFLECTION_NAMES & names) and not isinstance(node.object, ModuleType)
        read = [
            link
            for name, link in node.named_links.items()
            if name in names
            or (reads_all and not self._is_unguardable(link.target))
            or any(id(code) in entered for code in _codes_of(link.target))
        ]
        if names & ABSENCE_NAMES and node.absence_table is not None:
            absent = frozenset(names - node.absence_table.keys())
            read_set.guards.append(guard_absence(node.absence_table, absent, f"an attribute of {node.path}"))
        for link in node.links + read:
            if link.guard is not None:
                read_set.guards.append(link.guard)
            yield link.target

    def _is_unguardable(self, x: Any) -> bool:
        return id(x) in self._objects and bool(self._objects[id(x)].unguardable_reason)


def _nested_code_ids(code: CodeType) -> set[int]:
    """Return the ids of the code objects of a function and of its nested functions, which are created when it runs."""
    return {id(code)}.union(*[_nested_code_ids(x) for x in code.co_consts if isinstance(x, CodeType)])


def _codes_of(x: Any) -> list[CodeType]:
    """Return the code of a function, or of a descriptor's functions, which a library may call without naming them."""
    inner = (
        [getattr(x, name, None) for name in ("fget", "fset", "__func__", "func")]
        if isinstance(x, _DESCRIPTORS)
        else [x]
    )
    return [f.__code__ for f in inner if isinstance(f, FunctionType)]
