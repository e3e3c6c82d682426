"""Arrays with Taichi's kernels as operators: NumPy arrays in shape, strides and views, over pooled blocks of memory.

On the device ``cpu`` a block is host memory, aligned to 64 bytes and a multiple of that size, so that kernels may load
vectors of sixteen elements; `buffers` defines the blocks of GPUs. A block returns to its pool when no array uses it.
"""

from __future__ import annotations

import contextlib
import math
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np

from minigrad.backends.limits import MOST, check_count, obtained
from minigrad.core.dispatch import kernels_of

__all__ = [
    "CPU",
    "DEVICE",
    "CpuArray",
    "Pool",
    "PoolBlock",
    "TaichiArray",
    "Target",
    "address_of",
    "block_of",
    "by_host",
    "counted",
    "cpu_pool",
    "current",
    "empty",
    "lasting",
    "lasting_at",
    "like",
    "pointer",
    "recorder",
    "recording_by",
    "room_of",
    "set_target",
    "shaped",
    "shaped_memory",
    "shared",
    "target",
]

DEVICE = "taichi"  # the registry's name for Taichi's kernels on every architecture
DOUBLE, FLOAT = np.dtype(np.float64), np.dtype(np.float32)
LINE = 64  # bytes of a cache line, and of a vector of sixteen float32


class PoolBlock(np.ndarray):
    """Bytes that return to the pool when no array references them."""

    address = 0

    def __del__(self) -> None:
        if cpu_pool is not None and self.address:
            cpu_pool.give((self.base, self.address), self.nbytes)


def block_of(array: Any) -> Any:
    """Return the block that contains an array; None if its memory is not from a pool."""
    while array is not None and not isinstance(array, PoolBlock):
        array = array.base
    return array


