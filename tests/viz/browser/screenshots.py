"""Take screenshots of the player for review: `make screenshots` writes them into screenshots/.

make screenshots ARGS="mlp dark"      only those whose names contain each of these words
make screenshots ARGS="-book"         all graphs of REVIEW at the width of a book page
"""

import contextlib
import io
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import sample_graphs
from minigrad import cli
from minigrad_viz import to_html
from needs import chromium

OUT = Path("screenshots")

# Viewport width, height, and browser options. At 200% zoom a page has half its width.
VIEWS = {
    "light": (1280, 900, {}),
    "dark": (1280, 900, {"color_scheme": "dark"}),
    "zoom": (640, 450, {"device_scale_factor": 2}),
    "narrow": (400, 800, {"device_scale_factor": 2}),
    "narrow_dark": (400, 800, {"device_scale_factor": 2, "color_scheme": "dark"}),
    "book": (830, 900, {}),
    "book_dark": (830, 900, {"color_scheme": "dark"}),
    "contrast": (1280, 900, {"forced_colors": "active", "color_scheme": "dark"}),
    "still": (1280, 900, {"reduced_motion": "reduce"}),
}
# Actions before a screenshot: keys in order; `=7` moves to that fraction of the steps, `click:…` clicks a button.
MOMENTS = {
    "first": [],
    "start": ["Home"],
    "forward": ["=0.25"],
    "backward": ["=0.7"],
    "end": ["End"],
}
PANELS = {
    "predict": ["=0.5", "p"],
    "what-if": ["=0.7", "w"],
    "table": ["=0.7", "t"],
    "stops": ["=0.7", "b", "s"],
    "alarms": ["End", "a"],
    "search": ["=0.7", "/", "m"],
    "help": ["?"],
    "all-open": ["click:Expand all blocks", "=0.7"],
    "all-closed": ["click:Collapse all blocks", "=0.7"],
    "fit": ["=0.7", "click:Fit"],
    "model": ["End", "click:Fit"],
}
COMMON_VIEWS = ["light", "dark", "zoom", "narrow"]
WIDTHS = ["narrow", "narrow_dark", "book", "book_dark", "light", "dark"]
# What each kind of user sees first, and during a backward pass, at each width and in both themes.
REVIEW = ["tour", "neuron", "cross_entropy", "values", "transformer", "cnn", "recorded", "not_a_number", "signs"]
SHOTS = [
    *((graph, moment, way) for graph in REVIEW for moment in ("first", "backward") for way in WIDTHS),
    *(("neuron", f"step{k:02}", "book") for k in range(12)),
    *(
        (graph, moment, way)
        for graph in ("scalars", "mlp", "transformer")
        for moment in ("start", "forward", "backward", "end")
        if (graph, moment) != ("transformer", "backward")
        for way in COMMON_VIEWS
    ),
    *((graph, panel, way) for graph in ("scalars", "mlp") for panel in PANELS for way in ("light", "dark")),
    *(("transformer", panel, "light") for panel in ("all-open", "all-closed", "fit", "table")),
    *((graph, "backward", way) for graph in ("scalars", "mlp") for way in ("contrast", "still")),
    *(("expression", moment, "light") for moment in ("forward", "backward")),
    *(("not_a_number", "alarms", way) for way in ("light", "dark")),
    *(
        (model, moment, way)
        for model in ("cnn", "gpt")
        for moment in ("model", "all-open")
        for way in ("light", "dark")
    ),
    *(("gpt", moment, way) for moment in ("first", "backward") for way in ("light", "narrow")),
    *(("broken_model", "model", way) for way in ("light", "dark")),
    *(("scalars", panel, "narrow") for panel in ("predict", "what-if", "table", "help")),
]


def main(words: list[str]) -> None:
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=chromium(), args=flags)
        for graph, moment, view in SHOTS:
            name = f"{graph}-{moment}-{view}.png"
            if not all(word in name for word in words):
                continue
            path = Path(folder) / f"{graph}.html"
            if not path.exists():
                write(graph, path)
            width, height, options = VIEWS[view]
            page = browser.new_page(viewport={"width": width, "height": height}, **options)
            page.on("pageerror", lambda error, name=name: print(name, error, file=sys.stderr))
            page.goto(path.as_uri())
            act(page, keys_of(moment))
            page.locator(".minigrad-player").screenshot(path=OUT / name)
            page.close()
        browser.close()


def write(graph: str, path: Path) -> None:
    """Write the page of a graph; "tour" is the output of `minigrad tour`."""
    if graph == "tour":
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            cli.main(["tour", "--epochs", "10", "--out", str(path)])
    else:
        path.write_text(to_html(getattr(sample_graphs, graph)()), encoding="utf-8")


def keys_of(moment: str) -> list[str]:
    """Return the actions before a screenshot: "step07" is seven steps after the start."""
    if moment.startswith("step"):
        return ["Home", *["ArrowRight"] * int(moment[4:])]
    return (MOMENTS | PANELS)[moment]


def act(page, keys: list[str]) -> None:
    button = page.get_by_role("button", name="Step forward").first
    button.wait_for()
    page.wait_for_timeout(250)
    button.focus()
    for key in keys:
        if key.startswith("="):
            scrub = page.get_by_role("slider", name="Position").first
            script = f"one => {{ one.value = Math.round(one.max * {key[1:]}); one.dispatchEvent(new Event('input')); }}"
            scrub.evaluate(script)
        elif key.startswith("click:"):
            buttons = page.get_by_role("button", name=key[6:])
            if buttons.count():
                buttons.first.click()
        else:
            page.keyboard.press(key)
        page.wait_for_timeout(50)
    page.evaluate("document.activeElement.blur()")
    page.wait_for_timeout(900)  # until the animation of a product ends


if __name__ == "__main__":
    main(sys.argv[1:])
