"""``minigrad sweep``: run a sweep with Ray Tune, and show it as a live table, a CSV file and a plot."""

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
  goal = "min val_loss"       # the reported metric, and whether to minimise or maximise it
  samples = 20                # draws from [random], for each point of the [grid]
  workers = 2                 # concurrent trials; default: one per core

  [random]
  lr = { from = 1e-4, to = 1e-1, log = true }
  width = { from = 16, to = 128 }

  [grid]
  seed = [0, 1]

  [stop]                      # early stopping by successive halving
  grace_period = 2            # minimum number of epochs of a trial
  reduction_factor = 3        # one of so many trials continues
"""


def sweep(options: argparse.Namespace) -> int:
    """Run or resume a sweep. Return exit code 1 if a trial failed."""
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
        print(f"\nminigrad sweep: stopped. To resume, run: minigrad sweep {printable(str(options.file))}")
        return 130
    print(printable(f"{found.folder}: results.csv, parallel.svg"))
    failed = [trial for trial in found.trials if trial.state == "failed"]
    for trial in failed[:3]:
        print(printable(f"trial {trial.number} failed: {trial.error}; see trials/{trial.number:04d}/output.txt"))
    return 1 if failed else 0


class _Picture:
    """Callback that redraws the plot whenever a trial ends."""

    def __init__(self) -> None:
        self.ended = -1

    def __call__(self, sweep: Any) -> None:
        from minigrad.io.whole import write_all
        from minigrad_viz.pictures.parallel import parallel

        ended = sweep.count("done", "stopped", "diverged", "failed")
        if ended != self.ended:
            self.ended = ended
            write_all(Path(sweep.folder) / "parallel.svg", parallel(sweep).encode())
