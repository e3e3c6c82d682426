"""Alarms: the first NaN or infinity is found wherever it occurs; vanishing, exploding, blocked and stale gradients."""

import math

import pytest

import minigrad as mg
from minigrad_viz import to_trace

F = mg.functional


def alarms(x, *kinds):
    return [note for note in to_trace(x, namespaces=()).notes if note.kind in kinds]


def single_alarm(x, kind):
    (note,) = alarms(x, kind)
    return note


# --- the first value that is not finite ------------------------------------------------------------------------------


def _non_finite_cases():
    """Yield the op that produces the first non-finite value, its kind, and a function that computes it."""
    x, zero, huge = 0.5, 0.0, 1e200
    yield "log", "inf", lambda v: mg.log(v(zero))
    yield "log", "nan", lambda v: mg.log(v(-x))
    yield "sqrt", "nan", lambda v: mg.sqrt(v(-x))
    yield "div", "inf", lambda v: v(x) / v(zero)
    yield "div", "nan", lambda v: v(zero) / v(zero)
    yield "exp", "inf", lambda v: mg.exp(v(1000.0))
    yield "mul", "inf", lambda v: v(huge) * v(huge)
    yield "pow", "inf", lambda v: v(huge) ** 2.0
    yield "add", "inf", lambda v: v(1.7e308) + v(1.7e308)
    yield "sub", "inf", lambda v: v(-1.7e308) - v(1.7e308)


CASES = list(_non_finite_cases())


@pytest.mark.parametrize(("op", "kind", "plant"), CASES, ids=[f"{op}-{kind}" for op, kind, _ in CASES])
@pytest.mark.parametrize("tensors", [False, True], ids=["Value", "Tensor"])
def test_first_non_finite_operation_is_named_with_contaminated_nodes(op, kind, plant, tensors):
    def leaf(x):
        return mg.tensor([0.25, x], dtype=mg.float64, requires_grad=True) if tensors else mg.Value(x)

    with mg.record():
        clean = leaf(1.0) * 2.0 + leaf(3.0)
        bad = plant(leaf)
        after = bad + clean
        y = (after * 1.0).sum() if tensors else after * 1.0
    trace = to_trace(y, namespaces=())
    note = next(note for note in trace.notes if note.kind in ("nan", "inf"))
    assert note.kind == kind
    assert trace.nodes[note.node].op.name == op
    values = [x.value if x.array is None else float(x.array.sum()) for x in trace.nodes]
    assert note.nodes == tuple(i for i, x in enumerate(values) if i > note.node and not math.isfinite(x))
    assert all(math.isfinite(x) for x in values[: note.node])


def test_nan_after_infinity_has_its_own_note():
    zero = mg.Value(0.0, "z")
    trace = to_trace(mg.log(zero) * 0.0 + 1.0, namespaces=())
    first, second = (note for note in trace.notes if note.kind in ("nan", "inf"))
    assert (first.kind, trace.nodes[first.node].op.name) == ("inf", "log")
    assert (second.kind, trace.nodes[second.node].op.name) == ("nan", "mul")
    assert first.nodes == (3, 5)
    assert first.text == "v₁ is the first infinity: ln(z) = ln(0). It spread to 2 nodes."


def test_non_finite_elements_of_a_tensor_are_counted():
    x = mg.tensor([1.0, -1.0, -2.0], requires_grad=True)
    with mg.record():
        y = x.log()
    assert single_alarm(y, "nan").text == "v₁ is the first NaN: ln(v₀), in 2 of 3 elements."


def test_infinity_in_a_mask_raises_no_alarm():
    x = mg.randn(3, 3, requires_grad=True)
    mask = mg.ones(3, 3).triu(1) > 0
    for recorded in (False, True):
        with mg.record() if recorded else mg.scope("plain"):
            y = F.softmax(x.masked_fill(mask, -math.inf), 1).sum()
        assert alarms(y, "nan", "inf", "gradient") == []


def test_fully_masked_row_raises_an_alarm():
    x = mg.randn(3, 3, requires_grad=True)
    with mg.record():
        y = F.softmax(x.masked_fill(mg.ones(3, 3) > 0, -math.inf), 1).sum()
    assert [note.kind for note in alarms(y, "nan", "inf")][-1] == "nan"


def test_first_non_finite_gradient_has_its_own_note():
    x = mg.tensor([0.0, 1.0], requires_grad=True)
    with mg.record():
        y = (x.sqrt() * 2.0).sum()
    trace = to_trace(y, namespaces=())
    (note,) = trace.notes
    assert (note.kind, note.node) == ("gradient", 0)
    assert trace.ops[trace.op[trace.result[note.edges[0]]]].name == "sqrt"
    assert note.text == "The first infinity of the backward pass is in ∂v₄/∂v₀, through v₁, in 1 of 2 elements."


# --- gradients that fade or grow -------------------------------------------------------------------------------------


def scaled_chain(count, weight, tensors=False):
    x = mg.tensor([0.1, 0.2], dtype=mg.float64, requires_grad=True) if tensors else mg.Value(0.1, "x")
    y = x
    for _ in range(count):
        y = y * weight
    return y.sum() if tensors else y


