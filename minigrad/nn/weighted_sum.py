"""Weighted sums of Values, whose nodes are created when somebody reads the graph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from minigrad.autograd.value_backward import reach
from minigrad.core.dispatch import PYTHON, get_kernels
from minigrad.core.graph import Pending, grad_lock, leaf_writes
from minigrad.core.op import OPS
from minigrad.core.value import Value
from minigrad.core.value_gradient import UNREACHED, FastPass, SharedGradient

__all__ = ["weighted_sum"]

_MUL, _ADD = get_kernels("mul"), get_kernels("add")
_EXACT_TYPES = {Value, float}
_REQUIRES_GRAD = operator.attrgetter("_requires_grad")


def weighted_sum(bias: Value, weights: Sequence[Value], inputs: Sequence[Value | float]) -> Value | None:
    """Return ``bias + weights[0] * inputs[0] + …``, or None if only the operators can compute it.

    The graph is that of the operators, but only its last node exists until somebody reads the operands. Call it only
    while no mode is active.

    >>> w, x, b = Value(2.0, "w"), Value(3.0, "x"), Value(1.0, "b")
    >>> y = weighted_sum(b, [w], [x])
    >>> y.backward()
    >>> y, y.inputs, w.grad
    (Value(7.0, grad=1.0), (Value(1.0, grad=1.0, label='b'), Value(6.0, grad=1.0)), 3.0)
    """
    is_plain = {bias.__class__, *map(type, weights)} == {Value} and _EXACT_TYPES.issuperset(map(type, inputs))
    if not is_plain or _MUL[PYTHON] is not operator.mul or _ADD[PYTHON] is not operator.add:
        return None
    if bias is weights[0] or bias is inputs[0]:
        return None  # the order of the contributions to it would matter
    if not (bias._requires_grad and all(map(_REQUIRES_GRAD, weights))):
        return None
    pending = _WeightedSum(bias, weights, inputs)
    out = Value.__new__(Value)
    out._data = reduce(operator.add, map(operator.mul, pending.weight_data, pending.input_data), bias._data)
    out._op = OPS["add"]
    out._left = pending
    out._right = 0.0
    out._write_count = pending.write_count
    out._requires_grad = True
    return out


class _WeightedSum(Pending):
    """The operands of the last sum. A backward pass propagates all products in one loop, unless their nodes exist.

    All products and inner sums have the gradient of the last sum, which `shared` stores.
    """

    __slots__ = (
        *("bias", "bias_data", "weights", "weight_data", "inputs", "input_data"),
        *("nodes", "shared", "write_count"),
    )

    grad = None  # as of a Value that no pass has reached

    def __init__(self, bias: Value, weights: Sequence[Value], inputs: Sequence[Value | float]) -> None:
        self.bias = bias
        self.weights = tuple(weights)
        self.inputs: tuple[Any, ...] = tuple(inputs)
        self.bias_data = bias._data
        self.weight_data = [w._data for w in weights]
        self.input_data: list[Any] = [x._data if x.__class__ is Value else x for x in inputs]
        self.write_count = leaf_writes.count
        self.nodes: tuple[Value, Value] | None = None
        self.shared: SharedGradient | None = None
        self._requires_grad = UNREACHED

    def operands(self) -> tuple[Value, Value]:
        """Return the last inner sum (or the bias) and the last product, and create the nodes the first time."""
        with grad_lock:
            if self.nodes is None:
                total, data, product = self.bias, self.bias_data, self.bias
                last = len(self.weights) - 1
                pairs = zip(self.weights, self.inputs, self.weight_data, self.input_data, strict=True)
                for k, (weight, x, weight_data, input_data) in enumerate(pairs):
                    product = self._create("mul", weight_data * input_data, weight, x)
                    if k < last:
                        data = data + product._data
                        total = self._create("add", data, total, product)
                self.nodes = total, product
            return self.nodes

    def _create(self, op: str, data: float, left: Any, right: Any) -> Value:
        out = Value.__new__(Value)
        out._data = data
        out._op = OPS[op]
        out._left, out._right = left, right
        out._write_count = self.write_count
        out._requires_grad = True if self.shared is None else self.shared
        return out

    def enter(self, token: FastPass, order: list[Any], visit: Callable[[Any], None] | None) -> bool:
        """Append the products to `order` without creating their nodes, unless they exist or `visit` is None."""
        with grad_lock:
            has_gradient = self.shared is not None and self.shared.done
            if self.nodes is not None or has_gradient or visit is None or self.write_count != leaf_writes.count:
                self._left, self._right = self.operands()
                self._op = OPS["add"]
                return False
            self.shared = SharedGradient(token)
        for weight in (self.bias, *self.weights):
            if weight._requires_grad is not token:
                reach(weight, token) if weight._op is None else visit(weight)
        start = 0
        inputs: Sequence[Any] = () if token.inputs is self.inputs else self.inputs
        for k, x in enumerate(inputs):
            if x.__class__ is float or x._requires_grad is token:
                continue
            if x._op is None:
                reach(x, token)
                continue
            if start < k:  # the nodes that `visit` appends come between two products
                order.append((self, start, k))
                start = k
            visit(x)
        token.inputs = self.inputs
        order.append((self, start, len(self.weights)))
        return True

    def propagate(self, start: int, stop: int) -> None:
        """Add the contributions of the products from `start` to `stop`, the last one first."""
        assert self.shared is not None  # set by `enter`
        upstream = self.shared._gradient = self._gradient
        weights, inputs, weight_data, input_data = self.weights, self.inputs, self.weight_data, self.input_data
        for k in range(stop - 1, start - 1, -1):
            weights[k]._gradient += upstream * input_data[k]
            x = inputs[k]
            if x.__class__ is not float:
                x._gradient += upstream * weight_data[k]
        if start == 0:
            bias: Any = self.bias
            bias._gradient += upstream
