"""`sweep`, and the file that asks for one."""

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
    "train": 'Write train = "train.py:train": the file, and the function in it.',
    "goal": 'Write goal = "min val_loss", or "max val_accuracy": a name that train reports.',
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
    """Train for each combination of values, in processes of Ray's, and keep what comes of it in `folder`.

    ``train(**values, report=report)`` is called for each point of `grid`, a list for each parameter, and for each of
    `samples` draws of `random`, a list to choose from or ``{"from": 1e-4, "to": 1e-1, "log": True}``; `fixed` values
    are always the same. `report` is a `Report`: a callback for `fit`. A function that has a parameter `folder` gets a
    folder of the trial's own, for a checkpoint. `goal` is "min" or "max", and a name that is reported: the best epoch
    of a trial counts. `stop` ends trials early; see `Halving`.

    `workers` trials run at once, by default one a core, or as many as the cluster of RAY_ADDRESS has room for;
    `resources` is what each has, as in `fit`, ``{"GPU": 0.5}`` for half a GPU. The same call goes on where an earlier
    one was interrupted: trials that ended are not run again, failed ones are, and `samples` may be more; `anew` deletes
    all and begins again. Each trial begins with all generators at `seed`. `callbacks` are called with the `Sweep` after
    each change.

    Raises ArgumentError, DTypeError for what cannot be, before anything starts, and where the goal is not reported or
    all trials fail; WorkerError for resources that are not there, MissingPackageError without Ray.
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
            for hear in told:  # to start Ray takes seconds
                hear(found)
            _run(found, job, workers, resources or {}, cpus, told)
        for hear in callbacks:
            hear(found)
        for show in shown:
            show(found, last=True)
    return found


def _told(train: Any) -> tuple[str, str]:
    """What a function is called, and what its file is told by."""
    if isinstance(train, FunctionSource):
        return f"{Path(train.path).name}:{train.name}", train.digest()
    return getattr(train, "__qualname__", type(train).__name__), ""


def _begin(found: Sweep, anew: bool, progress: bool) -> None:
    """Take over what the folder has, or delete it."""
    if (found.folder / FILE).exists():
        if anew:
            package("ray.tune", "sweep")  # or nothing would take the place of what is deleted
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
        if not cluster:  # which may grow
            _check_room(ray.cluster_resources(), resources)
        tuning.run(ray, tune, found, job, workers if cluster else at_once, options, told)


def _check_room(there: Mapping[str, float], wanted: Mapping[str, float]) -> None:
    """Raise WorkerError where no trial will ever have what each asks for."""
    for name, amount in wanted.items():
        if there.get(name, 0) < amount:
            raise WorkerError(
                f"sweep: each trial asks for {name}={amount}, and Ray has {there.get(name, 0):g} of it here.\n"
                "  Ask for less under [resources], or name a cluster by RAY_ADDRESS."
            )


def asked(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a file ``sweep.toml`` asks for: the arguments of `sweep`.

    Raises MissingFileError for no file, FileFormatError for what is no TOML, ArgumentError, DTypeError for keys and
    values that cannot be.
    """
    file = Path(path)
    who = file.name
    if not file.is_file():
        raise MissingFileError(f"sweep: there is no file {file}.\n  Write one: see minigrad sweep --help.")
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:  # no UTF-8, or no TOML
        raise FileFormatError(f"{who} is no TOML: {error}.") from None
    check_keys(who, "", found, KEYS)
    for key, advice in NEEDED.items():
        if key not in found:
            raise ArgumentError(f"{who}: there is no {key}.\n  {advice}")
    folder = found.get("folder", file.stem)
    if not isinstance(folder, str) or not folder:
        raise DTypeError(f'{who}: folder is {folder!r}, not a path.\n  Write folder = "results".')
    place = file.resolve().parent
    return {**found, "train": source(who, found["train"], place), "folder": place / folder}


def _checked(who: str, workers: Any, resources: Any) -> float:
    """How many processors each trial has. Raises ArgumentError, DTypeError for what cannot be."""
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise ArgumentError(f"{who}: workers={workers!r} is not a whole number of 1 or more: so many run at once.")
    if resources is not None and not isinstance(resources, Mapping):
        advice = "Write [resources], and below it GPU = 0.5."
        raise DTypeError(f"{who}: resources is {a_kind(resources)}, not a table.\n  {advice}")
    options_of_actor(resources or {}, who)
    return float((resources or {}).get("CPU", 1))


def _made(who: str, folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"{who}: {folder} cannot be the folder of results: {error.strerror}.") from None
    return folder
