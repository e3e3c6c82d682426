"""The player as a widget without Jupyter: its views, and changes of its model from Python."""

import minigrad as mg
from minigrad_viz import step
from widget_page import show_widget


def chain(n=12):
    a = x = mg.Value(2.0, "a")
    for k in range(n):
        with mg.scope(f"layer{k}"):
            x = (x * a).tanh()
    x.label = "y"
    return x


def positions(page):
    return [move[1] for move in page.evaluate("model.moves")]


def test_two_views_of_a_player_play_at_the_pace_of_one(page):
    show_widget(page, step(chain(), playing=True, speed=4.0), views=2)
    page.wait_for_function("model.moves.length > 8")
    moves = page.evaluate("model.moves")
    assert [at for _, at in moves[:8]] == list(range(1, 9))
    assert moves[7][0] - moves[0][0] > 7 * 200 * 0.95  # 800 ms a step, at four times the speed
    page.get_by_role("button", name="Pause").first.click()
    assert page.get_by_role("button", name="Play").count() == 2


def test_a_stop_in_one_view_pauses_the_other(page):
    show_widget(page, step(chain(), playing=True, speed=1.0), views=2)
    page.get_by_role("button", name="Breakpoints").nth(1).click()
    page.get_by_role("textbox", name="Value").fill("tanh")
    page.get_by_role("button", name="Add").click()
    page.wait_for_function("model.get('playing') === false")
    position = page.evaluate("model.get('position')")
    assert position % 2 == 0  # a tanh
    page.wait_for_timeout(1200)
    assert positions(page)[-1] == position < 24


def test_model_changes_reach_each_view_and_are_clamped(page):
    show_widget(page, step(chain(2)), views=2)
    page.evaluate("model.set('position', 999)")
    last = page.evaluate("model.get('position')")
    assert [one.inner_text() for one in page.locator(".count").all()] == [f"{last} / {last}"] * 2
    page.evaluate("model.set('leaf_a', 0.5)")
    assert page.evaluate("model.get('values')") == {"a": 0.5}
    page.evaluate("model.set('leaf_a', 2)")
    assert page.evaluate("model.get('values')") == {}
    page.evaluate("model.set('selected', 'b1')")
    assert [one.inner_text() for one in page.locator(".inspector .title").all()] == ["layer0", "layer0"]


def test_an_invalid_widget_explains_why(watched):
    page = watched(expects_errors=True)
    player = step(chain(2))
    player._trait_values["values"] = {"q": 1.0}  # bypasses the check in Python
    show_widget(page, player)
    assert page.get_by_role("alert").inner_text() == (
        'This graph cannot be played: No scalar leaf or element is called "q".'
    )
    assert page.locator(".count").count() == 0
    broken = step(chain(2))
    broken.trace.states[0] = "q"
    show_widget(page, broken)
    assert 'trace.nodes.state is "q"' in page.get_by_role("alert").inner_text()


STOPS = {
    ("op", "tanh"): [2, 4, 6, 9],
    ("name", "y"): [4, 5],
    ("scope", "layer1"): [3, 5],
    ("second-contribution", ""): None,
    ("not-finite", ""): [],
    ("gradient-above", "0.5"): None,
}


def test_stops_of_every_kind_can_be_added_reached_and_removed(page):
    show_widget(page, step(chain(2)))
    page.get_by_role("button", name="Breakpoints").click()
    for (kind, value), expected in STOPS.items():
        page.get_by_label("Stop at").select_option(kind)
        if value:
            page.get_by_role("textbox", name="Value").fill(value)
        page.get_by_role("button", name="Add").click()
        page.evaluate("model.set('position', 0)")
        positions_found = []
        while not page.get_by_text("No breakpoint ahead.").is_visible():
            page.get_by_role("button", name="Next breakpoint").click()
            at = page.evaluate("model.get('position')")
            if positions_found and at == positions_found[-1]:
                break
            if at:
                positions_found.append(at)
        if expected is not None:
            assert (kind, positions_found) == (kind, expected)
        else:
            assert len(positions_found) > 0, kind
        page.get_by_role("button", name="Remove").click()
        assert page.get_by_role("button", name="Remove").count() == 0


_COLOURS = """
() => {
  const root = [...document.querySelectorAll("div")].find((one) => one.shadowRoot).shadowRoot;
  const fill = (item, part) => getComputedStyle(item.querySelector(part)).fill;
  return [...root.querySelectorAll("[data-id]")].map((item) => [fill(item, ".name"), fill(item, ".head")]);
}
"""


def test_at_the_start_nothing_is_highlighted_and_names_are_legible(page):
    show_widget(page, step(chain(2), position=3))
    assert page.locator(".halo[visibility=visible]").count() == 1
    page.evaluate("model.set('position', 0)")
    assert page.locator(".halo[visibility=visible]").count() == 0
    colours = page.evaluate(_COLOURS)
    assert colours
    for name, head in colours:
        assert name != head
        assert (name, head[:6]) != ("rgb(255, 255, 255)", "rgb(25")


def test_leaves_named_like_object_properties_are_linked(page):
    names = ["__proto__", "constructor", "toString"]
    y = mg.Value(1.0, "y")
    for name in names:
        y = y * mg.Value(2.0, name)
    player = step(y)
    show_widget(page, player)
    read = "traits => traits.map(trait => globalThis.model.get(trait))"
    traits = [trait for trait, (name, _) in player.leaves.items() if name in names]
    assert page.evaluate(read, traits) == [2.0, 2.0, 2.0]
    page.evaluate("traits => traits.forEach((trait, k) => globalThis.model.set(trait, k + 3))", traits)
    assert page.evaluate(read, traits) == [3.0, 4.0, 5.0]
    values = page.evaluate("Object.entries(globalThis.model.get('values'))")
    assert sorted(values) == [["__proto__", 3.0], ["constructor", 4.0], ["toString", 5.0]]
