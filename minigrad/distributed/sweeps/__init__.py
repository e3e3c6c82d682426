"""Sweeps: the same training for many values, by Ray's Tune; what is tried, how it is shown, and what is kept of it."""

from minigrad.distributed.sweeps.asking import asked, sweep
from minigrad.distributed.sweeps.plan import Halving
from minigrad.distributed.sweeps.progress import Shown
from minigrad.distributed.sweeps.report import Report
from minigrad.distributed.sweeps.results import Sweep, Trial

__all__ = ["Halving", "Report", "Shown", "Sweep", "Trial", "asked", "sweep"]
