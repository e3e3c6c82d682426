"""grad and events: gradients without side effects."""

import pytest

import minigrad as mg
from minigrad import Value
from minigrad.core.errors import DTypeError, GraphError


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
        "grad: input 1, Value(5.0, label='other'), appears to not have been used in the graph.\n"
        "  Omit it, or set allow_unused=True to get None for it."
    )
    assert mg.grad(a * a, [a, other], allow_unused=True) == (4.0, None)


def test_grad_of_what_is_not_a_value_is_refused():
    with pytest.raises(DTypeError, match=r"3.0 is a float; expected a tensor or a Value.\n  Write mg.grad\(output"):
        mg.grad(3.0, [Value(1.0)])
    with pytest.raises(DTypeError, match=r"grad: 2\.0 is a float; expected a tensor or a Value"):
        mg.grad(Value(1.0) * 2, [2.0])


def test_several_outputs_add_up_each_with_its_weight():
    a, b = Value(2.0), Value(3.0)
    y, z = a * b, a * a
    assert mg.grad([y, z], [a, b]) == (7.0, 2.0)
    assert mg.grad([y, z], [a], [10.0, None]) == (34.0,)
    assert mg.grad([y, y], a) == (6.0,)
    with pytest.raises(DTypeError, match="got 1 grad_outputs for 2 outputs"):
        mg.grad([y, z], a, [1.0])


def test_only_what_leads_to_the_inputs_is_computed():
    a, b = Value(2.0), Value(3.0)
    y = a * b
    a.data = 9.0  # only the derivative with respect to b reads a
    assert mg.grad(y, a) == (3.0,)
    with pytest.raises(GraphError, match="an operand of mul that its derivative reads, was modified"):
        mg.grad(y, b)


def test_an_input_that_needs_no_gradient_is_told_from_one_that_has_no_part():
    a = Value(2.0).detach()
    with pytest.raises(
        GraphError, match=r"grad: input 0, Value\(2\.0\), does not require grad: it was created by detach"
    ):
        mg.grad(a * Value(3.0), a)


def test_events_of_what_needs_no_gradient_are_none():
    assert mg.events(Value(1.0).detach() * 2) == []


# --- tensors ---


def tensors(*given):
    import numpy as np

    return [mg.tensor(np.array(x), requires_grad=True) for x in given]


def test_grad_of_tensors_writes_nothing_and_follows_only_what_leads_to_the_inputs():
    a, b = tensors([1.0, 2.0], [3.0, 4.0])
    y, z = (a * b).sum(), (b * b).sum()
    (by_a,) = mg.grad(y + z, a, retain_graph=True)
    assert (by_a.tolist(), a.grad, b.grad) == ([3.0, 4.0], None, None)
    (by_b,) = mg.grad([y, z], b, [mg.tensor(1.0), mg.tensor(10.0)])
    assert by_b.tolist() == [1.0 + 60.0, 2.0 + 80.0]


def test_what_was_not_followed_is_not_freed():
    a, b = tensors([1.0, 2.0], [3.0, 4.0])
    left, right = a.exp(), b.exp()
    y = (left * 2.0 + right * 3.0).sum()
    mg.grad(y, a)
    right.backward(mg.tensor([1.0, 1.0], dtype=mg.float64))
    assert b.grad is not None


def test_an_unused_tensor_is_named_or_none():
    a, b = tensors([1.0, 2.0], [3.0, 4.0])
    with pytest.raises(
        GraphError, match=r"grad: input 1, tensor\(\[3\., 4\.\].*\), appears to not have been used in the graph"
    ):
        mg.grad(a.sum(), [a, b])
    by_a, by_b = mg.grad(a.sum(), [a, b], allow_unused=True)
    assert (by_a.tolist(), by_b) == ([1.0, 1.0], None)


def test_an_input_that_needs_no_gradient_is_refused_before_the_graph_is_freed_also_where_unused_ones_may_be():
    x, y = mg.ones(2, requires_grad=True), mg.ones(2)
    out = (x * x).sum()
    for more in ({}, {"allow_unused": True}):
        with pytest.raises(GraphError, match=r"input 1, .* does not require grad"):
            mg.grad(out, [x, y], **more)
    assert mg.grad(out, x)[0].tolist() == [2.0, 2.0]


def test_a_computed_tensor_keeps_its_gradient_when_asked_to():
    (a,) = tensors([1.0, 2.0])
    y = a * 3.0
    y.retain_grad()
    (y * y).sum().backward()
    assert (y.grad.tolist(), a.grad.tolist()) == ([6.0, 12.0], [18.0, 36.0])
    with pytest.raises(GraphError, match="retain_grad: can't retain_grad on a tensor that does not require grad"):
        y.detach().retain_grad()


def test_a_tensor_overwritten_later_retains_the_gradient_of_what_it_is_then():
    (a,) = tensors([1.0, 2.0])
    y = a * 3.0
    y.retain_grad()
    y.mul_(2.0)
    y.sum().backward()
    assert (y.grad.tolist(), a.grad.tolist()) == ([1.0, 1.0], [6.0, 6.0])


def test_hooks_see_whole_gradients_replace_them_and_can_be_removed():
    (a,) = tensors([1.0, 2.0])
    seen = []
    y = a * 2.0
    on_leaf = a.register_hook(lambda g: seen.append(("a", g.tolist())))
    with y.register_hook(lambda g: g * 10.0):
        (y + y).sum().backward(retain_graph=True)
    assert (seen, a.grad.tolist()) == ([("a", [40.0, 40.0])], [40.0, 40.0])
    on_leaf.remove()
    y.sum().backward()
    assert (len(seen), a.grad.tolist()) == (1, [42.0, 42.0])
    with pytest.raises(
        GraphError, match="register_hook: cannot register a hook on a tensor that doesn't require gradient"
    ):
        a.detach().register_hook(print)


