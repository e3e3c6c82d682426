"""Kernel profiler, a listener to kernel calls that has no overhead while inactive."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from minigrad.backends.limits import format_size
from minigrad.core.dispatch import Call, get_kernels
from minigrad.core.effects import Effects, listen
from minigrad.core.storage import (
    Transfers,
    memory_owner,
    transfers,
)
from minigrad.profiling.formatting import format_table, format_transfers

__all__ = ["KernelCall", "Profile", "profile"]


_NO_TRANSFERS = Transfers(0, 0)


@dataclass
class _KernelTotals:
    """Total calls, seconds, and bytes read and written by a kernel on a device."""

    calls: int = 0
    seconds: float = 0.0
    read: int = 0
    written: int = 0
    new: int = 0
    """Number of results in newly allocated memory, which excludes views and in-place results."""


class KernelCall(NamedTuple):
    """A kernel call, with its start and duration in seconds, and the bytes it read and wrote."""

    op: str
    device: str
    start: float
    seconds: float
    read: int
    written: int
    new: int


@dataclass
class Profile(Effects):
    """The kernel calls inside a `profile` block, in order, and their totals per kernel."""

    events: list[KernelCall] = field(default_factory=list)
    rows: dict[tuple[str, str], _KernelTotals] = field(default_factory=lambda: defaultdict(_KernelTotals))
    uploads: Transfers = _NO_TRANSFERS
    downloads: Transfers = _NO_TRANSFERS

    @property
    def new_tensors(self) -> int:
        """The number of results in newly allocated memory."""
        return sum(row.new for row in self.rows.values())

    def kernel_called(self, call: Call) -> None:
        """Record a kernel call."""
        input_ids = {id(memory_owner(x)) for x in (*call.inputs, call.out) if hasattr(x, "nbytes")}
        results = call.result if isinstance(call.result, tuple) else (call.result,)
        new = sum(hasattr(x, "nbytes") and id(memory_owner(x)) not in input_ids for x in results)
        start, read, written = time.perf_counter() - call.seconds, _nbytes(call.inputs), _nbytes(call.result)
        # Name of the device whose kernel computes the result, if it is not the device of the call.
        computing_device = getattr(get_kernels(call.op).get(call.device), "by", "")
        device = f"{call.device} by {computing_device}" if computing_device else call.device
        self.events.append(KernelCall(call.op, device, start, call.seconds, read, written, new))
        row = self.rows[call.op, device]
        row.calls += 1
        row.seconds += call.seconds
        row.read += read
        row.written += written
        row.new += new

    def __str__(self) -> str:
        rows = [["kernel", "device", "calls", "ms", "read", "written", "new tensors"]]
        order = sorted(self.rows.items(), key=lambda item: -item[1].seconds)
        for (op, device), row in order:
            columns = [f"{row.calls:,}", f"{row.seconds * 1e3:,.3f}", format_size(row.read), format_size(row.written)]
            rows.append([op, device, *columns, f"{row.new:,}"])
        return "\n".join([*format_table(rows), *format_transfers(self.uploads, self.downloads)])

    __repr__ = __str__

    def export(self, path: Any) -> None:
        """Write the calls to `path` in Chrome's trace format, for https://ui.perfetto.dev or chrome://tracing.

        Each device is shown as a thread, and each call as a bar.
        """
        devices = sorted({event.device for event in self.events})
        start = min((event.start for event in self.events), default=0.0)
        names = [
            {"name": "thread_name", "ph": "M", "pid": 1, "tid": k, "args": {"name": device}}
            for k, device in enumerate(devices, 1)
        ]
        calls = [
            {
                "name": event.op,
                "cat": "kernel",
                "ph": "X",
                "ts": (event.start - start) * 1e6,
                "dur": event.seconds * 1e6,
                "pid": 1,
                "tid": 1 + devices.index(event.device),
                "args": {"bytes read": event.read, "bytes written": event.written, "new tensors": event.new},
            }
            for event in self.events
        ]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": names + calls, "displayTimeUnit": "ms"}, file)


@contextmanager
def profile() -> Iterator[Profile]:
    """Context manager that profiles kernel calls: op, device, duration, bytes read and written, new tensors.

    The listener adds overhead to small operations; the reported times are those of the kernels only.

    >>> import minigrad as mg
    >>> x = mg.ones(3, requires_grad=True)
    >>> with mg.profile() as p:
    ...     (x * x).sum().backward()
    >>> p.rows["sum", x.device].calls
    1
    """
    result, transfers_before = Profile(), dict(transfers)
    with listen(result):
        try:
            yield result
        finally:
            result.uploads, result.downloads = (
                transfers[direction].since(transfers_before[direction]) for direction in ("up", "down")
            )


def _nbytes(x: Any) -> int:
    if isinstance(x, tuple | list):
        return sum(_nbytes(item) for item in x)
    return int(getattr(x, "nbytes", 0))
