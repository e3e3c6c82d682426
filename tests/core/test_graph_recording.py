"""`mg.record()` retains the graph, `events` has no side effects, and scopes are distinguished."""

import copy
import pickle
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.errors import GraphError
from minigrad.core.modes import slow_path


def _leaf(*values):
    return mg.tensor(list(values), requires_grad=True)


def test_a_recorded_node_stores_a_copy_of_its_output():
    x = _leaf(1.0, 2.0)
    with mg.record():
        y = x * x
        z = y + 1.0
        with mg.no_grad():
            y.zero_()
    assert y.grad_fn is not None
    assert y.grad_fn.output.tolist() == [1.0, 4.0]
    assert z.grad_fn.output.tolist() == [2.0, 5.0]


def test_a_recorded_inplace_write_stores_each_state():
    x = _leaf(1.0, 2.0)
    with mg.record():
        y = x * 3.0
        first = y.grad_fn
        y.add_(1.0)
        second = y.grad_fn
        y[0] = 7.0
    outputs = [step.output.tolist() for step in (first, second, y.grad_fn)]
    assert outputs == [[3.0, 6.0], [4.0, 7.0], [7.0, 7.0]]


def test_a_recorded_pass_retains_the_graph_and_intermediate_gradients():
    x = _leaf(1.0, 2.0)
    with mg.record():
        y = x * x
        z = (y * y).sum()
        z.backward()
        z.backward()
        mg.grad(z, x)
    assert y.grad_fn.grad.tolist() == [4.0, 16.0]
    assert y.grad is None
    z.backward(retain_graph=False)
    with pytest.raises(GraphError, match="freed its saved tensors"):
        z.backward()


def test_retain_graph_false_frees_inside_a_recording():
    x = _leaf(1.0)
    with mg.record():
        y = x * x
        y.backward(retain_graph=False)
        with pytest.raises(GraphError, match="freed its saved tensors"):
            y.backward()


def test_operations_with_several_outputs_are_recorded():
    x = _leaf(3.0, 1.0)
    with mg.record():
        values, _ = x.sort(0)
        values.sum().backward()
    pick = values.grad_fn
    assert pick.name == "PickBackward"
    assert pick.output.tolist() == [1.0, 3.0]
    assert pick.grad.tolist() == [1.0, 1.0]
    assert pick.next_functions[0].output.tolist() == [1.0, 3.0]


@pytest.mark.parametrize("recorded", [False, True])
def test_a_freed_node_still_has_its_constants(recorded):
    x, mask = _leaf(1.0, 2.0), mg.tensor([0.0, 1.0])
    with mg.record() if recorded else mg.scope("plain"):
        y = x * mask
        z = y + 2.0
    z.backward(mg.ones(2), retain_graph=False)
    leaf, results = y.grad_fn.constants
    assert (leaf, results is mask, z.grad_fn.constants) == (None, True, (None, 2.0))


def test_large_constants_are_kept_inside_a_recording_only():
    x, large = mg.ones(100, 100, requires_grad=True), mg.ones(100, 100)
    alive = weakref.ref(large)
    with mg.record():
        kept_tensor = x + large
    freed = x + large
    by_way_of_a_view = x + large.view(10_000)[:100]
    assert freed.grad_fn.constants[1] is large
    assert by_way_of_a_view.grad_fn.constants[1].tolist() == [1.0] * 100
    del large
    assert kept_tensor.grad_fn.constants[1] is alive()
    del kept_tensor
    assert alive() is None
    assert freed.grad_fn.constants == by_way_of_a_view.grad_fn.constants == (None, None)


def test_a_small_constant_is_kept_as_an_array_without_a_cycle():
    x, state = _leaf(1.0, 2.0), mg.tensor([3.0, 4.0])
    y = x + state
    step, (_, results) = y.grad_fn, y.grad_fn.constants
    assert results is state
    state.copy_(y)  # now the state refers to the step
    watched = weakref.ref(step)
    del step, results, y
    assert watched() is not None
    del state
    assert watched() is None, "without a collection of cycles"
    y = x + mg.tensor([3.0, 4.0])
    assert y.grad_fn.constants[1].tolist() == [3.0, 4.0]


