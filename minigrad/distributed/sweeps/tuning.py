"""Run the trials of a sweep with Ray Tune, which schedules them and stops some early with ASHA."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from minigrad.core.errors import ArgumentError
from minigrad.distributed.sweeps.plan import Plan
from minigrad.distributed.sweeps.results import COUNTED, Sweep, Trial
from minigrad.distributed.sweeps.trial import TrialJob, tried

__all__ = ["Desk", "run"]

QUIET = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # Ctrl-C stops immediately; the sweep stores its own results
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",  # the final message of a trial has no goal
    "TUNE_WARN_INSUFFICENT_RESOURCE_THRESHOLD_S": "1e9",
    "TUNE_WARN_THRESHOLD_S": "1e9",
}
_AGAIN = 1.0  # minimum seconds between saves while no trial ends
_ENOUGH = 3  # failed trials, without a successful one, after which the sweep is aborted
_LAST = 10**6  # epochs; longer than any trial


class Desk:
    """Receiver of Tune's callbacks on the driver: updates and saves the sweep, and notifies its callbacks."""

    def __init__(self, sweep: Sweep, told: Sequence[Callable[[Sweep], Any]]) -> None:
        self.sweep, self.told = sweep, told
        self.mistake = ""
        self.actors: dict[int, Any] = {}
        self._ends: dict[int, tuple[str, str]] = {}
        self._before: dict[int, float] = {}
        self._saved = 0.0

    def start(self, number: int) -> None:
        trial = self._trial(number)
        trial.state, trial.error = "running", ""
        self._before[number] = trial.seconds if trial.curve else 0.0
        self.tell()

    def hear(self, number: int, result: Mapping[str, Any]) -> None:
        trial = self._trial(number)
        if "end" in result:
            self._ends[number] = result["end"], result["error"]
            trial.seconds = self._before[number] + result["seconds"]
            return
        first = not any(epoch < result["epoch"] for epoch, _ in trial.curve)
        self._before[number] = 0.0 if first else self._before[number]  # restarted from scratch, not resumed
        trial.seconds = self._before[number] + result["seconds"]
        trial.hear(self.sweep.plan, result["epoch"], result["goal"], result["numbers"])
        self.tell()

    def end(self, number: int, lost: bool = False) -> None:
        """Record the end of a trial. Without a final message it was stopped early, or its process was `lost`."""
        trial = self._trial(number)
        self.actors.pop(number, None)
        died = "failed", "its process died twice; the most frequent cause is running out of memory"
        quiet = died if lost else ("interrupted" if self.mistake else "stopped", "")
        state, error = self._ends.pop(number, quiet)
        if state == "silent":  # resumed from a checkpoint of the last epoch, if it reported before
            state, error = ("done", "") if trial.curve else ("mistake", _silent(self.sweep.plan.goal))
        if state == "mistake":
            self.mistake = self.mistake or error
            state, error = "interrupted", ""
        trial.state, trial.error = state, error
        if self.sweep.count("failed") >= _ENOUGH and not self.sweep.count(*COUNTED, "diverged"):
            self.mistake = self.mistake or (
                f"sweep: {_ENOUGH} trials have failed and none has succeeded: {trial.error}.\n"
                f"  Their output is in {self.sweep.folder}/trials."
            )
        self.tell(ended=True)

    def close(self) -> None:
        """Mark running trials as interrupted, and save the sweep."""
        for trial in self.sweep.trials:
            if trial.state == "running":
                trial.state = "interrupted"
        self.tell(ended=True)

    def tell(self, ended: bool = False) -> None:
        """Save the sweep, at most once a second unless a trial has `ended`, and notify the callbacks."""
        if ended or time.monotonic() - self._saved > _AGAIN:
            self.sweep.save()
            self._saved = time.monotonic()
        if ended:
            self.sweep.save_results()
        for hear in self.told:
            hear(self.sweep)

    def _trial(self, number: int) -> Trial:
        return self.sweep.trials[number - 1]


def _silent(goal: str) -> str:
    return (
        f"sweep: train returned without reporting {goal}.\n"
        f"  Write fit(…, callbacks=[report]), or report({goal}=…) after each epoch."
    )


