"""What PyTorch's programs import from `torch.utils`: `minigrad.utils.data`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["data"]


def __getattr__(name: str) -> Any:
    """`data` loads NumPy, so it comes when it is first asked for."""
    if name in __all__:
        return import_module(f"minigrad.utils.{name}")
    from minigrad.pytorch.modules import absent

    return absent(__name__, name)
