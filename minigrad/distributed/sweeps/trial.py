"""What a worker does: one trial after another, each as if it were the first in its process, and told epoch by epoch."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from minigrad.core.dtypes import as_dtype, set_default_dtype
from minigrad.core.errors import DivergedError
from minigrad.core.storage import set_default_device
from minigrad.data.workers import seed_all
from minigrad.distributed.sweeps.report import Report

__all__ = ["TrialJob", "tried"]

PRINTED = "output.txt"


class TrialJob(NamedTuple):
    """What a worker needs to know of a sweep."""

    train: Callable[..., Any]
    takes: tuple[str, ...]
    fixed: Mapping[str, Any]
    goal: str
    seed: int
    device: str
    dtype: str
    threads: int
    here: str
    """The folder in which the sweep was begun."""
    folder: str
    """The folder that has one for each trial."""


class _Sent(Report):
    """Tells the sweep, which may end the trial there."""

    def __init__(self, goal: str, send: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(goal)
        self._send, self._began = send, time.perf_counter()

    def send(self, epoch: int, numbers: dict[str, float]) -> None:
        self._send({"epoch": epoch, "goal": numbers[self.goal], "numbers": numbers, "seconds": self.seconds})

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began


def tried(job: TrialJob, number: int, values: Mapping[str, Any], send: Callable[[dict[str, Any]], None]) -> None:
    """Run a trial: each epoch is sent, and last how it ended. Only a trial that is stopped early sends no end."""
    os.environ["TI_CPU_MAX_NUM_THREADS"] = str(job.threads)  # Ray has told NumPy's libraries
    os.chdir(job.here)
    folder = Path(job.folder) / f"{number:04d}"
    folder.mkdir(parents=True, exist_ok=True)
    set_default_device(job.device)
    set_default_dtype(as_dtype(job.dtype))
    seed_all(job.seed)
    report = _Sent(job.goal, send)
    with _printing(folder / PRINTED):
        end, error = _ended(job, values, report, folder)
    send({"end": end, "error": error, "seconds": report.seconds})


def _ended(job: TrialJob, values: Mapping[str, Any], report: _Sent, folder: Path) -> tuple[str, str]:
    """Train; how that ended, and what is to be said of it."""
    given = {**job.fixed, **values, "report": report}
    try:
        job.train(**given, **({"folder": folder} if "folder" in job.takes else {}))
    except DivergedError as error:
        return "diverged", str(error).partition("\n")[0]
    except Exception as error:  # noqa: BLE001 -- whatever a reader's code raises ends this trial, and no other
        traceback.print_exc()
        if report.mistake:
            return "mistake", report.mistake
        return "failed", f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return "done" if report.epochs else "silent", ""


@contextmanager
def _printing(path: Path) -> Iterator[None]:
    """A block in which all that is printed goes into a file, which is there if it holds anything."""
    with path.open("a", encoding="utf-8", buffering=1) as file, redirect_stdout(file), redirect_stderr(file):
        yield
    if not path.stat().st_size:
        path.unlink()
