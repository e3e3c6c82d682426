"""Recording: which kernels a run of a step launches, on which places in memory, so that they can be launched again.

The run is a real one: what is recorded has been computed. Each address that a kernel gets is told by what it lies in:
memory that was there before and stays, an argument's, or what was taken from the pool meanwhile. Where the host reads
numbers, or writes some into memory, launching the same again is not the same: then the recording says so.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minigrad.backends.taichi.runtime import array as arrays
from minigrad.backends.taichi.runtime import driver
from minigrad.backends.taichi.runtime.array import block_of, room_of
from minigrad.backends.taichi.runtime.checks import known, own_slots, settle
from minigrad.backends.taichi.runtime.kernel import Kernel, calls
from minigrad.core.dispatch import kernels_of

__all__ = [
    "Launch",
    "LaunchRecording",
    "Place",
    "Region",
    "block_of",
    "in_lines",
    "known",
    "launchable",
    "layout_of",
    "ours",
    "recorded",
    "settle",
]


class Region(NamedTuple):
    """A piece of memory: `what` it is of, where it begins in this run, its bytes, and what must live for it to stay.

    What is taken from the pool is numbered. "fixed" memory stays where it is.
    """

    what: Any
    start: int
    size: int
    holds: Any = None


class Place(NamedTuple):
    """Where a kernel gets an array: so many bytes into a part, and its elements and bytes, as it asked."""

    part: Region
    offset: int
    items: int
    size: int


class Launch(NamedTuple):
    """A kernel, and its arguments: places, and numbers, which may be traced; and which calls it is of."""

    kernel: Kernel
    args: tuple[Any, ...]
    calls: tuple[int, ...] = (0,)


class LaunchRecording:
    """What is heard of a run. `known` are parts of memory that were there before it."""

    def __init__(self, known: Iterable[Region]) -> None:
        self.launches: list[Launch] = []
        self.checks: list[tuple[Any, ...]] = []
        """The slots in which a kernel may say that something is wrong: as the arguments of `checks.settle`."""
        self.refused = ""
        """Why the run cannot be had by launching the same again, "" if it can."""
        self.taken = 0
        self._call = 0
        self._starts: list[int] = []
        self._parts: list[Region] = []
        for part in known:
            self._add(part)

    def _add(self, part: Region) -> None:
        """Note a part; what lay there before is no more."""
        k = bisect_right(self._starts, part.start)
        if k and self._parts[k - 1].start + self._parts[k - 1].size > part.start:
            k -= 1
        while k < len(self._starts) and self._starts[k] < part.start + part.size:
            if self._parts[k].what.__class__ is not int:
                self.refuse("arguments that share memory")
            del self._starts[k], self._parts[k]
        self._starts.insert(k, part.start)
        self._parts.insert(k, part)

    def part_of(self, address: int) -> Region | None:
        """The part of memory in which there is an address now."""
        k = bisect_right(self._starts, address) - 1
        found = self._parts[k] if k >= 0 else None
        if found is not None and address < found.start + found.size:
            return found
        table = arrays.lasting_at(address)
        if table is None:
            return None
        self._add(Region("fixed", table.__array_interface__["data"][0], table.nbytes, table))
        return self.part_of(address)

    def launched(self, kernel: Kernel, args: tuple[Any, ...]) -> None:
        """A kernel is about to be launched."""
        found = []
        for kind, x in zip(kernel.kinds, args, strict=True):
            if kind not in "ahp":
                found.append(x)
                continue
            part = self.part_of(x[0])
            if part is None:
                return self.refuse(f"{kernel.name} has memory that nobody else knows")
            found.append(Place(part, x[0] - part.start, *x[1:3]))
        self.launches.append(Launch(kernel, tuple(found), (self._call,)))
        return None

    def begin(self, call: int) -> None:
        """What is heard from now on is of this call."""
        self._call = call

    def took(self, address: int, size: int) -> None:
        """Memory is taken from the pool."""
        self._add(Region(self.taken, address, size))
        self.taken += 1

    def settled(self, slot: Any, *complaint: Any) -> None:
        """A kernel may have written to a slot that something is wrong."""
        part = self.part_of(slot.address)
        if part is None or part.what != "fixed":
            self.refuse("a slot for what is wrong was made in it")
        if all(slot is not one[0] for one in self.checks):
            self.checks.append((slot, *complaint))

    def refuse(self, why: str) -> None:
        """Launching the same again would not be the same."""
        self.refused = self.refused or why


def layout_of(array: Any) -> tuple[int, bool]:
    """What of an array's place in memory decides which kernels can be launched: where in a line it begins, and whether
    the line that it ends in may be read. In a buffer of a GPU that is always so."""
    at = array.address or array.__array_interface__["data"][0]
    if array.__class__ is not arrays.CpuArray:
        return at % arrays.LINE, True
    return at % arrays.LINE, bool(array.address) or room_of(array) >= array.nbytes


def in_lines(array: Any) -> Any:
    """`array`, or a copy that begins where a line does and ends in one of ours, if its numbers lie row by row. On a GPU
    it is itself, and its numbers are there."""
    if array.__class__ is not arrays.CpuArray:
        block_of(array).raise_up()
        return array
    if array.address or layout_of(array) == (0, True) or not array.flags.c_contiguous:
        return array
    copy = arrays.empty(array.shape, array.dtype)
    copy.view(np.ndarray)[...] = array.view(np.ndarray)
    return copy


def ours(op: str, device: str) -> bool:
    """Whether the kernel of an operation is one of these rooms, which does its work by launches, and no reader's."""
    return kernels_of(op).get(device) is kernels_of(op).get(arrays.DEVICE)


def launchable(device: str) -> bool:
    """Whether what was recorded can be launched: Taichi still runs on that device."""
    return driver.arch() == device


@contextlib.contextmanager
def recorded(device: str, memories: Sequence[tuple[Any, int, int, Any]]) -> Iterator[LaunchRecording]:
    """A block in which what this thread computes on `device` is recorded; `memories` are parts known before it."""
    found = LaunchRecording([Region(*one) for one in memories])
    for _, _, _, holds in memories if device != "cpu" else ():
        if block_of(holds) is not None:
            block_of(holds).raise_up()
    slots = own_slots() if device == "cpu" else contextlib.nullcontext()
    with slots, calls(found.launched), arrays.recording_by(found):
        yield found
    if driver.arch() != device:
        found.refuse(f"NumPy computes what is on the cpu, while Taichi runs on {driver.arch()}")
