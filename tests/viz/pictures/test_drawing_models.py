"""`draw(model, x)`: modules are titled blocks, opened by `expand`, up to a call that raises."""

import html
import json
import re

import pytest

import minigrad as mg
from minigrad_viz import draw, export, step, to_trace

nn, F = mg.nn, mg.functional


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(4), nn.Linear(4, 4)

    def forward(self, x):
        return x + F.gelu(self.linear(self.norm(x)))


class Tokens(nn.Module):
    """A model whose output layer shares the weight of its embedding."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.blocks = nn.ModuleList([Block() for _ in range(3)])
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def small():
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))


def tokens():
    return mg.tensor([[1, 2, 3]])


def svg_labels(drawing):
    """Return the text elements of the drawing, in order."""
    return [html.unescape(re.sub("<[^>]*>", " ", text)) for text in re.findall(r"<text.*?</text>", drawing.svg())]


def test_source_line_of_layers_is_the_users_call_of_draw():
    trace = draw(small(), mg.ones(1, 1, 4, 4)).trace
    lines = list(trace.lines.values())
    assert lines
    assert all("test_drawing_models.py" in line and "draw(small(), mg.ones" in line for line in lines)


def test_blocks_have_kinds_parameter_counts_and_shared_parameters():
    trace = to_trace(Tokens(), tokens())
    about = {trace.blocks[k].name: tuple(one) for k, one in trace.modules.items()}
    assert about["Tokens"] == ("", 28 + 3 * 28, ())
    assert about["embedding"] == ("Embedding", 28, ("embedding.weight = head.weight",))
    assert about["head"] == ("Linear", 28, ("head.weight = embedding.weight",))
    assert about["blocks.0 … blocks.2"] == ("Block", 3 * 28, ())
    assert about["blocks.1"] == ("Block", 28, ())


def test_parameters_of_a_module_called_twice_are_counted_once():
    layer = nn.Linear(4, 4)
    trace = to_trace(nn.Sequential(layer, nn.ReLU(), layer, nn.ReLU(), layer), mg.ones(2, 4))
    calls = [one for one in trace.modules.values() if one.kind == "Linear"]
    assert [tuple(one) for one in calls] == [("Linear", 20, ("called 3 times",))] * 3
    assert trace.modules[1].parameters == 20


def test_inputs_and_outputs_are_named_after_parameters_of_forward():
    trace = to_trace(small(), mg.ones(1, 1, 4, 4))
    assert trace.names[trace.outputs[0]] == "output"
    assert "input" in trace.names


def test_closed_blocks_show_kind_parameters_and_shapes():
    drawing = draw(small(), mg.ones(1, 1, 4, 4), expand=False)
    labels = svg_labels(drawing)
    start = next(k for k, text in enumerate(labels) if "Conv2d" in text)
    assert [text.split() for text in labels[start : start + 6]] == [
        ["0", "Conv2d"],
        ["20", "parameters"],
        ["in"],
        ["1×1×4×4"],
        ["out"],
        ["1×2×2×2"],
    ]


@pytest.mark.parametrize(
    ("expand", "opened"),
    [
        (False, {"graph", "Tokens"}),
        (["blocks.1"], {"graph", "Tokens", "blocks.0 … blocks.2", "blocks.1"}),
        ("blocks.1.norm", {"graph", "Tokens", "blocks.0 … blocks.2", "blocks.1", "norm"}),
    ],
)
def test_expand_opens_named_blocks_and_their_ancestors(expand, opened):
    drawing = draw(Tokens(), tokens(), expand=expand)
    assert {drawing.trace.blocks[k].name for k in drawing.state["expanded"]} == opened


def test_expand_true_opens_every_block():
    drawing = draw(Tokens(), tokens(), expand=True)
    assert drawing.blocks == drawing.state["expanded"]
    assert drawing.state["expanded"] == list(range(len(drawing.trace.blocks)))
    labels = [" ".join(text.split()) for text in svg_labels(drawing)]
    frames = [text for text in labels if re.match(r"(linear|norm|head|embedding|blocks\.\d) [A-Z]", text)]
    assert len(frames) == 2 + 3 * 3, "each once, however many rows there are"


def test_unknown_block_is_rejected_with_the_existing_names():
    with pytest.raises(mg.errors.ArgumentError, match=r"no block 'middle' to expand.\n  The blocks are .*embedding"):
        draw(Tokens(), tokens(), expand="middle")


def test_drawing_does_not_modify_the_model():
    model = small()
    mg.manual_seed(1)
    expected, before = mg.rand(2).tolist(), {name: x.tolist() for name, x in model.state_dict().items()}
    x = mg.rand(1, 1, 4, 4).detach()
    mg.manual_seed(1)
    draw(nn.Sequential(model, nn.Dropout(0.5)), x)
    assert mg.rand(2).tolist() == expected
    assert {name: x.tolist() for name, x in model.state_dict().items()} == before
    assert model.training
    assert all(p.grad is None for p in model.parameters())


def test_drawing_ends_at_the_call_that_raised_and_names_its_module():
    model = small()
    model[4] = nn.Linear(9, 3)
    drawing = draw(model, mg.ones(1, 1, 4, 4))
    note = drawing.trace.notes[-1]
    assert note.text.startswith("ShapeError: linear: input and weight shapes cannot be multiplied ((1, 8)")
    assert note.text.endswith("in Sequential: 4, Linear(in_features=9, out_features=3, bias=True)")
    broken = drawing.trace.nodes[drawing.trace.outputs[0]]
    assert (broken.kind, broken.name, broken.scope) == ("broken", "linear", "model/4")
    assert re.fullmatch(r"test_drawing_models.py:\d+: drawing = draw\(model, mg.ones\(1, 1, 4, 4\)\)", broken.line)
    assert drawing.trace.modules[broken.block].kind == "Linear"
    trace, last = drawing.trace, len(drawing.trace.kinds) - 1
    operands = [edge.operand for edge in trace.edges if edge.result == last]
    assert [trace.title(x) for x in operands[1:]] == ["4.weight", "4.bias"]
    assert [trace.nodes[x].scope for x in operands] == ["model/3", "model/4", "model/4"]
    assert len(trace.modules) == 6  # the model and its layers, each once
    data = json.loads(drawing.json())
    assert data["ops"][data["nodes"]["op"][-1]]["name"] == "linear"  # the player refuses a call without a name


def test_model_without_an_input_is_rejected():
    with pytest.raises(mg.errors.ArgumentError, match=r"draw: Linear is a model.*\n.*draw\(model, mg.zeros"):
        draw(nn.Linear(2, 2))


def test_trace_has_kinds_as_names_and_parameter_counts_as_text():
    data = json.loads(draw(Tokens(), tokens()).json())
    about = {block["name"]: block.get("about") for block in data["blocks"]}
    assert about["head · Linear"] == "28 parameters · head.weight = embedding.weight → 1×3×7"
    assert about["blocks.0 … blocks.2 · Block"] == "84 parameters → 1×3×4"


def test_player_of_a_model_starts_as_its_drawing():
    player = step(Tokens(), tokens())
    assert player.expanded == draw(Tokens(), tokens()).state["expanded"]
    assert player.trait_defaults("expanded") is None


def test_drawing_of_a_model_fits_a_page():
    for expand in (None, True, False):
        svg = draw(nn.Sequential(*[nn.Linear(4, 4) for _ in range(9)]), mg.ones(2, 4), expand=expand).svg()
        assert int(re.search(r'width="(\d+)"', svg)[1]) <= 1184


def test_layers_are_initially_closed_and_their_containers_open():
    drawing = draw(Tokens(), tokens())
    opened = {drawing.trace.blocks[k].name for k in drawing.state["expanded"]}
    assert {"Tokens", "blocks.0"} <= opened
    assert not {"embedding", "linear", "norm", "head"} & opened
    assert draw(nn.Linear(2, 2), mg.ones(1, 2)).state["expanded"] == [0, 1]


def test_export_preserves_the_open_blocks_of_a_drawing(tmp_path):
    drawing = draw(Tokens(), tokens())
    export(drawing, tmp_path / "y.html")
    (begins,) = re.findall(r'data-minigrad="(.*?)"', (tmp_path / "y.html").read_text(encoding="utf-8"))
    assert json.loads(html.unescape(begins)) == drawing.state
