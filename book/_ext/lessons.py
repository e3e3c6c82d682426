"""The lessons as pages of the book: copies of the stored notebooks, without the solutions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from sphinx.application import Sphinx

__all__ = ["NOT_LIVE", "setup"]

BOOK = Path(__file__).resolve().parent.parent
NOTEBOOKS, PAGES = BOOK.parent / "notebooks", BOOK / "lessons"
NOTEBOOK_LINK = (
    "{{live}}`{stem}` {{download}}`Download the notebook <../../notebooks/{name}>`; `minigrad lab` opens all of them."
)
NOT_LIVE = {"18": "PyTorch has no build for browsers."}
"""Why a lesson is not offered as a live page, by its number. The others run with Pyodide's packages."""


def copy_lessons(app: Sphinx, config: Any) -> None:
    """Copy the notebooks to the source folder, except unchanged ones, which Sphinx would otherwise reread."""
    PAGES.mkdir(exist_ok=True)
    for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb")):
        text = nbformat.writes(convert_notebook(nbformat.read(path, as_version=4), path.name))
        page = PAGES / path.name
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def convert_notebook(notebook: Any, name: str) -> Any:
    """Add a link to the notebook to a lesson, and move the alternative text of images to where MyST-NB reads it."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if alt := output.get("metadata", {}).get("image/png", {}).get("alt"):
                cell.metadata["mystnb"] = {"image": {"alt": alt}}
    first_cell = notebook.cells[0]
    title, _, rest = first_cell.source.partition("\n")
    first_cell.source = f"{title}\n\n{NOTEBOOK_LINK.format(name=name, stem=Path(name).stem)}\n{rest}"
    return notebook


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", copy_lessons)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
