"""Storage: where the bytes of a tensor live. Tensors that are views of one another share one."""

from __future__ import annotations

from typing import Any

from minigrad.errors import DeviceError, caller, source_line

__all__ = ["DEVICES", "Storage", "check_device", "device"]

DEVICES = ("numpy",)
"""The devices that tensors can be on; the first is where they are made."""


class device(str):
    """The name of a device, with its `type`, as in ``mg.device("cuda:0")``. It need not be there.

    "cpu", the memory of the processor, is the device "numpy".

    >>> device("cuda", 1), device("cuda:1").type, device("cpu")
    ('cuda:1', 'cuda', 'numpy')
    """

    __slots__ = ()

    def __new__(cls, type: str, index: int | None = None) -> device:
        name = type if index is None else f"{type}:{index}"
        return super().__new__(cls, "numpy" if name in ("cpu", "cpu:0") else name)

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
    """

    __slots__ = ("array", "device", "place", "rebased", "unrecorded", "version", "writer")

    def __init__(self, device: str, array: Any) -> None:
        self.device = device
        self.array = array
        self.version = 0
        self.rebased = 0
        self.unrecorded = False
        self.writer = ""
        self.place: tuple[str, int] | None = None

    def written(self, writer: str, recorded: bool = False) -> None:
        """Count a write by `writer`, an operation's name, and note from where in the reader's code it came."""
        self.version += 1
        self.unrecorded = not recorded
        self.writer = writer
        self.place = caller()

    @property
    def last_write(self) -> str:
        """What wrote here last, and the source line."""
        return self.writer if self.place is None else f"{self.writer}, at {source_line(*self.place)}"


def check_device(name: Any, asked: str) -> device:
    """The name of the device to make a tensor on, the default for None. Raises DeviceError if there is none such."""
    if name is None:
        return device(DEVICES[0])
    if isinstance(name, str) and device(name) in DEVICES:
        return device(name)
    raise DeviceError(
        f"{asked}: there is no device {str(name)!r}: tensors live on {' or '.join(map(repr, DEVICES))}.\n"
        f"  Leave device= out, or write device={DEVICES[0]!r}."
    )
