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
from minigrad.distributed.sweeps.plan import SweepPlan
from minigrad.distributed.sweeps.results import SUCCESS_STATES, Sweep, Trial
from minigrad.distributed.sweeps.trial import TrialJob, run_trial

__all__ = ["TrialTracker", "run_trials"]

TUNE_ENVIRONMENT = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # Ctrl-C stops Tune immediately, because the sweep stores its own results
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",  # the final message of a trial does not contain the goal
    "TUNE_WARN_INSUFFICENT_RESOURCE_THRESHOLD_S": "1e9",
    "TUNE_WARN_THRESHOLD_S": "1e9",
}
_SAVE_SECONDS = 1.0  # minimum number of seconds between saves, except at the end of a trial
_MAX_FAILURES = 3  # number of failed trials, with none successful, after which the sweep is aborted
_MAX_EPOCHS = 10**6  # larger than the number of epochs of any trial


class TrialTracker:
    """Handler of Tune's events on the driver, which updates and saves the sweep and calls the listeners."""

    def __init__(self, sweep: Sweep, listeners: Sequence[Callable[[Sweep], Any]]) -> None:
        self.sweep, self.listeners = sweep, listeners
        self.config_error = ""
        self.actors: dict[int, Any] = {}
        self._outcomes: dict[int, tuple[str, str]] = {}
        self._previous_seconds: dict[int, float] = {}
        self._last_save = 0.0

    def start_trial(self, number: int) -> None:
        trial = self._trial(number)
        trial.state, trial.error = "running", ""
        self._previous_seconds[number] = trial.seconds if trial.curve else 0.0
        self.notify()

    def record_result(self, number: int, result: Mapping[str, Any]) -> None:
        trial = self._trial(number)
        if "end" in result:
            self._outcomes[number] = result["end"], result["error"]
            trial.seconds = self._previous_seconds[number] + result["seconds"]
            return
        is_first = not any(epoch < result["epoch"] for epoch, _ in trial.curve)
        # Without earlier epochs, the trial was restarted from scratch rather than resumed.
        self._previous_seconds[number] = 0.0 if is_first else self._previous_seconds[number]
        trial.seconds = self._previous_seconds[number] + result["seconds"]
        trial.record_epoch(self.sweep.plan, result["epoch"], result["goal"], result["numbers"])
        self.notify()

    def end_trial(self, number: int, lost: bool = False) -> None:
        """Record the end of a trial. Without a final message, it was stopped early, or its process was `lost`."""
        trial = self._trial(number)
        self.actors.pop(number, None)
        death = "failed", "its process died twice; the most frequent cause is running out of memory"
        default_outcome = death if lost else ("interrupted" if self.config_error else "stopped", "")
        state, error = self._outcomes.pop(number, default_outcome)
        if state == "silent":  # a trial with recorded epochs was resumed after its last epoch
            state, error = ("done", "") if trial.curve else ("mistake", _silent_message(self.sweep.plan.goal))
        if state == "mistake":
            self.config_error = self.config_error or error
            state, error = "interrupted", ""
        trial.state, trial.error = state, error
        if self.sweep.count("failed") >= _MAX_FAILURES and not self.sweep.count(*SUCCESS_STATES, "diverged"):
            self.config_error = self.config_error or (
                f"sweep: {_MAX_FAILURES} trials have failed and none has succeeded: {trial.error}.\n"
                f"  Their output is in {self.sweep.folder}/trials."
            )
        self.notify(ended=True)

    def close(self) -> None:
        """Mark running trials as interrupted, and save the sweep."""
        for trial in self.sweep.trials:
            if trial.state == "running":
                trial.state = "interrupted"
        self.notify(ended=True)

    def notify(self, ended: bool = False) -> None:
        """Save the sweep and call the listeners. Unless a trial has `ended`, save at most once per second."""
        if ended or time.monotonic() - self._last_save > _SAVE_SECONDS:
            self.sweep.save()
            self._last_save = time.monotonic()
        if ended:
            self.sweep.save_results()
        for listener in self.listeners:
            listener(self.sweep)

    def _trial(self, number: int) -> Trial:
        return self.sweep.trials[number - 1]


def _silent_message(goal: str) -> str:
    return (
        f"sweep: train returned without reporting {goal}.\n"
        f"  Write fit(…, callbacks=[report]), or report({goal}=…) after each epoch."
    )


