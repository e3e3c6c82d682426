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

from minigrad.core.dispatch import PYTHON, kernels_of
from minigrad.core.graph import Node, topological
from minigrad.core.modes import detour
from minigrad.core.op import Op, forward

__all__ = ["propagate_floats", "unroll"]

_UNARY = ("exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "relu", "abs")
_SIGNS = {"add": "add", "sub": "sub", "mul": "mul", "div": "truediv", "pow": "pow"}


def unroll(kind: Any) -> None:
    """Replace the operators of the class `kind` by fast ones, which fall back on the originals."""
    general = dict(vars(kind))
    for name, method in [*zip(_UNARY, _UNARY, strict=True), ("neg", "__neg__"), ("abs", "__abs__")]:
        setattr(kind, method, _unary(kind, forward(name), general[method]))
    for name, sign in _SIGNS.items():
        setattr(kind, f"__{sign}__", _binary(kind, forward(name), general[f"__{sign}__"]))
        setattr(kind, f"__r{sign}__", _binary(kind, forward(name), general[f"__r{sign}__"], reflected=True))
    for name, method in (("maximum", "max"), ("minimum", "min")):
        setattr(kind, method, _binary(kind, forward(name), general[method]))


def _unary(kind: Any, op: Op, general: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the method that applies `op` to a node of the class `kind`, with `general` as the fallback."""
    kernels, new = kernels_of(op.name), kind.__new__

    @wraps(general)
    def method(self: Any) -> Any:
        if detour.reasons:
            return general(self)
        out = new(kind)
        out._data = kernels[PYTHON](self._data)
        out.grad = None
        out._op = op
        out._left = self
        out._right = ()
        out._made = Node.writes
        out._requires_grad = self._requires_grad
        return out

    return method


def _binary(
    kind: Any, op: Op, general: Callable[[Any, Any], Any], *, reflected: bool = False
) -> Callable[[Any, Any], Any]:
    """Return the operator that applies `op`, like `_unary`; `reflected` if the node is the right operand."""
    kernels, new = kernels_of(op.name), kind.__new__

    @wraps(general)
    def method(self: Any, other: Any) -> Any:
        if detour.reasons:
            return general(self, other)
        if other.__class__ is kind:
            data, needs = other._data, self._requires_grad or other._requires_grad
        elif other.__class__ is float or other.__class__ is int:
            try:
                other = data = float(other)
            except OverflowError:
                return general(self, other)  # which raises
            needs = self._requires_grad
        else:
            return general(self, other)
        out = new(kind)
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
        out._made = Node.writes
        out._requires_grad = needs
        return out

    return method


def propagate_floats(gradients: Mapping[Any, float]) -> dict[Any, float]:
    """Compute what `graph.propagate` computes, with the same additions in the same order."""
    totals = dict(gradients)
    get, writes = totals.get, Node.writes
    node: Any
    for node in reversed(topological(totals)):
        op, upstream = node._op, get(node)
        if op is None or upstream is None:
            continue
        rules = op.plain
        if rules is None or node._made != writes:
            for _, target, product in node._contributions(upstream, False):
                total = get(target)
                totals[target] = product if total is None else total + product
            continue
        left, right, y = node._left, node._right, node._data
        if left.__class__ is not float and left._requires_grad:
            if right.__class__ is tuple:  # no second operand
                product = rules[0](upstream, y, left._data)
            else:
                product = rules[0](upstream, y, left._data, right if right.__class__ is float else right._data)
            total = get(left)
            totals[left] = product if total is None else total + product
        if right.__class__ is not float and right.__class__ is not tuple and right._requires_grad:
            product = rules[1](upstream, y, left if left.__class__ is float else left._data, right._data)
            total = get(right)
            totals[right] = product if total is None else total + product
    return totals
