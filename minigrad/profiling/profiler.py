"""Kernel profiler, based on a listener to kernel calls; it has no overhead while inactive."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from minigrad.backends.limits import size_text
from minigrad.core.dispatch import Call, kernels_of
from minigrad.core.effects import Effects, listen
from minigrad.core.storage import (
    Transfers,
    owner_of,
    transfers,
)
from minigrad.profiling.text import moved, table

__all__ = ["Profile", "Ran", "profile"]


_NONE = Transfers(0, 0)


@dataclass
class _Row:
    """The totals of a kernel on a device: calls, seconds, and bytes read and written."""

    calls: int = 0
    seconds: float = 0.0
    read: int = 0
    written: int = 0
    new: int = 0
    """Results in newly allocated memory: neither views nor in-place."""


class Ran(NamedTuple):
    """One kernel call: start and duration in seconds, and bytes read and written."""

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

    events: list[Ran] = field(default_factory=list)
    rows: dict[tuple[str, str], _Row] = field(default_factory=lambda: defaultdict(_Row))
    uploads: Transfers = _NONE
    downloads: Transfers = _NONE

    @property
    def new_tensors(self) -> int:
        """The number of results in newly allocated memory."""
        return sum(row.new for row in self.rows.values())

    def kernel_called(self, call: Call) -> None:
        """Count the call."""
        known = {id(owner_of(x)) for x in (*call.inputs, call.out) if hasattr(x, "nbytes")}
        results = call.result if isinstance(call.result, tuple) else (call.result,)
        new = sum(hasattr(x, "nbytes") and id(owner_of(x)) not in known for x in results)
        start, read, written = time.perf_counter() - call.seconds, _size(call.inputs), _size(call.result)
        by = getattr(kernels_of(call.op).get(call.device), "by", "")  # if another device's kernel computes
        device = f"{call.device} by {by}" if by else call.device
        self.events.append(Ran(call.op, device, start, call.seconds, read, written, new))
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
            numbers = [f"{row.calls:,}", f"{row.seconds * 1e3:,.3f}", size_text(row.read), size_text(row.written)]
            rows.append([op, device, *numbers, f"{row.new:,}"])
        return "\n".join([*table(rows), *moved(self.uploads, self.downloads)])

    __repr__ = __str__

    def export(self, path: Any) -> None:
        """Write the calls to `path` in Chrome's trace format, for https://ui.perfetto.dev or chrome://tracing.

        Each device is shown as a thread, and each call as a bar.
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
