"""A scheduler that reduces the rate when a metric stops improving."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad.core.errors import ArgumentError
from minigrad.optim.lr_scheduler.base import (
    LRScheduler,
    check_optimizer,
    group_options,
    set_option,
    value_for_group,
    warn_deprecated_epoch,
)
from minigrad.optim.optimizer import Optimizer

__all__ = [
    "ReduceLROnPlateau",
]


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rate by `factor` when a metric has not improved for more than `patience` steps: ``step(loss)``.

    With `mode` "min" an improvement is below best · (1 − `threshold`), or below best − threshold if `threshold_mode` is
    "abs"; "max" is the reverse. After a reduction, `cooldown` steps are not counted. The rate never falls below
    `min_lr`, a float or one per group, and changes of at most `eps` are not applied.

    Raises ArgumentError for a `factor` of 1 or more, or an unknown mode.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        self.optimizer = check_optimizer(optimizer, self)
        if factor >= 1:
            raise ArgumentError(f"ReduceLROnPlateau: factor should be < 1.0, but got {factor}.")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ArgumentError(
                'ReduceLROnPlateau: expected mode "min" or "max" and threshold_mode "rel" or "abs", but got '
                f"{mode!r} and {threshold_mode!r}."
            )
        self.mode, self.factor, self.patience, self.eps = mode, factor, patience, eps
        self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
        self._group_options = min_lr
        self.min_lrs = self._expand_min_lrs()
        self.best = math.inf if mode == "min" else -math.inf
        self.last_epoch = self.num_bad_epochs = self.cooldown_counter = 0
        self._last_lr = group_options(optimizer, "lr")

    def _expand_min_lrs(self) -> list[float]:
        return [
            value_for_group(self._group_options, k, self.optimizer) for k in range(len(self.optimizer.param_groups))
        ]

    def step(self, metrics: Any, epoch: float | None = None) -> None:  # type: ignore[override]
        """Record the metric of one step, a float or a tensor of one element, and reduce the rates if necessary.

        `epoch`, deprecated as in PyTorch, sets `last_epoch`.
        """
        current = float(metrics)
        if len(self.min_lrs) != len(self.optimizer.param_groups):
            self.min_lrs = self._expand_min_lrs()
        if epoch is not None:
            warn_deprecated_epoch(self)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self.num_bad_epochs += 1
        if self._is_better(current):
            self.best, self.num_bad_epochs = current, 0
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, min_lr in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                old_rate = float(group["lr"])
                rate = max(old_rate * self.factor, min_lr)
                if old_rate - rate > self.eps:
                    set_option(group, "lr", rate)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = group_options(self.optimizer, "lr")

    def _is_better(self, current: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        margin = abs(self.best) * self.threshold if self.threshold_mode == "rel" else self.threshold
        return sign * current < sign * self.best - (0 if math.isinf(self.best) else margin)
