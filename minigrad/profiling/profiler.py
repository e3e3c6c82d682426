"""Which kernels run and for how long: `profile` listens to kernel calls, and costs nothing while nobody asks."""

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
        known = {id(owner_of(x)) for x in (*call.inputs, call.out) if hasattr(x, "nbytes")}
        results = call.result if isinstance(call.result, tuple) else (call.result,)
        new = sum(hasattr(x, "nbytes") and id(owner_of(x)) not in known for x in results)
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
        rows = [["kernel", "device", "calls", "ms", "read", "written", "new tensors"]]
        order = sorted(self.rows.items(), key=lambda item: -item[1].seconds)
        for (op, device), row in order:
            numbers = [f"{row.calls:,}", f"{row.seconds * 1e3:,.3f}", size_text(row.read), size_text(row.written)]
            rows.append([op, device, *numbers, f"{row.new:,}"])
        return "\n".join([*table(rows), *moved(self.uploads, self.downloads)])

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