def run_trials(
    ray: Any,
    tune: Any,
    sweep: Sweep,
    job: TrialJob,
    workers: int | None,
    resources: Mapping[str, Any],
    listeners: Sequence[Callable[[Sweep], Any]],
) -> None:
    """Run the remaining trials of a sweep. Raises ArgumentError if the goal is never reported, or all trials fail."""
    remaining = [trial.number for trial in sweep.trials if trial.state in ("waiting", "interrupted")]
    tracker, storage = TrialTracker(sweep, listeners), sweep.folder / ".tune"
    values = {number: sweep.trials[number - 1].values for number in remaining}

    def trainable(config: dict[str, Any]) -> None:
        run_trial(job, config["trial"], values[config["trial"]], tune.report)

    shutil.rmtree(storage, ignore_errors=True)
    with _patched_environment(TUNE_ENVIRONMENT):
        tuner = tune.Tuner(
            tune.with_resources(trainable, dict(resources)),
            param_space={"trial": tune.grid_search(remaining)},
            tune_config=tune.TuneConfig(
                scheduler=_make_scheduler(tune, sweep.plan, sweep.trials),
                max_concurrent_trials=workers,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(
                name="sweep",
                storage_path=str(storage.resolve()),
                stop=_make_stopper(tune, tracker),
                callbacks=[_make_callback(tune, tracker)],
                failure_config=tune.FailureConfig(
                    max_failures=1
                ),  # retry if the process dies; exceptions in train are sent in the final message
                verbose=0,
            ),
        )
        try:
            tuner.fit()
        finally:
            for actor in tracker.actors.values():
                with suppress(Exception):  # the actor or Ray may have exited
                    ray.kill(actor)
            tracker.close()
            shutil.rmtree(storage, ignore_errors=True)
    if tracker.config_error:
        raise ArgumentError(tracker.config_error)


def _make_scheduler(tune: Any, plan: SweepPlan, trials: Sequence[Trial]) -> Any:
    """Return an ASHA scheduler updated with the results of earlier trials, or None if early stopping is disabled."""
    if plan.stop is None:
        return None
    scheduler = tune.schedulers.ASHAScheduler(
        time_attr="epoch",
        metric="goal",
        mode=plan.mode,
        max_t=_MAX_EPOCHS,
        grace_period=plan.stop.grace_period,
        reduction_factor=plan.stop.reduction_factor,
        stop_last_trials=False,
    )
    for trial in trials:
        if trial.state in (*SUCCESS_STATES, "diverged"):
            past_trial = _PastTrial(f"before {trial.number}")
            scheduler.on_trial_add(None, past_trial)
            for epoch, goal in trial.curve:
                scheduler.on_trial_result(None, past_trial, {"epoch": epoch, "goal": goal})
    return scheduler


class _PastTrial:
    """Trial of an earlier run, with the only attribute of Tune's trials that the scheduler reads."""

    def __init__(self, trial_id: str) -> None:
        self.trial_id = trial_id


def _make_callback(tune: Any, tracker: TrialTracker) -> Any:
    class TrackerCallback(tune.Callback):  # type: ignore[misc]
        def __init__(self, tracker: TrialTracker) -> None:
            self.tracker = tracker

        def __getstate__(self) -> dict[str, Any]:
            return {}  # Tune pickles callbacks to resume a run, a feature that the sweep does not use

        def on_trial_start(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
            self.tracker.actors[trial.config["trial"]] = trial.temporary_state.ray_actor
            self.tracker.start_trial(trial.config["trial"])

        def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Any, **info: Any) -> None:
            self.tracker.record_result(trial.config["trial"], result)

        def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
            self.tracker.end_trial(trial.config["trial"])

        def on_trial_error(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
            self.tracker.end_trial(trial.config["trial"], lost=True)

    return TrackerCallback(tracker)


def _make_stopper(tune: Any, tracker: TrialTracker) -> Any:
    class ErrorStopper(tune.Stopper):  # type: ignore[misc]
        def __init__(self, tracker: TrialTracker) -> None:
            self.tracker = tracker

        def __getstate__(self) -> dict[str, Any]:
            return {}

        def __call__(self, trial_id: str, result: Any) -> bool:
            return False

        def stop_all(self) -> bool:
            return bool(self.tracker.config_error)

    return ErrorStopper(tracker)


@contextmanager
def _patched_environment(names: Mapping[str, str]) -> Iterator[None]:
    """Context manager that sets environment variables and silences Tune's log."""
    old_environment, logger = {name: os.environ.get(name) for name in names}, logging.getLogger("ray.tune")
    level = logger.level
    os.environ.update(names)
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
        for name, value in old_environment.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
