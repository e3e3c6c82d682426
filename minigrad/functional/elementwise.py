"""Functions of each number alone: PyTorch's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["METHODS"]

METHODS: dict[str, Callable[..., Any]] = {}
