"""Storage: the memory that holds a tensor's elements. A tensor and its views share one `Storage`.

Each device registers an `Allocator` and the type of its arrays, so that the type of an array identifies its device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple

from minigrad.core.dispatch import dispatch, kernel
from minigrad.core.errors import DeviceError, caller, source_line
from minigrad.core.modes import modes

__all__ = [
    "DEVICES",
    "PLACES",
    "Allocator",
    "Storage",
    "Transfers",
    "add_memory",
    "check_device",
    "common_place",
    "copy_of",
    "count_transfer",
    "device",
    "get_default_device",
    "host",
    "is_there",
    "memory",
    "owner_of",
    "owns",
    "place_of",
    "pool_of",
    "pools",
    "set_default_device",
    "transfers",
]


class Allocator(NamedTuple):
    """How a device allocates arrays."""

    empty: Callable[[tuple[int, ...], Any], Any]
    """Return an uninitialised array of a shape and a NumPy dtype."""
    full: Callable[[tuple[int, ...], Any, Any], Any]
    """Return an array of a shape and a NumPy dtype filled with a scalar."""
    shared: Callable[[Any], Any]
    """Return an array that shares the memory of a NumPy array, or a copy if it cannot."""
    copied: Callable[[Any], Any]
    """Return an array with a copy of a NumPy array's elements."""
    host: Callable[[Any], Any]
    """Return an array as a NumPy array, without a copy if possible."""
    owner: type
    """Type of `array.base` when the array owns its memory."""
    pool: Any = None
    """The caching pool: bytes `held` and their `limit`, bytes `used` and their `peak`, and `clear()`."""
    there: Callable[[], bool] = lambda: True
    """Return whether the device is available on this machine."""


DEVICES: list[str] = []
"""The registered devices, available on this machine or not."""
PLACES: dict[type, str] = {}
"""The device of each array type."""
_default = ["cpu" if find_spec("taichi") else "numpy"]  # the meaning of "cpu", then the default device if one was set
_memories: dict[str, Allocator] = {}


def add_memory(name: str, array: type, memory: Allocator) -> None:
    """Register `name` as a device for tensors whose arrays have the type `array`."""
    PLACES[array] = name
    _memories[name] = memory
    kernel("move", name)(_moved)
    if name not in DEVICES:
        DEVICES.append(name)


def _moved(a: Any, *, device: str, source: str) -> Any:
    return _memories[device].copied(_memories[PLACES[a.__class__]].host(a))


def pools() -> list[str]:
    """Return the devices with a caching memory pool."""
    return [name for name, memory in _memories.items() if memory.pool is not None]


def pool_of(name: str) -> Any:
    """Return the memory pool of a device; None if it has none or is not registered."""
    return _memories[name].pool if name in _memories else None


def owns(array: Any) -> bool:
    """Return whether an array owns its memory rather than being a view."""
    return array.base.__class__ is _memories[PLACES[array.__class__]].owner


def set_default_device(device: str | None) -> None:
    """Set the device on which tensors are created by default; None restores the initial default."""
    named = device if device in DEVICES else check_device(device, "set_default_device")
    _default[1:] = [] if device is None else [named]


def get_default_device() -> device:
    """Return the device on which tensors are created without ``device=``."""
    return device(_default[-1])


def is_there(name: str) -> bool:
    """Return whether the device `name` is available on this machine."""
    return name in DEVICES and _memories[name].there()


def memory(name: str) -> Allocator:
    """Return the allocator of the device `name`."""
    found = _memories[name]
    for listener in modes.memory_requested:
        found = listener.memory_requested(found)
    return found


def place_of(array: Any) -> str:
    """Return the device of an array."""
    return PLACES[array.__class__]


def owner_of(array: Any) -> Any:
    """Return the array that owns the memory of `array`."""
    while getattr(array, "base", None) is not None and hasattr(array.base, "nbytes"):
        array = array.base
    return array


def common_place(arrays: Iterable[Any], asked: str) -> str:
    """Return the device of the arrays among `arrays`. Raises DeviceError if there are several."""
    found = None
    for x in arrays:
        place = PLACES.get(x.__class__)
        if place is None or place == found:
            continue
        if found is not None:
            raise DeviceError(
                f"{asked}: expected all tensors to be on the same device, but found at least two devices, {found!r} "
                f"and {place!r}.\n  Move one of them: x.to({found!r})."
            )
        found = place
    return found or _default[-1]


def host(array: Any) -> Any:
    """Return an array on any device as a NumPy array, which must not be written."""
    for listener in modes.values_read:
        listener.values_read()
    return _memories[PLACES[array.__class__]].host(array)


class Transfers(NamedTuple):
    """The number of transfers and their total size in bytes."""

    times: int
    bytes: int

    def since(self, before: Transfers) -> Transfers:
        """Return the transfers since `before`."""
        return Transfers(self.times - before.times, self.bytes - before.bytes)


transfers = {"up": Transfers(0, 0), "down": Transfers(0, 0)}
"""The transfers from NumPy's memory to other devices ("up") and back ("down")."""


def count_transfer(way: str, size: int) -> None:
    transfers[way] = Transfers(transfers[way].times + 1, transfers[way].bytes + size)


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

    `array` spans the memory; its first element is element 0 of the storage. `version` counts the in-place writes, so
    that a saved tensor can be checked. `rebased` counts the writes that changed the graph node of these elements, so
    that views recompute theirs. `unrecorded` is true if the last write was not recorded in the graph. `latest` is the
    value of `writes`, the global write counter, after the last write here: a graph node stores the counter at its
    creation and so detects a modified operand.
    """

    __slots__ = ("array", "latest", "place", "rebased", "unrecorded", "version", "writer")

    writes: ClassVar[int] = 0

    def __init__(self, array: Any) -> None:
        self.array = array
        self.version = self.latest = 0
        self.rebased = 0
        self.unrecorded = False
        self.writer = ""
        self.place: tuple[str, int] | None = None

    @property
    def device(self) -> device:
        """The device of the memory."""
        return device(place_of(self.array))

    def written(self, writer: str, recorded: bool = False, place: tuple[str, int] | None = None) -> None:
        """Increment the version after a write by the operation `writer` at `place`, by default the user's line."""
        self.version += 1
        Storage.writes = self.latest = Storage.writes + 1
        self.unrecorded = not recorded
        self.writer = writer
        self.place = place or caller()
        for listener in modes.storage_written:
            listener.storage_written(self)

    @property
    def last_write(self) -> str:
        """The operation that wrote last, and its source line."""
        return self.writer if self.place is None else f"{self.writer}, at {source_line(*self.place)}"


def check_device(name: Any, asked: str) -> device:
    """Return `name` as a device; the default if None. Raises DeviceError for an unknown device."""
    if name is None:
        return get_default_device()
    if isinstance(name, str) and device(name.removesuffix(":0")) in DEVICES:
        return device(name.removesuffix(":0"))
    raise DeviceError(
        f"{asked}: device {str(name)!r} is not available; the default device is {_default[-1]!r}.\n"
        f"  Omit device=, or write device={_default[-1]!r}."
    )


def copy_of(array: Any) -> Any:
    """Return a contiguous copy of an array."""
    return dispatch("contiguous", place_of(array), (array,))
