"""Schedulers whose rates are a function of the step: cycles, cosine waves, user-defined functions."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import FunctionType
from typing import Any, NamedTuple

from minigrad.core.errors import ArgumentError, check_callable
from minigrad.optim.lr_scheduler.base import (
    LRScheduler,
    Rate,
    check_fraction,
    check_optimizer,
    check_positive_int,
    clone_rate,
    group_options,
    set_option,
    value_for_group,
)
from minigrad.optim.optimizer import Optimizer

__all__ = [
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "LambdaLR",
    "MultiplicativeLR",
    "OneCycleLR",
]


class LambdaLR(LRScheduler):
    """Sets the rate to the initial rate times ``lr_lambda(e)``, where `lr_lambda` is a function, or one per group.

    `state_dict` includes the attributes of callable objects, but not functions.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = LambdaLR(optimizer, lambda e: 1 / (1 + e))
    >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        check_optimizer(optimizer, self)
        self._shared = None if isinstance(lr_lambda, list | tuple) else lr_lambda
        self.lr_lambdas: list[Callable[[float], float]] = list(lr_lambda) if self._shared is None else []
        for function in self.lr_lambdas if self._shared is None else [lr_lambda]:
            check_callable(function, type(self).__name__)
        if self._shared is None:
            self._check_count(optimizer)
        super().__init__(optimizer, last_epoch)

    def _check_count(self, optimizer: Optimizer) -> None:
        functions, groups = len(self.lr_lambdas), len(optimizer.param_groups)
        if functions != groups:
            raise ArgumentError(f"{type(self).__name__}: expected {groups} lr_lambdas, but got {functions}.")

    def _register_group(self, k: int, group: dict[str, Any]) -> None:
        if self._shared is not None:
            self.lr_lambdas.append(self._shared)
        else:
            self._check_count(self.optimizer)
        super()._register_group(k, group)

    def get_lr(self) -> list[Rate]:
        """Return the rate of each group at `last_epoch`."""
        return [
            base_lr * function(self.last_epoch)
            for base_lr, function in zip(self.base_lrs, self.lr_lambdas, strict=True)
        ]

    def state_dict(self) -> dict[str, Any]:
        """Return the attributes of the scheduler, and of each `lr_lambda` that is a callable object."""
        function_states = [
            None if isinstance(function, FunctionType) else dict(getattr(function, "__dict__", {}))
            for function in self.lr_lambdas
        ]
        return {**super().state_dict(), "lr_lambdas": function_states}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the result of `state_dict`."""
        super().load_state_dict(state_dict)
        for function, function_state in zip(self.lr_lambdas, state_dict.get("lr_lambdas", ()), strict=False):
            if function_state is not None:
                vars(function).update(function_state)


class MultiplicativeLR(LambdaLR):
    """Multiplies the rate by ``lr_lambda(e)`` at each step after the first."""

    def get_lr(self) -> list[Rate]:
        """Return the rate of each group at `last_epoch`."""
        rates = group_options(self.optimizer, "lr")
        if self._is_initial:
            return rates
        return [rate * function(self.last_epoch) for rate, function in zip(rates, self.lr_lambdas, strict=True)]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Decreases the rate to `eta_min` along a cosine in `T_0` steps, then restarts with periods `T_mult` times longer.

    Loshchilov, Hutter 2017, "SGDR: stochastic gradient descent with warm restarts", equation 5. `step` accepts
    fractional epochs: ``scheduler.step(epoch + batch / batches)``. Raises ArgumentError unless `T_0` and `T_mult` are
    positive ints.
    """

    _takes_epoch = True

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_0, self.eta_min = check_positive_int(T_0, "CosineAnnealingWarmRestarts", "T_0"), eta_min
        self.T_mult = check_positive_int(T_mult, "CosineAnnealingWarmRestarts", "T_mult")
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: float | None = None) -> None:
        """Increment `last_epoch`, or set it to `epoch`, and set the rates."""
        if epoch is not None and epoch < 0:
            raise ArgumentError(f"CosineAnnealingWarmRestarts.step: expected non-negative epoch, but got {epoch}.")
        super().step(epoch)

    def get_lr(self) -> list[Rate]:
        """Return the rate of each group at `last_epoch`."""
        position, period = self.last_epoch, self.T_0
        if self.T_mult == 1:
            position %= period
        while position >= period:
            position, period = position - period, period * self.T_mult
        factor = (1 + math.cos(math.pi * position / period)) / 2
        return [self.eta_min + (base - self.eta_min) * factor for base in self.base_lrs]


