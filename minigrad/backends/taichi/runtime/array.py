"""Arrays whose arithmetic is that of Taichi's kernels: NumPy's as far as shapes and views go, in blocks of memory.

On the device ``cpu`` a block is memory of our own, aligned to 64 bytes and a multiple of that long, so that kernels may
load sixteen numbers at once; `buffers` has those of GPUs. A block comes back to a pool when no array is on it.
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

DEVICE = "taichi"  # where the registry has Taichi's kernels, whatever they are compiled for
DOUBLE, FLOAT = np.dtype(np.float64), np.dtype(np.float32)
LINE = 64  # bytes: a line of the cache, and a vector of sixteen floats


class PoolBlock(np.ndarray):
    """Bytes that go back to the pool when nobody looks at them any more."""

    address = 0

    def __del__(self) -> None:
        if cpu_pool is not None and self.address:
            cpu_pool.give((self.base, self.address), self.nbytes)


def block_of(array: Any) -> Any:
    """The block that an array lies in; None where its memory is not ours."""
    while array is not None and not isinstance(array, PoolBlock):
        array = array.base
    return array


class Pool:
    """Memory that is not in use, by size.

    It takes no lock: garbage collection frees blocks at any point of any thread. Each update is one statement without a
    call, during which Python neither switches threads nor collects garbage.
    """

    def __init__(self, limit: int = 1 << 28) -> None:
        self.limit = limit
        self.held = self.used = self.peak = 0  # bytes: kept here, given out, the most that ever was
        self._free: dict[int, list[Any]] = {}

    @property
    def place(self) -> str:
        """The device whose memory it is."""
        return "cpu"

    def take(self, count: int) -> Any:
        """At least `count` bytes, aligned, and as many as fill whole lines."""
        raw, address = self.entry(self.size_of(count))
        block = raw.view(PoolBlock)
        block.address = address
        if _here.recording is not None:
            _here.recording.took(address, block.nbytes)
        return block

    def size_of(self, count: int) -> int:
        """How many bytes are taken for so many: whole lines; above a page a power of two or one and a half; of what is
        very large as many as need be, to 64 KiB."""
        if count <= 4096 or count > 1 << 32:
            line = LINE if count <= 4096 else 1 << 16
            return -(-count // line) * line or LINE
        power = 1 << (count - 1).bit_length()
        return power if count > power * 3 // 4 else power * 3 // 4

    def entry(self, size: int) -> Any:
        """What was given back of that size, or something new."""
        try:
            found = self._free[size].pop()
            self.held -= size
        except (KeyError, IndexError):  # none was given back
            found = obtained(lambda: self.new(size), size, self, self.place)
        self.used += size
        if self.used > self.peak:  # without max(): a call may switch threads
            self.peak = self.used
        return found

    def new(self, size: int) -> Any:
        """Memory that was not here before: what has it, and where it begins."""
        return shaped_memory(size)

    def give(self, entry: Any, size: int) -> None:
        """Take memory back, for the next who asks."""
        self.used -= size
        if self.held + size <= self.limit:
            self.held += size
            self._free.setdefault(size, []).append(entry)

    def clear(self) -> None:
        """Give what is not in use back to the machine."""
        for size, entries in tuple(self._free.items()):
            with contextlib.suppress(IndexError):  # empty: other threads take entries too
                while True:
                    entries.pop()
                    self.held -= size


def shaped_memory(size: int) -> tuple[Any, int]:
    """So many bytes, and where they begin: at a multiple of a line."""
    raw = np.empty(size + LINE, np.uint8)
    address = raw.ctypes.data
    start = -address % LINE
    return np.frombuffer(cast(Any, memoryview(cast(Any, raw)[start:][:size])), np.uint8), address + start


cpu_pool: Any = Pool()


def _compute(place: str, name: str, *operands: Any) -> Any:
    return kernels_of(name)[place](*operands)


class TaichiArray(np.ndarray):
    """An array whose operators are operations of the table, on its device, `place`."""

    place = ""
    address = 0  # where it begins, known of one that `empty` made; views have to ask
    __array_priority__ = 100.0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> NoReturn:
        raise TypeError(
            f"{ufunc.__name__} of NumPy's was asked for on the device {self.place}; use x.numpy() for its numbers."
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
        """The numbers as an array of NumPy's, to be read."""
        return target.seen(self)

    def copy(self, order: Any = "C") -> Any:
        """The same numbers in memory of their own, row by row."""
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
    """What kernels make arrays of: those of the architecture that they are compiled for."""

    array: type[TaichiArray]
    pool: Any
    below: Callable[[Any, Any], Any]
    """Copies an array of NumPy's into one of these."""
    seen: Callable[[Any], Any]
    """The numbers of an array of these as one of NumPy's."""
    block: type[PoolBlock] = PoolBlock
    """What its memory is an array of."""
    narrow: bool = False
    """Whether there is no float64: what kernels make of it, for themselves, is float32."""


