"""Base class of the learning rate schedulers, and helper functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from minigrad.core.errors import ArgumentError, DTypeError, describe_type
from minigrad.core.grad_mode import no_grad
from minigrad.core.tensor import Tensor
from minigrad.optim.optimizer import Optimizer

__all__ = [
    "LRScheduler",
    "Rate",
    "check_fraction",
    "check_optimizer",
    "check_positive_int",
    "clone_rate",
    "group_options",
    "set_option",
    "value_for_group",
    "warn_deprecated_epoch",
]

Rate = Any  # a float, or a tensor of one element


class LRScheduler:
    """Base class of schedulers. A subclass defines `get_lr`, which returns the rate of each group at `last_epoch`.

    `last_epoch` is -1 for a new run. To resume a run, load the optimizer's state, whose groups include their
    initial_lr, and pass the `last_epoch` of the saved scheduler minus 1. Groups added to the optimizer later are
    scheduled from the next step on.

    Raises DTypeError if `optimizer` is not an Optimizer, ArgumentError if a group to resume lacks its initial_lr.
    """

    _is_initial = False  # whether `step` is called by the constructor
    _get_lr_called_within_step = False
    _step_count = 0
    _takes_epoch = False  # whether `step` accepts an epoch without a warning

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = check_optimizer(optimizer, self)
        for k, group in enumerate(optimizer.param_groups):
            if last_epoch != -1 and "initial_lr" not in group:
                raise ArgumentError(
                    f"{type(self).__name__}: param 'initial_lr' is not specified in param_groups[{k}] when resuming an "
                    f"optimizer with last_epoch={last_epoch}.\n  Load the optimizer's state_dict first."
                )
        self.base_lrs: list[Rate] = []
        self.last_epoch: float = last_epoch
        self._told, self._resumed = False, last_epoch != -1
        self._register_groups()
        self._resumed = False
        self._initial_step()

    def get_lr(self) -> list[Rate]:
        """Compute the rate of each group at `last_epoch`."""
        raise NotImplementedError(
            f"{type(self).__name__} must implement get_lr(self): one learning rate per param group."
        )

    def get_last_lr(self) -> list[Rate]:
        """Return the rates that were set last, one per group."""
        return self._last_lr

    def step(self, epoch: float | None = None) -> None:
        """Increment `last_epoch` and set the rates. Warns if the optimizer has not stepped, which skips the first rate.

        `epoch`, deprecated as in PyTorch, is the new value of `last_epoch`. The rates then use the closed form of the
        schedule if it exists.
        """
        self._check_order()
        self._step_count += 1
        if epoch is not None and not self._takes_epoch:
            warn_deprecated_epoch(self)
        previous_epoch = self.last_epoch
        try:
            self._update_lr(epoch)
        except Exception:
            self.last_epoch, self._step_count = previous_epoch, self._step_count - 1  # undo a failed step
            raise

    def _check_order(self) -> None:
        if self._told or self._is_initial:
            return
        self._told = True
        if not self.optimizer.steps and type(self.optimizer).step is Optimizer.step:
            warnings.warn(
                f"Detected call of {type(self).__name__}.step() before optimizer.step(): it skips the first value of "
                "the schedule.\n  Call optimizer.step() first, then the scheduler's.",
                stacklevel=3,
            )

    def _initial_step(self) -> None:
        """Set the initial rates."""
        self._step_count, self._is_initial = 0, True
        try:
            self.step()
        finally:
            self._is_initial = False

    def _update_lr(self, epoch: float | None = None) -> None:
        """Increment `last_epoch`, or set it to `epoch`, and set the rates."""
        self._register_groups()
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed_form = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        self._set_rates(closed_form)

    def _set_rates(self, rates: Callable[[], list[Rate]] | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            values = (rates or self.get_lr)()
        finally:
            self._get_lr_called_within_step = False
        for group, rate in zip(self.optimizer.param_groups, values, strict=True):
            set_option(group, "lr", rate)
        self._last_lr: list[Rate] = group_options(self.optimizer, "lr")

    def _register_groups(self) -> None:
        """Register the groups that were added to the optimizer since the last registration."""
        for k, group in enumerate(self.optimizer.param_groups[len(self.base_lrs) :], len(self.base_lrs)):
            self._register_group(k, group)

    def _register_group(self, k: int, group: dict[str, Any]) -> None:
        """Record the initial rate of group `k`."""
        self.base_lrs.append(clone_rate(group.setdefault("initial_lr", clone_rate(group["lr"]))))

    def _restart(self) -> None:
        """Restart the schedule at step 0, from the current rates of the groups."""
        self.last_epoch = -1
        self._initial_step()

    def _step_back(self) -> None:
        """Decrement `last_epoch`, so that the next step repeats its current value."""
        self.last_epoch -= 1

    def state_dict(self) -> dict[str, Any]:
        """Return the attributes, except for the optimizer, functions and stored constructor arguments."""
        return {name: x for name, x in vars(self).items() if name not in _UNSAVED_ATTRS}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the result of `state_dict`. The rates themselves are part of the optimizer's state."""
        vars(self).update({name: x for name, x in state_dict.items() if name not in _UNSAVED_ATTRS})


_UNSAVED_ATTRS = ("optimizer", "lr_lambdas", "_shared", "_phases", "_scale", "_group_options", "_falls")


def clone_rate(rate: Rate) -> Rate:
    """Return `rate`, cloned if it is a tensor."""
    return rate.detach().clone() if isinstance(rate, Tensor) else rate


def group_options(optimizer: Optimizer, name: str) -> list[Rate]:
    """Return the option `name` of each group, cloned if it is a tensor."""
    return [clone_rate(group[name]) for group in optimizer.param_groups]


def set_option(group: dict[str, Any], name: str, value: Rate) -> None:
    """Set the option `name` of a group. If the option is a tensor, fill it in place."""
    if isinstance(group[name], Tensor):
        with no_grad():
            group[name].fill_(float(value))
    else:
        group[name] = value


def warn_deprecated_epoch(scheduler: Any) -> None:
    warnings.warn(
        f"{type(scheduler).__name__}.step(epoch) is deprecated, as in PyTorch: call step() without it.",
        stacklevel=3,
    )


def check_optimizer(optimizer: Any, scheduler: Any) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise DTypeError(f"{type(scheduler).__name__}: expected an Optimizer, but got {describe_type(optimizer)}.")
    return optimizer


def check_positive_int(value: Any, caller: str, name: str) -> int:
    if not isinstance(value, int) or value < 1:
        raise ArgumentError(f"{caller}: expected positive integer {name}, but got {value!r}.")
    return value


def check_fraction(value: float, caller: str, name: str) -> float:
    if not 0 <= value <= 1:
        raise ArgumentError(f"{caller}: expected {name} to be between 0 and 1, but got {value!r}.")
    return value


def value_for_group(value: Any, k: int, optimizer: Optimizer) -> Any:
    """Return item `k` of `value` if it is a list or tuple with one item per group, else `value` itself."""
    count = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        return clone_rate(value)
    if len(value) != count:
        raise ArgumentError(f"expected {count} values, one per param group, but got {len(value)}: {value!r}.")
    return clone_rate(value[k])
