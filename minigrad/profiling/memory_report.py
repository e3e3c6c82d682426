"""Reports of the memory of live tensors, of memory pools, and of transfers between devices, computed on demand."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from minigrad.backends.limits import format_size
from minigrad.core.errors import ArgumentError
from minigrad.core.storage import (
    Transfers,
    device_of,
    get_pool,
    memory_owner,
    pooled_devices,
    transfers,
)
from minigrad.profiling.formatting import format_table, format_transfers

__all__ = ["DeviceMemory", "MemoryReport", "empty_cache", "memory", "set_pool_limit"]


@dataclass(frozen=True)
class DeviceMemory:
    """Memory use of one device. `bytes` counts memory that several tensors share only once."""

    tensors: int
    bytes: int
    pooled: int
    """Number of free bytes in the memory pool."""
    peak: int
    """Peak number of bytes in use; 0 for a device without a pool."""


@dataclass(frozen=True)
class MemoryReport:
    """The result of `memory`: the memory of each device, and the transfers between devices."""

    devices: Mapping[str, DeviceMemory]
    uploads: Transfers
    downloads: Transfers

    def __getitem__(self, device: str) -> DeviceMemory:
        return self.devices.get(device, DeviceMemory(0, 0, 0, 0))

    def __str__(self) -> str:
        rows = [["device", "tensors", "bytes", "pooled", "peak"]]
        for name, device_memory in self.devices.items():
            rows.append(
                [
                    name,
                    f"{device_memory.tensors:,}",
                    format_size(device_memory.bytes),
                    format_size(device_memory.pooled),
                    format_size(device_memory.peak),
                ]
            )
        return "\n".join([*format_table(rows), *format_transfers(self.uploads, self.downloads)])

    __repr__ = __str__


def memory() -> MemoryReport:
    """Return the memory of live tensors and of the pools per device, and the transfers between devices.

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
        if not issubclass(type(x), Tensor):  # isinstance could call user-defined code.
            continue
        array = getattr(x, "_array", None)  # Read once, since another thread may free it; None during construction.
        if type(array) not in (Freed, type(None)):
            owner, device_name = memory_owner(array), device_of(array)
            tensors[device_name] += 1
            owners[device_name][id(owner)] = owner.nbytes
    names = sorted({*tensors, *[name for name in pooled_devices() if get_pool(name).peak_bytes]})
    devices = {}
    for name in names:
        pool = get_pool(name)
        free_bytes, peak = (pool.free_bytes, pool.peak_bytes) if pool else (0, 0)
        devices[name] = DeviceMemory(tensors[name], sum(owners[name].values()), free_bytes, peak)
    return MemoryReport(devices, transfers["up"], transfers["down"])


def empty_cache() -> None:
    """Release the free memory of all pools to the system."""
    for name in pooled_devices():
        get_pool(name).clear()


def set_pool_limit(size: int, device: str | None = None) -> None:
    """Limit the free memory in the pool of `device`, or of each pool, to `size` bytes; 0 disables caching.

    The initial limit is 256 MiB. Memory beyond the new limit is released to the system. Raises ArgumentError for a
    negative size, and for a device without a pool.
    """
    if not hasattr(size, "__index__") or size < 0:
        raise ArgumentError(f"set_pool_limit: expected a nonnegative number of bytes, but got {size!r}.")
    if device is not None and get_pool(device) is None:
        others = f"; {', '.join(pooled_devices())} have one." if pooled_devices() else ", nor has any other."
        raise ArgumentError(f"set_pool_limit: the device {device!r} has no memory pool{others}")
    for pool in map(get_pool, pooled_devices() if device is None else [device]):
        pool.limit = size
        if pool.free_bytes > size:
            pool.clear()
