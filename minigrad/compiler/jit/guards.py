"""Guards, the conditions under which a trace may be replayed.

A guard stores how to read a value that a step depends on, and the value when the step was traced. All guards of a trace
are compiled into one expression that compares by identity, since a loop over them would take longer than a small step.
Values are compared only if that fails: an equal int, float, string or tuple of those also passes.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import is_
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    EllipsisType,
    MethodType,
    MethodWrapperType,
    NotImplementedType,
)
from typing import Any, cast

import numpy as np

from minigrad.core.specialise import compile_function

__all__ = [
    "MISSING",
    "Guard",
    "compile_guards",
    "guard_absence",
    "guard_attribute",
    "guard_bytes",
    "guard_cell",
    "guard_entries",
    "guard_entry",
    "guard_identity",
    "guard_length",
    "guard_result",
    "is_same",
    "is_value",
]

MISSING = type("missing", (), {"__repr__": lambda self: "missing"})()
_REPR_MODULES = ("decimal", "fractions", "datetime", "pathlib", "uuid")  # modules of immutable types with an exact repr
_COMPARABLE_TYPES = (int, str, bytes, range, np.dtype)
_SINGLETON_TYPES = (type(None), EllipsisType, NotImplementedType, CodeType, type(MISSING))
_VALUE_TYPES = (float, complex, *_COMPARABLE_TYPES, *_SINGLETON_TYPES, np.generic, slice)
EMPTY_TEST = "not {0}"
MAX_UNROLLED = 4  # maximum length of a list whose entries are compared one by one
_UNROLLED_TESTS = [
    " and ".join([f"len({{0}}) == {n}", *[f"{{0}}[{k}] is {{{k + 1}}}" for k in range(n)]])
    for n in range(MAX_UNROLLED + 1)
]
_BOUND_METHOD_TYPES = (MethodType, BuiltinFunctionType, MethodWrapperType)  # each lookup creates a new object


def _has_exact_repr(kind: type) -> bool:
    return str(kind.__module__).partition(".")[0] in _REPR_MODULES


def is_value(x: Any) -> bool:
    """Return whether `x` is an immutable value, such as a Python scalar, a string, or a tuple of these."""
    if isinstance(x, tuple | frozenset):
        return all(map(is_value, x))
    return isinstance(x, _VALUE_TYPES) or _has_exact_repr(type(x))


def is_same(current: Any, previous: Any) -> bool:
    """Return whether `current` is `previous`, or an equal value of the same type: 1 is not True, and 0.0 is not -0.0.

    >>> is_same(0.5, 0.5), is_same(float("nan"), float("nan")), is_same((1, "a"), (1, "a"))
    (True, True, True)
    >>> is_same(0.0, -0.0), is_same(1, True)
    (False, False)
    """
    if current is previous:
        return True
    if type(current) is not type(previous):
        return False
    if isinstance(current, tuple):
        return len(current) == len(previous) and all(map(is_same, current, previous))
    if isinstance(current, np.generic):
        return bool(current.dtype == previous.dtype and current.tobytes() == previous.tobytes())
    if isinstance(current, slice):
        return is_same((current.start, current.stop, current.step), (previous.start, previous.stop, previous.step))
    if isinstance(current, float):
        return float.__repr__(current) == float.__repr__(previous)
    if isinstance(current, complex) or _has_exact_repr(type(current)):
        return repr(current) == repr(previous)
    return bool((isinstance(current, _BOUND_METHOD_TYPES) or is_value(current)) and current == previous)


class Guard:
    """Condition that `read()` still returns `value`. `test` is a template of an identity test, formatted with
    `objects`."""

    __slots__ = ("name", "objects", "read", "test", "value", "verb")

    def __init__(
        self,
        test: str,
        objects: tuple[Any, ...],
        read: Callable[[], Any],
        value: Any,
        name: str,
        verb: str = "was replaced",
    ) -> None:
        self.test, self.objects, self.read, self.value, self.name, self.verb = test, objects, read, value, name, verb

    def holds(self) -> bool:
        """Return whether the current value is the same."""
        return is_same(self.read(), self.value)

    def describe_failure(self) -> str:
        current, before = self.read(), self.value
        if current is MISSING:
            return f"{self.name} was deleted"
        if before is MISSING:
            return f"{self.name} was added"
        if self.verb == "was replaced" and is_value(current) and is_value(before) and not isinstance(current, CodeType):
            return f"{self.name} changed from {before!r:.60} to {current!r:.60}"
        return f"{self.name} {self.verb}"


def guard_entry(table: Mapping[Any, Any], key: Any, name: str) -> Guard:
    """Guard the value of a mapping under `key`, or its absence."""
    read = partial(table.get, key, MISSING)
    value = read()
    if value is MISSING:
        return Guard("{0} not in {1}", (key, table), read, value, name)
    return Guard("{1}[{0}] is {2}", (key, table, value), read, value, name)


def guard_attribute(x: Any, name: str, description: str) -> Guard:
    """Guard an attribute of `x`. A computed attribute must be guarded where its value is stored."""
    read = partial(getattr, x, name, MISSING)
    value = read()
    if not name.isidentifier() or value is MISSING:
        return Guard("getattr({0}, {1}, {2}) is {3}", (x, name, MISSING, value), read, value, description)
    return Guard(f"{{0}}.{name} is {{1}}", (x, value), read, value, description)


def guard_cell(closure_cell: CellType, name: str) -> Guard:
    """Guard the value of a closure variable."""

    def read() -> Any:
        try:
            return closure_cell.cell_contents
        except ValueError:  # not assigned yet
            return MISSING

    value = read()
    if value is MISSING:
        return Guard("{0}() is {1}", (read, value), read, value, name)
    return Guard("{0}.cell_contents is {1}", (closure_cell, value), read, value, name)


def guard_identity(read: Callable[[], Any], name: str) -> Guard:
    """Guard the identity of a function's result."""
    value = read()
    return Guard("{0}() is {1}", (read, value), read, value, name)


