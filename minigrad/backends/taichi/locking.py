"""The lock under which kernels are compiled and launched, and under which Python parses their sources."""

from __future__ import annotations

import ast
from threading import RLock
from typing import Any

__all__ = ["lock", "parse"]

lock = RLock()
"""Held while Taichi starts, compiles, launches, or allocates GPU memory: there is one Taichi program a process."""


def parse(source: str, mode: str = "exec") -> Any:
    """Return the tree of a kernel's source.

    Before 3.11.8 and 3.12.2 Python's parser has one recursion depth for all threads: where garbage collection switches
    threads in it, both raise SystemError. Taichi parses under the same lock.
    """
    with lock:
        return ast.parse(source, mode=mode)
