"""The built book: every page works from disk and from a server, with the network cut off."""

import os
from functools import cache
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from needs import PACKAGES, needs

AXE = PACKAGES / "axe-core" / "axe.min.js"
MAX_MEGABYTES = 40
PHONE_WIDTH = 400  # pixels, a phone


class Anchors(HTMLParser):
    """The links of a page, and the anchors in it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes_by_name = dict(attributes)
        self.names |= {attributes_by_name[key] for key in ("id", "name") if attributes_by_name.get(key)}
        self.links += [attributes_by_name[key] for key in ("href", "src") if attributes_by_name.get(key)]


def pages(site, sources=False):
    """Return every page; those of the source listing only if `sources`."""
    excluded = {"_static"} if sources else {"_static", "_modules"}
    return sorted(path for path in site.rglob("*.html") if not excluded & set(path.parts))


def graphs(path):
    return path.read_text(encoding="utf-8").count('class="minigrad-trace"')


RENDER_FORMULAS = """async () => {
    await window.MathJax?.startup?.promise;
    await window.MathJax?.startup?.document.lazyTypesetAll?.();
}"""


def open_page(page, path):
    """Open a page and wait until formulas are rendered and players have started."""
    page.goto(path if isinstance(path, str) else path.as_uri())
    page.wait_for_function("() => document.readyState === 'complete'")
    page.evaluate(RENDER_FORMULAS)
    return page


def test_the_lessons_have_pages(site):
    names = {path.relative_to(site).as_posix() for path in pages(site)}
    lessons = {"lessons/01_one_neuron.html", "lessons/18_inside_a_pytorch_model.html"}
    assert {"index.html", "pytorch.html", *lessons} <= names


def test_site_is_small(site):
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    assert size < MAX_MEGABYTES * 2**20


def test_every_link_resolves(site):
    anchors_by_page = {str(path): Anchors(path.read_text(encoding="utf-8")) for path in pages(site, sources=True)}
    is_file = cache(os.path.isfile)
    broken = []
    for path in anchors_by_page:
        for link in set(anchors_by_page[path].links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = os.path.normpath(f"{os.path.dirname(path)}/{unquote(parts.path)}") if parts.path else path
            anchors = anchors_by_page[target].names if target in anchors_by_page else None
            if not is_file(target) or (
                parts.fragment and anchors is not None and unquote(parts.fragment) not in anchors
            ):
                broken.append(f"{path}: {link}")
    assert broken == []


def test_nothing_is_loaded_from_the_network(site):
    for path in pages(site):
        text = path.read_text(encoding="utf-8")
        assert 'src="http' not in text, path
        assert not [line for line in text.splitlines() if "<link" in line and 'href="http' in line], path


RUN_AXE = "axe.run(document, {resultTypes: ['violations'], preload: false})"  # preload is not allowed from disk
STEP_PLAYERS = """async () => {
    const wait = (ms) => new Promise((done) => setTimeout(done, ms));
    const still = [];
    for (const figure of document.querySelectorAll("figure.minigrad:has(script[type='application/json'])")) {
        figure.scrollIntoView({block: "center"});
        let root = null;
        for (let k = 0; k < 600 && !root; k += 1) {
            root = figure.querySelector(".minigrad-player")?.shadowRoot?.querySelector(".count")?.getRootNode();
            if (!root) await wait(50);
        }
        const press = (name) => [...root.querySelectorAll("button")].find((one) =>
            (one.getAttribute("aria-label") ?? one.title).startsWith(name))?.click();
        if (!root) { still.push("no player"); continue; }
        press("First");
        const before = root.querySelector(".count").textContent;
        press("Step forward");
        const after = root.querySelector(".count").textContent;
        if (after === before) still.push(`${before} stays`);
        else still.push("");
    }
    return still;
}"""


SIDEBAR_POSITION = """() => {
    const {top, bottom} = document.querySelector(".bd-sidebar-primary a.current").getBoundingClientRect();
    return [top, bottom];
}"""


def axe_violations(page, path):
    """Return the violations that axe-core finds, a line for each rule."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    return [
        f"{path.name}: {one['id']}, {len(one['nodes'])} times: "
        + "; ".join(f"{node['target']} {node['html'][:120]}" for node in one["nodes"][:3])
        for one in page.evaluate(RUN_AXE)["violations"]
    ]


@pytest.mark.nightly
@pytest.mark.parametrize(("way", "theme"), [("file", "light"), ("http", "dark")])
def test_every_page_is_accessible_and_fits_a_phone(site, server, watched, way, theme):
    needs("npm packages")
    page = watched(servers=(server,) if way == "http" else (), color_scheme=theme)
    failures = []
    for path in pages(site):
        page.set_viewport_size({"width": 1200, "height": 900})
        open_page(page, path if way == "file" else f"http://{server}/{path.relative_to(site).as_posix()}")
        assert page.locator("h1").count() >= 1, path
        assert page.locator("mjx-merror").count() == 0, path
        failures += axe_violations(page, path)
        if way == "file":
            page.set_viewport_size({"width": PHONE_WIDTH, "height": 800})
            if (width := page.evaluate("document.documentElement.scrollWidth")) > PHONE_WIDTH:
                failures.append(f"{path.name}: {width} pixels wide")
    assert failures == []


def test_menus_work_on_a_phone(site, watched):
    page = watched(width=PHONE_WIDTH, height=800)
    open_page(page, site / "lessons" / "05_the_tape.html")
    page.locator(".bd-header-article .secondary-toggle").click()
    page.locator("#pst-secondary-sidebar-modal").get_by_role("link", name="Draw it").click()
    page.wait_for_function("() => location.hash === '#draw-it'")
    open_page(page, site / "lessons" / "05_the_tape.html")
    page.locator(".bd-header-article .primary-toggle").click()
    page.locator("#pst-primary-sidebar-modal").get_by_role("link", name="6 · Tensors").click()
    page.locator("article h1", has_text="6 · Tensors").wait_for()


def test_the_sidebar_shows_the_current_page(site, watched):
    page = watched(height=800)
    for name in (
        "index.html",
        "performance.html",
        "lessons/01_one_neuron.html",
    ):  # its sidebar keeps the scroll position
        open_page(page, site / name)
        if name != "index.html":
            top, bottom = page.evaluate(SIDEBAR_POSITION)
            assert 0 <= top < bottom <= 800, name


@pytest.mark.nightly
def test_every_graph_starts_and_steps(site, watched):
    page = watched()
    stepped = 0
    for path in pages(site):
        if graphs(path):
            open_page(page, path)
            results = page.evaluate(STEP_PLAYERS)
            assert results == [""] * graphs(path), path
            stepped += len(results)
    assert stepped > 100


def test_a_picture_with_gradients_starts_at_the_last_step(site, watched):
    page = watched()
    open_page(page, site / "lessons" / "01_one_neuron.html")
    drawn, stepped = (page.locator(".minigrad-player").nth(k) for k in (0, 1))
    drawn.scroll_into_view_if_needed()
    assert drawn.locator(".count").inner_text() == "9 / 9"
    assert stepped.locator(".count").inner_text() == "0 / 9"


@pytest.mark.parametrize("way", ["file", "http"])
def test_search_finds_broadcasting(site, server, watched, way):
    page = watched(servers=(server,) if way == "http" else ())
    start = (site / "search.html").as_uri() if way == "file" else f"http://{server}/search.html"
    page.goto(f"{start}?q=broadcasting")
    matches = page.locator("#search-results li a")
    matches.first.wait_for()
    assert [text for text in matches.all_inner_texts() if "Tensors" in text]
