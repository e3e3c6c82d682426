"""Hyperparameter sweeps with Ray Tune: search spaces, trials, progress tables and stored results."""

from minigrad.distributed.sweeps.asking import asked, sweep
from minigrad.distributed.sweeps.plan import Halving
from minigrad.distributed.sweeps.progress import Shown
from minigrad.distributed.sweeps.report import Report
from minigrad.distributed.sweeps.results import Sweep, Trial

__all__ = ["Halving", "Report", "Shown", "Sweep", "Trial", "asked", "sweep"]
