"""`minigrad.functional` by PyTorch's other name, so that ``import minigrad.nn.functional as F`` works."""

from minigrad import functional
from minigrad.functional import *  # noqa: F403 -- all of it

__all__ = functional.__all__
