"""Progress display of a sweep: a table redrawn in place on a terminal, else one line per finished trial."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

from minigrad.core.errors import printable
from minigrad.distributed.sweeps.plan import said
from minigrad.distributed.sweeps.results import Sweep, Trial

__all__ = ["Shown", "line"]

_AGAIN = 0.2  # seconds between redraws
_WORST = 12  # minimum rows, even on a small terminal


def line(sweep: Sweep, trial: Trial) -> str:
    """Format a finished trial as one line."""
    values = " ".join(f"{name}={said(x)}" for name, x in trial.values.items())
    goal = f", {sweep.plan.goal} {said(float(trial.goal))} at epoch {trial.epoch}" if trial.goal is not None else ""
    error = f": {trial.error}" if trial.error else ""
    return printable(f"trial {trial.number} {trial.state} after {trial.epochs} epochs: {values}{goal}{error}")


class Shown:
    """Callback that displays the progress of a sweep on a stream."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdout
        self.live = self.stream.isatty()
        self._drawn, self._lines, self._known = 0.0, 0, set[tuple[int, str]]()

    def __call__(self, sweep: Sweep, last: bool = False) -> None:
        """Display changes since the last call; `last` is set for the final state."""
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
            print("\n".join(sweep.table()), file=self.stream, flush=True)

    def _redraw(self, sweep: Sweep, last: bool) -> None:
        size = shutil.get_terminal_size()
        lines = sweep.table(*(() if last else (max(size.lines - 5, _WORST), size.columns - 1)))
        shown = lines if last else [one[: size.columns - 1] for one in lines]
        up = f"\x1b[{self._lines}F" if self._lines else ""
        self.stream.write(f"{up}\x1b[J" + "\n".join(shown) + "\n")
        self.stream.flush()
        self._drawn, self._lines = time.monotonic(), len(shown)
