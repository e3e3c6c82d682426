"""The history of a training run, by epoch and by step."""

from __future__ import annotations

from typing import Any

from minigrad.core.errors import printable

__all__ = ["History"]

MAX_ROWS = 20  # Maximum number of rows of a printed table; the middle of a longer table is elided.


class History:
    """The metrics of a training run. `epochs` contains a dict of metrics per epoch, `steps` the loss of each step.

    Indexing by name returns the values of a metric for all epochs: ``history["val_loss"]``. `stopped` is the reason if
    training ended before its last epoch.

    >>> history = History()
    >>> history.epochs += [{"loss": 1.5, "val_loss": 1.25, "lr": 0.1}, {"loss": 0.75, "val_loss": 1.0, "lr": 0.1}]
    >>> history["loss"], len(history)
    ([1.5, 0.75], 2)
    >>> history
    epoch  loss  val_loss   lr
        1   1.5      1.25  0.1
        2  0.75         1  0.1
    """

    def __init__(self) -> None:
        self.epochs: list[dict[str, float]] = []
        self.steps: list[float] = []
        self.stopped = ""

    @property
    def names(self) -> list[str]:
        """The names of all metrics, in order of appearance."""
        return list(dict.fromkeys(name for row in self.epochs for name in row))

    def __getitem__(self, name: str) -> list[float]:
        if name not in self.names:
            raise KeyError(f"history has no metric {name!r}; it has {', '.join(self.names) or 'no epochs yet'}.")
        return [row[name] for row in self.epochs if name in row]

    def __len__(self) -> int:
        return len(self.epochs)

    def __repr__(self) -> str:
        if not self.epochs:
            return f"History: no completed epoch, {len(self.steps)} steps"
        names = self.names
        rows = [[str(k), *(_format_number(row.get(name)) for name in names)] for k, row in enumerate(self.epochs, 1)]
        if len(rows) > MAX_ROWS:
            rows[MAX_ROWS // 2 : -(MAX_ROWS // 2)] = [["…" for _ in rows[0]]]
        table = [["epoch", *names], *rows]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
        return printable("\n".join([*lines, *([self.stopped] if self.stopped else [])]))


def _format_number(x: Any) -> str:
    return "" if x is None else f"{x:.4g}"