_SCALE_FNS: dict[str, Callable[[float, float, float], float]] = {
    "triangular": lambda cycle, e, gamma: 1.0,
    "triangular2": lambda cycle, e, gamma: 0.5 ** (cycle - 1),
    "exp_range": lambda cycle, e, gamma: gamma**e,
}


class CyclicLR(LRScheduler):
    """Cycles the rate from `base_lr` to `max_lr` in `step_size_up` steps, and back in `step_size_down`.

    `mode` scales the amplitude: constant for "triangular", halved after each cycle for "triangular2", times `gamma` ^ e
    for "exp_range"; `scale_fn` replaces this factor: it is a function of the cycle number, starting at 1, or of e if
    `scale_mode` is "iterations". With `cycle_momentum` the momentum moves inversely from `max_momentum` to
    `base_momentum`. Rates and momenta may be lists, with one value per group. Smith 2017, "Cyclical learning rates for
    training neural networks".

    Raises ArgumentError for an unknown mode, or an optimizer without momentum to cycle.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer, self)
        if (scale_fn is None and mode not in _SCALE_FNS) or scale_mode not in ("cycle", "iterations"):
            raise ArgumentError(
                f"CyclicLR: mode is invalid: mode={mode!r}, scale_mode={scale_mode!r}; expected mode "
                f'{", ".join(map(repr, _SCALE_FNS))}, and scale_mode "cycle" or "iterations".'
            )
        if cycle_momentum and not {"momentum", "betas"} & optimizer.defaults.keys():
            raise ArgumentError(
                f"CyclicLR: cycle_momentum requires momentum or betas, which {optimizer.name} lacks.\n"
                "  Write cycle_momentum=False."
            )
        self._up = float(check_positive_int(step_size_up, "CyclicLR", "step_size_up"))
        self._length = self._up + (step_size_up if step_size_down is None else step_size_down)
        self.mode, self.gamma, self.scale_mode, self._scale = mode, gamma, scale_mode, scale_fn
        self.cycle_momentum = cycle_momentum
        self._group_options = (base_lr, max_lr, base_momentum, max_momentum)
        for values in self._group_options:
            value_for_group(values, 0, optimizer)
        self.max_lrs: list[Rate] = []
        super().__init__(optimizer, last_epoch)

    def _register_group(self, k: int, group: dict[str, Any]) -> None:
        base_lr, max_lr, base_momentum, max_momentum = [
            value_for_group(values, k, self.optimizer) for values in self._group_options
        ]
        if not self._resumed:
            set_option(group, "lr", base_lr)
        if self.cycle_momentum:
            group.update(max_momentum=max_momentum, base_momentum=base_momentum)
        group.setdefault("initial_lr", clone_rate(base_lr))
        self.base_lrs.append(base_lr)
        self.max_lrs.append(max_lr)

    def get_lr(self) -> list[Rate]:
        """Return the rate of each group at `last_epoch`, and set its momentum."""
        e, groups = self.last_epoch, self.optimizer.param_groups
        cycle, position = math.floor(1 + e / self._length), e % self._length
        fraction = (
            position / self._up if position <= self._up else (self._length - position) / (self._length - self._up)
        )
        if self._scale is None:
            fraction *= _SCALE_FNS[self.mode](cycle, e, self.gamma)
        else:
            fraction *= self._scale(cycle if self.scale_mode == "cycle" else e)
        for group in groups if self.cycle_momentum else ():
            _set_momentum(group, group["max_momentum"] - (group["max_momentum"] - group["base_momentum"]) * fraction)
        return [base + (max_lr - base) * fraction for base, max_lr in zip(self.base_lrs, self.max_lrs, strict=True)]


def _set_momentum(group: dict[str, Any], momentum: Rate) -> None:
    group.update({"betas": (momentum, *group["betas"][1:])} if "betas" in group else {"momentum": momentum})


class _Phase(NamedTuple):
    """A phase of the cycle: its last step, and the group keys of its initial and final rates and momenta."""

    end: float
    rates: tuple[str, str]
    momenta: tuple[str, str]


class OneCycleLR(LRScheduler):
    """Increases the rate to `max_lr`, then decreases it far below its initial value, in one cycle of `total_steps`.

    The rate starts at `max_lr` / `div_factor`, reaches `max_lr` after the fraction `pct_start` of the steps, and ends
    at its initial value / `final_div_factor`. With `three_phase` it first returns to its initial value, as fast as it
    rose. `anneal_strategy` is "cos" or "linear". With `cycle_momentum` the momentum (the first beta) moves from
    `max_momentum` to `base_momentum` and back. Smith, Topin 2018, "Super-convergence: very fast training of neural
    networks using large learning rates". `max_lr` and the momenta may be lists, with one value per group.

    Raises ArgumentError without a step count (`total_steps`, or `epochs` and `steps_per_epoch`), for a `pct_start`
    outside [0, 1], an unknown strategy, an optimizer without momentum to cycle, or a step beyond the last.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer, self)
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ArgumentError("OneCycleLR: you must define either total_steps, or epochs and steps_per_epoch.")
            total_steps = epochs * steps_per_epoch
        self.total_steps = check_positive_int(total_steps, "OneCycleLR", "total_steps")
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(f'OneCycleLR: anneal_strategy must be "cos" or "linear", but got {anneal_strategy!r}.')
        self.anneal_strategy, self.cycle_momentum = anneal_strategy, cycle_momentum
        if cycle_momentum and not {"momentum", "betas"} & optimizer.defaults.keys():
            raise ArgumentError(
                f"OneCycleLR: cycle_momentum requires momentum or betas, which {optimizer.name} lacks.\n"
                "  Write cycle_momentum=False."
            )
        last_step, peak_step = (
            self.total_steps - 1,
            check_fraction(pct_start, "OneCycleLR", "pct_start") * self.total_steps - 1,
        )
        # The last step of each phase.
        ends = [peak_step, 2 * peak_step, last_step] if three_phase else [peak_step, last_step]
        rate_keys = ["initial_lr", "max_lr", *["initial_lr"] * three_phase, "min_lr"]
        momentum_keys = ["max_momentum", "base_momentum", *["max_momentum"] * (1 + three_phase)]
        self._phases = [
            _Phase(*phase) for phase in zip(ends, pairwise(rate_keys), pairwise(momentum_keys), strict=True)
        ]
        self._group_options = (max_lr, base_momentum, max_momentum)
        for values in self._group_options:
            value_for_group(values, 0, optimizer)
        self._falls = div_factor, final_div_factor
        super().__init__(optimizer, last_epoch)

    def _register_group(self, k: int, group: dict[str, Any]) -> None:
        if not self._resumed:
            max_lr, base_momentum, max_momentum = [
                value_for_group(values, k, self.optimizer) for values in self._group_options
            ]
            start = max_lr / self._falls[0]
            group.update(initial_lr=start, max_lr=max_lr, min_lr=start / self._falls[1])
            if self.cycle_momentum:
                group.update(max_momentum=max_momentum, base_momentum=base_momentum)
        super()._register_group(k, group)

    def get_lr(self) -> list[Rate]:
        """Return the rate of each group at `last_epoch`, and set its momentum."""
        if self.last_epoch > self.total_steps:  # the step after the last training step is allowed; its rate is unused
            raise ArgumentError(
                f"OneCycleLR.step: tried to step {self.last_epoch} times, but total_steps is {self.total_steps}."
            )
        k = min(bisect_left([phase.end for phase in self._phases], self.last_epoch), len(self._phases) - 1)
        begin, phase, rates = self._phases[k - 1].end if k else 0.0, self._phases[k], []
        fraction = (self.last_epoch - begin) / (phase.end - begin) if phase.end != begin else 1.0
        for group in self.optimizer.param_groups:
            rates.append(self._interpolate(group, phase.rates, fraction))
            if self.cycle_momentum:
                _set_momentum(group, self._interpolate(group, phase.momenta, fraction))
        return rates

    def _interpolate(self, group: dict[str, Any], names: tuple[str, str], fraction: float) -> Rate:
        start, end = group[names[0]], group[names[1]]
        if self.anneal_strategy == "linear":
            return start + (end - start) * fraction
        return end + (start - end) / 2 * (1 + math.cos(math.pi * fraction))
