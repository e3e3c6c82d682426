"""What memory tensors take, what is kept for later, and what was moved between devices. Counted when it is asked."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from minigrad.backends.limits import size_text
from minigrad.core.errors import ArgumentError
from minigrad.core.storage import (
    Transfers,
    owner_of,
    place_of,
    pool_of,
    pools,
    transfers,
)
from minigrad.profiling.text import moved, table

__all__ = ["DeviceMemory", "MemoryReport", "empty_cache", "memory", "set_pool_limit"]


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
        return "\n".join([*table(rows), *moved(self.uploads, self.downloads)])

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
    from minigrad.core.tensor import Tensor
    from minigrad.profiling.tidying import Freed

    tensors: dict[str, int] = defaultdict(int)
    owners: dict[str, dict[int, int]] = defaultdict(dict)
    for x in gc.get_objects():
        if not issubclass(type(x), Tensor):  # isinstance would ask objects what they are
            continue
        array = getattr(x, "_array", None)  # once: another thread may free it; and one that is being made has none yet
        if type(array) not in (Freed, type(None)):
            owner, place = owner_of(array), place_of(array)
            tensors[place] += 1
            owners[place][id(owner)] = owner.nbytes
    names = sorted({*tensors, *[name for name in pools() if pool_of(name).peak]})
    devices = {}
    for name in names:
        pool = pool_of(name)
        held, peak = (pool.held, pool.peak) if pool else (0, 0)
        devices[name] = DeviceMemory(tensors[name], sum(owners[name].values()), held, peak)
    return MemoryReport(devices, transfers["up"], transfers["down"])


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
