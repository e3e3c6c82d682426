"""Steps of `mg.jit` replayed as launches, and merged into one kernel: the same values, and reports of why not."""

import copy
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minigrad as mg
from minigrad.compiler.jit import replay, step_trace
from minigrad.core.dispatch import get_kernels
from tiers import mark_nightly

nn, F = mg.nn, mg.functional
compiles = pytest.mark.needs("the device cpu")


@pytest.fixture
def merge_early(monkeypatch):
    """Merge launches in the third run instead of later."""
    monkeypatch.setattr(step_trace, "MERGE_AFTER_REPLAYS", 1)


def execution_of(function):
    """Return how a jitted function reports that it is executed."""
    return function.program.partition("\n\n")[2]


def trained_recurrent(layer, wrap):
    """Train a recurrent layer; return its losses and weights, and how its last step was executed."""
    mg.manual_seed(5)
    model, x = layer(3, 20), mg.randn(4, 6, 3)
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = model(x)[0].square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    function = wrap(step)
    losses = [function(x * (k + 1)).item() for k in range(6)]
    return repr((losses, model.state_dict())), "" if function is step else execution_of(function)


@compiles
@pytest.mark.usefixtures("merge_early")
@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_sequences_of_recurrent_layers_are_merged_with_equal_bits(layer):
    plain, _ = trained_recurrent(layer, lambda step: step)
    jitted, description = trained_recurrent(layer, mg.jit)
    assert jitted == plain
    assert "merged into step_" in description


def trained(optimizer, wrap, steps=7):
    mg.manual_seed(5)
    model = nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer_object = getattr(mg.optim, optimizer)(model.parameters(), lr=0.1)

    def step(x, y):
        optimizer_object.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer_object.step()
        return loss

    function, losses, executions = wrap(step), [], []
    for k in range(steps):
        optimizer_object.param_groups[0]["lr"] = 0.1 / (k + 1)
        x = mg.randn(9, 7)
        losses.append(function(x, (x[:, 0] > 0).to(mg.int64)))
        executions.append(execution_of(function) if function is not step else "")
    values = [x.tolist() for x in losses], [p.grad.tolist() for p in model.parameters()]
    return repr((values, model.state_dict(), optimizer_object.state_dict())), executions, function


@compiles
@pytest.mark.usefixtures("merge_early")
@pytest.mark.parametrize("optimizer", mark_nightly(["SGD", "Adam"], ["Adam"]))
def test_calls_launches_and_the_merged_kernel_have_equal_bits(optimizer):
    plain, _, _ = trained(optimizer, lambda step: step)
    jitted, descriptions, function = trained(optimizer, mg.jit)
    assert jitted == plain
    assert "Replayed call by call: it ran once, and its launches are recorded at the next call." in descriptions
    assert any(
        "launches, not merged: it has not run often enough to be worth compiling." in one for one in descriptions
    )
    assert "merged into step_" in descriptions[-1]
    assert function.source.count("@ti.kernel") == 1


def test_other_devices_replay_call_by_call():
    function = mg.jit(lambda x: x + 1)
    for _ in range(3):
        function(mg.ones(2, device="numpy"))
    assert execution_of(function) == "Replayed call by call: kernels on numpy have no launches to record."
    assert function.source == ""


@compiles
def test_custom_kernels_and_written_or_overlapping_arguments_replay_call_by_call():
    original = get_kernels("sinh")["cpu"]
    hyperbolic = mg.jit(lambda x: x.sinh())
    try:
        mg.kernel("sinh", "cpu")(lambda a: original(a))
        for _ in range(3):
            hyperbolic(mg.ones(4))
    finally:
        mg.kernel("sinh", "cpu")(original)
    assert execution_of(hyperbolic) == "Replayed call by call: the kernel of sinh is user-defined."
    x = mg.ones(4)
    writes = mg.jit(lambda x: x.add_(1))
    for _ in range(3):
        writes(x)
    assert x.tolist() == [4.0] * 4
    assert execution_of(writes) == "Replayed call by call: it writes to an argument."
    adds = mg.jit(lambda a, b: a + b)
    whole = mg.arange(64.0)
    for _ in range(3):
        assert adds(whole[:32], whole[16:48]).tolist() == [2.0 * k + 16 for k in range(32)]
    assert execution_of(adds) == "Replayed call by call: arguments overlap in memory."


