"""Comparison of two runs in SVG, HTML and text: both values of each node, marks and flags."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad_viz import to_trace
from minigrad_viz.pictures.compare import described, figure, page, picture, table
from minigrad_viz.pictures.pairs import pair
from minigrad_viz.pictures.palette import DARK, LIGHT
from minigrad_viz.trace.differences import differences
from minigrad_viz.trace.notation import text_width
from svgs import SVG, elements, elements_in, words

HOSTILE = [
    "<script>alert(1)</script>",
    "\"'&<>",
    "</title><b>x",
    "]]>",
    "\x00\x1b[31m\ud800\uffff",
    "\u202egnp",
    "x" * 10_000,
]


def compared(first, second, **tolerances):
    return differences(to_trace(first, namespaces=[{}]), to_trace(second, namespaces=[{}]), **tolerances)


def run(c=4.0, times=1):
    a, b, c = mg.Value(2.0, "a"), mg.Value(3.0, "b"), mg.Value(c, "c")
    y = (a * b) * c + a
    for _ in range(times):
        y.backward()
    return y


def net(off=0.0, sign=1.0):
    class Twice(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x + x

        @staticmethod
        def backward(ctx, g):
            return sign * (g + g)

    mg.manual_seed(0)
    x, w = mg.randn(4, 3), mg.randn(3, 2).detach().requires_grad_()
    with mg.no_grad():
        w[0, 0] += off
    w.label, x.label = "w", "x"
    with mg.record():
        loss = Twice.apply(x @ w).exp().mean()
        loss.backward()
    return loss


def cards(svg):
    """Return the text and the CSS classes of each card."""
    found = {}
    for group in ET.fromstring(svg).iter(f"{SVG}g"):
        texts = [words(text) for text in group.findall(f"{SVG}text")]
        if "same" in group.get("class", "") or "differs" in group.get("class", ""):
            name = next(words(text) for text in elements_in(group, "name"))
            found[name] = (group.get("class").split(), texts)
    return found


def test_each_card_has_both_numbers_and_those_that_differ_a_sign_and_how_much():
    found = cards(picture(compared(run(), run(c=5.0))).svg)
    assert found["c"] == (
        ["leaf", "differs"],
        ["! first value", "c", "data", "4.0", "|", "5.0", "≠ 20%", "grad", "6.0", "|", "6.0"],
    )
    assert found["b"] == (["leaf", "differs"], ["b", "data", "3.0", "|", "3.0", "grad", "8.0", "|", "10.0", "≠ 20%"])
    assert found["v₄ = v₂ · c"] == (
        ["op", "differs"],
        ["v₄ = v₂ · c", "data", "24.0", "|", "30.0", "≠ 20%", "grad", "1.0", "|", "1.0"],
    )
    assert "same" not in {look for looks, _ in found.values() for look in looks}


def test_what_agrees_is_pale_and_has_no_sign():
    found = compared(run(), run())
    svg = picture(found).svg
    looks = {look for looks, _ in cards(svg).values() for look in looks}
    assert "differs" not in looks
    assert "same" in looks
    assert "≠" not in "".join(words(one) for one in ET.fromstring(svg).iter(f"{SVG}text"))
    assert [words(one) for one in elements(svg, "big")] == [
        "No difference: 6 values and 6 gradients agree within rtol 1e−9 and atol 1e−12."
    ]


def test_arrows_that_differ_are_thick_and_say_by_how_much_what_goes_back_does():
    found = compared(run(), run(c=5.0))
    svg = picture(found).svg
    looks = [edge.get("class") for edge in elements(svg, "edge")]
    assert sorted(looks) == ["edge differs"] * 5 + ["edge same"]
    assert sorted(words(label) for label in elements(svg, "d")) == ["≠", "≠", "≠ 20%", "≠ 20%", "≠ 20%"]
    ways = {words(edge.find(f"{SVG}title")) for edge in elements(svg, "edge")}
    assert "v₂ → v₄\n∂v₄/∂v₂: c = 4.0 | c = 5.0\n≠ 20% in the backward pass" in ways
    assert "stroke-width:3.5" in svg


def test_the_headline_comes_first_and_what_to_look_at_next_follows():
    found = compared(run(), run(c=5.0))
    svg = picture(found).svg
    texts = [words(one) for one in ET.fromstring(svg).iter(f"{SVG}text")]
    assert texts[0] == found.headline()
    assert texts[2] == "The first value that differs, in tape order, is an input: c: 4.0 | 5.0 (≠ 20%)."
    assert table(found).splitlines()[0] == found.headline()
    assert ET.fromstring(svg).find(f"{SVG}title").text == found.headline()
    assert ET.fromstring(svg).find(f"{SVG}desc").text == described(found)


def test_numbers_have_as_many_digits_as_tell_them_apart():
    found = compared(run(c=4.0), run(c=4.00000001))
    assert cards(picture(found).svg)["c"][1][3:7] == ["4", "|", "4.00000001", "≠ 2.5e−9"]


def test_first_value_first_operation_and_first_gradient_have_flags():
    svg = picture(compared(net(), net(off=0.5))).svg
    assert [words(flag) for flag in ET.fromstring(svg).iter(f"{SVG}text") if words(flag).startswith("! ")] == [
        "! first value"
    ]
    svg = picture(compared(net(), net(sign=-1.0))).svg
    assert [words(flag) for flag in ET.fromstring(svg).iter(f"{SVG}text") if words(flag).startswith("! ")] == [
        "! first gradient"
    ]


def test_a_tensor_is_two_heatmaps_on_one_scale_and_the_difference_with_the_largest():
    found = compared(net(), net(off=0.5))
    (at,) = [node for node, name in enumerate(found.common.names) if name == "w"]
    data, grad = pair(found, at).rows
    (first, scale, name), (second, other_scale, other_name), (change, largest, mark) = data.pictures
    assert (name, other_name, mark) == ("first", "second", f"≠ {share_of(found, at)}, max 0.5")
    assert scale == other_scale == max(abs(x) for x in [*first["cells"], *second["cells"]])
    assert change["cells"] == pytest.approx([0.5, 0, 0, 0, 0, 0], abs=1e-6)
    assert largest == pytest.approx(0.5, abs=1e-6)
    assert len(grad.pictures) == 3
    same = compared(net(), net())
    assert [len(row.pictures) for row in pair(same, at).rows] == [2, 2]


def share_of(found, node):
    from minigrad_viz.trace.gaps import share

    return share(found.values[node])


def test_cells_that_are_not_finite_in_one_run_are_crossed_in_the_difference():
    def of(x):
        with mg.record():
            return mg.tensor(x, requires_grad=True) * 1.0

    found = compared(of([1.0, float("nan"), 2.0]), of([1.0, float("nan"), float("inf")]))
    row = pair(found, 0).rows[0]
    assert np.array_equal(row.pictures[2][0]["cells"], [0.0, 0.0, np.inf])
    assert 'class="cross"' in picture(found).svg


def test_what_one_run_has_not_is_said_in_words():
    def of(needs):
        with mg.record():
            w, x = mg.tensor([2.0, 1.0], requires_grad=needs), mg.tensor([3.0, 1.0], requires_grad=True)
            w.label = "w"
            return (w * x).sum()

    found = compared(of(True), of(False))
    texts = cards(picture(found).svg)["w"][1]
    assert "second: blocked" in texts
    assert "≠ ∞" in texts
    assert "w     leaf" in table(found)


def test_a_closed_block_says_how_many_of_its_nodes_differ_and_the_first_difference_is_in_sight():
    def of(off):
        mg.manual_seed(0)
        net = mg.nn.Sequential(*[mg.nn.Linear(4, 4) for _ in range(12)])
        with mg.no_grad():
            net[7].bias[0] += off
        with mg.record():
            y = net(mg.ones(2, 4)).sum()
            y.backward()
        return y

    found = compared(of(0.0), of(0.5))
    svg = picture(found).svg
    texts = [words(one) for one in ET.fromstring(svg).iter(f"{SVG}text")]
    assert "! first value" in texts
    assert "bias" in texts
    assert any(re.fullmatch(r"≠ in \d of \d nodes", text) for text in texts)
    assert "no difference" in texts


def test_light_and_dark_follow_the_reader_or_a_theme():
    found = compared(run(), run(c=5.0))
    both, light, dark = picture(found).svg, picture(found, "light").svg, picture(found, "dark").svg
    assert LIGHT["alarm"] in both
    assert DARK["alarm"] in both
    assert "prefers-color-scheme" not in light + dark
    assert DARK["alarm"] not in light
    assert LIGHT["alarm"] not in dark


def test_no_text_of_a_card_leaves_it_or_meets_the_next_in_its_line():
    for found in (compared(net(), net(off=0.5)), compared(run(), run(c=4.00000001)), compared(net(), net(sign=-1.0))):
        for group in ET.fromstring(picture(found).svg).iter(f"{SVG}g"):
            boxes = [rect for rect in group.findall(f"{SVG}rect") if rect.get("class") == "box"]
            if not boxes or not {"same", "differs"} & set(group.get("class").split()):
                continue
            wide, spans = float(boxes[0].get("width")), {}
            for text in group.findall(f"{SVG}text"):
                look = (text.get("class") or "").split()
                size = 11 if "bit" in look else 13 if "name" in look else 12.5
                long = text_width(words(text), size, "ne" in look or "name" in look)
                x, y = float(text.get("x")), float(text.get("y"))
                begin = x - long if "num" in look else x
                if y > 0:
                    spans.setdefault(y, []).append((begin, begin + long, words(text)))
            for line in spans.values():
                line.sort()
                assert all(end <= begin + 0.5 for (_, end, _), (begin, _, _) in pairwise(line)), line
                assert line[0][0] >= 0
                assert line[-1][1] <= wide, line


@merge_cases
@pytest.mark.parametrize("label", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_text_everywhere(label):
    first, second = mg.Value(2.0, label), mg.Value(3.0, label)
    found = differences(to_trace(first * first), to_trace(second * second))
    tags = {element.tag.removeprefix(SVG) for element in ET.fromstring(picture(found).svg).iter()}
    assert tags <= {"svg", "title", "desc", "style", "rect", "g", "path", "text", "tspan", "circle"}
    for html in (page(found), figure(found)):
        assert "<script" not in html
        assert "<b>x" not in html
        html.encode("utf-8")
    table(found).encode("utf-8")


def test_a_page_has_the_words_the_picture_and_all_numbers_and_asks_for_nothing():
    found = compared(net(), net(off=0.5))
    html = page(found)
    assert f"<h1>{found.headline()}</h1>" in html
    assert html.count("<li>") == len(found.findings())
    assert html.count("<tr>") == 1 + len(found.common.kinds)
    assert 'class="big"' not in html  # the page has its own heading
    assert "http" not in html.replace("http://www.w3.org", "")
    assert len(re.findall(r'<svg class="mg" role="img" aria-label="\(3, 2\) float32', html)) == 4


def test_a_figure_is_an_image_with_the_words_as_its_alternative():
    found = compared(run(), run(c=5.0))
    html = figure(found)
    assert 'alt="Two runs of one graph. 6 of 6 nodes differ: ' in html
    assert "data:image/svg+xml;base64," in html
    assert "An overview" not in html


def test_as_text_both_runs_stand_side_by_side():
    assert table(compared(run(), run(c=5.0))).splitlines() == [
        "6 of 6 nodes differ: 3 values and 3 gradients, beyond rtol 1e−9 and atol 1e−12.",
        "! The first value that differs, in tape order, is an input: c: 4.0 | 5.0 (≠ 20%).",
        "! Each gradient that differs follows from values or gradients before it that differ.",
        "#  name  made by  data, first  data, second         grad, first  grad, second",
        "0  a     leaf             2.0           2.0                13.0          16.0  ≠ 19%",
        "1  b     leaf             3.0           3.0                 8.0          10.0  ≠ 20%",
        "2  v₂    a · b            6.0           6.0                 4.0           5.0  ≠ 20%",
        "3  c     leaf             4.0           5.0  ≠ 20%          6.0           6.0",
        "4  v₄    v₂ · c          24.0          30.0  ≠ 20%          1.0           1.0",
        "5  v₅    v₄ + a          26.0          32.0  ≠ 19%          1.0           1.0",
    ]


def test_as_text_tensors_have_lines_of_their_own_one_where_they_agree():
    lines = table(compared(net(), net(sign=-1.0))).splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("0  w"))
    assert lines[at].endswith("≠ 200%")
    assert [line.split(":")[0].strip() for line in lines[at + 1 : at + 4]] == [
        "data, both",
        "grad, first",
        "grad, second",
    ]


def test_of_a_large_graph_the_text_lists_what_differs_and_says_how_much_it_leaves_out():
    def of(last):
        x = mg.Value(1.0, "x")
        for _ in range(100):
            x = x * 1.01
        return x * last

    text = table(compared(of(2.0), of(3.0)))
    assert "201" in text
    assert text.count("\n") < 150
    found = compared(of(2.0), of(2.0))
    assert table(found).splitlines()[-1] == f"… {len(found.common.kinds)} nodes that agree are left out"
