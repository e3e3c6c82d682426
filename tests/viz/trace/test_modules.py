"""The blocks of a model: titled by names and classes, and opened as far as the budget allows."""

import json

import pytest

import minigrad as mg
from minigrad_viz import draw, to_trace
from minigrad_viz.trace.modules import initially_open_blocks

nn, F = mg.nn, mg.functional


def titles(trace, blocks=None):
    """Return the titles of blocks as shown by the player."""
    data = json.loads(trace.json())["blocks"]
    return [data[k]["name"] for k in (range(1, len(data)) if blocks is None else sorted(blocks))]


def closed(trace, opened):
    """Return the titles of the visible closed blocks while `opened` are open."""
    return titles(trace, {k for k, block in enumerate(trace.blocks) if k not in opened and block.outer in opened})


def perceptron(*sizes):
    model = mg.nn.scalar.MLP(sizes, seed=0)
    return to_trace(model([0.1 * k for k in range(sizes[0])]))


def test_scalar_perceptron_is_drawn_as_layers_and_neurons():
    trace = perceptron(3, 4, 4, 1)
    assert titles(trace)[:6] == [
        "model · MLP(3→4→4→1)",
        "layers[0] · Layer(3→4)",
        "layers[1] · Layer(4→4)",
        "layers[2] · Layer(4→1)",
        "neurons[0] · Neuron(3)",
        "neurons[1] · Neuron(3)",
    ]
    assert closed(trace, initially_open_blocks(trace, 40)) == [
        *(f"neurons[{k}] · Neuron(3)" for k in range(4)),
        *(f"neurons[{k}] · Neuron(4)" for k in range(4)),
        "neurons[0] · Neuron(4)",
    ]
    assert {block.kind for block in trace.blocks[1:]} == {"scope"}
    about = json.loads(trace.json())["blocks"][2]["about"]
    assert about == "16 parameters"


def test_large_perceptron_starts_with_closed_layers_and_no_runs():
    trace = perceptron(4, 16, 16, 3)
    assert len(trace.kinds) > 1000
    for budget in (25, 15, 8):
        closed_titles = closed(trace, initially_open_blocks(trace, budget))
        assert closed_titles == ["layers[0] · Layer(4→16)", "layers[1] · Layer(16→16)", "layers[2] · Layer(16→3)"]
    assert "nodes" not in draw(trace).svg().split("</style>")[1]
    assert not any(name.startswith("nodes") for name in titles(trace))


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)

    def forward(self, x):
        return F.relu(x + self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))))


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 2, 3, padding=1)
        self.stages = nn.ModuleList([nn.Sequential(Residual(2), Residual(2)) for _ in range(2)])
        self.head = nn.Linear(2, 3)

    def forward(self, x):
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
        return self.head(x.mean((2, 3)))


def test_nested_modules_are_nested_blocks():
    model = Deep()
    trace = to_trace(model, mg.ones(1, 1, 4, 4))
    assert titles(trace)[:5] == [
        "model · Deep",
        "stem · Conv2d",
        "stages.0 · Sequential",
        "stages.1 · Sequential",
        "head · Linear",
    ]
    assert [title for title in titles(trace) if "Residual" in title] == ["0 · Residual", "1 · Residual"] * 2
    assert closed(trace, initially_open_blocks(trace, 6)) == titles(trace)[1:5], (
        "blocks beyond the budget start with their parts closed"
    )


def test_convnet_and_transformer_start_open_to_their_layers():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 3))
    trace = to_trace(model, mg.ones(1, 1, 4, 4))
    layers = ["0 · Conv2d", "1 · ReLU", "2 · MaxPool2d", "3 · Flatten", "4 · Linear"]
    assert closed(trace, initially_open_blocks(trace, 40)) == layers
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    trace = to_trace(layer, mg.ones(2, 3, 8))
    assert titles(trace) == [
        "layer · TransformerEncoderLayer",
        "self_attn · MultiheadAttention",
        "norm1 · LayerNorm",
        "linear1 · Linear",
        "linear2 · Linear",
        "norm2 · LayerNorm",
        "out_proj · Linear",
    ]


@pytest.mark.parametrize("budget", [8, 40])
def test_model_with_many_layers_is_never_one_closed_block(budget):
    model = nn.Sequential(*(layer for _ in range(30) for layer in (nn.Linear(2, 2), nn.ReLU())))
    trace = to_trace(model, mg.ones(1, 2))
    closed_titles = closed(trace, initially_open_blocks(trace, budget))
    assert closed_titles == [f"{k} · {'ReLU' if k % 2 else 'Linear'}" for k in range(60)]


def test_too_many_layers_become_runs():
    model = nn.Sequential(*(layer for _ in range(90) for layer in (nn.Linear(2, 2), nn.ReLU())))
    trace = to_trace(model, mg.ones(1, 2))
    runs = [block for block in trace.blocks if block.kind == "run"]
    assert [(block.name, block.note[:5]) for block in runs] == [("0 … 99", "nodes"), ("100 … 179", "nodes")]


def test_model_called_in_a_loop_is_a_fold():
    model = mg.nn.scalar.MLP([2, 1], seed=0)
    loss = sum((model([float(k), 1.0])[0] for k in range(4)), mg.Value(0.0))
    trace = to_trace(loss)
    fold = trace.blocks[1]
    assert (fold.name, fold.kind, fold.copies) == ("model", "fold", 4)
    assert trace.modules[1].kind == "MLP(2→1)"


def test_shared_layers_are_labelled():
    layer = nn.Linear(2, 2)
    model = nn.Sequential(layer, nn.ReLU(), layer)
    trace = to_trace(model, mg.ones(1, 2))
    shared = [trace.modules[k].shared for k, block in enumerate(trace.blocks) if block.module is layer]
    assert shared == [("called 2 times",)] * 2


def test_the_name_of_a_private_class_has_no_underscore():
    class _Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x):
            return self.inner(x)

    trace = to_trace(nn.Sequential(_Block(), _Block()), mg.ones(1, 2))
    assert titles(trace)[:3] == ["Sequential", "0 · Block", "1 · Block"]
    assert "_Block" not in trace.json()


def test_runs_are_titled_by_their_operations():
    w = [mg.Value(0.1, f"w{k}") for k in range(200)]
    total = w[0]
    for one in w[1:]:
        total = total + one
    for _ in range(100):
        total = (total * 0.5).tanh()
    trace = to_trace(total)
    names = [block.name for block in trace.blocks if block.kind == "run"]
    assert all("sum of" in name or "tanh" in name for name in names)
    assert "nodes" not in " ".join(names)
    assert all(block.note.startswith("nodes ") for block in trace.blocks if block.kind == "run")
