"""What is known of a sweep: its trials, in a folder, where they outlast the process that runs them."""

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
"""States whose numbers are results."""


@dataclass
class Trial:
    """One training of a sweep. `goal` is its best number, of `epoch`; `numbers` are all that it reported there.

    `state` is "waiting", "running", "done", "stopped" (early, by the rule of the sweep), "diverged" (its loss or its
    goal became nan or infinite), "failed" (`error` says how) or "interrupted".
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
    """The goal by epoch."""
    error: str = ""

    def hear(self, plan: Plan, epoch: int, goal: float, numbers: Mapping[str, float]) -> None:
        """Take note of an epoch. One that comes again, as the trial runs again, takes the place of the old ones."""
        self.curve = [(at, x) for at, x in self.curve if at < epoch]
        if not self.curve or self.epoch >= epoch:
            self.goal = None
        if self.curve and self.goal is None:  # the best one was after it
            self.epoch, self.goal = min(self.curve, key=lambda pair: pair[1] if plan.mode == "min" else -pair[1])
            self.numbers = {plan.goal: self.goal}
        self.curve.append((epoch, goal))
        self.epochs = epoch
        if self.goal is None or plan.better(goal, self.goal):
            self.goal, self.epoch, self.numbers = goal, epoch, dict(numbers)


class Sweep:
    """A sweep, as far as it is: `plan`, `trials` in the order of their numbers, and the `folder` where they are kept.

    Printed, it is the table of its trials, the best first.
    """

    def __init__(self, plan: Plan, folder: Path, train: str = "", digest: str = "") -> None:
        self.plan, self.folder, self.train, self.digest = plan, folder, train, digest
        self.trials = [Trial(k, plan.values(k)) for k in range(1, len(plan) + 1)]
        self.notes: list[str] = []

    def best(self) -> Trial:
        """The trial with the best goal of those that ended well. Raises ArgumentError if there is none."""
        found = [trial for trial in self.ranked() if trial.state in COUNTED and trial.goal is not None]
        if not found:
            raise ArgumentError(f"sweep: no trial in {self.folder} has ended with a {self.plan.goal}.")
        return found[0]

    def ranked(self) -> list[Trial]:
        """All trials: by their goal, then those that have none, or whose number does not count, as they come."""

        def place(trial: Trial) -> tuple[int, float]:
            counts = trial.goal is not None and trial.state not in ("diverged", "failed")
            if counts and trial.goal is not None:
                return 0, trial.goal if self.plan.mode == "min" else -trial.goal
            order = ("running", "interrupted", "diverged", "failed", "waiting", "done", "stopped")
            return 1 + order.index(trial.state), trial.number

        return sorted(self.trials, key=place)

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each trial that has ended: its number and state, its values, the goal, epochs, seconds, and what
        else it reported at its best epoch. A name that is swept is the value's."""
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
        """How many trials are in one of these states."""
        return sum(trial.state in states for trial in self.trials)

    def sentence(self) -> str:
        """How far a sweep is, in one line."""
        ended = self.count("done", "stopped", "diverged", "failed")
        parts = [f"{ended} of {len(self.trials)} trials"]
        words = {"running": "running", "stopped": "stopped early", "diverged": "diverged", "failed": "failed"}
        words["interrupted"] = "interrupted"
        parts += [f"{n} {word}" for state, word in words.items() if (n := self.count(state))]
        return " · ".join(parts)

    def cells(self) -> list[list[str]]:
        """The table as texts: its heads, then a row for each trial that has begun, the best first."""
        plan = self.plan
        heads = ["trial", "state", *(axis.name for axis in plan.axes), plan.goal, "epoch", "seconds"]
        return [heads, *(_row(self, trial) for trial in self.ranked() if trial.state != "waiting")]

    def table(self, most: int | None = None, columns: int | None = None) -> list[str]:
        """The lines: how far it is, then the table, of at most so many trials.

        Where it is wider than so many `columns`, it is without seconds, or without epochs too.
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

    # --- in its folder ---

    def save(self) -> None:
        """Write all of it, and the table of results, each as a whole."""
        state: dict[str, Any] = {"kind": KIND, "train": self.train, "digest": self.digest, "plan": self.plan.state()}
        state["trials"] = [asdict(trial) for trial in self.trials]
        write_all(self.folder / FILE, json.dumps(state).encode())

    def save_results(self) -> None:
        """Write ``results.csv``: `rows` under their names, in cells that neither a spreadsheet nor a terminal obeys."""
        rows, text = self.rows(), io.StringIO(newline="")
        swept = list(self.trials[0].values)
        names = ["trial", "state", *swept, self.plan.goal, "best_epoch", "last_epoch", "seconds", "error"]
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(map(_inert, rows[0] if rows else names))
        writer.writerows([_inert(x) for x in row.values()] for row in rows)
        write_all(self.folder / CSV, text.getvalue().encode())

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Sweep:
        """The sweep in a folder, whether it runs or not.

        Raises MissingFileError where there is none, FileFormatError for a file that is damaged.
        """
        path = Path(folder) / FILE
        if not path.is_file():
            raise MissingFileError(f"sweep: there is no sweep in {path.parent}: it has no {FILE}.")
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            if state["kind"] != KIND:
                raise ValueError(state["kind"])
            plan = {key: x for key, x in state["plan"].items() if key != "samples" or state["plan"]["random"]}
            found = cls(planned(str(path), **plan), path.parent, state["train"], state["digest"])
            found.trials = [Trial(**{**one, "curve": [tuple(x) for x in one["curve"]]}) for one in state["trials"]]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise FileFormatError(f"sweep: {path} is damaged, or no sweep of minigrad's: {error!r:.100}") from None
        return found

    def go_on(self) -> None:
        """Take over what the folder has of this sweep. Raises ArgumentError if it has another one."""
        before = Sweep.read(self.folder)
        changed = differences(
            {"train": before.train, **before.plan.state()}, {"train": self.train, **self.plan.state()}
        )
        if changed:
            raise ArgumentError(
                f"sweep: {self.folder} has the results of another plan: {'; '.join(changed)}.\n"
                "  Write --anew (in Python anew=True) to delete them, or give this one another folder."
            )
        if before.digest != self.digest:
            ended = before.count(*COUNTED, "diverged")
            self.notes += [f"{self.train} has changed: {ended} trials ended with the old one."] if ended else []
        for trial in before.trials:
            if trial.state in ("running", "failed"):
                trial.state, trial.error = "interrupted", ""
        self.trials[: len(before.trials)] = before.trials

    def clear(self) -> None:
        """Delete what a sweep leaves in the folder."""
        for name in (FILE, CSV, PICTURE):
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(self.folder / TRIALS, ignore_errors=True)

    @contextmanager
    def held(self) -> Iterator[None]:
        """A block in which no other process runs a sweep in this folder. Raises ArgumentError where one does."""
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
                f"sweep: another process runs a sweep in {self.folder}.\n  Wait for it, or give another folder."
            ) from None
        finally:
            os.close(lock)


def _inert(x: Any) -> Any:
    r"""A cell of a table: a text that a spreadsheet would compute begins with an apostrophe, as OWASP advises.

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
