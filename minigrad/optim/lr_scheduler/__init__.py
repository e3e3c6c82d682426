"""Learning rates that change from step to step, with PyTorch's names and numbers.

A scheduler sets ``group["lr"]`` of an optimizer when it is made, and at each `step`, which comes after the optimizer's.
The rate that a group began with is kept in ``group["initial_lr"]``. Below, e counts the steps from 0, `last_epoch`.
Call `step` once an epoch or once a batch: e is in whatever unit that is.
"""

from typing import Any

from minigrad.optim.lr_scheduler import cycles, factors, joined, plateau
from minigrad.optim.lr_scheduler.base import LRScheduler
from minigrad.optim.lr_scheduler.cycles import *  # noqa: F403 -- the files list their names
from minigrad.optim.lr_scheduler.factors import *  # noqa: F403
from minigrad.optim.lr_scheduler.joined import *  # noqa: F403
from minigrad.optim.lr_scheduler.plateau import *  # noqa: F403

__all__ = ["LRScheduler"]
__all__ += cycles.__all__ + factors.__all__ + joined.__all__ + plateau.__all__


def __getattr__(name: str) -> Any:
    from minigrad.pytorch.modules import absent

    return absent(__name__, name)