def run(
    ray: Any,
    tune: Any,
    sweep: Sweep,
    job: TrialJob,
    workers: int | None,
    resources: Mapping[str, Any],
    told: Sequence[Callable[[Sweep], Any]],
) -> None:
    """Run the remaining trials of a sweep. Raises ArgumentError if the goal is never reported, or all trials fail."""
    left = [trial.number for trial in sweep.trials if trial.state in ("waiting", "interrupted")]
    desk, storage = Desk(sweep, told), sweep.folder / ".tune"
    values = {number: sweep.trials[number - 1].values for number in left}

    def trainable(config: dict[str, Any]) -> None:
        tried(job, config["trial"], values[config["trial"]], tune.report)

    shutil.rmtree(storage, ignore_errors=True)
    with _quiet(QUIET):
        tuner = tune.Tuner(
            tune.with_resources(trainable, dict(resources)),
            param_space={"trial": tune.grid_search(left)},
            tune_config=tune.TuneConfig(
                scheduler=_scheduler(tune, sweep.plan, sweep.trials),
                max_concurrent_trials=workers,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(
                name="sweep",
                storage_path=str(storage.resolve()),
                stop=_stopper(tune, desk),
                callbacks=[_callback(tune, desk)],
                failure_config=tune.FailureConfig(
                    max_failures=1
                ),  # of processes; exceptions of train arrive as final messages
                verbose=0,
            ),
        )
        try:
            tuner.fit()
        finally:
            for actor in desk.actors.values():
                with suppress(Exception):  # the actor or Ray may have exited
                    ray.kill(actor)
            desk.close()
            shutil.rmtree(storage, ignore_errors=True)
    if desk.mistake:
        raise ArgumentError(desk.mistake)


def _scheduler(tune: Any, plan: Plan, trials: Sequence[Trial]) -> Any:
    """Return an ASHA scheduler that has seen the results of earlier trials, or None without early stopping."""
    if plan.stop is None:
        return None
    made = tune.schedulers.ASHAScheduler(
        time_attr="epoch",
        metric="goal",
        mode=plan.mode,
        max_t=_LAST,
        grace_period=plan.stop.grace_period,
        reduction_factor=plan.stop.reduction_factor,
        stop_last_trials=False,
    )
    for trial in trials:
        if trial.state in (*COUNTED, "diverged"):
            past = _Past(f"before {trial.number}")
            made.on_trial_add(None, past)
            for epoch, goal in trial.curve:
                made.on_trial_result(None, past, {"epoch": epoch, "goal": goal})
    return made


class _Past:
    """Stand-in for a trial of an earlier run, with the attribute that the scheduler reads."""

    def __init__(self, trial_id: str) -> None:
        self.trial_id = trial_id


def _callback(tune: Any, desk: Desk) -> Any:
    class Heard(tune.Callback):  # type: ignore[misc]
        def __init__(self, desk: Desk) -> None:
            self.desk = desk

        def __getstate__(self) -> dict[str, Any]:
            return {}  # Tune pickles its callbacks for its own resume, which is unused here

        def on_trial_start(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
            self.desk.actors[trial.config["trial"]] = trial.temporary_state.ray_actor
            self.desk.start(trial.config["trial"])

        def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Any, **info: Any) -> None:
            self.desk.hear(trial.config["trial"], result)

        def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
            self.desk.end(trial.config["trial"])

        def on_trial_error(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
            self.desk.end(trial.config["trial"], lost=True)

    return Heard(desk)


def _stopper(tune: Any, desk: Desk) -> Any:
    class Mistaken(tune.Stopper):  # type: ignore[misc]
        def __init__(self, desk: Desk) -> None:
            self.desk = desk

        def __getstate__(self) -> dict[str, Any]:
            return {}

        def __call__(self, trial_id: str, result: Any) -> bool:
            return False

        def stop_all(self) -> bool:
            return bool(self.desk.mistake)

    return Mistaken(desk)


@contextmanager
def _quiet(names: Mapping[str, str]) -> Iterator[None]:
    """Context manager that sets environment variables and silences Tune's log."""
    before, log = {name: os.environ.get(name) for name in names}, logging.getLogger("ray.tune")
    level = log.level
    os.environ.update(names)
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)
        for name, old in before.items():
            if old is None:
                del os.environ[name]
            else:
                os.environ[name] = old
