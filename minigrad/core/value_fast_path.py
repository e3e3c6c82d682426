"""The fast path of Values: single operations and the backward pass on raw floats, without `dispatch`.

It duplicates `Value._apply` and `graph.propagate`, and runs while there are no listeners and no modes. A training step
of `benchmarks/bench_value.py` takes 3 times as long without the operations here, and 3 times as long without the
backward pass, which would exceed the benchmark's limit. tests/core/test_unrolled.py checks that both paths agree to
the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from minigrad.core.dispatch import PYTHON, get_kernels
from minigrad.core.graph import Node, topological
from minigrad.core.modes import slow_path
from minigrad.core.op import Op, forward_declared

__all__ = ["install_fast_path", "propagate_floats"]

_UNARY = ("exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "relu", "abs")
_DUNDER_NAMES = {"add": "add", "sub": "sub", "mul": "mul", "div": "truediv", "pow": "pow"}


def install_fast_path(value_class: Any) -> None:
    """Replace the operators of `value_class` by faster versions, which call the originals while a mode is active."""
    methods = dict(vars(value_class))
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
        out.grad = None
        out._op = op
        out._left = self
        out._right = ()
        out._write_count = Node.writes
        out._requires_grad = self._requires_grad
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
        out.grad = None
        out._op = op
        out._write_count = Node.writes
        out._requires_grad = requires_grad
        return out

    return method


def propagate_floats(gradients: Mapping[Any, float]) -> dict[Any, float]:
    """Compute the same gradients as `graph.propagate`, with the same additions in the same order."""
    totals = dict(gradients)
    get, writes = totals.get, Node.writes
    node: Any
    for node in reversed(topological(totals)):
        op, upstream = node._op, get(node)
        if op is None or upstream is None:
            continue
        rules = op.simple_rules
        if rules is None or node._write_count != writes:
            for _, target, product in node._contributions(upstream, False):
                total = get(target)
                totals[target] = product if total is None else total + product
            continue
        left_operand, right_operand, y = node._left, node._right, node._data
        if left_operand.__class__ is not float and left_operand._requires_grad:
            if right_operand.__class__ is tuple:  # no second operand
                product = rules[0](upstream, y, left_operand._data)
            else:
                product = rules[0](
                    upstream,
                    y,
                    left_operand._data,
                    right_operand if right_operand.__class__ is float else right_operand._data,
                )
            total = get(left_operand)
            totals[left_operand] = product if total is None else total + product
        if (
            right_operand.__class__ is not float
            and right_operand.__class__ is not tuple
            and right_operand._requires_grad
        ):
            product = rules[1](
                upstream,
                y,
                left_operand if left_operand.__class__ is float else left_operand._data,
                right_operand._data,
            )
            total = get(right_operand)
            totals[right_operand] = product if total is None else total + product
    return totals
