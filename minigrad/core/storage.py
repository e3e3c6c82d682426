"""Storage: where the bytes of a tensor live. Tensors that are views of one another share one.

A device with arrays says here how it makes them (`Allocator`), and by what type of array they are known: so an array
knows its device, and a tensor asks its array.
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
    """How a device makes arrays and gives them back."""

    empty: Callable[[tuple[int, ...], Any], Any]
    """An array of a shape and a type of NumPy's, with whatever numbers."""
    full: Callable[[tuple[int, ...], Any, Any], Any]
    """The same in which all numbers are one."""
    shared: Callable[[Any], Any]
    """An array in the memory of one of NumPy's, or a copy where that cannot be."""
    copied: Callable[[Any], Any]
    """An array with the numbers of one of NumPy's, which nobody else has."""
    host: Callable[[Any], Any]
    """The numbers of an array as one of NumPy's, in the same memory where that can be."""
    owner: type
    """What the `base` of an array is that shares its memory with no other."""
    pool: Any = None
    """Memory kept for the next array: bytes `held`, their `limit`; bytes `used` and their `peak`; `clear()`."""
    there: Callable[[], bool] = lambda: True
    """Whether the machine has the device."""


DEVICES: list[str] = []
"""The devices that tensors can be on, where the machine has them."""
PLACES: dict[type, str] = {}
"""The devices by the type of their arrays."""
_default = ["cpu" if find_spec("taichi") else "numpy"]  # what "cpu" means, then where they are made if that was chosen
_memories: dict[str, Allocator] = {}


def add_memory(name: str, array: type, memory: Allocator) -> None:
    """Make `name` a device for tensors, whose arrays are of the type `array`."""
    PLACES[array] = name
    _memories[name] = memory
    kernel("move", name)(_moved)
    if name not in DEVICES:
        DEVICES.append(name)


def _moved(a: Any, *, device: str, source: str) -> Any:
    return _memories[device].copied(_memories[PLACES[a.__class__]].host(a))


def pools() -> list[str]:
    """The devices that keep memory which is not in use for the next tensor."""
    return [name for name, memory in _memories.items() if memory.pool is not None]


def pool_of(name: str) -> Any:
    """The pool of a device, None if it has none or is not there."""
    return _memories[name].pool if name in _memories else None


def owns(array: Any) -> bool:
    """Whether an array was not made as a view of another."""
    return array.base.__class__ is _memories[PLACES[array.__class__]].owner


def set_default_device(device: str | None) -> None:
    """Make tensors on `device` where nothing else is said; None goes back to the device of the start."""
    named = device if device in DEVICES else check_device(device, "set_default_device")
    _default[1:] = [] if device is None else [named]


def get_default_device() -> device:
    """Where tensors are made unless `device=` says otherwise."""
    return device(_default[-1])


def is_there(name: str) -> bool:
    """Whether tensors can be on the device `name` on this machine."""
    return name in DEVICES and _memories[name].there()


def memory(name: str) -> Allocator:
    """How the device `name` makes arrays."""
    found = _memories[name]
    for listener in modes.memory_requested:
        found = listener.memory_requested(found)
    return found


def place_of(array: Any) -> str:
    """The device that an array is on."""
    return PLACES[array.__class__]


def owner_of(array: Any) -> Any:
    """The array that has the memory which `array` shows."""
    while getattr(array, "base", None) is not None and hasattr(array.base, "nbytes"):
        array = array.base
    return array


def common_place(arrays: Iterable[Any], asked: str) -> str:
    """The one device that arrays are on, among them other things. Raises DeviceError if there are several."""
    found = None
    for x in arrays:
        place = PLACES.get(x.__class__)
        if place is None or place == found:
            continue
        if found is not None:
            raise DeviceError(
                f"{asked}: one tensor is on the device {found!r}, another on {place!r}.\n"
                f"  Bring them together: x.to({found!r})."
            )
        found = place
    return found or _default[-1]


def host(array: Any) -> Any:
    """The numbers of an array, on whatever device, as one of NumPy's; they are only to be read."""
    for listener in modes.values_read:
        listener.values_read()
    return _memories[PLACES[array.__class__]].host(array)


class Transfers(NamedTuple):
    """How often numbers were moved, and how many bytes in all."""

    times: int
    bytes: int

    def since(self, before: Transfers) -> Transfers:
        """What was moved after `before` was counted."""
        return Transfers(self.times - before.times, self.bytes - before.bytes)


transfers = {"up": Transfers(0, 0), "down": Transfers(0, 0)}
"""What was moved from NumPy's memory to another device, and back, since the start."""


def count_transfer(way: str, size: int) -> None:
    transfers[way] = Transfers(transfers[way].times + 1, transfers[way].bytes + size)


class device(str):
    """The name of a device, with its `type`, as in ``mg.device("cuda:0")``. It need not be there.

    "cpu" are kernels that Taichi compiles for the processor; tensors are made there unless `device=` or
    ``mg.set_default_device`` says otherwise. "numpy" is NumPy: the readable reference, beside the others in one
    process, and the default where Taichi is not installed; there "cpu" means it too, so that programs which name "cpu"
    run. ``x.to(device)`` moves a tensor; those of two devices do not mix. ``minigrad ops`` prints the kernels of each.

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
        """Its kind, as "cuda"."""
        return self.partition(":")[0]


class Storage:
    """The identity of some bytes: on which device, how often they were written, and by what.

    `array` holds them all: that of the tensor which they were made for. Its first number is number 0 of the storage.

    `version` counts the writes: a value kept for the backward pass knows the version it was kept at. `rebased` counts
    how often a write changed where the gradient of these bytes comes from, so that views know theirs is out of date.
    `unrecorded` says that the last write left no trace in the graph, which still tells of the numbers before.
    `latest` is the number of the last write here among `writes`, those of all storages: so a step, which knows how many
    there were, knows whether an operand was written since.
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
        """Where they are."""
        return device(place_of(self.array))

    def written(self, writer: str, recorded: bool = False, place: tuple[str, int] | None = None) -> None:
        """Count a write by `writer`, an operation's name, and note from where in the reader's code, or `place`."""
        self.version += 1
        Storage.writes = self.latest = Storage.writes + 1
        self.unrecorded = not recorded
        self.writer = writer
        self.place = place or caller()
        for listener in modes.storage_written:
            listener.storage_written(self)

    @property
    def last_write(self) -> str:
        """What wrote here last, and the source line."""
        return self.writer if self.place is None else f"{self.writer}, at {source_line(*self.place)}"


def check_device(name: Any, asked: str) -> device:
    """The name of the device to make a tensor on, the default for None. Raises DeviceError if there is none such."""
    if name is None:
        return get_default_device()
    if isinstance(name, str) and device(name.removesuffix(":0")) in DEVICES:
        return device(name.removesuffix(":0"))
    raise DeviceError(
        f"{asked}: there is no device {str(name)!r}: tensors live on {_default[-1]!r}.\n"
        f"  Leave device= out, or write device={_default[-1]!r}."
    )


def copy_of(array: Any) -> Any:
    """The same numbers in memory of their own."""
    return dispatch("contiguous", place_of(array), (array,))
