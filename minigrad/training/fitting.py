"""The training loop, `fit`. Its helpers are in the other modules of this package."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from minigrad.core.errors import ArgumentError, DTypeError, describe_type
from minigrad.core.tensor import Tensor
from minigrad.nn.module import Module
from minigrad.optim import Optimizer
from minigrad.random import manual_seed
from minigrad.training.evaluation import device_of, evaluate, split_batch, training_mode
from minigrad.training.history import History
from minigrad.training.progress import ProgressBar
from minigrad.training.run import Callback, Run, is_resumable
from minigrad.training.stopping import BestEpoch, EarlyStop

__all__ = ["fit", "run_fit"]


def fit(
    model: Module,
    loader: Iterable[Any],
    optimizer: Optimizer,
    loss: Callable[[Any, Any], Tensor],
    *,
    epochs: int,
    validate: Iterable[Any] | None = None,
    metrics: Mapping[str, Callable[[Any, Any], Any]] | None = None,
    scheduler: Any = None,
    schedule: str = "epoch",
    early_stop: int | EarlyStop | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    resume: bool = True,
    progress: bool = True,
    seed: int | None = None,
    callbacks: Sequence[Callback | Callable[[Run], Any]] = (),
    look_every: int = 1,
) -> History:
    """Train `model` for `epochs` passes over `loader`, and return the history.

    Each epoch ends with an evaluation on `validate` and a step of `scheduler`, which steps after each batch instead if
    ``schedule="step"``. `early_stop` is an `EarlyStop` or its patience; the model ends with its best weights.
    `checkpoint` is a file that stores all changing state: if it exists and `resume` is true, training resumes from it.
    `seed` seeds the default generator unless resuming. `minigrad.training` describes batches, metrics, checkpoints and
    callbacks.

    Reading a loss from a GPU waits for its kernels. With `look_every` above 1 losses are read in groups of that size,
    at the latest at the end of an epoch or before a checkpoint; the history is bitwise identical.

    Raises DivergedError if a loss is nan or infinite: before the weights change or, if `look_every` is above 1, up to
    that many steps later, but before a checkpoint; ArgumentError for options that cannot be combined; FileFormatError
    for a damaged checkpoint.

    >>> import minigrad as mg
    >>> model = mg.nn.Linear(1, 1)
    >>> batch = mg.tensor([[0.0], [1.0]]), mg.tensor([[1.0], [3.0]])
    >>> history = fit(model, [batch], mg.optim.SGD(model.parameters(), lr=0.5), mg.functional.mse_loss,
    ...               epochs=100, progress=False)
    >>> len(history), model.weight.item().__round__(2), model.bias.item().__round__(2)
    (100, 2.0, 1.0)
    """
    best = None if early_stop is None else BestEpoch.from_rule(early_stop, "loss" if validate is None else "val_loss")
    metrics = metrics or {}
    run = Run(model, loader, optimizer, loss, metrics, scheduler, schedule, validate, best, callbacks, look_every)
    return run_fit(run, _train_step, epochs, checkpoint, checkpoint_every, resume, progress, seed)


def _train_step(run: Run, batch: Any) -> None:
    inputs, target = split_batch(batch, device_of(run.model))
    run.optimizer.zero_grad()
    output = run.model(*inputs)
    loss = run.criterion(output, target)
    run.record_loss(loss)
    loss.backward()
    run.notify("on_backward")
    run.optimizer.step()
    run.end_step(run.mean.add(output, target, exclude="loss"))


def run_fit(
    run: Run,
    step: Callable[[Run, Any], None],
    epochs: int,
    checkpoint: str | os.PathLike[str] | None,
    checkpoint_every: int | None,
    resume: bool,
    progress: bool,
    seed: int | None,
) -> History:
    """Train as `fit` does, calling `step` for each batch, which may run it in worker processes."""
    _check_arguments(run, epochs, checkpoint, checkpoint_every)
    resumed = checkpoint is not None and resume and os.path.exists(checkpoint)
    if checkpoint is not None and resumed:
        run.load(checkpoint)
    elif seed is not None:
        manual_seed(seed)
    with (
        training_mode(run.model, True),
        ProgressBar(progress, run.progress_label(epochs), run.step, run.steps_in(epochs)) as bar,
    ):
        if resumed:
            bar.write(f"resuming from {checkpoint}, after {run.epoch} epochs and {run.step} steps")
        try:
            _train_loop(run, step, epochs, checkpoint, checkpoint_every, bar)
        except KeyboardInterrupt:
            if checkpoint is not None and os.path.exists(checkpoint):
                bar.write(f"interrupted: run the same call again to resume from {checkpoint}")
            raise
    return run.history


def _train_loop(
    run: Run,
    step: Callable[[Run, Any], None],
    epochs: int,
    checkpoint: Any,
    checkpoint_every: int | None,
    bar: ProgressBar,
) -> None:
    while run.epoch < epochs and not run.is_over:
        bar.set_epoch(run.progress_label(epochs))
        for batch in run.loader:
            step(run, batch)
            run.notify("on_step")
            bar.step(run.last_loss)
            if checkpoint_every and run.step % checkpoint_every == 0:
                run.save(checkpoint)
        bar.show_metrics(run.end_epoch({} if run.validate is None else evaluate(run.model, run.validate, run.metrics)))
        run.notify("on_epoch")
        if checkpoint is not None:
            run.save(checkpoint)
    if run.best is not None:
        run.history.stopped = run.best.restore(run.model, run.is_over)
        bar.finish()


def _check_arguments(run: Run, epochs: Any, checkpoint: Any, checkpoint_every: Any) -> None:
    """Raise DTypeError for arguments of the wrong type, ArgumentError for invalid or incompatible options."""
    for name, x, is_valid in (
        ("model", run.model, isinstance(run.model, Module)),
        ("loader", run.loader, isinstance(run.loader, Iterable)),
        ("optimizer", run.optimizer, isinstance(run.optimizer, Optimizer)),
        ("loss", run.criterion, callable(run.criterion)),
    ):
        if not is_valid:
            raise DTypeError(
                f"fit: {name} has the wrong type, {describe_type(x)}.\n"
                "  Write fit(model, loader, optimizer, loss, epochs=…)."
            )
    if run.schedule not in ("epoch", "step"):
        raise ArgumentError(f"fit: expected schedule 'epoch' or 'step', but got {run.schedule!r}.")
    for name, count in (("epochs", epochs), ("checkpoint_every", checkpoint_every), ("look_every", run.look_every)):
        if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
            raise ArgumentError(f"fit: expected positive integer {name}, but got {count!r}.")
    if checkpoint_every and checkpoint is None:
        raise ArgumentError("fit: checkpoint_every= requires checkpoint=.\n  Pass a path.")
    if checkpoint_every and not is_resumable(run.loader):
        raise ArgumentError(
            f"fit: checkpoint_every={checkpoint_every} saves within an epoch, but a {type(run.loader).__name__} has no "
            "state_dict.\n  Pass a DataLoader, or leave checkpoint_every= out to save after each epoch."
        )
