"""A training that is under way: all that changes while it goes on, and how that is saved and loaded."""

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
    """What wants to hear of a training: derive from it, and write the methods of the moments that matter.

    Each gets the `Run`. They are called at every step, so what they do should be cheap.
    """

    def on_backward(self, run: Run) -> None:
        """After the backward pass of a step: the gradients are there, and the weights are still the old ones."""

    def on_step(self, run: Run) -> None:
        """After the optimizer's step."""

    def on_epoch(self, run: Run) -> None:
        """After an epoch, when it has been validated: `run.history` has its row."""


class Run:
    """A training as callbacks see it.

    `model`, `optimizer`, `scheduler` and `history` are what `fit` was given and will return; `epoch` counts the epochs
    that ended, `step` the steps, and `loss` is the latest one's. `mean` has the sums of the epoch that is under way.

    Losses are looked at `look_every` at a time: until then they stay on their device. Who asks for `loss` looks.
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
        self.known = float("nan")  # the latest loss that was looked at
        self._unread: list[Tensor] = []
        self._losses: list[float] = []  # those of steps that have not ended,
        self._counts: list[int] = []  # and how many examples steps had whose losses were not looked at
        self._heard = {name: _hearing(callbacks, name) for name in ("on_backward", "on_step", "on_epoch")}

    @property
    def is_over(self) -> bool:
        """Whether nothing became better for too long."""
        return self.best is not None and self.best.is_over

    def steps_in(self, epochs: int) -> int | None:
        """How many steps so many epochs have; None where the loader does not know."""
        try:
            return epochs * len(self.loader)  # type: ignore[arg-type]
        except TypeError:
            return None

    def said(self, epochs: int) -> str:
        """Which of so many epochs is under way; the last, where all are over."""
        return f"epoch {min(self.epoch + 1, epochs)}/{epochs}"

    def hears(self, moment: str) -> bool:
        """Whether anything wants to hear of a moment."""
        return bool(self._heard[moment])

    def tell(self, moment: str) -> None:
        """Call what wants to hear of a moment."""
        for hear in self._heard[moment]:
            hear(self)

    @property
    def loss(self) -> float:
        """The loss of the latest step. Raises as `look`."""
        self.read()
        return self.known

    def look(self, loss: Tensor) -> None:
        """Take note of a loss, and look at those that wait. Raises DivergedError if one is no finite number."""
        self._unread.append(loss.detach().reshape(()))
        if len(self._unread) >= self.look_every:
            self.read()

    def read(self) -> None:
        """Look at all losses that wait, at once. Raises DivergedError if one is no finite number."""
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
        before = f", after {latest[0]:.4g}" if latest else ""
        changed = self.step + 1 - step
        weights = (
            f"The weights were changed {changed} times since, as look_every={self.look_every}."
            if changed
            else "The weights are those before this step."
        )
        return DivergedError(
            f"fit: the loss is {number} at step {step}, in epoch {self.epoch + 1}{before}. {weights}\n"
            "  Where it comes from: fit again inside `with mg.detect_anomaly():`, which names the operation and the "
            "line.\n  Often the learning rate is too large, or something takes a log, a root or a quotient of 0."
        )

    def _account(self) -> None:
        """Put the losses that are known of steps that have ended into the history, and into the mean."""
        ended = list(zip(self._losses, self._counts, strict=False))
        for number, count in ended:
            self.history.steps.append(number)
            self.mean.totals["loss"] += number * count
        del self._losses[: len(ended)], self._counts[: len(ended)]

    def end_step(self, count: int) -> None:
        """Take note of a step, after the optimizer's, of a batch of so many examples, which `mean` has measured."""
        if self.scheduler is not None and self.schedule == "step":
            self.scheduler.step()
        self.step += 1
        self._counts.append(count)
        self._account()

    def end_epoch(self, validated: Mapping[str, float]) -> dict[str, float]:
        """Make the row of an epoch in the history, and return it. Raises ArgumentError if there was no batch."""
        self.read()
        if not self.mean.count:
            raise ArgumentError(
                f"fit: the loader gave no batch in epoch {self.epoch + 1}.\n"
                "  It is gone through once an epoch, and a generator gives its batches only once: give a list, or a "
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
        """What has a state of its own, by name."""
        found = {"model": self.model, "optimizer": self.optimizer, "scheduler": self.scheduler, "best": self.best}
        loaders = {"loader": self.loader, "validate": self.validate}
        found |= {name: loader for name, loader in loaders.items() if keeps_place(loader)}
        return {name: part for name, part in found.items() if part is not None}

    # --- saved and loaded ---

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that is needed to go on exactly, as one file, whole or not at all (see `minigrad.io`)."""
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
        """Go on from what `save` wrote.

        Raises FileFormatError for a damaged file, ArgumentError for one of a training with other parts, and what the
        parts raise where it does not fit them: then all of them are as they were.
        """
        state = io.load(path, "numpy")
        if not isinstance(state, dict) or not {"random", "fit", "losses"} <= set(state):
            raise FileFormatError(f"fit: {os.fspath(path)!r} is not a checkpoint that fit wrote.")
        here, there = list(self.parts), [name for name in state if name not in ("random", "fit", "losses")]
        if sorted(here) != sorted(there):
            raise ArgumentError(
                f"fit: the checkpoint {os.fspath(path)!r} has states of {', '.join(there)}, and here are "
                f"{', '.join(here)}.\n  Call fit as before, or with resume=False to begin again."
            )
        self._check_fit(state["fit"], state["losses"], path)
        self._load_parts(state, path)
        fit = state["fit"]
        self.epoch, self.step = fit["epoch"], fit["step"]
        self.history.epochs, self.history.steps = fit["history"], state["losses"].tolist()
        if fit["count"]:
            self.mean.count, self.mean.totals = fit["count"], fit["totals"]

    def _check_fit(self, fit: Any, losses: Any, path: str | os.PathLike[str]) -> None:
        """Raise FileFormatError for numbers of another form, ArgumentError where other metrics were half measured."""
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
            raise FileFormatError(f"fit: {os.fspath(path)!r}: {wrong} of the checkpoint is not what fit writes there.")
        if fit["count"] and fit["totals"].keys() != self.mean.totals.keys():
            raise ArgumentError(
                f"fit: the checkpoint {os.fspath(path)!r} is from the middle of an epoch that measured "
                f"{', '.join(fit['totals'])}, and here are {', '.join(self.mean.totals)}.\n"
                "  Call fit with the same metrics, or with resume=False to begin again."
            )

    def _load_parts(self, state: dict[str, Any], path: str | os.PathLike[str]) -> None:
        before = {name: copy.deepcopy(part.state_dict()) for name, part in self.parts.items()}
        random = get_rng_state()
        try:
            for name, part in self.parts.items():
                wrong = "" if name in ("model", "optimizer") else unlike(state[name], before[name])
                if wrong:
                    raise ArgumentError(f"{wrong} is of another form.")
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
                f"fit: {os.fspath(path)!r}: the state of {name} in the checkpoint does not fit: {error}\n"
                "  Call fit as before, or with resume=False to begin again. Nothing was changed."
            ) from error


def unlike(found: Any, like: Any) -> str:
    """Where a state has another form than one that it is to take the place of, "" where it has not.

    Dicts have the same names, but for those with an underscore; texts, numbers, lists and dicts stand where such do;
    None may stand for anything.

    >>> unlike({"a": 1, "b": {"c": [1]}}, {"a": 2.5, "b": {"c": "x"}})
    'b.c'
    """
    if found is None or like is None:
        return ""
    if isinstance(like, Mapping):
        if not isinstance(found, Mapping):
            return "it"
        if names := [str(name) for name in found.keys() ^ like.keys() if not str(name).startswith("_")]:
            return ", ".join(sorted(names))
        inner = {name: unlike(found[name], like[name]) for name in like if name in found}
        name = next((name for name in inner if inner[name]), None)
        return "" if name is None else str(name) if inner[name] == "it" else f"{name}.{inner[name]}"
    kinds = ((bool,), (int, float), (str,), (list, tuple), (Tensor,))
    kind = next((kind for kind in kinds if isinstance(like, kind)), (object,))
    return "" if isinstance(found, kind) and isinstance(found, bool) is isinstance(like, bool) else "it"


def _are_numbers(row: Any) -> bool:
    return isinstance(row, Mapping) and all(isinstance(x, int | float) for x in row.values())


def _hearing(callbacks: Sequence[Any], moment: str) -> list[Callable[[Run], Any]]:
    """What to call at a moment: methods of that name that do something; functions hear of steps."""
    found = []
    for callback in callbacks:
        method = getattr(callback, moment, None)
        if method is not None and getattr(type(callback), moment, None) is not getattr(Callback, moment):
            found.append(method)
        elif moment == "on_step" and callable(callback) and not isinstance(callback, Callback):
            found.append(callback)
    return found


def keeps_place(loader: Any) -> bool:
    """Whether a loader can say where it stands, and go on from there."""
    return hasattr(loader, "state_dict") and hasattr(loader, "load_state_dict")