@compiles
@pytest.mark.usefixtures("merge_early")
def test_arguments_with_another_alignment_replay_call_by_call():
    function = mg.jit(lambda x: x * 2 + 1)
    whole = mg.arange(65.0)
    for start in (1, 1, 1, 0, 1, 0):
        x = whole[start : start + 64]
        assert function(x).tolist() == [2 * v + 1 for v in range(start, start + 64)]
    assert len(function.captures) == 1
    assert "merged" in execution_of(function)
    turned = mg.jit(lambda x: (x * 2, x[1:]))
    whole = mg.arange(40.0).reshape(8, 5).T
    for start in (0, 0, 0, 1, 0):
        x = whole[:, start : start + 4]
        doubled, part = turned(x)
        assert doubled.tolist() == [[2 * v for v in row] for row in x.tolist()]
        assert part.tolist() == x[1:].tolist()


@compiles
@pytest.mark.usefixtures("merge_early")
def test_returned_views_of_arguments_and_parameters_share_memory():
    w, whole = mg.ones(6), mg.zeros(20)
    function = mg.jit(lambda x: (x.sum(), x[2:], w[1:]))
    for k in range(5):
        x = whole[1 + k : 9 + k]
        _, part, parameters = function(x)
        part.fill_(k)
        parameters.fill_(k)
        assert x.tolist()[2:] == [k] * 6
        assert w.tolist()[1:] == [k] * 5


@compiles
def test_an_argument_that_aliases_a_parameter_sees_writes_to_it():
    w = mg.arange(9.0)

    @mg.jit
    def step(x):
        w.add_(1)
        return x * 2

    for k in range(4):
        assert step(w[1:5]).tolist() == [2.0 * (v + k + 1) for v in range(1, 5)]


@compiles
@pytest.mark.usefixtures("merge_early")
def test_a_class_out_of_range_raises_and_ignored_classes_are_ignored():
    function = mg.jit(lambda x, y: F.cross_entropy(x, y))
    x = mg.randn(4, 3)
    for classes in ([0, 1, 2, 0], [0, 1, 2, 0], [0, -100, 2, 0], [1, 1, -100, -100]):
        y = mg.tensor(classes)
        assert function(x, y).item() == F.cross_entropy(x, y).item()
    assert "merged" in execution_of(function)
    with pytest.raises(IndexError, match="target is out of bounds"):
        function(x, mg.tensor([0, 1, 7, 0]))
    assert function(x, mg.tensor([0, 1, 2, 0])).item() == F.cross_entropy(x, mg.tensor([0, 1, 2, 0])).item()


@pytest.mark.parametrize("run", [1, 2, 3])
def test_ignored_classes_may_differ_from_the_trace(run):
    x = mg.randn(3, 4)

    def function(x, y):
        x.grad = None
        F.cross_entropy(x, y).backward()
        return x.grad

    jitted = mg.jit(function)
    for _ in range(run):
        jitted(x.requires_grad_(), mg.tensor([1, 2, 3]))
    classes = mg.tensor([1, -100, 3])
    assert jitted(x, classes).tolist() == function(x, classes).tolist()


@compiles
def test_launches_are_recorded_again_if_a_branch_on_a_scalar_changes():
    w = mg.ones(3, requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=1.0)

    @mg.jit
    def step():
        optimizer.zero_grad()
        (w * 1.0).sum().backward()
        optimizer.step()

    for decay in (0.0, 0.0, 0.0, 0.5, 0.5, 0.0):
        optimizer.param_groups[0]["weight_decay"] = decay
        expected = w.detach() - (1 + decay * w.detach())
        step()
        assert w.tolist() == expected.tolist()
    assert len(step.captures) == 1
    assert execution_of(step).startswith("Replayed as")


@compiles
@pytest.mark.usefixtures("merge_early")
def test_a_step_of_many_launches_is_not_compiled(monkeypatch):
    monkeypatch.setattr(step_trace, "MAX_MERGED_LAUNCHES", 2)
    function = mg.jit(lambda x: x.exp().sin().cos())
    for _ in range(4):
        function(mg.ones(5))
    assert "3 launches, not merged: more than 2 launches take too long to compile as one kernel." in execution_of(
        function
    )


