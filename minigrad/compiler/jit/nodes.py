"""Nodes: the kernel calls of a step, and the places in memory that they read and write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = [
    "ARGUMENT",
    "CONSTANT",
    "FULL",
    "KEPT",
    "TEMPORARY",
    "Buffer",
    "KernelCall",
    "View",
    "root_of",
    "span_of",
    "start_of",
    "whole_of",
]

ARGUMENT, KEPT, TEMPORARY = "argument", "kept", "temporary"
FULL, CONSTANT = "full", "constant"  # arrays that are made of one number, or of given ones: no operations of the table


class Buffer:
    """A piece of memory: that of an argument, one that was there before, or one of the step's own. `array` spans it;
    that of an argument is the argument itself, whose first number is number 0. `of` is the type of arrays in it, and
    `whole` the one that has it to itself: see `whole_of`."""

    __slots__ = ("array", "kind", "number", "of", "whole", "written")

    def __init__(self, kind: str, array: Any, like: Any, number: int) -> None:
        self.kind, self.array, self.of, self.number = kind, array, type(like), number
        self.whole = whole_of(like)
        self.written = False  # whether a call writes to it that did not make it

    def forget(self) -> None:
        """Let the memory go; what is still needed of it has been taken."""
        self.array = self.whole = None

    def __repr__(self) -> str:
        return f"{self.kind[0]}{self.number}"


class View(NamedTuple):
    """Where an array lies: in a buffer, so many bytes from its start."""

    buffer: Buffer
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any

    def __repr__(self) -> str:
        return f"{self.buffer}:{self.dtype.name}{list(self.shape)}"


class KernelCall(NamedTuple):
    """A kernel call: its operands are views, numbers or None. If it `writes`, its results were there before. `scope` is
    where in a model it belongs, and `gradient_of` the operation whose gradient it helps to compute, "" of none."""

    op: str
    device: str
    inputs: tuple[Any, ...]
    attrs: Mapping[str, Any]
    outs: tuple[View, ...]
    writes: bool
    scope: str = ""
    gradient_of: str = ""

    @property
    def reads(self) -> tuple[View, ...]:
        """The views among its operands."""
        return tuple([x for x in self.inputs if isinstance(x, View)])


def root_of(array: Any) -> Any:
    """What has the memory that an array lies in."""
    while not hasattr(type(array), "__del__") and hasattr(array.base, "base"):  # between them are NumPy's own helpers
        array = array.base
    return array


def whole_of(array: Any) -> Any:
    """The array for which the memory was taken that an array lies in, and whose last line is its own to the end; None
    where nobody knows, and of no numbers."""
    found = None
    while not hasattr(type(array), "__del__") and hasattr(array, "base"):
        found = array if getattr(array, "address", 0) and array.nbytes else found
        array = array.base
    return found


def start_of(array: Any) -> int:
    """Where an array begins, in bytes."""
    return getattr(array, "address", 0) or int(array.__array_interface__["data"][0])


def span_of(array: Any) -> tuple[int, int]:
    """Where an array begins, and where its last number ends, in bytes: gaps between its numbers are in it."""
    start = start_of(array)
    if not array.size or (hasattr(array, "address") and array.address):
        return start, start + array.nbytes
    return start, start + sum([(n - 1) * by for n, by in zip(array.shape, array.strides, strict=True)]) + array.itemsize
