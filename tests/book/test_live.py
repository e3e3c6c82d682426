"""The first screen of the home page, and live lessons beside their text, in Chromium; the live site is a stub."""

import json
import re
from pathlib import Path

import pytest

from needs import LESSONS, PACKAGES, needs

ROOT = Path(__file__).parents[2]
AXE = PACKAGES / "axe-core" / "axe.min.js"
RUN_AXE = "axe.run(document, {resultTypes: ['violations'], preload: false, iframes: false})"
NOTEBOOKS = {path.stem: path for path in (ROOT / "notebooks").glob("[0-9]*.ipynb")}
SIZES = [(1280, 720), (400, 800)]  # a small laptop and a phone, in pixels
FIRST_GRAPH = ("a", "b", "c", "d = a · b", "v₄ = d + c", "y = v₄ · a")
PANEL = ".live-panel"
NODES_OF_THE_FIRST_GRAPH = """() => {
    const root = [...document.querySelectorAll(".minigrad-player")].map((one) => one.shadowRoot).find((one) => one);
    const box = (element) => element.getBoundingClientRect();
    const view = root.querySelector(".mg-view");
    const {left, top, right, bottom} = box(view);
    const nodes = [...view.querySelectorAll("[role=button]")];
    const named = nodes.map((one) => [one.getAttribute("aria-label").split(",")[0], box(one)]);
    return Object.fromEntries(named.map(([name, one]) => [name, {
        inView: one.left >= left && one.right <= right && one.top >= top && one.bottom <= bottom,
        onScreen: one.top >= 0 && one.bottom <= innerHeight,
    }]));
}"""

CODE_IS_FOCUSABLE = """() => [...document.querySelectorAll("pre")].every((one) =>
    one.scrollWidth <= one.clientWidth || one.tabIndex === 0)"""


def open_home(watched, address, size, **options):
    page = watched(*size, **options)
    page.goto(address)
    page.locator(".minigrad-player .mg-view [role=button]").first.wait_for()
    return page


@pytest.mark.parametrize("size", SIZES, ids=["laptop", "phone"])
@pytest.mark.parametrize("kind", ["plain", "live"])
def test_the_first_screen_shows_every_node_of_the_first_graph(site, live_site, watched, size, kind):
    page = open_home(watched, ((site if kind == "plain" else live_site) / "index.html").as_uri(), size)
    nodes = page.evaluate(NODES_OF_THE_FIRST_GRAPH)
    assert nodes == {name: {"inView": True, "onScreen": True} for name in FIRST_GRAPH}
    assert page.evaluate("document.documentElement.scrollWidth") == size[0]


@pytest.mark.parametrize("size", SIZES, ids=["laptop", "phone"])
def test_the_first_row_links_to_the_live_lesson_the_text_and_the_repository(live_site, watched, size):
    page = open_home(watched, (live_site / "index.html").as_uri(), size)
    row = page.locator("div.actions")
    links = {link.inner_text(): link.get_attribute("href") for link in row.get_by_role("link").all()}
    assert links == {
        "Run live": "lite/notebooks/index.html?path=01_one_neuron.ipynb",
        "Read lesson 1": "lessons/01_one_neuron.html",
        "Source": "https://example.org/ada/minigrad",
    }
    assert row.get_by_text("pip install '.[lab]'").is_visible()
    assert row.inner_text().endswith("in a clone; pip install 'seegrad[lab]' after the first release")


def test_a_book_without_a_live_site_or_repository_has_no_such_links(site):
    for page in ("index.html", "lessons/01_one_neuron.html", "lessons/18_inside_a_pytorch_model.html"):
        text = (site / page).read_text(encoding="utf-8")
        assert "notebooks/index.html" not in text
        assert "live.js" not in text
        assert "install minigrad" not in text
    home = (site / "index.html").read_text(encoding="utf-8")
    row = home.partition('<div class="actions">')[2].partition("</div>")[0]
    assert row.count("<a ") <= 2  # the lesson, and the repository where the clone has a remote


def test_each_lesson_has_a_button_or_a_reason():
    needs("sphinx")
    from lessons import NOT_LIVE, NOTEBOOK_LINK

    assert NOTEBOOK_LINK.startswith("{{live}}`{stem}` ")
    assert NOT_LIVE.keys() <= {name[:2] for name in NOTEBOOKS}
    assert LESSONS.keys() <= NOT_LIVE.keys()  # those that need other packages
    for name, path in NOTEBOOKS.items():
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        sources = {kind: [] for kind in ("code", "markdown")}
        for cell in cells:
            sources[cell["cell_type"]].append("".join(cell["source"]))
        explanation = NOT_LIVE.get(name[:2]) or "\n".join(sources["markdown"][:2])  # or at the top of the lesson
        for package, word in {"taichi": "Taichi", "torch": "PyTorch", "ray": "Ray"}.items():
            if f"import {package}" in "\n".join(sources["code"]):
                assert word in explanation, f"lesson {name} imports {package}"
                assert re.search(r"web\s+page|browsers", explanation)


