"""Kernels, one module per device. Each imports only the registry and its own array library.

`cudnn` and `mps` provide the switches and queries of `torch.backends`.
"""

from importlib import import_module
from typing import Any

__all__ = ["cudnn", "mps"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"minigrad.backends.{name}")
    raise AttributeError(f"module 'minigrad.backends' has no attribute {name!r}", name=name)
