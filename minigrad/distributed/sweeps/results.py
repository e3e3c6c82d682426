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

from minigrad.core.errors import ArgumentError, FileFormatError, MissingFileError, printable
from minigrad.distributed.sweeps.plan import Plan, differences, planned, said
from minigrad.io.whole import write_all

__all__ = ["Sweep", "Trial"]

FILE, CSV, TRIALS, PICTURE = "sweep.json", "results.csv", "trials", "parallel.svg"
KIND = "minigrad sweep 1"
ENDED = ("done", "stopped", "diverged", "failed")
COUNTED = ("done", "stopped")
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

    def hear(self, plan: Plan, epoch: int, goal: float, numbers: Mapping[str, float]) -> None:
        """Record an epoch. If the trial has been rerun from an earlier epoch, discard the epochs from there on."""
        self.curve = [(at, x) for at, x in self.curve if at < epoch]
        if not self.curve or self.epoch >= epoch:
            self.goal = None
        if self.curve and self.goal is None:  # the best epoch was discarded
            self.epoch, self.goal = min(self.curve, key=lambda pair: pair[1] if plan.mode == "min" else -pair[1])
            self.numbers = {plan.goal: self.goal}
        self.curve.append((epoch, goal))
        self.epochs = epoch
        if self.goal is None or plan.better(goal, self.goal):
            self.goal, self.epoch, self.numbers = goal, epoch, dict(numbers)


