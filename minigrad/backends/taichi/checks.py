"""What a kernel finds wrong with its numbers: an index out of range, a class that is not there.

A kernel cannot raise. It writes 1 to a slot, and goes on without reading or writing outside. On the device ``cpu`` the
slot is looked at after each launch. On a GPU that would be a wait each time: there it is looked at when numbers next
come to the host. But an index that the host has, still, is looked at before: so most mistakes show where they are.
"""

from __future__ import annotations

import threading
from typing import Any, cast

import numpy as np

from minigrad.backends.taichi import array as arrays
from minigrad.backends.taichi.array import DEVICE, CpuArray, block_of, empty
from minigrad.kernels import kernels_of

__all__ = ["doubt", "forget", "look_at", "settle", "verify"]

SLOTS = 256


class _Here(threading.local):
    """The slots of this thread."""

    memory: Any = None
    slots: dict[Any, Any]
    open: dict[Any, Any]  # those of kernels that were launched, and not looked at


_here = _Here()


def doubt(kind: type[Exception], text: str, *args: Any) -> Any:
    """The slot for what is wrong if a kernel says so: an exception of this `kind`, its `text` formatted with `args`."""
    if _here.memory is None or _here.memory.__class__ is not arrays.target.array or not _alive(_here.memory):
        _here.memory = empty((SLOTS,), np.int32)
        kernels_of("copy")[DEVICE](_here.memory, 0, out=_here.memory)
        _here.slots, _here.open = {}, {}
    key = (kind, text, args)
    slot = _here.slots.get(key)
    if slot is None:
        if len(_here.slots) == SLOTS:
            verify()
            _here.slots.clear()
        k = len(_here.slots)
        slot = _here.slots[key] = cast(Any, _here.memory)[k : k + 1]
        slot.address = _here.memory.address + 4 * k  # views do not know theirs
    if slot.__class__ is not CpuArray:
        _here.open[key] = slot
    return slot


def _alive(memory: Any) -> bool:
    buffer = getattr(block_of(memory), "buffer", None)
    return buffer is None or buffer.alive


def settle(slot: Any, kind: type[Exception], text: str, *args: Any) -> None:
    """Raise what a slot of `doubt` says, if that is known yet."""
    if slot.__class__ is CpuArray and slot.item():
        slot.view(np.ndarray).fill(0)
        raise kind(text.format(*args))


def verify() -> None:
    """Raise what any slot of this thread says."""
    if _here.memory is None or not _here.open:
        return
    keys, _here.open = list(_here.open), {}
    found = arrays.target.seen(_here.memory)
    for (kind, text, args), slot in [(key, _here.slots[key]) for key in keys]:
        if found[(slot.address - _here.memory.address) // 4]:
            _here.memory = None
            raise kind(text.format(*args))


def forget() -> None:
    """Let what was found wrong and not been asked for be forgotten."""
    _here.memory = None


def look_at(index: Any, size: int, kind: type[Exception], text: str, *args: Any, but: int | None = None) -> None:
    """Raise at once for a number of `index` that is not from 0 to `size`, nor `but`, if the host knows them."""
    if index.__class__ is CpuArray or not block_of(index).below:
        return
    numbers = index.view(np.ndarray)
    if (((numbers < 0) | (numbers >= size)) & (numbers != but)).any():
        raise kind(text.format(*args))
