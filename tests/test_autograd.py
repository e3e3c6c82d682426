"""grad and events: gradients without side effects."""

import pytest

import minigrad as mg
from minigrad import Value
from minigrad.errors import DTypeError, GraphError


def test_grad_returns_floats_in_the_order_asked_and_writes_nothing():
    a, b = Value(2.0), Value(3.0)
    y = a * b + b
    assert mg.grad(y, [b, a]) == (3.0, 3.0)
    assert mg.grad(y, a, grad_outputs=2.0) == (6.0,)
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
    with pytest.raises(DTypeError, match=r"3.0 is a float, neither a tensor nor a Value.\n  Write mg.grad\(output"):
        mg.grad(3.0, [Value(1.0)])
    with pytest.raises(DTypeError, match=r"grad: 2\.0 is a float, neither a tensor nor a Value"):
        mg.grad(Value(1.0) * 2, [2.0])


def test_several_outputs_add_up_each_with_its_weight():
    a, b = Value(2.0), Value(3.0)
    y, z = a * b, a * a
    assert mg.grad([y, z], [a, b]) == (7.0, 2.0)
    assert mg.grad([y, z], [a], [10.0, None]) == (34.0,)
    assert mg.grad([y, y], a) == (6.0,)
    with pytest.raises(DTypeError, match="1 grad_outputs were given for 2 outputs"):
        mg.grad([y, z], a, [1.0])


def test_only_what_leads_to_the_inputs_is_computed():
    a, b = Value(2.0), Value(3.0)
    y = a * b
    a.data = 9.0  # the derivative by b would need the 2; the one by a does not
    assert mg.grad(y, a) == (3.0,)
    with pytest.raises(GraphError, match="was given another number after mul had used it"):
        mg.grad(y, b)


def test_an_input_that_needs_no_gradient_is_told_from_one_that_has_no_part():
    a = Value(2.0).detach()
    with pytest.raises(GraphError, match=r"grad: input 0, Value\(2\.0\), needs no gradient: it was made by detach"):
        mg.grad(a * Value(3.0), a)


def test_events_of_what_needs_no_gradient_are_none():
    assert mg.events(Value(1.0).detach() * 2) == []
