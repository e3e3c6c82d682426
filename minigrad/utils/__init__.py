"""Counterpart of `torch.utils`, with the module `data`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["data"]


def __getattr__(name: str) -> Any:
    """Import `data`, which imports NumPy, on first use."""
    if name in __all__:
        return import_module(f"minigrad.utils.{name}")
    from minigrad.pytorch.import_hooks import resolve_missing

    return resolve_missing(__name__, name)
