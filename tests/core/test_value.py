"""Value: gradients to every order, and the graph."""

import copy
import math
import pickle
import random
import sys

import pytest

import minigrad as mg
from minigrad import Value
from minigrad.core.errors import GraphError
from strategies import ROUNDING, random_expression


def seed_expression():
    leaves = [Value(float(n), name) for n, name in zip(range(2, 9), "abcdefg", strict=True)]
    a, b, c, d, e, f, g = leaves
    return leaves, (a + b) * (c + d) + e * f - g


def test_the_seed_expression_has_the_right_gradients_at_all_seven_leaves():
    leaves, y = seed_expression()
    y.backward()
    assert y.data == 79.0
    assert [leaf.grad for leaf in leaves] == [9.0, 9.0, 5.0, 5.0, 7.0, 6.0, -1.0]
    assert [node.grad for node in mg.topological([y]) if node.op] == [9.0, 5.0, 1.0, 1.0, 1.0, 1.0]


def test_a_gradient_is_none_until_it_is_computed():
    a = Value(2.0)
    y = a * 3
    assert (a.grad, y.grad) == (None, None)
    y.backward()
    assert (a.grad, y.grad) == (3.0, 1.0)


def test_contributions_accumulate():
    a = Value(3.0)
    (a + a).backward()
    assert a.grad == 2.0


def test_a_second_backward_accumulates_exactly_once():
    _, y = seed_expression()
    y.backward()
    first = [node.grad for node in mg.topological([y])]
    y.backward()
    assert [node.grad for node in mg.topological([y])] == [2 * grad for grad in first]


def test_zero_grad_resets_the_entire_graph():
    _, y = seed_expression()
    y.backward()
    y.zero_grad()
    assert {node.grad for node in mg.topological([y])} == {None}


def test_backward_scales_by_gradient():
    a = Value(3.0)
    (a * a).backward(gradient=-0.5)
    assert a.grad == -3.0
    a.grad = None
    (a * a).backward(Value(2.0))
    assert a.grad == 12.0


def test_inputs_and_op_describe_the_operation():
    a = Value(3.0)
    assert (a * a).inputs == (a, a)
    assert (2 * a).inputs == (2.0, a)
    assert (2 * a).inputs[1] is a
    assert a.inputs == ()
    assert a.op is None


def test_derivatives_to_the_fourth_order():
    x = Value(2.0)
    y = x**5
    for expected in (80.0, 160.0, 240.0, 240.0):
        (y,) = mg.grad(y, x, create_graph=True)
        assert y.data == expected


def test_backward_with_create_graph_leaves_gradients_that_can_be_differentiated():
    x = Value(2.0)
    (x**3).backward(create_graph=True)
    gradient = x.grad
    assert isinstance(gradient, Value)
    x.grad = None
    gradient.backward()
    assert x.grad == 12.0


def test_a_constant_gradient_is_a_value_too_under_create_graph():
    a, b = Value(2.0), Value(3.0)
    (a + b).backward(create_graph=True)
    assert isinstance(a.grad, Value)
    assert not a.grad.requires_grad


def test_the_exponent_has_a_gradient_and_at_a_negative_base_it_is_nan():
    a, b = Value(2.0), Value(3.0)
    (a**b).backward()
    assert (a.grad, b.grad) == (12.0, 8.0 * math.log(2.0))
    a, b = Value(-2.0), Value(3.0)
    (a**b).backward()
    assert a.grad == 12.0
    assert math.isnan(b.grad)


@pytest.mark.parametrize(
    ("base", "exponent", "by_base", "by_exponent"),
    [(0.0, 2.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), (3.0, 0.0, 0.0, math.log(3.0)), (0.0, 1.0, 1.0, 0.0)],
)
def test_powers_have_the_documented_gradients_at_the_corners(base, exponent, by_base, by_exponent):
    a, b = Value(base), Value(exponent)
    (a**b).backward()
    assert (a.grad, b.grad) == (by_base, by_exponent)


