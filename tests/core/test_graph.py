"""Topological order, backward events, and modes."""

import threading

import pytest

import minigrad as mg
from minigrad import Value
from minigrad.core import dispatch
from minigrad.core.errors import GraphError
from minigrad.core.op import OPS, POSITIVE


def test_a_missing_kernel_error_lists_the_devices_with_one():
    mg.kernel("counted", "python")(lambda a: a)
    with pytest.raises(mg.errors.DeviceError) as error:
        mg.dispatch("counted", "abacus", (1.0,))
    assert str(error.value) == (
        "counted: no kernel for device 'abacus'; it has one for python.\n  Add one: @mg.kernel('counted', 'abacus')"
    )


def test_topological_order_visits_operands_first_in_order():
    a, b = Value(1.0, "a"), Value(2.0, "b")
    c = a * b
    d = c + a
    assert mg.topological([d]) == [a, b, c, d]
    assert mg.topological([b, d]) == [b, a, c, d]


def test_events_report_each_contribution_in_order():
    a, b = Value(2.0, "a"), Value(-3.0, "b")
    c = a * b
    d = c + a
    outputs = [(e.source, e.target, e.slot, e.upstream, e.local, e.contribution, e.total) for e in mg.events(d)]
    assert outputs == [
        (d, c, 0, 1.0, 1.0, 1.0, 1.0),
        (d, a, 1, 1.0, 1.0, 1.0, 1.0),
        (c, a, 0, 1.0, -3.0, -3.0, -2.0),
        (c, b, 1, 1.0, 2.0, 2.0, 2.0),
    ]


def test_events_have_no_side_effects():
    a = Value(3.0)
    y = a * a
    y.backward()
    mg.events(y)
    assert (a.grad, y.grad) == (6.0, 1.0)
    assert mg.topological([y]) == [a, y]


def test_record_stores_events_of_backward_and_grad_inside_the_block_only():
    a = Value(3.0)
    y = a * a
    with mg.record() as outer:
        y.backward()
        with mg.record() as inner:
            mg.grad(y, a)
    y.backward()
    assert len(outer.events) == 4
    assert len(inner.events) == 2
    assert repr(inner) == "Recording(2 events)"


def test_events_of_a_backward_with_create_graph_contain_floats():
    a = Value(3.0)
    with mg.record() as log:
        (a * a * a).backward(create_graph=True)
    assert [e.contribution for e in log.events] == [3.0, 9.0, 9.0, 9.0]
    assert all(type(e.total) is float for e in log.events)


def test_a_tap_sees_the_arithmetic_of_forward_and_backward_and_changes_no_bit():
    def run():
        x = Value(0.5)
        y = (x * x).tanh()
        y.backward()
        return y.data, x.grad

    quiet = run()
    with mg.tap(lambda call: log.append(call.op)):
        log: list[str] = []
        watched = run()
    assert watched == quiet
    assert log == ["mul", "tanh", "mul", "sub", "mul", "mul", "mul", "add"]
    assert type(watched[1]) is float


def test_events_and_recordings_do_not_call_taps():
    x = Value(0.5)
    log = []
    with mg.tap(lambda call: log.append(call.op)):
        y = x.sin()
        mg.events(y)
        with mg.record():
            y.backward()
    assert log == ["sin", "cos", "mul"]


def test_a_tap_is_not_called_for_its_own_kernels():
    sums = []
    with mg.tap(lambda call: sums.append((Value(call.result) + 1.0).data)):
        Value(1.0) * 2.0
    assert sums == [3.0]


def test_a_replaced_kernel_takes_effect():
    original = dispatch.get_kernels("sin")["python"]
    try:
        mg.kernel("sin", "python")(lambda a: 42.0)
        assert Value(1.0).sin().data == 42.0
    finally:
        mg.kernel("sin", "python")(original)
    assert Value(0.0).sin().data == 0.0


def test_no_grad_creates_leaves_and_ends_on_exit():
    a = Value(2.0)
    with mg.no_grad():
        y = a * a
        assert not mg.is_grad_enabled()
        with mg.enable_grad():
            z = a * a
    assert (y.op, y.requires_grad) == (None, False)
    assert (z.op, z.requires_grad) == (OPS["mul"], True)
    assert (a * a).op is OPS["mul"]


def test_no_grad_decorates_a_function():
    @mg.no_grad()
    def square(x):
        return x * x

    assert square(Value(3.0)).inputs == ()
    assert square(Value(3.0)).inputs == ()


