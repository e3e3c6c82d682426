"""Symbolic scalars: Python numbers that a captured function reads again on each replay, such as a learning rate.

During capture such a number is a `SymbolicScalar`, which computes like the number and records the expressions. On each
replay, a compiled Python function evaluates the expressions that the kernels need. Where Python needs the concrete
value (an ``if``, a ``float()``), the result is recorded as a guard: the capture is valid only while the result is
unchanged.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from numbers import Number
from typing import Any

from minigrad.core.specialise import compile_function

__all__ = ["SymbolicScalar", "SymbolicTrace", "apply", "concrete", "map_symbolic", "symbolic_scalars_in"]


class SymbolicTrace:
    """The symbolic scalars of one capture, each recorded as a Python assignment."""

    def __init__(self) -> None:
        self._assignments: list[tuple[str, str, tuple[str, ...]]] = []  # name, expression, names of its operands
        self._by_expression: dict[str, SymbolicScalar] = {}  # eliminates common subexpressions
        self._namespace: dict[str, Any] = {"inf": math.inf, "nan": math.nan}
        self._constant_names: dict[int, str] = {}
        self._guards: dict[tuple[str, Any], str] = {}  # (expression, value) -> description for the user

    def add_input(self, read_value: Callable[[], Any], description: str, value: Any = None) -> SymbolicScalar:
        """Add an input that `read_value` returns on each replay. Its current value is `value`, if given."""
        scalar = self.add_call(read_value, (), description)
        scalar.value = scalar.value if value is None else value
        return scalar

    def add_call(self, function: Callable[..., Any], args: tuple[Any, ...], description: str) -> SymbolicScalar:
        """Record the call ``function(*args)``, whose arguments may be symbolic."""
        expressions = [self.expression_of(x) for x in args]
        return self.add_expression(
            f"{self.expression_of(function)}({', '.join(expressions)})",
            function(*map(concrete, args)),
            args,
            description,
        )

    def add_expression(
        self, expression: str, value: Any, operands: Iterable[Any], description: str = ""
    ) -> SymbolicScalar:
        existing = self._by_expression.get(expression)
        if existing is not None:
            existing.value = value
            return existing
        symbolic_operands = [x for x in operands if type(x) is SymbolicScalar]
        name = f"n{len(self._assignments)}"
        self._assignments.append((name, expression, tuple([x.name for x in symbolic_operands])))
        self._by_expression[expression] = SymbolicScalar(
            self, name, value, description or next((x.description for x in symbolic_operands), "")
        )
        return self._by_expression[expression]

    def expression_of(self, x: Any) -> str:
        """Return Python source code for a symbolic scalar or a constant."""
        if type(x) is SymbolicScalar:
            return x.name
        if type(x) in (bool, int, float, str, tuple, list, type(None)):
            expression = repr(x)
            return f"({expression})" if expression[0] == "-" else expression  # -2.0 ** n0 would be -(2.0 ** n0)
        name = self._constant_names.setdefault(id(x), f"f{len(self._namespace)}")
        self._namespace[name] = x
        return name

    def add_binary(self, sign: str, a: Any, b: Any) -> Any:
        """Record ``a sign b``, where an operand is symbolic. Return NotImplemented unless both are numbers."""
        if not (isinstance(a, Number) and isinstance(b, Number)):
            return NotImplemented
        value = _BINARY[sign](concrete(a), concrete(b))
        return self.add_expression(f"{self.expression_of(a)} {sign} {self.expression_of(b)}", value, (a, b))

    def add_guard(self, expression: str, value: Any, description: str) -> Any:
        """Add a guard that `expression` equals `value`, and return the value."""
        self._guards.setdefault((expression, value), description)
        return value

    @property
    def guards(self) -> list[str]:
        """The description of each guard."""
        return list(self._guards.values())

    def truncate_guards(self, count: int) -> None:
        """Remove all guards but the first `count`."""
        self._guards = dict(list(self._guards.items())[:count])

    def compile_reader(self, results: Iterable[Any]) -> Callable[[], tuple[tuple[Any, ...], tuple[bool, ...]]]:
        """Compile a function that returns the current values of `results`, and whether each guard holds."""
        outputs = list(results)
        needed = {x.name for x in outputs if type(x) is SymbolicScalar}
        tests = [_guard_expression(source, value) for source, value in self._guards]
        for text, _ in self._guards:
            needed |= {name for name, _, _ in self._assignments if name in _identifiers_in(text)}
        body = []
        for name, text, operands in reversed(self._assignments):
            if name in needed:
                needed.update(operands)
                body.append(f"    {name} = {text}\n")
        values = "".join(f"{self.expression_of(x)}, " for x in outputs)
        text = f"def read():\n{''.join(reversed(body))}    return ({values}), ({''.join(f'{x}, ' for x in tests)})\n"
        return compile_function("read", text, dict(self._namespace), "<numbers of a step>")


def _guard_expression(expression: str, value: Any) -> str:
    """Return source code that tests for equality, including type and sign of zero; nan equals nan."""
    value_type = type(value)
    if value_type is bool and not expression.isidentifier():
        return f"{expression} == {value}"
    if value_type in (int, float) and value == value and value:
        return f"({expression} == {value!r} and type({expression}) is {value_type.__name__})"
    return f"repr({expression}) == {repr(value)!r}"


def _identifiers_in(expression: str) -> set[str]:
    return set("".join(x if x.isalnum() else " " for x in expression).split())


class SymbolicScalar:
    """A Python scalar whose computation is recorded. Its ``__class__`` is that of its current value."""

    __slots__ = ("description", "name", "trace", "value")

    def __init__(self, book: SymbolicTrace, name: str, value: Any, description: str) -> None:
        self.trace, self.name, self.value, self.description = book, name, value, description

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self.value)

    def _guarded_value(self) -> Any:
        """Return the concrete value, and add a guard for it."""
        return self.trace.add_guard(self.name, self.value, self.description)

    def __float__(self) -> float:
        return float(self._guarded_value())

    def __int__(self) -> int:
        return int(self.trace.add_guard(f"int({self.name})", int(self.value), self.description))

    def __index__(self) -> int:
        operator.index(self.value)  # raises for a float
        return operator.index(self._guarded_value())

    def __bool__(self) -> bool:
        return bool(self.trace.add_guard(f"bool({self.name})", bool(self.value), self.description))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        import numpy  # already imported by the caller

        return numpy.asarray(self._guarded_value(), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Apply a NumPy ufunc to the concrete value."""
        return getattr(ufunc, method)(
            *[x._guarded_value() if type(x) is SymbolicScalar else x for x in inputs], **kwargs
        )

    def __getattr__(self, name: str) -> Any:
        """Return a method of the concrete value, such as ``is_integer``."""
        if name.startswith("__"):
            raise AttributeError(name)
        getattr(self.value, name)
        return getattr(self._guarded_value(), name)

    def __reduce__(self) -> Any:
        """Copy and pickle the concrete value."""
        return type(self.value), (self._guarded_value(),)

    def __hash__(self) -> int:
        return hash(self._guarded_value())

    def __repr__(self) -> str:
        return repr(self._guarded_value())

    def __format__(self, spec: str) -> str:
        return format(self._guarded_value(), spec)

    def __neg__(self) -> Any:
        return self.trace.add_expression(f"-{self.name}", -self.value, (self,))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self.trace.add_expression(f"abs({self.name})", abs(self.value), (self,))

    def __round__(self, digits: int | None = None) -> Any:
        return self.trace.add_call(round, (self, digits), self.description)

    def __trunc__(self) -> Any:
        return self.trace.add_call(math.trunc, (self,), self.description)

    def __floor__(self) -> Any:
        return self.trace.add_call(math.floor, (self,), self.description)

    def __ceil__(self) -> Any:
        return self.trace.add_call(math.ceil, (self,), self.description)

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
    setattr(SymbolicScalar, f"__{_name}__", lambda self, other, sign=_sign: self.trace.add_binary(sign, self, other))
    setattr(SymbolicScalar, f"__r{_name}__", lambda self, other, sign=_sign: self.trace.add_binary(sign, other, self))
