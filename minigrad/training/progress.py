"""The progress bar of `fit`: one bar for all epochs, in a terminal or a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from minigrad.core.errors import printable
from minigrad.core.packages import package

__all__ = ["Progress"]

_FORM = "{desc}{percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"
"""Omits counts and rates, so that the metrics fit into 80 columns."""


class Progress:
    """A tqdm bar, or none unless `shown`, starting at `done` of `total` steps (or None), described by `first`."""

    def __init__(self, shown: bool, first: str, done: int, total: int | None) -> None:
        self.bar: Any = None
        if shown:
            form = _FORM if total else None
            self.bar = package("tqdm.auto", "fit, its progress", ", or fit(…, progress=False)").tqdm(
                desc=f"{first}: ", initial=done, total=total, unit=" steps", dynamic_ncols=True, bar_format=form
            )
        self.known = ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.bar is not None:
            self.bar.close()

    def epoch(self, text: str) -> None:
        """Describe the epoch that begins."""
        if self.bar is not None:
            self.bar.set_description(text, refresh=False)

    def step(self, loss: float) -> None:
        """Advance by one step with this loss, nan if none has been read yet."""
        if self.bar is not None:
            if loss == loss:
                self.bar.set_postfix_str(f"loss={loss:.3g}{self.known}", refresh=False)
            self.bar.update()

    def numbers(self, row: Mapping[str, float]) -> None:
        """Show the metrics of a completed epoch, and include those other than the loss from now on."""
        if self.bar is not None:
            named = "".join(f", {name}={x:.3g}" for name, x in row.items() if name not in ("loss", "lr"))
            self.known = printable(named)
            self.bar.set_postfix_str(f"loss={row['loss']:.3g}{self.known}")

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        if self.bar is not None:
            self.bar.write(printable(text))

    def end(self) -> None:
        """Mark the bar as complete after an early stop."""
        if self.bar is not None:
            self.bar.total = self.bar.n
            self.bar.refresh()
