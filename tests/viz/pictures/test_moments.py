"""The drawing of a moment: its values equal the engine's at that step, and it matches the player."""

import re
import xml.etree.ElementTree as ET

import pytest

import minigrad as mg
from minigrad.core.errors import ArgumentError
from minigrad_viz import draw, to_trace
from minigrad_viz.pictures.moments import make_stage, render_moment
from minigrad_viz.pictures.palette import DARK, LIGHT
from minigrad_viz.pictures.scene import build_scene
from minigrad_viz.trace.history import Timeline
from needs import needs
from playback import Playback, scalar_graph, tensor_graph
from player_expectations import PlayerExpectations
from svgs import SVG, elements, elements_in, text_of
from tiers import choose_cases

NODE_ADVICE = "Pass a node that the result was computed from, or its name as the drawing shows it."


def neuron():
    w, x, b = mg.Value(-2.0, "w"), mg.Value(3.0, "x"), mg.Value(6.0, "b")
    z = w * x + b
    z.label = "z"
    y = z.sigmoid()
    y.label = "y"
    return y


def picture(trace, position):
    return render_moment(trace, None, Timeline(trace).at(position)).svg


def cards(svg):
    """Return the value, gradient and Σ of each card of a drawing, in tape order."""
    rows = []
    for card in ET.fromstring(svg).iter(f"{SVG}g"):
        kinds = card.get("class", "").split()
        if kinds and kinds[0] in ("leaf", "op", "constant"):
            values = [text_of(element) for element in elements_in(card, "num")]
            sums = [text_of(element) for element in elements_in(card, "sum")]
            rows.append((kinds[0], "pale" in kinds, values, sums))
    return rows


@pytest.mark.parametrize("seed", choose_cases(range(40), "cards", 8))
def test_cards_show_the_engines_values_at_every_step(seed):
    game = Playback(scalar_graph(seed)[0])
    expected = PlayerExpectations(game)
    scene = build_scene(game.trace, None, Timeline(game.trace))
    stage = make_stage(scene, range(expected.last + 1), has_progress_bar=False)
    for position in range(expected.last + 1):
        svg = stage.document("".join(stage.pieces(position)), None).svg
        for item, (kind, pale, values, sums) in zip(scene.items, cards(svg), strict=True):
            description = expected.card(item.node, position)
            shown = [description["value"]] if kind == "constant" else [description["value"], description["grad"]]
            assert (pale, values) == ("pale" in description["state"], shown), (position, item.node)
            assert sums == ([description["sum"]] if description["sum"] else []), (position, item.node)
        assert [text_of(label) for label in elements(svg, "words")] == [expected.product(position)][
            : position > expected.seed
        ]


@pytest.mark.parametrize("seed", choose_cases(range(40), "tensors", 4))
def test_heatmaps_appear_with_their_values(seed):
    needs("numpy")
    game = Playback(tensor_graph(seed))
    expected = PlayerExpectations(game)
    for position in range(expected.last + 1):
        svg = picture(game.trace, position)
        pictures = sum(expected.card(node, position)["pictures"] for node in range(len(game.trace.kinds)))
        assert len(elements(svg, "heat")) == pictures, position


def test_layout_is_the_same_at_every_step():
    trace = to_trace(neuron())
    last = Timeline(trace).last
    pictures = [picture(trace, position) for position in range(last + 1)]
    geometries = [
        re.findall(r'<rect class="box"[^>]*width="[\d.]+"|<path class="head" d="[^"]*"', svg) for svg in pictures
    ]
    assert all(geometry == geometries[0] for geometry in geometries)


def test_nodes_not_yet_computed_are_pale_without_derivatives():
    svg = picture(to_trace(neuron()), 0)
    assert [pale for _, pale, _, _ in cards(svg)] == [False, False, True, False, True, True]
    assert [line.get("class") for line in elements(svg, "edge")] == ["edge future"] * 5
    assert elements(svg, "d") == []


def test_partial_gradient_shows_its_number_of_contributions():
    a = mg.Value(3.0, "a")
    trace = to_trace(a * a)
    sums = [cards(picture(trace, position))[0] for position in (2, 3, 4)]
    assert sums == [
        ("leaf", False, ["3.0", "—"], []),
        ("leaf", False, ["3.0", "3.0"], ["Σ 1 of 2"]),
        ("leaf", False, ["3.0", "6.0"], ["Σ 2"]),
    ]


