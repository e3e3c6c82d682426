"""Early stopping, which ends training and restores the weights of the best epoch."""

from __future__ import annotations

import copy
from math import inf
from typing import Any, NamedTuple

from minigrad.core.errors import ArgumentError
from minigrad.nn.module import Module

__all__ = ["BestEpoch", "EarlyStop"]


class EarlyStop(NamedTuple):
    """Rule that stops training after `patience` epochs in which `monitor` did not improve by more than `min_delta`.

    `monitor` is a name in the history; None means "val_loss", or "loss" without validation. `mode` is "min" if lower is
    better, "max" if higher is.
    """

    patience: int
    monitor: str | None = None
    mode: str = "min"
    min_delta: float = 0.0


class BestEpoch:
    """Stores the best epoch so far, its weights, and the number of epochs since then."""

    def __init__(self, rule: EarlyStop, monitor: str) -> None:
        self.rule, self.monitor = rule, rule.monitor or monitor
        self.number, self.epoch, self.waited = inf, 0, 0
        self.weights: dict[str, Any] | None = None

    @classmethod
    def from_rule(cls, rule: int | EarlyStop, monitor: str) -> BestEpoch:
        """Create an instance from a rule or a patience. `monitor` is the default. Raises ArgumentError if invalid."""
        rule = rule if isinstance(rule, EarlyStop) else EarlyStop(rule)
        patience: Any = rule.patience
        if rule.mode not in ("min", "max") or not isinstance(patience, int) or patience < 1:
            raise ArgumentError(f"fit: early_stop requires patience >= 1 and mode 'min' or 'max', but got {rule}.")
        return cls(rule, monitor)

    @property
    def is_over(self) -> bool:
        """Whether the patience is exhausted."""
        return self.waited >= self.rule.patience

    def record(self, row: dict[str, float], epoch: int, model: Module) -> None:
        """Compare the metrics of an epoch with the best, and save the weights if they improved."""
        if self.monitor not in row:
            raise ArgumentError(f"fit: early_stop monitors {self.monitor!r}, but the metrics are {', '.join(row)}.")
        score = row[self.monitor] if self.rule.mode == "min" else -row[self.monitor]
        if self.weights is None or score < self.number - self.rule.min_delta:
            self.number, self.epoch, self.waited = score, epoch, 0
            self.weights = copy.deepcopy(model.state_dict())
        else:
            self.waited += 1

    def restore(self, model: Module, stopped: bool) -> str:
        """Load the best weights into the model, and return a message that describes why training ended."""
        if self.weights is not None:
            model.load_state_dict(self.weights)
        reason = (
            f"stopped after {self.waited} epochs without improvement of {self.monitor}"
            if stopped
            else "all epochs are over"
        )
        return f"{reason}: restored the weights of epoch {self.epoch}"

    def state_dict(self) -> dict[str, Any]:
        """Return the attributes to save in a checkpoint."""
        return {name: getattr(self, name) for name in _STATE_KEYS}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the result of `state_dict`."""
        vars(self).update({name: state[name] for name in _STATE_KEYS})


_STATE_KEYS = ("number", "epoch", "waited", "weights")
