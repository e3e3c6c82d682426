"""`draw(step)`: a captured step is drawn as its kernel calls, with a block for each compiled kernel."""

import html
import json
import re

import pytest

import minigrad as mg
from minigrad.core.errors import ArgumentError
from minigrad_viz import draw, step, to_graphviz, to_trace
from needs import needs

nn, F = mg.nn, mg.functional


def trained_step(calls, device="cpu", temper=lambda scores: scores):
    """Return a training step of a small perceptron on `device`, after this many calls. Its scores pass `temper`."""
    mg.manual_seed(0)
    before = mg.get_default_device()
    mg.set_default_device(device)
    try:
        model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
        optimizer = mg.optim.SGD(model.parameters(), lr=0.1)

        @mg.jit
        def update(x, target):
            optimizer.zero_grad()
            loss = F.cross_entropy(temper(model(x)), target)
            loss.backward()
            optimizer.step()
            return loss

        x, target = mg.randn(5, 4), mg.randint(0, 2, (5,))
        for _ in range(calls):
            update(x, target)
    finally:
        mg.set_default_device(before)
    return update


def nodes_of_op(trace, name):
    """Return the indices of the nodes of an operation."""
    return [k for k, at in enumerate(trace.op) if at >= 0 and trace.ops[at].name == name]


def test_nodes_are_kernel_calls_and_leaves_have_the_users_names():
    update = trained_step(2)
    trace = to_trace(update)
    assert [trace.ops[at].name for at in trace.op if at >= 0][:4] == ["linear", "relu", "linear", "cross_entropy"]
    leaves = {name for name, kind in zip(trace.names, trace.kinds, strict=True) if kind == "l"}
    assert leaves == {"x", "target", "model.0.weight", "model.0.bias", "model.2.weight", "model.2.bias"}
    first = nodes_of_op(trace, "linear")[0]
    assert [trace.names[k] for k in trace.operand[trace.start[first] : trace.start[first + 1]]] == [
        "x",
        "model.0.weight",
        "model.0.bias",
    ]
    assert trace.tensors[first].shape == (5, 3)


def test_updated_parameter_has_a_prime():
    update = trained_step(2)
    trace = to_trace(update)
    steps = nodes_of_op(trace, "sgd_step")
    assert [trace.names[k] for k in steps] == ["model.0.weight′", "model.0.bias′", "model.2.weight′", "model.2.bias′"]
    first = steps[0]
    sources = trace.operand[trace.start[first] : trace.start[first + 1]]
    assert [trace.names[k] for k in sources] == ["model.0.weight", "model.0.weight.grad"]
    assert trace.attrs[first]["lr"] == "lr of SGD"
    assert trace.attrs[first]["computes"] == "SGD update of model.0.weight"
    assert "model.0.weight′" in draw(update).text()
    assert "model.0.weight − η model.0.weight.grad" in draw(update).text()


def block_rows(trace):
    """Return the title and note of each block, and the title of its outer block."""
    blocks = trace.blocks
    return [(block.name, block.note, blocks[block.outer].name if block.outer else "") for block in blocks[1:]]


def test_step_is_divided_into_phases_and_kernels():
    needs("taichi")
    trace = to_trace(trained_step(20, temper=lambda scores: scores * 2.0 + 1.0))
    (forward, backward, update, *kernels) = block_rows(trace)
    assert [forward, backward, update] == [
        ("forward", "", ""),
        ("backward", "", ""),
        ("SGD update of 4 parameters", "", ""),
    ]
    ((name, note, outer),) = kernels
    assert (name, outer) == ("mul · add", "forward")
    assert re.fullmatch(r"fused_[0-9a-f]{8}: 2 calls, in step_[0-9a-f]{8}", note)
    of = {
        trace.ops[trace.op[k]].name: trace.scopes[trace.block[k]] for k in range(len(trace.kinds)) if trace.op[k] >= 0
    }
    assert of["cross_entropy"] == "forward"
    assert of["relu_backward"] == "backward"
    assert re.search(r"merged into step_[0-9a-f]{8} of \d+ launches", trace.execution)


