"""The player by keyboard alone: every control is reachable, and the focus is always visible."""

import re

import pytest

import sample_graphs
from minigrad_viz import to_html
from tiers import choose_cases

# The focused element: its accessible name, and whether its focus is visible.
FOCUS = """
() => {
  let e = document.activeElement;
  while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
  if (!e || e === document.body) return null;
  const root = e.getRootNode();
  const ring = root.querySelector?.(".overlay .focus");
  const style = getComputedStyle(e);
  return {
    tag: e.localName,
    name: e.getAttribute("aria-label") || e.labels?.[0]?.textContent || e.textContent.trim(),
    item: e.dataset.id ?? "",
    player: root !== document,
    seen: e.matches(":focus-visible") &&
      (parseFloat(style.outlineWidth) >= 2 && style.outlineStyle !== "none" ||
       Boolean(e.dataset.id && ring && ring.getAttribute("visibility") === "visible")),
  };
}
"""


@pytest.fixture
def opened(page, tmp_path):
    """Open a page with the player of a sample graph, with the focus on its first button."""

    def open_(name):
        path = tmp_path / f"{name}.html"
        path.write_text(to_html(getattr(sample_graphs, name)()), encoding="utf-8")
        page.goto(path.as_uri())
        page.get_by_role("button", name="Step forward").first.wait_for()
        tab_to(page, "^First")
        return page

    return open_


def focus(page):
    focused = page.evaluate(FOCUS)
    assert focused is not None, "the focus is lost"
    return focused


def tab_to(page, name, back=False):
    """Press Tab until an element of this name has the focus; fail if it is not reached."""
    visited = []
    for _ in range(60):
        page.keyboard.press("Shift+Tab" if back else "Tab")
        focused = page.evaluate(FOCUS)
        if focused is None:
            continue
        visited.append(focused)
        if re.search(name, focused["name"]):
            return visited
    pytest.fail(f"{name} is not reached by Tab: {[one['name'] for one in visited]}")


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)
        assert focus(page)["seen"], f"the focus is not visible after {key}"


def count(page):
    return page.locator(".count").first.inner_text()


def announced(page):
    return page.locator(".say [aria-live]").first.text_content()


def test_tab_follows_the_visual_order(opened):
    page = opened("mlp")
    page.locator(".item").first.click()
    page.get_by_role("button", name="First").focus()
    passed = tab_to(page, "^Stop here")
    assert all(one["seen"] for one in passed if one["player"])
    names = [one["name"] for one in passed]
    order = ["Back", "Play", "Step forward", "Last", "Position", "edge", "op", "Speed", "Help"]
    order += ["What if", "Table", "Breakpoints", "Alarms", "Search", "Run to here", "Stop here"]
    positions = [next((k for k, one in enumerate(names) if re.search(name, one, re.I)), -1) for name in order]
    assert -1 not in positions, list(zip(order, positions, strict=True))
    assert positions == sorted(positions), list(zip(order, positions, strict=True))
    assert sum(bool(one["item"]) for one in passed) == 1  # the drawing is one tab stop: arrow keys move within it


def test_every_step_is_announced(opened):
    page = opened("expression")
    press(page, "Home")
    sentences = [announced(page)]
    while not count(page).startswith("15 "):
        press(page, "ArrowRight")
        page.wait_for_timeout(20)
        sentences.append(announced(page))
    assert len(set(sentences)) == 16, sentences
    assert sentences[11].endswith("added to the gradient of a: 1.0 plus 1.80056e−06 is 1.0, 2 of 3.")


def test_arrows_step_and_alt_arrows_follow_edges(opened):
    page = opened("expression")
    press(page, "Home", "ArrowRight", "ArrowRight", "ArrowLeft")
    assert count(page) == "1 / 15"
    press(page, "End")
    assert count(page) == "15 / 15"
    press(page, "Alt+ArrowRight")
    items = {focus(page)["item"]}
    for _ in range(12):
        press(page, "Alt+ArrowRight")
        items.add(focus(page)["item"])
    assert len(items) >= 3
    for _ in range(12):
        press(page, "Alt+ArrowLeft")
    assert "leaf" in focus(page)["name"]
    assert count(page) == "15 / 15"
    press(page, "ArrowLeft")
    assert count(page) == "14 / 15", "arrows step in the drawing too"
    press(page, "Enter")
    name = focus(page)["name"].split(",")[0].split(" = ")[0]
    assert page.locator(".inspector .title").inner_text() == name
    press(page, "Escape")
    assert "Play" in focus(page)["name"]