def test_a_lesson_that_is_not_live_says_why(live_site):
    text = (live_site / "lessons" / "18_inside_a_pytorch_model.html").read_text(encoding="utf-8")
    assert "To run it, install minigrad: PyTorch has no build for browsers." in text
    assert 'class="action main live"' not in text


# --- the panel -------------------------------------------------------------------------------------------------------


@pytest.fixture
def lesson(live_server, watched):
    def open_one(width=1280, theme="light", page="lessons/01_one_neuron.html"):
        opened = watched(width, 800, servers=(live_server,), color_scheme=theme)
        opened.goto(f"http://{live_server}/{page}")
        opened.evaluate("sessionStorage.clear()")  # of the test that used the window before
        return opened

    return open_one


def run_live(page):
    return page.get_by_role("link", name="Run live")


def widths(page):
    """The widths of the article's part of the window and of the panel, in per cent of the window."""
    boxes = page.evaluate(
        "['body', '.live-panel'].map((one) => document.querySelector(one).getBoundingClientRect().width / innerWidth)"
    )
    return [round(100 * width) for width in boxes]


def test_a_live_lesson_opens_beside_the_text_and_closes(lesson):
    page = lesson()
    assert page.locator(PANEL).count() == 0  # nothing is loaded before it is asked for
    assert run_live(page).get_attribute("aria-expanded") == "false"
    run_live(page).click()
    frame = page.frame_locator(f"{PANEL} iframe")
    assert frame.locator("p").inner_text() == "01_one_neuron.ipynb"
    assert widths(page) == [50, 50]
    assert page.locator("article h1").is_visible()
    assert run_live(page).get_attribute("aria-expanded") == "true"
    frame.locator("p").evaluate("(element) => { element.textContent = 'changed'; }")
    run_live(page).click()
    assert page.locator(PANEL).is_hidden()
    assert page.evaluate("document.body.clientWidth") == 1280
    run_live(page).click()
    assert frame.locator("p").inner_text() == "changed"  # closing keeps the notebook's state


def test_the_panel_is_operated_by_keyboard(lesson):
    page = lesson()
    run_live(page).focus()
    page.keyboard.press("Enter")
    close = page.get_by_role("button", name="Close")
    assert close.evaluate("(one) => one === document.activeElement")
    handle = page.get_by_role("separator", name="Width of the live notebook")
    handle.focus()
    for key, width in {"ArrowLeft": 55, "ArrowRight": 50, "Home": 25, "End": 75}.items():
        page.keyboard.press(key)
        assert widths(page) == [100 - width, width], key
        assert handle.get_attribute("aria-valuenow") == str(width)
    page.keyboard.press("Escape")
    assert page.locator(PANEL).is_hidden()
    assert run_live(page).evaluate("(one) => one === document.activeElement")
    page.reload()
    page.keyboard.press("Tab")
    run_live(page).click()
    assert widths(page) == [25, 75]  # the width is remembered


def test_the_panel_is_resized_by_dragging(lesson):
    page = lesson()
    run_live(page).click()
    page.mouse.move(640, 400)
    page.mouse.down()
    page.mouse.move(900, 400, steps=4)  # over the notebook, which must not take the events
    page.mouse.up()
    page.mouse.move(500, 400)
    assert widths(page) == [70, 30]


def test_a_narrow_window_opens_another_tab(lesson):
    page = lesson(width=400)
    with page.context.expect_page() as opened:
        run_live(page).click()
    assert opened.value.url.endswith("/lite/notebooks/index.html?path=01_one_neuron.ipynb")
    opened.value.close()
    assert page.locator(PANEL).count() == 0
    page.set_viewport_size({"width": 1280, "height": 800})
    run_live(page).click()
    assert page.locator(PANEL).is_visible()
    page.set_viewport_size({"width": 400, "height": 800})
    page.locator(PANEL).wait_for(state="hidden")


def test_run_live_on_the_home_page_opens_lesson_1_with_its_panel(lesson):
    page = lesson(page="index.html")
    run_live(page).click()
    page.wait_for_url("**/lessons/01_one_neuron.html#live")
    assert page.frame_locator(f"{PANEL} iframe").locator("p").inner_text() == "01_one_neuron.ipynb"


def test_from_disk_the_link_says_how_to_serve_the_book(live_site, watched):
    page = watched(1280, 800)
    page.goto((live_site / "lessons" / "01_one_neuron.html").as_uri())
    for _ in range(2):
        run_live(page).click()
    assert page.locator(PANEL).count() == 0
    note = page.locator(".live-note")
    assert note.count() == 1
    assert note.inner_text().startswith(
        "Browsers run Python only in pages that come from a server. In the folder of this"
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_buttons_and_the_panel_are_accessible(lesson, theme):
    needs("npm packages")
    page = lesson(theme=theme)
    run_live(page).click()
    page.frame_locator(f"{PANEL} iframe").locator("p").wait_for()
    for address in ("", "index.html"):
        if address:
            page.goto(page.url.replace("lessons/01_one_neuron.html", address))
        page.wait_for_function(CODE_IS_FOCUSABLE)
        page.evaluate(AXE.read_text(encoding="utf-8"))
        violations = page.evaluate(RUN_AXE)["violations"]
        assert [(one["id"], one["nodes"][0]["html"][:200]) for one in violations] == []
