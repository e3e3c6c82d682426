"""Symbolic scalars: Python numbers that a captured function reads again on each replay, such as a learning rate.

During capture such a number is a `Traced`, which computes like the number and records the expressions. A compiled
Python function then evaluates on each replay what the kernels need from the current values. Where Python needs the
concrete value (an ``if``, a ``float()``), the result is recorded as a guard: the capture is valid while it is
unchanged.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from numbers import Number
from typing import Any

from minigrad.core.specialise import compile_function

__all__ = ["Book", "Traced", "apply", "plain", "replaced", "traced"]


class Book:
    """The symbolic scalars of one capture: Python assignments, one per scalar."""

    def __init__(self) -> None:
        self._lines: list[tuple[str, str, tuple[str, ...]]] = []  # name, expression, names of its operands
        self._known: dict[str, Traced] = {}  # by expression: common subexpressions are eliminated
        self._space: dict[str, Any] = {"inf": math.inf, "nan": math.nan}
        self._functions: dict[int, str] = {}
        self._conditions: dict[tuple[str, Any], str] = {}  # (expression, value) -> description for the user

    def source(self, read: Callable[[], Any], what: str, value: Any = None) -> Traced:
        """Add an input, which `read` returns on each replay; its current value is `value`, described by `what`."""
        found = self.call(read, (), what)
        found.value = found.value if value is None else value
        return found

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], what: str) -> Traced:
        """Record the call ``function(*args)``, whose arguments may be symbolic."""
        texts = [self.text(x) for x in args]
        return self.line(f"{self.text(function)}({', '.join(texts)})", function(*map(plain, args)), args, what)

    def line(self, text: str, value: Any, operands: Iterable[Any], what: str = "") -> Traced:
        known = self._known.get(text)
        if known is not None:
            known.value = value
            return known
        read = [x for x in operands if type(x) is Traced]
        name = f"n{len(self._lines)}"
        self._lines.append((name, text, tuple([x.name for x in read])))
        self._known[text] = Traced(self, name, value, what or next((x.what for x in read), ""))
        return self._known[text]

    def text(self, x: Any) -> str:
        """Return the expression of a symbolic scalar or a constant."""
        if type(x) is Traced:
            return x.name
        if type(x) in (bool, int, float, str, tuple, list, type(None)):
            text = repr(x)
            return f"({text})" if text[0] == "-" else text  # -2.0 ** n0 would be -(2.0 ** n0)
        name = self._functions.setdefault(id(x), f"f{len(self._space)}")
        self._space[name] = x
        return name

    def binary(self, sign: str, a: Any, b: Any) -> Any:
        """Record ``a sign b``, one of them symbolic; NotImplemented if the other is not a number."""
        if not (isinstance(a, Number) and isinstance(b, Number)):
            return NotImplemented
        value = _BINARY[sign](plain(a), plain(b))
        return self.line(f"{self.text(a)} {sign} {self.text(b)}", value, (a, b))

    def condition(self, text: str, value: Any, what: str) -> Any:
        """Add the guard that the expression `text` equals `value`."""
        self._conditions.setdefault((text, value), what)
        return value

    @property
    def conditions(self) -> list[str]:
        """The description of each guard."""
        return list(self._conditions.values())

    def forget(self, count: int) -> None:
        """Remove all guards but the first `count`."""
        self._conditions = dict(list(self._conditions.items())[:count])

    def function(self, wanted: Iterable[Any]) -> Callable[[], tuple[tuple[Any, ...], tuple[bool, ...]]]:
        """Compile a function that returns the current values of `wanted`, and whether each guard holds."""
        given = list(wanted)
        needed = {x.name for x in given if type(x) is Traced}
        tests = [_test(text, value) for text, value in self._conditions]
        for text, _ in self._conditions:
            needed |= {name for name, _, _ in self._lines if name in _names(text)}
        body = []
        for name, text, operands in reversed(self._lines):
            if name in needed:
                needed.update(operands)
                body.append(f"    {name} = {text}\n")
        values = "".join(f"{self.text(x)}, " for x in given)
        text = f"def read():\n{''.join(reversed(body))}    return ({values}), ({''.join(f'{x}, ' for x in tests)})\n"
        return compile_function("read", text, dict(self._space), "<numbers of a step>")


def _test(text: str, value: Any) -> str:
    """Return a test that `text` equals `value` with the same type and sign of zero; nan equals nan."""
    kind = type(value)
    if kind is bool and not text.isidentifier():
        return f"{text} == {value}"
    if kind in (int, float) and value == value and value:
        return f"({text} == {value!r} and type({text}) is {kind.__name__})"
    return f"repr({text}) == {repr(value)!r}"


def _names(text: str) -> set[str]:
    return set("".join(x if x.isalnum() else " " for x in text).split())


class Traced:
    """A symbolic scalar. Its ``__class__`` is that of its current value."""

    __slots__ = ("book", "name", "value", "what")

    def __init__(self, book: Book, name: str, value: Any, what: str) -> None:
        self.book, self.name, self.value, self.what = book, name, value, what

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self.value)

    def _known(self) -> Any:
        """Return the concrete value, and guard on it."""
        return self.book.condition(self.name, self.value, self.what)

    def __float__(self) -> float:
        return float(self._known())

    def __int__(self) -> int:
        return int(self.book.condition(f"int({self.name})", int(self.value), self.what))

    def __index__(self) -> int:
        operator.index(self.value)  # raises for a float
        return operator.index(self._known())

    def __bool__(self) -> bool:
        return bool(self.book.condition(f"bool({self.name})", bool(self.value), self.what))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        import numpy  # already imported by the caller

        return numpy.asarray(self._known(), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Let NumPy compute with the concrete value."""
        return getattr(ufunc, method)(*[x._known() if type(x) is Traced else x for x in inputs], **kwargs)

    def __getattr__(self, name: str) -> Any:
        """Return a method of the concrete value, such as ``is_integer``."""
        if name.startswith("__"):
            raise AttributeError(name)
        getattr(self.value, name)
        return getattr(self._known(), name)

    def __reduce__(self) -> Any:
        """Copy and pickle the concrete value."""
        return type(self.value), (self._known(),)

    def __hash__(self) -> int:
        return hash(self._known())

    def __repr__(self) -> str:
        return repr(self._known())

    def __format__(self, spec: str) -> str:
        return format(self._known(), spec)

    def __neg__(self) -> Any:
        return self.book.line(f"-{self.name}", -self.value, (self,))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self.book.line(f"abs({self.name})", abs(self.value), (self,))

    def __round__(self, digits: int | None = None) -> Any:
        return self.book.call(round, (self, digits), self.what)

    def __trunc__(self) -> Any:
        return self.book.call(math.trunc, (self,), self.what)

    def __floor__(self) -> Any:
        return self.book.call(math.floor, (self,), self.what)

    def __ceil__(self) -> Any:
        return self.book.call(math.ceil, (self,), self.what)

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self


