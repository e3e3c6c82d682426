"""Tensors in every format: heatmaps, a one-line summary, or why the value is missing."""

import re
import xml.etree.ElementTree as ET

import minigrad as mg
from minigrad_viz import draw, to_graphviz, to_html, to_svg, to_text
from minigrad_viz.pictures.html import figure
from minigrad_viz.pictures.svg import render_svg
from minigrad_viz.trace import to_trace
from minigrad_viz.trace.rows import Note


def model(backward=True):
    x = mg.tensor([[1.0, -2.0], [0.5, 0.0]])
    w = mg.tensor([[1.0], [2.0]], requires_grad=True)
    y = (x @ w).tanh()
    loss = y.sum()
    x.label, w.label, loss.label = "x", "w", "loss"
    if backward:
        loss.backward()
    return loss


def groups(svg: str, cls: str) -> list[ET.Element]:
    return [element for element in ET.fromstring(svg).iter() if cls in element.get("class", "").split()]


def labels_of(element: ET.Element) -> list[str]:
    return ["".join(text.itertext()) for text in element.iter("{http://www.w3.org/2000/svg}text")]


def card(svg: str, start: str) -> ET.Element:
    (match,) = [
        group for kind in ("leaf", "op") for group in groups(svg, kind) if labels_of(group)[0].startswith(start)
    ]
    return match


def test_card_shows_shape_and_heatmaps_of_value_and_gradient():
    with mg.record():
        svg = to_svg(model())
    assert labels_of(card(svg, "w")) == ["w", "data", "grad", "2×1 float32"]
    assert len([part for part in card(svg, "w").iter() if part.get("class") == "heat"]) == 2
    assert "full colour at the largest magnitude of each" in " ".join(map(str, labels_of(ET.fromstring(svg))))


def test_card_explains_a_missing_heatmap():
    svg = to_svg(model(backward=False))
    assert labels_of(card(svg, "w"))[1:3] == ["data", "grad—"]
    assert labels_of(card(svg, "x"))[1:3] == ["data", "gradblocked"]
    w = mg.ones(100, 100, requires_grad=True)
    loss = (w * mg.ones(100, 100)).sum()  # its second operand is freed
    loss.backward()
    assert labels_of(card(to_svg(loss), "v₂"))[1:3] == ["datanot kept", "gradnot kept"]


def test_single_element_tensor_is_shown_as_a_scalar():
    with mg.record():
        svg = to_svg(model())
    shown = f"{float(model().item()):.3g}".replace("-", "−")
    assert labels_of(card(svg, "loss"))[1:] == ["data", shown, "grad", "1.0"]


def test_text_has_a_line_for_each_tensor():
    with mg.record():
        lines = to_text(model()).splitlines()
    at = next(index for index, line in enumerate(lines) if re.match(r"\d  w ", line))
    assert lines[at + 1] == "   data (2, 1) float32 1.0 … 2.0, mean 1.5, std 0.5 █▁▁▁▁▁▁▁▁▁▁█"
    assert lines[at + 2].startswith("   grad (2, 1) float32 ")


def test_text_has_a_column_of_scopes():
    a = mg.Value(2.0, "a")
    with mg.scope("layer"):
        b = a * a
    assert to_text(b).splitlines()[1:4] == [
        "#  name  made by  in     data  grad",
        "0  a     leaf     layer   2.0     —",
        "1  b     a · a    layer   4.0     —",
    ]


def test_page_has_heatmaps_in_its_tables():
    with mg.record():
        page = to_html(model())
    nodes, steps = page.split("<h2>")[1:3]
    assert nodes.count('<svg class="mg" role="img"') == 7
    assert steps.count('<svg class="mg" role="img"') >= 6
    assert "with values" not in nodes


def test_graphviz_summarises_tensors_and_clusters_scopes():
    with mg.record(), mg.scope("net<1>"):
        source = to_graphviz(model()).source
    assert "data (2, 1) float32 1.0 … 2.0" in source
    assert source.count("subgraph cluster_") == 1
    assert 'label="net<1>"' in source


def test_operation_that_raised_is_a_card_with_the_first_line_of_its_error():
    trace = to_trace(model(backward=False))
    last = len(trace.kinds) - 1
    trace.kinds[last] = "x"
    trace.notes = [Note("error", last, "ShapeError: the sizes\n  differ")]
    svg = render_svg(trace).svg
    (broken,) = groups(svg, "broken")
    assert labels_of(broken)[1:] == ["raised", "ShapeError: the sizes"]
    assert "bad" in broken.get("class", "").split()
    assert "raised" in draw_text(trace)


def draw_text(trace) -> str:
    from minigrad_viz.pictures.text import table

    return table(trace)


def test_drawing_of_a_large_tensor_is_small():
    w = mg.zeros(784, 128, requires_grad=True)
    assert len(draw((w * 2.0).sum()).svg()) < 40_000


def test_notebook_stores_no_megabytes_of_tensors():
    def layers(count, side):
        with mg.record():
            x = mg.randn(side, side, requires_grad=True)
            for _ in range(count):
                x = x * 1.01
            return x.sum()

    few_large, many_small = (figure(to_trace(layers(*size))) for size in ((30, 100), (2000, 4)))
    assert "minigrad-trace" in few_large
    assert len(few_large) < 1 << 20
    assert "minigrad-trace" not in many_small


def test_non_finite_nodes_are_found_among_scalars_and_arrays():
    with mg.record():
        x = mg.tensor([1.0, 0.0], requires_grad=True)
        y = (x.log() * 0.0).sum()
    a = mg.Value(float("inf"), "a")
    assert [to_trace(y).title(at) for at in to_trace(y).non_finite_nodes()] == ["v₁", "v₃", "y"]
    assert to_trace(a * 0 + a).non_finite_nodes() == [0, 2, 3]
