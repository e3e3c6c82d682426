"""How a function that trains says how good it is: by hand, or as a callback of `minigrad.training.fit`."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from minigrad.core.errors import ArgumentError, DivergedError, DTypeError, a_kind
from minigrad.training.run import Callback, Run

__all__ = ["Report"]


class Report(Callback):
    """What a sweep gives its function as `report`; made by hand, it keeps the numbers, so that one trial can be tried.

    Give it to ``fit(…, callbacks=[report])``, which tells it of each epoch, or call it after each. `goal` is what must
    be among the numbers, "" for anything. Epochs are counted, unless they are told by ``epoch=``, as a function that
    goes on from a checkpoint of its own does.

    Raises ArgumentError where the goal is missing, DTypeError for what is no number, DivergedError where the goal is
    nan or infinite.

    >>> report = Report("val_loss")
    >>> report(val_loss=0.5, val_accuracy=0.8)
    >>> report(val_loss=0.25, val_accuracy=0.9)
    >>> report.epochs
    [{'val_loss': 0.5, 'val_accuracy': 0.8}, {'val_loss': 0.25, 'val_accuracy': 0.9}]
    """

    def __init__(self, goal: str = "") -> None:
        self.goal, self.epoch = goal, 0
        self.epochs: list[dict[str, float]] = []
        self.mistake = ""
        """What is wrong with the goal, which is no failure of one trial."""

    def __call__(self, *, epoch: int | None = None, **numbers: Any) -> None:
        """An epoch is over, and these are its numbers."""
        self._hear(self.epoch + 1 if epoch is None else epoch, numbers)

    def on_epoch(self, run: Run) -> None:
        """What `fit` calls after each epoch."""
        self._hear(run.epoch, run.history.epochs[-1])

    def _hear(self, epoch: Any, given: Mapping[str, Any]) -> None:
        if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch <= self.epoch:
            raise ArgumentError(f"report: epoch={epoch!r} does not come after {self.epoch}.")
        numbers = {name: _number(name, x) for name, x in given.items()}
        if self.goal and self.goal not in numbers:
            self.mistake = (
                f"sweep: train reports {', '.join(numbers) or 'nothing'}, and the goal is {self.goal}.\n"
                f"  Write report({self.goal}=…), or name as the goal what is reported; fit reports val_loss where "
                "validate= is given."
            )
            raise ArgumentError(self.mistake)
        if self.goal and not isfinite(numbers[self.goal]):
            raise DivergedError(f"report: {self.goal} is {numbers[self.goal]} in epoch {epoch}.")
        self.epoch = epoch
        self.epochs.append(numbers)
        self.send(epoch, numbers)

    def send(self, epoch: int, numbers: dict[str, float]) -> None:
        """Tell whoever wants to know; the `report` of a sweep tells the sweep."""


def _number(name: str, x: Any) -> float:
    """A number, also where it comes as a tensor or an array of one."""
    try:
        return float(x)
    except (TypeError, ValueError, RuntimeError):
        raise DTypeError(f"report: {name} is {a_kind(x)}, not a number.\n  Write report({name}=loss.item()).") from None
