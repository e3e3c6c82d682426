"""Traces of graphs of tensors: known and unknown values, events, and that tracing has no side effects."""

import json

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.errors import DTypeError
from minigrad_viz import to_trace
from minigrad_viz.trace.notation import formula_text
from replay_programs import Cube

F = mg.functional


def leaf(*values):
    return mg.tensor(list(values), requires_grad=True)


def kinds(trace):
    return "".join(trace.kinds), "".join(trace.states)


def arrays(trace):
    return [None if node.array is None else node.array.tolist() for node in trace.nodes]


def test_recorded_graph_has_every_value_and_gradient():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with mg.record():
        y = (x * w + 1.0).sum()
        y.backward()
    trace = to_trace(y, namespaces=())
    assert kinds(trace) == ("llocoo", "fffbff")
    assert arrays(trace) == [[1, 2], [3, 4], [3, 8], None, [4, 9], 13]
    assert trace.nodes[3].value == 1.0
    assert [trace.grads[i].tolist() for i in (0, 1, 2, 4, 5)] == [[3, 4], [1, 2], [1, 1], [1, 1], 1]
    assert [(node.shape, node.dtype) for node in trace.nodes][:1] == [((2,), "float32")]
    assert trace.sentence() == "Graph of v₅ = 13.0: 2 leaves, 3 operations, 1 constant."
    assert trace.is_fresh()


def test_events_of_a_pass_are_those_of_the_engine():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with mg.record():
        y = ((x * w).tanh() * x).sum()
    trace = to_trace(y, namespaces=())
    (run,) = trace.passes
    events = mg.events(y)
    assert len(run.steps) == len(events)
    for step, event in zip(run.steps, events, strict=True):
        assert trace.edges[step.edge].slot == event.slot
        assert step.local is None
        for actual, expected in zip(
            (step.upstream, step.contribution, step.total), event[3:4] + event[5:], strict=True
        ):
            assert actual.tolist() == expected.tolist()
    assert all(trace.flows[edge] for edge in run.edge)


def test_values_of_an_unrecorded_graph_are_recomputed():
    x = leaf(1.0, 2.0)
    doubled = x * 2.0
    y = (doubled + 3.0).exp().sum()
    trace = to_trace(y)
    names = [node.name for node in trace.nodes]
    assert names[0] == "x"
    assert names[2] == "doubled"
    assert arrays(trace)[:5] == [[1, 2], None, [2, 4], None, [5, 7]], "although no rule reads the 3 or the sum"
    assert [trace.title(i) for i in (1, 3)] == ["2.0", "3.0"]
    assert len(trace.passes[0].edge) == 4


def test_tracing_has_no_side_effects():
    x = leaf(1.0, 2.0)
    called = []
    x.register_hook(called.append)
    with mg.record() as recording:
        y = F.dropout(x * x, 0.5).sum()
        state = mg.get_rng_state().tolist()
        to_trace(y).json()
    assert mg.get_rng_state().tolist() == state
    assert (called, recording.events, x.grad, y.grad_fn.grad) == ([], [], None, None)
    y.backward()
    assert len(called) == 1


def test_trace_is_unchanged_when_tensors_are_modified():
    x = leaf(1.0, 2.0)
    y = x * 3.0
    trace = to_trace(y, namespaces=())
    with mg.no_grad():
        x.zero_()
        y.zero_()
    assert arrays(trace)[0] == [1.0, 2.0]
    assert arrays(trace)[2] == [3.0, 6.0]


@pytest.mark.parametrize("recorded", [False, True])
def test_modified_operand_is_noted(recorded):
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with mg.record() if recorded else mg.scope("plain"):
        y = (x * w).sum()
    with mg.no_grad():
        w.add_(1.0)
    trace = to_trace(y, namespaces=())
    (note,) = trace.notes
    assert (note.kind, note.node) == ("overwritten", 2)
    assert note.text.startswith("v₁ was modified in-place after v₂ was computed")
    assert trace.nodes[2].stale
    assert trace.passes == []


def test_in_place_write_to_a_saved_output_is_noted():
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.add_(1.0)
    (note,) = to_trace(y.sum(), namespaces=()).notes
    assert note.text.startswith("v₁ was modified in-place, but its own derivative needs")


def test_in_place_write_is_an_operation():
    x = leaf(1.0, 2.0)
    with mg.record():
        b = mg.zeros(3)
        b[1:] = x
        b.mul_(2.0)
        y = b.sum()
    trace = to_trace(y, namespaces=())
    assert trace.notes == []
    assert trace.tensors[trace.outputs[0]].array == 6.0
    assert [0.0, 1.0, 2.0] in arrays(trace)
    assert [0.0, 2.0, 4.0] in arrays(trace)