class Sweep:
    """The state of a sweep: its `plan`, its `trials` ordered by number, and the `folder` in which they are stored.

    Its repr is the table of trials, best first.
    """

    def __init__(self, plan: Plan, folder: Path, train: str = "", digest: str = "") -> None:
        self.plan, self.folder, self.train, self.digest = plan, folder, train, digest
        self.trials = [Trial(k, plan.values(k)) for k in range(1, len(plan) + 1)]
        self.notes: list[str] = []

    def best(self) -> Trial:
        """Return the successful trial with the best goal. Raises ArgumentError if none has succeeded."""
        found = [trial for trial in self.ranked() if trial.state in COUNTED and trial.goal is not None]
        if not found:
            raise ArgumentError(f"sweep: no trial in {self.folder} has finished and reported {self.plan.goal}.")
        return found[0]

    def ranked(self) -> list[Trial]:
        """Return all trials sorted by goal, followed by those without a valid goal, grouped by state."""

        def place(trial: Trial) -> tuple[int, float]:
            counts = trial.goal is not None and trial.state not in ("diverged", "failed")
            if counts and trial.goal is not None:
                return 0, trial.goal if self.plan.mode == "min" else -trial.goal
            order = ("running", "interrupted", "diverged", "failed", "waiting", "done", "stopped")
            return 1 + order.index(trial.state), trial.number

        return sorted(self.trials, key=place)

    def rows(self) -> list[dict[str, Any]]:
        """Return a dict per finished trial: number, state, hyperparameters, goal, epochs, seconds, and other metrics of
        its best epoch. If names collide, the hyperparameter takes precedence."""
        others = list(dict.fromkeys(name for trial in self.trials for name in trial.numbers))
        found: list[dict[str, Any]] = []
        for trial in self.trials:
            if trial.state in ENDED:
                row: dict[str, Any] = {"trial": trial.number, "state": trial.state, **trial.values}
                row |= {self.plan.goal: trial.goal, "best_epoch": trial.epoch or None, "last_epoch": trial.epochs}
                row["seconds"] = round(trial.seconds, 3)
                row |= {name: trial.numbers.get(name) for name in others if name not in row}
                found.append({**row, "error": trial.error})
        return found

    def count(self, *states: str) -> int:
        """Return the number of trials in any of `states`."""
        return sum(trial.state in states for trial in self.trials)

    def sentence(self) -> str:
        """Return the progress of the sweep as one line."""
        ended = self.count("done", "stopped", "diverged", "failed")
        parts = [f"{ended} of {len(self.trials)} trials"]
        words = {"running": "running", "stopped": "stopped early", "diverged": "diverged", "failed": "failed"}
        words["interrupted"] = "interrupted"
        parts += [f"{n} {word}" for state, word in words.items() if (n := self.count(state))]
        return " · ".join(parts)

    def cells(self) -> list[list[str]]:
        """Return the table as strings: a header, then a row per started trial, best first."""
        plan = self.plan
        heads = ["trial", "state", *(axis.name for axis in plan.axes), plan.goal, "epoch", "seconds"]
        return [heads, *(_row(self, trial) for trial in self.ranked() if trial.state != "waiting")]

    def table(self, most: int | None = None, columns: int | None = None) -> list[str]:
        """Return the progress line and the table with at most `most` rows, as lines of text.

        A table wider than `columns` characters is printed without seconds, then without epochs.
        """
        rows = self.cells()
        shown = rows if most is None or len(rows) <= most + 1 else rows[:most]
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        for _ in range(2):
            if columns is not None and sum(widths) + 2 * len(widths) - 2 > columns:
                widths, shown = widths[:-1], [row[:-1] for row in shown]
        lines = [
            "  ".join(x.ljust(w) if k == 1 else x.rjust(w) for k, (x, w) in enumerate(zip(row, widths, strict=True)))
            for row in shown
        ]
        more = [f"… and {len(rows) - len(shown)} more"] if len(shown) < len(rows) else []
        return [printable(one.rstrip()) for one in (self.sentence(), *(lines if len(rows) > 1 else []), *more)]

    def __repr__(self) -> str:
        return "\n".join(self.table())

    # --- storage ---

    def save(self) -> None:
        """Write ``sweep.json`` atomically."""
        state: dict[str, Any] = {"kind": KIND, "train": self.train, "digest": self.digest, "plan": self.plan.state()}
        state["trials"] = [asdict(trial) for trial in self.trials]
        write_all(self.folder / FILE, json.dumps(state).encode())

    def save_results(self) -> None:
        """Write `rows` to ``results.csv``, with cells escaped against formula and terminal injection."""
        rows, text = self.rows(), io.StringIO(newline="")
        swept = list(self.trials[0].values)
        names = ["trial", "state", *swept, self.plan.goal, "best_epoch", "last_epoch", "seconds", "error"]
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(map(_inert, rows[0] if rows else names))
        writer.writerows([_inert(x) for x in row.values()] for row in rows)
        write_all(self.folder / CSV, text.getvalue().encode())

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Sweep:
        """Load the sweep stored in a folder, which may still be running.

        Raises MissingFileError if the folder contains no sweep, FileFormatError if its file is corrupt.
        """
        path = Path(folder) / FILE
        if not path.is_file():
            raise MissingFileError(f"sweep: no sweep found in {path.parent}: it has no {FILE}.")
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            if state["kind"] != KIND:
                raise ValueError(state["kind"])
            plan = {key: x for key, x in state["plan"].items() if key != "samples" or state["plan"]["random"]}
            found = cls(planned(str(path), **plan), path.parent, state["train"], state["digest"])
            found.trials = [Trial(**{**one, "curve": [tuple(x) for x in one["curve"]]}) for one in state["trials"]]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise FileFormatError(f"sweep: {path} is corrupt, or not a minigrad sweep: {error!r:.100}") from None
        return found

    def go_on(self) -> None:
        """Resume from the trials stored in the folder. Raises ArgumentError if they are from a different plan."""
        before = Sweep.read(self.folder)
        changed = differences(
            {"train": before.train, **before.plan.state()}, {"train": self.train, **self.plan.state()}
        )
        if changed:
            raise ArgumentError(
                f"sweep: {self.folder} contains results of a different plan: {'; '.join(changed)}.\n"
                "  Pass --anew (in Python anew=True) to delete them, or use another folder."
            )
        if before.digest != self.digest:
            ended = before.count(*COUNTED, "diverged")
            self.notes += [f"{self.train} has changed since {ended} trials finished."] if ended else []
        for trial in before.trials:
            if trial.state in ("running", "failed"):
                trial.state, trial.error = "interrupted", ""
        self.trials[: len(before.trials)] = before.trials

    def clear(self) -> None:
        """Delete all files of a sweep from the folder."""
        for name in (FILE, CSV, PICTURE):
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(self.folder / TRIALS, ignore_errors=True)

    @contextmanager
    def held(self) -> Iterator[None]:
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


def _inert(x: Any) -> Any:
    r"""Escape a cell: prefix a string that a spreadsheet would evaluate with an apostrophe, as OWASP recommends.

    >>> _inert("=1+1"), _inert("\x1b[31m"), _inert("relu"), _inert(-0.5)
    ("'=1+1", '\\x1b[31m', 'relu', -0.5)
    """
    if not isinstance(x, str):
        return x
    return f"{chr(39) * x.startswith(('=', '+', '-', '@', chr(9), chr(13)))}{printable(x)}"


def _row(sweep: Sweep, trial: Trial) -> list[str]:
    goal = "" if trial.goal is None else said(float(trial.goal))
    epochs = f"{trial.epoch} of {trial.epochs}" if trial.epochs else ""
    values = [said(trial.values[axis.name]) for axis in sweep.plan.axes]
    seconds = f"{trial.seconds:.1f}" if trial.seconds else ""
    return [str(trial.number), trial.state, *values, goal, epochs, seconds]
