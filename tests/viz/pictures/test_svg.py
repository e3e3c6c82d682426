"""The SVG drawing: well-formed for any label, complete, with text inside its boxes."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

import minigrad as mg
from cases import merge_cases
from minigrad_viz import to_graphviz, to_html, to_svg
from minigrad_viz.pictures.palette import CONTRAST_PAIRS, DARK, LIGHT
from svgs import SVG, elements, elements_in, text_of

HOSTILE = [
    "<script>alert(1)</script>",
    "\"'&<>",
    "</title><b>x",
    "]]>",
    "\x00\x07\x1b[31m\ud800\uffff",
    "\u202egnp.exe",
    "é̂ 重み 👩‍👩‍👧‍👦",
    "\\N\\l<<b>x</b>>",
    "x" * 10_000,
    "two\nlines\r\n",
    "%s {0} ${x}",
]


@merge_cases
@pytest.mark.parametrize("label", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_label_is_escaped_in_svg(label):
    a = mg.Value(2.0, label)
    svg = to_svg(a * a)
    root = ET.fromstring(svg)
    allowed = {"svg", "title", "desc", "style", "rect", "g", "path", "text", "tspan", "circle"}
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= allowed
    assert len(svg) < 40_000


@merge_cases
@pytest.mark.parametrize("label", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_label_opens_no_tag_in_the_page(label):
    page = to_html(mg.Value(2.0, label) * 3.0)
    data, code = '<script type="application/json" class="minigrad-trace">', "<script>"
    assert re.findall(r"<script[^>]*>", page) == [data, code]
    assert page.count("</script") == 2
    assert page.count("<title>") == to_html(mg.Value(2.0, "a") * 3.0).count("<title>")
    assert "<b>x" not in page
    page.encode("utf-8")


@merge_cases
@pytest.mark.parametrize("label", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_label_is_quoted_in_dot_source(label):
    source = to_graphviz(mg.Value(2.0, label) * 3.0).source
    node = next(line for line in source.splitlines() if line.startswith("\tn0 "))
    assert re.fullmatch(
        r'\tn0 \[label="(?:[^"\\]|\\.)*\\ndata 2\.0\\ngrad —"(?: \w+=(?:"(?:[^"\\]|\\.)*"|\w+))*\]', node
    )


def test_full_name_of_a_shortened_label_is_in_its_title():
    long = "a very long name indeed, longer than any card would be"
    (card,) = elements(to_svg(mg.Value(1.0, long)), "leaf")
    assert card[0].text == f"{long}\ndata 1.0\ngrad —"
    assert text_of(elements(to_svg(mg.Value(1.0, long)), "name")[0]).endswith("…")


def test_a_times_a_draws_two_arrows_and_a_sum_mark():
    a = mg.Value(3.0, "a")
    svg = to_svg(a * a)
    paths = [edge.get("d") for edge in elements(svg, "edge")]
    assert len(paths) == len(set(paths)) == 2
    assert [text_of(label) for label in elements(svg, "d")] == ["∂v₁/∂a = a = 3.0a = 3.0"] * 2
    assert [mark.text for mark in elements(svg, "sum")] == ["Σ2"]


def test_card_shows_a_dash_before_backward_the_gradient_after_and_blocked_without_one():
    a = mg.Value(3.0, "a")
    y = a * a.detach()

    def grads() -> list[str]:
        return [text_of(element) for element in elements(to_svg(y), "num")][1::2]

    assert grads() == ["—", "blocked", "—"]
    y.backward()
    assert grads() == ["3.0", "blocked", "1.0"]


def test_kinds_differ_in_shape_and_border_not_in_colour_alone():
    a = mg.Value(3.0, "a")
    svg = to_svg(a * 2.0)
    leaf, constant, output = (elements(svg, kind)[0] for kind in ("leaf", "constant", "output"))
    corners = [next(e for e in card if e.get("class") == "box").get("rx") for card in (leaf, constant, output)]
    assert corners == ["12", "13", "4"]
    assert "still" in constant.get("class", "")
    assert len(elements(svg, "ring")) == 1


def test_no_gradient_flows_over_a_dotted_arrow():
    svg = to_svg(mg.Value(3.0, "a") * 2.0)
    assert [edge.get("class") for edge in elements(svg, "edge")] == ["edge", "edge none"]
    assert len(elements(svg, "d")) == 1


def test_labels_of_arrows_into_one_node_are_a_line_of_text_apart():
    a, b = mg.Value(3.0, "a"), mg.Value(2.0, "b")
    y = a * b
    for _ in range(3):
        y = (y * a + y * y) * (b * y)
    labels = [(float(label.get("x")), float(label.get("y"))) for label in elements(to_svg(y * y), "d")]
    columns = [sorted(down for x, down in labels if x == column) for column in {x for x, _ in labels}]
    apart = [low - high for ys in columns for high, low in pairwise(ys)]
    assert len(labels) == 34
    assert min(apart) >= 13.4


def test_modified_graph_has_a_note_in_the_drawing():
    a = mg.Value(3.0, "a")
    y = a * a
    a.data = 4.0
    svg = to_svg(y)
    assert elements(svg, "d") == []
    notes = " ".join(map(text_of, elements(svg, "said")))
    assert notes.startswith("a was assigned another value after y was computed: a · a = 4 · 4 now, but y is still 9.0.")


def test_card_with_a_non_finite_value_or_gradient_has_the_alarm_border():
    z = mg.Value(0.0, "z")
    y = mg.sqrt(z)
    assert elements(to_svg(y), "bad") == []
    y.backward()
    assert [text_of(elements(to_svg(y), "bad")[0][0])] == ["z\ndata 0.0\ngrad inf"]
    svg = to_svg(mg.log(z.detach()))
    assert ["op" in card.get("class", "") for card in elements(svg, "bad")] == [True]
    assert f".mg .bad .box{{stroke:{LIGHT['alarm']};stroke-width:2.5}}" in svg


def chain(length: int) -> tuple[mg.Value, mg.Value]:
    y = x = mg.Value(1.0, "x")
    for _ in range(length):
        y = y + 1.0
    return x, y


def test_large_graph_is_drawn_as_closed_blocks_with_summaries():
    svg = to_svg(chain(500)[1])
    stacks = elements(svg, "block")
    assert [text_of(elements_in(stack, "name")[0]) for stack in stacks][:2] == ["sum of 50 terms", "sum of 51 terms"]
    labels = [element.text for element in stacks[0].iter(f"{SVG}text")]
    assert labels == ["sum of 50 terms", "49 operations · 1 leaf", "out", "50.0"]
    assert text_of(elements(svg, "key")[-1]).endswith("a stack is a closed block: 10 of 10")


def test_closed_block_with_a_stale_node_has_the_alarm_border():
    x, y = chain(500)
    assert elements(to_svg(y), "bad") == []
    x.data = 2.0
    assert [stack.get("class") for stack in elements(to_svg(y), "bad")] == ["block bad"]


def layers(count: int) -> mg.Value:
    x = mg.Value(1.0, "x")
    for layer in range(count):
        with mg.scope(f"layer<{layer}>"):
            x = (x * 2.0).tanh()
    return x + 1.0


def test_scopes_are_frames_around_their_operations():
    svg = to_svg(layers(3))
    assert [text_of(elements_in(frame, "part")[0]) for frame in elements(svg, "frame")] == [
        "layer<0> … layer<2>×3",
        "layer<0>",
        "layer<1>",
        "layer<2>",
    ]
    assert len(elements(svg, "op")) == 7
    assert len(elements(svg, "edge")) == 11, "all of them: 4 binary operations, 3 unary"


def test_closed_fold_shows_its_number_of_blocks():
    (stack,) = elements(to_svg(layers(100)), "block")
    assert text_of(elements_in(stack, "name")[0]) == "layer<0> … layer<99>×100"
    assert "200 operations · 1 leaf" in [element.text for element in stack.iter()]


def test_drawing_has_a_description_and_follows_the_dark_theme():
    svg = to_svg(mg.Value(1.0, "x"))
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    assert root[0].text == "Graph of x = 1.0: 1 leaf."
    assert "@media (prefers-color-scheme:dark)" in svg


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_text_has_a_contrast_of_at_least_4_5(colours):
    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for text, ground in CONTRAST_PAIRS:
        dim, bright = sorted((luminance(colours[text]), luminance(colours[ground])))
        assert (bright + 0.05) / (dim + 0.05) >= 4.5, (text, ground)


def test_edge_width_encodes_magnitude_and_hue_encodes_sign():
    w, x = mg.Value(-2.0, "w"), mg.Value(3.0, "x")
    y = w * x
    before = to_svg(y)
    assert "positive" not in before.partition("</style>")[2], "no gradient has flowed back"
    y.backward()
    after = to_svg(y).partition("</style>")[2]
    strokes = re.findall(r'class="edge (\w+)" d="[^"]*" style="stroke-width:([\d.]+);opacity:([\d.]+)"', after)
    share = (2 / 3) ** 0.5
    assert strokes == [("positive", "5", "1"), ("negative", f"{1 + 4 * share:.3g}", f"{0.55 + 0.45 * share:.3g}")]
    assert "orange: positive, purple: negative" in after
    y.backward()
    twice = to_svg(y).partition("</style>")[2]
    assert "positive" not in twice, "two passes have been added up: no edge brought what .grad holds"
