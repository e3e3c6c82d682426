"""Storage: the memory that holds a tensor's elements. A tensor and its views share one `Storage`.

Each device registers an `Allocator` and the type of its arrays, so that the type of an array identifies its device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple

from minigrad.core.dispatch import dispatch, kernel
from minigrad.core.errors import DeviceError, source_line, user_frame
from minigrad.core.modes import modes

__all__ = [
    "DEVICES",
    "DEVICE_BY_ARRAY_TYPE",
    "Allocator",
    "Storage",
    "Transfers",
    "add_transfer",
    "check_device",
    "common_device",
    "copy_array",
    "device",
    "device_of",
    "get_allocator",
    "get_default_device",
    "get_pool",
    "is_available",
    "memory_owner",
    "owns_memory",
    "pooled_devices",
    "register_device",
    "set_default_device",
    "to_numpy",
    "transfers",
]


class Allocator(NamedTuple):
    """How a device allocates arrays."""

    empty: Callable[[tuple[int, ...], Any], Any]
    """Return an uninitialised array of a shape and a NumPy dtype."""
    full: Callable[[tuple[int, ...], Any, Any], Any]
    """Return an array of a shape and a NumPy dtype filled with a scalar."""
    share: Callable[[Any], Any]
    """Return an array that shares the memory of a NumPy array, or a copy if it cannot."""
    copy: Callable[[Any], Any]
    """Return an array with a copy of a NumPy array's elements."""
    to_numpy: Callable[[Any], Any]
    """Return an array as a NumPy array, without a copy if possible."""
    owner_type: type
    """Type of `array.base` for an array that owns its memory."""
    pool: Any = None
    """The caching memory pool, with `free_bytes`, their `limit`, `used_bytes`, `peak_bytes` and `clear()`."""
    is_available: Callable[[], bool] = lambda: True
    """Return whether the device is available on this machine."""


DEVICES: list[str] = []
"""The registered devices, available on this machine or not."""
DEVICE_BY_ARRAY_TYPE: dict[type, str] = {}
"""The device of each array type."""
_default = ["cpu" if find_spec("taichi") else "numpy"]  # the device that "cpu" denotes, then the default if it was set
_allocators: dict[str, Allocator] = {}


def register_device(name: str, array_type: type, allocator: Allocator) -> None:
    """Register `name` as a device for tensors whose arrays have the type `array_type`."""
    DEVICE_BY_ARRAY_TYPE[array_type] = name
    _allocators[name] = allocator
    kernel("move", name)(_move_kernel)
    if name not in DEVICES:
        DEVICES.append(name)


def _move_kernel(a: Any, *, device: str, source: str) -> Any:
    return _allocators[device].copy(_allocators[DEVICE_BY_ARRAY_TYPE[a.__class__]].to_numpy(a))


def pooled_devices() -> list[str]:
    """Return the devices with a caching memory pool."""
    return [name for name, memory in _allocators.items() if memory.pool is not None]


def get_pool(name: str) -> Any:
    """Return the memory pool of a device; None if it has none or is not registered."""
    return _allocators[name].pool if name in _allocators else None


def owns_memory(array: Any) -> bool:
    """Return whether an array owns its memory rather than being a view."""
    return array.base.__class__ is _allocators[DEVICE_BY_ARRAY_TYPE[array.__class__]].owner_type


def set_default_device(device: str | None) -> None:
    """Set the device on which tensors are created by default; None restores the initial default."""
    named = device if device in DEVICES else check_device(device, "set_default_device")
    _default[1:] = [] if device is None else [named]


def get_default_device() -> device:
    """Return the device on which tensors are created without ``device=``."""
    return device(_default[-1])


def is_available(name: str) -> bool:
    """Return whether the device `name` is available on this machine."""
    return name in DEVICES and _allocators[name].is_available()


def get_allocator(name: str) -> Allocator:
    """Return the allocator of the device `name`."""
    allocator = _allocators[name]
    for listener in modes.memory_requested:
        allocator = listener.memory_requested(allocator)
    return allocator


def device_of(array: Any) -> str:
    """Return the device of an array."""
    return DEVICE_BY_ARRAY_TYPE[array.__class__]


def memory_owner(array: Any) -> Any:
    """Return the array that owns the memory of `array`, which may be a view."""
    while getattr(array, "base", None) is not None and hasattr(array.base, "nbytes"):
        array = array.base
    return array


