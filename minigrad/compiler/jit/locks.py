"""Locks between threads that trace or replay steps.

The same step is run by one thread at a time, and different steps run concurrently, with two exceptions. Only one step
is traced at a time, since tracing changes gradients and makes optimizer options symbolic, which steps may share. While
a replay changes gradients, no other thread may trace or accumulate gradients.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock, get_ident
from typing import Any

from minigrad.core.effects import Effects
from minigrad.core.graph import global_grad_listeners, grad_lock

__all__ = ["GradChangeObserver", "capture_lock", "hold_capture_lock", "wait_for_captures"]

capture_lock = RLock()
"""Lock held during a capture. It is acquired before `grad_lock`, never after."""


class GradChangeObserver(Effects):
    """Observer of gradients that other threads change while this one traces, as eager backward passes do."""

    def __init__(self) -> None:
        self._thread = get_ident()
        self.changed: dict[int, Any] = {}
        """Tensors whose gradient changed, by id."""

    def grad_changed(self, tensor: Any, accumulated: bool) -> None:
        if get_ident() != self._thread:
            self.changed[id(tensor)] = tensor


@contextmanager
def hold_capture_lock() -> Iterator[GradChangeObserver]:
    """Return a context in which no other thread traces a step, or replays one that changes gradients."""
    with capture_lock:
        observer = GradChangeObserver()
        with grad_lock:
            global_grad_listeners.append(observer)
        try:
            yield observer
        finally:
            with grad_lock:
                global_grad_listeners.remove(observer)


@contextmanager
def wait_for_captures(lock: Any) -> Iterator[None]:
    """Return a context that holds the lock of a trace; for `grad_lock`, wait until no other thread is tracing."""
    while True:
        with lock:
            if lock is not grad_lock or not global_grad_listeners:
                yield
                return
        with capture_lock:  # wait until tracing ends
            pass
