"""Passes of Values equal the engine's bit for bit; large graphs and hostile strings are traced like others."""

import json
import math
import pickle
import random

import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.core.errors import GraphError
from minigrad_viz import draw, to_trace

HOSTILE = ["x" * 10_000, "<script>alert('x')</script>", "\u202e🙂é\x00", "a\nb", "]]>--><!--", "v₁", '"\\"', "&amp;"]


def random_graph(seed, count=60):
    """Return a random graph of Values, with constants, attributes, repeated operands and blocked gradients."""
    rng = random.Random(seed)
    values = [mg.Value(rng.uniform(0.2, 2.0)) for _ in range(4)]
    values.append(values[0].detach())
    while len(values) < count:
        a, b = rng.choice(values[-12:]), rng.choice(values)
        choice = rng.randrange(8)
        if choice == 0:
            result = a / (b * b + 1.0)
        elif choice == 1:
            result = 2.0 - a * b
        elif choice == 2:
            result = mg.OPS["clamp"](a, -1.0, 1.0)
        elif choice == 3:
            result = mg.OPS["leaky_relu"](a, 0.1)
        elif choice == 4:
            result = a.max(b)
        else:
            result = (a * 0.7 + b).tanh()
        values.append(result)
    return values


@merge_cases
@pytest.mark.parametrize("seed", range(25))
def test_pass_equals_the_engines_events(seed):
    y = sum(random_graph(seed)[-5:], mg.Value(0.0))
    trace = to_trace(y, namespaces=())
    (run,) = trace.passes
    events = mg.events(y)
    assert len(run.steps) == len(events)
    for step, event in zip(run.steps, events, strict=True):
        assert trace.edges[step.edge].slot == event.slot
        assert tuple(step)[1:] == tuple(event)[3:]
    y.backward()
    after = to_trace(y, namespaces=())
    assert after.is_fresh()
    assert {i: after.grads[i] for i in trace.totals(run)} == trace.totals(run)


@pytest.mark.parametrize("seed", range(5))
def test_passes_of_several_outputs_are_correct_up_to_rounding(seed):
    outputs = random_graph(seed)[-4:]
    trace = to_trace(outputs, namespaces=())
    for output, run in zip(outputs, trace.passes, strict=True):
        leaves = [x for x in mg.topological([output]) if not x.inputs and x.requires_grad]
        totals = trace.totals(run)
        leaf_indices = {i for i in totals if trace.kinds[i] == "l"}
        if not output.requires_grad or not output.inputs:
            continue
        gradients = mg.grad(output, leaves, allow_unused=True)
        expected = sorted(g for g in gradients if g is not None)
        assert sorted(totals[i] for i in leaf_indices) == pytest.approx(expected, rel=1e-12)


def test_replaced_value_stops_the_pass_as_in_the_engine():
    a, b = mg.Value(2.0), mg.Value(3.0)
    y = a * b + a
    b.data = 4.0
    trace = to_trace(y, namespaces=())
    with pytest.raises(GraphError):
        mg.events(y)
    assert trace.passes == []
    assert trace.local == [None, 2.0, 1.0, 1.0]


@pytest.mark.nightly
@pytest.mark.slow
def test_hundred_thousand_nodes_are_traced_without_recursion():
    y = mg.Value(1.0, "x")
    for _ in range(50_000):
        y = (y + 0.001).tanh()
    trace = to_trace(y, namespaces=())
    assert len(trace.kinds) == 150_001
    assert len(trace.passes[0].edge) == 100_000
    data = json.loads(trace.json())
    assert data["nodes"]["kind"].count("o") == 100_000


# --- hostile strings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_labels_and_scopes_are_serialised(name):
    with mg.record(lines=True), mg.scope(name):
        a = mg.Value(2.0, name)
        y = a * a
    drawing = draw(y)
    data = json.loads(drawing.json())
    assert data["nodes"]["name"]["0"].isprintable()
    assert data["blocks"][0]["name"] == "graph"
    for text in (drawing.svg(), drawing.html()):
        assert "<script>alert" not in text
        assert "\x00" not in text
    assert drawing.text()


def test_non_finite_values_are_serialised():
    a, b = mg.Value(math.nan, "a"), mg.Value(math.inf, "b")
    y = a * b
    y.backward()
    data = json.loads(to_trace(y).json(full=True), parse_constant=lambda name: pytest.fail(f"a bare {name}"))
    assert data["nodes"]["value"] == ["NaN", "Infinity", "NaN"]
    assert data["nodes"]["grad"] == {"0": "Infinity", "1": "NaN", "2": 1.0}


def test_uncomputed_gradient_is_missing_not_zero():
    a = mg.Value(2.0, "a")
    data = to_trace(a * a).data()
    assert data["nodes"]["state"] == "nn"
    assert data["nodes"]["grad"] == {}


def test_leaf_from_another_process_is_drawn_in_a_block_of_its_scopes_name():
    with mg.scope("layer"):
        a = mg.Value(2.0, "a")
    again = pickle.loads(pickle.dumps(a))
    with mg.scope("layer"):
        y = again * 3.0
    trace = to_trace(y, namespaces=())
    assert [node.name for node in trace.nodes][:1] == ["a"]
    assert {block.kind for block in trace.blocks} == {"graph", "scope"}
    assert all(-1 <= block.outer < at for at, block in enumerate(trace.blocks))


def test_computed_value_does_not_leave_its_process():
    with pytest.raises(GraphError, match="is not a leaf"):
        pickle.dumps(mg.Value(2.0) * 3.0)


def test_rows_accept_slices_and_negative_indices():
    nodes = to_trace(mg.Value(2.0, "a") * mg.Value(3.0, "b")).nodes
    assert [node.name for node in nodes[:2]] == ["a", "b"]
    assert nodes[-1].value == 6.0
    with pytest.raises(IndexError):
        nodes[3]
