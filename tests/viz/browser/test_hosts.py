"""Saved notebooks in Chromium, as hosts without a kernel or without widgets show them; and a player in a frame."""

import re
from pathlib import Path

import pytest

from bundles import HTML, TEXT, make_bundles
from needs import needs

PAGE = Path(__file__).parents[3] / "book" / "places.md"

# Removes what GitHub removes from the HTML of a notebook: scripts, frames, styles, and all attributes but a few.
SANITIZE = """(html) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    for (const one of page.querySelectorAll("script, style, link, iframe, svg, input, button")) one.remove();
    const kept = new Set(["src", "alt", "width", "height", "title", "href", "colspan", "rowspan"]);
    for (const one of page.body.querySelectorAll("*"))
        for (const {name} of [...one.attributes]) if (!kept.has(name)) one.removeAttribute(name);
    return page.body.innerHTML;
}"""


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    return make_bundles(tmp_path_factory.mktemp("sweep"))


def notebook_page(html):
    return f"<!doctype html><title>A notebook</title><body style='margin:0'>{html}"


def assert_pictures(page, bundles):
    """Each object is a picture that loads, with a text alternative, and nothing else is visible but tables."""
    pictures = page.locator("figure > img")
    assert pictures.count() == len(bundles)
    for k in range(len(bundles)):
        pictures.nth(k).scroll_into_view_if_needed()
        natural, width, height = pictures.nth(k).evaluate("one => [one.naturalWidth, one.width, one.height]")
        assert natural > 200, list(bundles)[k]
        assert width > 200
        assert height > 50
        assert re.search("Graph of|Two runs|Sequential after|trials", pictures.nth(k).get_attribute("alt"))
    visible = page.locator("body").inner_text()
    assert "version" not in visible  # the trace, as JSON
    assert page.locator(".minigrad-player").count() == 0


def nbconvert(outputs):
    """Return the cells of a saved notebook with these outputs as HTML, as nbviewer converts it."""
    needs("nbformat", "jupyterlab")
    import nbconvert
    import nbformat

    display = [nbformat.v4.new_output("display_data", data) for data in outputs]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", outputs=[one]) for one in display])
    return nbconvert.HTMLExporter(template_name="basic").from_notebook_node(notebook)[0]


def test_nbviewer_shows_pictures_of_widgets_without_state(bundles, page):
    page.set_content(notebook_page(nbconvert(bundles.values())))
    assert_pictures(page, bundles)


def test_github_shows_pictures_without_scripts_styles_and_attributes(bundles, page):
    page.set_content(notebook_page(""))
    page.set_content(notebook_page(page.evaluate(SANITIZE, nbconvert(bundles.values()))))
    assert_pictures(page, bundles)


def test_a_host_without_widgets_shows_pictures(bundles, page):
    page.set_content(notebook_page("".join(bundle[HTML] for bundle in bundles.values())))
    assert_pictures(page, bundles)


def test_a_host_without_html_shows_the_text(bundles, page):
    page.set_content(notebook_page(nbconvert([{TEXT: bundle[TEXT]} for bundle in bundles.values()])))
    assert page.locator("pre", has_text="Graph of y = -4.0: 2 leaves, 2 operations.").count() == 4


def test_the_frame_of_the_page_is_a_player_without_widgets(page):
    """The lines of book/places.md, in a saved notebook: the player runs without a kernel and steps."""
    needs("IPython")
    import minigrad as mg

    code = re.search(r"```python\n(from html import escape\n.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
    a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
    *statements, shown = code.strip().splitlines()
    names = {"y": a * b + a}
    exec("\n".join(statements), names)
    html = eval(shown, names)._repr_html_()
    page.set_content(notebook_page(nbconvert([{HTML: html, TEXT: ""}])))
    frame = page.frame_locator("iframe")
    frame.locator(".count", has_text="2 / 7").wait_for()
    frame.get_by_role("button", name="Step forward").click()
    frame.locator(".count", has_text="3 / 7").wait_for()
    assert page.evaluate(SANITIZE, html).strip() == "<div></div>"  # GitHub shows nothing of it
