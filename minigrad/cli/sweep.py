"""``minigrad sweep``: run a sweep with Ray Tune, and show it as a live table, a CSV file and a plot."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from minigrad.cli.errors import CommandError
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
    from minigrad.distributed.sweeps import read_config
    from minigrad.distributed.sweeps import sweep as run

    try:
        arguments = read_config(options.file)
        result = run(**arguments, anew=options.anew, callbacks=[_PlotCallback()])
    except MissingPackageError:
        raise
    except (MinigradError, OSError) as error:
        raise CommandError(str(error)) from None
    except KeyboardInterrupt:
        print(f"\nminigrad sweep: stopped. To resume, run: minigrad sweep {printable(str(options.file))}")
        return 130
    print(printable(f"{result.folder}: results.csv, parallel.svg"))
    failed = [trial for trial in result.trials if trial.state == "failed"]
    for trial in failed[:3]:
        print(printable(f"trial {trial.number} failed: {trial.error}; see trials/{trial.number:04d}/output.txt"))
    return 1 if failed else 0


class _PlotCallback:
    """Callback that redraws the plot whenever a trial ends."""

    def __init__(self) -> None:
        self.ended_count = -1

    def __call__(self, sweep: Any) -> None:
        from minigrad.io.atomic import write_all
        from minigrad_viz.pictures.parallel_coordinates import render_sweep

        ended = sweep.count("done", "stopped", "diverged", "failed")
        if ended != self.ended_count:
            self.ended_count = ended
            write_all(Path(sweep.folder) / "parallel.svg", render_sweep(sweep).encode())
