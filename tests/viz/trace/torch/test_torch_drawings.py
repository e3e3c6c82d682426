"""Drawings, players and explanations of PyTorch objects."""

import gc
import subprocess
import sys

import numpy as np
import pytest

from minigrad.core.errors import ArgumentError
from minigrad_viz import compare, draw, explain, export, play, record, step, to_trace, tour


@pytest.fixture
def net(torch):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))


@pytest.fixture
def x(torch):
    return torch.tensor([[1.0, -2.0], [0.5, 3.0]])


def titles(trace):
    return {trace.title(k): trace.nodes[k] for k in range(len(trace.kinds))}


def note_texts(trace, kind):
    return [note.text for note in trace.notes if note.kind == kind]


def test_a_loss_is_drawn_with_names_modules_formulas_and_lines(torch, net, x):
    with record():
        output = net(x)
        loss = torch.nn.functional.mse_loss(output, x[:, :1])
    trace = to_trace(loss)
    nodes = titles(trace)
    assert [block.name for block in trace.blocks] == ["graph", "net", "0", "1", "2"]
    assert {trace.modules[k].kind for k in trace.modules} == {"Sequential", "Linear", "ReLU"}
    assert {"x", "0.weight", "0.bias", "2.weight", "2.bias", "output", "loss"} <= nodes.keys()
    assert draw(loss).text().count("weightᵀ + ") == 2
    assert nodes["output"].line.endswith("output = net(x)")
    assert nodes["output"].shape == (2, 1)
    np.testing.assert_array_equal(nodes["output"].array, output.detach().numpy())


def test_backward_before_or_after_gives_the_same_pass(torch, net, x):
    with record():
        before = net(x).sum()
        before.backward()
        after = net(x).sum()
    first, second = to_trace(before), to_trace(after)
    after.backward()
    third = to_trace(after)
    for trace in (second, third):
        assert trace.passes[0].edge == first.passes[0].edge
        for ours, theirs in zip(trace.passes[0].contribution, first.passes[0].contribution, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert {node.state for node in second.nodes if node.kind == "op"} == {"none"}
    assert {node.state for node in third.nodes if node.kind == "op"} == {"final"}
    (stale,) = note_texts(third, "stale")
    assert stale.startswith("The gradient of 0.weight contains more than this pass: backward() accumulates into .grad")


def test_a_model_is_drawn_with_its_input_and_left_as_it_was(torch):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Dropout(0.5))
    buffers = {name: value.clone() for name, value in model.state_dict().items()}
    random_state = torch.get_rng_state()
    trace = draw(model, torch.ones(2, 1, 4, 4)).trace
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(torch.equal(value, buffers[name]) for name, value in model.state_dict().items())
    assert [p.grad for p in model.parameters()] == [None] * 4
    assert [trace.blocks[trace.block[k]].name for k, name in enumerate(trace.names) if name == "1.running_mean"] == [
        "1"
    ]
    with pytest.raises(ArgumentError, match="Sequential is a model, whose graph depends on its input"):
        draw(model)


def test_a_model_that_raises_is_drawn_up_to_the_call_that_failed(torch, x):
    layer = torch.nn.Linear(3, 2)
    trace = draw(layer, x).trace
    last = trace.nodes[-1]
    assert (last.kind, last.name) == ("broken", "linear")
    assert note_texts(trace, "error") == ["RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x2 and 3x2)"]
    assert {"x", "weight", "bias"} <= titles(trace).keys()


def test_players_tours_and_explanations(torch, net, x, tmp_path):
    with record():
        output = net(x)
        loss = output.square().mean()
    assert step(loss).position == 0
    assert play(net, x).playing
    stops = tour(loss, [(output, "the output"), ((output, "backward"), "its gradient")]).trace.tours
    assert [stop.at for stop in stops] == [3, 8]
    text = explain(output)
    assert text.startswith("output = v₄ · 2.weightᵀ + 2.bias: (2, 1) float32")
    assert "∂loss/∂output, the gradient of output, arrives through" in text
    export(loss, tmp_path / "loss.html")
    assert "float32" in (tmp_path / "loss.html").read_text(encoding="utf-8")


