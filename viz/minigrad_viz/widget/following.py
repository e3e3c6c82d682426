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

from minigrad.distributed import Sweep
from minigrad_viz.pictures.parallel import figure, parallel, told
from minigrad_viz.trace.notation import clean, escape

__all__ = ["Followed"]

_AGAIN = 0.5  # seconds between polls
_MOST = 200  # rows of the table
_CELL = "padding:2px 10px;white-space:nowrap;text-align:"


class Followed(anywidget.AnyWidget):
    """A live view of a sweep, created by `minigrad_viz.sweep`. `results` is the sweep as last read, None before it
    exists; `state` is what the page shows.
    """

    state = traitlets.Dict().tag(sync=True)
    _esm = files("minigrad_viz").joinpath("static/sweep.js").read_text(encoding="utf-8")

    _ipython_display_ = None  # ipywidgets 7 defines it, which would hide the picture and the text from IPython

    def __init__(self, folder: str | os.PathLike[str], wait: bool = False) -> None:
        self.folder = Path(folder)
        self.results: Sweep | None = None
        self._seen = 0
        if not wait or self._written():
            self._read()
        super().__init__(state=self._state())
        threading.Thread(target=_follow, args=(weakref.ref(self),), daemon=True).start()

    def look(self) -> bool:
        """Update the state if the folder changed, and return whether more results may come."""
        if self._written() != self._seen:
            self._read()
            self.state = self._state()
        return self.comm is not None and (self.results is None or bool(self.results.count(*_GOES_ON)))

    def svg(self) -> str:
        """Return the picture alone; "" before the sweep exists."""
        return parallel(self.results) if self.results else ""

    def _written(self) -> int:
        try:
            return (self.folder / "sweep.json").stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def _read(self) -> None:
        self._seen = self._written()
        self.results = Sweep.read(self.folder)

    def _state(self) -> dict[str, Any]:
        found = self.results
        if found is None:
            return {"picture": "", "alt": "", "sentence": f"There is no sweep in {clean(self.folder)} yet.", "rows": []}
        rows = _cleaned(found.cells())
        return {"picture": self.svg(), "alt": told(found), "sentence": clean(found.sentence()), "rows": rows}

    def __repr__(self) -> str:
        return clean(self.state["sentence"]) if self.results is None else repr(self.results)

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the widget view, with the picture and its table as a fallback."""
        live, metadata = super()._repr_mimebundle_(**options) or ({}, {})
        view = {kind: content for kind, content in live.items() if kind.startswith("application/")}
        return {**view, "text/html": self._html(), "text/plain": repr(self)}, metadata

    def _html(self) -> str:
        sentence, rows = escape(self.state["sentence"]), self.state["rows"]
        cells = "".join(
            f"<tr>{''.join(_cell('td' if at else 'th', k, text) for k, text in enumerate(row))}</tr>"
            for at, row in enumerate(rows)
        )
        picture = figure(self.results) if self.results else ""
        return f'{picture}<p style="margin:8px 0 4px">{sentence}</p><table>{cells}</table>'


_GOES_ON = ("waiting", "running", "interrupted")


def _cell(kind: str, place: int, text: str) -> str:
    return f'<{kind} style="{_CELL}{"left" if place == 1 else "right"}">{escape(text)}</{kind}>'


def _cleaned(rows: list[list[str]]) -> list[list[str]]:
    left = len(rows) - 1 - _MOST
    more = [[f"… and {left} more", *[""] * (len(rows[0]) - 1)]] if left > 0 else []
    return [[clean(text) for text in row] for row in rows[: _MOST + 1]] + more


def _follow(seen: weakref.ref[Followed]) -> None:
    """Poll the folder as long as the widget is referenced and more results may come."""
    pause = threading.Event()
    while True:
        pause.wait(_AGAIN)
        widget = seen()
        if widget is None or not widget.look():
            return
        del widget