for _sign, _name in {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}.items():
    _BINARY[_sign] = vars(operator)[_name]

    def _compare(self: SymbolicScalar, other: Any, sign: str = _sign) -> Any:
        if not isinstance(other, Number):
            return NotImplemented
        result = bool(_BINARY[sign](self.value, concrete(other)))
        return bool(
            self.trace.add_guard(f"({self.name} {sign} {self.trace.expression_of(other)})", result, self.description)
        )

    setattr(SymbolicScalar, f"__{_name}__", _compare)


def map_symbolic(x: Any, replace: Callable[[SymbolicScalar], Any]) -> Any:
    """Replace each symbolic scalar t in `x`, a scalar, tuple, list or mapping, by ``replace(t)``."""
    if type(x) is SymbolicScalar:
        return replace(x)
    if type(x) in (tuple, list):
        return type(x)([map_symbolic(y, replace) for y in x])
    if isinstance(x, Mapping):
        return {name: map_symbolic(y, replace) for name, y in x.items()}
    return x


def symbolic_scalars_in(x: Any) -> list[SymbolicScalar]:
    """Return the symbolic scalars in `x`."""
    scalars: list[SymbolicScalar] = []
    map_symbolic(x, scalars.append)
    return scalars


def concrete(x: Any) -> Any:
    """Replace symbolic scalars by their concrete values."""
    return map_symbolic(x, lambda scalar: scalar.value)


def apply(function: Callable[..., Any], *args: Any) -> Any:
    """Return ``function(*args)``. If an argument is symbolic, the call is recorded for replay."""
    for x in args:
        if type(x) is SymbolicScalar:
            return x.trace.add_call(function, args, x.description)
    return function(*args)
