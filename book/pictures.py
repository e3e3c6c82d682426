"""Regenerate the pictures of the README and the book (`make pictures`): the drawings that the code of the README and of
`pytorch_users.md` saves, screenshots and films of the player, and simulations of colour blindness.

Screenshots need Chromium, and the drawing of a PyTorch model needs PyTorch; without them, the stored ones remain.
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
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "book" / "images"

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
SIGNS_STEP = 25  # the step: gradients of both signs, and zeros behind an alarm, are computed
SHEET = (
    "body{margin:0}main{display:grid;grid-template-columns:1fr 1fr;gap:12px 16px;padding:4px;background:#fff}"
    "figure{margin:0}img{width:100%;border:1px solid #ccc;border-radius:8px;box-sizing:border-box}"
    "figcaption{font:600 16px sans-serif;padding:4px 2px}"
)


def readme_code() -> str:
    """Return the Python code of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))


def run_readme() -> tuple[dict[str, Any], dict[str, str]]:
    """Run the README's code; return its variables and the SVG files that it saves, by name."""
    return _run(readme_code())


def run_pytorch_users() -> tuple[dict[str, Any], dict[str, str]]:
    """Run the code of `pytorch_users.md`; return its variables and the SVG files that it saves, by name.

    Its first block is for the user's own model; here it runs last, with the model of the other blocks.
    """
    text = (ROOT / "book" / "pytorch_users.md").read_text(encoding="utf-8")
    first, *rest = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    return _run("\n".join([textwrap.dedent(block) for block in (*rest, first)]))


def _run(code: str) -> tuple[dict[str, Any], dict[str, str]]:
    names: dict[str, Any] = {"__name__": "readme"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec(code, names)
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


SCREENSHOTS: dict[str, tuple[Callable[[Any], None], int]] = {
    "predict": (predict, 880),
    "what_if": (what_if, 880),
}
"""The actions before each screenshot, and the width of the player in pixels."""

FILM_WIDTH = 880  # pixels
FRAME_MS = 900  # milliseconds
LAST_FRAME_MS = 3000  # milliseconds


@contextlib.contextmanager
def open_player(y: Any) -> Iterator[Callable[[int, str], Any]]:
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
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)

        def open_page(width: int, scheme: str) -> Any:
            size = {"width": width, "height": 1200}
            page = browser.new_page(viewport=size, color_scheme=scheme, reduced_motion="reduce", offline=True)
            page.goto(file.as_uri())
            page.get_by_role("button", name="Last").focus()
            return page

        yield open_page
        browser.close()


def screenshot(page: Any) -> bytes:
    """Return a PNG of the player as it is now."""
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(300)
    return page.locator(".minigrad-player").screenshot()


def take_screenshots(y: Any) -> Iterator[tuple[str, bytes]]:
    """Yield file names and contents of a screenshot in each of MOMENTS and a film, in both themes."""
    with open_player(y) as open_page:
        for scheme in ("light", "dark"):
            for name, (act, width) in SCREENSHOTS.items():
                page = open_page(width, scheme)
                act(page)
                page.evaluate("document.activeElement.blur()")
                yield f"player_{name}_{scheme}.png", quantize(screenshot(page))
            yield f"player_steps_{scheme}.gif", record_film(open_page(FILM_WIDTH, scheme))


