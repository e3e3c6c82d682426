"""grad and events: gradients without side effects."""

import pytest

import minigrad as mg
from minigrad import Value
from minigrad.errors import DTypeError, GraphError


def test_grad_returns_floats_in_the_order_asked_and_writes_nothing():
    a, b = Value(2.0), Value(3.0)
    y = a * b + b
    assert mg.grad(y, [b, a]) == (3.0, 3.0)
    assert mg.grad(y, a, gradient=2.0) == (6.0,)
    assert mg.grad(y, [y]) == (1.0,)
    assert (a.grad, b.grad, y.grad) == (None, None, None)


def test_mixed_second_derivatives_agree():
    a, b = Value(0.5), Value(2.0)
    y = (a * b).sin() * a
    by_a, by_b = mg.grad(y, [a, b], create_graph=True)
    (ab,) = mg.grad(by_a, b)
    (ba,) = mg.grad(by_b, a)
    assert ab == pytest.approx(ba, rel=1e-12)


def test_an_input_without_a_part_in_the_output_is_named():
    a, other = Value(2.0), Value(5.0, "other")
    with pytest.raises(GraphError) as error:
        mg.grad(a * a, [a, other])
    assert str(error.value) == (
        "grad: input 1, Value(5.0, label='other'), has no part in the output: no path of operations leads there.\n"
        "  Leave it out, or pass allow_unused=True to get None for it."
    )
    assert mg.grad(a * a, [a, other], allow_unused=True) == (4.0, None)


def test_grad_of_what_is_not_a_value_is_refused():
    with pytest.raises(DTypeError, match=r"grad: 3.0 is a float, not a Value.\n  Write mg.grad\(output"):
        mg.grad(3.0, [Value(1.0)])
    with pytest.raises(DTypeError, match=r"grad: 2\.0 is a float, not a Value"):
        mg.grad(Value(1.0) * 2, [2.0])


def test_events_of_what_needs_no_gradient_are_none():
    assert mg.events(Value(1.0).detach() * 2) == []
