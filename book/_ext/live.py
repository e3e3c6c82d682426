"""Links to the live lessons, which run in a page of JupyterLite below the book, and the first row of the home page.

`lite_url` is the address of the JupyterLite site, relative to the book's home page or absolute; the environment
variable MINIGRAD_LITE sets it. Without either it is ``lite/`` if the output folder has such a site, and otherwise
empty: then no page has a link to a live lesson. `repository` is the address of the repository (`repository.py`).
"""

from __future__ import annotations

import os
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from docutils import nodes
from repository import find_repository
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective, SphinxRole
from sphinx.util.osutil import relative_uri

from lessons import NOT_LIVE

__all__ = ["live_address", "setup"]

ROOT = Path(__file__).resolve().parents[2]
SITE = "lite/"
FIRST_LESSON = "01_one_neuron"
HOME = "index"


class LiveLink(nodes.General, nodes.Inline, nodes.Element):
    """The button that runs a lesson, or the reason that there is none."""


class Actions(nodes.General, nodes.Element):
    """The first row of the home page: links to the first lesson and to the repository, and how to install."""


def live_address(lite_url: str, page: str, lesson: str) -> str:
    """Return the address of a live lesson for a link on `page`, a path without its extension.

    >>> live_address("lite/", "lessons/01_one_neuron", "01_one_neuron")
    '../lite/notebooks/index.html?path=01_one_neuron.ipynb'
    """
    notebook = f"{lite_url.rstrip('/')}/notebooks/index.html?path={quote(lesson)}.ipynb"
    return notebook if urlsplit(lite_url).scheme else relative_uri(f"{page}.html", notebook)


class LiveRole(SphinxRole):
    """``{live}`LESSON` ``: the button of a lesson, by the name of its notebook."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        return [LiveLink(lesson=self.text)], []


class ActionsDirective(SphinxDirective):
    """The first row of the home page. The content of the directive says how to install."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        return [Actions("", *self.parse_content_to_nodes())]


def visit_live_link(self: Any, node: nodes.Element) -> None:
    lesson, lite_url = node["lesson"], self.config.lite_url
    if lite_url and (reason := NOT_LIVE.get(lesson[:2])):
        self.body.append(f'<span class="not-live">To run it, install minigrad: {escape(reason)}</span>')
    elif lite_url:
        address = live_address(lite_url, self.builder.current_docname, lesson)
        self.body.append(
            _link("action main live", address, "Run live", 'target="_blank" title="Run this lesson in this browser"')
        )
    raise nodes.SkipNode


def visit_actions(self: Any, node: nodes.Element) -> None:
    lite_url, repository = self.config.lite_url, self.config.repository
    lesson = f"lessons/{FIRST_LESSON}"
    page = self.builder.get_relative_uri(self.builder.current_docname, lesson)
    links = [_link(f"action{' main' if not lite_url else ''}", page, "Read lesson 1")]
    if lite_url:
        address = live_address(lite_url, self.builder.current_docname, FIRST_LESSON)
        attributes = f'target="_blank" title="Run lesson 1 in this browser" data-beside="{page}#live"'
        links.insert(0, _link("action main live", address, "Run live", attributes))
    if repository:
        links.append(_link("action", repository, "Source"))
    self.body.append(f'<div class="actions">{"".join(links)}<div class="install">')


def depart_actions(self: Any, node: nodes.Element) -> None:
    self.body.append("</div></div>")


def _link(classes: str, address: str, text: str, attributes: str = "") -> str:
    return f'<a class="{classes}" href="{escape(address)}"{attributes and " " + attributes}>{text}</a>'


def resolve_settings(app: Sphinx, config: Any) -> None:
    """Set the values of `lite_url` and `repository` that nobody has set."""
    if config.lite_url is None:
        config.lite_url = os.environ.get("MINIGRAD_LITE")
    if config.lite_url is None:
        config.lite_url = SITE if Path(app.outdir, SITE, "notebooks", "index.html").is_file() else ""
    if config.repository is None:
        try:
            config.repository = find_repository(os.environ, ROOT)
        except ValueError as error:
            raise ExtensionError(str(error)) from None


def add_script(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Load the script only on pages that link to a live lesson."""
    if 'class="action main live"' in context.get("body", ""):
        app.add_js_file("live.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("lite_url", None, "html", [str])
    app.add_config_value("repository", None, "html", [str])
    app.add_node(LiveLink, html=(visit_live_link, None))
    app.add_node(Actions, html=(visit_actions, depart_actions))
    app.add_role("live", LiveRole())
    app.add_directive("actions", ActionsDirective)
    app.connect("config-inited", resolve_settings)
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
