"""The navigation sidebar, for `_templates/pages.html`.

The theme would build it from each page's table of contents, including all objects of the reference, and discard all but
the titles, which took a sixth of the build time.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from docutils import nodes
from markupsafe import Markup
from sphinx import addnodes
from sphinx.application import Sphinx

__all__ = ["setup"]


class Page(NamedTuple):
    """An entry of the sidebar."""

    title: Markup
    url: str
    is_current: bool
    contains_current: bool  # also for the current page


def add_navigation(app: Sphinx, pagename: str, _: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Add the parts of the book, each a caption and its pages, to a page's template context."""

    def parts_of_the_book() -> list[tuple[str, list[Page]]]:
        return [
            (part["caption"], [_page(app, name, pagename) for name in part["includefiles"]])
            for part in app.env.tocs[app.config.root_doc].findall(addnodes.toctree)
        ]

    context["parts_of_the_book"] = parts_of_the_book


def _page(app: Sphinx, name: str, current: str) -> Page:
    url = app.builder.get_relative_uri(current, name) or "#"
    return Page(_title(app, name), url, name == current, current in _descendants(app, name))


@cache
def _title(app: Sphinx, name: str) -> Markup:
    return Markup(app.builder.render_partial(app.env.titles[name])["title"])  # type: ignore[attr-defined]


@cache
def _descendants(app: Sphinx, name: str) -> frozenset[str]:
    """Return a page and all pages in its toctrees."""
    return frozenset({name}).union(*[_descendants(app, other) for other in app.env.toctree_includes.get(name, ())])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", add_navigation)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
