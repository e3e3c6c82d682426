"""Schedulers that multiply the current rate by a factor, so that several of them can be combined."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import ClassVar

from minigrad.core.errors import ArgumentError, DTypeError, describe_type
from minigrad.optim.lr_scheduler.base import LRScheduler, Rate, check_fraction, check_positive_int, group_options
from minigrad.optim.optimizer import Optimizer

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LinearLR",
    "MultiStepLR",
    "PolynomialLR",
    "StepLR",
]


class _FactorScheduler(LRScheduler):
    """Base class of schedulers that multiply the rate, above `eta_min`, by `factor`.

    Each step multiplies by factor(e) / factor(e − 1), so that the factors of several schedulers of one optimizer
    multiply, and other changes of the rate are preserved.
    """

    eta_min: float = 0.0
    multiplies_on_resume: ClassVar[bool] = False
    """Whether constructing a resumed scheduler applies the factor, as PyTorch does for piecewise constant rates."""

    def factor(self, e: float) -> float:
        """Return the ratio of the rate at step `e` to the initial rate."""
        raise NotImplementedError

    def get_lr(self) -> list[Rate]:
        """Return the rate of each group at `last_epoch`."""
        rates, current, min_lr = group_options(self.optimizer, "lr"), self.factor(self.last_epoch), self.eta_min
        previous = self.factor(self.last_epoch - 1) if self.last_epoch else 1.0
        if current == previous or (self._is_initial and self.last_epoch and not self.multiplies_on_resume):
            return rates
        if previous == 0:
            return self._get_closed_form_lr()
        return [min_lr + (rate - min_lr) * (current / previous) for rate in rates]

    def _get_closed_form_lr(self) -> list[Rate]:
        current, min_lr = self.factor(self.last_epoch), self.eta_min
        return [min_lr + (base - min_lr) * current for base in self.base_lrs]


class StepLR(_FactorScheduler):
    """Multiplies the rate by `gamma` every `step_size` steps: rate · gamma^⌊e / step_size⌋.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler, rates = StepLR(optimizer, step_size=2), []
    >>> for _ in range(5):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> [round(rate, 4) for rate in rates]
    [1.0, 1.0, 0.1, 0.1, 0.01]
    """

    multiplies_on_resume = True

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = check_positive_int(step_size, "StepLR", "step_size"), gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, e: float) -> float:
        """Return `gamma` to the power of the number of completed periods of `step_size` steps."""
        return float(self.gamma ** (e // self.step_size))


class MultiStepLR(_FactorScheduler):
    """Multiplies the rate by `gamma` at each of the `milestones`, which are step indices."""

    multiplies_on_resume = True

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        if not isinstance(milestones, Iterable):
            raise DTypeError(
                f"MultiStepLR: expected a list of steps as milestones, but got {describe_type(milestones)}.\n"
                f"  Write milestones=[{milestones!r}]."
            )
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, e: float) -> float:
        """Return `gamma` to the power of the number of milestones up to step `e`."""
        return float(self.gamma ** bisect_right(self.milestones, e))


class ConstantLR(_FactorScheduler):
    """Multiplies the rate by `factor` for the first `total_iters` steps.

    Raises ArgumentError for a `factor` outside [0, 1].
    """

    multiplies_on_resume = True

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        self.share, self.total_iters = check_fraction(factor, "ConstantLR", "factor"), total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, e: float) -> float:
        """Return the factor of the constructor before step `total_iters`, then 1."""
        return self.share if e < self.total_iters else 1.0


class LinearLR(_FactorScheduler):
    """Multiplies the rate by a factor that changes linearly from `start_factor` to `end_factor` in `total_iters` steps.

    It is typically used as a warm-up. Raises ArgumentError for a factor outside [0, 1], or a `start_factor` of 0.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.ones(1, requires_grad=True)], lr=1.0)
    >>> LinearLR(optimizer, start_factor=0.25, total_iters=3).get_last_lr()
    [0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor == 0:
            raise ArgumentError(
                "LinearLR: expected start_factor to be greater than 0, or the first step has no effect."
            )
        self.start_factor = check_fraction(start_factor, "LinearLR", "start_factor")
        self.end_factor, self.total_iters = check_fraction(end_factor, "LinearLR", "end_factor"), total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, e: float) -> float:
        """Interpolate between both factors."""
        fraction = min(e / self.total_iters, 1.0) if self.total_iters else 1.0
        return self.start_factor + (self.end_factor - self.start_factor) * fraction


class ExponentialLR(_FactorScheduler):
    """Multiplies the rate by `gamma` at every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, e: float) -> float:
        """Return `gamma` to the power of `e`."""
        return float(self.gamma**e)


class CosineAnnealingLR(_FactorScheduler):
    """Decreases the rate to `eta_min` in `T_max` steps, then increases it, by the factor (1 + cos(π e / T_max)) / 2.

    Loshchilov, Hutter 2017, "SGDR: stochastic gradient descent with warm restarts", equation 5, without restarts.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = check_positive_int(T_max, "CosineAnnealingLR", "T_max"), eta_min
        super().__init__(optimizer, last_epoch)

    def factor(self, e: float) -> float:
        """Return the cosine at step `e`, scaled to [0, 1]."""
        return (1 + math.cos(math.pi * e / self.T_max)) / 2


class PolynomialLR(_FactorScheduler):
    """Decreases the rate to 0 in `total_iters` steps: rate · (1 - e / total_iters) ^ `power`.

    The decrease is linear for a power of 1. Chen, Papandreou, Kokkinos, Murphy, Yuille 2018, "DeepLab", 4.1, with 0.9.
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = check_positive_int(total_iters, "PolynomialLR", "total_iters"), power
        super().__init__(optimizer, last_epoch)

    def factor(self, e: float) -> float:
        """Return the fraction of remaining steps to the power of `power`."""
        return float((1 - min(e, self.total_iters) / self.total_iters) ** self.power)
