"""The player in a browser: interaction by mouse and keyboard, and what must never happen."""

import functools
import http.server
import json
import threading

import pytest

import minigrad as mg
from minigrad_viz import to_trace
from minigrad_viz.pictures import frontend
from needs import FRONTEND
from tiers import NIGHTLY

PAGE = """<!doctype html><meta charset="utf-8"><title>Player</title><div id="host"></div><script type="module">
import { mount } from "/built.js";
import { scalarTrace, randomTrace } from "/tests/helpers.js";
window.start = (build, options) => {
  const data = eval(build)({ scalarTrace, randomTrace });
  window.player = mount(document.getElementById("host"), data, options);
};
</script>"""
# y = a * b + a with a = 2, b = -3: a is used twice, so its gradient is a sum
PRODUCT = """({ scalarTrace }) => scalarTrace((t) => {
  const a = t.leaf("a", 2);
  return t.add(t.mul(a, t.leaf("b", -3), "c"), a, "y");
})"""


UNNAMED = """[...document.querySelector("#host").shadowRoot.querySelectorAll("button,input,select")].filter(
  (x) => !x.textContent.trim() && !x.getAttribute("aria-label") && !x.labels?.length).map((x) => x.outerHTML)"""


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def address():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=FRONTEND))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def play(watched, address):
    """Open a player on a trace that JavaScript builds, and return the page."""

    def open_one(build=PRODUCT, options=None, width=1100):
        page = watched(width=width, servers=(address,), reduced_motion="no-preference")  # the default of most users
        page.route("**/player.html", lambda route: route.fulfill(body=PAGE, content_type="text/html; charset=utf-8"))
        page.route("**/built.js", lambda route: route.fulfill(body=frontend.module(), content_type="text/javascript"))
        page.goto(f"http://{address}/player.html")
        page.wait_for_function("window.start !== undefined")
        page.evaluate(f"start({json.dumps(build)}, {json.dumps(options or {})})")
        return page

    return open_one


def state(page):
    return page.evaluate("player.state()")


def button(page, name, **options):
    return page.get_by_role("button", name=name, **options)


def test_buttons_step_and_the_sentence_explains_the_chain_rule(play):
    page = play()
    assert state(page)["position"] == 2
    for _ in range(4):
        button(page, "Step forward").click()
    assert "∂y/∂a += ∂y/∂c · ∂c/∂a = 1.0 × (−3.0) = −3.0" in page.locator(".say").inner_text().replace("\n", "")
    assert "a.grad: 1.0 + (−3.0) → −2.0" in page.locator(".say").inner_text()
    assert "upstream 1.0 times local −3.0" in page.locator("[aria-live]").first.inner_text().lower()
    button(page, "First").click()
    assert state(page)["position"] == 0


def test_arrows_step_and_alt_arrows_follow_edges(play):
    page = play()
    button(page, "Step forward").focus()
    page.keyboard.press("ArrowRight")
    assert state(page)["position"] == 3
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    assert state(page)["position"] == 6
    page.locator('[data-id="n2"]').focus()
    page.keyboard.press("Alt+ArrowRight")
    page.keyboard.press("Enter")
    assert (state(page)["selected"], state(page)["position"]) == ("n3", 6)
    page.keyboard.press("ArrowLeft")
    assert state(page)["position"] == 5
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowRight")
    assert (state(page)["selected"], state(page)["position"]) == (None, 6)


def test_keys_typed_into_a_field_stay_there(play):
    page = play()
    button(page, "Search").click()
    page.keyboard.type("b ")
    page.keyboard.press("ArrowLeft")
    assert state(page)["position"] == 2
    page.keyboard.press("Enter")
    assert state(page)["selected"] == "n1"


def test_changing_a_leaf_recomputes_the_graph_and_measures_the_derivative(play):
    page = play()
    button(page, "What if").click()
    page.get_by_role("spinbutton", name="a, exact value").fill("5")
    assert state(page)["values"] == {"a": 5}
    button(page, "Last").click()
    assert "−10.0" in page.locator(".canvas").inner_text()
    plot_text = page.locator(".plot").inner_text()
    assert "∂y/∂a = −2.0" in plot_text
    assert "≈ −2.0" in plot_text
    button(page, "Reset a", exact=True).click()
    assert state(page)["values"] == {}


def test_uncomputable_nodes_are_grey_and_explained(play):
    build = """({ scalarTrace }) => {
      const data = scalarTrace((t) => { const c = t.tanh(t.leaf("a", 2), "c"); return t.mul(c, t.leaf("b", 3), "y"); });
      Object.assign(data.ops.find((op) => op.name === "tanh"), { js: null, why: "The player has no tanh." });
      return data;
    }"""
    page = play(build)
    button(page, "What if").click()
    page.get_by_role("spinbutton", name="b, exact value").fill("5")
    assert page.locator("[data-unable]").evaluate_all("(all) => all.map((one) => one.dataset.id)") == ["n1", "n3"]
    assert "The player has no tanh." in page.locator(".plot").inner_text()
    page.locator('[data-id="n1"]').click()
    assert "The player has no tanh." in page.locator(".inspector").inner_text()
    button(page, "Reset all").click()
    assert page.locator("[data-unable]").count() == 0


