"""What schedulers share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from minigrad.core.errors import ArgumentError, DTypeError, a_kind
from minigrad.core.grad_mode import no_grad
from minigrad.core.tensor import Tensor
from minigrad.optim.optimizer import Optimizer

__all__ = [
    "LRScheduler",
    "Rate",
    "at",
    "checked",
    "copied",
    "deprecated",
    "of_groups",
    "put",
    "share",
    "whole",
]

Rate = Any  # a float, or a tensor of one


class LRScheduler:
    """Base class of schedulers. A subclass computes in `get_lr` the rates at `last_epoch`, one for each group.

    `last_epoch` is -1 for a new run. To resume one, load the optimizer's state, in which groups have their initial_lr,
    and give the `last_epoch` of the scheduler that was saved, less 1. Groups that are added to the optimizer later are
    scheduled from the next step on.

    Raises DTypeError where `optimizer` is none, ArgumentError where a group lacks its initial_lr.
    """

    _is_initial = False  # whether the step is that of the constructor
    _get_lr_called_within_step = False
    _step_count = 0
    _takes_epoch = False  # whether step(epoch) is not deprecated

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = checked(optimizer, self)
        for k, group in enumerate(optimizer.param_groups):
            if last_epoch != -1 and "initial_lr" not in group:
                raise ArgumentError(
                    f"{type(self).__name__}: last_epoch={last_epoch} goes on with a run, but group {k} has no "
                    "initial_lr.\n  Load the optimizer's state_dict first."
                )
        self.base_lrs: list[Rate] = []
        self.last_epoch: float = last_epoch
        self._told, self._resumed = False, last_epoch != -1
        self._enter_groups()
        self._resumed = False
        self._initial_step()

    def get_lr(self) -> list[Rate]:
        """Compute the rate of each group at `last_epoch`."""
        raise NotImplementedError(f"{type(self).__name__}.get_lr: return a rate for each of optimizer.param_groups.")

    def get_last_lr(self) -> list[Rate]:
        """Return the rates that were last set, one for each group."""
        return self._last_lr

    def step(self, epoch: float | None = None) -> None:
        """Set the rates of the next e. Warns where the optimizer has not stepped yet: the first rate would be lost.

        `epoch`, which PyTorch deprecates, sets e itself, to the closed form of the schedule where it has one.
        """
        self._check_order()
        self._step_count += 1
        if epoch is not None and not self._takes_epoch:
            deprecated(self)
        before = self.last_epoch
        try:
            self._update_lr(epoch)
        except Exception:
            self.last_epoch, self._step_count = before, self._step_count - 1  # a step that is refused was not taken
            raise

    def _check_order(self) -> None:
        if self._told or self._is_initial:
            return
        self._told = True
        if not self.optimizer.steps and type(self.optimizer).step is Optimizer.step:
            warnings.warn(
                f"{type(self).__name__}.step() came before optimizer.step(), so the first rate was never used.\n"
                "  Call optimizer.step() first, then the scheduler's.",
                stacklevel=3,
            )

    def _initial_step(self) -> None:
        """Set the rates of the first e."""
        self._step_count, self._is_initial = 0, True
        try:
            self.step()
        finally:
            self._is_initial = False

    def _update_lr(self, epoch: float | None = None) -> None:
        """Set the rates of the next e, or of `epoch`."""
        self._enter_groups()
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        self._set(closed)

    def _set(self, rates: Callable[[], list[Rate]] | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            values = (rates or self.get_lr)()
        finally:
            self._get_lr_called_within_step = False
        for group, rate in zip(self.optimizer.param_groups, values, strict=True):
            put(group, "lr", rate)
        self._last_lr: list[Rate] = of_groups(self.optimizer, "lr")

    def _enter_groups(self) -> None:
        """Enter the groups of the optimizer that are not known yet."""
        for k, group in enumerate(self.optimizer.param_groups[len(self.base_lrs) :], len(self.base_lrs)):
            self._enter(k, group)

    def _enter(self, k: int, group: dict[str, Any]) -> None:
        """Note the rate from which group `k` starts."""
        self.base_lrs.append(copied(group.setdefault("initial_lr", copied(group["lr"]))))

    def _restart(self) -> None:
        """Begin at e = 0, from the rates that the groups have now."""
        self.last_epoch = -1
        self._initial_step()

    def _undo(self) -> None:
        """Go back by one e, so that the next step sets this one again."""
        self.last_epoch -= 1

    def state_dict(self) -> dict[str, Any]:
        """Return what it knows, but for its optimizer, for functions, and for what it was made with in another form."""
        return {name: x for name, x in vars(self).items() if name not in _MADE}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Resume from what `state_dict` returned; the rates themselves are in the optimizer's."""
        vars(self).update({name: x for name, x in state_dict.items() if name not in _MADE})


_MADE = ("optimizer", "lr_lambdas", "_shared", "_phases", "_scale", "_given", "_falls")


def copied(rate: Rate) -> Rate:
    """A rate that does not change with another: a tensor is copied."""
    return rate.detach().clone() if isinstance(rate, Tensor) else rate


def of_groups(optimizer: Optimizer, name: str) -> list[Rate]:
    """An option of each group, as copies."""
    return [copied(group[name]) for group in optimizer.param_groups]


def put(group: dict[str, Any], name: str, value: Rate) -> None:
    """Set an option of a group; one that is a tensor stays that tensor."""
    if isinstance(group[name], Tensor):
        with no_grad():
            group[name].fill_(float(value))
    else:
        group[name] = value


def deprecated(asking: Any) -> None:
    warnings.warn(
        f"{type(asking).__name__}.step(epoch) is deprecated, as in PyTorch: call step() once for each epoch.",
        stacklevel=3,
    )


def checked(optimizer: Any, asking: Any) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise DTypeError(f"{type(asking).__name__}: it schedules an optimizer, not {a_kind(optimizer)}.")
    return optimizer


def whole(value: Any, asked: str, name: str) -> int:
    if not isinstance(value, int) or value < 1:
        raise ArgumentError(f"{asked}: {name}={value!r}, and it is a whole number of steps, 1 or more.")
    return value


def share(value: float, asked: str, name: str) -> float:
    if not 0 <= value <= 1:
        raise ArgumentError(f"{asked}: {name}={value!r}, and it is a share, from 0 to 1.")
    return value


def at(value: Any, k: int, optimizer: Optimizer) -> Any:
    """The number of group `k`: `value` itself, or the one of a list, which has one for each group."""
    count = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        return copied(value)
    if len(value) != count:
        raise ArgumentError(f"there are {len(value)} numbers, {value!r}, for {count} groups of parameters.")
    return copied(value[k])
