"""Accessibility of the player: axe-core finds no violation, and text has enough contrast."""

import pytest

import minigrad as mg
import sample_graphs
from minigrad_viz import compare, to_html, watch
from needs import PACKAGES, needs
from tiers import NIGHTLY, choose_cases, cross

AXE = PACKAGES / "axe-core" / "axe.min.js"
PANELS = {"predict": "p", "what-if": "w", "table": "t", "stops": "s", "alarms": "a", "search": "/", "help": "?"}
THEMES = ["light", "dark"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The exported page of a sample graph, by name."""
    folder = tmp_path_factory.mktemp("pages")

    def file_uri(name):
        path = folder / f"{name}.html"
        if not path.exists():
            path.write_text(to_html(getattr(sample_graphs, name)()), encoding="utf-8")
        return path.as_uri()

    return file_uri


def open_page(page, address):
    needs("npm packages")
    page.goto(address)
    button = page.get_by_role("button", name="Step forward").first
    button.wait_for()
    button.focus()
    page.wait_for_timeout(200)
    return page


def axe_violations(page, context="document"):
    """Return every violation that axe-core finds; in `make nightly` also colour contrast in the dark theme, which other
    tests below cover in part.
    """
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    violations = page.evaluate(f"axe.run({context}, {{resultTypes: ['violations']}})")["violations"]
    if NIGHTLY:
        page.emulate_media(color_scheme="dark")
        only = "{runOnly: ['color-contrast'], resultTypes: ['violations']}"
        violations += page.evaluate(f"axe.run('.minigrad-player', {only})")["violations"]
        page.emulate_media(color_scheme="light")
    return [
        f"{one['id']}: {node['target']} {node['html'][:160]} {node['failureSummary'][:200]}"
        for one in violations
        for node in one["nodes"]
    ]


def two_runs():
    def run(c):
        with mg.record():
            w = mg.tensor([[0.5, -1.0], [2.0, c]], requires_grad=True)
            return (w @ mg.tensor([1.0, 3.0])).tanh().sum()

    return compare(run(0.25), run(0.5))


def watched_training():
    model, x = mg.nn.Sequential(mg.nn.Linear(2, 4), mg.nn.ReLU(), mg.nn.Linear(4, 1)), mg.ones(8, 2)
    with mg.no_grad():
        model[0].bias[:] = -10.0
    with watch(model) as watch_:
        for _ in range(3):
            loss = model(x).sum()
            loss.backward()
            watch_.log(loss)
    return watch_


@pytest.mark.parametrize("make", [two_runs, watched_training])
@pytest.mark.parametrize("theme", THEMES)
def test_pages_without_a_player_are_accessible(page, tmp_path, make, theme):
    needs("npm packages")
    make().save(tmp_path / "page.html")
    page.emulate_media(color_scheme=theme)
    page.goto((tmp_path / "page.html").as_uri())
    page.evaluate(AXE.read_text(encoding="utf-8"))
    violations = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    assert [(one["id"], [node["html"][:160] for node in one["nodes"]]) for one in violations] == []


@pytest.mark.parametrize("graph", ["not_a_number", *["scalars", "transformer"] * NIGHTLY])
def test_every_position_is_accessible(page, pages, graph):
    open_page(page, pages(graph))
    for keys in (["Home"], ["."], ["End"]):
        for key in keys:
            page.keyboard.press(key)
        page.wait_for_timeout(50)
        assert axe_violations(page) == []


def test_every_panel_is_accessible(page, pages):
    open_page(page, pages("not_a_number"))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    for name, key in choose_cases(list(PANELS.items()), "panels", 3):
        page.get_by_role("button", name="Step forward").first.focus()
        page.keyboard.press(key)
        page.wait_for_timeout(50)
        assert (name, axe_violations(page)) == (name, [])
        page.keyboard.press("Escape")


@pytest.mark.nightly
def test_sliders_and_closed_blocks_are_accessible(page, pages):
    open_page(page, pages("scalars")).keyboard.press("w")
    assert axe_violations(page) == []
    open_page(page, pages("transformer"))
    page.get_by_role("button", name="Collapse all blocks").click()
    assert axe_violations(page) == []


@pytest.mark.nightly
def test_the_canvas_of_a_large_graph_is_accessible(page, pages):
    open_page(page, pages("large"))
    page.get_by_role("button", name="Expand all blocks").click()
    assert axe_violations(page, "'.minigrad-player'") == []
    page.get_by_role("button", name="Fit").click()
    page.locator(".place canvas").wait_for()
    assert axe_violations(page, "'.minigrad-player'") == []


# The contrast of each text with its background, in WCAG's measure. A text of a drawing has as background the last
# shape below it that contains its centre; any other text the nearest painted ancestor.
CONTRASTS = """
root => {
  const rgba = text => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const over = (top, low) => {
    const a = top[3] ?? 1;
    return [0, 1, 2].map(k => top[k] * a + low[k] * (1 - a));
  };
  const light = c => [0.2126, 0.7152, 0.0722].reduce((sum, weight, k) => {
    const x = c[k] / 255;
    return sum + weight * (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
  }, 0);
  const ratio = (a, b) => {
    const [x, y] = [light(a), light(b)];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };
  const shown = e => e.checkVisibility({visibilityProperty: true}) && e.getClientRects().length;
  const ground = e => {
    if (!e) return [255, 255, 255];
    const own = rgba(getComputedStyle(e).backgroundColor);
    const up = e.parentElement ?? (e.getRootNode().host || null);
    return (own[3] ?? 1) === 1 ? own : over(own, ground(up));
  };
  const all = [];
  for (const text of root.querySelectorAll("svg.mg-drawing text")) {
    for (const part of text.children.length ? [...text.childNodes] : [text]) {
      const e = part.nodeType === 1 ? part : text;
      if (!part.textContent.trim() || !shown(e)) continue;
      const box = text.getBoundingClientRect();
      const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
      let below = ground(root.querySelector(".mg-view"));
      for (const shape of root.querySelectorAll("svg.mg-drawing :is(rect, path, circle, text)")) {
        if (shape === text && shape.ownerSVGElement === text.ownerSVGElement) break;
        const style = getComputedStyle(shape);
        if (shape.localName === "text" || style.fill === "none" || !shown(shape)) continue;
        const at = new DOMPoint(x, y).matrixTransform(shape.getScreenCTM().inverse());
        if (!shape.isPointInFill(at)) continue;
        const colour = rgba(style.fill);
        below = over([...colour.slice(0, 3), (colour[3] ?? 1) * Number(style.fillOpacity)], below);
      }
      all.push([part.textContent, ratio(over(rgba(getComputedStyle(e).fill), below), below)]);
    }
  }
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const e = node.parentElement;
    const skip = !e || !node.data.trim() || e.closest("svg, style, .aria, .mg-said, [aria-disabled=true]");
    if (skip || !shown(e)) continue;
    const below = ground(e);
    all.push([node.data, ratio(over(rgba(getComputedStyle(e).color), below), below)]);
  }
  return all;
}
"""


@cross(1, theme=choose_cases(THEMES, "texts", 1), graph=["scalars", "mlp", "not_a_number"])
def test_each_text_has_enough_contrast(watched, pages, graph, theme):
    page = open_page(watched(color_scheme=theme), pages(graph))
    root = page.locator(".app").first
    for key in ["Home", ".", ".", "End", "t", "a", "w", "p"]:
        page.keyboard.press(key)
        page.wait_for_timeout(700 if key in (".", "End") else 50)  # until the animation of a value ends
        ratios = root.evaluate(CONTRASTS)
        assert len(ratios) > 20
        assert [(key, text, round(ratio, 2)) for text, ratio in ratios if ratio < 4.5] == []
