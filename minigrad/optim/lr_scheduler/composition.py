"""Schedulers that combine other schedulers, in sequence or simultaneously."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from minigrad.core.errors import ArgumentError
from minigrad.optim.lr_scheduler.base import LRScheduler, check_optimizer, group_options, set_option
from minigrad.optim.lr_scheduler.plateau import ReduceLROnPlateau
from minigrad.optim.optimizer import Optimizer

__all__ = [
    "ChainedScheduler",
    "SequentialLR",
]


class SequentialLR(LRScheduler):
    """Runs schedulers in sequence: scheduler k starts, from its own step 0, at step ``milestones[k - 1]``.

    Raises ArgumentError unless there is one more scheduler than milestones, and all schedulers belong to `optimizer`.

    >>> import minigrad as mg
    >>> from minigrad.optim import lr_scheduler as schedules
    >>> optimizer = mg.optim.SGD([mg.ones(1, requires_grad=True)], lr=1.0)
    >>> parts = [schedules.LinearLR(optimizer, 0.5, total_iters=2), schedules.CosineAnnealingLR(optimizer, T_max=4)]
    >>> scheduler, rates = SequentialLR(optimizer, parts, milestones=[2]), []
    >>> for _ in range(5):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> [round(rate, 2) for rate in rates]
    [0.5, 0.75, 1.0, 0.85, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        self._schedulers, self._milestones = (
            _check_same_optimizer(schedulers, optimizer, "SequentialLR"),
            list(milestones),
        )
        if len(self._milestones) != len(self._schedulers) - 1:
            raise ArgumentError(
                "SequentialLR: expected number of schedulers to be one more than the number of milestones, but got "
                f"{len(self._schedulers)} schedulers and {len(self._milestones)} milestones."
            )
        self.optimizer, self.last_epoch = optimizer, last_epoch + 1
        self._reset_warnings()
        for group in optimizer.param_groups:
            set_option(group, "lr", group["initial_lr"])
        self._step_back()
        self._schedulers[0]._initial_step()
        self._last_lr = group_options(optimizer, "lr")

    def _reset_warnings(self) -> None:
        self._told, self._step_count = False, 1
        for scheduler in self._schedulers:
            scheduler._told = True  # Only the outer scheduler issues warnings.

    def step(self, epoch: float | None = None) -> None:
        """Increment `last_epoch` and set the rates. Raises ArgumentError if `epoch` is given."""
        if epoch is not None:
            raise ArgumentError(
                f"{type(self).__name__}.step: epoch is not supported: each scheduler has its own counter.\n"
                "  Write step()."
            )
        self._check_order()
        self._step_count += 1
        self._advance()
        self._last_lr = group_options(self.optimizer, "lr")

    def _advance(self) -> None:
        self.last_epoch += 1
        k = bisect_right(self._milestones, self.last_epoch)
        try:
            if k and self._milestones[k - 1] == self.last_epoch:
                self._schedulers[k]._update_lr(0)
            else:
                self._schedulers[k].step()
        except Exception:
            self.last_epoch -= 1
            raise

    def _update_lr(self, epoch: float | None = None) -> None:
        """Restart this scheduler inside another `SequentialLR`. PyTorch does not support such nesting."""
        for group in self.optimizer.param_groups:
            set_option(group, "lr", group["initial_lr"])
        self._restart()
        self._last_lr = group_options(self.optimizer, "lr")

    def _restart(self) -> None:
        self.last_epoch = 0
        self._schedulers[0]._restart()

    def _step_back(self) -> None:
        for scheduler in self._schedulers:
            scheduler._step_back()

    def state_dict(self) -> dict[str, Any]:
        """Return the attributes of this scheduler and the state of each combined scheduler."""
        return {**super().state_dict(), "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the result of `state_dict`."""
        for scheduler, scheduler_state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(scheduler_state)
        super().load_state_dict({name: x for name, x in state_dict.items() if name != "_schedulers"})


class ChainedScheduler(SequentialLR):
    """Steps all schedulers of an optimizer together, in the given order, so that their factors multiply."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        target = optimizer or (schedulers[0].optimizer if len(schedulers) else None)
        self._schedulers = _check_same_optimizer(schedulers, check_optimizer(target, self), "ChainedScheduler")
        self.optimizer = self._schedulers[0].optimizer
        self._reset_warnings()
        self._last_lr = group_options(self.optimizer, "lr")

    def _advance(self) -> None:
        for scheduler in self._schedulers:
            scheduler.step()

    def _restart(self) -> None:
        for scheduler in self._schedulers:
            scheduler._restart()


def _check_same_optimizer(schedulers: Sequence[Any], optimizer: Optimizer, caller: str) -> list[LRScheduler]:
    for scheduler in schedulers:
        if (
            not isinstance(scheduler, LRScheduler)
            or isinstance(scheduler, ReduceLROnPlateau)
            or scheduler.optimizer is not optimizer
        ):
            raise ArgumentError(
                f"{caller}: expected all schedulers to belong to the same optimizer and to step without metrics, but "
                f"got {type(scheduler).__name__}."
            )
    return list(schedulers)
