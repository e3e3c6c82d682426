"""Run trials in a worker, each from the same initial state, and report every epoch to the sweep."""

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

__all__ = ["TrialJob", "run_trial"]

OUTPUT_FILE = "output.txt"


class TrialJob(NamedTuple):
    """Training function, arguments and settings that a worker needs to run the trials of a sweep."""

    train: Callable[..., Any]
    accepts: tuple[str, ...]
    fixed: Mapping[str, Any]
    goal: str
    seed: int
    device: str
    dtype: str
    threads: int
    working_dir: str
    """Working directory of the driver."""
    trials_folder: str
    """Directory that contains one folder per trial."""


class _SendingReport(Report):
    """Report that sends the metrics of each epoch to the sweep, which may stop the trial during `send`."""

    def __init__(self, goal: str, send: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(goal)
        self._send, self._start_time = send, time.perf_counter()

    def send(self, epoch: int, metrics: dict[str, float]) -> None:
        self._send({"epoch": epoch, "goal": metrics[self.goal], "numbers": metrics, "seconds": self.seconds})

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start_time


def run_trial(job: TrialJob, number: int, values: Mapping[str, Any], send: Callable[[dict[str, Any]], None]) -> None:
    """Run a trial. Send its metrics after each epoch, and a final message unless it is stopped early."""
    os.environ["TI_CPU_MAX_NUM_THREADS"] = str(job.threads)  # Taichi ignores Ray's OMP_NUM_THREADS
    os.chdir(job.working_dir)
    folder = Path(job.trials_folder) / f"{number:04d}"
    folder.mkdir(parents=True, exist_ok=True)
    set_default_device(job.device)
    set_default_dtype(as_dtype(job.dtype))
    seed_all(job.seed)
    report = _SendingReport(job.goal, send)
    with _redirect_output(folder / OUTPUT_FILE):
        outcome, error = _run_function(job, values, report, folder)
    send({"end": outcome, "error": error, "seconds": report.seconds})


def _run_function(job: TrialJob, values: Mapping[str, Any], report: _SendingReport, folder: Path) -> tuple[str, str]:
    """Call the training function. Return the final state of the trial and an error message, which may be empty."""
    kwargs = {**job.fixed, **values, "report": report}
    try:
        job.train(**kwargs, **({"folder": folder} if "folder" in job.accepts else {}))
    except DivergedError as error:
        return "diverged", str(error).partition("\n")[0]
    except Exception as error:  # noqa: BLE001 -- an exception in user code fails only this trial
        traceback.print_exc()
        if report.config_error:
            return "mistake", report.config_error
        return "failed", f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return "done" if report.epochs else "silent", ""


@contextmanager
def _redirect_output(path: Path) -> Iterator[None]:
    """Context manager that redirects stdout and stderr to a file, which is deleted if empty."""
    with path.open("a", encoding="utf-8", buffering=1) as file, redirect_stdout(file), redirect_stderr(file):
        yield
    if not path.stat().st_size:
        path.unlink()
