"""The progress bar of `fit`: one bar for all epochs, in a terminal or a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from minigrad.core.errors import printable
from minigrad.core.packages import import_package

__all__ = ["ProgressBar"]

_BAR_FORMAT = "{desc}{percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"
"""Bar format without counts and rates, so that the metrics fit into 80 columns."""


class ProgressBar:
    """A tqdm progress bar from step `initial` to `total`, or to an unknown number of steps. Shown only if `enabled`."""

    def __init__(self, enabled: bool, description: str, initial: int, total: int | None) -> None:
        self.bar: Any = None
        if enabled:
            bar_format = _BAR_FORMAT if total else None
            self.bar = import_package("tqdm.auto", "fit, its progress", ", or fit(…, progress=False)").tqdm(
                desc=f"{description}: ",
                initial=initial,
                total=total,
                unit=" steps",
                dynamic_ncols=True,
                bar_format=bar_format,
            )
        self.epoch_metrics = ""

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.close()

    def set_epoch(self, text: str) -> None:
        """Set the label of the bar to that of the current epoch."""
        if self.bar is not None:
            self.bar.set_description(text, refresh=False)

    def step(self, loss: float) -> None:
        """Advance the bar by one step, and show the loss unless it is nan, that is, not yet read."""
        if self.bar is not None:
            if loss == loss:
                self.bar.set_postfix_str(f"loss={loss:.3g}{self.epoch_metrics}", refresh=False)
            self.bar.update()

    def show_metrics(self, row: Mapping[str, float]) -> None:
        """Show the metrics of a completed epoch, and from now on include the metrics other than the loss."""
        if self.bar is not None:
            formatted = "".join(f", {name}={x:.3g}" for name, x in row.items() if name not in ("loss", "lr"))
            self.epoch_metrics = printable(formatted)
            self.bar.set_postfix_str(f"loss={row['loss']:.3g}{self.epoch_metrics}")

    def write(self, text: str) -> None:
        """Print a line above the bar."""
        if self.bar is not None:
            self.bar.write(printable(text))

    def finish(self) -> None:
        """Mark the bar as complete after an early stop."""
        if self.bar is not None:
            self.bar.total = self.bar.n
            self.bar.refresh()
