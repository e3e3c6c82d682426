"""The widget of a sweep, which re-reads the sweep's folder whenever it changes.

Imported when the first widget is created, because ipywidgets is slow to import.
"""

from __future__ import annotations

import os
import threading
import weakref
from importlib.resources import files
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from minigrad.core.deprecation import deprecated_names
from minigrad.distributed import Sweep
from minigrad_viz.pictures.parallel_coordinates import figure, render_sweep, summary_line
from minigrad_viz.trace.notation import escape, sanitize

__all__ = ["SweepWidget"]

__getattr__ = deprecated_names(__name__, {"Followed": "SweepWidget"})

POLL_INTERVAL = 0.5  # seconds between polls
MAX_ROWS = 200  # maximum number of rows in the table
CELL_STYLE = "padding:2px 10px;white-space:nowrap;text-align:"


class SweepWidget(anywidget.AnyWidget):
    """A live view of a sweep, created by `minigrad_viz.sweep`. `results` is the sweep as last read, or None before the
    sweep exists; `state` is the content of the page.
    """

    state = traitlets.Dict().tag(sync=True)
    _esm = files("minigrad_viz").joinpath("static/sweep.js").read_text(encoding="utf-8")

    _ipython_display_ = None  # replaces a method of ipywidgets 7 that would hide the picture and the text from IPython

    def __init__(self, folder: str | os.PathLike[str], wait: bool = False) -> None:
        self.folder = Path(folder)
        self.results: Sweep | None = None
        self._read_time = 0
        if not wait or self._modified_time():
            self._read()
        super().__init__(state=self._page_state())
        threading.Thread(target=_poll, args=(weakref.ref(self),), daemon=True).start()

    def refresh(self) -> bool:
        """Update the state if the folder changed. Return whether more results may follow."""
        if self._modified_time() != self._read_time:
            self._read()
            self.state = self._page_state()
        return self.comm is not None and (self.results is None or bool(self.results.count(*UNFINISHED)))

    def svg(self) -> str:
        """Return the picture alone, or "" before the sweep exists."""
        return render_sweep(self.results) if self.results else ""

    def _modified_time(self) -> int:
        try:
            return (self.folder / "sweep.json").stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def _read(self) -> None:
        self._read_time = self._modified_time()
        self.results = Sweep.read(self.folder)

    def _page_state(self) -> dict[str, Any]:
        results = self.results
        if results is None:
            return {
                "picture": "",
                "alt": "",
                "sentence": f"There is no sweep in {sanitize(self.folder)} yet.",
                "rows": [],
            }
        rows = _clean_rows(results.table_cells())
        return {
            "picture": self.svg(),
            "alt": summary_line(results),
            "sentence": sanitize(results.summary()),
            "rows": rows,
        }

    def __repr__(self) -> str:
        return sanitize(self.state["sentence"]) if self.results is None else repr(self.results)

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the widget view, with the picture and its table as a fallback."""
        live, metadata = super()._repr_mimebundle_(**options) or ({}, {})
        view = {kind: content for kind, content in live.items() if kind.startswith("application/")}
        return {**view, "text/html": self._html(), "text/plain": repr(self)}, metadata

    def _html(self) -> str:
        sentence, rows = escape(self.state["sentence"]), self.state["rows"]
        cells = "".join(
            f"<tr>{''.join(_html_cell('td' if at else 'th', k, text) for k, text in enumerate(row))}</tr>"
            for at, row in enumerate(rows)
        )
        picture = figure(self.results) if self.results else ""
        return f'{picture}<p style="margin:8px 0 4px">{sentence}</p><table>{cells}</table>'


UNFINISHED = ("waiting", "running", "interrupted")


def _html_cell(kind: str, column: int, text: str) -> str:
    return f'<{kind} style="{CELL_STYLE}{"left" if column == 1 else "right"}">{escape(text)}</{kind}>'


def _clean_rows(rows: list[list[str]]) -> list[list[str]]:
    omitted = len(rows) - 1 - MAX_ROWS
    summary_row = [[f"… and {omitted} more", *[""] * (len(rows[0]) - 1)]] if omitted > 0 else []
    return [[sanitize(text) for text in row] for row in rows[: MAX_ROWS + 1]] + summary_row


def _poll(widget_ref: weakref.ref[SweepWidget]) -> None:
    """Poll the folder as long as the widget is referenced and more results may follow."""
    timer = threading.Event()
    while True:
        timer.wait(POLL_INTERVAL)
        widget = widget_ref()
        if widget is None or not widget.refresh():
            return
        del widget
