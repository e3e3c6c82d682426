"""Results of a sweep: its trials, stored in a folder so that they persist after the process exits."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from minigrad.core.deprecation import DeprecatedAlias
from minigrad.core.errors import ArgumentError, FileFormatError, MissingFileError, printable
from minigrad.distributed.sweeps.plan import SweepPlan, format_value, make_plan, plan_differences
from minigrad.io.atomic import write_all

__all__ = ["Sweep", "Trial"]

STATE_FILE, CSV_FILE, TRIALS_FOLDER, PLOT_FILE = "sweep.json", "results.csv", "trials", "parallel.svg"
FORMAT = "minigrad sweep 1"
FINISHED_STATES = ("done", "stopped", "diverged", "failed")
SUCCESS_STATES = ("done", "stopped")
"""States in which the metrics of a trial count as results."""


@dataclass
class Trial:
    """A trial of a sweep. `goal` is its best value, reached at `epoch`; `numbers` are all metrics of that epoch.

    `state` is "waiting", "running", "done", "stopped" (by early stopping), "diverged" (its loss or goal became nan or
    infinite), "failed" (see `error`) or "interrupted".
    """

    number: int
    values: dict[str, Any]
    state: str = "waiting"
    goal: float | None = None
    epoch: int = 0
    epochs: int = 0
    seconds: float = 0.0
    numbers: dict[str, float] = field(default_factory=dict)
    curve: list[tuple[int, float]] = field(default_factory=list, repr=False)
    """(epoch, goal) pairs."""
    error: str = ""

    def record_epoch(self, plan: SweepPlan, epoch: int, goal: float, metrics: Mapping[str, float]) -> None:
        """Record an epoch. If the trial resumed from an earlier epoch, the later recorded epochs are discarded."""
        self.curve = [(past_epoch, x) for past_epoch, x in self.curve if past_epoch < epoch]
        if not self.curve or self.epoch >= epoch:
            self.goal = None
        if self.curve and self.goal is None:  # the best epoch was discarded
            self.epoch, self.goal = min(self.curve, key=lambda pair: pair[1] if plan.mode == "min" else -pair[1])
            self.numbers = {plan.goal: self.goal}
        self.curve.append((epoch, goal))
        self.epochs = epoch
        if self.goal is None or plan.is_better(goal, self.goal):
            self.goal, self.epoch, self.numbers = goal, epoch, dict(metrics)

    hear = DeprecatedAlias("record_epoch")


class Sweep:
    """The state of a sweep: its `plan`, its `trials` ordered by number, and the `folder` in which they are stored.

    Its repr is the table of trials, best first.
    """

    def __init__(self, plan: SweepPlan, folder: Path, train: str = "", digest: str = "") -> None:
        self.plan, self.folder, self.train, self.digest = plan, folder, train, digest
        self.trials = [Trial(k, plan.values(k)) for k in range(1, len(plan) + 1)]
        self.notes: list[str] = []

    def best(self) -> Trial:
        """Return the successful trial with the best goal. Raises ArgumentError if none has succeeded."""
        candidates = [trial for trial in self.ranked() if trial.state in SUCCESS_STATES and trial.goal is not None]
        if not candidates:
            raise ArgumentError(f"sweep: no trial in {self.folder} has finished and reported {self.plan.goal}.")
        return candidates[0]

    def ranked(self) -> list[Trial]:
        """Return all trials sorted by goal, followed by those without a valid goal, grouped by state."""

        def sort_key(trial: Trial) -> tuple[int, float]:
            is_valid = trial.goal is not None and trial.state not in ("diverged", "failed")
            if is_valid and trial.goal is not None:
                return 0, trial.goal if self.plan.mode == "min" else -trial.goal
            order = ("running", "interrupted", "diverged", "failed", "waiting", "done", "stopped")
            return 1 + order.index(trial.state), trial.number

        return sorted(self.trials, key=sort_key)

    def rows(self) -> list[dict[str, Any]]:
        """Return a dict per finished trial with its number, state, hyperparameters, goal, epochs, seconds, and other
        metrics of its best epoch. If names collide, the hyperparameter takes precedence."""
        extra_metrics = list(dict.fromkeys(name for trial in self.trials for name in trial.numbers))
        rows: list[dict[str, Any]] = []
        for trial in self.trials:
            if trial.state in FINISHED_STATES:
                row: dict[str, Any] = {"trial": trial.number, "state": trial.state, **trial.values}
                row |= {self.plan.goal: trial.goal, "best_epoch": trial.epoch or None, "last_epoch": trial.epochs}
                row["seconds"] = round(trial.seconds, 3)
                row |= {name: trial.numbers.get(name) for name in extra_metrics if name not in row}
                rows.append({**row, "error": trial.error})
        return rows

    def count(self, *states: str) -> int:
        """Return the number of trials in any of `states`."""
        return sum(trial.state in states for trial in self.trials)

    def summary(self) -> str:
        """Return the progress of the sweep as one line."""
        finished = self.count("done", "stopped", "diverged", "failed")
        parts = [f"{finished} of {len(self.trials)} trials"]
        labels = {"running": "running", "stopped": "stopped early", "diverged": "diverged", "failed": "failed"}
        labels["interrupted"] = "interrupted"
        parts += [f"{n} {word}" for state, word in labels.items() if (n := self.count(state))]
        return " · ".join(parts)

    def table_cells(self) -> list[list[str]]:
        """Return the table as strings: a header, then a row per started trial, best first."""
        plan = self.plan
        header = ["trial", "state", *(axis.name for axis in plan.axes), plan.goal, "epoch", "seconds"]
        return [header, *(_table_row(self, trial) for trial in self.ranked() if trial.state != "waiting")]

    def table(self, max_rows: int | None = None, max_width: int | None = None) -> list[str]:
        """Return the progress line and the table with at most `max_rows` rows, as lines of text.

        A table wider than `max_width` characters is printed without seconds, then without epochs.
        """
        rows = self.table_cells()
        visible = rows if max_rows is None or len(rows) <= max_rows + 1 else rows[:max_rows]
        widths = [max(map(len, column)) for column in zip(*visible, strict=True)]
        for _ in range(2):
            if max_width is not None and sum(widths) + 2 * len(widths) - 2 > max_width:
                widths, visible = widths[:-1], [row[:-1] for row in visible]
        lines = [
            "  ".join(x.ljust(w) if k == 1 else x.rjust(w) for k, (x, w) in enumerate(zip(row, widths, strict=True)))
            for row in visible
        ]
        footer = [f"… and {len(rows) - len(visible)} more"] if len(visible) < len(rows) else []
        return [printable(line.rstrip()) for line in (self.summary(), *(lines if len(rows) > 1 else []), *footer)]

    def __repr__(self) -> str:
        return "\n".join(self.table())

    # --- storage ---

    def save(self) -> None:
        """Write ``sweep.json`` atomically."""
        state: dict[str, Any] = {"kind": FORMAT, "train": self.train, "digest": self.digest, "plan": self.plan.state()}
        state["trials"] = [asdict(trial) for trial in self.trials]
        write_all(self.folder / STATE_FILE, json.dumps(state).encode())

    def save_results(self) -> None:
        """Write `rows` to ``results.csv``, with cells escaped against formula and terminal injection."""
        rows, buffer = self.rows(), io.StringIO(newline="")
        swept = list(self.trials[0].values)
        names = ["trial", "state", *swept, self.plan.goal, "best_epoch", "last_epoch", "seconds", "error"]
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(map(_escape_cell, rows[0] if rows else names))
        writer.writerows([_escape_cell(x) for x in row.values()] for row in rows)
        write_all(self.folder / CSV_FILE, buffer.getvalue().encode())

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Sweep:
        """Load the sweep stored in a folder, which may still be running.

        Raises MissingFileError if the folder contains no sweep, FileFormatError if its file is corrupt.
        """
        path = Path(folder) / STATE_FILE
        if not path.is_file():
            raise MissingFileError(f"sweep: no sweep found in {path.parent}: it has no {STATE_FILE}.")
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            if state["kind"] != FORMAT:
                raise ValueError(state["kind"])
            plan = {key: x for key, x in state["plan"].items() if key != "samples" or state["plan"]["random"]}
            sweep = cls(make_plan(str(path), **plan), path.parent, state["train"], state["digest"])
            sweep.trials = [
                Trial(**{**trial, "curve": [tuple(x) for x in trial["curve"]]}) for trial in state["trials"]
            ]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise FileFormatError(f"sweep: {path} is corrupt, or not a minigrad sweep: {error!r:.100}") from None
        return sweep

    def resume(self) -> None:
        """Resume from the trials stored in the folder. Raises ArgumentError if they are from a different plan."""
        stored = Sweep.read(self.folder)
        changed = plan_differences(
            {"train": stored.train, **stored.plan.state()}, {"train": self.train, **self.plan.state()}
        )
        if changed:
            raise ArgumentError(
                f"sweep: {self.folder} contains results of a different plan: {'; '.join(changed)}.\n"
                "  Pass --anew (in Python anew=True) to delete them, or use another folder."
            )
        if stored.digest != self.digest:
            finished = stored.count(*SUCCESS_STATES, "diverged")
            self.notes += [f"{self.train} has changed since {finished} trials finished."] if finished else []
        for trial in stored.trials:
            if trial.state in ("running", "failed"):
                trial.state, trial.error = "interrupted", ""
        self.trials[: len(stored.trials)] = stored.trials

    def clear(self) -> None:
        """Delete all files of a sweep from the folder."""
        for name in (STATE_FILE, CSV_FILE, PLOT_FILE):
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(self.folder / TRIALS_FOLDER, ignore_errors=True)

    @contextmanager
    def lock_folder(self) -> Iterator[None]:
        """Context manager that locks the folder. Raises ArgumentError if another process holds the lock."""
        try:
            import fcntl
        except ImportError:  # Windows
            yield
            return
        lock = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise ArgumentError(
                f"sweep: another process is running a sweep in {self.folder}.\n  Wait for it, or use another folder."
            ) from None
        finally:
            os.close(lock)

    cells = DeprecatedAlias("table_cells")
    go_on = DeprecatedAlias("resume")
    held = DeprecatedAlias("lock_folder")
    sentence = DeprecatedAlias("summary")


def _escape_cell(x: Any) -> Any:
    r"""Escape a cell: prefix a string that a spreadsheet would evaluate with an apostrophe, as OWASP recommends.

    >>> _escape_cell("=1+1"), _escape_cell("\x1b[31m"), _escape_cell("relu"), _escape_cell(-0.5)
    ("'=1+1", '\\x1b[31m', 'relu', -0.5)
    """
    if not isinstance(x, str):
        return x
    return f"{chr(39) * x.startswith(('=', '+', '-', '@', chr(9), chr(13)))}{printable(x)}"


def _table_row(sweep: Sweep, trial: Trial) -> list[str]:
    goal = "" if trial.goal is None else format_value(float(trial.goal))
    epochs = f"{trial.epoch} of {trial.epochs}" if trial.epochs else ""
    values = [format_value(trial.values[axis.name]) for axis in sweep.plan.axes]
    seconds = f"{trial.seconds:.1f}" if trial.seconds else ""
    return [str(trial.number), trial.state, *values, goal, epochs, seconds]