def guard_result(read: Callable[[], Any], name: str) -> Guard:
    """Guard the value of a function's result."""
    value = read()
    return Guard("{0}() == {1}", (read, value), read, value, name, "changed")


def guard_absence(table: Mapping[str, Any], names: frozenset[str], name: str) -> Guard:
    """Guard that a mapping has none of these names."""

    def read() -> tuple[str, ...]:
        return tuple(sorted(names & table.keys()))

    return Guard("{0}.keys().isdisjoint({1})", (table, names), read, read(), name, "appeared")


def guard_length(container: Any, name: str) -> Guard:
    test = f"len({{0}}) == {len(container)}" if len(container) else EMPTY_TEST
    return Guard(test, (container,), lambda: len(container), len(container), f"the number of {name}")


def guard_entries(container: Any, name: str) -> Guard:
    """Guard the entries of a container and their order; for a mapping, the keys and values."""
    is_mapping = type(container) is not list and hasattr(container, "keys") and hasattr(container, "values")
    kind: Any = dict if isinstance(container, dict) else type(container)  # a dict subclass may override these methods

    def read() -> tuple[Any, ...]:
        return (*kind.keys(container), *kind.values(container)) if is_mapping else tuple(container)

    value, n = read(), len(container)
    if not n:
        return Guard(EMPTY_TEST, (container,), read, value, name, "changed")
    if is_mapping:
        identity_test = "all(map(is_, {3}({0}), {1})) and all(map(is_, {4}({0}), {2}))"
        test = f"len({{0}}) == {n} and {identity_test}"
        return Guard(test, (container, value[:n], value[n:], kind.keys, kind.values), read, value, name, "changed")
    if n <= MAX_UNROLLED and type(container) is list:
        return Guard(_UNROLLED_TESTS[n], (container, *value), read, value, name, "changed")
    return Guard(f"len({{0}}) == {n} and all(map(is_, {{0}}, {{1}}))", (container, value), read, value, name, "changed")


def guard_bytes(memory: Any, name: str) -> Guard:
    """Guard the bytes of memory that Python may write to, such as a NumPy array."""

    def read() -> tuple[Any, ...]:
        if isinstance(memory, np.ndarray):
            raw = np.ndarray.tobytes(memory)  # also of a masked array, which overrides the method
            return memory.shape, memory.strides, memory.dtype, raw, np.asarray(getattr(memory, "_mask", ())).tobytes()
        return (memory.typecode, memory.tobytes()) if isinstance(memory, array) else (bytes(memory),)

    return guard_result(read, f"the contents of {name}")


def compile_guards(
    guards: Iterable[Guard], extra_tests: Iterable[tuple[str, tuple[Any, ...]]] = ()
) -> Callable[[Any], bool]:
    """Return a function of `tensors` that tests all guards by identity.

    `extra_tests` are further pairs of a test and its objects; the tests may refer to `tensors`. Objects are stored as
    default arguments, which are faster to read than globals. All tests for emptiness are merged into one.
    """
    names: dict[int, str] = {}
    objects: list[Any] = []

    def name_of(x: Any) -> str:
        if id(x) not in names:
            names[id(x)] = f"x{len(names)}"
            objects.append(x)
        return names[id(x)]

    named_tests = [
        (test, tuple(map(name_of, arguments)))
        for test, arguments in [*extra_tests, *[(x.test, x.objects) for x in guards]]
    ]
    tests = dict.fromkeys(test.format(*argument_names) for test, argument_names in named_tests if test != EMPTY_TEST)
    if empty := dict.fromkeys(argument_names[0] for test, argument_names in named_tests if test == EMPTY_TEST):
        tests[f"not ({' or '.join(empty)})"] = None
    parameters = "".join(f", {name}=None" for name in names.values())
    body = " and ".join(tests) or "True"
    check: Any = compile_function(
        "hold",
        f"def hold(tensors{parameters}, is_=None):\n"
        f"    try:\n        return {body}\n    except Exception:\n        return False\n",
    )
    check.__defaults__ = (*objects, is_)
    return cast(Callable[[Any], bool], check)