def common_device(arrays: Iterable[Any], func_name: str) -> str:
    """Return the common device of `arrays`, ignoring other objects. Raises DeviceError for several devices."""
    first_device = None
    for x in arrays:
        device_name = DEVICE_BY_ARRAY_TYPE.get(x.__class__)
        if device_name is None or device_name == first_device:
            continue
        if first_device is not None:
            raise DeviceError(
                f"{func_name}: expected all tensors to be on the same device, but found at least two devices, "
                f"{first_device!r} and {device_name!r}.\n  Move one of them: x.to({first_device!r})."
            )
        first_device = device_name
    return first_device or _default[-1]


def to_numpy(array: Any) -> Any:
    """Return an array on any device as a NumPy array, which must not be modified."""
    for listener in modes.values_read:
        listener.values_read()
    return _allocators[DEVICE_BY_ARRAY_TYPE[array.__class__]].to_numpy(array)


class Transfers(NamedTuple):
    """The number of transfers and their total size in bytes."""

    count: int  # type: ignore[assignment]
    bytes: int

    def since(self, earlier: Transfers) -> Transfers:
        """Return the transfers since `earlier`."""
        return Transfers(self.count - earlier.count, self.bytes - earlier.bytes)


transfers = {"up": Transfers(0, 0), "down": Transfers(0, 0)}
"""The transfers from NumPy's memory to other devices ("up") and back ("down")."""


def add_transfer(direction: str, nbytes: int) -> None:
    transfers[direction] = Transfers(transfers[direction].count + 1, transfers[direction].bytes + nbytes)


class device(str):
    """The name of a device, with its `type`, as in ``mg.device("cuda:0")``. The device need not exist.

    "cpu" runs kernels that Taichi compiles for the processor. It is the default unless ``device=`` or
    ``mg.set_default_device`` selects another. "numpy" is the reference implementation in NumPy, available in the same
    process. Where Taichi is not installed, it is the default and "cpu" is an alias of it, so that programs which name
    "cpu" run. ``x.to(device)`` moves a tensor; operands must be on one device. ``minigrad ops`` lists the kernels.

    >>> device("cuda", 1), device("cuda:1").type, device("cpu:0") == device("cpu")
    ('cuda:1', 'cuda', True)
    """

    __slots__ = ()

    def __new__(cls, type: str, index: int | None = None) -> device:
        name = type if index is None else f"{type}:{index}"
        if name in ("cpu", "cpu:0"):
            name = _default[0]
        return super().__new__(cls, name)

    @property
    def type(self) -> str:
        """The device type, such as "cuda"."""
        return self.partition(":")[0]


class Storage:
    """The memory of a tensor and its views, with a version counter.

    `array` covers the entire memory; its first element is element 0 of the storage. `version` counts the in-place
    writes, so that a saved tensor can be checked. `rebase_count` counts the writes that replaced the graph node of the
    base, after which views recompute their nodes. `has_unrecorded_write` is true if the last write was not recorded in
    the graph. `last_write_count` is the value of `writes`, the global write counter, after the last write to this
    storage. A graph node stores the counter at its creation, and thus detects a modified operand.
    """

    __slots__ = (
        "array",
        "has_unrecorded_write",
        "last_write_count",
        "last_writer",
        "location",
        "rebase_count",
        "version",
    )

    writes: ClassVar[int] = 0

    def __init__(self, array: Any) -> None:
        self.array = array
        self.version = self.last_write_count = 0
        self.rebase_count = 0
        self.has_unrecorded_write = False
        self.last_writer = ""
        self.location: tuple[str, int] | None = None

    @property
    def device(self) -> device:
        """The device of the memory."""
        return device(device_of(self.array))

    def mark_written(self, writer: str, recorded: bool = False, location: tuple[str, int] | None = None) -> None:
        """Increment the version for a write by the operation `writer` at `location`, by default the user's line."""
        self.version += 1
        Storage.writes = self.last_write_count = Storage.writes + 1
        self.has_unrecorded_write = not recorded
        self.last_writer = writer
        self.location = location or user_frame()
        for listener in modes.storage_written:
            listener.storage_written(self)

    @property
    def last_write(self) -> str:
        """The operation that last wrote to this storage, and its source line."""
        return self.last_writer if self.location is None else f"{self.last_writer}, at {source_line(*self.location)}"


def check_device(name: Any, func_name: str) -> device:
    """Return the device `name`, or the default device if None. Raises DeviceError for an unknown device."""
    if name is None:
        return get_default_device()
    if isinstance(name, str) and device(name.removesuffix(":0")) in DEVICES:
        return device(name.removesuffix(":0"))
    raise DeviceError(
        f"{func_name}: device {str(name)!r} is not available; the default device is {_default[-1]!r}.\n"
        f"  Omit device=, or write device={_default[-1]!r}."
    )


def copy_array(array: Any) -> Any:
    """Return a contiguous copy of an array."""
    return dispatch("contiguous", device_of(array), (array,))
