"""What the process is doing: which kernels run and for how long, what memory they take, what was moved where.

`profile` listens where every computation passes; `memory` counts what there is when it is asked, so that neither costs
anything while nobody asks.
"""

from __future__ import annotations

import gc
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from minigrad.kernels import Call, tap
from minigrad.storage import (
    Transfers,
    get_default_device,
    pool_of,
    pools,
    set_default_device,
    transfers,
)

__all__ = [
    "DeviceMemory",
    "MemoryReport",
    "Profile",
    "empty_cache",
    "get_default_device",
    "memory",
    "profile",
    "set_default_device",
]


# --- memory ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeviceMemory:
    """What tensors take on one device: how many live, their bytes (shared ones once), and what its pool holds."""

    tensors: int
    bytes: int
    pooled: int
    """Bytes that are free, and kept for the next tensor."""
    peak: int
    """The most bytes that were in use at once, of a device with a pool; else 0."""


@dataclass(frozen=True)
class MemoryReport:
    """What `memory` found: by device, and what was moved between devices since the start."""

    devices: Mapping[str, DeviceMemory]
    uploads: Transfers
    downloads: Transfers

    def __getitem__(self, device: str) -> DeviceMemory:
        return self.devices.get(device, DeviceMemory(0, 0, 0, 0))

    def __str__(self) -> str:
        rows = [["device", "tensors", "bytes", "pooled", "peak"]]
        for name, one in self.devices.items():
            rows.append([name, f"{one.tensors:,}", _bytes(one.bytes), _bytes(one.pooled), _bytes(one.peak)])
        moved = [f"{way}: {times:,}, {_bytes(size)}" for way, (times, size) in self._moved()]
        return "\n".join([*_table(rows), *moved])

    def _moved(self) -> list[tuple[str, Transfers]]:
        return [("uploads", self.uploads), ("downloads", self.downloads)]

    __repr__ = __str__


def memory() -> MemoryReport:
    """What live tensors take by device, what the pools hold, and how often numbers were moved to and from devices.

    >>> import minigrad as mg
    >>> x = mg.zeros(1000)
    >>> before = mg.memory()[x.device]
    >>> view = x[10:]
    >>> after = mg.memory()[x.device]
    >>> after.tensors - before.tensors, after.bytes - before.bytes
    (1, 0)
    """
    from minigrad._tensor import Tensor

    tensors: dict[str, int] = defaultdict(int)
    owners: dict[str, dict[int, int]] = defaultdict(dict)
    for x in gc.get_objects():
        if issubclass(type(x), Tensor):  # isinstance would ask objects of others what they are
            tensors[x.device] += 1
            owner = _owner(x._array)
            owners[x.device][id(owner)] = owner.nbytes
    names = sorted({*tensors, *pools()})
    devices = {}
    for name in names:
        pool = pool_of(name)
        held, peak = (pool.held, pool.peak) if pool else (0, 0)
        devices[name] = DeviceMemory(tensors[name], sum(owners[name].values()), held, peak)
    return MemoryReport(devices, transfers["up"], transfers["down"])


def _owner(array: Any) -> Any:
    """The array that has the memory which `array` shows."""
    while getattr(array, "base", None) is not None and hasattr(array.base, "nbytes"):
        array = array.base
    return array


def empty_cache() -> None:
    """Give back to the machine what the pools keep for later."""
    for name in pools():
        pool_of(name).clear()


# --- profile ---------------------------------------------------------------------------------------------------------


_NONE = Transfers(0, 0)


@dataclass
class _Row:
    calls: int = 0
    seconds: float = 0.0
    read: int = 0
    written: int = 0


@dataclass
class Profile:
    """What ran inside a block of `profile`: each kernel call in order, and by kernel how often, how long, how much."""

    events: list[tuple[str, str, float, float]] = field(default_factory=list)
    """Operation, device, when it began and how long it took, in seconds."""
    rows: dict[tuple[str, str], _Row] = field(default_factory=lambda: defaultdict(_Row))
    uploads: Transfers = _NONE
    downloads: Transfers = _NONE

    def _hear(self, call: Call) -> None:
        row = self.rows[call.op, call.device]
        row.calls += 1
        row.seconds += call.seconds
        row.read += _size(call.inputs)
        row.written += _size(call.result)
        self.events.append((call.op, call.device, time.perf_counter() - call.seconds, call.seconds))

    def __str__(self) -> str:
        table = [["kernel", "device", "calls", "ms", "read", "written"]]
        order = sorted(self.rows.items(), key=lambda item: -item[1].seconds)
        for (op, device), row in order:
            numbers = [f"{row.calls:,}", f"{row.seconds * 1e3:.3f}", _bytes(row.read), _bytes(row.written)]
            table.append([op, device, *numbers])
        return "\n".join([*_table(table), f"uploads: {self.uploads[0]:,}", f"downloads: {self.downloads[0]:,}"])

    __repr__ = __str__

    def export(self, path: Any) -> None:
        """Write the calls as JSON in Chrome's trace format, for chrome://tracing or Perfetto."""
        first = self.events[0][2] if self.events else 0.0
        events = [
            {"name": op, "cat": device, "ph": "X", "ts": (at - first) * 1e6, "dur": took * 1e6, "pid": 0, "tid": device}
            for op, device, at, took in self.events
        ]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, file)


@contextmanager
def profile() -> Iterator[Profile]:
    """A block in which each kernel call is written down: what, where, how long, how many bytes it read and wrote.

    It listens, so small operations take longer inside; their times are those of the kernels alone.

    >>> import minigrad as mg
    >>> x = mg.ones(3, requires_grad=True)
    >>> with mg.profile() as p:
    ...     (x * x).sum().backward()
    >>> p.rows["sum", x.device].calls
    1
    """
    found, before = Profile(), dict(transfers)
    with tap(found._hear):
        try:
            yield found
        finally:
            found.uploads, found.downloads = (transfers[way].since(before[way]) for way in ("up", "down"))


def _size(x: Any) -> int:
    if isinstance(x, tuple | list):
        return sum(_size(one) for one in x)
    return int(getattr(x, "nbytes", 0))


def _bytes(count: int) -> str:
    """A size as people say it.

    >>> _bytes(512), _bytes(1536), _bytes(3 << 20)
    ('512 B', '1.5 KiB', '3.0 MiB')
    """
    size, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


def _table(rows: list[list[str]]) -> list[str]:
    """Rows of texts as lines; the first column to the left, the others to the right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  ".join(x.ljust(w) if not k else x.rjust(w) for k, (x, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]
