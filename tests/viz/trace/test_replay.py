"""A graph that backward() freed is drawn as if it had been recorded; if that fails, the drawing reports why."""

import gc
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.storage import get_default_device
from minigrad_viz import draw, explain, to_trace
from replay_programs import PROGRAMS, leaf
from taichi_device import DEVICE

nn, F = mg.nn, mg.functional


@pytest.fixture(params=dict.fromkeys(["numpy", DEVICE]))
def device(request):
    before = get_default_device()
    mg.set_default_device(request.param)
    yield request.param
    mg.set_default_device(before)


def arrays(trace):
    return [None if node.array is None else node.array.tolist() for node in trace.nodes]


COLUMNS = ("kinds", "op", "names", "values", "states", "operand", "result", "slot", "flows", "start", "outputs")


def run(program, *, recorded, backward=True):
    gc.freeze()  # freeze the million other objects, which take a quarter of a second to collect
    mg.manual_seed(3)
    with mg.record() if recorded else mg.enable_grad():
        loss, space = program()
        if backward:
            loss.backward()
    gc.collect()
    return to_trace(loss, namespaces=(space,))


def all_arrays(trace):
    """Return all arrays of a trace, with their dtypes."""
    steps = [step for run in trace.passes for step in run.steps]
    arrays = [node.array for node in trace.nodes] + [node.grad for node in trace.nodes]
    arrays += [x for step in steps for x in (step.upstream, step.contribution, step.total)]
    return [None if x is None else (x.dtype, x.shape, x.tobytes()) for x in arrays]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("backward", [True, False], ids=["freed", "not_yet"])
def test_trace_equals_that_of_the_recorded_program(program, backward, device):
    recorded, replayed = (run(program, recorded=flag, backward=backward) for flag in (True, False))
    for column in COLUMNS:
        assert getattr(replayed, column) == getattr(recorded, column), column
    assert [op.name for op in replayed.ops] == [op.name for op in recorded.ops]
    assert [one.edge for one in replayed.passes] == [one.edge for one in recorded.passes]
    assert all_arrays(replayed) == all_arrays(recorded)
    assert [note.text for note in replayed.notes] == [note.text for note in recorded.notes]
    assert replayed.is_fresh() is recorded.is_fresh()


# --- leaves modified in-place since ----------------------------------------------------------------------------------


def test_modified_leaf_is_drawn_with_its_current_value_and_noted():
    w, b = leaf(1.0, 2.0), leaf(1.0)
    optimizer = mg.optim.SGD([w, b], lr=0.25)
    loss = (w * w).sum() + b.sum()
    loss.backward()
    optimizer.step()
    trace = to_trace(loss)
    assert [trace.grads[trace.names.index(name)].tolist() for name in ("w", "b")] == [[2.0, 4.0], [1.0]]
    assert trace.tensors[trace.names.index("w")].array.tolist() == [0.5, 1.0]
    assert trace.tensors[trace.outputs[0]].array == 2.0
    assert [step.total.tolist() for step in trace.passes[0].steps][-2:] == [[0.5, 1.0], [1.0, 2.0]]
    (note,) = trace.notes
    assert (note.kind, note.node, note.nodes) == ("replayed", None, ())
    assert note.text == (
        "w and b were modified in-place after this was computed, by sgd_step in `optimizer.step()`. The drawing is "
        "recomputed from the current values: loss was 6.0 and is 2.0. Their .grad is from before the change; draw "
        "before that line to see that pass."
    )
    assert not trace.is_fresh()
    optimizer.zero_grad()
    assert to_trace(loss).notes[0].text.endswith("from the current values: loss was 6.0 and is 2.0.")


def test_two_of_many_modified_leaves_are_named():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    loss = model(mg.ones(1, 2)).sum()
    loss.backward()
    mg.optim.Adam(model.parameters()).step()
    (note,) = to_trace(loss).notes
    assert note.text.startswith(
        "0.weight, 0.bias and 2 more were modified in-place after this was computed, by adam_step in `mg.opt"
    )


def test_modified_constant_is_noted():
    w, batch = leaf(1.0, 2.0), mg.tensor([3.0, 4.0])
    loss = (w * batch).sum() + (w * batch.view(2)).sum()
    loss.backward()
    batch.fill_(1.0)
    (note,) = to_trace(loss).notes
    assert note.text.startswith("batch was modified in-place after this was computed, by copy_ in `batch.fill_(1.0)`.")
    assert note.text.endswith(": loss was 22.0 and is 6.0.")


