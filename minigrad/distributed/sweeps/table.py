"""A sweep as text: a table of its trials, drawn again in place on a terminal, a line each where there is none."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING, Any, TextIO

from minigrad.distributed.sweeps.plan import said
from minigrad.errors import printable

if TYPE_CHECKING:
    from minigrad.distributed.sweeps.results import Sweep, Trial

__all__ = ["Shown", "cells", "line", "sentence", "table"]

_AGAIN = 0.2  # seconds from one table to the next
_WORST = 12  # rows at least, however low a terminal is


def sentence(sweep: Sweep) -> str:
    """How far a sweep is, in one line."""
    ended = sweep.count("done", "stopped", "diverged", "failed")
    parts = [f"{ended} of {len(sweep.trials)} trials"]
    words = {"running": "running", "stopped": "stopped early", "diverged": "diverged", "failed": "failed"}
    words["interrupted"] = "interrupted"
    parts += [f"{n} {word}" for state, word in words.items() if (n := sweep.count(state))]
    return " · ".join(parts)


def cells(sweep: Sweep) -> list[list[str]]:
    """The table as texts: its heads, then a row for each trial that has begun, the best first."""
    plan = sweep.plan
    heads = ["trial", "state", *(axis.name for axis in plan.axes), plan.goal, "epoch", "seconds"]
    return [heads, *(_row(sweep, trial) for trial in sweep.ranked() if trial.state != "waiting")]


def table(sweep: Sweep, most: int | None = None, columns: int | None = None) -> list[str]:
    """The lines: how far it is, then the table, of at most so many trials.

    Where it is wider than so many `columns`, it is without seconds, or without epochs too.
    """
    rows = cells(sweep)
    shown = rows if most is None or len(rows) <= most + 1 else rows[:most]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for _ in range(2):
        if columns is not None and sum(widths) + 2 * len(widths) - 2 > columns:
            widths, shown = widths[:-1], [row[:-1] for row in shown]
    lines = [
        "  ".join(x.ljust(w) if k == 1 else x.rjust(w) for k, (x, w) in enumerate(zip(row, widths, strict=True)))
        for row in shown
    ]
    more = [f"… and {len(rows) - len(shown)} more"] if len(shown) < len(rows) else []
    return [printable(one.rstrip()) for one in (sentence(sweep), *(lines if len(rows) > 1 else []), *more)]


def _row(sweep: Sweep, trial: Trial) -> list[str]:
    goal = "" if trial.goal is None else said(float(trial.goal))
    epochs = f"{trial.epoch} of {trial.epochs}" if trial.epochs else ""
    values = [said(trial.values[axis.name]) for axis in sweep.plan.axes]
    seconds = f"{trial.seconds:.1f}" if trial.seconds else ""
    return [str(trial.number), trial.state, *values, goal, epochs, seconds]


def line(sweep: Sweep, trial: Trial) -> str:
    """A trial that has ended, in a line."""
    values = " ".join(f"{name}={said(x)}" for name, x in trial.values.items())
    goal = f", {sweep.plan.goal} {said(float(trial.goal))} at epoch {trial.epoch}" if trial.goal is not None else ""
    error = f": {trial.error}" if trial.error else ""
    return printable(f"trial {trial.number} {trial.state} after {trial.epochs} epochs: {values}{goal}{error}")


class Shown:
    """What shows a sweep on a stream while it runs; called with it after each change."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdout
        self.live = self.stream.isatty()
        self._drawn, self._lines, self._known = 0.0, 0, set[tuple[int, str]]()

    def __call__(self, sweep: Any, last: bool = False) -> None:
        """Show what has changed; `last` where nothing will any more."""
        if self.live:
            if last or time.monotonic() - self._drawn > _AGAIN:
                self._redraw(sweep, last)
            return
        for trial in sweep.trials:
            told = trial.number, trial.state
            if trial.state in ("done", "stopped", "diverged", "failed") and told not in self._known:
                self._known.add(told)
                if not last:
                    print(line(sweep, trial), file=self.stream, flush=True)
        if last:
            print("\n".join(table(sweep)), file=self.stream, flush=True)

    def _redraw(self, sweep: Any, last: bool) -> None:
        size = shutil.get_terminal_size()
        lines = table(sweep, *(() if last else (max(size.lines - 5, _WORST), size.columns - 1)))
        shown = lines if last else [one[: size.columns - 1] for one in lines]
        up = f"\x1b[{self._lines}F" if self._lines else ""
        self.stream.write(f"{up}\x1b[J" + "\n".join(shown) + "\n")
        self.stream.flush()
        self._drawn, self._lines = time.monotonic(), len(shown)