def test_runs_are_compared(torch, net, x):
    with record():
        first = net(x).sum()
    with torch.no_grad():
        net[2].bias += 1
    with record():
        second = net(x).sum()
    assert compare(first, first).agrees
    assert "bias" in compare(first, second).text()


def test_an_unrecorded_loss_shows_structure_and_gradients(torch, net, x):
    loss = net(x).sum()
    trace = to_trace(loss)
    assert [node.op.name for node in trace.nodes if node.kind == "op"] == ["t", "addmm", "relu", "t", "addmm", "sum"]
    loss.backward()
    totals = trace.totals(trace.passes[0])
    np.testing.assert_array_equal(totals[trace.names.index("0.weight")], net[0].weight.grad.numpy())
    (freed,) = note_texts(to_trace(loss), "freed")
    assert freed.startswith("The backward pass of loss cannot be shown: its graph was freed by backward().")


def test_parts_without_gradient_are_drawn_and_blocked(torch, x):
    weight = torch.ones(2, requires_grad=True)
    with record():
        with torch.no_grad():
            scale = x.abs().amax()
        target = (x * weight).detach()
        loss = ((x * weight / scale) - target).sum()
    nodes = titles(to_trace(loss))
    assert [nodes[name].state for name in ("scale", "target", "weight")] == ["blocked", "blocked", "none"]
    assert nodes["target"].op.name == "detach"


def test_hooks_are_reported_and_not_called(torch, x):
    weight = torch.ones(2, requires_grad=True)
    calls = []
    with record():
        y = x * weight
        y.register_hook(lambda grad: calls.append(grad))
        loss = y.sum()
    trace = to_trace(loss)
    assert calls == []
    assert note_texts(trace, "hook") == [
        "y has a hook, which may modify its gradient: the backward pass shown runs no hooks."
    ]
    loss.backward()
    assert len(calls) == 1
    assert note_texts(to_trace(loss), "hook") == []  # this pass ran the hook


def test_several_losses_have_a_pass_each(torch, net, x):
    with record():
        hidden = net(x)
        first, second = hidden.sum(), hidden.square().sum()
    trace = to_trace([first, second])
    assert [trace.title(run.root) for run in trace.passes] == ["first", "second"]


def test_dtypes_are_shown(torch):
    x = torch.ones(3, dtype=torch.bfloat16, requires_grad=True)
    z = torch.tensor([1 + 2j, 3.0])
    with record():
        y = (x.half() * 2).sum() + z.abs().sum()
    text = draw(y).text()
    assert "(3,) bfloat16 all 1.0" in text
    assert "(3,) float16 all 1.0" in text
    assert "(2,) complex64" in text


def test_large_tensors_are_summarised(torch):
    x = torch.arange(20_000.0).view(100, 200)
    x[0, 1] = float("nan")
    trace = to_trace(x)
    assert draw(x).text().splitlines()[-2].strip() == (
        "data (100, 200) float32 0.0 … 20000.0, mean 10000.0, std 5770.0 ███▇▇▇▇▇▇▇▇▇ NaN! 1"
    )
    assert trace.nodes[0].array.cells.size <= 1024
    assert [note.kind for note in trace.notes] == ["nan"]


def test_a_reentrant_checkpoint_is_a_block_that_is_not_stepped(torch, net, x):
    from torch.utils.checkpoint import checkpoint

    x.requires_grad_()
    with record():
        loss = checkpoint(net, x, use_reentrant=True).sum()
    trace = to_trace(loss)
    assert [p.grad for p in net.parameters()] == [None] * 4
    assert "CheckpointFunctionBackward runs a backward pass of its own" in note_texts(trace, "freed")[0]
    loss.backward()
    assert to_trace(loss).passes[0].edge


def test_importing_the_viewer_imports_no_pytorch():
    code = "import sys, minigrad_viz; minigrad_viz.record; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_alarms_name_the_cause(torch):
    x = torch.tensor([4.0, 0.0], requires_grad=True)
    with record():
        root = x.sqrt()
        loss = (root / root).sum()
    trace = to_trace(loss)
    nan, gradient = (note_texts(trace, kind)[0] for kind in ("nan", "gradient"))
    assert nan.startswith("v₂ is the first NaN: root / root, in 1 of 2 elements.")
    assert gradient.startswith("The first infinity of the backward pass is in ∂loss/∂root, through v₂")


