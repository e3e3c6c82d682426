"""Storage: where the bytes of a tensor live. Tensors that are views of one another share one."""

from __future__ import annotations

from typing import Any

from minigrad.errors import DeviceError, caller, source_line

__all__ = ["DEVICES", "Storage", "check_device"]

DEVICES = ("numpy",)
"""The devices that tensors can be on; the first is where they are made."""


class Storage:
    """The identity of some bytes: on which device, how often they were written, and by what.

    `array` holds them all: that of the tensor which they were made for. Its first number is number 0 of the storage.

    `version` counts the writes: a value kept for the backward pass knows the version it was kept at. `rebased` counts
    how often a write changed where the gradient of these bytes comes from, so that views know theirs is out of date.
    """

    __slots__ = ("array", "device", "place", "rebased", "version", "writer")

    def __init__(self, device: str, array: Any) -> None:
        self.device = device
        self.array = array
        self.version = 0
        self.rebased = 0
        self.writer = ""
        self.place: tuple[str, int] | None = None

    def written(self, writer: str) -> None:
        """Count a write by `writer`, an operation's name, and note from where in the reader's code it came."""
        self.version += 1
        self.writer = writer
        self.place = caller()

    @property
    def last_write(self) -> str:
        """What wrote here last, and the source line."""
        return self.writer if self.place is None else f"{self.writer}, at {source_line(*self.place)}"


def check_device(device: Any, asked: str) -> str:
    """The name of the device to make a tensor on, the default for None. Raises DeviceError if there is none such."""
    if device is None:
        return DEVICES[0]
    if device in DEVICES:
        return str(device)
    raise DeviceError(
        f"{asked}: there is no device {device!r}: tensors live on {' or '.join(map(repr, DEVICES))}.\n"
        f"  Leave device= out, or write device={DEVICES[0]!r}."
    )
