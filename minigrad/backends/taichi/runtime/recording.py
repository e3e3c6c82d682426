"""Recording: the kernels that a run of a step launches, with the memory that they use, so that it can be replayed.

Recording executes the run. Each address that a kernel receives is classified by the memory that contains it: memory
that existed before and persists, an argument, or memory allocated from the pool meanwhile. If the host reads or writes
elements, a replay would give other results: then the recording is refused.
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
    """A memory region: `what` it belongs to, its address in this run, its bytes, and its owner.

    `what` is an index for memory from the pool, and "fixed" for memory that persists.
    """

    what: Any
    start: int
    size: int
    holds: Any = None


class Place(NamedTuple):
    """An array argument of a kernel: a byte offset in a region, and the number of elements and bytes passed."""

    part: Region
    offset: int
    items: int
    size: int


class Launch(NamedTuple):
    """A kernel with its arguments, places and scalars, which may be traced; and the calls that it belongs to."""

    kernel: Kernel
    args: tuple[Any, ...]
    calls: tuple[int, ...] = (0,)


class LaunchRecording:
    """A recorded run. `known` are memory regions that existed before it."""

    def __init__(self, known: Iterable[Region]) -> None:
        self.launches: list[Launch] = []
        self.checks: list[tuple[Any, ...]] = []
        """The error slots that kernels may write to, as arguments of `checks.settle`."""
        self.refused = ""
        """Why the run cannot be replayed, "" if it can."""
        self.taken = 0
        self._call = 0
        self._starts: list[int] = []
        self._parts: list[Region] = []
        for part in known:
            self._add(part)

    def _add(self, part: Region) -> None:
        """Add a region, and remove the regions that it overlaps."""
        k = bisect_right(self._starts, part.start)
        if k and self._parts[k - 1].start + self._parts[k - 1].size > part.start:
            k -= 1
        while k < len(self._starts) and self._starts[k] < part.start + part.size:
            if self._parts[k].what.__class__ is not int:
                self.refuse("arguments overlap in memory")
            del self._starts[k], self._parts[k]
        self._starts.insert(k, part.start)
        self._parts.insert(k, part)

    def part_of(self, address: int) -> Region | None:
        """Return the region that contains an address."""
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
        """Record a kernel launch."""
        found = []
        for kind, x in zip(kernel.kinds, args, strict=True):
            if kind not in "ahp":
                found.append(x)
                continue
            part = self.part_of(x[0])
            if part is None:
                return self.refuse(f"{kernel.name} uses memory that the recording does not track")
            found.append(Place(part, x[0] - part.start, *x[1:3]))
        self.launches.append(Launch(kernel, tuple(found), (self._call,)))
        return None

    def begin(self, call: int) -> None:
        """Attribute the next launches to this call."""
        self._call = call

    def took(self, address: int, size: int) -> None:
        """Record an allocation from the pool."""
        self._add(Region(self.taken, address, size))
        self.taken += 1

    def settled(self, slot: Any, *complaint: Any) -> None:
        """Record that a kernel may write to an error slot."""
        part = self.part_of(slot.address)
        if part is None or part.what != "fixed":
            self.refuse("an error slot was allocated during the run")
        if all(slot is not one[0] for one in self.checks):
            self.checks.append((slot, *complaint))

    def refuse(self, why: str) -> None:
        """Mark the run as not replayable."""
        self.refused = self.refused or why


def layout_of(array: Any) -> tuple[int, bool]:
    """Return what decides which kernels can use an array: its offset in a cache line, and whether its last cache line
    may be read entirely, as always in a GPU's buffer."""
    at = array.address or array.__array_interface__["data"][0]
    if array.__class__ is not arrays.CpuArray:
        return at % arrays.LINE, True
    return at % arrays.LINE, bool(array.address) or room_of(array) >= array.nbytes


def in_lines(array: Any) -> Any:
    """Return a contiguous array, or a copy of it, that starts at a cache line and owns its last one. On a GPU return
    the array itself, uploaded."""
    if array.__class__ is not arrays.CpuArray:
        block_of(array).raise_up()
        return array
    if array.address or layout_of(array) == (0, True) or not array.flags.c_contiguous:
        return array
    copy = arrays.empty(array.shape, array.dtype)
    copy.view(np.ndarray)[...] = array.view(np.ndarray)
    return copy


def ours(op: str, device: str) -> bool:
    """Return whether the kernel of an operation is built in, so that it consists of launches alone."""
    return kernels_of(op).get(device) is kernels_of(op).get(arrays.DEVICE)


def launchable(device: str) -> bool:
    """Return whether recorded launches can run, because Taichi still runs on that device."""
    return driver.arch() == device


@contextlib.contextmanager
def recorded(device: str, memories: Sequence[tuple[Any, int, int, Any]]) -> Iterator[LaunchRecording]:
    """Return a context that records this thread's launches on `device`; `memories` are regions known before it."""
    found = LaunchRecording([Region(*one) for one in memories])
    for _, _, _, holds in memories if device != "cpu" else ():
        if block_of(holds) is not None:
            block_of(holds).raise_up()
    slots = own_slots() if device == "cpu" else contextlib.nullcontext()
    with slots, calls(found.launched), arrays.recording_by(found):
        yield found
    if driver.arch() != device:
        found.refuse(f"NumPy runs the cpu kernels while Taichi runs on {driver.arch()}")
