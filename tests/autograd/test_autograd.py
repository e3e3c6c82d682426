"""grad and events: gradients without side effects."""

import pytest

import minigrad as mg
from minigrad import Value
from minigrad.core.errors import DTypeError, GraphError


def test_grad_returns_floats_in_input_order_without_side_effects():
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


def test_an_unused_input_raises():
    a, other = Value(2.0), Value(5.0, "other")
    with pytest.raises(GraphError) as error:
        mg.grad(a * a, [a, other])
    assert str(error.value) == (
        "grad: input 1, Value(5.0, label='other'), appears to not have been used in the graph.\n"
        "  Omit it, or set allow_unused=True to get None for it."
    )
    assert mg.grad(a * a, [a, other], allow_unused=True) == (4.0, None)


def test_grad_of_other_types_raises():
    with pytest.raises(DTypeError, match=r"3.0 is a float; expected a tensor or a Value.\n  Write mg.grad\(output"):
        mg.grad(3.0, [Value(1.0)])
    with pytest.raises(DTypeError, match=r"grad: 2\.0 is a float; expected a tensor or a Value"):
        mg.grad(Value(1.0) * 2, [2.0])


def test_several_outputs_accumulate_with_their_weights():
    a, b = Value(2.0), Value(3.0)
    y, z = a * b, a * a
    assert mg.grad([y, z], [a, b]) == (7.0, 2.0)
    assert mg.grad([y, z], [a], [10.0, None]) == (34.0,)
    assert mg.grad([y, y], a) == (6.0,)
    with pytest.raises(DTypeError, match="got 1 grad_outputs for 2 outputs"):
        mg.grad([y, z], a, [1.0])


def test_only_paths_to_the_inputs_are_computed():
    a, b = Value(2.0), Value(3.0)
    y = a * b
    a.data = 9.0  # only the derivative with respect to b reads a
    assert mg.grad(y, a) == (3.0,)
    with pytest.raises(GraphError, match="an operand of mul that its derivative reads, was modified"):
        mg.grad(y, b)


def test_an_input_without_requires_grad_raises():
    a = Value(2.0).detach()
    with pytest.raises(
        GraphError, match=r"grad: input 0, Value\(2\.0\), does not require grad: it was created by detach"
    ):
        mg.grad(a * Value(3.0), a)


def test_events_without_requires_grad_are_empty():
    assert mg.events(Value(1.0).detach() * 2) == []


# --- tensors ---


def tensors(*arrays):
    import numpy as np

    return [mg.tensor(np.array(x), requires_grad=True) for x in arrays]


def test_grad_of_tensors_follows_only_paths_to_the_inputs():
    a, b = tensors([1.0, 2.0], [3.0, 4.0])
    y, z = (a * b).sum(), (b * b).sum()
    (by_a,) = mg.grad(y + z, a, retain_graph=True)
    assert (by_a.tolist(), a.grad, b.grad) == ([3.0, 4.0], None, None)
    (by_b,) = mg.grad([y, z], b, [mg.tensor(1.0), mg.tensor(10.0)])
    assert by_b.tolist() == [1.0 + 60.0, 2.0 + 80.0]


def test_nodes_off_the_path_are_not_freed():
    a, b = tensors([1.0, 2.0], [3.0, 4.0])
    left, right = a.exp(), b.exp()
    y = (left * 2.0 + right * 3.0).sum()
    mg.grad(y, a)
    right.backward(mg.tensor([1.0, 1.0], dtype=mg.float64))
    assert b.grad is not None


def test_an_unused_tensor_raises_or_returns_none():
    a, b = tensors([1.0, 2.0], [3.0, 4.0])
    with pytest.raises(
        GraphError, match=r"grad: input 1, tensor\(\[3\., 4\.\].*\), appears to not have been used in the graph"
    ):
        mg.grad(a.sum(), [a, b])
    by_a, by_b = mg.grad(a.sum(), [a, b], allow_unused=True)
    assert (by_a.tolist(), by_b) == ([1.0, 1.0], None)


def test_an_input_without_requires_grad_raises_before_the_graph_is_freed():
    x, y = mg.ones(2, requires_grad=True), mg.ones(2)
    out = (x * x).sum()
    for options in ({}, {"allow_unused": True}):
        with pytest.raises(GraphError, match=r"input 1, .* does not require grad"):
            mg.grad(out, [x, y], **options)
    assert mg.grad(out, x)[0].tolist() == [2.0, 2.0]


def test_retain_grad_stores_the_gradient():
    (a,) = tensors([1.0, 2.0])
    y = a * 3.0
    y.retain_grad()
    (y * y).sum().backward()
    assert (y.grad.tolist(), a.grad.tolist()) == ([6.0, 12.0], [18.0, 36.0])
    with pytest.raises(GraphError, match="retain_grad: can't retain_grad on a tensor that does not require grad"):
        y.detach().retain_grad()


def test_retain_grad_follows_an_inplace_write():
    (a,) = tensors([1.0, 2.0])
    y = a * 3.0
    y.retain_grad()
    y.mul_(2.0)
    y.sum().backward()
    assert (y.grad.tolist(), a.grad.tolist()) == ([1.0, 1.0], [6.0, 6.0])