class Pool:
    """Free memory, by size.

    It takes no lock: garbage collection frees blocks at any point of any thread. Each update is one statement without a
    call, during which Python neither switches threads nor collects garbage.
    """

    def __init__(self, limit: int = 1 << 28) -> None:
        self.limit = limit
        self.held = self.used = self.peak = 0  # bytes: free in the pool, in use, maximum in use
        self._free: dict[int, list[Any]] = {}

    @property
    def place(self) -> str:
        """The device that the memory belongs to."""
        return "cpu"

    def take(self, count: int) -> Any:
        """Allocate an aligned block of at least `count` bytes, rounded up to full cache lines."""
        raw, address = self.entry(self.size_of(count))
        block = raw.view(PoolBlock)
        block.address = address
        if _here.recording is not None:
            _here.recording.took(address, block.nbytes)
        return block

    def size_of(self, count: int) -> int:
        """Return the size of a block for `count` bytes: full cache lines; above 4 KiB a power of two or 1.5 times one;
        above 4 GiB a multiple of 64 KiB."""
        if count <= 4096 or count > 1 << 32:
            line = LINE if count <= 4096 else 1 << 16
            return -(-count // line) * line or LINE
        power = 1 << (count - 1).bit_length()
        return power if count > power * 3 // 4 else power * 3 // 4

    def entry(self, size: int) -> Any:
        """Return free memory of that size, or allocate it."""
        try:
            found = self._free[size].pop()
            self.held -= size
        except (KeyError, IndexError):  # no free memory of this size
            found = obtained(lambda: self.new(size), size, self, self.place)
        self.used += size
        if self.used > self.peak:  # without max(): a call may switch threads
            self.peak = self.used
        return found

    def new(self, size: int) -> Any:
        """Allocate memory, and return its owner and its address."""
        return shaped_memory(size)

    def give(self, entry: Any, size: int) -> None:
        """Return memory to the pool."""
        self.used -= size
        if self.held + size <= self.limit:
            self.held += size
            self._free.setdefault(size, []).append(entry)

    def clear(self) -> None:
        """Release free memory to the operating system."""
        for size, entries in tuple(self._free.items()):
            with contextlib.suppress(IndexError):  # another thread may take the last entry
                while True:
                    entries.pop()
                    self.held -= size


def shaped_memory(size: int) -> tuple[Any, int]:
    """Allocate bytes that are aligned to a cache line, and return them with their address."""
    raw = np.empty(size + LINE, np.uint8)
    address = raw.ctypes.data
    start = -address % LINE
    return np.frombuffer(cast(Any, memoryview(cast(Any, raw)[start:][:size])), np.uint8), address + start


cpu_pool: Any = Pool()


def _compute(place: str, name: str, *operands: Any) -> Any:
    return kernels_of(name)[place](*operands)


class TaichiArray(np.ndarray):
    """An array whose operators dispatch to operations of the table on its device, `place`."""

    place = ""
    address = 0  # the data address if `empty` allocated the array; 0 for views, which compute it
    __array_priority__ = 100.0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> NoReturn:
        raise TypeError(
            f"{ufunc.__name__}: a NumPy ufunc cannot run on the device {self.place}; convert with x.numpy() first."
        )

    def _binary(name: str) -> Any:  # type: ignore[misc]
        return lambda self, other: _compute(self.place, name, self, other)

    def _swapped(name: str) -> Any:  # type: ignore[misc]
        return lambda self, other: _compute(self.place, name, other, self)

    __add__, __radd__ = _binary("add"), _swapped("add")
    __sub__, __rsub__ = _binary("sub"), _swapped("sub")
    __mul__, __rmul__ = _binary("mul"), _swapped("mul")
    __truediv__, __rtruediv__ = _binary("div"), _swapped("div")
    __pow__, __rpow__ = _binary("pow"), _swapped("pow")
    __matmul__, __rmatmul__ = _binary("matmul"), _swapped("matmul")
    __lt__, __le__, __gt__, __ge__ = _binary("lt"), _binary("le"), _binary("gt"), _binary("ge")
    __eq__, __ne__ = _binary("eq"), _binary("ne")
    __hash__ = None

    @property
    def host(self) -> Any:
        """The elements as a read-only NumPy array on the host."""
        return target.seen(self)

    def copy(self, order: Any = "C") -> Any:
        """Return a contiguous copy."""
        return _compute(self.place, "contiguous", self)

    def __copy__(self) -> Any:
        return self.copy()

    def __neg__(self) -> Any:
        return _compute(self.place, "neg", self)

    def __abs__(self) -> Any:
        return _compute(self.place, "abs", self)


class CpuArray(TaichiArray):
    """An array on the device ``cpu``."""

    place = "cpu"


class Target(NamedTuple):
    """The types and functions for arrays of one architecture."""

    array: type[TaichiArray]
    pool: Any
    below: Callable[[Any, Any], Any]
    """Copies a NumPy array into such an array."""
    seen: Callable[[Any], Any]
    """Returns the elements of such an array as a NumPy array."""
    block: type[PoolBlock] = PoolBlock
    """The type of its memory."""
    narrow: bool = False
    """Whether float64 is unsupported, so that kernels use float32 in its place."""


class _Here(threading.local):
    """State of the current thread."""

    recording: Any = None  # the recorder of a step's launches; see `recording`


_here = _Here()


def recorder() -> Any:
    """Return the recorder of this thread's launches, None if there is none."""
    return _here.recording


@contextlib.contextmanager
def recording_by(listener: Any) -> Iterator[None]:
    """Return a context in which `listener` is notified of allocations, and of reads and writes by the host."""
    before, _here.recording = _here.recording, listener
    try:
        yield
    finally:
        _here.recording = before


_lasting: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()  # by address


def lasting(array: Any) -> Any:
    """Register `array`, a constant table for kernels, so that recorded launches may refer to it."""
    _lasting[array.__array_interface__["data"][0]] = array
    return array


def lasting_at(address: int) -> Any:
    """Return the constant table at an address, None if there is none."""
    return _lasting.get(address)


def by_host(what: str) -> None:
    """Notify the recorder that the host reads, writes or copies elements."""
    if _here.recording is not None:
        _here.recording.refuse(f"the host {what} elements")


def _seen(array: Any) -> Any:
    by_host("reads")
    return array.view(np.ndarray)


def _laid(array: Any, empty: Any) -> Any:
    by_host("writes")
    out = empty(array.shape, array.dtype)
    out.view(np.ndarray)[...] = array
    return out


CPU = Target(CpuArray, cpu_pool, _laid, _seen)
target = CPU


def set_target(new: Target) -> None:
    """Make `new` the architecture of new arrays."""
    global target
    target = new


def current() -> Target:
    """Return the current target."""
    return target


def empty(shape: tuple[int, ...], dtype: Any, of: Target | None = None) -> TaichiArray:
    """Allocate an uninitialised array for kernels of the current architecture, or of target `of`."""
    dtype, of, size = np.dtype(dtype), of or target, math.prod(shape)
    if size > MOST:
        check_count(shape, of.array.place)
    if of.narrow and dtype is DOUBLE:
        dtype = FLOAT
    block = of.pool.take(size * dtype.itemsize)
    out = np.ndarray.__new__(of.array, shape, dtype, block)
    out.address = block.address
    return out


def shaped(array: Any, shape: tuple[int, ...]) -> Any:
    """Return a new array of another shape that takes over the memory of `array`, which must not be used again."""
    if not isinstance(array.base, PoolBlock):
        return array.reshape(shape)
    out = np.ndarray.__new__(array.__class__, shape, array.dtype, array.base)
    out.address = array.address
    return out


def room_of(view: Any) -> int:
    """Return the size in bytes of the array that `empty` allocated for a view, which owns full cache lines; else 0."""
    base = view.base
    return base.nbytes if base.__class__ is CpuArray and base.address else 0


def counted(view: Any, like: Any) -> Any:
    """Return a NumPy view as the type of `like`. Raises if it has more elements than the limit."""
    if view.size > MOST:
        check_count(view.shape, like.place)
    return view.view(like.__class__)


def shared(array: Any) -> Any:
    """Return a NumPy array as one on the device ``cpu`` that shares its memory. It is copied if its extent exceeds the
    range of indices, or if its strides are not multiples of the item size."""
    check_count(array.shape, CpuArray.place)
    reach = sum([abs(by) * (n - 1) for by, n in zip(array.strides, array.shape, strict=True)])
    if array.size and (reach // array.itemsize > MOST or any(by % array.itemsize for by in array.strides)):
        return CPU.below(array, lambda shape, dtype: empty(shape, dtype, CPU))
    return array.view(CpuArray)


def address_of(x: Any) -> tuple[int, int, int]:
    """Return the kernel argument for an array whose size the kernel knows."""
    return x.address or x.__array_interface__["data"][0], 1, 1


def pointer(x: Any) -> tuple[Any, ...]:
    """Return the kernel argument for a contiguous array: address, element count, bytes; on a GPU also its block."""
    if target is CPU:
        return x.address or x.__array_interface__["data"][0], x.size, x.nbytes
    return x.address or x.__array_interface__["data"][0], x.size, x.nbytes, block_of(x)


def like(array: Any) -> TaichiArray:
    """Copy a NumPy array into memory of the current target."""
    return cast(TaichiArray, target.below(array, empty))