def matrix_trace():
    """Return the trace of a loss of w, 2 x 3, and of a constant x that does not require grad."""
    with mg.record():
        w = mg.tensor([[0.5, -1.0, 2.0], [1.0, 0.0, -0.5]], dtype=mg.float64, requires_grad=True)
        x = mg.tensor([[1.0, 2.0], [3.0, -1.0]], dtype=mg.float64)
        w.label, x.label = "w", "x"
        loss = (x @ w).tanh().sum()
    return f"() => ({to_trace(loss).json(full=True)})"


def test_the_heatmap_canvas_has_device_resolution(play):
    page = play(matrix_trace())
    page.locator("[data-id]", has_text="2×3").first.click()
    page.locator(".inspector canvas").first.wait_for()
    page.wait_for_timeout(100)  # a canvas is painted one frame after it is sized
    drawn = "all => all.map(one => [one.width, one.height])"
    displayed = (
        "all => all.map(one => [one.clientWidth, one.clientHeight].map(side => Math.round(side * devicePixelRatio)))"
    )
    pictures = page.locator(".inspector canvas")
    assert pictures.count() > 0
    assert pictures.evaluate_all(drawn) == pictures.evaluate_all(displayed)


def test_a_clicked_element_can_be_changed(play):
    page = play(matrix_trace())
    loss = page.locator('[data-id="n4"]')
    before = loss.text_content()
    page.locator("[data-id]", has_text="2×3").first.click()
    picture = page.locator(".inspector canvas").first
    size = picture.bounding_box()
    picture.click(position={"x": size["width"] * 0.5, "y": size["height"] * 0.75})
    assert page.evaluate("document.querySelector('#host').shadowRoot.activeElement.ariaLabel") == "w[1, 1]"
    page.keyboard.press("ArrowRight")
    assert list(state(page)["values"]) == ["w[1, 1]"]
    page.get_by_role("spinbutton", name="w[1, 1], exact value").fill("0.25")
    assert state(page)["values"] == {"w[1, 1]": 0.25}
    assert loss.text_content() != before
    page.get_by_role("button", name="Reset w[1, 1]", exact=True).click()
    assert state(page)["values"] == {}
    assert loss.text_content() == before


def test_a_named_element_is_changed_and_its_derivative_measured(play):
    page = play(matrix_trace())
    button(page, "What if").click()
    field = page.get_by_role("textbox", name="Element to change")
    field.fill("w[2, 0]")
    field.press("Enter")
    assert "No such element." in page.locator(".whatif").inner_text()
    field.fill("w[0,2]")
    field.press("Enter")
    chain, measured = page.locator(".plot b").all_inner_texts()
    assert chain.startswith("∂")
    assert abs(float(chain.split("= ")[1].replace("−", "-")) - float(measured[2:].replace("−", "-"))) < 1e-5
    field.fill("x[0, 0]")
    field.press("Enter")
    assert "x[0, 0] has no known gradient here." in page.locator(".plot").inner_text()
    page.evaluate("player.set('w[0, 2]', -3)")
    assert state(page)["values"] == {"w[0, 2]": -3}
    with pytest.raises(Exception, match="No scalar leaf or element"):
        page.evaluate("player.set('w[0, 3]', 1)")


def test_a_prediction_is_required_before_the_value(play):
    page = play()
    button(page, "Predict").click()
    assert page.evaluate("document.querySelector('#host').shadowRoot.activeElement.id") == "mg-answer"
    page.keyboard.type("7")
    page.keyboard.press("Enter")
    before = state(page)["position"]
    assert page.locator(".verdict").inner_text() != ""
    button(page, "Last").click()
    assert state(page)["position"] == before
    page.get_by_role("textbox").fill("1")
    page.keyboard.press("Enter")
    assert state(page)["position"] == before + 1
    button(page, "Show me").click()
    assert state(page)["position"] == before + 2
    assert "0 of 2" in page.locator(".score").inner_text()


def test_table_marks_the_row_of_the_step(play):
    page = play()
    button(page, "Table").click()
    assert page.locator("tr[aria-current]").inner_text().split() == ["y", "add(c,", "a)", "−4.0", "—"]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator("tr[aria-current]").inner_text().split()[0] == "a"
    assert "1.0 (Σ 1 of 2)" in page.locator("tr[aria-current]").inner_text()


def test_a_long_table_renders_only_visible_rows(play):
    build = """({ scalarTrace }) => scalarTrace((t) => {
      let x = t.leaf("a", 1);
      for (let i = 0; i < 1500; i++) x = t.add(x, x);
      return x;
    })"""
    page = play(build, {"expanded": []})
    button(page, "Table").click()
    assert page.locator("tbody tr").count() < 200
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert page.locator("tr[aria-current]").inner_text().split()[0] == "v₁"


