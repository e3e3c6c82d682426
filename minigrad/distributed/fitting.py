"""`fit` and the training step of the driver. The training loop itself is in `minigrad.training`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from minigrad import random
from minigrad.core.dtypes import float64, get_default_dtype
from minigrad.core.errors import ArgumentError, DTypeError, check_callable, describe_type
from minigrad.core.storage import get_default_device, to_numpy
from minigrad.data import DataLoader
from minigrad.data.collate import default_collate
from minigrad.distributed.flat_gradients import Array, flatten_gradients, weighted_sum, write_gradients
from minigrad.distributed.ray_runtime import actor_options, ray_session
from minigrad.distributed.replica import (
    ReplicaJob,
    Shard,
    ShardResult,
    Update,
    call_make,
    group_options,
    make_update,
    optimizer_parameters,
    serialize_state,
    write_buffers,
)
from minigrad.distributed.worker_group import WorkerGroup
from minigrad.functional.creation import tensor
from minigrad.nn.module import Module
from minigrad.nn.utils import clip_grad_norm_
from minigrad.optim import Optimizer
from minigrad.training.evaluation import device_of
from minigrad.training.fitting import run_fit
from minigrad.training.history import History
from minigrad.training.run import Callback, Run
from minigrad.training.stopping import BestEpoch, EarlyStop

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
    _check_arguments(make, data, workers, accumulate, restarts)
    options = actor_options(resources or {})
    if seed is not None:
        random.manual_seed(seed)
    model, optimizer, loss, scheduler = call_make(make)
    best = None if early_stop is None else BestEpoch.from_rule(early_stop, "loss" if validate is None else "val_loss")
    metric_functions = dict(metrics or {})
    run = Run(
        model, data.of_numbers(), optimizer, loss, metric_functions, scheduler, schedule, validate, best, callbacks
    )
    replica_device = device or ("cuda" if "num_gpus" in options else str(get_default_device()))
    collate = None if data.collate_fn is default_collate else data.collate_fn
    worker_metrics = metric_functions if validate is None else {}
    job = ReplicaJob(
        make, data.dataset, collate, worker_metrics, count, accumulate, replica_device, get_default_dtype().name, jit
    )
    with (
        ray_session(workers, resources or {}, logs) as ray,
        WorkerGroup(ray, job, workers, options, restarts, patience, lambda: serialize_state(model, optimizer)) as team,
    ):
        step = partial(_train_step, team, workers, clip, make_update(optimizer, device_of(model), jit))
        return Trained(
            model, optimizer, run_fit(run, step, epochs, checkpoint, checkpoint_every, resume, progress, seed)
        )


def _train_step(
    team: WorkerGroup,
    workers: int,
    clip: float | None,
    update: Callable[[Array, Sequence[bool]], None],
    run: Run,
    indices: list[int],
) -> None:
    """Run one training step on all workers and the driver's replica; `indices` are the sample indices of the batch."""
    generator = random.default_generator
    generator_state = generator.draw(0)
    bounds = [len(indices) * k // workers for k in range(workers + 1)]
    shards = [Shard(indices[a:b], a, generator_state) for a, b in pairwise(bounds) if a < b]
    results = team.gradients(shards)
    generator.draw(max(result.draw_count for result in results))
    loss, gradient, has_gradient, buffers = _average_shards(results)
    run.record_loss(tensor(loss, dtype=float64, device="numpy"))
    if clip is not None or run.has_callback("on_backward"):
        gradient, has_gradient = _apply_gradient_hooks(run, clip, gradient, has_gradient)
    team.apply(gradient, Update(has_gradient, group_options(run.optimizer), buffers))
    update(gradient, has_gradient)
    write_buffers(run.model, buffers)
    for answer in results:
        for name, total in answer.metric_totals.items():
            run.mean.totals[name] += total
    run.mean.count += len(indices)
    run.end_step(len(indices))


def _average_shards(results: Sequence[ShardResult]) -> tuple[float, Array, list[bool], list[Array]]:
    """Average the shards. Return the mean loss, mean gradient, mask of parameters with a gradient, and mean buffers."""
    total = sum(result.weight for result in results)
    weighted_results = [answer for answer in results if answer.weight] or list(results[:1])
    weights = [answer.weight / total if total else float("nan") for answer in weighted_results]
    has_gradient = [any(has) for has in zip(*[answer.has_gradient for answer in weighted_results], strict=True)]
    buffers = [
        weighted_sum(buffer_values, weights) if buffer_values[0].dtype.kind == "f" else buffer_values[0]
        for buffer_values in zip(*[answer.buffers for answer in weighted_results], strict=True)
    ]
    loss = sum(answer.loss * weight for answer, weight in zip(weighted_results, weights, strict=True))
    return loss, weighted_sum([answer.gradient for answer in weighted_results], weights), has_gradient, buffers


def _apply_gradient_hooks(
    run: Run, clip: float | None, gradient: Array, has_gradient: list[bool]
) -> tuple[Array, list[bool]]:
    """Call the `on_backward` callbacks and clip. Return the gradient and the mask of parameters with a gradient."""
    params = optimizer_parameters(run.optimizer)
    write_gradients(params, tensor(gradient, device=device_of(run.model)), has_gradient)
    run.notify("on_backward")
    if clip is not None:
        clip_grad_norm_(params, clip)
    return to_numpy(flatten_gradients(params)._array), [x.grad is not None for x in params]


def _check_arguments(make: Any, data: Any, workers: Any, accumulate: Any, restarts: Any) -> None:
    check_callable(make, "distributed.fit: make")
    if not isinstance(data, DataLoader):
        raise DTypeError(
            f"distributed.fit: expected data to be a DataLoader, but got {describe_type(data)}.\n"
            "  Write fit(make, DataLoader(dataset, batch_size=64), epochs=…)."
        )
    for name, value, minimum in (("workers", workers, 1), ("accumulate", accumulate, 1), ("restarts", restarts, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
            raise ArgumentError(f"distributed.fit: {name} should be an int >= {minimum}, but got {name}={value!r}.")
