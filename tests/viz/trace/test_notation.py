"""No attribute, formula or sentence of a trace shows minigrad's internals: it shows what the user wrote."""

import enum
import re

import numpy as np
import pytest

import minigrad as mg
from minigrad.ops.normalization import Norm
from minigrad_viz import explain, to_trace
from minigrad_viz.trace.calls import instances_in
from minigrad_viz.trace.notation import format_attribute, formula_text
from needs import needs
from parity import minigrad_functions
from samples import all_samples

INSIDE = re.compile(
    r" at 0x[0-9a-f]+"  # the address of an object
    r"|\bslice\(|\brange\(|\bEllipsis\b"
    r"|<[A-Za-z_][\w.]*[ :>]"  # <class 'x'>, <Mode.FAST: 1>, <lambda>
    r"|\b_[A-Za-z]\w*\("  # _Parts(…)
    r"|\b[A-Z]\w*\((?:\w+=|\()"  # Window(size=…)
    r"|dtype\(|DType|namespace\("
)


def trace_of(one):
    """Return the trace of a sample's result, or None if it has no graph."""
    inputs = [mg.tensor(x, requires_grad=x.dtype.kind == "f") if isinstance(x, np.ndarray) else x for x in one.inputs]
    with mg.record():
        ends = [x for x in instances_in(one.call(minigrad_functions(), *inputs), mg.Tensor) if x.grad_fn is not None]
    return to_trace(ends, namespaces=()) if ends else None


def shown_text(trace):
    """Return everything that a trace shows of its operations, by operation name."""
    for at, node in enumerate(trace.nodes):
        if node.op is not None:
            yield node.op.name, formula_text(trace.formula(at))
            yield from ((node.op.name, f"{name} = {text}") for name, text in node.attrs.items())
    for formula in trace.data()["formulas"]:
        yield "formula", formula["text"]
        yield "formula", re.sub(r"</?m[a-z]+[^>]*>", "", formula["mathml"])
    yield from (("note", note.text) for note in trace.notes)
    yield "sentence", trace.sentence()


@pytest.fixture
def on_numpy():
    """Use numpy, which compiles nothing; the text shown depends on no device."""
    mg.set_default_device("numpy")
    yield
    mg.set_default_device(None)


def test_no_operation_shows_internals(on_numpy):
    needs("numpy")
    covered, shown = set(), []
    with np.errstate(all="ignore"):
        for key, one in all_samples().items():
            if (trace := trace_of(one)) is not None:
                covered.update(op.name for op in trace.ops)
                shown += [f"{key}: {name} shows {text}" for name, text in shown_text(trace) if INSIDE.search(text)]
    assert shown == []
    alone = {name for name, op in mg.OPS.items() if op.differentiable} - covered
    assert alone <= {"move"}, "it copies between devices"


def test_transformer_shows_what_the_user_wrote():
    layer = mg.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    trace = to_trace(layer, mg.ones(2, 3, 8))
    labels = [text for _, text in shown_text(trace)]
    assert not [text for text in labels if INSIDE.search(text)]
    assert any(re.search(r"^Split\(v.*, chunks=3, dim=−1\)", text) for text in labels)
    assert "c" not in trace.kinds, "split sizes are not operands"
    cut = next(at for at, node in enumerate(trace.nodes) if node.op and node.op.name == "Split")
    assert "Split(v" in explain(f"v{str(cut).translate(str.maketrans('0123456789', '₀₁₂₃₄₅₆₇₈₉'))}", of=trace)


class Mode(enum.Enum):
    FAST = 1


@pytest.mark.parametrize(
    ("name", "x", "text"),
    [
        ("key", (slice(1, 3), None), "[1:3, None]"),
        ("key", (..., slice(None, None, 2), 0), "[…, ::2, 0]"),
        ("how", slice(1, 3), "1:3"),
        ("how", (slice(1, None), 2), "(1:, 2)"),
        ("how", range(0, 6, 2), "0:6:2"),
        ("how", Mode.FAST, "fast"),
        ("how", object(), "object"),
        ("how", lambda x: x, "lambda"),
        ("how", mg.float32, "float32"),
        ("how", (mg.float32, None, True), "(float32, None, True)"),
        ("how", (3,), "(3,)"),
        ("how", [1, "two"], "[1, two]"),
        ("norm", Norm((10, 16), (1,), (1,), 1e-5), "over dim 1 of (10, 16), eps 1e-05"),
        ("norm", Norm((2, 3, 4), (1, 2), (0,), 0.1, False), "over dim 1, 2 of (2, 3, 4), eps 0.1, without a mean"),
        ("windows", ((range(2), range(1, 3), range(3, 5)),) * 2, "(0:2, 1:3, 3:5) × (0:2, 1:3, 3:5)"),
    ],
)
def test_attributes_are_formatted_as_a_user_writes_them(name, x, text):
    assert format_attribute(name, x) == text


def test_private_class_is_shown_without_underscore():
    class _Inside:
        pass

    assert format_attribute("how", _Inside()) == "Inside"
    assert format_attribute("how", _Inside) == "Inside"
