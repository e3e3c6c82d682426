"""What other threads wait for while one captures or replays a step.

Threads run one step one after the other, different steps at once, with two exceptions. One step is captured at a time,
since a capture changes gradients and makes the options of optimizers symbolic, which steps may share. And a replay that
changes gradients excludes captures, and accumulation by other threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock, get_ident
from typing import Any

from minigrad.core.effects import Effects
from minigrad.core.graph import grad_listeners, grad_lock

__all__ = ["Elsewhere", "between_captures", "capture_lock", "exclusively"]

capture_lock = RLock()
"""Held during a capture. Acquired before `grad_lock`, never after."""


class Elsewhere(Effects):
    """Notes the tensors whose gradient another thread than this one changes: eager passes do so during a capture."""

    def __init__(self) -> None:
        self._thread = get_ident()
        self.changed: dict[int, Any] = {}
        """By identity."""

    def grad_changed(self, tensor: Any, accumulated: bool) -> None:
        if get_ident() != self._thread:
            self.changed[id(tensor)] = tensor


@contextmanager
def exclusively() -> Iterator[Elsewhere]:
    """A block in which no other thread captures a step, or replays one that changes gradients."""
    with capture_lock:
        elsewhere = Elsewhere()
        with grad_lock:
            grad_listeners.append(elsewhere)
        try:
            yield elsewhere
        finally:
            with grad_lock:
                grad_listeners.remove(elsewhere)


@contextmanager
def between_captures(lock: Any) -> Iterator[None]:
    """A block that holds the lock of a trace, entered while no other thread captures a step if that is `grad_lock`."""
    while True:
        with lock:
            if lock is not grad_lock or not grad_listeners:
                yield
                return
        with capture_lock:  # wait for the capture
            pass
