"""The lock under which kernels are compiled and launched, and what else Taichi would do to other threads."""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Iterator
from threading import RLock, get_ident
from typing import Any

__all__ = ["lock", "muted", "parse"]

lock = RLock()
"""Held while Taichi starts, compiles, launches, or allocates GPU memory: there is one Taichi program a process."""


def parse(source: str, mode: str = "exec") -> Any:
    """Return the tree of a kernel's source.

    Before 3.11.8 and 3.12.2 Python's parser has one recursion depth for all threads: where garbage collection switches
    threads in it, both raise SystemError. Taichi parses under the same lock.
    """
    with lock:
        return ast.parse(source, mode=mode)


class _Muted:
    """A stream that discards what the thread writes that created it."""

    def __init__(self, out: Any) -> None:
        self._out, self._thread = out, get_ident()

    def write(self, text: str) -> Any:
        return len(text) if get_ident() == self._thread else self._out.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """Discard what this thread prints, and only that: Taichi greets when it starts."""
    with contextlib.redirect_stdout(_Muted(sys.stdout)):
        yield
