"""The trace: nodes, edges, states, events, alarms, names."""

import json
import math
from collections import namedtuple

import pytest

import minigrad as mg
from minigrad.core.errors import DTypeError
from minigrad_viz import draw, to_text, to_trace
from minigrad_viz.trace import values
from minigrad_viz.trace.names import names_of


def test_a_times_a_has_two_edges_with_local_derivatives():
    a = mg.Value(3.0, "a")
    trace = to_trace(a * a)
    assert [(e.operand, e.result, e.slot, e.local) for e in trace.edges] == [(0, 1, 0, 3.0), (0, 1, 1, 3.0)]
    assert trace.contributions() == [2, 0]


def test_nodes_are_in_tape_order_with_constants_before_their_use():
    a = mg.Value(3.0, "a")
    trace = to_trace(2.0 * a + 2.0)
    assert [(node.kind, node.value) for node in trace.nodes] == [
        ("leaf", 3.0),
        ("constant", 2.0),
        ("op", 6.0),
        ("constant", 2.0),
        ("op", 8.0),
    ]
    assert [edge[:3] for edge in trace.edges] == [(1, 2, 0), (0, 2, 1), (2, 4, 0), (3, 4, 1)]


def test_gradient_state_is_none_before_backward_and_final_after():
    a = mg.Value(3.0, "a")
    y = a * a
    assert [(node.state, node.grad) for node in to_trace(y).nodes] == [("none", None), ("none", None)]
    y.backward()
    assert [(node.state, node.grad) for node in to_trace(y).nodes] == [("final", 6.0), ("final", 1.0)]


def test_gradient_is_blocked_at_constants_and_detached_values():
    a = mg.Value(3.0, "a")
    y = a * a.detach() + 1.0
    y.backward()
    trace = to_trace(y)
    assert [(node.kind, node.state) for node in trace.nodes] == [
        ("leaf", "final"),
        ("leaf", "blocked"),
        ("op", "final"),
        ("constant", "blocked"),
        ("op", "final"),
    ]
    assert [(edge.flows, edge.local) for edge in trace.edges] == [
        (True, 3.0),
        (False, None),
        (True, 1.0),
        (False, None),
    ]


def test_drawing_inside_record_adds_no_event_to_the_recording():
    a = mg.Value(3.0, "a")
    with mg.record() as recording:
        to_trace(a * a)
    assert recording.events == []


def test_drawing_writes_no_gradient():
    a = mg.Value(3.0, "a")
    y = a * a
    to_trace(y)
    assert a.grad is None
    assert y.grad is None


def test_steps_have_upstream_times_local_and_running_total():
    a, b = mg.Value(3.0, "a"), mg.Value(5.0, "b")
    (run,) = to_trace(a * b + a).passes
    assert [tuple(step)[1:] for step in run.steps] == [
        (1.0, 1.0, 1.0, 1.0),
        (1.0, 1.0, 1.0, 1.0),
        (1.0, 5.0, 5.0, 6.0),
        (1.0, 3.0, 3.0, 3.0),
    ]


def test_gradient_with_create_graph_is_shown_as_a_number():
    x = mg.Value(3.0, "x")
    y = x**3.0
    y.backward(create_graph=True)
    assert to_trace(y).nodes[0].grad == 27.0


def test_replaced_value_leaves_a_note_and_no_local_derivatives():
    a = mg.Value(3.0, "a")
    y = a * a
    a.data = 4.0
    trace = to_trace(y)
    assert [edge.local for edge in trace.edges] == [None, None]
    (note,) = trace.notes
    assert (note.kind, note.node) == ("overwritten", 1)
    assert note.text == (
        "a was assigned another value after y was computed: a · a = 4 · 4 now, but y is still 9.0. Recompute it. "
        "Until then local derivatives are missing."
    )


def test_stale_value_is_noted_and_marked():
    a, b = mg.Value(2.0, "a"), mg.Value(3.0, "b")
    c = a + b
    d = c * 2.0
    assert to_trace(d).notes == []
    b.data = 9.0
    trace = to_trace(d)
    assert [node.stale for node in trace.nodes] == [False, False, True, False, False]
    assert [note.text for note in trace.notes] == [
        "b was assigned another value after c was computed: a + b = 2 + 9 now, but c is still 5.0. Recompute it."
    ]
    assert trace.edges[0].local == 1.0
    a.data = 8.0
    e = a * b + c
    a.data = b.data = 1.0
    assert to_trace(e).notes[0].text == (
        "a and b were assigned another value after v₂ was computed: a · b = 1 · 1 now, but v₂ is still 72.0; "
        "the same applies to 1 more node. Recompute it. Until then local derivatives are missing."
    )


