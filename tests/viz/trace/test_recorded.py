"""`draw(step)`: a recorded step is drawn by its kernel calls; each compiled kernel is the block of those it does."""

import re

import pytest

import minigrad as mg
from minigrad.errors import ArgumentError
from minigrad_viz import draw, step, to_graphviz, to_trace
from needs import needs

nn, F = mg.nn, mg.functional


def trained(calls, device="cpu"):
    """A step of training a small perceptron on `device`, which ran so often."""
    mg.manual_seed(0)
    before = mg.get_default_device()
    mg.set_default_device(device)
    try:
        model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
        optimizer = mg.optim.SGD(model.parameters(), lr=0.1)

        @mg.jit
        def update(x, target):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), target)
            loss.backward()
            optimizer.step()
            return loss

        x, target = mg.randn(5, 4), mg.randint(0, 2, (5,))
        for _ in range(calls):
            update(x, target)
    finally:
        mg.set_default_device(before)
    return update


def called(trace, name):
    """The places of the nodes that an operation made."""
    return [k for k, at in enumerate(trace.op) if at >= 0 and trace.ops[at].name == name]


def test_the_nodes_are_the_kernel_calls_and_the_leaves_are_called_as_the_reader_calls_them():
    update = trained(2)
    trace = to_trace(update)
    assert [trace.ops[at].name for at in trace.op if at >= 0][:4] == ["linear", "relu", "linear", "cross_entropy"]
    leaves = {name for name, kind in zip(trace.names, trace.kinds, strict=True) if kind == "l"}
    assert leaves == {"x", "target", "model.0.weight", "model.0.bias", "model.2.weight", "model.2.bias"}
    first = called(trace, "linear")[0]
    assert [trace.names[k] for k in trace.operand[trace.start[first] : trace.start[first + 1]]] == [
        "x",
        "model.0.weight",
        "model.0.bias",
    ]
    assert trace.tensors[first].shape == (5, 3)


def test_what_an_update_writes_has_a_prime_and_reads_the_gradient_by_name():
    update = trained(2)
    trace = to_trace(update)
    steps = called(trace, "sgd_step")
    assert [trace.names[k] for k in steps] == ["model.0.weight′", "model.0.bias′", "model.2.weight′", "model.2.bias′"]
    first = steps[0]
    sources = trace.operand[trace.start[first] : trace.start[first + 1]]
    assert [trace.names[k] for k in sources] == ["model.0.weight", "model.0.weight.grad"]
    assert trace.attrs[first]["lr"] == "lr of SGD"
    assert "model.0.weight′" in draw(update).text()
    assert "model.0.weight − η model.0.weight.grad" in draw(update).text()


def test_each_compiled_kernel_is_the_block_of_its_calls():
    needs("taichi")
    update = trained(20)
    trace = to_trace(update)
    names = [block.name for block in trace.blocks if block.kind == "scope"]
    (name,) = (name for name in names if re.fullmatch(r"step_[0-9a-f]{8}: \d+ launches", name))
    fused = [name for name in names if re.fullmatch(r"fused_[0-9a-f]{8}: 2 calls[₁₂]", name)]
    assert {name, *fused} == set(names)
    assert len(fused) == 2, "the updates of the two biases, which are alike"
    inside = {k for k, block in enumerate(trace.block) if trace.scopes[block].startswith(name)}
    assert inside >= {k for k, at in enumerate(trace.op) if at >= 0}, "all calls are in the one kernel"
    outside = {trace.names[k] for k in range(len(trace.block)) if k not in inside}
    assert {"x", "target", "model.0.weight"} <= outside
    assert name.split(":")[0] in update.source
    assert f"{name.split(':')[0]} of {name.split()[1]} launches" in trace.how


def test_a_step_on_numpy_has_no_kernels_and_says_that_it_is_run_call_by_call():
    update = trained(20, "numpy")
    trace = to_trace(update)
    assert [block.kind for block in trace.blocks] == ["graph"]
    assert trace.how.startswith("Run call by call")
    assert trace.how in draw(update).text()


def test_pictures_say_shapes_and_how_the_step_is_run():
    update = trained(20)
    drawing = draw(update)
    svg, text, page = drawing.svg(), drawing.text(), drawing.html()
    assert "5×3 float32" in svg
    assert drawing.trace.how in svg
    assert "not kept" not in svg + text + page
    assert "blocked" not in svg + text + page
    assert "<script" not in page, "there is nothing to play"
    assert drawing._repr_mimebundle_()["text/html"].count("<script") == 0
    assert "data not kept" not in to_graphviz(update).source


def test_a_step_that_was_not_called_and_a_player_of_one_are_refused():
    with pytest.raises(ArgumentError, match=r"draw: this step was not recorded yet\.\n  Call it once"):
        draw(trained(0))
    with pytest.raises(ArgumentError, match="a recorded step has no numbers to play"):
        step(trained(2))


def test_numbers_are_constants_and_a_gradient_that_is_added_to_is_a_leaf():
    w = mg.tensor([1.0, 2.0], requires_grad=True)

    @mg.jit
    def update(x):
        (w * x * 3.0).sum().backward()

    for _ in range(4):
        update(mg.ones(2))
    trace = to_trace(update)
    assert 3.0 in [value for value, kind in zip(trace.values, trace.kinds, strict=True) if kind == "c"]
    (added,) = called(trace, "add")
    sources = trace.operand[trace.start[added] : trace.start[added + 1]]
    assert (trace.names[added], trace.kinds[sources[0]], trace.names[sources[0]]) == ("w.grad′", "l", "w.grad")
    assert w.grad.tolist() == [12.0, 12.0]
