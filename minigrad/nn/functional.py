"""`minigrad.functional` by PyTorch's other name, so that ``import minigrad.nn.functional as F`` works."""

from typing import Any

from minigrad import functional
from minigrad.functional import *  # noqa: F403 -- all of it

__all__ = functional.__all__
__path__: list[str] = []  # no folder: what is imported from here and is not here, `pytorch.modules` answers for


def __getattr__(name: str) -> Any:
    from minigrad.pytorch.modules import absent

    return absent(__name__, name)
