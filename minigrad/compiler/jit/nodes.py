"""Nodes: the kernel calls of a step, and the buffers that they read and write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = [
    "ARGUMENT",
    "CONSTANT",
    "EXISTING",
    "FULL",
    "TEMPORARY",
    "Buffer",
    "CallNode",
    "View",
    "address_of",
    "address_range",
    "allocation_of",
    "memory_owner",
]

ARGUMENT, EXISTING, TEMPORARY = "argument", "kept", "temporary"
FULL, CONSTANT = "full", "constant"  # arrays filled with a scalar, or with constant elements: not in the op table


class Buffer:
    """A piece of memory: an argument's, one that existed before the step, or one that the step allocated. `array` spans
    the memory; for an argument, it is the argument itself, and offset 0 is its first element. `array_type` is the type
    of arrays in the memory, and `owner` the array that owns the allocation; see `allocation_of`."""

    __slots__ = ("array", "array_type", "index", "is_written", "kind", "owner")

    def __init__(self, kind: str, array: Any, sample: Any, index: int) -> None:
        self.kind, self.array, self.array_type, self.index = kind, array, type(sample), index
        self.owner = allocation_of(sample)
        self.is_written = False  # whether a call other than its creator writes to it

    def release(self) -> None:
        """Release the memory, which is no longer needed."""
        self.array = self.owner = None

    def __repr__(self) -> str:
        return f"{self.kind[0]}{self.index}"


class View(NamedTuple):
    """The layout of an array: its buffer, byte offset in the buffer, shape, strides and dtype."""

    buffer: Buffer
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any

    def __repr__(self) -> str:
        return f"{self.buffer}:{self.dtype.name}{list(self.shape)}"


class CallNode(NamedTuple):
    """A kernel call with views, Python scalars or None as operands. If `is_in_place`, the results existed before the
    call. `scope` is the module of the model that it belongs to, and `gradient_of` the operation whose gradient it
    computes, or ""."""

    op: str
    device: str
    inputs: tuple[Any, ...]
    attrs: Mapping[str, Any]
    outs: tuple[View, ...]
    is_in_place: bool
    scope: str = ""
    gradient_of: str = ""

    @property
    def reads(self) -> tuple[View, ...]:
        """The views among the operands."""
        return tuple([x for x in self.inputs if isinstance(x, View)])


def memory_owner(array: Any) -> Any:
    """Return the array that owns the memory of `array`."""
    while not hasattr(type(array), "__del__") and hasattr(array.base, "base"):  # skip NumPy's own helpers
        array = array.base
    return array


def allocation_of(array: Any) -> Any:
    """Return the array for which the memory of `array` was allocated, and which owns its last cache line entirely; None
    if it is unknown or has no elements."""
    owner = None
    while not hasattr(type(array), "__del__") and hasattr(array, "base"):
        owner = array if getattr(array, "address", 0) and array.nbytes else owner
        array = array.base
    return owner


def address_of(array: Any) -> int:
    """Return the address of an array's first element."""
    return getattr(array, "address", 0) or int(array.__array_interface__["data"][0])


def address_range(array: Any) -> tuple[int, int]:
    """Return the address range [start, end) of an array, including gaps between elements."""
    start = address_of(array)
    if not array.size or (hasattr(array, "address") and array.address):
        return start, start + array.nbytes
    return start, start + sum([(n - 1) * by for n, by in zip(array.shape, array.strides, strict=True)]) + array.itemsize
