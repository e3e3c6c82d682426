"""Conversion of SVG to PNG and PDF with typst, which needs no external program or browser.

Box sizes are computed for DejaVu Sans, which is used if it is installed on the system or with matplotlib. Otherwise,
another sans serif font or one bundled with typst is used. Text in a PDF remains text.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from minigrad.core.packages import explain_import_errors, import_package
from minigrad_viz.pictures.palette import FONT
from minigrad_viz.pictures.svg import Picture

__all__ = ["ALTERNATIVE_HINT", "render_pdf", "render_png"]

_PNG = """#set page(width: {0}pt, height: {1}pt, margin: 0pt, fill: {2})
#image(bytes(sys.inputs.svg), format: "svg", width: 100%, height: 100%, fit: "contain")"""
_PDF = """#set document(title: sys.inputs.title, date: none)
#set page(width: {0}pt, height: {1}pt, margin: 0pt, fill: none)
#image(bytes(sys.inputs.svg), format: "svg", width: 100%, alt: sys.inputs.title)"""
ALTERNATIVE_HINT = ", or save as SVG, which needs none"
_POINTS_PER_PIXEL = 0.75  # points per pixel, as in CSS


def render_png(svg: str, size: tuple[int, int], fill: str | None = None) -> bytes:
    """Render an SVG as a PNG of `size` pixels, scaled to fit and centred. The background is `fill`, or transparent if
    `fill` is None.

    Raises MissingPackageError if typst is not installed.
    """
    background = "none" if fill is None else f'rgb("{fill}")'
    return _compile(_PNG.format(*size, background), {"svg": svg}, format="png", ppi=72.0)


def render_pdf(picture: Picture, title: str) -> bytes:
    """Render a picture as a one-page PDF of the picture's size. `title` is also used as the alternative text."""
    page = _PDF.format(_POINTS_PER_PIXEL * picture.width, _POINTS_PER_PIXEL * picture.height)
    return _compile(page, {"svg": picture.svg, "title": title}, format="pdf")


def _compile(page: str, inputs: dict[str, str], **options: Any) -> bytes:
    with explain_import_errors("save", ALTERNATIVE_HINT):
        compiler = _make_compiler(import_package("typst", "save", ALTERNATIVE_HINT))
        inputs["svg"] = inputs["svg"].replace(FONT, f"'DejaVu Sans',{FONT}")
        result: bytes = compiler.compile(page.encode(), sys_inputs=inputs, **options)
        return result


@cache
def _make_compiler(typst: Any) -> Any:
    return typst.Compiler(font_paths=list(map(str, _font_folders())))


def _font_folders() -> list[Path]:
    """Return the font directories of matplotlib, if it is installed, without importing it."""
    spec = find_spec("matplotlib")
    package_paths = spec.submodule_search_locations if spec and spec.submodule_search_locations else []
    return [
        folder for package_path in package_paths if (folder := Path(package_path, "mpl-data", "fonts", "ttf")).is_dir()
    ]
