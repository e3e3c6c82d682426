"""Recording of the kernels that a run of a step launches, with the memory that they use, so that it can be replayed.

The run is executed while it is recorded. Each address that a kernel receives is classified by the memory that contains
it: memory that existed before and persists, an argument, or memory allocated from the pool during the run. If the host
reads or writes elements, a replay could compute other results, so the recording is refused.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minigrad.backends.taichi.runtime import array as arrays
from minigrad.backends.taichi.runtime import driver
from minigrad.backends.taichi.runtime.array import block_of, owned_bytes
from minigrad.backends.taichi.runtime.deferred_checks import check_slot, is_current_slot, separate_slots
from minigrad.backends.taichi.runtime.kernel import Kernel, observe_calls
from minigrad.core.dispatch import get_kernels

__all__ = [
    "ArrayArgument",
    "Launch",
    "LaunchRecording",
    "Region",
    "align",
    "block_of",
    "can_launch",
    "check_slot",
    "is_builtin",
    "is_current_slot",
    "layout_of",
    "record_launches",
]


class Region(NamedTuple):
    """Memory region that kernels use, with its kind of owner, its address in this run and its size in bytes.

    `owner` is the index of the allocation for memory from the pool, and "fixed" for memory that persists. `memory` is
    the object that owns the memory.
    """

    owner: Any
    start: int
    size: int
    memory: Any = None


class ArrayArgument(NamedTuple):
    """Array argument of a kernel, as a byte offset in a memory region and the number of elements and bytes."""

    region: Region
    offset: int
    items: int
    size: int


class Launch(NamedTuple):
    """Launch of a kernel, with its arguments and the calls that it belongs to. Scalar arguments may be symbolic."""

    kernel: Kernel
    args: tuple[Any, ...]
    calls: tuple[int, ...] = (0,)


class LaunchRecording:
    """Recorder of the launches of a run. `regions` are the memory regions that existed before the run."""

    def __init__(self, regions: Iterable[Region]) -> None:
        self.launches: list[Launch] = []
        self.checks: list[tuple[Any, ...]] = []
        """The error slots that kernels may write to, as arguments of `deferred_checks.check_slot`."""
        self.refusal = ""
        """The reason that the run cannot be replayed, or "" if it can."""
        self.allocation_count = 0
        self._call = 0
        self._starts: list[int] = []
        self._regions: list[Region] = []
        for part in regions:
            self._add_region(part)

    def _add_region(self, part: Region) -> None:
        """Add a region, and remove the regions that it overlaps."""
        k = bisect_right(self._starts, part.start)
        if k and self._regions[k - 1].start + self._regions[k - 1].size > part.start:
            k -= 1
        while k < len(self._starts) and self._starts[k] < part.start + part.size:
            if self._regions[k].owner.__class__ is not int:
                self.refuse("arguments overlap in memory")
            del self._starts[k], self._regions[k]
        self._starts.insert(k, part.start)
        self._regions.insert(k, part)

    def region_of(self, address: int) -> Region | None:
        """Return the region that contains an address."""
        k = bisect_right(self._starts, address) - 1
        region = self._regions[k] if k >= 0 else None
        if region is not None and address < region.start + region.size:
            return region
        table = arrays.constant_at(address)
        if table is None:
            return None
        self._add_region(Region("fixed", table.__array_interface__["data"][0], table.nbytes, table))
        return self.region_of(address)

    def on_launch(self, kernel: Kernel, args: tuple[Any, ...]) -> None:
        arguments = []
        for kind, x in zip(kernel.kinds, args, strict=True):
            if kind not in "ahp":
                arguments.append(x)
                continue
            region = self.region_of(x[0])
            if region is None:
                return self.refuse(f"{kernel.name} uses memory that the recording does not track")
            arguments.append(ArrayArgument(region, x[0] - region.start, *x[1:3]))
        self.launches.append(Launch(kernel, tuple(arguments), (self._call,)))
        return None

    def begin_call(self, call: int) -> None:
        """Attribute the next launches to this call."""
        self._call = call

    def on_allocation(self, address: int, size: int) -> None:
        """Record an allocation from the pool."""
        self._add_region(Region(self.allocation_count, address, size))
        self.allocation_count += 1

    def on_check(self, slot: Any, *error: Any) -> None:
        """Record that a kernel may write to an error slot."""
        part = self.region_of(slot.address)
        if part is None or part.owner != "fixed":
            self.refuse("an error slot was allocated during the run")
        if all(slot is not one[0] for one in self.checks):
            self.checks.append((slot, *error))

    def refuse(self, reason: str) -> None:
        """Mark the run as not replayable."""
        self.refusal = self.refusal or reason


def layout_of(array: Any) -> tuple[int, bool]:
    """Return the offset of an array in a cache line, and whether its last cache line may be read entirely. They
    determine which kernels can use the array. The second is always true in a GPU buffer."""
    address = array.address or array.__array_interface__["data"][0]
    if array.__class__ is not arrays.CpuArray:
        return address % arrays.CACHE_LINE, True
    return address % arrays.CACHE_LINE, bool(array.address) or owned_bytes(array) >= array.nbytes


def align(array: Any) -> Any:
    """Return a contiguous array, or a copy if it does not start at a cache line or own its last cache line entirely. On
    a GPU, upload the array and return it."""
    if array.__class__ is not arrays.CpuArray:
        block_of(array).upload()
        return array
    if array.address or layout_of(array) == (0, True) or not array.flags.c_contiguous:
        return array
    copy = arrays.empty(array.shape, array.dtype)
    copy.view(np.ndarray)[...] = array.view(np.ndarray)
    return copy


def is_builtin(op: str, device: str) -> bool:
    """Return whether the kernel of an operation is built in, so that it consists only of launches."""
    return get_kernels(op).get(device) is get_kernels(op).get(arrays.TAICHI)


def can_launch(device: str) -> bool:
    """Return whether recorded launches can run, because Taichi still runs on that device."""
    return driver.arch() == device


@contextlib.contextmanager
def record_launches(device: str, regions: Sequence[tuple[Any, int, int, Any]]) -> Iterator[LaunchRecording]:
    """Return a context that records this thread's launches on `device`. `regions` are existing memory regions."""
    recording = LaunchRecording([Region(*region) for region in regions])
    for _, _, _, memory in regions if device != "cpu" else ():
        if block_of(memory) is not None:
            block_of(memory).upload()
    slots = separate_slots() if device == "cpu" else contextlib.nullcontext()
    with slots, observe_calls(recording.on_launch), arrays.record_with(recording):
        yield recording
    if driver.arch() != device:
        recording.refuse(f"NumPy runs the cpu kernels while Taichi runs on {driver.arch()}")