def test_a_constant_keeps_its_value_before_an_inplace_write():
    x, total, rows = _leaf(1.0, 2.0), mg.tensor([3.0, 4.0]), mg.zeros(2, 2)
    total += x
    rows[0] = x
    assert total.grad_fn.constants[0].tolist() == [3.0, 4.0]
    assert (rows.grad_fn.name, rows.grad_fn.constants[0].tolist()) == ("OverwriteBackward", [[1.0, 2.0], [0.0, 0.0]])


def test_without_a_recording_nothing_is_stored():
    x = _leaf(1.0)
    y = x * x
    with mg.scope("layer"):
        z = y * y
    for step in (y.grad_fn, z.grad_fn):
        assert step.output is None
        assert step.constants == (None, None)
    assert z.grad_fn.scope == "layer"
    z.backward()
    assert y.grad_fn.grad is None


def test_anomaly_mode_keeps_no_graph():
    x = _leaf(1.0)
    with mg.autograd.detect_anomaly():
        y = x * x
        y.backward()
    assert y.grad_fn.output is None
    with pytest.raises(GraphError, match="freed its saved tensors"):
        y.backward()


def test_a_node_has_a_scope_and_a_line():
    x = _leaf(1.0)
    with mg.record(lines=True), mg.scope("attention"):
        y = x * x
    assert y.grad_fn.scope == "attention"
    assert y.grad_fn.line.endswith(": y = x * x")
    assert (x * x).grad_fn.line is None
    assert (x * x).grad_fn.scope == ""


# --- events ---


def test_events_of_tensors_have_no_side_effects():
    x = _leaf(1.0, 2.0)
    called = []
    x.register_hook(called.append)
    y = x * x
    z = mg.functional.dropout(y, 0.5).sum()
    initial = mg.get_rng_state().tolist()
    with mg.record() as log:
        first, second = mg.events(z), mg.events(z)
    assert [e.contribution.tolist() for e in first] == [e.contribution.tolist() for e in second]
    assert (x.grad, y.grad, y.grad_fn.grad, called, log.events) == (None, None, None, [], [])
    assert mg.get_rng_state().tolist() == initial
    z.backward()
    assert len(called) == 1


def test_events_restore_the_random_state():
    draws = mg.Op("recording_draws", "{a}", vjp=(lambda g, a: g * float(np.asarray(mg.rand(1).numpy())[0]),))
    mg.kernel("recording_draws", mg.get_default_device())(lambda a: a + 0.0)
    try:
        x = _leaf(1.0)
        y = draws(x)
        mg.manual_seed(0)
        expected = mg.rand(3).tolist()
        mg.manual_seed(0)
        mg.events(y)
        assert mg.rand(3).tolist() == expected
    finally:
        del mg.OPS["recording_draws"]


# --- scopes ---


def test_each_entry_of_a_scope_is_distinct():
    results = []
    for _ in range(2):
        with mg.scope("outer"), mg.scope("inner"):
            results.append((mg.Value(1.0) + 1.0).scope)
    first, second = results
    assert first == second == "outer/inner"
    assert first is not second
    assert (first.name, first.outer, first.outer.outer) == ("inner", "outer", None)


def test_nodes_of_one_entry_share_its_scope():
    with mg.scope("layer"):
        a = mg.Value(1.0)
        b = a + 1.0
    assert a.scope is b.scope


@pytest.mark.parametrize("name", ["x" * 10_000, "<script>alert(1)</script>", "🙂/“", "", "\x00\n"])
def test_a_scope_accepts_any_name(name):
    with mg.scope("outer"), mg.scope(name):
        a = mg.Value(1.0)
    assert a.scope == f"outer/{name}"
    assert a.scope.name == name


def test_a_pickled_or_copied_scope_is_a_str():
    with mg.scope("layer"):
        a = mg.Value(1.0)
    for second in (pickle.loads(pickle.dumps(a)), copy.deepcopy(a)):
        assert second.scope == "layer"
        assert type(second.scope) is str


def test_recording_restores_the_fast_path():
    initial = len(slow_path.reasons)
    with pytest.raises(ZeroDivisionError), mg.record(), mg.scope("layer"):
        raise ZeroDivisionError
    assert len(slow_path.reasons) == initial


def test_a_leaf_stores_the_scope_of_requires_grad_():
    with mg.scope("layer"):
        w = mg.randn(2, requires_grad=True)
        y = w * 2.0
    assert w.scope == y.scope == "layer"
    assert mg.zeros(1).scope == ""
