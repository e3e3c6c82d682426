"""The fast path of Values against the general one: equal bits and equal graphs, for every op and order."""

import itertools
import math
import operator
import struct
from contextlib import nullcontext

import pytest

import minigrad as mg
from cases import merge_cases
from minigrad import Value
from minigrad.core.errors import DTypeError
from strategies import ATTRS, DIFFERENTIABLE, ELEMENTWISE, points

CORNERS = (0.0, -0.0, 1.0, -2.5, 0.5, 2.0, -3.0, 5e-324, 1e308, math.inf, -math.inf, math.nan)
UNARY = ("exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "relu", "abs", "__neg__", "__abs__")
BINARY = {name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "pow")}
BINARY |= {"max": lambda a, b: a.max(b), "min": lambda a, b: a.min(b)}
OPS = [op for op in DIFFERENTIABLE if op in ELEMENTWISE]


def bits(x):
    """Return the bits of a float or a Value; nan equals nan regardless of its sign."""
    x = float(x)
    return "nan" if math.isnan(x) else struct.pack(">d", x)


def both(run):
    """Return the results of `run` on the fast path, and on the general one, which a scope selects."""
    results = []
    for block in (nullcontext(), mg.scope("seen")):
        with block:
            results.append(run())
    return results


def described(y):
    inputs = [bits(x) if isinstance(x, float) else ("Value", bits(x)) for x in y.inputs]
    return bits(y), y.op.name, inputs, y.requires_grad, type(y)


def value(x, needs=True):
    outputs = Value(x)
    outputs.requires_grad = needs
    return outputs


@merge_cases
@pytest.mark.parametrize("name", UNARY)
def test_methods_equal_the_general_path(name):
    for x, needs in itertools.product(CORNERS, (True, False)):
        fast, general = both(lambda x=x, needs=needs: described(getattr(value(x, needs), name)()))
        assert fast == general


@merge_cases
@pytest.mark.parametrize("name", BINARY)
def test_operators_equal_the_general_path(name):
    compute, values = BINARY[name], (*CORNERS, 0, 3, -2)
    for a, b in itertools.product(CORNERS, CORNERS):
        for needs in (True, False):
            fast, general = both(lambda a=a, b=b, needs=needs: described(compute(value(a), value(b, needs))))
            assert fast == general
    for a, b in itertools.product(CORNERS, values):
        fast, general = both(lambda a=a, b=b: described(compute(value(a), b)))
        assert fast == general
        if name not in ("max", "min"):
            fast, general = both(lambda a=a, b=b: described(compute(b, value(a))))
            assert fast == general


@pytest.mark.parametrize("other", [10**400, 1j, "1", None, True, [1.0]], ids=str)
def test_other_operands_behave_like_the_general_path(other):
    def run():
        results = []
        for compute in BINARY.values():
            try:
                results.append(described(compute(Value(2.0), other)))
            except (DTypeError, TypeError) as error:
                results.append(str(error))
        return results

    fast, general = both(run)
    assert fast == general


def orders(op, xs, attrs):
    """Return the value of `op` and its derivatives up to third order with respect to each operand, as bits."""
    leaves = [Value(x) for x in xs]
    y = op(*leaves, **attrs)
    results = [bits(y)]
    for order in (1, 2, 3):
        for leaf in leaves:
            leaf.grad = None
        y.backward()  # the fast path
        results += [None if leaf.grad is None else bits(leaf.grad) for leaf in leaves]
        if order < 3:
            grads = [g for g in mg.grad(y, leaves, create_graph=True, allow_unused=True) if g is not None]
            grads = [g for g in grads if g.requires_grad]
            if not grads:
                break
            y = sum(grads[1:], grads[0])
    return results


@merge_cases
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_gradients_of_every_order_equal_the_general_path(op):
    attrs = ATTRS.get(op.name, {})
    for xs in points(op, count=6):
        fast, general = both(lambda xs=xs: orders(op, xs, attrs))
        assert fast == general
    for xs in itertools.islice(itertools.product(CORNERS, repeat=len(op.inputs)), 200):
        fast, general = both(lambda xs=xs: orders(op, xs, attrs))
        assert fast == general


def test_a_modified_leaf_raises_on_both_paths():
    def run():
        x = Value(2.0)
        y = x * x
        x.data = 3.0
        with pytest.raises(mg.errors.GraphError) as caught:
            y.backward()
        return str(caught.value)

    fast, general = both(run)
    assert fast == general