def test_closed_block_shows_its_progress():
    x = mg.Value(1.0, "x")
    for layer in range(100):
        with mg.scope(f"layer {layer}"):
            x = (x * 2.0).tanh()
    trace = to_trace(x + 1.0)
    (stack,) = elements(picture(trace, 100), "block")
    ways = [float(bar.get("width")) for bar in stack.iter(f"{SVG}rect") if bar.get("height") == "4"]
    assert (ways[1] / ways[0], ways[3] / ways[2]) == (pytest.approx(0.5, abs=0.01), 0.0)
    assert "pale" in elements(picture(trace, 0), "block")[0].get("class")


def test_alarm_appears_when_its_value_is_computed():
    z = mg.Value(0.0, "z")
    trace = to_trace(mg.sqrt(z))
    bad = [[text_of(elements_in(card, "name")[0])[0] for card in elements(picture(trace, p), "bad")] for p in (2, 3)]
    assert bad == [[], ["z"]]


def test_theme_is_the_users_or_the_requested_one():
    now = Timeline(to_trace(neuron())).at(3)
    both, light, dark = (render_moment(now.timeline.trace, None, now, theme).svg for theme in (None, "light", "dark"))
    assert ("@media" in both, "@media" in light, "@media" in dark) == (True, False, False)
    assert (LIGHT["page"] in light, DARK["page"] in light) == (True, False)
    assert (LIGHT["page"] in dark, DARK["page"] in dark) == (False, True)


def test_caption_of_a_wide_scene_is_legible_at_full_view():
    x = mg.Value(1.0, "x")
    for _ in range(20):
        x = x.tanh()
    trace = to_trace(x)
    stage = make_stage(build_scene(trace, None, Timeline(trace)), [1], has_progress_bar=True)
    assert stage.zoom == pytest.approx(stage.scene.width / 1100)
    assert f"scale({stage.zoom:g})" in stage.pieces(1)[-1]


@pytest.mark.parametrize(
    ("step", "position", "chip"),
    [
        (0, 0, "Start"),
        (6, 6, "Backward 2 of 5"),
        ("start", 0, "Start"),
        ("seed", 4, "Backward"),
        ("end", 9, "Backward 5 of 5"),
        ("z", 2, "Forward 2 of 3"),
        (("w", "backward"), 8, "Backward 4 of 5"),
    ],
)
def test_draw_shows_the_requested_step(step, position, chip):
    drawing = draw(neuron(), step=step)
    assert (drawing.now.position, drawing.state) == (position, {"position": position})
    assert [text_of(element) for element in elements(drawing.svg(), "chip")] == [chip]


def test_draw_accepts_a_node_as_the_step():
    y = neuron()
    assert draw(y, step=y).now.position == 3
    assert draw(y, step=(y, "backward")).now.position == 4


def test_text_page_and_graphviz_of_a_step_match_the_drawing():
    needs("graphviz")
    a = mg.Value(3.0, "a")
    y = a * a
    y.backward()
    drawing = draw(y, step=3)
    assert drawing.text() == (
        "Graph of y = 9.0: 1 leaf, 1 operation.\n"
        "Backward 1 of 2: From y back to a: upstream × local, contribution 1 of 2.\n"
        "∂y/∂a += 1.0 × 3.0 = 3.0 where ∂y/∂a = a = 3.0; a.grad: 0 + 3.0 → 3.0\n"
        "#  name  made by  data            grad\n"
        "0  a     leaf      3.0  3.0 (Σ 1 of 2)\n"
        "1  y     a · a     9.0             1.0\n"
        "local derivatives\n"
        "  ∂y/∂a = a = 3.0\n"
        "  ∂y/∂a = a = 3.0"
    )
    assert "grad 3.0 (Σ 1 of 2)" in str(drawing.graphviz().source)
    assert "6.0" not in draw(y, step=0).svg()
    assert draw(y, step=0).text().splitlines()[-1] == "1  y     a · a             —"
    assert "&quot;position&quot;: 3" in drawing.html()
    assert "contribution 1 of 2" in drawing.html()


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (10, "draw: position 10 is out of range.\n  Positions go from 0, before the first operation, to 9."),
        (-1, "draw: position -1 is out of range.\n  Positions go from 0, before the first operation, to 9."),
        (
            ("b", "y"),
            "draw: no gradient flows over an edge from b to y.\n  Pass the two ends of an edge with a gradient.",
        ),
        ("q", f"draw: 'q' is not in this graph.\n  {NODE_ADVICE}"),
    ],
)
def test_nonexistent_step_is_rejected(step, message):
    with pytest.raises(ArgumentError) as raised:
        draw(neuron(), step=step)
    assert str(raised.value) == message


def test_captured_step_has_no_moments():
    needs("numpy")
    x = mg.ones(2, device="numpy")

    @mg.jit
    def doubled():
        return x * 2.0

    doubled()
    with pytest.raises(ArgumentError, match=r"^draw: a captured step has no moments because it saves no values\."):
        draw(doubled, step=1)
