"""Guards: conditions under which a trace may be replayed.

A guard stores how to read something that a step depends on, and its value when the step was traced. All guards of a
trace are compiled into one expression that compares by identity, since a loop over them would take longer than a small
step. Values are compared only if that fails: an equal int, float, string or tuple of those also passes.
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
    "absence",
    "attribute",
    "calls",
    "cell",
    "compiled",
    "computed",
    "contents",
    "entries",
    "entry",
    "is_value",
    "same",
    "size",
]

MISSING = type("missing", (), {"__repr__": lambda self: "missing"})()
_WRITTEN = ("decimal", "fractions", "datetime", "pathlib", "uuid")  # modules of immutable types with an exact repr
_EQUAL = (int, str, bytes, range, np.dtype)
_SINGLE = (type(None), EllipsisType, NotImplementedType, CodeType, type(MISSING))
_VALUES = (float, complex, *_EQUAL, *_SINGLE, np.generic, slice)
EMPTY = "not {0}"
SHORT = 4  # maximum length of a list whose entries are compared one by one
_ONE_BY_ONE = [
    " and ".join([f"len({{0}}) == {n}", *[f"{{0}}[{k}] is {{{k + 1}}}" for k in range(n)]]) for n in range(SHORT + 1)
]
_BOUND = (MethodType, BuiltinFunctionType, MethodWrapperType)  # each lookup creates a new object


def _is_written(kind: type) -> bool:
    return str(kind.__module__).partition(".")[0] in _WRITTEN


def is_value(x: Any) -> bool:
    """Whether `x` is immutable: a Python scalar, a string, a tuple of those, or similar."""
    if isinstance(x, tuple | frozenset):
        return all(map(is_value, x))
    return isinstance(x, _VALUES) or _is_written(type(x))


def same(now: Any, before: Any) -> bool:
    """Return whether `now` is `before`, or an equal value of the same type: 1 is not True, and 0.0 is not -0.0.

    >>> same(0.5, 0.5), same(float("nan"), float("nan")), same(0.0, -0.0), same(1, True), same((1, "a"), (1, "a"))
    (True, True, False, False, True)
    """
    if now is before:
        return True
    if type(now) is not type(before):
        return False
    if isinstance(now, tuple):
        return len(now) == len(before) and all(map(same, now, before))
    if isinstance(now, np.generic):
        return bool(now.dtype == before.dtype and now.tobytes() == before.tobytes())
    if isinstance(now, slice):
        return same((now.start, now.stop, now.step), (before.start, before.stop, before.step))
    if isinstance(now, float):
        return float.__repr__(now) == float.__repr__(before)
    if isinstance(now, complex) or _is_written(type(now)):
        return repr(now) == repr(before)
    return bool((isinstance(now, _BOUND) or is_value(now)) and now == before)


class Guard:
    """A condition: `read()` still returns `value`. `test` is its identity test, a template over `objects`."""

    __slots__ = ("objects", "read", "test", "value", "verb", "what")

    def __init__(
        self,
        test: str,
        objects: tuple[Any, ...],
        read: Callable[[], Any],
        value: Any,
        what: str,
        verb: str = "was replaced",
    ) -> None:
        self.test, self.objects, self.read, self.value, self.what, self.verb = test, objects, read, value, what, verb

    def holds(self) -> bool:
        """Return whether the value read now is the same."""
        return same(self.read(), self.value)

    def reason(self) -> str:
        """Return what changed."""
        now, before = self.read(), self.value
        if now is MISSING:
            return f"{self.what} was deleted"
        if before is MISSING:
            return f"{self.what} was added"
        if self.verb == "was replaced" and is_value(now) and is_value(before) and not isinstance(now, CodeType):
            return f"{self.what} changed from {before!r:.60} to {now!r:.60}"
        return f"{self.what} {self.verb}"


def entry(table: Mapping[Any, Any], key: Any, what: str) -> Guard:
    """Guard the value of a mapping under `key`, or its absence."""
    read = partial(table.get, key, MISSING)
    value = read()
    if value is MISSING:
        return Guard("{0} not in {1}", (key, table), read, value, what)
    return Guard("{1}[{0}] is {2}", (key, table, value), read, value, what)


def attribute(x: Any, name: str, what: str) -> Guard:
    """Guard an attribute of `x`. To guard a computed attribute, read it from where it is stored."""
    read = partial(getattr, x, name, MISSING)
    value = read()
    if not name.isidentifier() or value is MISSING:
        return Guard("getattr({0}, {1}, {2}) is {3}", (x, name, MISSING, value), read, value, what)
    return Guard(f"{{0}}.{name} is {{1}}", (x, value), read, value, what)


def cell(of: CellType, what: str) -> Guard:
    """Guard the value of a closure variable."""

    def read() -> Any:
        try:
            return of.cell_contents
        except ValueError:  # not assigned yet
            return MISSING

    value = read()
    if value is MISSING:
        return Guard("{0}() is {1}", (read, value), read, value, what)
    return Guard("{0}.cell_contents is {1}", (of, value), read, value, what)


def calls(read: Callable[[], Any], what: str) -> Guard:
    """Guard the identity of a function's result."""
    value = read()
    return Guard("{0}() is {1}", (read, value), read, value, what)