class _Here(threading.local):
    """What this thread is doing."""

    recording: Any = None  # what notes the launches of a step; see `recording`


_here = _Here()


def recorder() -> Any:
    """What notes the launches of this thread, None if nothing does."""
    return _here.recording


@contextlib.contextmanager
def recording_by(listener: Any) -> Iterator[None]:
    """A block in which `listener` is told of memory that is taken, and of what the host reads and writes."""
    before, _here.recording = _here.recording, listener
    try:
        yield
    finally:
        _here.recording = before


_lasting: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()  # by where they begin


def lasting(array: Any) -> Any:
    """`array`, a table for kernels that nobody writes to any more: known to those who launch the same again."""
    _lasting[array.__array_interface__["data"][0]] = array
    return array


def lasting_at(address: int) -> Any:
    """The table that begins at an address, None if there is none."""
    return _lasting.get(address)


def by_host(what: str) -> None:
    """Tell the recorder that the host reads numbers, or writes or moves some."""
    if _here.recording is not None:
        _here.recording.refuse(f"the host {what} numbers")


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
    """From now on make arrays for another architecture."""
    global target
    target = new


def current() -> Target:
    """What kernels make arrays of now."""
    return target


def empty(shape: tuple[int, ...], dtype: Any, of: Target | None = None) -> TaichiArray:
    """An array with whatever is in its memory, for kernels, or `of` another architecture."""
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
    """A new array in another shape, that owns its memory as that did, which nobody is to keep."""
    if not isinstance(array.base, PoolBlock):
        return array.reshape(shape)
    out = np.ndarray.__new__(array.__class__, shape, array.dtype, array.base)
    out.address = array.address
    return out


def room_of(view: Any) -> int:
    """The bytes of the array that a view is of, if that was made by `empty`, so that whole lines are ours; else 0."""
    base = view.base
    return base.nbytes if base.__class__ is CpuArray and base.address else 0


def counted(view: Any, like: Any) -> Any:
    """A view that NumPy made, of the type of `like`, if it is not of more numbers than there can be."""
    if view.size > MOST:
        check_count(view.shape, like.place)
    return view.view(like.__class__)


def shared(array: Any) -> Any:
    """`array` of NumPy's on the device ``cpu``, in the same memory; copied if it reaches further than one can count, or
    if its numbers are no whole steps apart."""
    check_count(array.shape, CpuArray.place)
    reach = sum([abs(by) * (n - 1) for by, n in zip(array.strides, array.shape, strict=True)])
    if array.size and (reach // array.itemsize > MOST or any(by % array.itemsize for by in array.strides)):
        return CPU.below(array, lambda shape, dtype: empty(shape, dtype, CPU))
    return array.view(CpuArray)


def address_of(x: Any) -> tuple[int, int, int]:
    """Where an array begins, for a kernel that knows its sizes."""
    return x.address or x.__array_interface__["data"][0], 1, 1


def pointer(x: Any) -> tuple[Any, ...]:
    """Where an array lies row by row, the count of its numbers and its bytes; on a GPU its block too."""
    if target is CPU:
        return x.address or x.__array_interface__["data"][0], x.size, x.nbytes
    return x.address or x.__array_interface__["data"][0], x.size, x.nbytes, block_of(x)


def like(array: Any) -> TaichiArray:
    """`array` of NumPy's, copied into memory of our own."""
    return cast(TaichiArray, target.below(array, empty))
