"""Hyperparameter sweeps with Ray Tune: search spaces, trials, progress tables and stored results."""

from minigrad.distributed.sweeps.launch import read_config, sweep
from minigrad.distributed.sweeps.plan import Halving
from minigrad.distributed.sweeps.progress import ProgressTable
from minigrad.distributed.sweeps.report import Report
from minigrad.distributed.sweeps.results import Sweep, Trial

__all__ = ["Halving", "ProgressTable", "Report", "Sweep", "Trial", "read_config", "sweep"]