def test_unversioned_write_is_detected_by_the_output():
    array = np.ones(2, np.float32)
    w, shared = leaf(1.0, 2.0), mg.from_numpy(array)
    loss = (w * shared).sum()
    loss.backward()
    array[:] = 2.0
    (note,) = to_trace(loss).notes
    assert (note.kind, note.node) == ("replayed", None)
    assert note.text.startswith("loss was 3.0 and is 6.0 when recomputed: something that it depends on")


def test_leaf_frozen_since_gets_no_gradient():
    w, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    loss = (w * b).sum()
    loss.backward()
    b.requires_grad_(False)
    trace = to_trace(loss)
    assert "".join(trace.states) == "fbff"
    assert [trace.edges[edge].operand for edge in trace.passes[0].edge] == [2, 0]
    assert b.requires_grad is False


def test_gradients_of_several_passes_are_distinguished_from_one():
    w = leaf(1.0, 2.0)
    for _ in range(2):
        loss = (w * w).sum()
        loss.backward()
    (note,) = to_trace(loss).notes
    assert note.text.startswith("The gradient of w is 2 times that of one pass")


# --- steps that cannot be recomputed ----------------------------------------------------------------------------------


def test_freed_large_constant_is_missing_and_the_rest_is_drawn():
    w, v = mg.ones(100, 100, requires_grad=True), leaf(2.0)
    large = mg.ones(100, 100) * 3.0
    loss = (w * large).tanh().sum() + (v * v).sum()
    del large
    loss.backward()
    trace = to_trace(loss)
    known = [node.array is not None or node.value is not None for node in trace.nodes]
    assert [node.op.name for node in trace.nodes if node.op] == ["mul", "tanh", "sum", "mul", "sum", "add"]
    assert known == [True, False, False, False, False, True, True, True, True]
    assert (trace.passes, trace.title(1), trace.tensors[8].array) == ([], "?", loss.item())
    assert "".join(trace.states) == "fbpppfppp"
    (note,) = trace.notes
    assert (note.kind, note.node, note.nodes) == ("freed", 2, (2, 3, 4))
    assert note.text == (
        "v₂ cannot be recomputed: operand b of mul was freed; it has no gradient and more than 4,096 "
        "elements. Keep that tensor in a variable, or build the graph inside `with mg.record():`."
    )
    assert note.text in explain(loss)


def test_replay_resumes_from_a_result_in_a_variable():
    w, large = mg.ones(100, 100, requires_grad=True), mg.ones(100, 100)
    product = w * large
    loss = (product.tanh() * 2.0).sum()
    del large
    loss.backward()
    trace = to_trace(loss)
    assert [node.name for node in trace.nodes if node.array is None and node.value is None] == [None]
    (run,) = trace.passes
    assert [trace.title(trace.edges[edge].operand) for edge in run.edge] == ["v₅", "v₃", "product"]
    assert [note.kind for note in trace.notes] == ["freed"]


def test_view_of_an_existing_large_tensor_is_recreated():
    images, model = mg.randn(8, 1, 28, 28), nn.Sequential(nn.Flatten(), nn.Linear(784, 2))
    loss = model(images).sum() + (images[3, 0, :2] * mg.ones(2, 1, requires_grad=True)).sum()
    loss.backward()
    trace = to_trace(loss)
    assert trace.notes == []
    assert {(8, 784), (2, 28)} <= {node.shape for node in trace.nodes if node.kind == "leaf"}


class Refusing(mg.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x, behaviour, by=1.0):
        Refusing.calls += 1
        if behaviour == "raises" and Refusing.calls > 1:
            raise ValueError("a second time")
        return x + mg.rand(2) if behaviour == "draws" else x * by

    @staticmethod
    def backward(ctx, g):
        return g, None


@pytest.mark.parametrize(
    ("behaviour", "named", "why"),
    [
        ({"by": 2.0}, {}, "argument 1 of its forward is not saved, since it is neither a tensor nor a plain value"),
        ("twice", {"by": 2.0}, "it was called with keyword arguments, which are not saved"),
        ("draws", {}, "its forward draws random numbers"),
        ("raises", {}, "its forward raised ValueError"),
    ],
)
def test_function_that_cannot_be_rerun_is_named_with_the_reason(behaviour, named, why):
    Refusing.calls = 0
    x = leaf(1.0, 2.0)
    loss = (Refusing.apply(x, behaviour, **named) * 2.0).sum()
    loss.backward()
    state = mg.get_rng_state().tolist()
    (note,) = to_trace(loss).notes
    assert note.text == f"v₁ cannot be recomputed: {why}. Build the graph inside `with mg.record():` to retain it."
    assert mg.get_rng_state().tolist() == state


