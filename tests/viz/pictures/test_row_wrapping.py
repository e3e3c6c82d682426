"""Row wrapping: a model wider than a page is drawn in several rows, with mentions of values from earlier rows."""

import html
import re

import pytest

import minigrad as mg
from minigrad_viz import draw
from minigrad_viz.pictures.row_wrapping import PAGE_WIDTH
from minigrad_viz.trace.visibility import visible_items

nn = mg.nn


def size(svg):
    return tuple(int(re.search(rf'{name}="(\d+)"', svg)[1]) for name in ("width", "height"))


def labels_of(svg, kind):
    groups = re.findall(rf'<g class="{kind}[" ].*?</g>', svg, flags=re.S)
    return [
        html.unescape(re.sub("<[^>]*>", " ", re.sub("<title>.*?</title>", "", one, flags=re.S))).split()
        for one in groups
    ]


def sequence(layers):
    mg.manual_seed(0)
    return draw(nn.Sequential(*(one for _ in range(layers) for one in (nn.Linear(4, 4), nn.ReLU()))), mg.ones(2, 4))


@pytest.mark.parametrize("layers", [4, 12, 30])
def test_a_long_model_fits_a_page_and_shows_every_layer(layers):
    svg = sequence(layers).svg()
    assert size(svg)[0] <= PAGE_WIDTH + 36
    names = [words[:2] for words in labels_of(svg, "block")]
    assert names == [[str(k), "ReLU" if k % 2 else "Linear"] for k in range(2 * layers)]


def test_row_starts_with_mentions_and_a_continued_frame():
    svg = sequence(12).svg()
    frames, mentions = labels_of(svg, "frame"), labels_of(svg, "mention")
    assert frames[0] == ["Sequential", "240", "parameters"]
    assert len(frames) > 2
    assert set(map(tuple, frames[1:])) == {("Sequential", "continued")}
    assert len(mentions) == len(frames) - 1
    shown = [words[0] for words in labels_of(svg, "block")]
    assert all(name in shown for (name,) in mentions)


def test_drawing_that_fits_a_page_is_one_row():
    svg = sequence(2).svg()
    assert labels_of(svg, "mention") == []
    assert len(labels_of(svg, "frame")) == 1
    assert ".mention" in svg, "blocks have their style"


def test_wrapping_preserves_every_wire():
    class Skips(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList([nn.Linear(4, 4) for _ in range(12)])

        def forward(self, x):
            first = x
            for part in self.parts:
                x = part(x) + first
            return x

    drawing = draw(Skips(), mg.ones(2, 4))
    svg = drawing.svg()
    assert size(svg)[0] <= PAGE_WIDTH + 36
    trace = drawing.trace
    edges = list(zip(trace.operand, trace.result, strict=True))
    wires = visible_items(trace.blocks, trace.block, edges, drawing.state["expanded"])[1]
    assert svg.count('<path class="edge') == len(wires)
    assert [words for words in labels_of(svg, "mention") if words == ["x"]], "the input, in rows below the first"


def test_graph_without_modules_is_never_wrapped():
    x = mg.Value(0.5, "x")
    y = x
    for _ in range(30):
        y = y.tanh()
    svg = draw(y).svg()
    assert size(svg)[0] > 3000
    assert labels_of(svg, "mention") == []
