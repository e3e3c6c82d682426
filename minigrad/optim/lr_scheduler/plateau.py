"""Rates that fall when training gets no further."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad.core.errors import ArgumentError
from minigrad.optim.lr_scheduler.base import LRScheduler, at, checked, deprecated, of_groups, put
from minigrad.optim.optimizer import Optimizer

__all__ = [
    "ReduceLROnPlateau",
]


class ReduceLROnPlateau(LRScheduler):
    """Multiply the rate by `factor` when a measure was not better for more than `patience` steps: ``step(loss)``.

    Better, by `mode` "min", is below best · (1 − `threshold`), or below best − threshold with `threshold_mode` "abs";
    "max" is the other way round. After a change the next `cooldown` steps do not count. The rate stays at `min_lr` or
    above, a number or one for each group, and is not changed by `eps` or less.

    Raises ArgumentError for a `factor` of 1 or more and another mode.

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
        self.optimizer = checked(optimizer, self)
        if factor >= 1:
            raise ArgumentError(f"ReduceLROnPlateau: factor={factor}, which does not reduce; it is below 1.")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ArgumentError(
                f'ReduceLROnPlateau: mode={mode!r} is "min" or "max", threshold_mode={threshold_mode!r} "rel" or "abs".'
            )
        self.mode, self.factor, self.patience, self.eps = mode, factor, patience, eps
        self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
        self._given = min_lr
        self.min_lrs = self._lowest()
        self.best = math.inf if mode == "min" else -math.inf
        self.last_epoch = self.num_bad_epochs = self.cooldown_counter = 0
        self._last_lr = of_groups(optimizer, "lr")

    def _lowest(self) -> list[float]:
        """The least rate of each group that there is now."""
        return [at(self._given, k, self.optimizer) for k in range(len(self.optimizer.param_groups))]

    def step(self, metrics: Any, epoch: float | None = None) -> None:  # type: ignore[override]
        """Count one more step, after which the measure is `metrics`, a number or a tensor of one.

        `epoch`, which PyTorch deprecates, sets `last_epoch`.
        """
        now = float(metrics)
        if len(self.min_lrs) != len(self.optimizer.param_groups):
            self.min_lrs = self._lowest()
        if epoch is not None:
            deprecated(self)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self.num_bad_epochs += 1
        if self._better(now):
            self.best, self.num_bad_epochs = now, 0
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, low in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                rate_before = float(group["lr"])
                rate = max(rate_before * self.factor, low)
                if rate_before - rate > self.eps:
                    put(group, "lr", rate)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = of_groups(self.optimizer, "lr")

    def _better(self, now: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        by = abs(self.best) * self.threshold if self.threshold_mode == "rel" else self.threshold
        return sign * now < sign * self.best - (0 if math.isinf(self.best) else by)
