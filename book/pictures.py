"""Regenerate the pictures of the README and the book (`make pictures`): the drawings that the README's code saves,
screenshots and films of the player, and simulations of colour blindness.

Screenshots need Chromium; without it, the stored ones remain.
"""

from __future__ import annotations

import base64
import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "book" / "images"

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
SIGNS_AT = 25  # the step: gradients of both signs, and zeros behind an alarm, are computed
SHEET = (
    "body{margin:0}main{display:grid;grid-template-columns:1fr 1fr;gap:12px 16px;padding:4px;background:#fff}"
    "figure{margin:0}img{width:100%;border:1px solid #ccc;border-radius:8px;box-sizing:border-box}"
    "figcaption{font:600 16px sans-serif;padding:4px 2px}"
)


def readme_code() -> str:
    """Return the Python code of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))


def readme_run() -> tuple[dict[str, Any], dict[str, str]]:
    """Run the README's code; return its variables and the SVG files that it saves, by name."""
    names: dict[str, Any] = {"__name__": "readme"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec(readme_code(), names)
        return names, {path.name: path.read_text(encoding="utf-8") for path in Path(folder).glob("*.svg")}


# --- screenshots of the player ---------------------------------------------------------------------------------------


def predict(page: Any) -> None:
    """Answer with a lost minus sign."""
    page.keyboard.press("p")
    for answer in ("1", "1"):
        page.keyboard.type(answer)
        page.keyboard.press("Enter")


def what_if(page: Any) -> None:
    """Change the leaf d and show the tangent."""
    page.keyboard.press("End")
    page.keyboard.press("w")
    page.get_by_role("spinbutton", name="d, exact value").fill("7")


MOMENTS: dict[str, tuple[Callable[[Any], None], int]] = {
    "predict": (predict, 880),
    "what_if": (what_if, 880),
}
"""The actions before each screenshot, and the width of the player in pixels."""

FILM_WIDTH = 880  # pixels
FRAME = 900  # milliseconds
LAST_FRAME = 3000  # milliseconds


@contextlib.contextmanager
def player(y: Any) -> Iterator[Callable[[int, str], Any]]:
    """Export the graph of `y`; yield a function of width and colour scheme that opens its player in a new page."""
    from playwright.sync_api import sync_playwright

    from minigrad_viz import export

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "y.html"
        export(y, file)
        figure, options = (
            '<figure class="minigrad"',
            """ data-minigrad='{"show": ["transport", "predict", "what-if"]}'""",
        )
        file.write_text(file.read_text(encoding="utf-8").replace(figure, figure + options), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)

        def open_page(width: int, scheme: str) -> Any:
            size = {"width": width, "height": 1200}
            page = browser.new_page(viewport=size, color_scheme=scheme, reduced_motion="reduce", offline=True)
            page.goto(file.as_uri())
            page.get_by_role("button", name="Last").focus()
            return page

        yield open_page
        browser.close()


def photograph(page: Any) -> bytes:
    """Return a PNG of the player as it is now."""
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(300)
    return page.locator(".minigrad-player").screenshot()


def photographs(y: Any) -> Iterator[tuple[str, bytes]]:
    """Yield file names and contents of a screenshot in each of MOMENTS and a film, in both themes."""
    with player(y) as open_page:
        for scheme in ("light", "dark"):
            for name, (act, width) in MOMENTS.items():
                page = open_page(width, scheme)
                act(page)
                page.evaluate("document.activeElement.blur()")
                yield f"player_{name}_{scheme}.png", small(photograph(page))
            yield f"player_steps_{scheme}.gif", film(open_page(FILM_WIDTH, scheme))


def film(page: Any) -> bytes:
    """Step the player from the first to the last moment; return a GIF with a frame per step."""
    from PIL import Image

    page.get_by_role("button", name="First").click()
    page.mouse.move(0, 0)
    shots = [photograph(page)]
    forward = page.get_by_role("button", name="Step forward")
    while forward.is_enabled():
        forward.click()
        shots.append(photograph(page))
    frames = [Image.open(io.BytesIO(shot)).convert("RGB") for shot in shots]
    height = min(frame.height for frame in frames)
    frames = [frame.crop((0, 0, frame.width, height)) for frame in frames]
    palette = frames[len(frames) // 2].quantize(128, method=Image.Quantize.MEDIANCUT)
    frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    encoded = io.BytesIO()
    times = [FRAME] * (len(frames) - 1) + [LAST_FRAME]
    frames[0].save(encoded, "GIF", save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=True)
    return encoded.getvalue()


KINDS = {
    "all three": "with all three primary colours",
    "protanopia": "protanopia: without red",
    "deuteranopia": "deuteranopia: without green",
    "tritanopia": "tritanopia: without blue",
}


def colour_blindness() -> bytes:
    """Return a PNG of a backward pass with both signs and an alarm, simulated for each kind of colour blindness."""
    sys.path[:0] = [str(ROOT / "tests" / "helpers")]
    from playwright.sync_api import sync_playwright

    from colour_vision import SEEN
    from minigrad_viz import export
    from sample_graphs import signs

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "signs.html"
        export(signs(), file)
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        page = browser.new_page(viewport={"width": 780, "height": 900}, reduced_motion="reduce", offline=True)
        page.goto(file.as_uri())
        page.get_by_role("button", name="Last").focus()
        page.keyboard.press("Home")
        for _ in range(SIGNS_AT):
            page.keyboard.press("ArrowRight")
        page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        page.wait_for_timeout(300)
        whole, legend = (page.locator(part).bounding_box() for part in (".minigrad-player .stage", ".legend"))
        clip = {**whole, "height": legend["y"] + legend["height"] - whole["y"]}
        shot = base64.b64encode(page.screenshot(clip=clip)).decode()
        # SVG applies colour matrices in linear RGB, as SEEN assumes.
        rows = {kind: " ".join(f"{a} {b} {c} 0 0" for a, b, c in SEEN[kind]) + " 0 0 0 1 0" for kind in KINDS}
        filters = "".join(
            f'<filter id="{k.split()[0]}"><feColorMatrix values="{row}"/></filter>' for k, row in rows.items()
        )
        figures = "".join(
            f'<figure><figcaption>{said}</figcaption><img src="data:image/png;base64,{shot}" '
            f'style="filter:url(#{kind.split()[0]})"></figure>'
            for kind, said in KINDS.items()
        )
        page.set_viewport_size({"width": 1160, "height": 900})
        page.set_content(f"<style>{SHEET}</style><svg width=0 height=0>{filters}</svg><main>{figures}</main>")
        page.wait_for_timeout(300)
        taken = page.locator("main").screenshot()
        browser.close()
    return small(taken)


def chromium() -> str:
    """The path of a Chromium. Raises FileNotFoundError if there is none."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        raise FileNotFoundError("Chromium is not installed")
    return found


def small(png: bytes) -> bytes:
    """Quantise a PNG to 256 colours: those of both themes exactly, and the most frequent others."""
    from PIL import Image

    from minigrad_viz.pictures.palette import DARK, LIGHT

    made = io.BytesIO()
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    exact = sorted({colour for theme in (LIGHT, DARK) for colour in theme.values()})
    others = picture.quantize(256 - len(exact), method=Image.Quantize.MEDIANCUT).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette([*b"".join(bytes.fromhex(colour[1:]) for colour in exact), *others])
    picture.quantize(palette=palette, dither=Image.Dither.NONE).save(made, "PNG", optimize=True)
    return made.getvalue()


def main() -> int:
    with open(os.devnull, "w", encoding="utf-8") as silence, contextlib.redirect_stdout(silence):
        names, pictures = readme_run()
    for name, svg in pictures.items():
        (IMAGES / name).write_text(svg, encoding="utf-8")
        print(f"book/images/{name}")
    try:
        for name, png in [*photographs(names["y"]), ("colour_blindness.png", colour_blindness())]:
            (IMAGES / name).write_bytes(png)
            print(f"book/images/{name}  {len(png) // 1000} KB")
    except (ImportError, FileNotFoundError) as missing:
        print(f"The screenshots were not updated: {missing}.", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
