"""Deferred error checks in kernels, such as an index or a class out of range.

A kernel cannot raise. It writes 1 to an error slot and continues without access out of bounds. On the device ``cpu``
the slot is read after each launch. On a GPU that would synchronise each time, so the slot is read when elements are
next copied to the host. Indices that the host still has are checked before the launch, so most errors are raised at
their cause.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minigrad.backends.taichi.runtime import array as arrays
from minigrad.backends.taichi.runtime.array import DEVICE, CpuArray, block_of, empty, lasting
from minigrad.core.dispatch import kernels_of

__all__ = ["doubt", "forget", "known", "look_at", "own_slots", "refuse", "settle", "verify"]

SLOTS = 256


class _Slots:
    """The error slots of a thread, in one block of memory: all, and those not read since a launch."""

    def __init__(self) -> None:
        self.memory: Any = empty((SLOTS,), np.int32)
        kernels_of("copy")[DEVICE](self.memory, 0, out=self.memory)
        self.all: dict[Any, Any] = {}
        self.open: dict[Any, Any] = {}

    @property
    def alive(self) -> bool:
        buffer = getattr(block_of(self.memory), "buffer", None)
        return self.memory.__class__ is arrays.target.array and (buffer is None or buffer.alive)

    def added(self, key: Any) -> Any:
        k = len(self.all)
        slot = self.memory[k : k + 1]
        slot.address = self.memory.address + 4 * k  # views do not store their address
        lasting(slot)
        self.all[key] = slot
        return slot


class _Here(threading.local):
    """The slots of this thread, replaced as one object, since Ctrl-C may interrupt between any two statements."""

    slots: _Slots | None = None


_here = _Here()


def doubt(kind: type[Exception], text: str, *args: Any) -> Any:
    """Return the slot for an error: an exception of this `kind`, its `text` formatted with `args`."""
    slots = _here.slots
    if slots is None or not slots.alive:
        slots = _here.slots = _Slots()
    key = (kind, text, args)
    slot = slots.all.get(key)
    if slot is None:
        if len(slots.all) == SLOTS:
            verify()
            slots.all.clear()
        slot = slots.added(key)
    if slot.__class__ is not CpuArray:
        slots.open[key] = slot
    return slot


def known(slot: Any, kind: type[Exception], text: str, *args: Any) -> bool:
    """Return whether `slot` is still the slot of this error, and mark it for reading, as after a launch."""
    return doubt(kind, text, *args) is slot


def settle(slot: Any, kind: type[Exception], text: str, *args: Any) -> None:
    """Raise the error of a slot if a kernel has reported it and the slot can be read."""
    if arrays.recorder() is not None:
        arrays.recorder().settled(slot, kind, text, *args)
    if slot.__class__ is CpuArray and slot.item():
        slot.view(np.ndarray).fill(0)
        raise kind(text.format(*args))


def verify() -> None:
    """Raise the error of any slot of this thread that a kernel has reported."""
    slots = _here.slots
    if slots is None or not slots.open:
        return
    looked_at, slots.open = slots.open, {}
    found = arrays.target.seen(slots.memory)  # calls `verify` again before the copy
    for (kind, text, args), slot in looked_at.items():
        if found[(slot.address - slots.memory.address) // 4]:
            _here.slots = None
            raise kind(text.format(*args))


@contextlib.contextmanager
def own_slots() -> Iterator[None]:
    """Give a recorded step its own error slots: another thread may replay it while this one computes eagerly."""
    before, _here.slots = _here.slots, _Slots()
    try:
        yield
    finally:
        _here.slots = before


def forget() -> None:
    """Discard errors that were reported and not raised."""
    _here.slots = None


def look_at(index: Any, size: int, kind: type[Exception], text: str, *args: Any, but: int | None = None) -> None:
    """Raise at once for an element of `index` outside [0, size), other than `but`, if the host has the elements."""
    refuse(index, lambda numbers: ((numbers < 0) | (numbers >= size)) & (numbers != but), kind, text, *args)


def refuse(x: Any, wrong: Callable[[Any], Any], kind: type[Exception], text: str, *args: Any) -> None:
    """Raise at once for an element of an array on a GPU that is `wrong`, if the host has the elements."""
    if x.__class__ is not CpuArray and block_of(x).below and wrong(x.view(np.ndarray)).any():
        raise kind(text.format(*args))