def test_a_mode_is_reentrant_and_decorates_with_or_without_parentheses():
    block = mg.no_grad()
    for _ in range(2):
        with block, block:
            assert not mg.is_grad_enabled()
    assert mg.is_grad_enabled()

    @mg.no_grad
    def square(x):
        """Return the square."""
        return x * x

    assert square(Value(3.0)).inputs == ()
    assert square.__doc__ == "Return the square."


def test_a_decorating_scope_nests_in_the_scope_of_the_call():
    @mg.scope("inner")
    def double(x):
        return x * 2.0

    with mg.scope("outer"):
        assert double(Value(1.0)).scope == "outer/inner"
    assert double(Value(1.0)).scope == "inner"


def test_nested_recordings_inherit_lines():
    with mg.record(lines=True), mg.record():
        y = Value(1.0) * 2.0
    assert y.line is not None


def test_first_order_backward_records_no_graph():
    x = Value(3.0)
    outputs = []
    with mg.tap(lambda call: outputs.append(mg.is_grad_enabled())):
        (x * x).backward()
    assert outputs == [True, False, False, False]


def test_scopes_nest_and_exit_on_exceptions():
    outputs = []

    def build():
        with mg.scope("layer1"), mg.scope("neuron0"):
            outputs.append(Value(1.0) * 2.0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        build()
    (inside,) = outputs
    assert inside.scope == "layer1/neuron0"
    assert inside.inputs[0].scope == "layer1/neuron0"
    assert (Value(1.0) * 2.0).scope == ""


def test_modes_are_thread_local():
    log = {}

    def other():
        log["scope"], log["grad"] = (Value(1.0) * 2.0).scope, mg.is_grad_enabled()

    with mg.scope("mine"), mg.no_grad():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert log == {"scope": "", "grad": True}


def test_record_lines_stores_the_source_line_of_each_op():
    a = Value(2.0)
    with mg.record(lines=True):
        y = a * a  # the line that the test looks up
    assert y.line is not None
    assert y.line.endswith("y = a * a  # the line that the test looks up")
    assert "test_graph.py:" in y.line
    assert (a * a).line is None


def test_a_modified_leaf_raises_before_any_gradient_changes():
    a, b = Value(2.0, "a"), Value(3.0, "b")
    y = a * b
    z = y + a
    a.data = 7.0
    with pytest.raises(GraphError) as error:
        z.backward()
    assert str(error.value) == (
        "backward: Value(7.0, label='a'), an operand of mul that its derivative reads, was modified since the "
        "forward pass.\n  Recompute the expression after changing `data`."
    )
    assert (a.grad, b.grad, y.grad, z.grad) == (None, None, None, None)


def test_a_modified_leaf_is_valid_for_rules_that_do_not_read_it():
    a, b = Value(2.0), Value(3.0)
    y = a + b
    b.data = 9.0
    y.backward()
    assert (a.grad, b.grad) == (1.0, 1.0)
    c, k = Value(2.0), Value(5.0)
    k.requires_grad = False
    z = c * k  # only the rule for c runs, and it reads k
    c.data = 8.0
    z.backward()
    assert c.grad == 5.0


def test_domains_are_where_tests_sample():
    assert (POSITIVE.low, POSITIVE.high, POSITIVE.kinks) == (0.25, 3.0, ())


def test_a_decorated_generator_is_in_the_mode_between_yields_only():
    @mg.no_grad
    def steps():
        got = yield mg.is_grad_enabled()
        yield got, mg.is_grad_enabled()
        return "end"

    generator = steps()
    assert next(generator) is False
    assert mg.is_grad_enabled()
    assert generator.send(3) == (3, False)
    with pytest.raises(StopIteration, match="end"):
        next(generator)
    assert mg.is_grad_enabled()


def test_a_second_backward_suggests_retain_graph():
    a = mg.tensor(2.0, requires_grad=True)
    y = mg.tanh(a)
    y.backward()
    initial = a.grad.item()
    with pytest.raises(GraphError) as error:
        y.backward()
    assert str(error.value) == (
        "backward: trying to backward through the graph a second time: tanh freed its saved tensors.\n"
        "  Write backward(retain_graph=True) the first time, or recompute the expression."
    )
    assert a.grad.item() == initial


def test_a_long_chain_is_differentiated_and_deleted_without_recursion():
    x = mg.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y + 0.001
    y.backward()
    assert x.grad.item() == 1.0
    del y
