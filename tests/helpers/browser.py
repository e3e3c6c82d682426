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
_LOCAL_SCHEMES = {"file", "data", "blob", "about"}


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
        self.page.on("request", self._record_request)
        self.page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        context.route("**/*", lambda route: route.continue_() if self._is_local(route.request.url) else route.abort())
        self.reset()

    def reset(self, servers: tuple[str, ...] = (), expects_errors: bool | None = False) -> None:
        """Clear the record for another test that reuses the page."""
        self.requests: list[str] = []
        self.errors: list[str] = []
        self._servers = servers
        self.expects_errors = expects_errors

    def unload(self) -> None:
        """Unload the page and keep its renderer process, which takes seconds to start on a slow machine."""
        self.page.unroute_all()
        self.page.goto("about:blank")

    def _is_local(self, url: str) -> bool:
        parts = urlsplit(url)
        return parts.scheme in _LOCAL_SCHEMES or parts.netloc in self._servers

    def _record_request(self, request: Any) -> None:
        if not self._is_local(request.url):
            self.requests.append(request.url)


@pytest.fixture(scope="session")
def spare(chrome: Any) -> dict[Any, list[Watch]]:
    """Unused pages, by the options that they were created with."""
    return defaultdict(list)


@pytest.fixture
def watched(chrome: Any, spare: dict[Any, list[Watch]]) -> Iterator[Any]:
    """Open pages: ``watched(width=…)``. Teardown fails if any of them made an external request or logged an error.

    A page may send requests to `servers` on this machine. With ``expects_errors=True`` it must log an error; with
    None it may, since JupyterLab logs errors of its own.
    """
    opened = []

    def open_one(
        width: int = 1200,
        height: int = 900,
        servers: tuple[str, ...] = (),
        expects_errors: bool | None = False,
        **options: Any,
    ) -> Any:
        options.setdefault("reduced_motion", "reduce")
        kind = (bool(servers), *sorted(options.items()))
        monitored = spare[kind].pop() if spare[kind] else Watch(chrome.new_context(offline=not servers, **options))
        opened.append((kind, monitored))
        monitored.page.set_viewport_size({"width": width, "height": height})
        monitored.reset(servers, expects_errors)
        return monitored.page

    yield open_one
    for key, monitored in opened:
        monitored.unload()
        spare[key].append(monitored)
    assert [request for _, watch in opened for request in watch.requests] == []
    for _, monitored in opened:
        assert monitored.expects_errors is None or bool(monitored.errors) == monitored.expects_errors, monitored.errors


@pytest.fixture
def page(watched: Any) -> Any:
    return watched()
