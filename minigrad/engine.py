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
from typing import Any, NamedTuple

from minigrad.backends.limits import size_text
from minigrad.effects import Effects, listen
from minigrad.errors import ArgumentError
from minigrad.kernels import Call, kernels_of
from minigrad.storage import (
    Transfers,
    get_default_device,
    place_of,
    pool_of,
    pools,
    set_default_device,
    transfers,
)

__all__ = [
    "DeviceMemory",
    "MemoryReport",
    "Profile",
    "Ran",
    "empty_cache",
    "get_default_device",
    "memory",
    "profile",
    "set_default_device",
    "set_pool_limit",
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
            rows.append([name, f"{one.tensors:,}", size_text(one.bytes), size_text(one.pooled), size_text(one.peak)])
        return "\n".join([*_table(rows), *_moved(self.uploads, self.downloads)])

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
    from minigrad.tidying import Freed

    tensors: dict[str, int] = defaultdict(int)
    owners: dict[str, dict[int, int]] = defaultdict(dict)
    for x in gc.get_objects():
        if not issubclass(type(x), Tensor):  # isinstance would ask objects what they are
            continue
        array = getattr(x, "_array", None)  # once: another thread may free it; and one that is being made has none yet
        if type(array) not in (Freed, type(None)):
            owner, place = _owner(array), place_of(array)
            tensors[place] += 1
            owners[place][id(owner)] = owner.nbytes
    names = sorted({*tensors, *[name for name in pools() if pool_of(name).peak]})
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


def set_pool_limit(size: int, device: str | None = None) -> None:
    """Let the pool of `device`, or each pool, keep at most `size` bytes of memory that is not in use; 0 keeps nothing.

    At the start that is 256 MiB. What it keeps beyond the new limit goes back to the machine. Raises ArgumentError for
    a size below 0, and for a device that has no pool.
    """
    if not hasattr(size, "__index__") or size < 0:
        raise ArgumentError(f"set_pool_limit: {size!r} is not a number of bytes.")
    if device is not None and pool_of(device) is None:
        raise ArgumentError(f"set_pool_limit: the device {device!r} keeps no memory; {', '.join(pools())} do.")
    for pool in map(pool_of, pools() if device is None else [device]):
        pool.limit = size
        if pool.held > size:
            pool.clear()


# --- profile ---------------------------------------------------------------------------------------------------------


_NONE = Transfers(0, 0)


@dataclass
class _Row:
    """How often a kernel ran on a device, for how many seconds, and how many bytes it read and wrote."""

    calls: int = 0
    seconds: float = 0.0
    read: int = 0
    written: int = 0
    new: int = 0
    """Results in memory of their own: neither views nor written in place."""


class Ran(NamedTuple):
    """One kernel call: when it began and how long it took, in seconds, and how many bytes it read and wrote."""

    op: str
    device: str
    start: float
    seconds: float
    read: int
    written: int
    new: int


@dataclass
class Profile(Effects):
    """What ran inside a block of `profile`: each kernel call in order, and by kernel how often, how long, how much."""

    events: list[Ran] = field(default_factory=list)
    rows: dict[tuple[str, str], _Row] = field(default_factory=lambda: defaultdict(_Row))
    uploads: Transfers = _NONE
    downloads: Transfers = _NONE

    @property
    def new_tensors(self) -> int:
        """How many results took memory of their own."""
        return sum(row.new for row in self.rows.values())

    def kernel_called(self, call: Call) -> None:
        """Count the call."""
        known = {id(_owner(x)) for x in (*call.inputs, call.out) if hasattr(x, "nbytes")}
        results = call.result if isinstance(call.result, tuple) else (call.result,)
        new = sum(hasattr(x, "nbytes") and id(_owner(x)) not in known for x in results)
        start, read, written = time.perf_counter() - call.seconds, _size(call.inputs), _size(call.result)
        by = getattr(kernels_of(call.op).get(call.device), "by", "")  # where another device's kernel computes
        device = f"{call.device} by {by}" if by else call.device
        self.events.append(Ran(call.op, device, start, call.seconds, read, written, new))
        row = self.rows[call.op, device]
        row.calls += 1
        row.seconds += call.seconds
        row.read += read
        row.written += written
        row.new += new

    def __str__(self) -> str:
        table = [["kernel", "device", "calls", "ms", "read", "written", "new tensors"]]
        order = sorted(self.rows.items(), key=lambda item: -item[1].seconds)
        for (op, device), row in order:
            numbers = [f"{row.calls:,}", f"{row.seconds * 1e3:,.3f}", size_text(row.read), size_text(row.written)]
            table.append([op, device, *numbers, f"{row.new:,}"])
        return "\n".join([*_table(table), *_moved(self.uploads, self.downloads)])

    __repr__ = __str__

    def export(self, path: Any) -> None:
        """Write the calls as JSON in Chrome's trace format, to open at https://ui.perfetto.dev or chrome://tracing.

        Each device is a thread there, with a call as a bar from its start to its end.
        """
        devices = sorted({event.device for event in self.events})
        first = min((event.start for event in self.events), default=0.0)
        names = [
            {"name": "thread_name", "ph": "M", "pid": 1, "tid": k, "args": {"name": device}}
            for k, device in enumerate(devices, 1)
        ]
        calls = [
            {
                "name": event.op,
                "cat": "kernel",
                "ph": "X",
                "ts": (event.start - first) * 1e6,
                "dur": event.seconds * 1e6,
                "pid": 1,
                "tid": 1 + devices.index(event.device),
                "args": {"bytes read": event.read, "bytes written": event.written, "new tensors": event.new},
            }
            for event in self.events
        ]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": names + calls, "displayTimeUnit": "ms"}, file)


def _moved(uploads: Transfers, downloads: Transfers) -> list[str]:
    """A line each of what went to a device, and what came back."""
    ways = {"uploads": uploads, "downloads": downloads}
    return [f"{way}: {times:,}, {size_text(size)}" for way, (times, size) in ways.items()]


@contextmanager
def profile() -> Iterator[Profile]:
    """A block in which each kernel call is written down: what, where, how long, bytes read and written, new tensors.

    It listens, so small operations take longer inside; their times are those of the kernels alone.

    >>> import minigrad as mg
    >>> x = mg.ones(3, requires_grad=True)
    >>> with mg.profile() as p:
    ...     (x * x).sum().backward()
    >>> p.rows["sum", x.device].calls
    1
    """
    found, before = Profile(), dict(transfers)
    with listen(found):
        try:
            yield found
        finally:
            found.uploads, found.downloads = (transfers[way].since(before[way]) for way in ("up", "down"))


def _size(x: Any) -> int:
    if isinstance(x, tuple | list):
        return sum(_size(one) for one in x)
    return int(getattr(x, "nbytes", 0))


def _table(rows: list[list[str]]) -> list[str]:
    """Rows of texts as lines; the first column to the left, the others to the right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  ".join(x.ljust(w) if not k else x.rjust(w) for k, (x, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]
