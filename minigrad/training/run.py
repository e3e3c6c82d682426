"""Run: the state of a training run, and how to save and load it."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from minigrad import io
from minigrad.core.dtypes import float64
from minigrad.core.errors import ArgumentError, DivergedError, FileFormatError, MinigradError
from minigrad.core.tensor import Tensor
from minigrad.functional import stack
from minigrad.functional.creation import tensor
from minigrad.nn.module import Module
from minigrad.optim import Optimizer
from minigrad.optim.lr_scheduler import ReduceLROnPlateau
from minigrad.random import get_rng_state, set_rng_state
from minigrad.training.evaluation import Mean
from minigrad.training.history import History
from minigrad.training.stopping import Best

__all__ = ["Callback", "Run", "keeps_place", "unlike"]


class Callback:
    """Base class of callbacks. Override the methods of the events of interest.

    Each receives the `Run`. They should be cheap, since they may run at every step.
    """

    def on_backward(self, run: Run) -> None:
        """Run after the backward pass of a step, before the optimizer updates the weights."""

    def on_step(self, run: Run) -> None:
        """Run after the optimizer's step."""

    def on_epoch(self, run: Run) -> None:
        """Run after an epoch and its validation, which `run.history` includes."""


class Run:
    """A training run as callbacks see it.

    `model`, `optimizer` and `scheduler` are the arguments of `fit`, and `history` is its future result. `epoch` and
    `step` count those completed; `loss` is the latest loss. `mean` has the sums of the current epoch.

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
        best: Best | None,
        callbacks: Sequence[Callback | Callable[[Run], Any]],
        look_every: int = 1,
    ) -> None:
        self.model, self.loader, self.optimizer, self.criterion = model, loader, optimizer, criterion
        self.scheduler, self.schedule, self.validate, self.best = scheduler, schedule, validate, best
        self.measured = {"loss": criterion, **metrics}
        self.history = History()
        self.mean = Mean(self.measured if validate is None else {"loss": criterion})
        self.epoch, self.step, self.look_every = 0, 0, look_every
        self.known = float("nan")  # the latest loss read
        self._unread: list[Tensor] = []
        self._losses: list[float] = []  # losses read of steps not yet completed
        self._counts: list[int] = []  # sample counts of completed steps with unread losses
        self._heard = {name: _hearing(callbacks, name) for name in ("on_backward", "on_step", "on_epoch")}

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

    def said(self, epochs: int) -> str:
        """Return the progress label of the current or last epoch."""
        return f"epoch {min(self.epoch + 1, epochs)}/{epochs}"

    def hears(self, moment: str) -> bool:
        """Whether any callback handles the event `moment`."""
        return bool(self._heard[moment])

    def tell(self, moment: str) -> None:
        """Call the callbacks of the event `moment`."""
        for hear in self._heard[moment]:
            hear(self)

    @property
    def loss(self) -> float:
        """The loss of the latest step. Raises as `look`."""
        self.read()
        return self.known

    def look(self, loss: Tensor) -> None:
        """Record a loss, and read the pending ones if there are `look_every`. Raises DivergedError as `read`."""
        self._unread.append(loss.detach().reshape(()))
        if len(self._unread) >= self.look_every:
            self.read()

    def read(self) -> None:
        """Read all pending losses in one transfer. Raises DivergedError if one is not finite."""
        if not self._unread:
            return
        numbers = stack(self._unread).tolist() if len(self._unread) > 1 else [float(self._unread[0])]
        self._unread = []
        for number in numbers:
            if not isfinite(number):
                raise self._diverged(number, len(self.history.steps) + len(self._losses) + 1)
            self.known = number
            self._losses.append(number)
        self._account()

    def _diverged(self, number: float, step: int) -> DivergedError:
        latest = [*self.history.steps[-1:], *self._losses][-1:]
        before = f", after a loss of {latest[0]:.4g}" if latest else ""
        changed = self.step + 1 - step
        weights = (
            f"The weights have been updated {changed} times since, because look_every={self.look_every}."
            if changed
            else "The weights are those before this step."
        )
        return DivergedError(
            f"fit: the loss is {number} at step {step}, in epoch {self.epoch + 1}{before}. {weights}\n"
            "  To find the operation and its line, call fit inside `with mg.detect_anomaly():`.\n"
            "  Common causes are a too large learning rate, and a log, root or quotient of 0."
        )

    def _account(self) -> None:
        """Move the losses read of completed steps to the history and the mean."""
        ended = list(zip(self._losses, self._counts, strict=False))
        for number, count in ended:
            self.history.steps.append(number)
            self.mean.totals["loss"] += number * count
        del self._losses[: len(ended)], self._counts[: len(ended)]

    def end_step(self, count: int) -> None:
        """Complete a step of `count` samples, already added to `mean`, after the optimizer's."""
        if self.scheduler is not None and self.schedule == "step":
            self.scheduler.step()
        self.step += 1
        self._counts.append(count)
        self._account()

    def end_epoch(self, validated: Mapping[str, float]) -> dict[str, float]:
        """Complete an epoch, and return its row of the history. Raises ArgumentError if there was no batch."""
        self.read()
        if not self.mean.count:
            raise ArgumentError(
                f"fit: the loader yielded no batch in epoch {self.epoch + 1}.\n"
                "  Each epoch iterates over it, but a generator can be consumed only once: pass a list, or a "
                "DataLoader."
            )
        row = {**self.mean.numbers(), **{f"val_{name}": x for name, x in validated.items()}}
        row["lr"] = float(self.optimizer.param_groups[0]["lr"])
        self.history.epochs.append(row)
        self.mean = Mean(self.mean.metrics)
        self.epoch += 1
        if self.best is not None:
            self.best.look(row, self.epoch, self.model)
        if self.scheduler is not None and self.schedule == "epoch":
            plateau = isinstance(self.scheduler, ReduceLROnPlateau)
            self.scheduler.step(*([row.get("val_loss", row["loss"])] if plateau else []))
        return row

    @property
    def parts(self) -> dict[str, Any]:
        """The components with a state of their own, by name."""
        found = {"model": self.model, "optimizer": self.optimizer, "scheduler": self.scheduler, "best": self.best}
        loaders = {"loader": self.loader, "validate": self.validate}
        found |= {name: loader for name, loader in loaders.items() if keeps_place(loader)}
        return {name: part for name, part in found.items() if part is not None}

    # --- checkpoints ---

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint atomically, from which training resumes bit for bit (see `minigrad.io`)."""
        self.read()
        state: dict[str, Any] = {name: part.state_dict() for name, part in self.parts.items()}
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

        Raises FileFormatError for a damaged file, ArgumentError for one of a run with other components, and the error
        of a component whose state does not match; all components are restored then.
        """
        state = io.load(path, "numpy")
        if not isinstance(state, dict) or not {"random", "fit", "losses"} <= set(state):
            raise FileFormatError(f"fit: {os.fspath(path)!r} is not a checkpoint of fit.")
        here, there = list(self.parts), [name for name in state if name not in ("random", "fit", "losses")]
        if sorted(here) != sorted(there):
            raise ArgumentError(
                f"fit: the checkpoint {os.fspath(path)!r} has states of {', '.join(there)}, but this run has "
                f"{', '.join(here)}.\n  Call fit with the same arguments, or with resume=False to start over."
            )
        self._check_fit(state["fit"], state["losses"], path)
        self._load_parts(state, path)
        fit = state["fit"]
        self.epoch, self.step = fit["epoch"], fit["step"]
        self.history.epochs, self.history.steps = fit["history"], state["losses"].tolist()
        if fit["count"]:
            self.mean.count, self.mean.totals = fit["count"], fit["totals"]

    def _check_fit(self, fit: Any, losses: Any, path: str | os.PathLike[str]) -> None:
        """Raise FileFormatError for values of another type, ArgumentError if other metrics are half accumulated."""
        wanted = {"epoch": 0, "step": 0, "history": [], "count": 0, "totals": None}
        wrong = unlike(fit, wanted)
        if not wrong:
            rows = [*enumerate(fit["history"]), ("totals", fit["totals"])]
            wrong = next((f"history[{k}]" for k, row in rows if not _are_numbers(row)), "")
            counts = [fit[name] for name in ("epoch", "step", "count")]
            wrong = wrong or ("a count" if any(not isinstance(n, int) or n < 0 for n in counts) else "")
        if not wrong and (not isinstance(losses, Tensor) or losses.ndim != 1 or not losses.dtype.is_floating_point):
            wrong = "losses"
        if wrong:
            raise FileFormatError(f"fit: {os.fspath(path)!r}: {wrong} of the checkpoint is invalid.")
        if fit["count"] and fit["totals"].keys() != self.mean.totals.keys():
            raise ArgumentError(
                f"fit: the checkpoint {os.fspath(path)!r} is from within an epoch with metrics "
                f"{', '.join(fit['totals'])}, but this run has {', '.join(self.mean.totals)}.\n"
                "  Call fit with the same metrics, or with resume=False to start over."
            )

    def _load_parts(self, state: dict[str, Any], path: str | os.PathLike[str]) -> None:
        before = {name: copy.deepcopy(part.state_dict()) for name, part in self.parts.items()}
        random = get_rng_state()
        try:
            for name, part in self.parts.items():
                wrong = "" if name in ("model", "optimizer") else unlike(state[name], before[name])
                if wrong:
                    raise ArgumentError(f"{wrong} has another structure.")
                part.load_state_dict(state[name])
            name = "random"
            set_rng_state(state["random"])
        except BaseException as error:
            for one, part in self.parts.items():
                part.load_state_dict(before[one])
            set_rng_state(random)
            says = isinstance(error, MinigradError) and name in ("model", "optimizer")
            if says or not isinstance(error, Exception):
                raise
            raise FileFormatError(
                f"fit: {os.fspath(path)!r}: the state of {name} in the checkpoint does not match: {error}\n"
                "  Call fit with the same arguments, or with resume=False to start over. Nothing was changed."
            ) from error


