"""Report metrics from a training function to its sweep, directly or as a callback of `minigrad.training.fit`."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from minigrad.core.errors import ArgumentError, DivergedError, DTypeError, describe_type
from minigrad.training.run import Callback, Run

__all__ = ["Report"]


class Report(Callback):
    """Callback that a sweep passes to its training function as `report`. Without a sweep, it only records the metrics.

    Pass it to ``fit(…, callbacks=[report])``, or call it after each epoch. `goal` is the metric that must be reported,
    or "" for none. Epochs are counted automatically; a function that resumes from its own checkpoint passes ``epoch=``
    instead.

    Raises ArgumentError if the goal is missing, DTypeError for values that are not scalars, DivergedError if the goal
    is nan or infinite.

    >>> report = Report("val_loss")
    >>> report(val_loss=0.5, val_accuracy=0.8)
    >>> report(val_loss=0.25, val_accuracy=0.9)
    >>> report.epochs
    [{'val_loss': 0.5, 'val_accuracy': 0.8}, {'val_loss': 0.25, 'val_accuracy': 0.9}]
    """

    def __init__(self, goal: str = "") -> None:
        self.goal, self.epoch = goal, 0
        self.epochs: list[dict[str, float]] = []
        self.config_error = ""
        """Message of an error in the configuration of the goal, which affects all trials."""

    def __call__(self, *, epoch: int | None = None, **metrics: Any) -> None:
        """Report the metrics of an epoch."""
        self._record(self.epoch + 1 if epoch is None else epoch, metrics)

    def on_epoch(self, run: Run) -> None:
        """Report the metrics of an epoch of `fit`."""
        self._record(run.epoch, run.history.epochs[-1])

    def _record(self, epoch: Any, metrics: Mapping[str, Any]) -> None:
        if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch <= self.epoch:
            raise ArgumentError(f"report: epoch should be greater than {self.epoch}, but got epoch={epoch!r}.")
        values = {name: _to_float(name, x) for name, x in metrics.items()}
        if self.goal and self.goal not in values:
            self.config_error = (
                f"sweep: the goal is {self.goal}, but train reported {', '.join(values) or 'nothing'}.\n"
                f"  Write report({self.goal}=…), or set the goal to a reported metric; fit reports val_loss only with "
                "validate=."
            )
            raise ArgumentError(self.config_error)
        if self.goal and not isfinite(values[self.goal]):
            raise DivergedError(f"report: {self.goal} is {values[self.goal]} in epoch {epoch}.")
        self.epoch = epoch
        self.epochs.append(values)
        self.send(epoch, values)

    def send(self, epoch: int, metrics: dict[str, float]) -> None:
        """Send the metrics of an epoch. Does nothing without a sweep."""


def _to_float(name: str, x: Any) -> float:
    """Convert a scalar, or a tensor or array with one element, to a float."""
    try:
        return float(x)
    except (TypeError, ValueError, RuntimeError):
        raise DTypeError(
            f"report: expected {name} to be a scalar, but got {describe_type(x)}.\n  Write report({name}=loss.item())."
        ) from None