def test_hooks_receive_full_gradients_replace_them_and_can_be_removed():
    (a,) = tensors([1.0, 2.0])
    log = []
    y = a * 2.0
    on_leaf = a.register_hook(lambda g: log.append(("a", g.tolist())))
    with y.register_hook(lambda g: g * 10.0):
        (y + y).sum().backward(retain_graph=True)
    assert (log, a.grad.tolist()) == ([("a", [40.0, 40.0])], [40.0, 40.0])
    on_leaf.remove()
    y.sum().backward()
    assert (len(log), a.grad.tolist()) == (1, [42.0, 42.0])
    with pytest.raises(
        GraphError, match="register_hook: cannot register a hook on a tensor that doesn't require gradient"
    ):
        a.detach().register_hook(print)


def test_a_tap_changes_no_gradient_of_tensors():
    a, b = tensors([0.5, -2.0], [3.0, 4.0])
    log = []
    (a * b).tanh().sum().backward()
    plain, a.grad = a.grad, None
    with mg.tap(lambda call: log.append(call.op)):
        (a * b).tanh().sum().backward()
    assert a.grad.tolist() == plain.tolist()
    assert {"mul", "tanh", "sum", "expand"} <= set(log)


def test_events_of_tensors_have_no_side_effects():
    a, b = tensors([1.0, 2.0], [3.0, 4.0])
    calls = []
    a.register_hook(calls.append)
    y = (a * b).sum()
    results = mg.events(y)
    assert [(event.source.name, event.slot) for event in results] == [
        ("SumBackward", 0),
        ("MulBackward", 0),
        ("MulBackward", 1),
    ]
    assert [event.total.tolist() for event in results[1:]] == [[3.0, 4.0], [1.0, 2.0]]
    assert (a.grad, calls) == (None, [])
    y.backward()
    assert a.grad.tolist() == [3.0, 4.0]


def test_grad_fn_exposes_next_functions():
    a, b = tensors([1.0, 2.0], [3.0, 4.0])
    y = a.exp() * b + 1.0
    assert y.grad_fn.name == "AddBackward"
    (mul, constant) = y.grad_fn.next_functions
    assert (mul.name, constant) == ("MulBackward", None)
    assert [getattr(node, "name", node) for node in mul.next_functions] == ["ExpBackward", b]
    assert (a.grad_fn, a.is_leaf, y.is_leaf) == (None, True, False)


def test_backward_of_several_outputs_is_one_accumulating_pass():
    a, b = Value(2.0), Value(3.0)
    shared = a * b
    mg.autograd.backward([shared * 2, shared, a], [1.0, 10.0, None])
    assert (a.grad, b.grad, shared.grad) == (37.0, 24.0, 12.0)
    mg.autograd.backward(shared, inputs=b)
    assert (a.grad, b.grad, shared.grad) == (37.0, 26.0, 12.0)
    mg.autograd.backward([a * a], create_graph=True)
    assert (float(a.grad), type(a.grad)) == (41.0, Value)


def test_backward_with_invalid_arguments_raises_without_side_effects():
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


def test_set_grad_enabled_requires_a_bool():
    with pytest.raises(DTypeError, match="set_grad_enabled: expected True or False, but got 'no'"):
        mg.set_grad_enabled("no")
    assert mg.is_grad_enabled()


def test_other_types_raise():
    x = Value(1.0)
    with pytest.raises(DTypeError, match="hvp: v is a str; expected a tensor or a Value"):
        mg.autograd.hvp(lambda x: x * x, x, "v")
    with pytest.raises(DTypeError, match=r"events: 3 is an int; .*\n  Write mg\.autograd\.events\(output\)"):
        mg.autograd.events(3)


@pytest.mark.parity
def test_any_iterable_of_tensors_is_accepted_as_in_pytorch(torch):
    """Generators, parameter lists, dict values, single-element sets, iterators of weights."""
    results = []
    for library in (mg, torch):
        layer = library.nn.Linear(2, 1)
        parameters = library.nn.ParameterList([library.ones(2), library.ones(1)])
        with library.no_grad():
            for x in layer.parameters():
                x.fill_(2.0)
        loss = (layer(library.ones(3, 2)).sum() * parameters[0].sum() * parameters[1].sum()) ** 2
        options = {"retain_graph": True}
        outputs = [
            library.autograd.grad(loss, layer.parameters(), **options),
            library.autograd.grad(loss, parameters, **options),
            library.autograd.grad(loss, (x for _, x in layer.named_parameters()), **options),
            library.autograd.grad(loss, dict(layer.named_parameters()).values(), **options),
            library.autograd.grad([loss, loss * 2], layer.parameters(), [library.tensor(1.0)] * 2, **options),
        ]
        loss.backward(inputs=list(layer.parameters()), **options)
        library.autograd.backward(
            [loss], inputs=parameters.parameters() if library is mg else list(parameters.parameters())
        )
        outputs.append([x.grad for x in (*layer.parameters(), *parameters)])
        results.append([[x.tolist() for x in row] for row in outputs])
    assert results[0] == results[1]
    x = mg.ones(2, requires_grad=True)
    assert mg.autograd.grad((y for y in (x * 2, x * 3)), {x}, iter([mg.ones(2)] * 2))[0].tolist() == [5.0, 5.0]
    with pytest.raises(DTypeError, match="'a' is a str; expected a tensor or a Value"):
        mg.autograd.grad(x.sum(), {"a": x})
