"""An exported page: one file, usable by mouse and keyboard, without network requests, and readable without scripts."""

from dataclasses import replace

import pytest

import minigrad as mg
from minigrad_viz import Drawing, export, step
from minigrad_viz.pictures.frontend import script
from minigrad_viz.pictures.html import figure
from minigrad_viz.trace import TourStop, to_trace


def small():
    a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
    c = a * b
    c.label = "c"
    y = c + a
    y.label = "y"
    return y


def open_page(page, path):
    page.goto(path.as_uri())
    page.get_by_role("button", name="Step forward").first.wait_for()
    return page


def position_of(page):
    """Return the player's position, as "2 / 7"."""
    return page.locator(".count").first.inner_text()


def test_page_steps_by_click(page, tmp_path):
    export(small(), tmp_path / "y.html")
    open_page(page, tmp_path / "y.html")
    assert position_of(page) == "2 / 7"  # after the forward pass; the seed and four contributions follow
    page.get_by_role("button", name="Step forward").click()
    assert position_of(page) == "3 / 7"
    page.get_by_role("button", name="Step back").click()
    page.get_by_role("button", name="Step back").click()
    assert position_of(page) == "1 / 7"
    page.get_by_role("button", name="Last").click()
    assert position_of(page) == "7 / 7"


def test_the_url_fragment_selects_a_step(page, tmp_path):
    export(small(), tmp_path / "y.html")
    page.goto(f"{(tmp_path / 'y.html').as_uri()}#step=5")
    page.get_by_role("button", name="Step forward").first.wait_for()
    assert position_of(page) == "5 / 7"
    page.evaluate("location.hash = 'step=4'")
    page.locator(".count", has_text="4 / 7").wait_for()
    page.evaluate("location.hash = 'step=400'")
    page.locator(".count", has_text="7 / 7").wait_for()


def test_the_page_is_usable_by_keyboard(page, tmp_path):
    export(small(), tmp_path / "y.html")
    open_page(page, tmp_path / "y.html")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.shadowRoot?.activeElement?.matches('button, input')"):
            break
    page.keyboard.press("Home")
    assert position_of(page) == "0 / 7"
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    assert position_of(page) == "4 / 7"
    page.keyboard.press("ArrowLeft")
    assert position_of(page) == "3 / 7"
    page.keyboard.press("End")
    assert position_of(page) == "7 / 7"


def test_a_page_exported_from_a_player_keeps_its_state(page, tmp_path):
    export(step(small(), position=5, values={"a": 3.0}), tmp_path / "y.html")
    open_page(page, tmp_path / "y.html")
    assert position_of(page) == "5 / 7"
    page.get_by_role("button", name="What if").click()
    assert page.get_by_role("spinbutton", name="a, exact value").input_value() == "3"


def test_the_caption_of_a_tour_follows_manual_steps(page, tmp_path):
    y = small()
    trace = replace(to_trace(y), tours=[TourStop(2, "one"), TourStop(4, "two")])
    (tmp_path / "y.html").write_text(Drawing(trace).html(), encoding="utf-8")
    open_page(page, tmp_path / "y.html")
    caption = page.locator(".caption")
    assert caption.inner_text() == "one"
    page.get_by_role("button", name="Step forward").click()
    assert caption.inner_text() == "one"
    assert "dim" in caption.get_attribute("class")
    page.get_by_role("button", name="Step forward").click()
    assert caption.inner_text() == "two"
    assert "dim" not in caption.get_attribute("class")


@pytest.mark.parametrize(("position", "caption", "dim"), [(4, "two", False), (5, "one", True)])
def test_a_tour_starts_at_the_given_position(page, tmp_path, position, caption, dim):
    trace = replace(to_trace(small()), tours=[TourStop(2, "one"), TourStop(4, "two")])
    (tmp_path / "y.html").write_text(Drawing(trace, {"position": position}).html(), encoding="utf-8")
    open_page(page, tmp_path / "y.html")
    assert position_of(page) == f"{position} / 7"
    assert page.locator(".caption").inner_text() == caption
    assert ("dim" in page.locator(".caption").get_attribute("class")) is dim


def test_the_player_announces_each_step(page, tmp_path):
    export(small(), tmp_path / "y.html")
    open_page(page, tmp_path / "y.html")
    page.get_by_role("button", name="Last").click()
    live_region = page.locator("[aria-live]").first
    page.wait_for_function("text => text.length > 0", arg=live_region.inner_text())
    assert "a" in live_region.inner_text()


def test_page_without_scripts_shows_the_picture_and_the_tables(watched, tmp_path):
    export(small(), tmp_path / "y.html")
    page = watched(java_script_enabled=False)
    page.goto((tmp_path / "y.html").as_uri())
    assert page.locator("figure.minigrad svg").first.is_visible()
    assert page.get_by_role("table").first.is_visible()


def test_the_player_replaces_the_picture_on_screen_but_not_in_print(page, tmp_path):
    export(small(), tmp_path / "y.html")
    open_page(page, tmp_path / "y.html")
    assert not page.locator("figure > .zoom").is_visible()
    page.emulate_media(media="print")
    assert page.locator("figure > .zoom").is_visible()
    assert not page.locator(".minigrad-player").is_visible()
    page.emulate_media(media="null")


def test_hostile_names_are_escaped(page, tmp_path):
    a = mg.Value(2.0, "</script><img src=x onerror=alert(1)>")
    export(a * a, tmp_path / "y.html")
    open_page(page, tmp_path / "y.html")
    page.get_by_role("button", name="Last").click()
    assert page.locator("img").count() == 0


def test_figures_of_a_notebook_become_players_by_the_classic_script(page, tmp_path):
    """As in the book: outputs of cells, and one script for the entire page, opened from disk."""
    figures = figure(to_trace(small())) + figure(to_trace(mg.Value(1.0, "x").exp()))
    (tmp_path / "minigrad.js").write_text(script(), encoding="utf-8")
    text = f'<!doctype html><meta charset="utf-8"><title>A page</title>{figures}<script src="minigrad.js"></script>'
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    open_page(page, tmp_path / "page.html")
    assert page.locator(".minigrad-player").count() == 2
    assert not page.locator("img").first.is_visible()
    page.get_by_role("button", name="Step forward").nth(1).click()
    assert page.locator(".count").nth(1).inner_text() == "2 / 3"


def test_an_invalid_trace_keeps_the_picture_and_explains_why(watched, tmp_path):
    page = watched(expects_errors=True)
    (tmp_path / "minigrad.js").write_text(script(), encoding="utf-8")
    broken = figure(to_trace(small())).replace('"version":2', '"version":99')
    text = f'<!doctype html><meta charset="utf-8"><title>A page</title>{broken}<script src="minigrad.js"></script>'
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    page.goto((tmp_path / "page.html").as_uri())
    assert "This graph cannot be played" in page.get_by_role("alert").inner_text()
    assert page.locator("img").is_visible()