def computed(read: Callable[[], Any], what: str) -> Guard:
    """Guard the value of a function's result."""
    value = read()
    return Guard("{0}() == {1}", (read, value), read, value, what, "changed")


def absence(table: Mapping[str, Any], names: frozenset[str], what: str) -> Guard:
    """Guard that a mapping has none of these names."""

    def read() -> tuple[str, ...]:
        return tuple(sorted(names & table.keys()))

    return Guard("{0}.keys().isdisjoint({1})", (table, names), read, read(), what, "appeared")


def size(of: Any, what: str) -> Guard:
    """Guard the length of a container."""
    test = f"len({{0}}) == {len(of)}" if len(of) else EMPTY
    return Guard(test, (of,), lambda: len(of), len(of), f"the number of {what}")


def entries(of: Any, what: str) -> Guard:
    """Guard the entries of a container and their order; keys and values of a mapping."""
    mapping = type(of) is not list and hasattr(of, "keys") and hasattr(of, "values")
    kind: Any = dict if isinstance(of, dict) else type(of)  # a dict subclass may override what it returns

    def read() -> tuple[Any, ...]:
        return (*kind.keys(of), *kind.values(of)) if mapping else tuple(of)

    value, n = read(), len(of)
    if not n:
        return Guard(EMPTY, (of,), read, value, what, "changed")
    if mapping:
        same = "all(map(is_, {3}({0}), {1})) and all(map(is_, {4}({0}), {2}))"
        test = f"len({{0}}) == {n} and {same}"
        return Guard(test, (of, value[:n], value[n:], kind.keys, kind.values), read, value, what, "changed")
    if n <= SHORT and type(of) is list:
        return Guard(_ONE_BY_ONE[n], (of, *value), read, value, what, "changed")
    return Guard(f"len({{0}}) == {n} and all(map(is_, {{0}}, {{1}}))", (of, value), read, value, what, "changed")


def contents(of: Any, what: str) -> Guard:
    """Guard the bytes of memory that Python may write to, such as a NumPy array."""

    def read() -> tuple[Any, ...]:
        if isinstance(of, np.ndarray):
            raw = np.ndarray.tobytes(of)  # also of a masked array, which overrides the method
            return of.shape, of.strides, of.dtype, raw, np.asarray(getattr(of, "_mask", ())).tobytes()
        return (of.typecode, of.tobytes()) if isinstance(of, array) else (bytes(of),)

    return computed(read, f"the contents of {what}")


def compiled(guards: Iterable[Guard], more: Iterable[tuple[str, tuple[Any, ...]]] = ()) -> Callable[[Any], bool]:
    """Return a function of `tensors` that returns whether all guards hold by identity.

    `more` are tests in the same form that may name `tensors`. Objects are defaults of the function's parameters, which
    are faster to read than globals. All tests for emptiness are merged into one.
    """
    names: dict[int, str] = {}
    objects: list[Any] = []

    def of(x: Any) -> str:
        if id(x) not in names:
            names[id(x)] = f"x{len(names)}"
            objects.append(x)
        return names[id(x)]

    written = [(test, tuple(map(of, given))) for test, given in [*more, *[(x.test, x.objects) for x in guards]]]
    tests = dict.fromkeys(test.format(*given) for test, given in written if test != EMPTY)
    if empty := dict.fromkeys(given[0] for test, given in written if test == EMPTY):
        tests[f"not ({' or '.join(empty)})"] = None
    parameters = "".join(f", {name}=None" for name in names.values())
    body = " and ".join(tests) or "True"
    hold: Any = compile_function(
        "hold",
        f"def hold(tensors{parameters}, is_=None):\n"
        f"    try:\n        return {body}\n    except Exception:\n        return False\n",
    )
    hold.__defaults__ = (*objects, is_)
    return cast(Callable[[Any], bool], hold)
