"""`sweep`, and its configuration file ``sweep.toml``."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from minigrad.core.dtypes import get_default_dtype
from minigrad.core.errors import (
    ArgumentError,
    DTypeError,
    FileFormatError,
    MissingFileError,
    WorkerError,
    check_callable,
    describe_type,
    printable,
)
from minigrad.core.packages import import_package
from minigrad.core.storage import get_default_device
from minigrad.distributed.ray_runtime import actor_options, ray_session
from minigrad.distributed.sweeps.function import FunctionSource, check_parameters, parse_source
from minigrad.distributed.sweeps.plan import Halving, check_keys, make_plan
from minigrad.distributed.sweeps.progress import ProgressTable
from minigrad.distributed.sweeps.results import STATE_FILE, TRIALS_FOLDER, Sweep
from minigrad.distributed.sweeps.trial import TrialJob

__all__ = ["read_config", "sweep"]

VALID_KEYS = ["train", "goal", "grid", "random", "fixed", "samples", "seed", "stop", "workers", "resources", "folder"]
REQUIRED_KEYS = {
    "train": 'Write train = "train.py:train": a file and a function in it.',
    "goal": 'Write goal = "min val_loss" or "max val_accuracy", with a metric that train reports.',
}


def sweep(
    train: Callable[..., Any],
    goal: str,
    *,
    folder: str | os.PathLike[str],
    grid: Mapping[str, Sequence[Any]] | None = None,
    random: Mapping[str, Any] | None = None,
    samples: int | None = None,
    seed: int = 0,
    fixed: Mapping[str, Any] | None = None,
    stop: Halving | Mapping[str, Any] | None = None,
    workers: int | None = None,
    resources: Mapping[str, float] | None = None,
    anew: bool = False,
    progress: bool = True,
    callbacks: Sequence[Callable[[Sweep], Any]] = (),
) -> Sweep:
    """Tune hyperparameters: train for every point of a search space in Ray processes, and save the results in `folder`.

    ``train(**values, report=report)`` is called for every combination of a point of `grid` and one of `samples` draws
    from `random`. `grid` maps parameters to lists; `random` maps parameters to a list of choices or a range such as
    ``{"from": 1e-4, "to": 1e-1, "log": True}``. `fixed` maps parameters to constants. `report` is a `Report`, for use
    as a callback of `fit`. If `train` has a parameter `folder`, it receives a folder per trial for checkpoints. `goal`
    is "min" or "max" followed by a reported metric; a trial is judged by its best epoch. `stop`, a `Halving`, enables
    early stopping.

    `workers` is the number of concurrent trials: by default one per core, or as many as fit on the cluster at
    RAY_ADDRESS. `resources` are reserved for each trial, as in `fit`, such as ``{"GPU": 0.5}``. Repeating the call
    resumes an interrupted sweep: finished trials are kept, failed ones run again, and `samples` may increase.
    `anew=True` deletes all results and starts over. All generators are seeded with `seed` in each trial. `callbacks`
    are called with the `Sweep` after each change.

    Raises ArgumentError or DTypeError for invalid arguments, before any trial starts, and if the goal is not reported
    or all trials fail; WorkerError for unavailable resources; MissingPackageError without Ray.
    """
    prefix = train.prefix if isinstance(train, FunctionSource) else "sweep"
    plan = make_plan(prefix, goal=goal, grid=grid, random=random, fixed=fixed, samples=samples, seed=seed, stop=stop)
    if not isinstance(train, FunctionSource):
        check_callable(train, f"{prefix}: train")
    function = train.load() if isinstance(train, FunctionSource) else train
    accepts = check_parameters(prefix, function, [*(axis.name for axis in plan.axes), *plan.fixed])
    cpus = _check_arguments(prefix, workers, resources)
    state = Sweep(plan, _create_folder(prefix, Path(folder)), *_describe_function(train))
    displays = [ProgressTable()] if progress else []
    listeners: list[Callable[[Sweep], Any]] = [*callbacks, *displays]
    with state.lock_folder():
        _resume_or_clear(state, anew, progress)
        if state.count("waiting", "interrupted"):
            job = _trial_job(state, train, accepts, resources or {}, cpus)
            for listener in listeners:  # display the sweep before Ray starts, which takes seconds
                listener(state)
            _run_trials(state, job, workers, resources or {}, cpus, listeners)
        for listener in callbacks:
            listener(state)
        for display in displays:
            display(state, last=True)
    return state


def _describe_function(train: Any) -> tuple[str, str]:
    """Return the name of a training function, and the digest of its source file."""
    if isinstance(train, FunctionSource):
        return f"{Path(train.path).name}:{train.name}", train.digest()
    return getattr(train, "__qualname__", type(train).__name__), ""


def _resume_or_clear(sweep: Sweep, overwrite: bool, progress: bool) -> None:
    """Resume from the results in the folder, or delete them if `overwrite`."""
    if (sweep.folder / STATE_FILE).exists():
        if overwrite:
            import_package("ray.tune", "sweep")  # fail before deleting anything if Ray is missing
            sweep.clear()
        else:
            sweep.resume()
    for note in sweep.notes if progress else ():
        print(printable(note), flush=True)


def _trial_job(
    sweep: Sweep, train: Any, accepts: tuple[str, ...], resources: Mapping[str, float], cpus: float
) -> TrialJob:
    device = "cuda" if "GPU" in resources else str(get_default_device())
    threads, folder = max(1, int(cpus)), str((sweep.folder / TRIALS_FOLDER).resolve())
    plan = sweep.plan
    dtype = get_default_dtype().name
    return TrialJob(train, accepts, plan.fixed, plan.goal, plan.seed, device, dtype, threads, os.getcwd(), folder)


def _run_trials(
    sweep: Sweep,
    job: TrialJob,
    workers: int | None,
    resources: Mapping[str, float],
    cpus: float,
    listeners: Sequence[Callable[[Sweep], Any]],
) -> None:
    tune = import_package("ray.tune", "sweep")
    from minigrad.distributed.sweeps import tuning

    tune_names = {"CPU": "cpu", "GPU": "gpu"}
    options = {"cpu": cpus} | {tune_names.get(name, name): amount for name, amount in resources.items()}
    max_concurrent = workers or max(1, int((os.cpu_count() or 1) // cpus))
    has_cluster = bool(os.environ.get("RAY_ADDRESS"))
    with ray_session(max_concurrent, resources, False, "sweep") as ray:
        if not has_cluster:  # a cluster may autoscale
            _check_resources(ray.cluster_resources(), resources)
        tuning.run_trials(ray, tune, sweep, job, workers if has_cluster else max_concurrent, options, listeners)


def _check_resources(available: Mapping[str, float], requested: Mapping[str, float]) -> None:
    """Raise WorkerError if the requested resources of a trial exceed those available."""
    for name, amount in requested.items():
        if available.get(name, 0) < amount:
            raise WorkerError(
                f"sweep: each trial requests {name}={amount}, but Ray has only {name}={available.get(name, 0):g}.\n"
                "  Request less under [resources], or set RAY_ADDRESS to a cluster."
            )


def read_config(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a file ``sweep.toml`` and return it as keyword arguments of `sweep`.

    Raises MissingFileError, FileFormatError for invalid TOML, ArgumentError or DTypeError for invalid keys and values.
    """
    file = Path(path)
    filename = file.name
    if not file.is_file():
        raise MissingFileError(f"sweep: no such file: {file}.\n  See minigrad sweep --help.")
    try:
        config = tomllib.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:  # invalid UTF-8 or invalid TOML
        raise FileFormatError(f"{filename} is not valid TOML: {error}.") from None
    check_keys(filename, "", config, VALID_KEYS)
    for key, advice in REQUIRED_KEYS.items():
        if key not in config:
            raise ArgumentError(f"{filename}: missing key {key!r}.\n  {advice}")
    folder = config.get("folder", file.stem)
    if not isinstance(folder, str) or not folder:
        raise DTypeError(f'{filename}: expected folder to be a path, but got {folder!r}.\n  Write folder = "results".')
    parent = file.resolve().parent
    return {**config, "train": parse_source(filename, config["train"], parent), "folder": parent / folder}


def _check_arguments(prefix: str, workers: Any, resources: Any) -> float:
    """Return the number of CPUs per trial. Raises ArgumentError or DTypeError for invalid arguments."""
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise ArgumentError(
            f"{prefix}: workers, the number of concurrent trials, should be an int >= 1, not {workers!r}."
        )
    if resources is not None and not isinstance(resources, Mapping):
        advice = "Write a table [resources] with entries such as GPU = 0.5."
        raise DTypeError(f"{prefix}: expected resources to be a table, but got {describe_type(resources)}.\n  {advice}")
    actor_options(resources or {}, prefix)
    return float((resources or {}).get("CPU", 1))


def _create_folder(prefix: str, folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"{prefix}: cannot create the results folder {folder}: {error.strerror}.") from None
    return folder