@compiles
@pytest.mark.usefixtures("merge_early")
def test_a_merged_kernel_reads_new_random_seeds_and_offsets():
    draw = mg.jit(lambda: (mg.rand(3), mg.randn(2), mg.randint(0, 10, (4,))))
    mg.manual_seed(3)
    results = [[x.tolist() for x in draw()] for _ in range(5)]
    mg.manual_seed(3)
    assert results == [[x.tolist() for x in (mg.rand(3), mg.randn(2), mg.randint(0, 10, (4,)))] for _ in range(5)]
    assert "merged into step_" in execution_of(draw)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20), st.integers(0, 5)), max_size=12))
def test_live_regions_of_the_arena_do_not_overlap(pieces):
    sizes = [64 * count for count, _, _ in pieces]
    uses = [(first, first + length) for _, first, length in pieces]
    begins, end = replay.plan_arena(sizes, uses)
    assert all(begin % 64 == 0 and begin + size <= end for begin, size in zip(begins, sizes, strict=True))
    assert end <= sum(sizes)
    for a in range(len(sizes)):
        for b in range(a):
            if uses[a][0] <= uses[b][1] and uses[b][0] <= uses[a][1]:
                assert begins[a] + sizes[a] <= begins[b] or begins[b] + sizes[b] <= begins[a]


def test_empty_slices_can_be_returned():
    step = mg.jit(lambda x: (x * 2.0)[1:])
    for _ in range(4):
        assert step(mg.zeros(2, 0)).shape == (1, 0)


@compiles
@pytest.mark.parametrize(
    "hold",
    [
        lambda p: p.grad,
        lambda p: p.grad[2:],
        lambda p: p.grad.numpy(),
        lambda p: memoryview(p.grad.numpy()),
        lambda p: p.grad.detach(),
        lambda p: p.grad.numpy().reshape(2, 4)[1],
    ],
    ids=["tensor", "part", "array", "memory", "detached", "row"],
)
def test_result_memory_is_reused_once_it_is_unreferenced(hold):
    p = mg.ones(8).requires_grad_()

    def step(x):
        p.grad = None
        (p * x).sum().backward()

    function = mg.jit(step)
    for k in range(4):
        function(mg.full((8,), float(k)))
    address = p.grad._array.address
    function(mg.full((8,), 5.0))
    assert p.grad._array.address == address
    result = hold(p)
    function(mg.full((8,), 6.0))
    assert set(np.array(result if not isinstance(result, mg.Tensor) else result.numpy()).tolist()) == {5.0}
    assert (p.grad.tolist(), p.grad._array.address != address) == ([6.0] * 8, True)


def test_a_write_to_a_slice_preserves_the_rest_of_its_cache_line():
    """Kernels process vectors of sixteen elements if an array owns its cache lines; a slice does not."""

    @mg.jit
    def step(x):
        y = x + 1.0
        y[:-1] *= 2.0
        z = x - 1.0
        return y, z[:-1], z[-1:]

    x = mg.arange(12, dtype=mg.float32).view(4, 3)
    for _ in range(4):
        y, some, last = step(x)
        some *= 2.0
        assert y.tolist() == [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0], [14.0, 16.0, 18.0], [10.0, 11.0, 12.0]]
        assert last.tolist() == [[8.0, 9.0, 10.0]]


def test_concurrent_threads_get_their_own_results():
    function = mg.jit(lambda x: (x * 2 + 1, x.sum()))
    for _ in range(4):
        function(mg.ones(1000))
    wrong = []

    def run(k):
        x = mg.full((1000,), float(k))
        for _ in range(300):
            y, total = function(x)
            if set(y.tolist()) != {2.0 * k + 1} or total.item() != 1000.0 * k:
                wrong.append(k)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert wrong == []


def test_a_copy_has_no_traces():
    function = mg.jit(lambda x: x + 1)
    function(mg.ones(2))
    copied = copy.deepcopy({"step": function})["step"]
    assert copied.captures == []
    assert (copied(mg.ones(2)).tolist(), len(copied.captures), len(function.captures)) == ([2.0, 2.0], 1, 1)
