"""Chromium, cut off from the network. A page that asks for anything, or complains in its console, fails its test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tools import chromium, need

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chrome() -> Iterator[Any]:
    need("chromium", "playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser
        browser.close()


class Watch:
    """What a page asked for from elsewhere, and what it complained about."""

    def __init__(self, page: Any, *servers: str) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._servers = servers
        page.on("request", self._hear)
        page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.route("**/*", lambda route: route.continue_() if self._is_local(route.request.url) else route.abort())

    def _is_local(self, url: str) -> bool:
        parts = urlsplit(url)
        return parts.scheme in _LOCAL or parts.netloc in self._servers

    def _hear(self, request: Any) -> None:
        if not self._is_local(request.url):
            self.requests.append(request.url)


@pytest.fixture(scope="module")
def lasting_page(chrome: Any) -> Iterator[Any]:
    """One page for all tests of a module, where nothing moves by itself. It may ask for nothing, nor complain."""
    context = chrome.new_context(viewport={"width": 1200, "height": 900}, offline=True, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(20_000)
    watch = Watch(page)
    yield page
    context.close()
    assert (watch.requests, watch.complaints) == ([], [])


@pytest.fixture
def watched(chrome: Any) -> Iterator[Any]:
    """Makes pages: ``watched(width=…)``. At the end none of them may have asked for anything or complained.

    `servers` on this machine may be asked; a page that `complains` is meant to, and None stands for one that
    may: JupyterLab logs errors of its own.
    """
    contexts, watches = [], []

    def make(
        width: int = 1200,
        height: int = 900,
        servers: tuple[str, ...] = (),
        complains: bool | None = False,
        **options: Any,
    ) -> Any:
        context = chrome.new_context(viewport={"width": width, "height": height}, offline=not servers, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        watches.append((Watch(page, *servers), complains))
        return page

    yield make
    for context in contexts:
        context.close()
    assert [request for watch, _ in watches for request in watch.requests] == []
    for watch, complains in watches:
        assert complains is None or bool(watch.complaints) == complains, watch.complaints


@pytest.fixture
def page(watched: Any) -> Any:
    return watched()
