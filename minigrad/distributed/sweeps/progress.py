"""Progress display of a sweep: a table redrawn in place on a terminal, else one line per finished trial."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

from minigrad.core.errors import printable
from minigrad.distributed.sweeps.plan import format_value
from minigrad.distributed.sweeps.results import Sweep, Trial

__all__ = ["ProgressTable", "format_trial"]

_REDRAW_SECONDS = 0.2  # seconds between redraws
_MIN_ROWS = 12  # minimum number of rows, even on a small terminal


def format_trial(sweep: Sweep, trial: Trial) -> str:
    """Format a finished trial as one line."""
    values = " ".join(f"{name}={format_value(x)}" for name, x in trial.values.items())
    goal = (
        f", {sweep.plan.goal} {format_value(float(trial.goal))} at epoch {trial.epoch}"
        if trial.goal is not None
        else ""
    )
    error = f": {trial.error}" if trial.error else ""
    return printable(f"trial {trial.number} {trial.state} after {trial.epochs} epochs: {values}{goal}{error}")


class ProgressTable:
    """Callback that displays the progress of a sweep on a stream."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdout
        self.is_terminal = self.stream.isatty()
        self._last_redraw, self._line_count, self._reported = 0.0, 0, set[tuple[int, str]]()

    def __call__(self, sweep: Sweep, last: bool = False) -> None:
        """Display changes since the last call. `last` is true for the final state."""
        if self.is_terminal:
            if last or time.monotonic() - self._last_redraw > _REDRAW_SECONDS:
                self._redraw(sweep, last)
            return
        for trial in sweep.trials:
            key = trial.number, trial.state
            if trial.state in ("done", "stopped", "diverged", "failed") and key not in self._reported:
                self._reported.add(key)
                if not last:
                    print(format_trial(sweep, trial), file=self.stream, flush=True)
        if last:
            print("\n".join(sweep.table()), file=self.stream, flush=True)

    def _redraw(self, sweep: Sweep, last: bool) -> None:
        size = shutil.get_terminal_size()
        lines = sweep.table(*(() if last else (max(size.lines - 5, _MIN_ROWS), size.columns - 1)))
        visible = lines if last else [row[: size.columns - 1] for row in lines]
        move_up = f"\x1b[{self._line_count}F" if self._line_count else ""
        self.stream.write(f"{move_up}\x1b[J" + "\n".join(visible) + "\n")
        self.stream.flush()
        self._last_redraw, self._line_count = time.monotonic(), len(visible)
