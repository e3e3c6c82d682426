"""``minigrad sweep``: what a file asks for, run by Ray's Tune, as a table that is drawn again, a CSV and a picture."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from minigrad.cli.stop import Stop
from minigrad.core.errors import MinigradError, MissingPackageError, printable

__all__ = ["EXAMPLE", "sweep"]

EXAMPLE = """\
a file:
  train = "train.py:train"    # def train(lr, width, seed, report): … fit(…, callbacks=[report])
  goal = "min val_loss"       # what train reports, and whether less or more is better
  samples = 20                # how often [random] is drawn, for each point of the [grid]
  workers = 2                 # how many run at once; by default one a core

  [random]
  lr = { from = 1e-4, to = 1e-1, log = true }
  width = { from = 16, to = 128 }

  [grid]
  seed = [0, 1]

  [stop]                      # early: successive halving
  grace_period = 2            # epochs that each trial has
  reduction_factor = 3        # of so many trials one goes on
"""


def sweep(options: argparse.Namespace) -> int:
    """Run it, or go on with it. The exit code is 1 if a trial failed."""
    from minigrad.distributed.sweeps import asked
    from minigrad.distributed.sweeps import sweep as run

    try:
        arguments = asked(options.file)
        found = run(**arguments, anew=options.anew, callbacks=[_Picture()])
    except MissingPackageError:
        raise
    except (MinigradError, OSError) as error:
        raise Stop(str(error)) from None
    except KeyboardInterrupt:
        print(f"\nminigrad sweep: stopped. The same command goes on: minigrad sweep {printable(str(options.file))}")
        return 130
    print(printable(f"{found.folder}: results.csv, parallel.svg"))
    failed = [trial for trial in found.trials if trial.state == "failed"]
    for trial in failed[:3]:
        print(printable(f"trial {trial.number} failed: {trial.error}; see trials/{trial.number:04d}/output.txt"))
    return 1 if failed else 0


class _Picture:
    """Draws the picture anew whenever a trial has ended."""

    def __init__(self) -> None:
        self.ended = -1

    def __call__(self, sweep: Any) -> None:
        from minigrad.io.whole import write_all
        from minigrad_viz.pictures.parallel import parallel

        ended = sweep.count("done", "stopped", "diverged", "failed")
        if ended != self.ended:
            self.ended = ended
            write_all(Path(sweep.folder) / "parallel.svg", parallel(sweep).encode())
