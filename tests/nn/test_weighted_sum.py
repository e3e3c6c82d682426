"""Weighted sums of Values: the graph, the gradients and the errors of the operators."""

import gc
import math
import operator
import random
import struct

import pytest

import minigrad as mg
from minigrad import Value
from minigrad.core.errors import GraphError
from minigrad.nn.scalar import MLP, Neuron
from minigrad.nn.weighted_sum import _WeightedSum, weighted_sum


def bits(x):
    return None if x is None else "nan" if math.isnan(x) else struct.pack(">d", x)


def operators_sum(bias, weights, inputs):
    total = bias
    for w, x in zip(weights, inputs, strict=True):
        total = total + w * x
    return total


def leaves(seed, count=5):
    generator = random.Random(seed)

    def draw():
        return Value(generator.uniform(-2, 2))

    return draw(), [draw() for _ in range(count)], [draw() if k % 2 else generator.uniform(-2, 2) for k in range(count)]


def described(y):
    """Return each node of the graph: its op, data, gradient and the positions of its operands."""
    order = mg.topological([y])
    return [
        (
            *(node.op and node.op.name, bits(node.data), bits(node.grad), node.requires_grad),
            *[bits(x) if isinstance(x, float) else order.index(x) for x in node.inputs],
        )
        for node in order
    ]


@pytest.mark.parametrize("is_read_first", [False, True])
def test_graph_and_gradients_equal_those_of_the_operators(is_read_first):
    for seed in range(20):
        results = []
        for compute in (weighted_sum, operators_sum):
            b, w, x = leaves(seed)
            hidden = [compute(b, w, x).tanh(), compute(w[0], w[1:3], [x[1], b]).relu(), 2.0]
            y = compute(b, [*w[2:], b][:3], hidden) * compute(b, w[:3], [hidden[1], hidden[0], hidden[1]])
            if is_read_first:
                described(y)
            y.backward()
            y.backward()
            results.append(described(y))
        assert results[0] == results[1]


def test_a_node_that_another_operation_uses_gets_both_contributions():
    results = []
    for compute in (weighted_sum, operators_sum):
        b, w, x = leaves(7)
        y = compute(b, w, x)
        y.backward()
        inner = y.inputs[0]
        z = y * 2.0 + inner * 3.0
        z.backward()
        results.append((described(z), inner is y.inputs[0]))
    assert results[0] == results[1]
    assert results[0][1]


def test_nodes_exist_only_once_somebody_reads_the_graph():
    b, w, x = leaves(1)
    y = weighted_sum(b, w, x)
    y.backward()
    assert y._left.nodes is None
    assert [node.grad for node in mg.topological([y])].count(1.0) == 11  # b, and 2 nodes a weight
    assert y._left.nodes is not None


def test_a_modified_weight_raises_like_the_operators():
    messages = []
    for compute in (weighted_sum, operators_sum):
        b, w, x = leaves(2)
        y = compute(b, w, x)
        w[1].data = 5.0
        assert y.inputs[0].data != 5.0
        with pytest.raises(GraphError) as error:
            y.backward()
        messages.append(str(error.value))
        assert w[0].grad is None
    assert messages[0] == messages[1]


def test_values_are_those_at_the_time_of_the_sum():
    b, w, x = leaves(3)
    y = weighted_sum(b, w, x)
    expected = [bits(node.data) for node in mg.topological([operators_sum(b, w, x)]) if node.op]
    w[0].data = 100.0
    assert [bits(node.data) for node in mg.topological([y]) if node.op] == expected


@pytest.mark.parametrize("change", ["bool", "int", "frozen", "subclass", "tied", "fed back"])
def test_other_operands_need_the_operators(change):
    b, w, x = leaves(4)
    if change in ("bool", "int"):
        x[0] = {"bool": True, "int": 2}[change]
    elif change in ("tied", "fed back"):
        (w if change == "tied" else x)[0] = b
    elif change == "frozen":
        w[0].requires_grad = False
    else:
        w[0] = type("Weight", (Value,), {})(1.0)
    assert weighted_sum(b, w, x) is None
    neuron = Neuron(5, "linear")
    neuron.b, neuron.w = b, w
    assert bits(neuron(x).data) == bits(operators_sum(b, w, x).data)


def test_a_replaced_kernel_takes_effect():
    neuron = Neuron(2, "linear")
    try:
        mg.kernel("mul", "python")(lambda a, b: 42.0)
        assert neuron([1.0, 2.0]).data == neuron.b.data + 42.0 + 42.0
    finally:
        mg.kernel("mul", "python")(operator.mul)


def test_a_graph_is_freed_without_the_garbage_collector():
    gc.disable()
    try:
        x = Value(1.0)
        y = MLP([1, 4, 1], seed=0)([x])[0]
        y.backward()
        mg.topological([y])
        y.backward()
        before = sum(type(one) is _WeightedSum for one in gc.get_objects())
        del y
        assert before - sum(type(one) is _WeightedSum for one in gc.get_objects()) == 5
    finally:
        gc.enable()
