"""The fast backward pass of Values: gradients of raw floats, accumulated in the nodes themselves.

It duplicates `graph.topological` and `graph.propagate`, and runs while there are no listeners and no modes. It needs
neither a set of visited nodes nor a dict of gradients: a node that a pass has reached holds the `FastPass` in
`_requires_grad`, as its mark, and the gradient in `_gradient`. `Value.grad` reads a gradient once its pass is `done`.
So all gradients of a pass appear at once, and none after an error or an interrupt. Both paths add in the same order;
tests check that they are equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from minigrad.core.dispatch import PYTHON, get_kernels
from minigrad.core.graph import Pending, grad_lock, leaf_writes
from minigrad.core.op import forward_declared
from minigrad.core.value_gradient import NO_GRADIENT, FastPass

__all__ = ["propagate_floats", "reach"]

_MAX_NESTING = 50  # of operations with more than two operands, beyond which `graph.propagate` takes over
_ADD, _MUL, _RELU = forward_declared("add"), forward_declared("mul"), forward_declared("relu")
_RELU_BACKWARD = get_kernels("relu_backward")


class _Running:
    """The pass that is running in any thread. A second one takes the general path, since a node has a single mark."""

    __slots__ = ("token",)

    def __init__(self) -> None:
        self.token: FastPass | None = None


_running = _Running()


class _UnsupportedError(Exception):
    """The graph needs the general path."""


def reach(node: Any, token: FastPass) -> bool:
    """Mark `node`, which may have a gradient. Return False for a constant, which gets no mark."""
    mark = node._requires_grad
    if not mark:
        node._gradient = NO_GRADIENT  # contributions are added to it, but nobody reads it
        return False
    if mark is True or not mark.done:
        node._gradient = NO_GRADIENT
        node._requires_grad = token  # no call since the comparison, so that no other thread assigns `grad` meanwhile
        return True
    with grad_lock:
        gradient = node.grad
        if gradient is not None:
            node._set_extra("grad", float(gradient))
        node._gradient = NO_GRADIENT
        node._requires_grad = token
    return True


def _order(roots: Iterable[Any], token: FastPass, order: list[Any], depth: int = 0) -> None:
    """Append the computed nodes that `roots` depend on and that `token` has not reached, as `topological` would."""
    no_gradient, stack = NO_GRADIENT, list[Any]()
    emit, push, pop = order.append, stack.append, stack.pop

    def enter(node: Any) -> bool:
        """Mark `node`, whose mark is not True. Return whether its operands are to be visited."""
        is_node = reach(node, token)
        if isinstance(node, Pending):
            return not node.enter(token, order, None if depth == _MAX_NESTING else visit)
        if not is_node or node._op is None:
            return False
        if node._left.__class__ is tuple:  # more than two operands
            if depth == _MAX_NESTING:
                raise _UnsupportedError
            _order([x for x in node._left if x.__class__ is not float], token, order, depth + 1)
            emit(node)
            return False
        return True

    def visit(node: Any) -> None:
        _order((node,), token, order, depth + 1)

    for node in roots:
        if node._requires_grad is token or not enter(node):
            continue
        while node is not None:
            left = node._left
            if left.__class__ is not float:
                mark = left._requires_grad
                if mark is not token:
                    if mark is True:
                        left._gradient = no_gradient
                        left._requires_grad = token  # no call since the comparison: no other thread assigns `grad`
                        descends = left._op is not None
                    else:
                        descends = enter(left)
                    if descends:
                        push(node)
                        node = left
                        continue
            while node is not None:  # the left operand of `node` is done
                right = node._right
                if right.__class__ is not float:
                    mark = right._requires_grad
                    if mark is not token:
                        if mark is True:
                            right._gradient = no_gradient
                            right._requires_grad = token
                            descends = right._op is not None
                        else:
                            descends = enter(right)
                        if descends:
                            push(node)
                            node = right
                            break
                emit(node)
                node = pop() if stack else None


def propagate_floats(seeds: Mapping[Any, float]) -> bool:
    """Accumulate the same gradients as `graph.propagate`, with the same additions in the same order, into `grad`.

    Return False, without any effect, if only the general path can do it.
    """
    token, order = FastPass(), list[Any]()
    if _running.token is not None:
        return False
    _running.token = token  # no call since the comparison, so that no other thread gets here
    try:
        _order(seeds, token, order)
        for node, seed in seeds.items():
            node._gradient = seed
        _propagate(order)
        with grad_lock:
            token.done = True
    except _UnsupportedError:
        return False
    finally:
        _running.token, token.inputs = None, None  # nodes hold the token, which must not hold nodes
    return True


def _propagate(order: list[Any]) -> None:
    """Apply the rules of the nodes of `order`, the last one first, and add up the contributions."""
    no_gradient, writes, add, mul, relu = NO_GRADIENT, leaf_writes.count, _ADD, _MUL, _RELU
    relu_backward = _RELU_BACKWARD
    for node in reversed(order):
        if type(node) is tuple:  # `__class__` would be slower here, since it is specialised for one type
            pending, start, stop = node
            if pending._gradient is not no_gradient:
                pending.propagate(start, stop)
            continue
        upstream = node._gradient
        if upstream is no_gradient:
            continue
        op = node._op
        if op is add:
            left = node._left
            if left.__class__ is not float:
                left._gradient += upstream
            right = node._right
            if right.__class__ is not float:
                right._gradient += upstream
            continue
        rules = op.simple_rules
        if rules is None or node._write_count != writes:
            for _, target, product in node._contributions(upstream, False):
                total = target._gradient
                target._gradient = product if total is no_gradient else total + product
            continue
        left, right = node._left, node._right
        if op is mul:
            if right.__class__ is float:
                left._gradient += upstream * right
            elif left.__class__ is float:
                right._gradient += upstream * left
            else:
                left._gradient += upstream * right._data
                right._gradient += upstream * left._data
        elif op is relu:  # without the rule, which calls the kernel by `dispatch`
            left._gradient += relu_backward[PYTHON](upstream, node._data)
        elif len(rules) == 1:
            left._gradient += rules[0](upstream, node._data, left._data)
        else:
            a = left if left.__class__ is float else left._data
            b = right if right.__class__ is float else right._data
            if left.__class__ is not float and left._requires_grad:
                left._gradient += rules[0](upstream, node._data, a, b)
            if right.__class__ is not float and right._requires_grad:
                right._gradient += rules[1](upstream, node._data, a, b)