def test_powers_have_all_their_derivatives_at_zero():
    for exponent, expected in (
        (2.0, [0.0, 2.0, 0.0, 0.0]),
        (1.0, [1.0, 0.0, 0.0, 0.0]),
        (3.0, [0.0, 0.0, 6.0, 0.0, 0.0]),
    ):
        x = Value(0.0)
        y = x**exponent
        orders = []
        for _ in expected:
            (y,) = mg.grad(y, x, create_graph=True, allow_unused=True)
            if y is None or not y.requires_grad:
                y = Value(0.0 if y is None else y.data) + x * 0.0
            orders.append(y.data)
        assert orders == expected


def test_mixed_second_derivatives_of_powers_hold_at_exponent_zero():
    assert mg.gradgradcheck(lambda a, b: a**b, [2.0, 0.0])
    a, b = Value(0.0), Value(2.0)
    by_a, by_b = mg.grad(a**b, [a, b], create_graph=True)
    assert mg.grad(by_b, a) == (0.0,)
    assert mg.grad(by_a, a) == (2.0,)


def test_a_subclass_is_a_value():
    class Weight(Value):
        pass

    a, b = Weight(2.0), Value(3.0)
    (a * b + a * a).backward()
    assert (a.grad, b.grad) == (7.0, 2.0)
    a.grad = None
    a.tanh().backward()
    assert a.grad == 1 - math.tanh(2.0) ** 2
    assert type(copy.copy(Weight(1.0))) is Weight


def test_a_plain_backward_after_create_graph_leaves_a_float():
    x = Value(3.0)
    (x * x).backward(create_graph=True)
    assert isinstance(x.grad, Value)
    (x * x).backward()
    assert repr(x.grad) == "12.0"


def test_backward_takes_pytorch_s_arguments():
    a = Value(3.0)
    y = a * a
    y.backward(None, retain_graph=True)
    y.backward(2.0, True, False)
    assert a.grad == 18.0


def test_a_value_is_stale_after_an_assignment_to_an_operand():
    a, b = Value(2.0), Value(3.0)
    c = a + b
    d = c * 2.0
    a.data = 2.0  # the same value: no change
    assert c.stale == ()
    a.data = 7.0
    assert [v.stale for v in (a, b, c, d, a + b)] == [(), (), (a,), (), ()]


def test_ties_split_the_gradient_evenly():
    a, b = Value(2.0), Value(2.0)
    a.max(b).backward()
    a.min(b).backward()
    assert (a.grad, b.grad) == (1.0, 1.0)


def test_an_infinite_gradient_is_not_multiplied_by_a_zero_mask():
    x = Value(-1.0)
    x.relu().backward(math.inf)
    y = Value(0.0)
    abs(y).backward(math.inf)
    assert (x.grad, y.grad) == (0.0, 0.0)


def test_repr_shows_label_and_gradient_if_set():
    a = Value(2, "a")
    assert repr(a) == "Value(2.0, label='a')"
    (a * 3).backward()
    assert repr(a) == "Value(2.0, grad=3.0, label='a')"


def test_copying_a_leaf_whose_gradient_has_a_graph_raises():
    x = Value(3.0)
    (x * x).backward(create_graph=True)
    with pytest.raises(GraphError, match="the gradient of this Value has a graph"):
        copy.deepcopy(x)


def test_assigning_data_of_a_computed_value_raises():
    y = Value(2.0) * 3
    with pytest.raises(GraphError, match="data: cannot assign to a Value computed by mul"):
        y.data = 1.0
    assert y.data == 6.0


def test_requires_grad_is_set_on_leaves_only():
    y = Value(2.0) * 3
    with pytest.raises(GraphError, match="you can only change requires_grad of a leaf; this Value was computed by mul"):
        y.requires_grad = False


