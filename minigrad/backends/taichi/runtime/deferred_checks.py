"""Deferred error checks in kernels, such as an index or a class out of range.

A kernel cannot raise. It writes 1 to an error slot and continues without access out of bounds. On the device ``cpu``
the slot is read after each launch. On a GPU that would require a synchronisation each time, so the slot is read when
elements are next copied to the host. Indices that the host still has are checked before the launch, so most errors are
raised at their cause.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minigrad.backends.taichi.runtime import array as arrays
from minigrad.backends.taichi.runtime.array import TAICHI, CpuArray, block_of, empty, register_constant
from minigrad.core.dispatch import get_kernels

__all__ = [
    "check_elements",
    "check_index",
    "check_slot",
    "check_slots",
    "clear_errors",
    "error_slot",
    "is_current_slot",
    "separate_slots",
]

MAX_SLOTS = 256


class _ErrorSlots:
    """Error slots of one thread, in one block of memory. `unread` contains the slots not read since a launch."""

    def __init__(self) -> None:
        self.memory: Any = empty((MAX_SLOTS,), np.int32)
        get_kernels("copy")[TAICHI](self.memory, 0, out=self.memory)
        self.all: dict[Any, Any] = {}
        self.unread: dict[Any, Any] = {}

    @property
    def is_alive(self) -> bool:
        buffer = getattr(block_of(self.memory), "buffer", None)
        return self.memory.__class__ is arrays.target.array and (buffer is None or buffer.is_alive)

    def add(self, key: Any) -> Any:
        k = len(self.all)
        slot = self.memory[k : k + 1]
        slot.address = self.memory.address + 4 * k  # views do not store their address
        register_constant(slot)
        self.all[key] = slot
        return slot


class _SlotState(threading.local):
    """Error slots of the current thread. They are replaced as one object, since Ctrl-C may interrupt between any two
    statements."""

    slots: _ErrorSlots | None = None


_slot_state = _SlotState()


def error_slot(kind: type[Exception], text: str, *args: Any) -> Any:
    """Return the slot of an error, an exception of type `kind` with the message `text` formatted with `args`."""
    slots = _slot_state.slots
    if slots is None or not slots.is_alive:
        slots = _slot_state.slots = _ErrorSlots()
    key = (kind, text, args)
    slot = slots.all.get(key)
    if slot is None:
        if len(slots.all) == MAX_SLOTS:
            check_slots()
            slots.all.clear()
        slot = slots.add(key)
    if slot.__class__ is not CpuArray:
        slots.unread[key] = slot
    return slot


def is_current_slot(slot: Any, kind: type[Exception], text: str, *args: Any) -> bool:
    """Return whether `slot` is still the slot of this error, and mark it for reading, as after a launch."""
    return error_slot(kind, text, *args) is slot


def check_slot(slot: Any, kind: type[Exception], text: str, *args: Any) -> None:
    """Raise the error of a slot in host memory if a kernel has reported it."""
    if arrays.current_recorder() is not None:
        arrays.current_recorder().on_check(slot, kind, text, *args)
    if slot.__class__ is CpuArray and slot.item():
        slot.view(np.ndarray).fill(0)
        raise kind(text.format(*args))


def check_slots() -> None:
    """Raise the first error that a kernel has reported in a slot of this thread."""
    slots = _slot_state.slots
    if slots is None or not slots.unread:
        return
    unread, slots.unread = slots.unread, {}
    flags = arrays.target.to_numpy(slots.memory)  # calls `check_slots` again before the copy
    for (kind, text, args), slot in unread.items():
        if flags[(slot.address - slots.memory.address) // 4]:
            _slot_state.slots = None
            raise kind(text.format(*args))


@contextlib.contextmanager
def separate_slots() -> Iterator[None]:
    """Allocate separate error slots for a recorded step, which another thread may replay while this one computes
    eagerly."""
    before, _slot_state.slots = _slot_state.slots, _ErrorSlots()
    try:
        yield
    finally:
        _slot_state.slots = before


def clear_errors() -> None:
    """Discard errors that were reported and not raised."""
    _slot_state.slots = None


def check_index(
    index: Any, size: int, kind: type[Exception], text: str, *args: Any, allowed: int | None = None
) -> None:
    """Raise the error now if the host has the indices and one is outside [0, size) and not `allowed`."""
    check_elements(index, lambda numbers: ((numbers < 0) | (numbers >= size)) & (numbers != allowed), kind, text, *args)


def check_elements(x: Any, is_wrong: Callable[[Any], Any], kind: type[Exception], text: str, *args: Any) -> None:
    """Raise the error now if the host has the elements of a GPU array and `is_wrong` is true for any of these."""
    if x.__class__ is not CpuArray and block_of(x).on_host and is_wrong(x.view(np.ndarray)).any():
        raise kind(text.format(*args))
