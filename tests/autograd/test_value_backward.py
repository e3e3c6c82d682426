"""The fast backward pass of Values: the gradients of the general pass, all or none of them, in any thread."""

import math
import random
import struct

import pytest

import minigrad as mg
from minigrad import Value
from minigrad.autograd import value_backward
from minigrad.core.errors import GraphError
from minigrad.core.graph import propagate
from strategies import random_expression


def bits(x):
    return None if x is None else "nan" if math.isnan(x) else struct.pack(">d", x)


def gradients(y):
    return [bits(node.grad) for node in mg.topological([y])]


def general(y):
    totals = propagate({y: 1.0})
    return [bits(totals.get(node)) for node in mg.topological([y])]


def test_gradients_of_graphs_with_reuse_equal_the_general_path():
    for seed in range(30):
        generator = random.Random(seed)
        y = random_expression(generator, [Value(generator.uniform(-2, 2)) for _ in range(4)], 60)
        y.backward()
        assert gradients(y) == general(y)


def test_contributions_are_added_in_the_order_of_the_general_path():
    big, x = 1e16, Value(1.0)
    terms = [x * big, x * 1.0, x * -big, x * 3.0]  # the sum depends on the order
    y = terms[2] + terms[0] + terms[3] + terms[1]
    y.backward()
    assert gradients(y) == general(y)


def test_a_negative_zero_is_a_gradient():
    x = Value(3.0)
    (x * -0.0).backward()
    assert bits(x.grad) == bits(-0.0)


def test_a_node_without_a_contribution_has_no_gradient():
    x, unread = Value(2.0), Value(1.0)
    y = mg.where(unread, x * 3.0, 1.0)
    y.backward()
    assert (x.grad, unread.grad, y.grad) == (3.0, None, 1.0)
    assert gradients(y) == general(y)


@pytest.mark.parametrize("depth", [3, 200])
def test_operations_with_three_operands_may_be_nested(depth):
    x = Value(0.5)
    y = x
    for _ in range(depth):
        y = mg.lerp(y, x * 2.0, 0.25)
    y.backward()
    assert gradients(y) == general(y)


def test_constants_and_frozen_leaves_get_no_gradient():
    x, frozen, constant = Value(2.0), Value(3.0), Value(5.0).detach()
    y = x * frozen + frozen * constant + constant * constant
    frozen.requires_grad = False
    y.backward()
    assert (x.grad, frozen.grad, constant.grad) == (3.0, None, None)


def test_a_gradient_survives_a_change_of_requires_grad():
    x = Value(2.0)
    (x * 3.0).backward()
    x.requires_grad = False
    assert (x.grad, x.requires_grad) == (3.0, False)
    x.grad = 7.0
    x.requires_grad = True
    (x * 3.0).backward()
    assert (x.grad, x.requires_grad) == (10.0, True)


def test_results_of_marked_nodes_require_grad_as_bools():
    x = Value(2.0)
    (x * x).backward()
    assert [y.requires_grad for y in (x, x.tanh(), x * x, 2.0 * x)] == [True] * 4
    assert x.tanh()._requires_grad is True


def test_repeated_passes_add_their_gradients():
    x = Value(3.0)
    y = (x * x).tanh() * x
    y.backward()
    first = [node.grad for node in mg.topological([y])]
    y.backward()
    (2.0 * x).backward()
    again = [node.grad for node in mg.topological([y])]
    assert again == [2 * g + (2.0 if node is x else 0.0) for g, node in zip(first, mg.topological([y]), strict=True)]


@pytest.mark.parametrize("error", [KeyboardInterrupt, GraphError])
def test_an_interrupted_pass_changes_no_gradient_and_the_next_one_is_complete(error, monkeypatch):
    x = Value(3.0)
    y = (x * x + x).relu() * x
    x.grad = 1.0
    original = mg.dispatch.__globals__["get_kernels"]("relu_backward")["python"]

    def fail(*_):
        raise error("stop")

    mg.kernel("relu_backward", "python")(fail)
    try:
        with pytest.raises(error, match="stop"):
            y.backward()
    finally:
        mg.kernel("relu_backward", "python")(original)
    assert [node.grad for node in mg.topological([y])] == [1.0, None, None, None, None]
    y.backward()
    assert (x.grad, y.grad) == (1.0 + 33.0, 1.0)
    assert value_backward._running.token is None


def test_a_pass_inside_a_pass_and_an_assignment_take_effect():
    x, z = Value(3.0), Value(1.0)
    y = (x * z).relu() * x
    original = mg.dispatch.__globals__["get_kernels"]("relu_backward")["python"]

    def interleave(g, y_data):
        mg.kernel("relu_backward", "python")(original)
        (x * 10.0).backward()  # takes the general path
        z.grad = 5.0
        return original(g, y_data)

    mg.kernel("relu_backward", "python")(interleave)
    try:
        y.backward()
    finally:
        mg.kernel("relu_backward", "python")(original)
    assert (x.grad, z.grad) == (10.0 + 6.0, 5.0 + 9.0)
