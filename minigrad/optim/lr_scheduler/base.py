"""What schedulers share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from minigrad.errors import ArgumentError, DTypeError, a_kind
from minigrad.optim.optimizer import Optimizer

__all__ = [
    "LRScheduler",
    "checked",
    "each",
    "share",
    "whole",
]


class LRScheduler:
    """What all schedulers share. A subclass says by `get_lr` which rates belong to `last_epoch`, one for each group.

    `last_epoch` is -1 for a new run; another goes on from there, with an optimizer whose groups know their initial_lr.
    Raises DTypeError where `optimizer` is none, ArgumentError where a group lacks its initial_lr.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = checked(optimizer, self)
        for k, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise ArgumentError(
                    f"{type(self).__name__}: last_epoch={last_epoch} goes on with a run, but group {k} has no "
                    "initial_lr.\n  Load the optimizer's state_dict first."
                )
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch: float = last_epoch + 1
        self._told = False
        self._set()

    def get_lr(self) -> list[float]:
        """The rate of each group at `last_epoch`."""
        raise NotImplementedError(f"{type(self).__name__}.get_lr: return a rate for each of optimizer.param_groups.")

    def get_last_lr(self) -> list[float]:
        """The rates that were last set, one for each group."""
        return self._last_lr

    def step(self) -> None:
        """Set the rates of the next e. Warns where the optimizer has not stepped yet: the first rate would be lost."""
        if not self._told:
            self._told = True
            if not self.optimizer.steps and type(self.optimizer).step is Optimizer.step:
                warnings.warn(
                    f"{type(self).__name__}.step() came before optimizer.step(), so the first rate was never used.\n"
                    "  Call optimizer.step() first, then the scheduler's.",
                    stacklevel=2,
                )
        self.last_epoch += 1
        try:
            self._set()
        except Exception:
            self.last_epoch -= 1  # a step that is refused was not taken
            raise

    def _set(self) -> None:
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = rate
        self._last_lr: list[float] = [group["lr"] for group in self.optimizer.param_groups]

    def _restart(self) -> None:
        """Begin at e = 0, with the rates that the groups began with."""
        for group, rate in zip(self.optimizer.param_groups, self.base_lrs, strict=True):
            group["lr"] = rate
        self.last_epoch = 0
        self._set()

    def state_dict(self) -> dict[str, Any]:
        """What it knows, but for its optimizer, for functions, and for what it was made with in another form."""
        return {name: x for name, x in vars(self).items() if name not in _MADE}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned; the rates themselves are in the optimizer's."""
        vars(self).update({name: x for name, x in state_dict.items() if name not in _MADE})


_MADE = ("optimizer", "lr_lambdas", "_phases", "_scale")


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


def each(value: Any, groups: Sequence[Any]) -> list[float]:
    found = list(value) if isinstance(value, list | tuple) else [value] * len(groups)
    if len(found) != len(groups):
        raise ArgumentError(f"there are {len(found)} numbers, {value!r}, for {len(groups)} groups of parameters.")
    return found
