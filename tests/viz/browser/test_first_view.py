"""The viewport of the drawing: what it shows first, that it follows the steps, and zooming of wide graphs."""

from pathlib import Path

import nbformat
import pytest

import sample_graphs
from minigrad_viz import to_html
from minigrad_viz.pictures.frontend import script
from playback import Playback, scalar_graph, tensor_graph
from tiers import NIGHTLY, cross

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"

# The scale of the drawing, whether all of it is visible, and whether the current item is (the leftmost one before
# the first step).
MEASURE_VIEW = """
() => {
  const root = document.querySelector(".minigrad-player").shadowRoot;
  const view = root.querySelector(".mg-view");
  const drawing = root.querySelector(".mg-stage > svg");
  const items = [...root.querySelectorAll(".item")].map((one) => one.getBoundingClientRect());
  const active = root.querySelector(".core");
  const shown = active.getAttribute("visibility") === "visible";
  const item = shown ? active.getBoundingClientRect() : items.reduce((a, b) => (b.x < a.x ? b : a));
  const around = view.getBoundingClientRect();
  return {
    scale: drawing.getBoundingClientRect().width / drawing.viewBox.baseVal.width,
    all: view.scrollWidth <= view.clientWidth && view.scrollHeight <= view.clientHeight,
    inside: item.left >= around.left && item.right <= around.right &&
      item.top >= around.top && item.bottom <= around.bottom,
  };
}
"""
# The visible fraction of the drawing's width, and the fraction that the minimap's frame shows.
MEASURE_MINIMAP = """
() => {
  const root = document.querySelector(".minigrad-player").shadowRoot;
  const [view, stage, frame] = [".mg-view", ".mg-stage", ".minimap .seen"].map((name) => root.querySelector(name));
  const width = frame.ownerSVGElement.viewBox.baseVal.width;
  return [view.clientWidth / stage.offsetWidth, frame.width.baseVal.value / width];
}
"""
MIN_SCALE = 0.8  # fraction of the natural size


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return the page of a wide graph by name; each is written once."""
    folder, paths = tmp_path_factory.mktemp("wide"), {}

    def page_of(name):
        if name not in paths:
            paths[name] = folder / f"{name}.html"
            paths[name].write_text(to_html(getattr(sample_graphs, name)()), encoding="utf-8")
        return paths[name].as_uri()

    return page_of


@pytest.fixture
def opened(watched, pages):
    def open_(name, width):
        page = watched(width=width)
        page.goto(pages(name))
        page.get_by_role("button", name="Step forward").first.wait_for()
        return page

    return open_


def measure_view(page):
    page.wait_for_timeout(60)  # a few frames, since scrolling happens in the next one
    return page.evaluate(MEASURE_VIEW)


@cross(1, width=[400, 1200], name=["gpt", "cnn", "large"])
def test_a_wide_graph_starts_readable_at_the_current_item(opened, width, name):
    page = opened(name, width)
    first = measure_view(page)
    assert (first["scale"] >= MIN_SCALE, first["all"], first["inside"]) == (True, False, True)
    page.get_by_role("button", name="First").click()
    assert measure_view(page)["inside"]


@pytest.mark.parametrize(("name", "width"), [("neuron", 700), ("neuron", 1280), ("expression", 1280), ("mlp", 1280)])
def test_a_small_graph_is_entirely_visible(opened, width, name):
    page = opened(name, width)
    first = measure_view(page)
    assert (first["all"], first["scale"] >= 0.7, page.locator(".minimap:visible").count()) == (True, True, 0)
    tab = page.get_by_role("button", name="What if").bounding_box()
    assert tab["y"] + tab["height"] < 400, "the controls are within reach"


def test_small_cards_show_indices_and_operations_if_names_do_not_fit(opened):
    page = opened("values", 400)
    names = [name for name in page.locator(".minigrad-player .block .name").all_text_contents() if name]
    assert sorted(names) == sorted(f"[{k}]" for k in (*range(7), *range(5), 0))
    page = opened("cross_entropy", 830)
    # The space before the operation is not part of the text.
    assert page.locator(".minigrad-player .op .name").all_text_contents() == [
        "v₁exp",
        "v₃exp",
        "v₄add",
        "v₆exp",
        "v₇add",
        "v₈log",
        "losssub",
    ]


def test_operands_out_of_view_are_updated_after_a_resize(opened):
    page = opened("neuron", 1280)
    player, out_of_view = page.locator(".minigrad-player"), page.locator(".minigrad-player .mg-away")
    player.evaluate("one => { one.style.display = 'none'; }")
    page.wait_for_timeout(100)
    for name in ("first", "forward"):
        page.locator(f".minigrad-player .key.{name}").dispatch_event("click")
    assert out_of_view.text_content() == "← w   ← x"
    player.evaluate("one => { one.style.display = ''; }")
    page.wait_for_timeout(100)
    assert out_of_view.text_content() == ""


def test_small_cards_grow_if_there_is_room(opened):
    assert measure_view(opened("cross_entropy", 830))["scale"] > 1.1


def test_a_graph_fits_until_the_user_zooms(opened):
    page = opened("neuron", 1280)
    for width in (700, 830):
        page.set_viewport_size({"width": width, "height": 900})
        assert measure_view(page)["all"]
    page.get_by_role("button", name="Zoom in").click()
    chosen = measure_view(page)["scale"]
    page.set_viewport_size({"width": 1280, "height": 900})
    assert measure_view(page)["scale"] == pytest.approx(chosen)


def test_view_follows_each_step(opened):
    page = opened("gpt", 400)
    page.get_by_role("button", name="Step forward").first.focus()
    for key in ["Home", *["ArrowRight"] * 4, "End", *["ArrowLeft"] * 2]:
        page.keyboard.press(key)
        assert measure_view(page)["inside"]


def test_fit_toggles_between_everything_and_the_current_item(opened):
    page = opened("gpt", 1200)
    fit = page.get_by_role("button", name="Fit")
    fit.click()
    fitted = measure_view(page)
    assert (fitted["all"], fitted["scale"] < 0.5) == (True, True)
    fit.click()
    back = measure_view(page)
    assert (back["scale"] >= MIN_SCALE, back["inside"]) == (True, True)


def test_keys_zoom_and_fit(opened):
    page = opened("gpt", 1200)
    page.get_by_role("button", name="Step forward").first.focus()
    before = measure_view(page)["scale"]
    page.keyboard.press("+")
    assert measure_view(page)["scale"] == pytest.approx(1.25 * before, rel=1e-3)
    page.keyboard.press("-")
    assert measure_view(page)["scale"] == pytest.approx(before, rel=1e-3)
    page.keyboard.press("0")
    assert measure_view(page)["all"]
    page.keyboard.press("0")
    assert measure_view(page)["inside"]


def test_a_call_that_raised_is_labelled_so(opened):
    page = opened("broken_model", 1200)
    assert page.locator(".say .words").inner_text().endswith("conv2d raised an error.")
    page.get_by_role("button", name="Alarms").click()
    page.locator("button.alarm").first.click()
    assert page.locator(".inspector dd").first.inner_text() == "raised an error"
    assert "computed" not in page.locator(".say [aria-live]").text_content()


def test_the_minimap_follows_the_width_of_the_player(opened):
    page = opened("gpt", 900)
    for width in (900, 700, 1000):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(60)
        visible, shown = page.evaluate(MEASURE_MINIMAP)
        assert visible < 0.95
        assert shown == pytest.approx(visible, abs=0.02)


# For each player of the page the items outside its viewport.
FIND_OUTSIDE = """
() => [...document.querySelectorAll(".minigrad-player")].map(({ shadowRoot: root }) => {
  const around = root.querySelector(".mg-view").getBoundingClientRect();
  const out = ({ left, right, top, bottom }) =>
    left < around.left - 1 || right > around.right + 1 || top < around.top - 1 || bottom > around.bottom + 1;
  const items = [...root.querySelectorAll(".item")];
  return items.filter((one) => out(one.getBoundingClientRect())).map((one) => one.dataset.id);
})
"""


# Steps through a graph; returns the positions at which the current node is outside the viewport, or an operand of
# it is neither in the viewport nor named below the drawing, with the missing nodes.
STEP_THROUGH = """
async ([text, width]) => {
  document.body.replaceChildren(document.body.appendChild(document.createElement("div")));
  const host = document.body.firstElementChild;
  host.style.width = `${width}px`;
  const data = JSON.parse(text);
  const player = minigrad.mount(host, data, { position: 0, expanded: data.blocks.map((_, k) => k) });
  const root = host.shadowRoot;
  const view = root.querySelector(".mg-view");
  const frame = () => new Promise(requestAnimationFrame);
  const missing = [];
  const seen = (node) => {
    const [box, around] = [root.querySelector(`[data-id=n${node}]`), view].map((one) => one.getBoundingClientRect());
    return box.left >= around.left - 1 && box.right <= around.right + 1 &&
      box.top >= around.top - 1 && box.bottom <= around.bottom + 1;
  };
  await frame();
  for (let last = -1; player.position > last; player.step(1)) {
    last = player.position;
    await frame();
    await frame();
    const { node, edge, kind } = player.moment();
    if (node < 0) continue;
    const { operand, result } = data.edges;
    const more = kind === "forward" ? operand.filter((_, k) => result[k] === node) : edge < 0 ? [] : [result[edge]];
    const away = root.querySelector(".mg-away").textContent;
    if (!seen(node)) missing.push([last, node]);
    if (!more.every(seen) && !away) missing.push([last, ...more]);
  }
  player.destroy();
  return missing;
}
"""


@pytest.mark.parametrize("start", range(0, 40 if NIGHTLY else 10, 5))
def test_the_node_of_each_step_is_in_view_with_its_operands(watched, start):
    page = watched(height=500)
    page.emulate_media(reduced_motion="reduce")
    page.set_content(f"<script>{script()}</script>")
    for seed in range(start, start + 5):
        graph = scalar_graph(seed)[0] if seed % 2 else tensor_graph(seed)
        width = [400, 700, 1280][seed % 3]
        assert page.evaluate(STEP_THROUGH, [Playback(graph).trace.json(full=True), width]) == [], (seed, width)


def figures_of(lesson):
    """Return the graphs of a stored lesson as its page shows them."""
    (path,) = NOTEBOOKS.glob(f"{lesson:02}_*.ipynb")
    cells = nbformat.read(path, as_version=4).cells
    outputs = [
        output.data.get("text/html", "") for cell in cells for output in cell.get("outputs", ()) if "data" in output
    ]
    return [html for html in map("".join, outputs) if "minigrad-trace" in html]


@pytest.mark.parametrize("width", [400, 700, 830, 1280])
def test_graphs_of_the_first_four_lessons_fit_at_every_width(watched, tmp_path, width):
    figures = [figure for lesson in (1, 2, 3, 4) for figure in figures_of(lesson)]
    assert len(figures) > 12
    path = tmp_path / "lessons.html"
    body = "\n".join(figures)
    path.write_text(f'<!doctype html><meta charset="utf-8">{body}<script>{script()}</script>', encoding="utf-8")
    page = watched(width=width)
    page.goto(path.as_uri())
    page.wait_for_timeout(300)
    outside = page.evaluate(FIND_OUTSIDE)
    assert len(outside) == len(figures)
    assert outside == [[]] * len(figures)
