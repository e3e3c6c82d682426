"""Open pages with hostile strings in a browser, and use them as a user would."""

from __future__ import annotations

import atexit
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["check_page"]

_FIND_MARKUP = """
() => {
  const found = [];
  const foreign = /^(iframe|object|embed|base|foreignobject|animate|set|use|link|a)$/i;
  const elsewhere = /^\\s*(javascript|https?|data:text)/i;
  const visit = (root) => {
    for (const one of root.querySelectorAll("*")) {
      if (foreign.test(one.localName)) found.push(one.localName);
      for (const { name, value } of one.attributes) {
        if (name.startsWith("on") || (/href|src|action/.test(name) && elsewhere.test(value))) {
          found.push(`${one.localName} ${name}=${value.slice(0, 80)}`);
        }
      }
      if (one.shadowRoot) visit(one.shadowRoot);
    }
  };
  visit(document);
  return found;
}
"""
_PANELS = ("What if", "Table", "Breakpoints", "Alarms", "Search")


@cache
def _browser() -> Any:
    """Return the one browser context for all cases of this process."""
    from playwright.sync_api import sync_playwright

    from browser import FLAGS
    from needs import chromium

    playwright = sync_playwright().start()
    browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
    atexit.register(lambda: (browser.close(), playwright.stop()))
    return browser.new_context(offline=True, reduced_motion="reduce")


@cache
def _monitored_page() -> Any:
    from browser import Watch

    return Watch(_browser())


def check_page(drawing: Any, player: Any, scripts: int) -> str | None:
    """Return what is wrong with a drawing's exported page, or with its widget if there is a player; else None."""
    from widget_page import show_widget

    monitored = _monitored_page()
    monitored.begin()
    page, dialogs = monitored.page, []
    page.once("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    with tempfile.TemporaryDirectory() as folder:
        if player is None:
            drawing.save(Path(folder) / "y.html")
            page.goto((Path(folder) / "y.html").as_uri())
        else:
            show_widget(page, player)
        _use_page(page)
        ran, foreign = page.evaluate("globalThis.__ran"), page.evaluate(_FIND_MARKUP)
        script_count = page.locator("script").count()
        monitored.end()
    wrong = {
        "ran": ran,
        "a dialog": dialogs,
        "asked for": monitored.requests,
        "complained": monitored.errors,
        "is": foreign,
    }
    wrong |= {"scripts": script_count} if script_count != scripts else {}
    problems = [f"{key}: {problem!r:.300}" for key, problem in wrong.items() if problem]
    return ", ".join(problems) or None


def _use_page(page: Any) -> None:
    """Open each panel, search, step, and hover over what responds to the pointer."""
    for name in _PANELS:
        button = page.get_by_role("button", name=name).first
        if button.count():
            button.click()
    page.keyboard.type("<script>")
    page.keyboard.press("Escape")
    for name in ("Step forward", "Last"):
        button = page.get_by_role("button", name=name).first
        if button.count() and button.is_enabled():
            button.click()
    for node in page.locator(".minigrad-player [role=button], .minigrad-player g.node").all()[:3]:
        if node.is_visible():
            node.hover(force=True)