def record_film(page: Any) -> bytes:
    """Step the player from the first to the last moment; return a GIF with a frame per step."""
    from PIL import Image

    page.get_by_role("button", name="First").click()
    page.mouse.move(0, 0)
    screenshots = [screenshot(page)]
    forward = page.get_by_role("button", name="Step forward")
    while forward.is_enabled():
        forward.click()
        screenshots.append(screenshot(page))
    frames = [Image.open(io.BytesIO(shot)).convert("RGB") for shot in screenshots]
    height = min(frame.height for frame in frames)
    frames = [frame.crop((0, 0, frame.width, height)) for frame in frames]
    palette = frames[len(frames) // 2].quantize(128, method=Image.Quantize.MEDIANCUT)
    frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    encoded = io.BytesIO()
    durations = [FRAME_MS] * (len(frames) - 1) + [LAST_FRAME_MS]
    frames[0].save(encoded, "GIF", save_all=True, append_images=frames[1:], duration=durations, loop=0, optimize=True)
    return encoded.getvalue()


SIMULATIONS = {
    "all three": "with all three primary colours",
    "protanopia": "protanopia: without red",
    "deuteranopia": "deuteranopia: without green",
    "tritanopia": "tritanopia: without blue",
}


def colour_blindness() -> bytes:
    """Return a PNG of a backward pass with both signs and an alarm, simulated for each kind of colour blindness."""
    sys.path[:0] = [str(ROOT / "tests" / "helpers")]
    from playwright.sync_api import sync_playwright

    from colour_vision import MATRICES
    from minigrad_viz import export
    from sample_graphs import signs

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "signs.html"
        export(signs(), file)
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        page = browser.new_page(viewport={"width": 780, "height": 900}, reduced_motion="reduce", offline=True)
        page.goto(file.as_uri())
        page.get_by_role("button", name="Last").focus()
        page.keyboard.press("Home")
        for _ in range(SIGNS_STEP):
            page.keyboard.press("ArrowRight")
        page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        page.wait_for_timeout(300)
        stage, legend = (page.locator(part).bounding_box() for part in (".minigrad-player .stage", ".legend"))
        clip = {**stage, "height": legend["y"] + legend["height"] - stage["y"]}
        shot = base64.b64encode(page.screenshot(clip=clip)).decode()
        # SVG applies colour matrices in linear RGB, as MATRICES assumes.
        rows = {kind: " ".join(f"{a} {b} {c} 0 0" for a, b, c in MATRICES[kind]) + " 0 0 0 1 0" for kind in SIMULATIONS}
        filters = "".join(
            f'<filter id="{k.split()[0]}"><feColorMatrix values="{row}"/></filter>' for k, row in rows.items()
        )
        figures = "".join(
            f'<figure><figcaption>{caption}</figcaption><img src="data:image/png;base64,{shot}" '
            f'style="filter:url(#{kind.split()[0]})"></figure>'
            for kind, caption in SIMULATIONS.items()
        )
        page.set_viewport_size({"width": 1160, "height": 900})
        page.set_content(f"<style>{SHEET}</style><svg width=0 height=0>{filters}</svg><main>{figures}</main>")
        page.wait_for_timeout(300)
        image = page.locator("main").screenshot()
        browser.close()
    return quantize(image)


def find_chromium() -> str:
    """The path of a Chromium. Raises FileNotFoundError if there is none."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        raise FileNotFoundError("Chromium is not installed")
    return path


def quantize(png: bytes) -> bytes:
    """Quantise a PNG to 256 colours: those of both themes exactly, and the most frequent others."""
    from PIL import Image

    from minigrad_viz.pictures.palette import DARK, LIGHT

    encoded = io.BytesIO()
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    theme_colours = sorted({colour for theme in (LIGHT, DARK) for colour in theme.values()})
    frequent = picture.quantize(256 - len(theme_colours), method=Image.Quantize.MEDIANCUT).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette([*b"".join(bytes.fromhex(colour[1:]) for colour in theme_colours), *frequent])
    picture.quantize(palette=palette, dither=Image.Dither.NONE).save(encoded, "PNG", optimize=True)
    return encoded.getvalue()


def main() -> int:
    with open(os.devnull, "w", encoding="utf-8") as devnull, contextlib.redirect_stdout(devnull):
        names, pictures = run_readme()
        with contextlib.suppress(ImportError):
            pictures |= run_pytorch_users()[1]
    for name, svg in pictures.items():
        (IMAGES / name).write_text(svg, encoding="utf-8")
        print(f"book/images/{name}")
    try:
        for name, png in [*take_screenshots(names["y"]), ("colour_blindness.png", colour_blindness())]:
            (IMAGES / name).write_bytes(png)
            print(f"book/images/{name}  {len(png) // 1000} KB")
    except (ImportError, FileNotFoundError) as missing:
        print(f"The screenshots were not updated: {missing}.", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
