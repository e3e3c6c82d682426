"""The fast path of Values: single operations on raw floats, without `dispatch`; `value_backward` is its backward pass.

It duplicates `Value._apply`, and runs while there are no listeners and no modes. A training step of
`benchmarks/bench_value.py` would take 3 times as long without it. Tests check that both paths are equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from minigrad.autograd.value_backward import propagate_floats
from minigrad.core.dispatch import PYTHON, get_kernels
from minigrad.core.graph import leaf_writes
from minigrad.core.modes import slow_path
from minigrad.core.op import Op, forward_declared

__all__ = ["install_fast_path"]

_UNARY = ("exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "relu", "abs")
_DUNDER_NAMES = {"add": "add", "sub": "sub", "mul": "mul", "div": "truediv", "pow": "pow"}


def install_fast_path(value_class: Any) -> None:
    """Replace the operators of `value_class` by faster versions, which call the originals while a mode is active."""
    methods = dict(vars(value_class))
    value_class._propagate_floats = staticmethod(propagate_floats)
    for name, method in [*zip(_UNARY, _UNARY, strict=True), ("neg", "__neg__"), ("abs", "__abs__")]:
        setattr(value_class, method, _unary(value_class, forward_declared(name), methods[method]))
    for name, dunder in _DUNDER_NAMES.items():
        setattr(value_class, f"__{dunder}__", _binary(value_class, forward_declared(name), methods[f"__{dunder}__"]))
        setattr(
            value_class,
            f"__r{dunder}__",
            _binary(value_class, forward_declared(name), methods[f"__r{dunder}__"], reflected=True),
        )
    for name, method in (("maximum", "max"), ("minimum", "min")):
        setattr(value_class, method, _binary(value_class, forward_declared(name), methods[method]))


def _unary(value_class: Any, op: Op, fallback: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a method for `value_class` that applies `op`, or calls `fallback` while a mode is active."""
    kernels, new = get_kernels(op.name), value_class.__new__

    @wraps(fallback)
    def method(self: Any) -> Any:
        if slow_path.reasons:
            return fallback(self)
        out = new(value_class)
        out._data = kernels[PYTHON](self._data)
        out._op = op
        out._left = self
        out._right = 0.0
        out._write_count = leaf_writes.count
        out._requires_grad = self._requires_grad and True  # without the mark of a pass
        return out

    return method


def _binary(
    value_class: Any, op: Op, fallback: Callable[[Any, Any], Any], *, reflected: bool = False
) -> Callable[[Any, Any], Any]:
    """Return a binary operator that applies `op`, like `_unary`. If `reflected`, the node is the right operand."""
    kernels, new = get_kernels(op.name), value_class.__new__

    @wraps(fallback)
    def method(self: Any, other: Any) -> Any:
        if slow_path.reasons:
            return fallback(self, other)
        if other.__class__ is value_class:
            data, requires_grad = other._data, self._requires_grad or other._requires_grad
        elif other.__class__ is float or other.__class__ is int:
            try:
                other = data = float(other)
            except OverflowError:
                return fallback(self, other)  # which raises
            requires_grad = self._requires_grad
        else:
            return fallback(self, other)
        out = new(value_class)
        if reflected:
            out._data = kernels[PYTHON](data, self._data)
            out._left = other
            out._right = self
        else:
            out._data = kernels[PYTHON](self._data, data)
            out._left = self
            out._right = other
        out._op = op
        out._write_count = leaf_writes.count
        out._requires_grad = requires_grad and True  # without the mark of a pass
        return out

    return method
