"""The playground in a browser: typing, stepping, dragging, from disk and from a server, without a network."""

import re

import pytest

import minigrad as mg
from needs import PACKAGES, needs

AXE = PACKAGES / "axe-core" / "axe.min.js"
TEXT = "#minigrad-playground-text"
SUMMARY, REMARK, LIVE_REGION = (f".minigrad-playground .{name}" for name in ("said", "remark", "heard"))


@pytest.fixture(params=["file", pytest.param("http", marks=pytest.mark.nightly)])
def play(request, site, server, watched):
    """Open the page, with an optional fragment of its address."""

    def open_one(link="", **options):
        page = watched(servers=(server,) if request.param == "http" else (), **options)
        address = (site / "playground.html").as_uri() if request.param == "file" else f"http://{server}/playground.html"
        page.goto("about:blank")
        page.goto(address + link)
        page.locator(TEXT).wait_for()
        return page

    return open_one


def draw(page, text):
    page.fill(TEXT, text)
    page.press(TEXT, "Enter")


def node(page, name):
    """Return the accessible label of the node of that name in the player."""
    return page.get_by_role("button", name=re.compile(rf"^{re.escape(name)}[ ,]")).first.get_attribute("aria-label")


def leaf(page, name):
    return page.locator(".minigrad-playground .leaves").get_by_label(name, exact=True)


def test_an_expression_is_drawn_stepped_and_dragged(play):
    page = play()
    assert page.locator(SUMMARY).inner_text() == "Graph of y = 0.261594: 4 leaves, 4 operations."
    draw(page, "h = w*x + b\ntanh(h)*w")
    assert page.locator(SUMMARY).inner_text() == "Graph of y = −2.0: 3 leaves, 4 operations."
    leaf(page, "b").fill("5.5")
    assert page.locator(SUMMARY).inner_text() == "Graph of y = −0.924234: 3 leaves, 4 operations."
    assert node(page, "w") == "w, leaf, value 2.0, gradient not computed yet"
    page.get_by_role("button", name="Last (End)").click()
    w, x, b = mg.Value(2.0), mg.Value(-3.0), mg.Value(5.5)
    ((w * x + b).tanh() * w).backward()
    for name, value in {"w": w, "x": x, "b": b}.items():
        match = re.search(r"value (\S+), gradient (\S+)$", node(page, name))
        assert [float(text.replace("−", "-")) for text in match.groups()] == pytest.approx(
            [value.data, value.grad], rel=1e-5
        )
    page.get_by_role("button", name="First (Home)").click()
    assert "not computed yet" in node(page, "h")
    page.get_by_role("button", name="Step forward").first.click()
    assert "1 / " in page.locator(".minigrad-player .count").inner_text()


def test_a_slider_changes_a_value_and_keeps_the_position(play):
    page = play()
    draw(page, "a*b + a")
    page.get_by_role("button", name="Last (End)").click()
    assert node(page, "a").endswith("gradient −2.0")
    slider = page.get_by_label("b, slider")
    slider.focus()
    for _ in range(20):
        slider.press("ArrowRight")
    assert leaf(page, "b").input_value() == "-2"
    assert node(page, "a").endswith("gradient −1.0")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "b, slider"
    assert page.locator(LIVE_REGION).inner_text().startswith("Graph of y")


def test_the_player_changes_values_of_the_page(play):
    page = play()
    draw(page, "a*b")
    page.get_by_role("button", name="What if").click()
    page.locator(".minigrad-player .whatif input[type=number]").first.fill("7")
    assert leaf(page, "a").input_value() == "7"
    assert page.locator(SUMMARY).inner_text().startswith("Graph of y = −21.0")


def test_values_are_kept_when_the_program_changes(play):
    page = play()
    draw(page, "a*b")
    leaf(page, "a").fill("4.25")
    draw(page, "a + c")
    assert (leaf(page, "a").input_value(), leaf(page, "b").count()) == ("4.25", 0)
    leaf(page, "c").fill("")
    leaf(page, "c").press("Tab")
    assert leaf(page, "c").input_value() == "0.5"


