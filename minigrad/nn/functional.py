"""`minigrad.functional` by PyTorch's other name, so that ``import minigrad.nn.functional as F`` works."""

from typing import Any

from minigrad import functional
from minigrad.functional import *  # noqa: F403 -- all of it

__all__ = functional.__all__


def __getattr__(name: str) -> Any:
    from minigrad.pytorch.advice import missing

    more = missing("torch.nn.functional", name)
    raise AttributeError(f"module 'minigrad.nn.functional' has no attribute {name!r}{more}", name=name)
