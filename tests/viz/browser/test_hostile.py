"""Labels, scopes, captions and source lines that would run as HTML: nothing is executed anywhere."""

import minigrad as mg
from minigrad_viz import export, step, to_svg, tour
from minigrad_viz.pictures.frontend import script
from minigrad_viz.pictures.html import figure
from minigrad_viz.trace import to_trace
from widget_page import show_widget

RUN = "globalThis.ran=1"
LABELS = [
    f"</script><script>{RUN}</script>",
    f"<img src=x onerror='{RUN}'>",
    f'"onload="{RUN}" x="',
    f"'><svg onload={RUN}>",
    f"]]><script>{RUN}</script><!--",
    f"${{{RUN}}}`",
    "\u202eevil 😀",
    "__proto__",
    "x" * 10_000,
]


def hostile():
    y = mg.Value(1.0, "first")
    for label in LABELS:
        y = y * 0.5 + mg.Value(1.0, label)
    with mg.scope(f"<img src=x onerror='{RUN}'>"):
        return y.tanh()


def use_player(page):
    """Opens every panel, searches, and steps to the end."""
    for name in ("What if", "Table", "Breakpoints", "Alarms", "Search"):
        page.get_by_role("button", name=name).first.click()
    page.keyboard.type("script")
    page.get_by_role("button", name="Next", exact=True).first.click()
    page.get_by_role("button", name="Stop here").first.click()
    page.get_by_role("button", name="Last").first.click()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    page.get_by_role("button", name="Predict").first.click()


def assert_nothing_ran(page):
    page.wait_for_timeout(100)
    assert page.evaluate("globalThis.ran") is None
    assert page.locator("img:not([src^='data:image/svg'])").count() == 0


def test_nothing_runs_in_an_exported_page_with_a_tour(page, tmp_path):
    player = tour(hostile(), [("start", LABELS[0], LABELS[1]), ("seed", LABELS[1])])
    export(player, tmp_path / "y.html")
    page.goto((tmp_path / "y.html").as_uri())
    page.get_by_role("button", name="Go on").click()
    use_player(page)
    assert_nothing_ran(page)


def test_nothing_runs_in_the_output_of_a_notebook_nor_in_a_picture(page, tmp_path):
    y = hostile()
    text = f'<!doctype html><meta charset="utf-8"><title>A page</title>{to_svg(y)}{figure(to_trace(y))}'
    (tmp_path / "page.html").write_text(f"{text}<script>{script()}</script>", encoding="utf-8")
    page.goto((tmp_path / "page.html").as_uri())
    use_player(page)
    assert_nothing_ran(page)
    export(y, tmp_path / "y.svg")
    page.goto((tmp_path / "y.svg").as_uri())
    assert page.evaluate("globalThis.ran") is None


def test_nothing_runs_in_a_widget(page):
    show_widget(page, step(hostile()))
    use_player(page)
    assert_nothing_ran(page)