def test_the_player_keeps_its_position_for_the_same_graph(play):
    page = play()
    draw(page, "a*b + a")
    leaf(page, "a").fill("4")
    page.get_by_role("button", name="Last (End)").click()
    draw(page, "(a*b)+a")
    assert node(page, "b").endswith("gradient 4.0")
    draw(page, "(a*b)-a")
    assert node(page, "b").endswith("gradient not computed yet")


def test_it_draws_after_a_pause_too(play):
    page = play()
    page.fill(TEXT, "u*v")
    page.wait_for_function(f"document.querySelector('{SUMMARY}').textContent.startsWith('Graph of y = −6')")


def test_shift_enter_starts_a_new_line(play):
    page = play()
    page.fill(TEXT, "h = a*2")
    page.press(TEXT, "Shift+Enter")
    page.type(TEXT, "h*h")
    page.press(TEXT, "Enter")
    assert page.input_value(TEXT) == "h = a*2\nh*h"
    assert page.locator(SUMMARY).inner_text() == "Graph of y = 16.0: 1 leaf, 2 operations, 1 constant."


MISTAKES = {
    "(a + b": "This bracket is not closed.",
    "a +": "A number or a name is missing after “+”.",
    "a $ b": "Unexpected character “$”.",
    "a ^ 2": "“^” is not a power. Write **, as in a**2.",
    "tahn(a)": "Unknown function “tahn”. Did you mean tanh?",
    "a + b = c": "Only a name may come before =, as in h = a*b.",
    "tanh(a, b)": "tanh takes 1 argument, but there are 2. Write tanh(a).",
    "tanh + a": "“tanh” is a function: write tanh(a).",
    "": "The expression is empty. Type one, such as (a + b)*c.",
    "+".join("a" * 502): "This is too long: at most 500 operations are allowed.",
}


def test_a_mistake_is_explained_and_the_last_graph_stays(play):
    page = play()
    draw(page, "a*b")
    for text, sentence in MISTAKES.items():
        draw(page, text)
        message = f"{sentence} The graph below shows the last valid expression."
        assert page.locator(f"{SUMMARY} p").inner_text() == message, text
        assert page.locator(LIVE_REGION).inner_text() == message, text
        assert page.locator(TEXT).get_attribute("aria-invalid") == "true", text
        assert node(page, "y").startswith("y = a · b, operation, value −6.0"), text
    draw(page, "a*(b")
    assert page.locator(f"{SUMMARY} pre").text_content() == "a*(b\n  ^"
    draw(page, "a*(b)")
    assert (page.locator(f"{SUMMARY} pre").count(), page.locator(TEXT).get_attribute("aria-invalid")) == (0, "false")


def test_non_finite_values_are_explained(play):
    page = play("#f=log(b)*2&n=b:-3")
    assert node(page, "y").startswith("y = v₁ · 2, operation, value NaN")
    assert page.locator(f"{REMARK} pre").first.text_content() == "log(b)*2\n^^^^^^"
    assert page.locator(f"{REMARK} p").first.inner_text() == "v₁ is the first NaN: ln(b) = ln(−3)."
    leaf(page, "b").fill("1")
    leaf(page, "b").press("Tab")
    assert page.locator(f"{REMARK} p").count() == 0
    draw(page, "c/(a - a)")
    assert page.locator(f"{REMARK} p").first.inner_text().startswith("y is the first infinity: c / v₂ =")
    draw(page, "a/0")
    assert page.locator(f"{REMARK} p").first.inner_text() == "y is the first infinity: a / 0 = (−3) / 0."


def test_a_link_restores_the_program(play):
    page = play()
    draw(page, "p = a*b\np + α")
    leaf(page, "b").fill("0.125")
    page.get_by_role("button", name="Copy a link").click()
    page.locator(".shared", has_text=re.compile(".")).wait_for()
    link = page.evaluate("location.hash")
    again = play(link)
    assert again.input_value(TEXT) == "p = a*b\np + α"
    assert (leaf(again, "b").input_value(), leaf(again, "α").input_value()) == ("0.125", "0.5")
    again.evaluate("location.hash = '#f=q*q&n=q:5'")
    again.wait_for_function(f"document.querySelector('{SUMMARY}').textContent.startsWith('Graph of y = 25')")