@pytest.mark.parametrize("tensors", [False, True])
def test_vanishing_gradient_raises_an_alarm(tensors):
    note = single_alarm(scaled_chain(30, 0.1, tensors), "vanishing")
    assert note.node == 0
    assert "multiply factors below 1; it will hardly learn." in note.text
    assert alarms(scaled_chain(30, 0.9, tensors), "vanishing", "exploding") == []


@pytest.mark.parametrize("tensors", [False, True])
def test_exploding_gradient_raises_an_alarm(tensors):
    note = single_alarm(scaled_chain(30, 10.0, tensors), "exploding")
    assert note.node == 0
    assert "clip gradients" in note.text


def test_mean_of_many_elements_is_not_a_vanishing_gradient():
    x = mg.randn(1000, 1000, requires_grad=True)
    y = x
    for _ in range(12):
        y = y + 1.0
    assert alarms(y.mean(), "vanishing", "exploding") == []


# --- activations -----------------------------------------------------------------------------------------------------


def test_values_whose_relus_are_all_zero_are_dead():
    x = mg.Value(-1.0, "x")
    note = single_alarm(mg.relu(x) * 2.0, "dead")
    assert note.node == 1
    assert note.text.startswith("v₁ is 0: dead. Its input is negative")
    assert single_alarm(mg.relu(x) + mg.relu(x * 2.0), "dead").text.startswith("All 2 ReLUs are 0")
    assert alarms(mg.relu(x) + mg.relu(x * -2.0), "dead") == []


def test_dead_units_of_a_tensor_are_counted():
    x = mg.tensor([[1.0, -1.0, 2.0]] * 40, requires_grad=True)
    with mg.record():
        y = F.relu(x)
    assert single_alarm(y, "dead").text.startswith("v₁ has 1 of 3 units that are 0 for every row: dead ReLUs")
    with mg.record():
        y = F.relu(x - 5.0)
    assert single_alarm(y, "dead").text.startswith("v₃ is 0 everywhere")
    with mg.record():
        y = F.relu(x[:4])
    assert alarms(y, "dead") == []


@pytest.mark.parametrize(("name", "x"), [("tanh", 4.0), ("tanh", -4.0), ("sigmoid", 6.0), ("sigmoid", -6.0)])
def test_saturation_raises_an_alarm(name, x):
    op = mg.OPS[name]
    assert f"is saturated: {name} is flat there" in single_alarm(op(mg.Value(x)), "saturated").text
    assert alarms(op(mg.Value(x / 4)), "saturated") == []
    with mg.record():
        y = op(mg.tensor([x, x, 0.0], requires_grad=True))
        z = op(mg.tensor([x, 0.0, 0.0], requires_grad=True))
    assert "is saturated in 67% of its elements" in single_alarm(y, "saturated").text
    assert alarms(z, "saturated") == []


# --- gradients of another pass ---------------------------------------------------------------------------------------


def _pair(tensors):
    make = (lambda x: mg.tensor(x, requires_grad=True)) if tensors else mg.Value
    return make(2.0), make(3.0)


@pytest.mark.parametrize("tensors", [False, True])
def test_second_backward_without_zero_grad_raises_an_alarm(tensors):
    a, b = _pair(tensors)
    y = a * b
    y.backward(retain_graph=True)
    assert alarms(y, "stale") == []
    y.backward(retain_graph=True)
    note = single_alarm(y, "stale")
    assert note.nodes == (0, 1)
    assert note.text == (
        "The gradient of v₀ is 2 times that of one pass: backward() accumulates into .grad, unless it began at a "
        "later result. The same applies to 1 other leaf. Call zero_grad() before each backward()."
    )


@pytest.mark.parametrize("tensors", [False, True])
def test_gradient_of_an_earlier_graph_raises_an_alarm(tensors):
    a, b = _pair(tensors)
    (a * a).backward()
    y = a * b
    note = single_alarm(y, "stale")
    assert note.nodes == (0,)
    assert note.text.startswith("The gradient of v₀ is from an earlier pass: backward() will accumulate into it.")


def test_gradient_of_two_different_passes_raises_an_alarm():
    a, b = mg.Value(2.0), mg.Value(3.0)
    (a * a * a).backward()
    y = a * b
    y.backward()
    assert single_alarm(y, "stale").text.startswith("The gradient of v₀ contains more than this pass")


def test_pass_with_another_seed_raises_no_alarm():
    a, b = mg.Value(2.0), mg.Value(3.0)
    y = a * b
    y.backward(0.5)
    assert alarms(y, "stale") == []
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    z = x * x
    z.backward(mg.tensor([1.0, 0.5]), retain_graph=True)
    assert alarms(z, "stale") == []


def test_healthy_graph_has_no_notes():
    mg.manual_seed(0)
    x, w, b = mg.randn(16, 4), mg.randn(4, 3, requires_grad=True), mg.zeros(3, requires_grad=True)
    with mg.record():
        y = ((x @ w * 0.3 + b).tanh() ** 2).mean()
        y.backward()
    assert to_trace(y).notes == []


def test_single_leaf_is_not_stale():
    a = mg.Value(2.0, "a")
    (a * a).backward()
    assert to_trace(a).notes == []