def test_single_used_output_is_drawn_as_the_operation():
    x = leaf(3.0, 1.0)
    with mg.record():
        values, order = x.sort(0)
        y = (values * mg.tensor([2.0, 5.0])).sum()
        y.backward()
    trace = to_trace(y)
    assert [node.op.name for node in trace.nodes if node.op] == ["sort", "mul", "sum"]
    assert trace.title(1) == "values"
    assert arrays(trace)[:2] == [[3, 1], [1, 3]]
    assert trace.grads[1].tolist() == [2, 5]
    (run,) = trace.passes
    assert [(step.edge, step.upstream.tolist(), step.contribution.tolist()) for step in run.steps][-1] == (
        0,
        [2, 5],
        [5, 2],
    )
    assert order.tolist() == [1, 0]


def test_several_used_outputs_are_combined_in_the_operation():
    x = leaf(1.0, 2.0)
    with mg.record():
        s, c = SinCos.apply(x)
        y = (s * 2.0).sum() + (c * 3.0).sum()
        y.backward()
    trace = to_trace(y)
    both = next(i for i, node in enumerate(trace.nodes) if node.op and node.op.name == "SinCos")
    assert trace.nodes[both].attrs == {"outputs": "(2,) and (2,)"}
    assert trace.nodes[both].array.tolist() == [s.tolist(), c.tolist()]
    assert trace.grads[both].tolist() == [[2, 2], [3, 3]]
    picks = [i for i, node in enumerate(trace.nodes) if node.op and node.op.name == "pick"]
    assert [trace.title(i) for i in picks] == ["s", "c"]
    totals = [step.total.tolist() for step in trace.passes[0].steps if trace.edges[step.edge].operand == both]
    assert sorted(totals) == [[[0, 0], [3, 3]], [[2, 2], [3, 3]]]