def test_calls_are_in_execution_order_with_titles():
    trace = to_trace(trained_step(20))
    titles = [attrs["computes"] for _, attrs in sorted(trace.attrs.items())]
    assert titles[:5] == [
        "matmul + bias",
        "ReLU",
        "matmul + bias",
        "softmax + cross-entropy",
        "gradient of softmax + cross-entropy",
    ]
    assert titles[-1].startswith("SGD update of model.")
    modules = [attrs.get("module") for _, attrs in sorted(trace.attrs.items())]
    assert modules[:4] == ["0", "1", "2", None]
    assert trace.attrs[nodes_of_op(trace, "relu_backward")[0]]["module"] == "1"


def test_step_on_numpy_has_phases_but_no_kernels():
    update = trained_step(20, "numpy")
    trace = to_trace(update)
    assert block_rows(trace) == [("forward", "", ""), ("backward", "", ""), ("SGD update of 4 parameters", "", "")]
    assert trace.execution.startswith("Replayed call by call")
    assert trace.execution in draw(update).text()


@pytest.mark.needs("taichi")
def test_values_still_in_memory_are_shown():
    update = trained_step(20)
    trace = to_trace(update)
    names_in_memory = {
        trace.names[k] for k, shaped in trace.tensors.items() if shaped.array is not None and trace.names[k]
    }
    names = ("model.0.weight", "model.0.bias", "model.2.weight", "model.2.bias")
    assert names_in_memory == {f"{name}{end}" for name in names for end in ("′", ".grad")}
    loss = nodes_of_op(trace, "cross_entropy")[0]
    assert trace.tensors[loss].array.size == 1, "the returned values"
    assert trace.tensors[nodes_of_op(trace, "relu")[0]].array is None


@pytest.mark.needs("taichi")
def test_pictures_show_shapes_and_how_the_step_is_run():
    update = trained_step(20)
    drawing = draw(update)
    svg, text, page = drawing.svg(), drawing.text(), drawing.html()
    assert "5×3 float32" in svg
    assert drawing.trace.execution.split(", merged")[0] in svg
    assert "not kept" not in svg + text
    assert "blocked" not in svg + text
    assert "Every call" in page
    assert "data not kept" not in to_graphviz(update).source


@pytest.mark.needs("taichi")
def test_player_of_a_step_starts_before_the_first_call():
    update = trained_step(20, temper=lambda scores: scores * 2.0 + 1.0)
    player = step(update)
    assert (player.position, player.expanded) == (0, [0, 1, 2])
    assert repr(player).startswith("Player(Captured step of ")
    page = draw(update).html()
    (begins,) = re.findall(r'data-minigrad="(.*?)"', page)
    assert json.loads(html.unescape(begins)) == {"expanded": [0, 1, 2], "position": 0}
    data = json.loads(player.trace.json())
    assert data["how"] == player.trace.execution
    assert data["passes"] == [], "there is no backward pass"
    kinds = [block["name"] for block in data["blocks"]]
    assert kinds[1:4] == ["forward", "backward", "SGD update of 4 parameters"]
    assert re.match(r"fused_[0-9a-f]{8}: 2 calls", data["blocks"][4]["about"])


def test_step_that_was_not_called_is_rejected():
    with pytest.raises(ArgumentError, match=r"draw: this step was not captured yet\.\n  Call it once"):
        draw(trained_step(0))


def adam_step(model, loss_of, *inputs, calls=20):
    optimizer = mg.optim.AdamW(model.parameters(), lr=1e-3)

    @mg.jit
    def update(*batch):
        optimizer.zero_grad()
        loss = loss_of(model, *batch)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(calls):
        update(*inputs)
    return update