def test_stale_value_is_marked_in_every_format():
    a = mg.Value(2.0, "a")
    y = a + 1.0
    fresh, _ = draw(y), setattr(a, "data", 5.0)
    stale = draw(y)
    assert [json.loads(d.json())["nodes"]["stale"] for d in (fresh, stale)] == [[], [2]]
    assert ["! 3.0" in d.text() for d in (fresh, stale)] == [False, True]
    assert ['class="op output bad"' in d.svg() for d in (fresh, stale)] == [False, True]
    assert ["<b>!</b> 3.0" in d.html() for d in (fresh, stale)] == [False, True]
    assert ["penwidth=2.5" in d.graphviz().source for d in (fresh, stale)] == [False, True]
    assert all("a was assigned another value" in text for text in (stale.text(), stale.html(), stale.graphviz().source))


def test_alarm_names_the_first_nan_and_its_cause():
    x = mg.Value(-1.0, "x")
    notes = to_trace(mg.log(x) * 2.0).notes
    assert [(note.kind, note.node, note.text) for note in notes] == [("nan", 1, "v₁ is the first NaN: ln(x) = ln(−1).")]


def test_alarm_names_the_first_infinity_of_the_backward_pass():
    z = mg.Value(0.0, "z")
    (note,) = to_trace(mg.sqrt(z)).notes
    assert note.text == "The first infinity of the backward pass is in ∂v₁/∂z, through v₁: 1.0 × ∞ = ∞."


def test_several_outputs_have_a_pass_each():
    a = mg.Value(2.0, "a")
    trace = to_trace([a * 3.0, a * 5.0])
    assert [run.root for run in trace.passes] == trace.outputs
    assert [run.steps[0].contribution for run in trace.passes] == [3.0, 5.0]


def test_fresh_distinguishes_one_backward_pass_from_two():
    a = mg.Value(3.0, "a")
    y = a * a
    y.backward()
    assert to_trace(y).is_fresh()
    y.backward()
    assert not to_trace(y).is_fresh()


def test_source_line_is_shown_without_its_folder():
    a = mg.Value(3.0, "a")
    with mg.record(lines=True):
        y = a * a
    line = to_trace(y).nodes[1].line
    assert line is not None
    assert line.startswith("test_trace.py:")
    assert line.endswith(": y = a * a")


def test_op_with_float_only_rule_is_drawn_without_its_formula():
    name = "viz_test_opaque"
    opaque = mg.OPS.get(name) or mg.Op(name, "{a}^", vjp=(lambda g, a: g * math.cos(a),), domain=(mg.Domain(0, 1),))
    mg.kernel(name, "python")(math.sin)
    try:
        trace = to_trace(opaque(mg.Value(0.0, "x")))
    finally:
        del mg.OPS[name]
    assert trace.formula(1) == "viz_test_opaque(x)"
    assert trace.local_text(0) == "1.0"
    assert trace.local_formula(0) is None


@pytest.mark.parametrize(
    "rule",
    [
        lambda g, a: g * 2.0 * a if a > 0 else 0.0,
        lambda g, a: g if isinstance(a, float) else math.cos(a),
        lambda g, a: _raise(NotImplementedError) if not isinstance(a, float) else g,
        lambda g, a: _raise(AssertionError) if not isinstance(a, float) else g,
    ],
    ids=["if", "float", "not implemented", "assert"],
)
def test_op_whose_rule_raises_is_drawn_without_its_formula(rule):
    op = mg.Op("viz_test_choice", "2 {a}", vjp=(rule,), domain=(mg.Domain(0, 1),))
    mg.kernel("viz_test_choice", "python")(lambda a: 0.0)
    try:
        drawing = draw(op(mg.Value(-1.0, "x")))
        assert drawing.trace.local_formula(0) is None
        assert "2 x" in drawing.text()
        assert "<math" in drawing.html()
    finally:
        del mg.OPS["viz_test_choice"]


def _raise(error):
    raise error


def test_passes_of_many_outputs_are_limited_and_noted(monkeypatch):
    monkeypatch.setattr(values, "MAX_PASS_STEPS", 10)
    a = mg.Value(2.0, "a")
    y = [a * float(n) for n in range(30)]
    trace = to_trace(y)
    assert [len(run.steps) for run in trace.passes] == [1] * 11
    assert [note[:3] for note in trace.notes] == [
        ("partial", None, "Backward steps are shown for the first 11 of 30 outputs.")
    ]
    assert [edge.local for edge in trace.edges if edge.flows] == [float(n) for n in range(30)]
    y = [a * a for n in range(30)]
    a.data = 3.0
    assert [note.kind for note in to_trace([a + 0.0 for _ in range(11)] + y).notes] == ["partial", "overwritten"]


def test_thousands_of_outputs_do_not_need_a_pass_each():
    y = [mg.Value(1.0)]
    for _ in range(3000):
        y.append(y[-1] + 1.0)
    trace = to_trace(y)
    assert sum(len(run.steps) for run in trace.passes) < 60_000
    assert {edge.local for edge in trace.edges if edge.flows} == {1.0}


# --- names ---


