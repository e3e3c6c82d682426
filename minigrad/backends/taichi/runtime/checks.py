"""What a kernel finds wrong with its numbers: an index out of range, a class that is not there.

A kernel cannot raise. It writes 1 to a slot, and goes on without reading or writing outside. On the device ``cpu`` the
slot is looked at after each launch. On a GPU that would be a wait each time: there it is looked at when numbers next
come to the host. But an index that the host has, still, is looked at before: so most mistakes show where they are.
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
    """The slots of a thread, in one block of memory: all, and those that nobody has looked at since a launch."""

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
        slot.address = self.memory.address + 4 * k  # views do not know theirs
        lasting(slot)
        self.all[key] = slot
        return slot


class _Here(threading.local):
    """The slots of this thread. They are exchanged as one, since Ctrl-C may come between any two lines."""

    slots: _Slots | None = None


_here = _Here()


def doubt(kind: type[Exception], text: str, *args: Any) -> Any:
    """The slot for what is wrong if a kernel says so: an exception of this `kind`, its `text` formatted with `args`."""
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
    """Whether `slot` is still this thread's for what `doubt` asks; then it will be looked at, as after a launch."""
    return doubt(kind, text, *args) is slot


def settle(slot: Any, kind: type[Exception], text: str, *args: Any) -> None:
    """Raise what a slot of `doubt` says, if that is known yet."""
    if arrays.recorder() is not None:
        arrays.recorder().settled(slot, kind, text, *args)
    if slot.__class__ is CpuArray and slot.item():
        slot.view(np.ndarray).fill(0)
        raise kind(text.format(*args))


def verify() -> None:
    """Raise what any slot of this thread says."""
    slots = _here.slots
    if slots is None or not slots.open:
        return
    looked_at, slots.open = slots.open, {}
    found = arrays.target.seen(slots.memory)  # which asks here again, before numbers come down
    for (kind, text, args), slot in looked_at.items():
        if found[(slot.address - slots.memory.address) // 4]:
            _here.slots = None
            raise kind(text.format(*args))


@contextlib.contextmanager
def own_slots() -> Iterator[None]:
    """Give a recorded step error slots of its own: another thread may replay it while this one computes eagerly."""
    before, _here.slots = _here.slots, _Slots()
    try:
        yield
    finally:
        _here.slots = before


def forget() -> None:
    """Let what was found wrong and not been asked for be forgotten."""
    _here.slots = None


def look_at(index: Any, size: int, kind: type[Exception], text: str, *args: Any, but: int | None = None) -> None:
    """Raise at once for a number of `index` that is not from 0 to `size`, nor `but`, if the host knows them."""
    refuse(index, lambda numbers: ((numbers < 0) | (numbers >= size)) & (numbers != but), kind, text, *args)


def refuse(x: Any, wrong: Callable[[Any], Any], kind: type[Exception], text: str, *args: Any) -> None:
    """Raise at once for a number of an array on a GPU that is `wrong`, if the host knows them."""
    if x.__class__ is not CpuArray and block_of(x).below and wrong(x.view(np.ndarray)).any():
        raise kind(text.format(*args))
