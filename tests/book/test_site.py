"""The book as readers have it: every page by itself, from disk and from a server, with the network cut off."""

import functools
import http.server
import threading
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from tools import PACKAGES, need

AXE = PACKAGES / "axe-core" / "axe.min.js"
MEGABYTES = 40
NARROW = 400  # pixels, a phone
NOT_PAGES = {"search.html", "genindex.html"}  # lists that are written by Sphinx


class Anchors(HTMLParser):
    """Where a page leads, and what can be led to in it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.names |= {found[key] for key in ("id", "name") if found.get(key)}
        self.links += [found[key] for key in ("href", "src") if found.get(key)]


def pages(site):
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def graphs(path):
    return path.read_text(encoding="utf-8").count('class="minigrad-trace"')


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server(site):
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"127.0.0.1:{running.server_port}"
        running.shutdown()


def opened(page, path):
    """A page whose formulas are set and whose players have started."""
    page.goto(path if isinstance(path, str) else path.as_uri())
    page.wait_for_function("() => document.readyState === 'complete'")
    page.evaluate("() => window.MathJax?.startup?.promise")
    return page


def test_there_are_pages_for_the_lessons(site):
    names = {path.relative_to(site).as_posix() for path in pages(site)}
    assert {"index.html", "pytorch.html", "lessons/01_one_neuron.html", "lessons/16_beyond_first_order.html"} <= names


def test_site_is_small(site):
    taken = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    assert taken < MEGABYTES * 2**20


def test_every_link_leads_somewhere(site):
    found = {path: Anchors(path.read_text(encoding="utf-8")) for path in pages(site)}
    lost = []
    for path, anchors in found.items():
        for link in anchors.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = found[target].names if target in found else None
            if not target.is_file() or (parts.fragment and known is not None and unquote(parts.fragment) not in known):
                lost.append(f"{path.relative_to(site)}: {link}")
    assert lost == []


def test_nothing_is_loaded_from_elsewhere(site):
    for path in pages(site):
        text = path.read_text(encoding="utf-8")
        assert 'src="http' not in text, path
        assert not [line for line in text.splitlines() if "<link" in line and 'href="http' in line], path


@pytest.mark.parametrize("way", ["file", "http"])
def test_every_page_opens_without_a_complaint(site, server, watched, way):
    page = watched(servers=(server,) if way == "http" else ())
    for path in pages(site):
        opened(page, path if way == "file" else f"http://{server}/{path.relative_to(site).as_posix()}")
        assert page.locator("h1").count() >= 1, path
        assert page.locator("mjx-merror").count() == 0, path


def test_every_graph_starts_and_steps(site, watched):
    page = watched()
    stepped = 0
    for path in pages(site):
        if graphs(path):
            opened(page, path)
            for k in range(graphs(path)):
                figure = page.locator("figure.minigrad:has(script.minigrad-trace)").nth(k)
                figure.scroll_into_view_if_needed()
                step = figure.get_by_role("button", name="Step forward")
                step.wait_for()
                first = figure.get_by_role("button", name="First")
                if step.is_disabled() or step.get_attribute("aria-disabled") == "true":
                    first.click()
                before = figure.locator(".minigrad-player").evaluate(COUNT)
                step.click()
                assert figure.locator(".minigrad-player").evaluate(COUNT) != before, (path, k)
                stepped += 1
    assert stepped > 30


COUNT = "host => host.shadowRoot.querySelector('.count')?.textContent"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(site, watched, theme):
    need("npm packages")
    page = watched(color_scheme=theme)
    faults = []
    for path in pages(site):
        opened(page, path)
        page.evaluate(AXE.read_text(encoding="utf-8"))
        for one in page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]:
            targets = [f"{node['target']} {node['html'][:120]}" for node in one["nodes"][:3]]
            faults.append(f"{path.relative_to(site)}: {one['id']}, {len(one['nodes'])} times: {targets}")
    assert faults == []


def test_no_page_is_wider_than_a_phone(site, watched):
    page = watched(width=NARROW, height=800)
    wide = []
    for path in pages(site):
        opened(page, path)
        if (width := page.evaluate("document.documentElement.scrollWidth")) > NARROW:
            wide.append(f"{path.relative_to(site)}: {width}")
    assert wide == []


@pytest.mark.parametrize("way", ["file", "http"])
def test_search_finds_broadcasting(site, server, watched, way):
    page = watched(servers=(server,) if way == "http" else ())
    start = (site / "search.html").as_uri() if way == "file" else f"http://{server}/search.html"
    page.goto(f"{start}?q=broadcasting")
    found = page.locator("#search-results li a")
    found.first.wait_for()
    assert [text for text in found.all_inner_texts() if "Tensors" in text]
