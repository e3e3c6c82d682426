"""Sweeps whose trials have ended, created without Ray."""

import csv
import io
from pathlib import Path

from minigrad.distributed import Sweep
from minigrad.distributed.sweeps import plan

__all__ = ["JOBS", "finished_sweep", "make_plan", "make_sweep", "read_csv"]

JOBS = Path(__file__).parents[1] / "distributed" / "sweep_jobs.py"  # the training functions of tests/distributed


def make_sweep(folder=".", count=12, goal="min val_loss", states=(), **options):
    """Return a sweep in which each trial is worse than the previous one."""
    options_with_defaults = {
        "random": {"lr": {"from": 1e-4, "to": 1e-1, "log": True}, "width": {"from": 16, "to": 128}},
        "grid": {"act": ["relu", "tanh"]},
        "samples": count // 2,
        **options,
    }
    sweep = Sweep(plan.make_plan("sweep", goal=goal, **options_with_defaults), Path(folder))
    for trial in sweep.trials:
        metric = 0.1 * 1.2**trial.number
        trial.record_epoch(sweep.plan, 1, metric, {sweep.plan.goal: metric})
        trial.state, trial.seconds = "done", 2.0
    for trial, state in zip(sweep.trials, states, strict=False):
        trial.state = state
    return sweep


def make_plan(**options):
    return plan.make_plan("sweep", **{"goal": "min val_loss", "grid": {"lr": [0.1, 0.2, 0.4]}, **options})


def finished_sweep(folder, goals, states=(), **options):
    """Return a sweep over lr whose trials ended with these goals, each after an epoch with a worse one."""
    sweep = Sweep(make_plan(grid={"lr": [0.1 * k for k in range(1, len(goals) + 1)]}, **options), Path(folder))
    for trial, goal in zip(sweep.trials, goals, strict=True):
        trial.record_epoch(sweep.plan, 1, goal + 1.0, {"val_loss": goal + 1.0})
        trial.record_epoch(sweep.plan, 2, goal, {"val_loss": goal, "val_accuracy": 1 - goal})
        trial.state, trial.seconds = "done", 1.5
    for trial, state in zip(sweep.trials, states, strict=False):
        trial.state = state
    return sweep


def read_csv(path):
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