def test_focus_survives_a_redraw(play):
    page = play()
    page.locator("[data-id]").first.click()
    link = page.locator(".inspector button.link").first
    link.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.querySelector('#host').shadowRoot.activeElement !== null")


def test_playing_stops_at_a_breakpoint(play):
    page = play(options={"position": 0, "speed": 4})
    button(page, "Breakpoints").click()
    page.get_by_role("combobox", name="Stop at").select_option("second-contribution")
    button(page, "Add", exact=True).click()
    button(page, "Play").click()
    page.wait_for_function("!player.state().playing")
    assert state(page)["position"] == 6
    assert "second contribution" in page.locator(".say").inner_text()


def test_an_invalid_stop_is_rejected_with_a_message(play):
    page = play()
    button(page, "Breakpoints").click()
    page.get_by_role("combobox", name="Stop at").select_option("gradient-above")
    page.get_by_role("textbox", name="Value").fill("much")
    button(page, "Add", exact=True).click()
    assert "“much” is not a number" in page.locator("section[aria-label=Breakpoints] [role=status]").inner_text()
    assert page.locator("section[aria-label=Breakpoints] li").count() == 0


def test_names_are_escaped(play):
    name = "<img src=x onerror=window.bad=1>"
    build = f"({{ scalarTrace }}) => scalarTrace((t) => t.mul(t.leaf({name!r}, 2), t.leaf('b', 3), 'y'))"
    page = play(build)
    for panel in ["What if", "Table", "Search"]:
        button(page, panel).click()
    button(page, "Last").click()
    assert page.evaluate("window.bad") is None
    assert page.locator("img").count() == 0


def test_state_changes_are_reported_and_restorable(play):
    page = play()
    page.evaluate("window.told = []; void player.on('change', (state) => told.push(state))")
    button(page, "Step forward").click()
    page.locator('[data-id="n0"]').click()
    assert page.evaluate("told.at(-1)") == state(page)
    new_state = {"position": 5, "playing": False, "speed": 2, "granularity": "op", "values": {"b": 4}, "selected": "n1"}
    page.evaluate(f"player.restore({json.dumps(new_state)})")
    assert {key: value for key, value in state(page).items() if key in new_state} == new_state
    page.evaluate("player.destroy()")
    assert page.evaluate("document.querySelector('#host').shadowRoot.childElementCount") == 0


def test_space_advances_a_tour(play):
    build = """({ scalarTrace }) => ({ ...scalarTrace((t) => t.mul(t.leaf("a", 2), t.leaf("b", -3), "y")), tours: [
      { at: 0, text: "Two leaves." }, { at: 3, text: "The way back to a.", select: "n1" }] })"""
    page = play(build)
    assert page.locator(".caption").inner_text() == "Two leaves."
    assert state(page)["position"] == 0
    page.locator('[data-id="n0"]').focus()
    page.keyboard.press("Space")
    assert page.locator(".caption").inner_text() == "The way back to a."
    assert (state(page)["position"], state(page)["selected"]) == (3, "n1")
    button(page, "Back", exact=True).click()
    assert state(page)["position"] == 0


def test_a_selected_alarm_highlights_affected_nodes(play):
    bad = mg.log(mg.Value(0.0, "a"))
    page = play(f"() => ({to_trace((bad + 1.0) * 2.0).json(full=True)})")
    rings = page.locator(".overlay > g:first-child > rect.select")
    button(page, "Alarms").click()
    assert rings.count() == 0
    page.locator("button.alarm").first.click()
    assert page.locator(".reach button.link").count() == rings.count() == 2


@pytest.mark.parametrize("width", [400, *[550, 1100] * NIGHTLY])
def test_nothing_is_wider_than_the_page(play, width):
    page = play(width=width)
    for panel in ["What if", "Breakpoints", "Table", "Alarms", "Search"]:
        button(page, panel).click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_blocks_open_and_close_by_key_and_by_breadcrumb(play):
    build = """({ scalarTrace }) => scalarTrace((t) =>
      t.add(t.scope("layer", () => t.mul(t.leaf("a", 2), t.leaf("b", -3), "c")), t.leaf("d", 1), "y"))"""
    page = play(build, {"expanded": []})
    assert state(page)["expanded"] in ([], [0])
    page.locator('[data-id="b1"]').focus()
    page.keyboard.press("e")
    assert 1 in state(page)["expanded"]
    page.locator('[data-id="n2"]').click()
    button(page, "layer −").click()
    assert 1 not in state(page)["expanded"]
    assert state(page)["selected"] == "b1"


def test_every_control_has_a_name(play):
    page = play()
    for panel in ["Predict", "What if", "Breakpoints", "Search"]:
        button(page, panel).click()
        assert page.evaluate(UNNAMED) == []