class Feedforward(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


def perceptron_step():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    data = mg.randn(32, 8), mg.randint(0, 3, (32,))
    return adam_step(model, lambda model, x, target: F.cross_entropy(model(x), target), *data)


def feedforward_step():
    return adam_step(Feedforward(), lambda model, x, y: F.mse_loss(model(x), y), mg.randn(8, 16), mg.randn(8, 16))


def norm_step():
    norm = nn.LayerNorm(16)

    @mg.jit
    def compute(x):
        return F.gelu(norm(x))

    with mg.no_grad():
        for _ in range(20):
            compute(mg.ones(64, 16))
    return compute


def loss_step():
    @mg.jit
    def compute(x, target):
        return F.nll_loss(F.log_softmax(x, 1), target)

    for _ in range(20):
        compute(mg.ones(8, 3), mg.zeros(8, dtype=mg.int64))
    return compute


@pytest.mark.parametrize(
    ("build", "titles"),
    [
        (perceptron_step, {"forward", "backward", "AdamW update of 4 parameters"}),
        (norm_step, {"layernorm + GELU"}),
        (loss_step, {"softmax + cross-entropy"}),
    ],
)
def test_kernels_and_phases_are_titled_by_what_they_compute(build, titles):
    needs("taichi", "compiled kernels")
    mg.manual_seed(0)
    trace = to_trace(build())
    assert {name for name, _, outer in block_rows(trace) if not outer} == titles
    assert not any(re.search(r"(fused|step|product)_[0-9a-f]{8}", block.name) for block in trace.blocks)


@pytest.mark.parametrize("build", [perceptron_step, feedforward_step, norm_step, loss_step])
def test_picture_of_a_step_is_legible_at_1280_pixels(build):
    mg.manual_seed(0)
    svg = draw(build()).svg()
    assert int(re.search(r'width="(\d+)"', svg)[1]) <= 1184, "the width left on a page of 1280"
    rules = dict(re.findall(r"\.mg \.(\w+)\{[^}]*font-size:([\d.]+)px", svg))
    used = {name for text in re.findall(r'<(?:text|tspan)[^>]*class="([^"]*)"', svg) for name in text.split()}
    assert all(float(rules[name]) >= 11 for name in used & rules.keys() - {"cap"}), "cap: constants are one word"


def test_large_step_is_grouped_by_module():
    mg.manual_seed(0)
    model = nn.Sequential(*[Feedforward() for _ in range(4)], nn.Linear(16, 2))
    data = mg.randn(4, 16), mg.randint(0, 2, (4,))
    update = adam_step(model, lambda model, x, target: F.cross_entropy(model(x), target), *data, calls=3)
    trace = to_trace(update)
    names = block_rows(trace)
    assert ("parameters", "", "") in names
    assert ("0 … 3 · Feedforward", "", "forward") in names
    back = [name for name, _, outer in names if outer == "backward"]
    assert back[0] == "4 · Linear"
    assert all(re.fullmatch(r"\d( … \d)? · Feedforward", name) for name in back[1:])
    svg = draw(update).svg()
    assert int(re.search(r'height="(\d+)"', svg)[1]) < 1600


def test_scalars_are_constants_and_accumulated_gradient_is_a_leaf():
    w = mg.tensor([1.0, 2.0], requires_grad=True)

    @mg.jit
    def update(x):
        (w * x * 3.0).sum().backward()

    for _ in range(4):
        update(mg.ones(2))
    trace = to_trace(update)
    assert 3.0 in [value for value, kind in zip(trace.values, trace.kinds, strict=True) if kind == "c"]
    (added,) = nodes_of_op(trace, "add")
    sources = trace.operand[trace.start[added] : trace.start[added + 1]]
    assert (trace.names[added], trace.kinds[sources[0]], trace.names[sources[0]]) == ("w.grad′", "l", "w.grad")
    assert w.grad.tolist() == [12.0, 12.0]
