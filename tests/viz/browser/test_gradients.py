"""Gradients in the player: width, opacity and hue of edges, the legend, captions, and full-screen mode."""

import math

import pytest

import minigrad as mg
from minigrad_viz import to_html

# The stroke width, opacity and colour of each edge that a gradient has passed.
EDGE_STYLES = """
() => [...document.querySelector(".minigrad-player").shadowRoot.querySelectorAll(".wire.done")].map((wire) => {
  const line = wire.querySelector(".line");
  return [getComputedStyle(line).strokeWidth, getComputedStyle(wire).opacity, getComputedStyle(line).stroke];
})
"""
# The distance of each edge's arrowhead from the start of its line: negative if it points back.
ARROWHEAD_OFFSETS = """
() => [...document.querySelector(".minigrad-player").shadowRoot.querySelectorAll(".wire")].map((wire) => {
  const [line, tip] = wire.children;
  const [from, tipped] = [line.getBBox(), tip.getBBox()];
  return tipped.x - from.x;
})
"""
ORANGE, PURPLE = "rgb(179, 80, 0)", "rgb(106, 27, 90)"


@pytest.fixture
def opened(watched, tmp_path):
    def open_(y, width=1280, **options):
        path = tmp_path / "y.html"
        path.write_text(to_html(y), encoding="utf-8")
        page = watched(width=width, **options)
        page.emulate_media(color_scheme="light")
        page.goto(path.as_uri())
        page.get_by_role("button", name="Step forward").wait_for()
        return page

    return open_


def product():
    a, b = mg.Value(2.0, "a"), mg.Value(-8.0, "b")
    c = a * b
    c.label = "c"
    y = c * 1.0
    y.label = "y"
    return y


def test_width_opacity_and_hue_of_edges_encode_gradients(opened):
    page = opened(product())
    page.keyboard.press("End")  # the gradient passes the edge to b, after the two others
    gradients = {PURPLE: -8.0, ORANGE: 1.0}
    styles = {
        colour: (float(stroke_width.removesuffix("px")), float(opacity))
        for stroke_width, opacity, colour in page.evaluate(EDGE_STYLES)
    }
    assert set(styles) == set(gradients)
    for colour, (stroke_width, opacity) in styles.items():
        scale = math.sqrt(abs(gradients[colour]) / 8.0)
        assert stroke_width == pytest.approx(1 + 4 * scale, rel=1e-3)
        assert opacity == pytest.approx(0.55 + 0.45 * scale, rel=1e-3)


def test_arrows_reverse_when_a_gradient_passes(opened):
    page = opened(product())
    page.keyboard.press("Home")
    ends = []
    for _ in range(6):  # two steps forward, the seed, three edges back
        page.keyboard.press("ArrowRight")
        ends.append("".join("<" if left < 0 else ">" for left in page.evaluate(ARROWHEAD_OFFSETS)))
    assert ends[2:] == [">>>>", ">><>", "<><>", "<<<>"]  # the edges a and b to c, c and 1.0 to y


@pytest.mark.parametrize(("width", "visible"), [(1280, True), (400, False)])
def test_the_legend_explains_edge_labels_and_gradient_sizes(opened, width, visible):
    page = opened(product(), width)
    page.keyboard.press("Home")
    assert page.locator(".legend").get_by_text("on an arrow: local derivative").is_visible() == visible
    assert page.locator(".legend").get_by_text("gradient magnitude on an edge, 0 to 8.0").is_visible()


def test_the_start_of_the_backward_pass_defines_upstream_and_local(opened):
    page = opened(product())
    for key in ("Home", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert "y is computed: mul, a product. The forward pass is complete." in page.locator(".say .words").text_content()
    page.keyboard.press("ArrowRight")
    rule = "each arrow multiplies the incoming gradient (upstream) by its derivative (local)"
    assert rule in page.locator(".say .formula").text_content()
    page.keyboard.press("End")
    assert page.locator(".say .words").text_content().endswith("The backward pass is complete.")


def test_the_equation_of_a_step_is_copied_as_latex(opened):
    page = opened(product())
    page.evaluate("document.execCommand = () => void (window.copied = document.activeElement.value)")
    copied = {}
    for key in ("Home", "ArrowRight", "End"):
        page.keyboard.press(key)
        if key != "Home":
            page.get_by_role("button", name="LaTeX").click()
            copied[key] = page.evaluate("window.copied")
    assert copied == {
        "ArrowRight": r"c = a \cdot b = 2 \cdot \left(-8\right) = -16",
        "End": (
            r"\frac{\partial y}{\partial b} = \frac{\partial y}{\partial c} \cdot \frac{\partial c}{\partial b} "
            r"= 1 \cdot 2 = 2"
        ),
    }


def test_the_caption_explains_a_factor_and_the_gradient(opened):
    page = opened(product())
    page.keyboard.press("End")
    assert "If b increases slightly, y increases 2.0 times as much." in page.locator(".say .words").text_content()
    assert "where ∂c/∂b = a = 2.0" in page.locator(".say .formula").text_content()


def test_f_toggles_full_screen(opened):
    page = opened(product())
    page.keyboard.press("ArrowRight")
    page.keyboard.press("f")
    page.wait_for_function("document.fullscreenElement !== null")
    assert not page.get_by_role("button", name="What if").is_visible()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("f")
    page.wait_for_function("document.fullscreenElement === null")
    assert page.get_by_role("button", name="What if").is_visible()
