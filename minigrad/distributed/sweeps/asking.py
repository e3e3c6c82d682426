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
    a_kind,
    check_function,
    printable,
)
from minigrad.core.packages import package
from minigrad.core.storage import get_default_device
from minigrad.distributed.engine import options_of_actor, running
from minigrad.distributed.sweeps.function import FunctionSource, check_parameters, source
from minigrad.distributed.sweeps.plan import Halving, check_keys, planned
from minigrad.distributed.sweeps.progress import Shown
from minigrad.distributed.sweeps.results import FILE, TRIALS, Sweep
from minigrad.distributed.sweeps.trial import TrialJob

__all__ = ["asked", "sweep"]

KEYS = ["train", "goal", "grid", "random", "fixed", "samples", "seed", "stop", "workers", "resources", "folder"]
NEEDED = {
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

    ``train(**values, report=report)`` is called for every point of `grid`, which maps parameters to lists, combined
    with each of `samples` draws from `random`, which maps parameters to a list of choices or a range such as
    ``{"from": 1e-4, "to": 1e-1, "log": True}``. `fixed` maps parameters to constants. `report` is a `Report`, for use
    as a callback of `fit`. If `train` has a parameter `folder`, it receives a folder per trial for checkpoints. `goal`
    is "min" or "max" and a reported metric; the best epoch of a trial counts. `stop` enables early stopping: `Halving`.

    `workers` is the number of concurrent trials: by default one per core, or whatever fits the cluster at RAY_ADDRESS.
    `resources` are reserved for each trial, as in `fit`, such as ``{"GPU": 0.5}``. Repeating the call resumes an
    interrupted sweep: finished trials are kept, failed ones run again, and `samples` may increase. `anew=True` deletes
    all results and starts over. All generators are seeded with `seed` in each trial. `callbacks` are called with the
    `Sweep` after each change.

    Raises ArgumentError or DTypeError for invalid arguments, before any trial starts, and if the goal is not reported
    or all trials fail; WorkerError for unavailable resources; MissingPackageError without Ray.
    """
    who = train.who if isinstance(train, FunctionSource) else "sweep"
    plan = planned(who, goal=goal, grid=grid, random=random, fixed=fixed, samples=samples, seed=seed, stop=stop)
    if not isinstance(train, FunctionSource):
        check_function(train, f"{who}: train")
    function = train.load() if isinstance(train, FunctionSource) else train
    takes = check_parameters(who, function, [*(axis.name for axis in plan.axes), *plan.fixed])
    cpus = _checked(who, workers, resources)
    found = Sweep(plan, _made(who, Path(folder)), *_told(train))
    shown = [Shown()] if progress else []
    told: list[Callable[[Sweep], Any]] = [*callbacks, *shown]
    with found.held():
        _begin(found, anew, progress)
        if found.count("waiting", "interrupted"):
            job = _job(found, train, takes, resources or {}, cpus)
            for hear in told:  # before Ray starts, which takes seconds
                hear(found)
            _run(found, job, workers, resources or {}, cpus, told)
        for hear in callbacks:
            hear(found)
        for show in shown:
            show(found, last=True)
    return found


def _told(train: Any) -> tuple[str, str]:
    """Return the name of a training function, and the digest of its source file."""
    if isinstance(train, FunctionSource):
        return f"{Path(train.path).name}:{train.name}", train.digest()
    return getattr(train, "__qualname__", type(train).__name__), ""


def _begin(found: Sweep, anew: bool, progress: bool) -> None:
    """Resume from the results in the folder, or delete them."""
    if (found.folder / FILE).exists():
        if anew:
            package("ray.tune", "sweep")  # fail before deleting anything if Ray is missing
            found.clear()
        else:
            found.go_on()
    for note in found.notes if progress else ():
        print(printable(note), flush=True)


def _job(found: Sweep, train: Any, takes: tuple[str, ...], resources: Mapping[str, float], cpus: float) -> TrialJob:
    device = "cuda" if "GPU" in resources else str(get_default_device())
    threads, folder = max(1, int(cpus)), str((found.folder / TRIALS).resolve())
    plan = found.plan
    dtype = get_default_dtype().name
    return TrialJob(train, takes, plan.fixed, plan.goal, plan.seed, device, dtype, threads, os.getcwd(), folder)


def _run(
    found: Sweep,
    job: TrialJob,
    workers: int | None,
    resources: Mapping[str, float],
    cpus: float,
    told: Sequence[Callable[[Sweep], Any]],
) -> None:
    tune = package("ray.tune", "sweep")
    from minigrad.distributed.sweeps import tuning

    named = {"CPU": "cpu", "GPU": "gpu"}
    options = {"cpu": cpus} | {named.get(name, name): amount for name, amount in resources.items()}
    at_once = workers or max(1, int((os.cpu_count() or 1) // cpus))
    cluster = bool(os.environ.get("RAY_ADDRESS"))
    with running(at_once, resources, False, "sweep") as ray:
        if not cluster:  # a cluster may autoscale
            _check_room(ray.cluster_resources(), resources)
        tuning.run(ray, tune, found, job, workers if cluster else at_once, options, told)


def _check_room(there: Mapping[str, float], wanted: Mapping[str, float]) -> None:
    """Raise WorkerError if the requested resources of a trial exceed those available."""
    for name, amount in wanted.items():
        if there.get(name, 0) < amount:
            raise WorkerError(
                f"sweep: each trial requests {name}={amount}, but Ray has only {name}={there.get(name, 0):g}.\n"
                "  Request less under [resources], or set RAY_ADDRESS to a cluster."
            )


def asked(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a file ``sweep.toml`` and return it as keyword arguments of `sweep`.

    Raises MissingFileError, FileFormatError for invalid TOML, ArgumentError or DTypeError for invalid keys and values.
    """
    file = Path(path)
    who = file.name
    if not file.is_file():
        raise MissingFileError(f"sweep: no such file: {file}.\n  See minigrad sweep --help.")
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:  # invalid UTF-8 or invalid TOML
        raise FileFormatError(f"{who} is not valid TOML: {error}.") from None
    check_keys(who, "", found, KEYS)
    for key, advice in NEEDED.items():
        if key not in found:
            raise ArgumentError(f"{who}: missing key {key!r}.\n  {advice}")
    folder = found.get("folder", file.stem)
    if not isinstance(folder, str) or not folder:
        raise DTypeError(f'{who}: expected folder to be a path, but got {folder!r}.\n  Write folder = "results".')
    place = file.resolve().parent
    return {**found, "train": source(who, found["train"], place), "folder": place / folder}


def _checked(who: str, workers: Any, resources: Any) -> float:
    """Return the CPUs of each trial. Raises ArgumentError or DTypeError for invalid arguments."""
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise ArgumentError(f"{who}: workers, the number of concurrent trials, should be an int >= 1, not {workers!r}.")
    if resources is not None and not isinstance(resources, Mapping):
        advice = "Write a table [resources] with entries such as GPU = 0.5."
        raise DTypeError(f"{who}: expected resources to be a table, but got {a_kind(resources)}.\n  {advice}")
    options_of_actor(resources or {}, who)
    return float((resources or {}).get("CPU", 1))


def _made(who: str, folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"{who}: cannot create the results folder {folder}: {error.strerror}.") from None
    return folder