class SinCos(mg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin(), x.cos()

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return g * x.cos() - h * x.sin()


@pytest.mark.parametrize("recorded", [False, True])
def test_unrecorded_write_into_a_held_result_is_noted(recorded):
    x = leaf(1.0, 2.0)
    with mg.record() if recorded else mg.scope("plain"):
        shifted = x + 1.0
        y = shifted.sum()
    with mg.no_grad():
        shifted.zero_()
    trace = to_trace(y)
    (note,) = trace.notes
    at = trace.names.index("shifted")
    assert (note.kind, note.node) == ("overwritten", at)
    assert note.text.startswith("shifted was modified in-place after it was computed, unrecorded, by ")
    assert arrays(trace)[at] == [2.0, 3.0], "not its current zeros"


def test_recorded_write_raises_no_alarm():
    x = leaf(1.0, 2.0)
    shifted = x + 1.0
    shifted.mul_(3.0)
    assert to_trace(shifted.sum()).notes == []


def test_hook_is_noted_and_not_taken_for_a_second_pass():
    x = leaf(1.0, 2.0)
    with mg.record():
        hooked = x * 2.0
        hooked.register_hook(lambda g: g * 2.0)
        y = hooked.sum()
        y.backward()
    assert [(note.kind, note.node) for note in to_trace(y).notes] == [("hook", 2)]


def test_steps_of_an_unrolled_loop_are_in_sequence():
    x, w = mg.ones(4, 2), mg.ones(2, 2, requires_grad=True)
    h = mg.zeros(2)
    with mg.record():
        for t in range(4):
            with mg.scope(f"step{t}"):
                h = (x[t] @ w + h @ w).tanh()
    trace = to_trace(h.sum(), namespaces=())
    order = [node.scope for node in trace.nodes if node.op and node.scope]
    assert order == sorted(order)
    assert trace.contributions()[trace.names.index(None)] == 8


def test_omitted_operand_has_no_edge():
    x = mg.randn(2, 3, requires_grad=True)
    with mg.record():
        y = F.layer_norm(x, (3,))
    trace = to_trace(y, namespaces=())
    assert [trace.nodes[i].kind for i in trace.operand] == ["leaf"]


def test_variadic_and_custom_operations():
    x, c = leaf(1.0, 2.0), mg.zeros(2)
    with mg.record():
        y = mg.cat([Cube.apply(x), c, x]).sum()
    trace = to_trace(y, namespaces=())
    assert [node.op.name for node in trace.nodes if node.op] == ["Cube", "cat", "sum"]
    assert trace.slot == [0, 0, 1, 2, 0]
    assert json.loads(trace.json())["edges"]["flows"] == "11011"


@pytest.mark.parametrize("recorded", [False, True])
def test_non_tensor_arguments_of_a_function_are_attributes(recorded):
    class Scale(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x, how, by, bias):
            ctx.by = by
            return x * by

        @staticmethod
        def backward(ctx, g):
            return g * ctx.by, None, None, None

    x = leaf(1.0, 2.0)
    with mg.record() if recorded else mg.scope("plain"):
        y = Scale.apply(x, "twice", 2, None).sum()
    trace = to_trace(y, namespaces=())
    scaled = next(node for node in trace.nodes if node.op and node.op.name == "Scale")
    assert "c" not in trace.kinds
    assert scaled.attrs == {"how": "twice", "by": "2", "bias": "None"}
    call_text = "Scale(v₀, how=twice, by=2, bias=None)"
    assert formula_text(trace.formula(1)) == call_text
    assert call_text.replace("v₀", "\ue008") in [one["text"] for one in json.loads(trace.json())["formulas"]]
    assert [step.total.tolist() for step in trace.passes[0].steps] == [[1.0, 1.0], [2.0, 2.0]]
    assert trace.slot[:1] == [0]


def test_leaf_used_several_times_is_one_node():
    x, mask = leaf(1.0, 2.0), mg.tensor([0.0, 1.0])
    with mg.record():
        y = x * mask + mask
    trace = to_trace(y, namespaces=())
    assert trace.kinds.count("l") == 2
    assert trace.nodes[trace.operand[1]].state == "blocked"


def test_several_roots_have_a_pass_each_and_those_without_a_gradient_none():
    x = leaf(1.0, 2.0)
    with mg.record():
        a, b = x * 2.0, x * 3.0
    trace = to_trace([a, b, mg.zeros(2), a], namespaces=())
    assert len(trace.outputs) == 3
    assert [len(run.edge) for run in trace.passes] == [1, 1, 0]
    assert [run.contribution[0].tolist() for run in trace.passes[:2]] == [[2.0, 2.0], [3.0, 3.0]]


def test_labels_and_variables_name_tensors():
    x = leaf(1.0)
    x.label = "input"
    params = {"w": leaf(2.0)}
    product = x * params["w"]
    trace = to_trace(product)
    assert [node.name for node in trace.nodes] == ["input", "params['w']", "product"]


def test_retained_gradient_is_shown():
    x = leaf(1.0, 2.0)
    y = x * x
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    trace = to_trace(y, namespaces=())
    assert trace.grads[1].tolist() == [1.0, 1.0]


def test_attributes_are_shown_and_truncated():
    x = mg.randn(2, 3, 4, requires_grad=True)
    y = x.sum((0, 2), keepdim=True).reshape(3)
    nodes = to_trace(y, namespaces=()).nodes
    assert dict(nodes[1].attrs) == {"dim": "(0, 2)", "keepdim": "True"}
    assert dict(nodes[2].attrs) == {"shape": "(3,)"}
    assert all(len(text) <= 80 for node in nodes for text in node.attrs.values())


def test_deep_graph_needs_no_recursion():
    y = leaf(1.0)
    for _ in range(3000):
        y = y + 1.0
    trace = to_trace(y, namespaces=())
    assert len(trace.passes[0].edge) == 3000


# --- invalid inputs --------------------------------------------------------------------------------------------------


def test_values_and_tensors_are_not_drawn_together():
    with pytest.raises(DTypeError, match="the list mixes Values and tensors"):
        to_trace([mg.Value(1.0), leaf(1.0)])


def test_objects_outside_a_graph_are_rejected():
    for x in (np.zeros(3), None, "text", [[1.0]], mg.Value, leaf(1.0).exp().grad_fn, object()):
        with pytest.raises(DTypeError, match="not a Value or a tensor"):
            to_trace([x])


def test_functions_inside_modules_are_named_by_what_they_compute():
    layer = mg.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    layer.register_full_backward_hook(lambda *_: None)
    names = [op["name"] for op in json.loads(to_trace(layer(mg.randn(2, 3, 8)).sum()).json())["ops"]]
    assert {"Split", "BackwardHook"} <= set(names)
    assert [name for name in names if name.startswith("_")] == []


def test_parameter_is_drawn_in_its_first_module_and_input_outside():
    model = mg.nn.Sequential(mg.nn.Linear(2, 2), mg.nn.Linear(2, 2))
    model[1].weight = model[0].weight
    model[1].bias.requires_grad_(False)
    x = mg.ones(1, 2)
    with mg.record():
        y = model(x)
    trace = to_trace(y, namespaces=({"x": x},))
    blocks = {name: trace.scopes[block] for name, block in zip(trace.names, trace.block, strict=True)}
    assert (blocks["0.weight"], blocks["1.bias"], blocks["x"]) == ("Sequential/0", "Sequential/1", "")