def test_vanishing_gradients_and_dead_relus_are_reported(torch):
    torch.manual_seed(0)
    layers = [part for _ in range(12) for part in (torch.nn.Linear(4, 4), torch.nn.Sigmoid())]
    net, x = torch.nn.Sequential(*layers), torch.randn(40, 4)
    with record():
        faded = net(x).sum()
        dead = torch.relu(torch.nn.functional.linear(x, torch.zeros(3, 4), -torch.ones(3))).sum()
    assert note_texts(to_trace(faded), "vanishing")[0].startswith("The gradient of 0.weight is tiny")
    assert "is 0 everywhere" in note_texts(to_trace(dead), "dead")[0]


def test_an_in_place_operation_on_a_view_has_the_name_that_the_user_wrote(torch):
    w = torch.ones(2, 3, requires_grad=True)
    with record():
        x = w * 1
        x[0].neg_()
        loss = x.sum()
    trace = to_trace(loss)
    assert [node.op.name for node in trace.nodes if node.kind == "op"] == ["mul", "neg", "sum"]
    assert titles(trace)["x"].line.endswith("x[0].neg_()")
    assert titles(trace)["x"].array.tolist() == [[-1.0] * 3, [1.0] * 3]


def test_an_in_place_operation_is_looked_up_in_its_own_recording(torch):
    def recorded(write):
        w = torch.ones(2, 3, requires_grad=True)
        with record():
            x = w * 1
            write(x[0])
            return x.sum()

    losses = [recorded(torch.Tensor.neg_), recorded(torch.Tensor.exp_), recorded(torch.Tensor.sin_)]
    names = [[node.op.name for node in to_trace(loss).nodes if node.kind == "op"] for loss in losses]
    assert names == [["mul", "neg", "sum"], ["mul", "exp", "sum"], ["mul", "sin", "sum"]]


def test_sparse_and_dense_gradients_of_a_shared_weight_add_up(torch):
    embedding = torch.nn.Embedding(5, 3, sparse=True)
    with record():
        hidden = embedding(torch.tensor([1, 1, 4]))
        loss = (hidden @ embedding.weight.T).square().sum()
    own = to_trace(loss)
    loss.backward()
    for trace in (own, to_trace(loss)):
        total = trace.totals(trace.passes[0])[trace.names.index("weight")]
        np.testing.assert_allclose(total, embedding.weight.grad.to_dense().numpy(), rtol=1e-6)


def test_the_gradient_of_large_outputs_is_that_of_all_of_them(torch):
    x = torch.ones(200, 300, requires_grad=True)
    with record():
        first, second, third = (x * 1).chunk(3, 1)
        loss = (2 * first).sum() - (5 * second).sum() + third.mean() * 0
    trace = to_trace(loss)
    (chunk,) = [k for k, node in enumerate(trace.nodes) if node.op is not None and node.op.name == "chunk"]
    gradient = trace.totals(trace.passes[0])[chunk]
    assert trace.tensors[chunk].shape == gradient.shape == (3, 200, 100)
    assert (gradient.statistics["min"], gradient.statistics["max"], gradient.statistics["mean"]) == (-5.0, 2.0, -1.0)
    assert gradient.statistics["std"] == pytest.approx(np.std([2.0, -5.0, 0.0]))


def test_a_recording_is_freed_with_its_graph(torch):
    from minigrad_viz.trace.torch.recorder import RECORDINGS

    def run():
        w = torch.ones(2, 3, requires_grad=True)
        with record():
            y = w * 2
            with pytest.raises(RuntimeError):
                y @ w
            loss = y.sum()
        loss.backward()
        to_trace(loss)

    gc.collect()
    before = len(RECORDINGS)
    for _ in range(3):
        run()
    gc.collect()
    assert len(RECORDINGS) <= before + 1  # the latest is kept