def test_variable_named_like_another_label_is_skipped():
    p = mg.Value(1.0, "b")
    b = mg.Value(2.0)
    assert to_text(p * b).splitlines()[-1] == "  ∂v₂/∂v₁ = b = 1.0"
    also = b
    trace = to_trace(p * b)
    assert [trace.title(0), trace.title(1)] == ["b", "also"]
    assert also is b


def test_shadowed_global_is_skipped():
    x, y = mg.Value(1.0), mg.Value(2.0)
    assert names_of([x, y], [{"w": 3, "v": [1]}, {"w": x, "v": [x], "u": y}]) == {y: "u"}


def test_equal_labels_are_numbered_in_tape_order():
    first, second, third = mg.Value(1.0, "w"), mg.Value(2.0, "w"), mg.Value(3.0, "b")
    drawing = draw(first * second + third)
    assert [node.name for node in drawing.trace.nodes] == ["w₁", "w₂", None, "b", None]
    for text in (drawing.text(), drawing.svg(), drawing.html(), drawing.graphviz().source):
        assert "w₁ · w₂" in text or "<mi>w₁</mi><mo>·</mo><mi>w₂</mi>" in text


def test_label_like_a_handle_is_disambiguated():
    trace = to_trace(mg.Value(1.0, "v₂") * mg.Value(1.0, "v₂₁"))
    assert [trace.title(index) for index in range(3)] == ["v₂₂", "v₂₁", "v₂"]


def test_subscript_of_a_long_label_is_not_truncated():
    trace = to_trace(mg.Value(1.0, "x" * 100) * mg.Value(1.0, "x" * 100))
    assert [trace.title(index)[-2:] for index in range(2)] == ["…₁", "…₂"]
    assert len(trace.title(0)) == 24


def test_label_has_priority_over_variable():
    w = mg.Value(1.0, "weight")
    assert to_trace(w).title(0) == "weight"


def test_variable_defined_first_names_a_value():
    first = mg.Value(1.0)
    second = first
    assert to_trace(second).title(0) == "first"


def test_values_in_lists_and_dicts_are_named_by_index():
    w = [mg.Value(1.0), mg.Value(2.0)]
    p = {"b": mg.Value(3.0)}
    trace = to_trace(w[0] * w[1] + p["b"])
    assert [trace.title(index) for index in (0, 1, 3)] == ["w[0]", "w[1]", "p['b']"]


def test_values_are_named_through_lists_dicts_and_objects():
    class Model:
        def __init__(self, **parts):
            vars(self).update(parts)

    Pair = namedtuple("Pair", "left right")
    w, b, c, d, hidden = map(mg.Value, range(5))
    inner = Model(w=w, pair=Pair(b, None), _kept=hidden)
    model = Model(layers=[{"first": inner}], c=c)
    inner.model = model
    names = names_of([w, b, c, d, hidden], [{"model": model, "other": [d, [w]]}])
    assert names == {
        w: "model.layers[0]['first'].w",
        b: "model.layers[0]['first'].pair.left",
        c: "model.c",
        d: "other[0]",
    }


def test_recordings_and_data_sets_name_nothing():
    a = mg.Value(2.0)
    with mg.record() as recording:
        (a * a).backward()
    data = [[1.0, 2.0]] * 5_000
    assert names_of([a], [{"seen": recording, "data": data, "mg": mg, "print": print, "Value": mg.Value}]) == {}


def test_inputs_stay_outside_of_the_scope_that_uses_them():
    x, w = mg.Value(1.0), mg.Value(2.0)
    x.requires_grad = False
    with mg.scope("layer"):
        y = x * w
    trace = to_trace(y)
    assert {node.name: node.scope for node in trace.nodes} == {"x": "", "w": "layer", "y": "layer"}


def test_recursive_list_terminates():
    loop: list[object] = [mg.Value(1.0)]
    loop.append(loop)
    assert names_of([loop[0]], [{"loop": loop}]) == {loop[0]: "loop[0]"}


def test_invalid_identifiers_are_skipped():
    x = mg.Value(1.0)
    assert names_of([x], [{".0": x, "@py_assert1": x, "x": x}]) == {x: "x"}


def test_underscored_variables_and_history_are_skipped():
    _hidden = mg.Value(1.0)
    Out = {3: _hidden}
    assert to_trace(_hidden).title(0) == "v₀"
    assert Out[3] is _hidden


def test_variables_of_the_caller_are_read_not_those_of_another_function():
    def make() -> mg.Value:
        inner = mg.Value(1.0)
        return inner

    outer = make()
    assert to_trace(outer).title(0) == "outer"


def test_blank_label_is_ignored():
    assert to_trace([mg.Value(1.0, " \n")]).title(0) == "v₀"


# --- invalid inputs ------


def test_drawing_a_float_is_rejected_with_advice():
    with pytest.raises(
        DTypeError, match=r"draw: 3\.0 is a float, not a Value or a tensor\.\n  Draw the result of a computation"
    ):
        to_trace(3.0)


def test_drawing_an_empty_list_is_rejected():
    with pytest.raises(DTypeError, match=r"draw: the list is empty\."):
        to_trace([])