def unlike(found: Any, like: Any) -> str:
    """Return the path at which the structure of two states differs, "" if it does not.

    Dicts must have the same keys, except those with a leading underscore. Strings, numbers, lists and dicts must match
    their type; None matches anything.

    >>> unlike({"a": 1, "b": {"c": [1]}}, {"a": 2.5, "b": {"c": "x"}})
    'b.c'
    """
    if found is None or like is None:
        return ""
    if isinstance(like, Mapping):
        if not isinstance(found, Mapping):
            return "the state"
        if names := [str(name) for name in found.keys() ^ like.keys() if not str(name).startswith("_")]:
            return ", ".join(sorted(names))
        inner = {name: unlike(found[name], like[name]) for name in like if name in found}
        name = next((name for name in inner if inner[name]), None)
        return "" if name is None else str(name) if inner[name] == "the state" else f"{name}.{inner[name]}"
    kinds = ((bool,), (int, float), (str,), (list, tuple), (Tensor,))
    kind = next((kind for kind in kinds if isinstance(like, kind)), (object,))
    return "" if isinstance(found, kind) and isinstance(found, bool) is isinstance(like, bool) else "the state"


def _are_numbers(row: Any) -> bool:
    return isinstance(row, Mapping) and all(isinstance(x, int | float) for x in row.values())


def _hearing(callbacks: Sequence[Any], moment: str) -> list[Callable[[Run], Any]]:
    """Return the functions to call at an event: overridden methods of that name, and plain functions after steps."""
    found = []
    for callback in callbacks:
        method = getattr(callback, moment, None)
        if method is not None and getattr(type(callback), moment, None) is not getattr(Callback, moment):
            found.append(method)
        elif moment == "on_step" and callable(callback) and not isinstance(callback, Callback):
            found.append(callback)
    return found


def keeps_place(loader: Any) -> bool:
    """Whether a loader can save and restore its position."""
    return hasattr(loader, "state_dict") and hasattr(loader, "load_state_dict")
