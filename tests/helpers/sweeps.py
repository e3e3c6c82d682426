"""Sweeps whose trials have ended, created without Ray."""

import csv
import io
from pathlib import Path

from minigrad.distributed import Sweep
from minigrad.distributed.sweeps.plan import planned

__all__ = ["JOBS", "ended", "made", "plan", "read"]

JOBS = Path(__file__).parents[1] / "distributed" / "sweep_jobs.py"  # the training functions of tests/distributed


def made(folder=".", count=12, goal="min val_loss", states=(), **options):
    """Return a sweep in which each trial is worse than the previous one."""
    given = {
        "random": {"lr": {"from": 1e-4, "to": 1e-1, "log": True}, "width": {"from": 16, "to": 128}},
        "grid": {"act": ["relu", "tanh"]},
        "samples": count // 2,
        **options,
    }
    found = Sweep(planned("sweep", goal=goal, **given), Path(folder))
    for trial in found.trials:
        number = 0.1 * 1.2**trial.number
        trial.hear(found.plan, 1, number, {found.plan.goal: number})
        trial.state, trial.seconds = "done", 2.0
    for trial, state in zip(found.trials, states, strict=False):
        trial.state = state
    return found


def plan(**options):
    return planned("sweep", **{"goal": "min val_loss", "grid": {"lr": [0.1, 0.2, 0.4]}, **options})


def ended(folder, goals, states=(), **options):
    """Return a sweep over lr whose trials ended with these goals, each after an epoch with a worse one."""
    made = Sweep(plan(grid={"lr": [0.1 * k for k in range(1, len(goals) + 1)]}, **options), Path(folder))
    for trial, goal in zip(made.trials, goals, strict=True):
        trial.hear(made.plan, 1, goal + 1.0, {"val_loss": goal + 1.0})
        trial.hear(made.plan, 2, goal, {"val_loss": goal, "val_accuracy": 1 - goal})
        trial.state, trial.seconds = "done", 1.5
    for trial, state in zip(made.trials, states, strict=False):
        trial.state = state
    return made


def read(path):
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