def test_no_gradient_flows_through_detach():
    a = Value(2.0)
    y = a * a.detach()
    y.backward()
    assert a.grad == 2.0
    assert y.inputs[1].grad is None
    assert not y.inputs[1].requires_grad


def test_backward_without_requires_grad_raises():
    y = Value(2.0).detach() * 3
    with pytest.raises(
        GraphError, match="this Value does not require grad and does not have a grad_fn: it was created by detach"
    ):
        y.backward()


def test_a_leaf_copies_and_pickles_with_its_gradient():
    a = Value(2.0, "a")
    (a * 3).backward()
    for twin in (copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert (twin.data, twin.label, twin.grad, twin.requires_grad) == (2.0, "a", 3.0, True)
    twin = pickle.loads(pickle.dumps(a.detach()))
    assert not twin.requires_grad


@pytest.mark.parametrize("attempt", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copying_a_computed_value_raises(attempt):
    with pytest.raises(
        GraphError,
        match=r"computed by mul and is not a leaf\.\n  Only leaves support copying and pickling\. Use detach",
    ):
        attempt(Value(2.0) * 3)


def test_a_chain_of_100_000_is_differentiated_printed_and_deleted_without_recursion():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(120)
    try:
        x = y = Value(0.5)
        for _ in range(100_000):
            y = y + 1.0
        y.backward()
        assert x.grad == 1.0
        assert len(mg.topological([y])) == 100_001
        assert len(mg.events(y)) == 100_000
        y.zero_grad()
        del y
    finally:
        sys.setrecursionlimit(limit)


def test_random_graphs_agree_with_central_differences_to_second_order():
    for seed in range(12):
        generator = random.Random(seed)
        point = [generator.uniform(-1.5, 1.5) for _ in range(3)]

        def function(*leaves, seed=seed):
            return random_expression(random.Random(seed + 1000), leaves, 12)

        assert mg.gradcheck(function, point)
        assert mg.gradgradcheck(function, point, atol=1e-5, rtol=1e-5)  # kinks, and values up to a thousand


@pytest.mark.parity
def test_random_graphs_agree_with_pytorch(torch):

    for seed in range(50):
        generator = random.Random(seed)
        point = [generator.uniform(-2, 2) for _ in range(4)]
        result = [Value(x) for x in point]
        y = random_expression(random.Random(seed), result, 40)
        y.backward()
        expected = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in point]
        z = random_expression(random.Random(seed), [TorchValue(t) for t in expected], 40).t
        z.backward()
        assert y.data == pytest.approx(z.item(), rel=ROUNDING)
        for a, b in zip(result, expected, strict=True):
            if a.grad is None:
                assert b.grad is None
            else:
                assert a.grad == pytest.approx(b.grad.item(), rel=1e-9, abs=1e-9)


class TorchValue:
    """A PyTorch scalar with the method names that `random_expression` calls."""

    def __init__(self, t):
        self.t = t

    def _with(self, other):
        return other.t if isinstance(other, TorchValue) else other


def _method(name):
    import operator

    def method(self, *others):
        import torch

        operands = [self._with(o) for o in others]
        if name in ("max", "min"):
            function = {"max": torch.maximum, "min": torch.minimum}[name]
            return TorchValue(function(self.t, torch.as_tensor(operands[0], dtype=torch.float64)))
        if name.startswith("__r"):
            return TorchValue(getattr(operator, name[3:].strip("_"))(operands[0], self.t))
        if name.startswith("__"):
            return TorchValue(getattr(operator, name.strip("_"))(self.t, *operands))
        return TorchValue(getattr(self.t, name)(*operands))

    return method


for _name in (
    *(
        "__add__",
        "__radd__",
        "__sub__",
        "__rsub__",
        "__mul__",
        "__rmul__",
        "__truediv__",
        "__pow__",
        "__neg__",
        "__abs__",
    ),
    *("exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "relu", "max", "min"),
):
    setattr(TorchValue, _name, _method(_name))
