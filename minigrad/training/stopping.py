"""When to stop: after some epochs in which nothing became better, with the weights of the best one."""

from __future__ import annotations

import copy
from math import inf
from typing import Any, NamedTuple

from minigrad.core.errors import ArgumentError
from minigrad.nn.module import Module

__all__ = ["Best", "EarlyStop"]


class EarlyStop(NamedTuple):
    """Stop after `patience` epochs in which `monitor` did not become better, by more than `min_delta`.

    `monitor` is a name in the history, None for "val_loss", or "loss" where nothing is validated. `mode` is "min" where
    less is better, "max" where more is.
    """

    patience: int
    monitor: str | None = None
    mode: str = "min"
    min_delta: float = 0.0


class Best:
    """The best epoch so far, its weights, and for how many epochs there was no better one."""

    def __init__(self, rule: EarlyStop, monitor: str) -> None:
        self.rule, self.monitor = rule, rule.monitor or monitor
        self.number, self.epoch, self.waited = inf, 0, 0
        self.weights: dict[str, Any] | None = None

    @classmethod
    def of(cls, rule: int | EarlyStop, monitor: str) -> Best:
        """By a rule or a patience, looking at `monitor` unless it says otherwise. Raises ArgumentError."""
        rule = rule if isinstance(rule, EarlyStop) else EarlyStop(rule)
        patience: Any = rule.patience
        if rule.mode not in ("min", "max") or not isinstance(patience, int) or patience < 1:
            raise ArgumentError(f"fit: early_stop={rule} needs patience=1 or more, and mode='min' or 'max'.")
        return cls(rule, monitor)

    @property
    def is_over(self) -> bool:
        """Whether it is time to stop."""
        return self.waited >= self.rule.patience

    def look(self, row: dict[str, float], epoch: int, model: Module) -> None:
        """Take note of an epoch."""
        if self.monitor not in row:
            raise ArgumentError(f"fit: early_stop monitors {self.monitor!r}, and there is only {', '.join(row)}.")
        number = row[self.monitor] if self.rule.mode == "min" else -row[self.monitor]
        if self.weights is None or number < self.number - self.rule.min_delta:
            self.number, self.epoch, self.waited = number, epoch, 0
            self.weights = copy.deepcopy(model.state_dict())
        else:
            self.waited += 1

    def restore(self, model: Module, stopped: bool) -> str:
        """Give the model its best weights; returns what is to be said of that."""
        if self.weights is not None:
            model.load_state_dict(self.weights)
        end = (
            f"stopped after {self.waited} epochs without a better {self.monitor}" if stopped else "all epochs are over"
        )
        return f"{end}: the weights are those of epoch {self.epoch}"

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps of it."""
        return {name: getattr(self, name) for name in _KEPT}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned."""
        vars(self).update({name: state[name] for name in _KEPT})


_KEPT = ("number", "epoch", "waited", "weights")
