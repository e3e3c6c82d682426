"""Realistic tensor models: how the drawing names each part, and that its values are correct."""

import pytest

import minigrad as mg
from minigrad_viz import to_trace
from minigrad_viz.trace.notation import formula_text

F = mg.functional


def formulas_by_title(trace):
    """Return the formulas of the operations, by title."""
    return {trace.title(i): formula_text(trace.formula(i)) for i, at in enumerate(trace.op) if at >= 0}


@pytest.mark.parametrize(
    ("build", "formula"),
    [
        (lambda x: x[0], "x[0]"),
        (lambda x: x[:, 1:3], "x[:, 1:3]"),
        (lambda x: x[None, ..., ::2], "x[None, …, ::2]"),
        (lambda x: x.reshape(4, 3), "reshape(x, (4, 3))"),
        (lambda x: x.T, "permute(x, (1, 0))"),
        (lambda x: x.to(mg.float64), "to(x, float64)"),
        (lambda x: F.embedding(mg.tensor([0, 2]), x), "x[v₁]"),
    ],
)
def test_formulas_show_indices_and_options(build, formula):
    x = mg.ones(3, 4, requires_grad=True)
    y = build(x)
    assert formulas_by_title(to_trace(y))["y"] == formula


def test_write_through_a_view_shows_its_index():
    x = mg.ones(3, 4, requires_grad=True)
    y = x * 2.0
    y.T[0] = 5.0
    assert formulas_by_title(to_trace(y))["y"] == "overwrite(v₂.permute(1, 0)[0], v₆)"


@pytest.mark.parametrize(
    ("pool", "text"),
    [
        (lambda x: F.max_pool2d(x, 2), "size (2, 2), stride (2, 2), padding ((0, 0), (0, 0)), dilation (1, 1)"),
        (
            lambda x: F.max_pool2d(x, 3, stride=2, padding=1),
            "size (3, 3), stride (2, 2), padding ((1, 1), (1, 1)), dilation (1, 1)",
        ),
        (lambda x: F.max_pool2d(x, 6), "size (6, 6), stride (1, 1), padding ((0, 0), (0, 0)), dilation (1, 1)"),
        (
            lambda x: F.adaptive_max_pool2d(x, 4),
            "(0:2, 1:3, 3:5, 4:6) × (0:2, 1:3, 3:5, 4:6)",
        ),
    ],
)
def test_regular_windows_are_abbreviated(pool, text):
    x = mg.ones(1, 2, 6, 6, requires_grad=True)
    trace = to_trace(pool(x))
    assert next(node.attrs for node in trace.nodes if node.op)["windows"] == text


def test_omitted_operand_is_not_drawn_and_freed_operand_is_a_question_mark():
    x, target = mg.ones(2, 3, requires_grad=True), mg.tensor([0, 1])
    loss = F.cross_entropy(x, target)
    assert [node.kind for node in to_trace(loss, namespaces=()).nodes] == ["leaf", "leaf", "op"]
    x, target = mg.ones(5000, 1, requires_grad=True), mg.zeros(5000, dtype=mg.int64)
    loss = F.cross_entropy(x, target)
    loss.backward()
    del target
    trace = to_trace(loss, namespaces=())
    assert [(node.kind, trace.title(i)) for i, node in enumerate(trace.nodes)][:-1] == [
        ("leaf", "v₀"),
        ("constant", "?"),
    ]
