"""`fit` and the training step of the driver. The training loop itself is in `minigrad.training`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from minigrad import random
from minigrad.core.dtypes import float64, get_default_dtype
from minigrad.core.errors import ArgumentError, DTypeError, a_kind, check_function
from minigrad.core.storage import get_default_device, host
from minigrad.data import DataLoader
from minigrad.data.collate import default_collate
from minigrad.distributed.engine import options_of_actor, running
from minigrad.distributed.flat import Array, flattened, mean, write_gradients
from minigrad.distributed.replica import (
    Answer,
    Asked,
    ReplicaJob,
    Update,
    made,
    options_of,
    packed,
    parameters_of,
    stepping,
    write_buffers,
)
from minigrad.distributed.team import Team
from minigrad.functional.creation import tensor
from minigrad.nn.module import Module
from minigrad.nn.utils import clip_grad_norm_
from minigrad.optim import Optimizer
from minigrad.training.evaluation import place_of
from minigrad.training.fitting import go
from minigrad.training.history import History
from minigrad.training.run import Callback, Run
from minigrad.training.stopping import Best, EarlyStop

__all__ = ["Trained", "fit"]


class Trained(NamedTuple):
    """The result of `fit`: the driver's replica, and the metrics of each epoch."""

    model: Module
    optimizer: Optimizer
    history: History


def fit(
    make: Callable[[], Any],
    data: DataLoader,
    *,
    epochs: int,
    workers: int = 2,
    resources: Mapping[str, float] | None = None,
    accumulate: int = 1,
    clip: float | None = None,
    jit: bool = False,
    count: Callable[[Any], float] | None = None,
    validate: Iterable[Any] | None = None,
    metrics: Mapping[str, Callable[[Any, Any], Any]] | None = None,
    schedule: str = "epoch",
    early_stop: int | EarlyStop | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    resume: bool = True,
    progress: bool = True,
    seed: int | None = None,
    callbacks: Sequence[Callback | Callable[[Run], Any]] = (),
    device: str | None = None,
    restarts: int = 3,
    patience: float = 120.0,
    logs: bool = False,
) -> Trained:
    """Train a model with data parallelism in `workers` Ray processes.

    ``make()`` returns (model, optimizer, loss), optionally followed by a scheduler. `data` yields global batches, which
    are split among the workers. `minigrad.distributed` describes `resources`, `device`, `accumulate`, `clip`, `jit`,
    `count`, `restarts`, `patience` and `logs`; other arguments are those of `minigrad.training.fit`. `seed` seeds the
    default generator before `make`, and again before the first step.

    Raises MissingPackageError without Ray, WorkerError if workers fail to (re)start, ArgumentError and DTypeError for
    invalid arguments, any exception of `make` or of a shard, and those of `minigrad.training.fit`.
    """
    _check(make, data, workers, accumulate, restarts)
    options = options_of_actor(resources or {})
    if seed is not None:
        random.manual_seed(seed)
    model, optimizer, loss, scheduler = made(make)
    best = None if early_stop is None else Best.of(early_stop, "loss" if validate is None else "val_loss")
    measured = dict(metrics or {})
    run = Run(model, data.of_numbers(), optimizer, loss, measured, scheduler, schedule, validate, best, callbacks)
    place = device or ("cuda" if "num_gpus" in options else str(get_default_device()))
    collate = None if data.collate_fn is default_collate else data.collate_fn
    there = measured if validate is None else {}
    job = ReplicaJob(make, data.dataset, collate, there, count, accumulate, place, get_default_dtype().name, jit)
    with (
        running(workers, resources or {}, logs) as ray,
        Team(ray, job, workers, options, restarts, patience, lambda: packed(model, optimizer)) as team,
    ):
        step = partial(_step, team, workers, clip, stepping(optimizer, place_of(model), jit))
        return Trained(model, optimizer, go(run, step, epochs, checkpoint, checkpoint_every, resume, progress, seed))


def _step(
    team: Team,
    workers: int,
    clip: float | None,
    update: Callable[[Array, Sequence[bool]], None],
    run: Run,
    numbers: list[int],
) -> None:
    """Run one training step on all workers and the driver's replica; `numbers` are the sample indices of the batch."""
    generator = random.default_generator
    drawn = generator.draw(0)
    ends = [len(numbers) * k // workers for k in range(workers + 1)]
    shards = [Asked(numbers[a:b], a, drawn) for a, b in pairwise(ends) if a < b]
    answers = team.gradients(shards)
    generator.draw(max(answer.drawn for answer in answers))
    loss, gradient, there, buffers = _averaged(answers)
    run.look(tensor(loss, dtype=float64, device="numpy"))
    if clip is not None or run.hears("on_backward"):
        gradient, there = _changed(run, clip, gradient, there)
    team.apply(gradient, Update(there, options_of(run.optimizer), buffers))
    update(gradient, there)
    write_buffers(run.model, buffers)
    for answer in answers:
        for name, total in answer.totals.items():
            run.mean.totals[name] += total
    run.mean.count += len(numbers)
    run.end_step(len(numbers))


def _averaged(answers: Sequence[Answer]) -> tuple[float, Array, list[bool], list[Array]]:
    """All-reduce the shards: return the mean loss, mean gradient, which parameters have one, and the mean buffers."""
    total = sum(answer.weight for answer in answers)
    heard = [answer for answer in answers if answer.weight] or list(answers[:1])
    shares = [answer.weight / total if total else float("nan") for answer in heard]
    there = [any(has) for has in zip(*[answer.there for answer in heard], strict=True)]
    buffers = [
        mean(of, shares) if of[0].dtype.kind == "f" else of[0]
        for of in zip(*[answer.buffers for answer in heard], strict=True)
    ]
    loss = sum(answer.loss * share for answer, share in zip(heard, shares, strict=True))
    return loss, mean([answer.gradient for answer in heard], shares), there, buffers


def _changed(run: Run, clip: float | None, gradient: Array, there: list[bool]) -> tuple[Array, list[bool]]:
    """Return the gradient after `on_backward` callbacks and clipping, and which parameters have one."""
    params = parameters_of(run.optimizer)
    write_gradients(params, tensor(gradient, device=place_of(run.model)), there)
    run.tell("on_backward")
    if clip is not None:
        clip_grad_norm_(params, clip)
    return host(flattened(params)._array), [x.grad is not None for x in params]


def _check(make: Any, data: Any, workers: Any, accumulate: Any, restarts: Any) -> None:
    """Raise DTypeError or ArgumentError for invalid arguments."""
    check_function(make, "distributed.fit: make")
    if not isinstance(data, DataLoader):
        raise DTypeError(
            f"distributed.fit: expected data to be a DataLoader, but got {a_kind(data)}.\n"
            "  Write fit(make, DataLoader(dataset, batch_size=64), epochs=…)."
        )
    for name, number, least in (("workers", workers, 1), ("accumulate", accumulate, 1), ("restarts", restarts, 0)):
        if not isinstance(number, int) or isinstance(number, bool) or number < least:
            raise ArgumentError(f"distributed.fit: {name} should be an int >= {least}, but got {name}={number!r}.")
