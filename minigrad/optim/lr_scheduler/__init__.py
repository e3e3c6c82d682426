"""Learning rate schedulers, with PyTorch's names and results.

A scheduler sets ``group["lr"]`` of an optimizer at construction and at each `step`. ``group["initial_lr"]`` stores the
initial rate of a group. Call `step` once per epoch or once per batch, after the `step` of the optimizer. Below, e is
the counter of these calls, `last_epoch`, which starts at 0.
"""

from typing import Any

from minigrad.optim.lr_scheduler import composition, cycles, factors, plateau
from minigrad.optim.lr_scheduler.base import LRScheduler
from minigrad.optim.lr_scheduler.composition import *  # noqa: F403
from minigrad.optim.lr_scheduler.cycles import *  # noqa: F403 -- each module defines `__all__`
from minigrad.optim.lr_scheduler.factors import *  # noqa: F403
from minigrad.optim.lr_scheduler.plateau import *  # noqa: F403

__all__ = ["LRScheduler"]
__all__ += cycles.__all__ + factors.__all__ + composition.__all__ + plateau.__all__


def __getattr__(name: str) -> Any:
    from minigrad.pytorch.import_hooks import resolve_missing

    return resolve_missing(__name__, name)