def test_a_hostile_link_is_only_text(play):
    page = play("#f=%3Cimg%20src%3Dx%20onerror%3D%22window.hurt%3D1%22%3E&n=%3Cb%3E:1,__proto__:2")
    assert "Comparisons" in page.locator(f"{SUMMARY} p").inner_text()
    assert page.locator(".minigrad-playground img").count() == 0
    page.evaluate("location.hash = '#f=__proto__*constructor%2Ba&n=__proto__:2,constructor:3,a:1'")
    page.wait_for_function(f"document.querySelector('{SUMMARY}').textContent.startsWith('Graph of y = 7')")
    leaf(page, "constructor").fill("5")
    assert page.locator(SUMMARY).inner_text().startswith("Graph of y = 11")
    assert page.evaluate("[window.hurt, ({}).constructor === Object]") == [None, True]


def test_markup_that_is_typed_is_only_text(play):
    page = play()
    for text in (
        "<img src=x onerror=window.hurt=1>",
        "a*</pre><svg onload=window.hurt=1>",
        "tanh(a) $<script>hurt=1</script>",
    ):
        draw(page, text)
        assert page.locator(f"{SUMMARY} pre").text_content().startswith(text[:12])
        assert page.locator(f"{SUMMARY} p").count() == 1
        assert page.locator(".minigrad-playground").locator("img, script, svg[onload]").count() == 0
        assert page.evaluate("window.hurt") is None


def test_sliders_move_both_ways_from_0_and_from_large_values(play):
    page = play("#f=a%2Bb&n=a:0,b:1e308")
    slider, far = (page.get_by_label(f"{name}, slider") for name in "ab")
    assert (slider.get_attribute("min"), slider.get_attribute("max")) == ("-5", "5")
    slider.press("ArrowLeft")
    assert float(leaf(page, "a").input_value()) == pytest.approx(-0.05)
    assert 8e307 < float(far.input_value()) <= 1e308
    far.press("ArrowLeft")
    assert 8e307 < float(leaf(page, "b").input_value()) < 1e308
    page.evaluate("location.hash = '#f=1/a&n=a:-0'")
    page.wait_for_function(f"document.querySelector('{SUMMARY}').textContent.startsWith('Graph of y = −∞')")
    assert leaf(page, "a").input_value() == "-0"


def test_each_example_is_drawn(play):
    page = play()
    names = page.locator("#minigrad-playground-example option").all_inner_texts()[1:]
    assert len(names) >= 6
    for name in names:
        page.select_option("#minigrad-playground-example", label=name)
        assert page.locator(SUMMARY).inner_text().startswith("Graph of"), name
        page.get_by_role("button", name="Last (End)").click()
        assert page.locator("#minigrad-playground-example").input_value() != "", name


def test_it_is_usable_by_keyboard(play):
    page = play()
    page.focus(TEXT)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "minigrad-playground-leaf-0"
    page.keyboard.press("ArrowUp")
    assert leaf(page, "a").input_value() == "3"
    page.get_by_role("button", name="Step forward").first.focus()
    page.keyboard.press("End")
    assert node(page, "a").endswith("gradient 0.5")


@pytest.mark.parametrize("theme", [pytest.param("light", marks=pytest.mark.nightly), "dark"])
def test_axe_finds_nothing_at_any_moment(play, theme):
    needs("npm packages")
    page = play(color_scheme=theme)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    for text in ("a*b + tanh(c)", "log(b) + 1/(c - c)", "(a"):
        draw(page, text)
        violations = page.evaluate("axe.run('.minigrad-playground', {resultTypes: ['violations'], preload: false})")[
            "violations"
        ]
        assert [(one["id"], [node["html"][:100] for node in one["nodes"]]) for one in violations] == [], text


def test_it_fits_a_phone(play):
    page = play(width=400, height=800)
    for text in ("(a + b)*c + tanh(d)", "a_long_name_" * 6 + "*b", "a" * 90 + " $", "log(b)*" + "a*" * 40 + "a"):
        draw(page, text)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, text


def test_without_scripts_a_picture_is_shown(site, watched):
    page = watched(java_script_enabled=False)
    page.goto((site / "playground.html").as_uri())
    assert page.locator("noscript svg, .minigrad-playground svg").count() == 1