def test_only_a_large_constant_is_missing_after_tidy():
    w, v = leaf(1.0, 2.0), mg.ones(100, 100, requires_grad=True)
    with mg.tidy():
        small, large = mg.ones(2), mg.ones(100, 100)
        h = w + small
        one, other = mg.keep((h * h).sum()), mg.keep((v + large).sum())
    one.backward()
    other.backward()
    trace = to_trace(one)
    assert (trace.notes, arrays(trace)[:3]) == ([], [[1.0, 2.0], [1.0, 1.0], [2.0, 3.0]])
    trace = to_trace(other)
    assert [(note.kind, note.node) for note in trace.notes] == [("freed", 2)]
    assert trace.tensors[trace.outputs[0]].array == 20_000.0


# --- no side effects --------------------------------------------------------------------------------------------------


def test_replay_has_no_side_effects():
    large, w = mg.ones(100, 100), mg.ones(100, 100, requires_grad=True)
    called, heard = [], []
    w.register_hook(called.append)
    hidden = F.dropout(w + large, 0.5)
    intermediate = weakref.ref(hidden._array)
    loss = hidden.exp().sum()
    alive = weakref.ref(large)
    loss.backward()
    del hidden, large, called[:]
    assert (alive(), intermediate()) == (None, None), "backward and the deleted variables have freed both"
    large = mg.ones(100, 100)
    loss = F.dropout(w * large, 0.5).sum()
    loss.backward()
    before = (w.tolist(), w.grad.tolist(), w._version, large._version, mg.get_rng_state().tolist())
    del called[:]
    with mg.tap(heard.append), mg.record() as recording, mg.strict_shapes(), mg.no_grad():
        draw(loss).svg()
    assert (called, heard, recording.events) == ([], [], [])
    assert before == (w.tolist(), w.grad.tolist(), w._version, large._version, mg.get_rng_state().tolist())
    with pytest.raises(mg.errors.GraphError, match="trying to backward through the graph a second time"):
        loss.backward()


class Counting(mg.autograd.Function):
    @staticmethod
    def forward(ctx, x, calls):
        calls.add_(1.0)
        return x * calls

    @staticmethod
    def backward(ctx, g):
        return g, None


def test_writes_of_a_forward_are_undone():
    x, calls = leaf(1.0, 2.0), mg.zeros(1)
    loss = Counting.apply(x, calls).sum()
    loss.backward()
    to_trace(loss)
    assert (calls.tolist(), calls._version) == ([1.0], 1)


# --- gradients of results --------------------------------------------------------------------------------------------


def test_results_have_gradients_though_the_graph_was_retained():
    w = leaf(1.0, 2.0)
    loss = (w * w).exp().sum()
    assert "".join(to_trace(loss).states) == "nnnn"
    loss.backward(retain_graph=True)
    trace = to_trace(loss)
    assert "".join(trace.states) == "ffff"
    assert [trace.grads[at].tolist() for at in (2, 3)] == [[1.0, 1.0], 1.0]
    w.grad.mul_(2.0)
    assert "".join(to_trace(loss).states) == "fnnn", "its pass is unknown"


def test_gradients_before_an_unknown_seed_are_unknown():
    w = leaf(1.0, 2.0)
    y = (w * w).exp()
    y.backward(mg.tensor([1.0, 3.0]))
    trace = to_trace(y)
    assert "".join(trace.states) == "fpp"
    assert len(trace.passes[0].edge) == 3
    assert all(array is not None for array in arrays(trace))


def test_gradients_of_two_outputs_are_summed():
    w = leaf(1.0, 2.0)
    shared = w * 2.0
    one, other = shared.sum(), (shared * 3.0).sum()
    one.backward(retain_graph=True)
    other.backward()
    trace = to_trace([one, other])
    assert trace.grads[trace.names.index("shared")].tolist() == [4.0, 4.0]
    assert trace.grads[trace.names.index("w")].tolist() == [8.0, 8.0]


def test_page_reports_missing_gradients_only_while_missing():
    a, w = mg.Value(3.0, "a"), leaf(1.0, 2.0)
    for y in (a * a, (w * w).sum()):
        assert "a dash means not computed yet" in draw(y).html()
        y.backward()
        assert "a dash means" not in draw(y).html()
        assert "not computed yet" not in draw(y).svg()
        assert "".join(to_trace(y).states) in ("ff", "fff")