def test_keys_work_on_a_page_with_one_player_without_a_click(page, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(to_html(sample_graphs.expression()), encoding="utf-8")
    page.goto(path.as_uri())
    page.get_by_role("button", name="Step forward").first.wait_for()
    assert page.evaluate(FOCUS) is None
    page.keyboard.press("Home")
    assert count(page) == "0 / 15"
    page.keyboard.press("ArrowRight")
    assert count(page) == "1 / 15"
    assert focus(page)["seen"], "the player with the key bindings is visible"
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    assert count(page) == "14 / 15"
    page.keyboard.press("Home")
    page.keyboard.press(" ")
    page.get_by_role("button", name="Pause").first.wait_for()


def test_the_last_clicked_player_receives_keys(page, tmp_path):
    html = to_html(sample_graphs.expression())
    figure = re.search(r"<figure class=\"minigrad\".*?</figure>", html, re.DOTALL)[0]
    two = html.replace(figure, f'<input id="field"><p id="words">Words.</p>{figure}{figure}')
    path = tmp_path / "two.html"
    path.write_text(two, encoding="utf-8")
    page.goto(path.as_uri())
    page.locator(".count").nth(1).wait_for()
    counts = page.locator(".count")
    before = counts.all_inner_texts()
    page.keyboard.press("Home")
    assert counts.all_inner_texts() == before, "no player has the key bindings yet"
    second = page.locator(".minigrad-player").nth(1)
    second.locator(".say").click()
    for key in ("Home", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert counts.all_inner_texts() == [before[0], "2 / 15"]
    second.locator("g.item").first.click()
    page.keyboard.press("ArrowRight")
    assert counts.all_inner_texts() == [before[0], "3 / 15"], "keys also step after a click in the drawing"
    page.locator("#field").click()
    page.keyboard.press("Home")
    page.locator("#words").click()
    page.keyboard.press("ArrowRight")
    assert counts.all_inner_texts() == [before[0], "3 / 15"], "the last click was outside the players"


def test_space_plays_and_pauses(opened):
    page = opened("expression")
    tab_to(page, "Position")
    press(page, "Home", " ")
    page.wait_for_function(
        "() => document.querySelector('.minigrad-player').shadowRoot.querySelector('.count').textContent[0] !== '0'"
    )
    press(page, " ")
    now = count(page)
    page.wait_for_timeout(900)
    assert count(page) == now
    assert now != "15 / 15"


def test_breakpoints_by_keyboard(opened):
    page = opened("expression")
    press(page, "Home", "ArrowRight", "ArrowRight", "b")
    assert page.locator(".tick").count() >= 1
    press(page, "s")
    assert "name" in page.locator(".panel:visible").inner_text()
    tab_to(page, "Remove|✕|×")
    press(page, "Enter")
    assert page.locator(".tick").count() == 0


def test_blocks_open_and_close_by_keyboard(opened):
    page = opened("mlp")
    press(page, "Home", "ArrowRight")
    frames = page.locator(".mg-stage .frame")
    assert frames.count() == 2
    press(page, "e")
    assert frames.count() == 1
    press(page, "e")
    assert frames.count() == 2


def test_a_frame_closes_by_key_and_keeps_the_focus(opened):
    page = opened("mlp")
    tab_to(page, ", (leaf|operation|constant)")
    for _ in range(3):
        press(page, "Alt+ArrowLeft")
    press(page, "e")
    assert page.locator(".mg-stage .frame").count() == 1
    assert focus(page)["item"].startswith("b"), "the closed block has the focus"
    press(page, "e")
    assert page.locator(".mg-stage .frame").count() == 2
    assert focus(page)["item"]


@pytest.mark.parametrize("key", choose_cases(["p", "w", "t", "s", "a", "/"], "panels", 1))
def test_each_panel_opens_and_can_be_left(opened, key):
    page = opened("scalars")
    press(page, "Home", "ArrowRight", key)
    assert page.locator(".panel:visible, .predict:visible, .table:visible").count() >= 1
    tab_to(page, "Search", back=key in "/tsaw")
    assert focus(page)["seen"]


def test_search_goes_to_a_node(opened):
    page = opened("scalars")
    press(page, "/")
    page.keyboard.type("x1")
    page.keyboard.press("Enter")
    page.wait_for_timeout(50)
    assert page.locator(".inspector .title").inner_text() == "x1"
    assert focus(page)["seen"]


def test_predict_by_keyboard(opened):
    page = opened("expression")
    press(page, "End", "Home", "p")
    assert focus(page)["tag"] == "input"
    page.keyboard.type("12345")
    press(page, "Enter")
    verdict = page.locator(".verdict")
    assert verdict.get_attribute("data-verdict") not in (None, "right")
    tab_to(page, "Show me")
    press(page, "Enter")
    assert verdict.get_attribute("data-verdict") == "shown"


def test_help_opens_and_restores_the_focus(opened):
    page = opened("scalars")
    tab_to(page, "Step forward")
    press(page, "?")
    assert page.get_by_role("dialog").is_visible()
    press(page, "Escape")
    assert not page.get_by_role("dialog").is_visible()
    assert "Step forward" in focus(page)["name"]


def test_the_table_follows_the_steps(opened):
    page = opened("expression")
    page.locator(".item").first.click()
    page.get_by_role("button", name="Follow the steps").click()
    press(page, "Home", "t")
    rows = page.locator("tr[aria-current]")
    for _ in range(15):
        page.keyboard.press("ArrowRight")
        shown = page.locator(".inspector .title").inner_text()
        assert rows.count() == 1
        assert rows.locator("th").inner_text() == shown
        gradient = rows.locator("td").nth(2).inner_text()
        assert page.locator(".inspector dl").inner_text().count(gradient)


def test_reduced_motion_disables_animations(page, tmp_path):
    path = tmp_path / "y.html"
    path.write_text(to_html(sample_graphs.expression()), encoding="utf-8")
    page.goto(path.as_uri())
    page.get_by_role("button", name="Step forward").first.focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
        moving = page.evaluate("() => document.querySelector('.minigrad-player').shadowRoot.getAnimations().length")
        assert moving == 0
