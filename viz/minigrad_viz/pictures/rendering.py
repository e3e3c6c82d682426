"""Conversion of SVG to PNG and PDF with typst, which needs no external program or browser.

Boxes are measured for DejaVu Sans. It is used if the system has it, or matplotlib, which ships it; otherwise another
sans serif font, or one bundled with typst. Text in a PDF remains text.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from minigrad.core.packages import explained, package
from minigrad_viz.pictures.palette import FONT
from minigrad_viz.pictures.svg import Picture

__all__ = ["INSTEAD", "pdf", "png"]

_PNG = """#set page(width: {0}pt, height: {1}pt, margin: 0pt, fill: {2})
#image(bytes(sys.inputs.svg), format: "svg", width: 100%, height: 100%, fit: "contain")"""
_PDF = """#set document(title: sys.inputs.title, date: none)
#set page(width: {0}pt, height: {1}pt, margin: 0pt, fill: none)
#image(bytes(sys.inputs.svg), format: "svg", width: 100%, alt: sys.inputs.title)"""
INSTEAD = ", or save as SVG, which needs none"
_POINT = 0.75  # points per pixel, as in CSS


def png(svg: str, size: tuple[int, int], fill: str | None = None) -> bytes:
    """Render an SVG as a PNG of `size` pixels, scaled to fit and centred, on the colour `fill` or transparent.

    Raises MissingPackageError if typst is not installed.
    """
    ground = "none" if fill is None else f'rgb("{fill}")'
    return _compiled(_PNG.format(*size, ground), {"svg": svg}, format="png", ppi=72.0)


def pdf(picture: Picture, title: str) -> bytes:
    """Render a picture as a PDF with one page of its size; `title` is also the alternative text."""
    page = _PDF.format(_POINT * picture.width, _POINT * picture.height)
    return _compiled(page, {"svg": picture.svg, "title": title}, format="pdf")


def _compiled(page: str, inputs: dict[str, str], **options: Any) -> bytes:
    with explained("save", INSTEAD):
        compiler = _compiler(package("typst", "save", INSTEAD))
        inputs["svg"] = inputs["svg"].replace(FONT, f"'DejaVu Sans',{FONT}")
        found: bytes = compiler.compile(page.encode(), sys_inputs=inputs, **options)
        return found


@cache
def _compiler(typst: Any) -> Any:
    return typst.Compiler(font_paths=list(map(str, _folders())))


def _folders() -> list[Path]:
    """Return the font directories of matplotlib, if it is installed, without importing it."""
    spec = find_spec("matplotlib")
    places = spec.submodule_search_locations if spec and spec.submodule_search_locations else []
    return [folder for place in places if (folder := Path(place, "mpl-data", "fonts", "ttf")).is_dir()]