_BINARY: dict[str, Callable[[Any, Any], Any]] = {}
for _sign, _name in {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
    "&": "and", "|": "or", "^": "xor", ">>": "rshift", "<<": "lshift",
}.items():  # fmt: skip
    _BINARY[_sign] = vars(operator)[f"__{_name}__"]
    setattr(Traced, f"__{_name}__", lambda self, other, sign=_sign: self.book.binary(sign, self, other))
    setattr(Traced, f"__r{_name}__", lambda self, other, sign=_sign: self.book.binary(sign, other, self))
for _sign, _name in {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}.items():
    _BINARY[_sign] = vars(operator)[_name]

    def _compared(self: Traced, other: Any, sign: str = _sign) -> Any:
        if not isinstance(other, Number):
            return NotImplemented
        found = bool(_BINARY[sign](self.value, plain(other)))
        return bool(self.book.condition(f"({self.name} {sign} {self.book.text(other)})", found, self.what))

    setattr(Traced, f"__{_name}__", _compared)


def replaced(x: Any, number: Callable[[Traced], Any]) -> Any:
    """Replace each symbolic scalar t in `x`, a scalar, tuple, list or mapping, by ``number(t)``."""
    if type(x) is Traced:
        return number(x)
    if type(x) in (tuple, list):
        return type(x)([replaced(y, number) for y in x])
    if isinstance(x, Mapping):
        return {name: replaced(y, number) for name, y in x.items()}
    return x


def traced(x: Any) -> list[Traced]:
    """Return the symbolic scalars in `x`."""
    found: list[Traced] = []
    replaced(x, found.append)
    return found


def plain(x: Any) -> Any:
    """Replace symbolic scalars by their concrete values."""
    return replaced(x, lambda number: number.value)


def apply(function: Callable[..., Any], *args: Any) -> Any:
    """Return ``function(*args)``; with symbolic arguments, the call is recorded for replay."""
    for x in args:
        if type(x) is Traced:
            return x.book.call(function, args, x.what)
    return function(*args)