def test_a_tap_changes_no_gradient_of_tensors():
    a, b = tensors([0.5, -2.0], [3.0, 4.0])
    seen = []
    (a * b).tanh().sum().backward()
    plain, a.grad = a.grad, None
    with mg.tap(lambda call: seen.append(call.op)):
        (a * b).tanh().sum().backward()
    assert a.grad.tolist() == plain.tolist()
    assert {"mul", "tanh", "sum", "expand"} <= set(seen)


def test_events_of_tensors_leave_no_trace():
    a, b = tensors([1.0, 2.0], [3.0, 4.0])
    calls = []
    a.register_hook(calls.append)
    y = (a * b).sum()
    found = mg.events(y)
    assert [(event.source.name, event.slot) for event in found] == [
        ("SumBackward", 0),
        ("MulBackward", 0),
        ("MulBackward", 1),
    ]
    assert [event.total.tolist() for event in found[1:]] == [[3.0, 4.0], [1.0, 2.0]]
    assert (a.grad, calls) == (None, [])
    y.backward()
    assert a.grad.tolist() == [3.0, 4.0]


def test_grad_fn_tells_the_way_back():
    a, b = tensors([1.0, 2.0], [3.0, 4.0])
    y = a.exp() * b + 1.0
    assert y.grad_fn.name == "AddBackward"
    (mul, constant) = y.grad_fn.next_functions
    assert (mul.name, constant) == ("MulBackward", None)
    assert [getattr(node, "name", node) for node in mul.next_functions] == ["ExpBackward", b]
    assert (a.grad_fn, a.is_leaf, y.is_leaf) == (None, True, False)


def test_backward_of_several_is_one_pass_that_adds_to_what_is_there():
    a, b = Value(2.0), Value(3.0)
    shared = a * b
    mg.autograd.backward([shared * 2, shared, a], [1.0, 10.0, None])
    assert (a.grad, b.grad, shared.grad) == (37.0, 24.0, 12.0)
    mg.autograd.backward(shared, inputs=b)
    assert (a.grad, b.grad, shared.grad) == (37.0, 26.0, 12.0)
    mg.autograd.backward([a * a], create_graph=True)
    assert (float(a.grad), type(a.grad)) == (41.0, Value)


def test_backward_says_what_it_cannot_begin_with_and_writes_nothing():
    a, other = Value(2.0), Value(1.0).detach()
    with pytest.raises(DTypeError, match="backward: got 1 grad_tensors for 2 tensors"):
        mg.autograd.backward([a * 2, a], [1.0])
    with pytest.raises(GraphError, match=r"backward: input 0, Value\(1\.0\), does not require grad"):
        mg.autograd.backward(a * 2, inputs=[other])
    with pytest.raises(GraphError, match="backward: expected at least one output and one input"):
        mg.autograd.backward(a * 2, inputs=[])
    with pytest.raises(
        DTypeError, match=r"backward: 3\.0 is a float.*\n  Write mg\.autograd\.backward\(\[output, …\]\)"
    ):
        mg.autograd.backward(3.0)
    assert a.grad is None


def test_a_mode_is_true_or_false():
    with pytest.raises(DTypeError, match="set_grad_enabled: expected True or False, but got 'no'"):
        mg.set_grad_enabled("no")
    assert mg.is_grad_enabled()


def test_what_is_no_tensor_is_named():
    x = Value(1.0)
    with pytest.raises(DTypeError, match="hvp: v is a str; expected a tensor or a Value"):
        mg.autograd.hvp(lambda x: x * x, x, "v")
    with pytest.raises(DTypeError, match=r"events: 3 is an int; .*\n  Write mg\.autograd\.events\(output\)"):
        mg.autograd.events(3)


@pytest.mark.parity
def test_whatever_gives_tensors_one_by_one_is_taken_as_in_pytorch(torch):
    """Generators, parameter lists, dict values, single-element sets, iterators of weights."""
    found = []
    for library in (mg, torch):
        layer = library.nn.Linear(2, 1)
        listed = library.nn.ParameterList([library.ones(2), library.ones(1)])
        with library.no_grad():
            for x in layer.parameters():
                x.fill_(2.0)
        loss = (layer(library.ones(3, 2)).sum() * listed[0].sum() * listed[1].sum()) ** 2
        keep = {"retain_graph": True}
        told = [
            library.autograd.grad(loss, layer.parameters(), **keep),
            library.autograd.grad(loss, listed, **keep),
            library.autograd.grad(loss, (x for _, x in layer.named_parameters()), **keep),
            library.autograd.grad(loss, dict(layer.named_parameters()).values(), **keep),
            library.autograd.grad([loss, loss * 2], layer.parameters(), [library.tensor(1.0)] * 2, **keep),
        ]
        loss.backward(inputs=list(layer.parameters()), **keep)
        library.autograd.backward([loss], inputs=listed.parameters() if library is mg else list(listed.parameters()))
        told.append([x.grad for x in (*layer.parameters(), *listed)])
        found.append([[x.tolist() for x in row] for row in told])
    assert found[0] == found[1]
    x = mg.ones(2, requires_grad=True)
    assert mg.autograd.grad((y for y in (x * 2, x * 3)), {x}, iter([mg.ones(2)] * 2))[0].tolist() == [5.0, 5.0]
    with pytest.raises(DTypeError, match="'a' is a str; expected a tensor or a Value"):
        mg.autograd.grad(x.sum(), {"a": x})
