"""Chromium without network access. A test fails if its page makes a request or logs an error to the console."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from needs import chromium, needs

__all__ = ["FLAGS", "Watch", "chrome", "page", "spare", "watched"]

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_LOCAL = {"file", "data", "blob", "about"}


@pytest.fixture(scope="session")
def chrome() -> Iterator[Any]:
    needs("chromium", "playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser
        browser.close()


class Watch:
    """A page with the external requests that it made and the errors that it logged."""

    def __init__(self, context: Any) -> None:
        self.page = context.new_page()
        self.page.set_default_timeout(180_000)
        self.page.on("request", self._hear)
        self.page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        context.route("**/*", lambda route: route.continue_() if self._is_local(route.request.url) else route.abort())
        self.begin()

    def begin(self, servers: tuple[str, ...] = (), complains: bool | None = False) -> None:
        """Clear the record for another test that reuses the page."""
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._servers = servers
        self.complains = complains

    def end(self) -> None:
        """Unload the page and keep its renderer process, which takes seconds to start on a slow machine."""
        self.page.unroute_all()
        self.page.goto("about:blank")

    def _is_local(self, url: str) -> bool:
        parts = urlsplit(url)
        return parts.scheme in _LOCAL or parts.netloc in self._servers

    def _hear(self, request: Any) -> None:
        if not self._is_local(request.url):
            self.requests.append(request.url)


@pytest.fixture(scope="session")
def spare(chrome: Any) -> dict[Any, list[Watch]]:
    """Unused pages, by the options that they were created with."""
    return defaultdict(list)


@pytest.fixture
def watched(chrome: Any, spare: dict[Any, list[Watch]]) -> Iterator[Any]:
    """Open pages: ``watched(width=…)``. Teardown fails if any of them made an external request or logged an error.

    A page may send requests to `servers` on this machine. With ``complains=True`` it must log an error; with
    None it may, since JupyterLab logs errors of its own.
    """
    used = []

    def make(
        width: int = 1200,
        height: int = 900,
        servers: tuple[str, ...] = (),
        complains: bool | None = False,
        **options: Any,
    ) -> Any:
        options.setdefault("reduced_motion", "reduce")
        kind = (bool(servers), *sorted(options.items()))
        watch = spare[kind].pop() if spare[kind] else Watch(chrome.new_context(offline=not servers, **options))
        used.append((kind, watch))
        watch.page.set_viewport_size({"width": width, "height": height})
        watch.begin(servers, complains)
        return watch.page

    yield make
    for kind, watch in used:
        watch.end()
        spare[kind].append(watch)
    assert [request for _, watch in used for request in watch.requests] == []
    for _, watch in used:
        assert watch.complains is None or bool(watch.complaints) == watch.complains, watch.complaints


@pytest.fixture
def page(watched: Any) -> Any:
    return watched()
