"""Nodes of a trace: the kernel calls of a step, and the buffers that they read and write."""

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
# Calls that create an array filled with a scalar, or with constant elements. They are not registered operations.
FULL, CONSTANT = "full", "constant"


class Buffer:
    """Memory of an argument, memory that existed before the step, or memory that the step allocated. `array` covers the
    memory; for an argument, it is the argument itself, whose first element has offset 0. `array_type` is the type of
    the arrays in the memory, and `owner` the array that owns the allocation; see `allocation_of`."""

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
    """Kernel call whose operands are views, Python scalars or None. If `is_in_place`, the results existed before the
    call. `scope` is the module of the model that made the call, and `gradient_of` the operation whose gradient the call
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
    """Return the array for which the memory of `array` was allocated, or None if it is unknown or has no elements. That
    array owns its last cache line entirely."""
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
