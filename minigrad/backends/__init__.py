"""Kernels, a module a device. Each imports the registry and its own array library, and nothing else of minigrad.

`cudnn` and `mps` hold what PyTorch's programs set and ask there.
"""

from importlib import import_module
from typing import Any

__all__ = ["cudnn", "mps"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"minigrad.backends.{name}")
    raise AttributeError(f"module 'minigrad.backends' has no attribute {name!r}", name=name)
