"""Run: the state of a training run, and how to save and load it."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from minigrad import io
from minigrad.core.deprecation import DeprecatedAlias
from minigrad.core.dtypes import float64
from minigrad.core.errors import ArgumentError, DivergedError, FileFormatError, MinigradError
from minigrad.core.tensor import Tensor
from minigrad.functional import stack
from minigrad.functional.creation import tensor
from minigrad.nn.module import Module
from minigrad.optim import Optimizer
from minigrad.optim.lr_scheduler import ReduceLROnPlateau
from minigrad.random import get_rng_state, set_rng_state
from minigrad.training.evaluation import MetricMeans
from minigrad.training.history import History
from minigrad.training.stopping import BestEpoch

__all__ = ["Callback", "Run", "find_mismatch", "is_resumable"]


class Callback:
    """Base class of callbacks. Override the methods of the events to handle.

    Each method receives the `Run`. Methods should be fast, since they may run at every step.
    """

    def on_backward(self, run: Run) -> None:
        """Called after the backward pass of a step, before the optimizer updates the weights."""

    def on_step(self, run: Run) -> None:
        """Called after the optimizer's step."""

    def on_epoch(self, run: Run) -> None:
        """Called after an epoch and its validation, when `run.history` includes their metrics."""


class Run:
    """The state of a training run, which is passed to callbacks.

    `model`, `optimizer` and `scheduler` are the arguments of `fit`, and `history` is its future result. `epoch` and
    `step` count the completed epochs and steps; `loss` is the latest loss. `mean` accumulates the metrics of the
    current epoch.

    Losses remain on their device until `look_every` of them are read together. Accessing `loss` reads them.
    """

    def __init__(
        self,
        model: Module,
        loader: Iterable[Any],
        optimizer: Optimizer,
        criterion: Callable[[Any, Any], Tensor],
        metrics: Mapping[str, Callable[[Any, Any], Any]],
        scheduler: Any,
        schedule: str,
        validate: Iterable[Any] | None,
        best: BestEpoch | None,
        callbacks: Sequence[Callback | Callable[[Run], Any]],
        look_every: int = 1,
    ) -> None:
        self.model, self.loader, self.optimizer, self.criterion = model, loader, optimizer, criterion
        self.scheduler, self.schedule, self.validate, self.best = scheduler, schedule, validate, best
        self.metrics = {"loss": criterion, **metrics}
        self.history = History()
        self.mean = MetricMeans(self.metrics if validate is None else {"loss": criterion})
        self.epoch, self.step, self.look_every = 0, 0, look_every
        self.last_loss = float("nan")  # the latest loss read
        self._pending_losses: list[Tensor] = []
        self._losses: list[float] = []  # losses read before their step was completed
        self._sample_counts: list[int] = []  # sample counts of the completed steps whose losses are unread
        self._callbacks = {name: _event_callbacks(callbacks, name) for name in ("on_backward", "on_step", "on_epoch")}

    @property
    def is_over(self) -> bool:
        """Whether early stopping has ended the run."""
        return self.best is not None and self.best.is_over

    def steps_in(self, epochs: int) -> int | None:
        """Return the number of steps in `epochs`, or None if the loader has no length."""
        try:
            return epochs * len(self.loader)  # type: ignore[arg-type]
        except TypeError:
            return None

    def progress_label(self, epochs: int) -> str:
        """Return the label of the progress bar for the current or last epoch."""
        return f"epoch {min(self.epoch + 1, epochs)}/{epochs}"

    def has_callback(self, event: str) -> bool:
        """Return whether a callback handles the event."""
        return bool(self._callbacks[event])

    def notify(self, event: str) -> None:
        """Call the callbacks that handle the event."""
        for callback in self._callbacks[event]:
            callback(self)

    @property
    def loss(self) -> float:
        """The loss of the latest step. Raises DivergedError if a pending loss is not finite."""
        self.read_losses()
        return self.last_loss

    def record_loss(self, loss: Tensor) -> None:
        """Add a loss to the pending losses, and call `read_losses` if there are `look_every` of them."""
        self._pending_losses.append(loss.detach().reshape(()))
        if len(self._pending_losses) >= self.look_every:
            self.read_losses()

    def read_losses(self) -> None:
        """Read all pending losses from the device at once. Raises DivergedError if one is not finite."""
        if not self._pending_losses:
            return
        values = (
            stack(self._pending_losses).tolist() if len(self._pending_losses) > 1 else [float(self._pending_losses[0])]
        )
        self._pending_losses = []
        for value in values:
            if not isfinite(value):
                raise self._diverged_error(value, len(self.history.steps) + len(self._losses) + 1)
            self.last_loss = value
            self._losses.append(value)
        self._flush_losses()

    def _diverged_error(self, loss: float, step: int) -> DivergedError:
        latest = [*self.history.steps[-1:], *self._losses][-1:]
        previous = f", after a loss of {latest[0]:.4g}" if latest else ""
        updates_since = self.step + 1 - step
        weights = (
            f"The weights have been updated {updates_since} times since, because look_every={self.look_every}."
            if updates_since
            else "The weights are those before this step."
        )
        return DivergedError(
            f"fit: the loss is {loss} at step {step}, in epoch {self.epoch + 1}{previous}. {weights}\n"
            "  To find the operation and its line, call fit inside `with mg.detect_anomaly():`.\n"
            "  Common causes are a too large learning rate, and a log, root or quotient of 0."
        )

    def _flush_losses(self) -> None:
        """Move the losses of completed steps that have been read to the history and the mean."""
        completed = list(zip(self._losses, self._sample_counts, strict=False))
        for loss, count in completed:
            self.history.steps.append(loss)
            self.mean.totals["loss"] += loss * count
        del self._losses[: len(completed)], self._sample_counts[: len(completed)]

    def end_step(self, count: int) -> None:
        """Complete a step of `count` samples: increment `step`, and advance the scheduler if it steps per batch."""
        if self.scheduler is not None and self.schedule == "step":
            self.scheduler.step()
        self.step += 1
        self._sample_counts.append(count)
        self._flush_losses()

    def end_epoch(self, validated: Mapping[str, float]) -> dict[str, float]:
        """Add the metrics of the epoch to the history and return them. Raises ArgumentError if there was no batch."""
        self.read_losses()
        if not self.mean.count:
            raise ArgumentError(
                f"fit: the loader yielded no batch in epoch {self.epoch + 1}.\n"
                "  Each epoch iterates over it, but a generator can be consumed only once: pass a list, or a "
                "DataLoader."
            )
        row = {**self.mean.compute(), **{f"val_{name}": x for name, x in validated.items()}}
        row["lr"] = float(self.optimizer.param_groups[0]["lr"])
        self.history.epochs.append(row)
        self.mean = MetricMeans(self.mean.metrics)
        self.epoch += 1
        if self.best is not None:
            self.best.record(row, self.epoch, self.model)
        if self.scheduler is not None and self.schedule == "epoch":
            plateau = isinstance(self.scheduler, ReduceLROnPlateau)
            self.scheduler.step(*([row.get("val_loss", row["loss"])] if plateau else []))
        return row

    @property
    def components(self) -> dict[str, Any]:
        """The components whose state a checkpoint contains, by name."""
        components = {"model": self.model, "optimizer": self.optimizer, "scheduler": self.scheduler, "best": self.best}
        loaders = {"loader": self.loader, "validate": self.validate}
        components |= {name: loader for name, loader in loaders.items() if is_resumable(loader)}
        return {name: part for name, part in components.items() if part is not None}

    # --- checkpoints ---

    def save(self, path: str | os.PathLike[str]) -> None:
        """Atomically write a checkpoint, from which training resumes bit for bit (see `minigrad.io`)."""
        self.read_losses()
        state: dict[str, Any] = {name: part.state_dict() for name, part in self.components.items()}
        state["random"] = get_rng_state()
        state["fit"] = {
            "epoch": self.epoch,
            "step": self.step,
            "history": self.history.epochs,
            "count": self.mean.count,
            "totals": self.mean.totals,
        }
        state["losses"] = tensor(self.history.steps, dtype=float64, device="numpy")
        io.save(state, path)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Resume from the checkpoint at `path`.

        Raises FileFormatError for a damaged file, ArgumentError for a checkpoint of a run with other components, and
        the error of a component if its state does not match. After an error all components are restored.
        """
        state = io.load(path, "numpy")
        if not isinstance(state, dict) or not {"random", "fit", "losses"} <= set(state):
            raise FileFormatError(f"fit: {os.fspath(path)!r} is not a checkpoint of fit.")
        own_names, saved_names = (
            list(self.components),
            [name for name in state if name not in ("random", "fit", "losses")],
        )
        if sorted(own_names) != sorted(saved_names):
            raise ArgumentError(
                f"fit: the checkpoint {os.fspath(path)!r} has states of {', '.join(saved_names)}, but this run has "
                f"{', '.join(own_names)}.\n  Call fit with the same arguments, or with resume=False to start over."
            )
        self._check_progress(state["fit"], state["losses"], path)
        self._load_components(state, path)
        fit = state["fit"]
        self.epoch, self.step = fit["epoch"], fit["step"]
        self.history.epochs, self.history.steps = fit["history"], state["losses"].tolist()
        if fit["count"]:
            self.mean.count, self.mean.totals = fit["count"], fit["totals"]

    def _check_progress(self, fit: Any, losses: Any, path: str | os.PathLike[str]) -> None:
        """Check the counts and metrics of a checkpoint. Raises FileFormatError, or ArgumentError for other metrics."""
        template = {"epoch": 0, "step": 0, "history": [], "count": 0, "totals": None}
        mismatch = find_mismatch(fit, template)
        if not mismatch:
            rows = [*enumerate(fit["history"]), ("totals", fit["totals"])]
            mismatch = next((f"history[{k}]" for k, row in rows if not _is_numeric_row(row)), "")
            counts = [fit[name] for name in ("epoch", "step", "count")]
            mismatch = mismatch or ("a count" if any(not isinstance(n, int) or n < 0 for n in counts) else "")
        if not mismatch and (not isinstance(losses, Tensor) or losses.ndim != 1 or not losses.dtype.is_floating_point):
            mismatch = "losses"
        if mismatch:
            raise FileFormatError(f"fit: {os.fspath(path)!r}: {mismatch} of the checkpoint is invalid.")
        if fit["count"] and fit["totals"].keys() != self.mean.totals.keys():
            raise ArgumentError(
                f"fit: the checkpoint {os.fspath(path)!r} is from within an epoch with metrics "
                f"{', '.join(fit['totals'])}, but this run has {', '.join(self.mean.totals)}.\n"
                "  Call fit with the same metrics, or with resume=False to start over."
            )

    def _load_components(self, state: dict[str, Any], path: str | os.PathLike[str]) -> None:
        previous = {name: copy.deepcopy(part.state_dict()) for name, part in self.components.items()}
        random_state = get_rng_state()
        try:
            for name, part in self.components.items():
                mismatch = "" if name in ("model", "optimizer") else find_mismatch(state[name], previous[name])
                if mismatch:
                    raise ArgumentError(f"{mismatch} has another structure.")
                part.load_state_dict(state[name])
            name = "random"
            set_rng_state(state["random"])
        except BaseException as error:
            for component_name, part in self.components.items():
                part.load_state_dict(previous[component_name])
            set_rng_state(random_state)
            is_descriptive = isinstance(error, MinigradError) and name in ("model", "optimizer")
            if is_descriptive or not isinstance(error, Exception):
                raise
            raise FileFormatError(
                f"fit: {os.fspath(path)!r}: the state of {name} in the checkpoint does not match: {error}\n"
                "  Call fit with the same arguments, or with resume=False to start over. Nothing was changed."
            ) from error

    hears = DeprecatedAlias("has_callback")
    look = DeprecatedAlias("record_loss")
    parts = DeprecatedAlias("components")
    read = DeprecatedAlias("read_losses")
    said = DeprecatedAlias("progress_label")
    tell = DeprecatedAlias("notify")


def find_mismatch(value: Any, template: Any) -> str:
    """Return the path of the first difference between the structures of two states, or "" if they match.

    Dicts must have the same keys, except those with a leading underscore. Strings, numbers, lists and dicts must match
    their type; None matches anything.

    >>> find_mismatch({"a": 1, "b": {"c": [1]}}, {"a": 2.5, "b": {"c": "x"}})
    'b.c'
    """
    if value is None or template is None:
        return ""
    if isinstance(template, Mapping):
        if not isinstance(value, Mapping):
            return "the state"
        if names := [str(name) for name in value.keys() ^ template.keys() if not str(name).startswith("_")]:
            return ", ".join(sorted(names))
        inner = {name: find_mismatch(value[name], template[name]) for name in template if name in value}
        name = next((name for name in inner if inner[name]), None)
        return "" if name is None else str(name) if inner[name] == "the state" else f"{name}.{inner[name]}"
    type_groups = ((bool,), (int, float), (str,), (list, tuple), (Tensor,))
    types = next((kind for kind in type_groups if isinstance(template, kind)), (object,))
    return "" if isinstance(value, types) and isinstance(value, bool) is isinstance(template, bool) else "the state"


def _is_numeric_row(row: Any) -> bool:
    return isinstance(row, Mapping) and all(isinstance(x, int | float) for x in row.values())


def _event_callbacks(callbacks: Sequence[Any], event: str) -> list[Callable[[Run], Any]]:
    """Return the functions to call at an event: overridden methods and, for "on_step", callbacks that are functions."""
    handlers = []
    for callback in callbacks:
        method = getattr(callback, event, None)
        if method is not None and getattr(type(callback), event, None) is not getattr(Callback, event):
            handlers.append(method)
        elif event == "on_step" and callable(callback) and not isinstance(callback, Callback):
            handlers.append(callback)
    return handlers


def is_resumable(loader: Any) -> bool:
    """Return whether a loader can save and restore its position."""
    return hasattr(loader, "state_dict") and hasattr(loader, "load_state_dict")
