"""Alias of `minigrad.functional` under PyTorch's name, so that ``import minigrad.nn.functional as F`` works."""

from typing import Any

from minigrad import functional
from minigrad.functional import *  # noqa: F403 -- an alias

__all__ = functional.__all__
__path__: list[str] = []  # no submodules; `pytorch.import_hooks` handles imports of missing submodules


def __getattr__(name: str) -> Any:
    from minigrad.pytorch.import_hooks import resolve_missing

    return resolve_missing(__name__, name)
