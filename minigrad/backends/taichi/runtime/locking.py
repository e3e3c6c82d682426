"""The lock for compiling and launching kernels, and protection of other threads from Taichi's side effects."""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Iterator
from threading import RLock, get_ident
from typing import Any

__all__ = ["lock", "mute_stdout", "parse"]

lock = RLock()
"""Lock held while Taichi starts, compiles, launches or allocates GPU memory, since there is one Taichi program per
process."""


def parse(source: str, mode: str = "exec") -> Any:
    """Return the syntax tree of a kernel's source.

    Before 3.11.8 and 3.12.2 Python's parser shares its recursion depth between threads: if garbage collection switches
    threads inside it, both raise SystemError. Taichi parses under the same lock.
    """
    with lock:
        return ast.parse(source, mode=mode)


class _Muted:
    """A stream that discards what its creating thread writes."""

    def __init__(self, out: Any) -> None:
        self._out, self._thread = out, get_ident()

    def write(self, text: str) -> Any:
        return len(text) if get_ident() == self._thread else self._out.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


@contextlib.contextmanager
def mute_stdout() -> Iterator[None]:
    """Return a context that discards what this thread prints, since Taichi prints a banner when it starts."""
    with contextlib.redirect_stdout(_Muted(sys.stdout)):
        yield
