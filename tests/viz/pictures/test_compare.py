"""Comparison of two runs in SVG, HTML and text: both values of each node, marks and flags."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest

import minigrad as mg
from cases import merge_cases
from minigrad_viz import to_trace
from minigrad_viz.pictures.compare import figure, page, render_comparison, table, text_alternative
from minigrad_viz.pictures.pairs import make_comparison_card
from minigrad_viz.pictures.palette import DARK, LIGHT
from minigrad_viz.trace.differences import differences
from minigrad_viz.trace.notation import text_width
from svgs import SVG, elements, elements_in, text_of

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
    rows = {}
    for group in ET.fromstring(svg).iter(f"{SVG}g"):
        labels = [text_of(text) for text in group.findall(f"{SVG}text")]
        if "same" in group.get("class", "") or "differs" in group.get("class", ""):
            name = next(text_of(text) for text in elements_in(group, "name"))
            rows[name] = (group.get("class").split(), labels)
    return rows


def test_cards_show_both_values_and_the_relative_difference():
    comparison = cards(render_comparison(compared(run(), run(c=5.0))).svg)
    assert comparison["c"] == (
        ["leaf", "differs"],
        ["! first value", "c", "data", "4.0", "|", "5.0", "≠ 20%", "grad", "6.0", "|", "6.0"],
    )
    assert comparison["b"] == (
        ["leaf", "differs"],
        ["b", "data", "3.0", "|", "3.0", "grad", "8.0", "|", "10.0", "≠ 20%"],
    )
    assert comparison["v₄ = v₂ · c"] == (
        ["op", "differs"],
        ["v₄ = v₂ · c", "data", "24.0", "|", "30.0", "≠ 20%", "grad", "1.0", "|", "1.0"],
    )
    assert "same" not in {look for looks, _ in comparison.values() for look in looks}


def test_nodes_that_agree_are_pale_without_a_sign():
    comparison = compared(run(), run())
    svg = render_comparison(comparison).svg
    looks = {look for looks, _ in cards(svg).values() for look in looks}
    assert "differs" not in looks
    assert "same" in looks
    assert "≠" not in "".join(text_of(one) for one in ET.fromstring(svg).iter(f"{SVG}text"))
    assert [text_of(one) for one in elements(svg, "big")] == [
        "No difference: 6 values and 6 gradients agree within rtol 1e−9 and atol 1e−12."
    ]


def test_edges_that_differ_are_thick_with_the_difference_of_gradients():
    comparison = compared(run(), run(c=5.0))
    svg = render_comparison(comparison).svg
    looks = [edge.get("class") for edge in elements(svg, "edge")]
    assert sorted(looks) == ["edge differs"] * 5 + ["edge same"]
    assert sorted(text_of(label) for label in elements(svg, "d")) == ["≠", "≠", "≠ 20%", "≠ 20%", "≠ 20%"]
    ways = {text_of(edge.find(f"{SVG}title")) for edge in elements(svg, "edge")}
    assert "v₂ → v₄\n∂v₄/∂v₂: c = 4.0 | c = 5.0\n≠ 20% in the backward pass" in ways
    assert "stroke-width:3.5" in svg


def test_headline_precedes_findings():
    comparison = compared(run(), run(c=5.0))
    svg = render_comparison(comparison).svg
    labels = [text_of(one) for one in ET.fromstring(svg).iter(f"{SVG}text")]
    assert labels[0] == comparison.headline()
    assert labels[2] == "The first value that differs, in tape order, is an input: c: 4.0 | 5.0 (≠ 20%)."
    assert table(comparison).splitlines()[0] == comparison.headline()
    assert ET.fromstring(svg).find(f"{SVG}title").text == comparison.headline()
    assert ET.fromstring(svg).find(f"{SVG}desc").text == text_alternative(comparison)


def test_values_have_enough_digits_to_be_distinguished():
    comparison = compared(run(c=4.0), run(c=4.00000001))
    assert cards(render_comparison(comparison).svg)["c"][1][3:7] == ["4", "|", "4.00000001", "≠ 2.5e−9"]


def test_first_differences_are_flagged():
    svg = render_comparison(compared(net(), net(off=0.5))).svg
    assert [text_of(flag) for flag in ET.fromstring(svg).iter(f"{SVG}text") if text_of(flag).startswith("! ")] == [
        "! first value"
    ]
    svg = render_comparison(compared(net(), net(sign=-1.0))).svg
    assert [text_of(flag) for flag in ET.fromstring(svg).iter(f"{SVG}text") if text_of(flag).startswith("! ")] == [
        "! first gradient"
    ]


def test_tensors_show_two_heatmaps_on_one_scale_and_their_difference():
    comparison = compared(net(), net(off=0.5))
    (at,) = [node for node, name in enumerate(comparison.common.names) if name == "w"]
    data, grad = make_comparison_card(comparison, at).rows
    (first, scale, name), (second, other_scale, other_name), (change, largest, mark) = data.heatmaps
    assert (name, other_name, mark) == ("first", "second", f"≠ {share_of(comparison, at)}, max 0.5")
    assert scale == other_scale == max(abs(x) for x in [*first["cells"], *second["cells"]])
    assert change["cells"] == pytest.approx([0.5, 0, 0, 0, 0, 0], abs=1e-6)
    assert largest == pytest.approx(0.5, abs=1e-6)
    assert len(grad.heatmaps) == 3
    same = compared(net(), net())
    assert [len(row.heatmaps) for row in make_comparison_card(same, at).rows] == [2, 2]


def share_of(comparison, node):
    from minigrad_viz.trace.gaps import format_ratio

    return format_ratio(comparison.values[node])


def test_non_finite_cells_are_crossed_in_the_difference():
    def of(x):
        with mg.record():
            return mg.tensor(x, requires_grad=True) * 1.0

    comparison = compared(of([1.0, float("nan"), 2.0]), of([1.0, float("nan"), float("inf")]))
    row = make_comparison_card(comparison, 0).rows[0]
    assert np.array_equal(row.heatmaps[2][0]["cells"], [0.0, 0.0, np.inf])
    assert 'class="cross"' in render_comparison(comparison).svg


def test_missing_values_of_one_run_are_explained():
    def of(needs):
        with mg.record():
            w, x = mg.tensor([2.0, 1.0], requires_grad=needs), mg.tensor([3.0, 1.0], requires_grad=True)
            w.label = "w"
            return (w * x).sum()

    comparison = compared(of(True), of(False))
    labels = cards(render_comparison(comparison).svg)["w"][1]
    assert "second: blocked" in labels
    assert "≠ ∞" in labels
    assert "w     leaf" in table(comparison)


def test_closed_block_counts_differing_nodes_and_first_difference_is_visible():
    def of(off):
        mg.manual_seed(0)
        net = mg.nn.Sequential(*[mg.nn.Linear(4, 4) for _ in range(12)])
        with mg.no_grad():
            net[7].bias[0] += off
        with mg.record():
            y = net(mg.ones(2, 4)).sum()
            y.backward()
        return y

    comparison = compared(of(0.0), of(0.5))
    svg = render_comparison(comparison).svg
    labels = [text_of(one) for one in ET.fromstring(svg).iter(f"{SVG}text")]
    assert "! first value" in labels
    assert "bias" in labels
    assert any(re.fullmatch(r"≠ in \d of \d nodes", text) for text in labels)
    assert "no difference" in labels


def test_colours_follow_the_user_or_a_theme():
    comparison = compared(run(), run(c=5.0))
    both, light, dark = (
        render_comparison(comparison).svg,
        render_comparison(comparison, "light").svg,
        render_comparison(comparison, "dark").svg,
    )
    assert LIGHT["alarm"] in both
    assert DARK["alarm"] in both
    assert "prefers-color-scheme" not in light + dark
    assert DARK["alarm"] not in light
    assert LIGHT["alarm"] not in dark


def test_texts_of_cards_fit_and_do_not_overlap():
    for comparison in (
        compared(net(), net(off=0.5)),
        compared(run(), run(c=4.00000001)),
        compared(net(), net(sign=-1.0)),
    ):
        for group in ET.fromstring(render_comparison(comparison).svg).iter(f"{SVG}g"):
            boxes = [rect for rect in group.findall(f"{SVG}rect") if rect.get("class") == "box"]
            if not boxes or not {"same", "differs"} & set(group.get("class").split()):
                continue
            card_width, spans = float(boxes[0].get("width")), {}
            for text in group.findall(f"{SVG}text"):
                look = (text.get("class") or "").split()
                size = 11 if "bit" in look else 13 if "name" in look else 12.5
                long = text_width(text_of(text), size, "ne" in look or "name" in look)
                x, y = float(text.get("x")), float(text.get("y"))
                begin = x - long if "num" in look else x
                if y > 0:
                    spans.setdefault(y, []).append((begin, begin + long, text_of(text)))
            for line in spans.values():
                line.sort()
                assert all(end <= begin + 0.5 for (_, end, _), (begin, _, _) in pairwise(line)), line
                assert line[0][0] >= 0
                assert line[-1][1] <= card_width, line


@merge_cases
@pytest.mark.parametrize("label", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_escaped_in_every_format(label):
    first, second = mg.Value(2.0, label), mg.Value(3.0, label)
    comparison = differences(to_trace(first * first), to_trace(second * second))
    tags = {element.tag.removeprefix(SVG) for element in ET.fromstring(render_comparison(comparison).svg).iter()}
    assert tags <= {"svg", "title", "desc", "style", "rect", "g", "path", "text", "tspan", "circle"}
    for html in (page(comparison), figure(comparison)):
        assert "<script" not in html
        assert "<b>x" not in html
        html.encode("utf-8")
    table(comparison).encode("utf-8")


def test_page_has_findings_drawing_and_values_without_requests():
    comparison = compared(net(), net(off=0.5))
    html = page(comparison)
    assert f"<h1>{comparison.headline()}</h1>" in html
    assert html.count("<li>") == len(comparison.findings())
    assert html.count("<tr>") == 1 + len(comparison.common.kinds)
    assert 'class="big"' not in html  # the page has its own heading
    assert "http" not in html.replace("http://www.w3.org", "")
    assert len(re.findall(r'<svg class="mg" role="img" aria-label="\(3, 2\) float32', html)) == 4


def test_figure_is_an_image_with_a_text_alternative():
    comparison = compared(run(), run(c=5.0))
    html = figure(comparison)
    assert 'alt="Two runs of one graph. 6 of 6 nodes differ: ' in html
    assert "data:image/svg+xml;base64," in html
    assert "An overview" not in html


def test_text_shows_both_runs_in_adjacent_columns():
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


def test_text_has_separate_lines_for_tensors():
    lines = table(compared(net(), net(sign=-1.0))).splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("0  w"))
    assert lines[at].endswith("≠ 200%")
    assert [line.split(":")[0].strip() for line in lines[at + 1 : at + 4]] == [
        "data, both",
        "grad, first",
        "grad, second",
    ]


def test_text_of_a_large_graph_lists_only_differences():
    def of(last):
        x = mg.Value(1.0, "x")
        for _ in range(100):
            x = x * 1.01
        return x * last

    text = table(compared(of(2.0), of(3.0)))
    assert "201" in text
    assert text.count("\n") < 150
    comparison = compared(of(2.0), of(2.0))
    assert table(comparison).splitlines()[-1] == f"… {len(comparison.common.kinds)} nodes that agree are left out"
