"""Make the README's pictures again: run its code, keep the file that it saves, and photograph the player on its graph.

`make pictures`. The photographs need Chromium; where there is none the stored ones stay.
"""

from __future__ import annotations

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
COLOURS = 96  # of a photograph: as many as tell its greys apart, at a third of the size


def readme_code() -> str:
    """The Python of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))


def readme_run() -> tuple[dict[str, Any], dict[str, str]]:
    """What the README's code leaves behind: its variables, and the SVG files that it saves, by name."""
    names: dict[str, Any] = {"__name__": "readme"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec(readme_code(), names)
        return names, {path.name: path.read_text(encoding="utf-8") for path in Path(folder).glob("*.svg")}


# --- photographs of the player ---------------------------------------------------------------------------------------


def backward(page: Any) -> None:
    """In the middle of the backward pass: a product has just reached the first sum."""
    page.get_by_role("button", name="First").click()
    for _ in range(12):
        page.keyboard.press("ArrowRight")


def predict(page: Any) -> None:
    """A reader has lost the minus sign."""
    page.keyboard.press("p")
    for answer in ("1", "1"):
        page.keyboard.type(answer)
        page.keyboard.press("Enter")


def what_if(page: Any) -> None:
    """Another number for d, and the tangent there."""
    page.keyboard.press("End")
    page.keyboard.press("w")
    page.get_by_role("spinbutton", name="d, exactly").fill("7")


MOMENTS: dict[str, tuple[Callable[[Any], None], int]] = {
    "backward": (backward, 1200),
    "predict": (predict, 880),
    "what_if": (what_if, 880),
}
"""For each photograph what is done before it, and how wide the player is, in pixels."""


def photographs(y: Any) -> Iterator[tuple[str, bytes]]:
    """The player on the graph of `y`, at its moments, in light and in dark: names of files, and PNGs."""
    from playwright.sync_api import sync_playwright

    from minigrad_viz import export

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        raise FileNotFoundError("there is no Chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "y.html"
        export(y, file)
        bare = file.with_name("bare.html")  # for the small ones
        figure, options = (
            '<figure class="minigrad"',
            """ data-minigrad='{"show": ["transport", "predict", "what-if"]}'""",
        )
        bare.write_text(file.read_text(encoding="utf-8").replace(figure, figure + options), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for name, (act, width) in MOMENTS.items():
            for scheme in ("light", "dark"):
                size = {"width": width, "height": 1200}
                page = browser.new_page(viewport=size, color_scheme=scheme, reduced_motion="reduce", offline=True)
                page.goto((file if width > 1000 else bare).as_uri())
                page.get_by_role("button", name="Last").focus()
                act(page)
                page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
                page.wait_for_timeout(300)
                yield f"player_{name}_{scheme}.png", small(page.locator(".minigrad-player").screenshot())
        browser.close()


def small(png: bytes) -> bytes:
    """The same picture in few colours."""
    from PIL import Image

    made = io.BytesIO()
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    few = picture.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(made, "PNG", optimize=True)
    return made.getvalue()


def main() -> int:
    with open(os.devnull, "w", encoding="utf-8") as silence, contextlib.redirect_stdout(silence):
        names, pictures = readme_run()
    for name, svg in pictures.items():
        (IMAGES / name).write_text(svg, encoding="utf-8")
        print(f"book/images/{name}")
    try:
        for name, png in photographs(names["y"]):
            (IMAGES / name).write_bytes(png)
            print(f"book/images/{name}  {len(png) // 1000} KB")
    except (ImportError, FileNotFoundError) as missing:
        print(f"The photographs of the player stay as they are: {missing}.", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
