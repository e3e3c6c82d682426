"""Matching: which traces are of one graph, and the error for those that are not."""

import pytest

import minigrad as mg
from minigrad_viz import to_trace
from minigrad_viz.trace.matching import match_traces


def make_values(*values):
    return [mg.Value(value, name) for value, name in zip(values, "abcdef", strict=False)]


def error_lines(first, second):
    with pytest.raises(mg.errors.ArgumentError) as caught:
        match_traces(to_trace(first, namespaces=[{}]), to_trace(second, namespaces=[{}]))
    return str(caught.value).splitlines()


def test_runs_of_one_graph_match_despite_other_values_and_names():
    a, b = make_values(1.0, 2.0)
    c, d = mg.Value(5.0, "c"), mg.Value(6.0)
    match_traces(to_trace(a * b + a), to_trace(c * d + c))
    match_traces(to_trace(a * 2.0), to_trace(c * 3.0))
    match_traces(to_trace([a * b, a]), to_trace([c * d, c]))


def test_a_constant_may_be_a_leaf_in_the_other_run():
    a, b = make_values(1.0, 2.0)
    match_traces(to_trace(a * 2.0), to_trace(a * b))


def test_other_operation_is_named_with_both_formulas():
    a, b = make_values(1.0, 2.0)
    lines = error_lines((a * b).exp(), (a + b).exp())
    assert lines[0] == "compare: these are not two runs of one graph: the first has 4 nodes, the second 4."
    assert lines[1] == "  The first mismatch is node 2: v₂ = a · b in the first, v₂ = a + b in the second."
    assert lines[2].startswith("  Compare two runs of the same code")


def test_other_operands_are_reported_with_their_operation():
    a, b = make_values(1.0, 2.0)
    lines = error_lines(a * b + a, a * b + b)
    assert lines[1] == "  The first mismatch is node 3: v₃ = v₂ + a in the first, v₃ = v₂ + b in the second."


def test_first_mismatch_is_named():
    a, b = make_values(1.0, 2.0)
    lines = error_lines((a.exp() + b).tanh() * (a - b), (a.tanh() + b).exp() * (a + b))
    assert lines[1] == "  The first mismatch is node 1: v₁ = e^a in the first, v₁ = tanh(a) in the second."


def test_other_shape_is_named():
    with mg.record():
        x, y = mg.ones(2, 3, requires_grad=True), mg.ones(3, 2, requires_grad=True)
        pair = (x.exp(), y.exp())
    assert error_lines(*pair)[1] == (
        "  The first mismatch is node 0: v₀, a leaf, has shape (2, 3) in the first and (3, 2) in the second."
    )


def test_longer_graph_is_a_mismatch_at_its_output():
    a, b = make_values(1.0, 2.0)
    lines = error_lines(a * b, (a * b).tanh())
    assert "the first has 3 nodes, the second 4" in lines[0]
    assert lines[1] == "  The first mismatch is node 2: v₂ = a · b in the first, v₃ = tanh(v₂) in the second."


def test_leaf_and_computed_node_do_not_match():
    a, b = make_values(1.0, 2.0)
    assert error_lines(a * b, a * a.exp())[1] == (
        "  The first mismatch is node 1: b, a leaf, in the first, v₁ = e^a in the second."
    )


def test_output_mismatch_is_named():
    a, b = make_values(1.0, 2.0)
    y = a * b
    assert "node 0: a, a leaf, in the first, b, a leaf, in the second" in error_lines([y, a], [y, b])[1]
    assert error_lines([y, a], y)[1] == "  The first ends in 2 outputs, the second in 1."


def test_second_is_reordered_like_the_first():
    def run(needs):
        with mg.record():
            w, x = mg.tensor(2.0, requires_grad=needs), mg.tensor(3.0, requires_grad=True)
            w.label, x.label = "w", "x"
            return to_trace(w * x + x, namespaces=[{}])

    first, second = run(True), run(False)
    assert (first.names[:2], second.names[:2]) == (["w", "x"], ["x", "w"])
    matched = match_traces(first, second)
    assert matched.names == first.names
    assert (matched.operand, matched.result, matched.slot, matched.start) == (
        first.operand,
        first.result,
        first.slot,
        first.start,
    )
    assert [float(matched.tensors[node].array) for node in range(4)] == [2.0, 3.0, 6.0, 9.0]
    assert (matched.states, matched.flows) == (["b", "n", "n", "n"], [False, True, True, True])
    assert matched.outputs == [3]
    assert [(step.edge, float(step.contribution)) for step in matched.passes[0].steps] == [
        (new, float(step.contribution))
        for step in second.passes[0].steps
        for new in [first_edge(matched, second, step.edge)]
    ]
    assert match_traces(first, run(True)).names == first.names


def first_edge(matched, second, edge):
    """Return the index in `matched` of an edge of `second`, by the names of its ends and its slot."""
    names = second.names[second.operand[edge]], second.title(second.result[edge]), second.slot[edge]
    (index,) = [
        k
        for k in range(len(matched.operand))
        if (matched.names[matched.operand[k]], matched.title(matched.result[k]), matched.slot[k]) == names
    ]
    return index


def test_custom_op_may_replace_another_operation():
    try:
        square = mg.Op("my_square", "{a}^2", vjp=(lambda g, a: g * (2.0 * a),))
        mg.kernel("my_square", "python")(lambda a: a * a)
        a = mg.Value(3.0, "a")
        match_traces(to_trace(square(a)), to_trace(a.exp()))
        match_traces(to_trace(a.exp()), to_trace(square(a)))
        with pytest.raises(mg.errors.ArgumentError):
            match_traces(to_trace(a.tanh()), to_trace(a.exp()))
    finally:
        mg.OPS.pop("my_square", None)
