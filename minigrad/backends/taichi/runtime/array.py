"""Arrays whose operators run Taichi kernels. They are NumPy arrays whose memory is allocated from a pool of blocks.

On the device ``cpu`` a block is host memory, aligned to 64 bytes and a multiple of that size, so that kernels may load
vectors of sixteen elements; `buffers` defines the blocks of GPUs. A block returns to its pool when no array uses it.
"""

from __future__ import annotations

import contextlib
import math
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from heapq import heappop, heappush
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np

from minigrad.backends.limits import MAX_ELEMENTS, allocate_with_retry, check_count
from minigrad.core.dispatch import get_kernels

__all__ = [
    "CPU",
    "TAICHI",
    "CpuArray",
    "Pool",
    "PoolBlock",
    "TaichiArray",
    "Target",
    "address_argument",
    "aligned_memory",
    "array_argument",
    "block_of",
    "check_view",
    "constant_at",
    "copy_to_device",
    "cpu_pool",
    "current_recorder",
    "current_target",
    "empty",
    "notify_host_access",
    "owned_bytes",
    "record_with",
    "register_constant",
    "reshape_owned",
    "set_call",
    "set_target",
    "share_numpy",
    "target",
]

TAICHI = "taichi"  # the name under which Taichi's kernels are registered, on every architecture
DOUBLE, FLOAT = np.dtype(np.float64), np.dtype(np.float32)
CACHE_LINE = 64  # bytes of a cache line, and of a vector of sixteen float32


class PoolBlock(np.ndarray):
    """Block of memory that is returned to the pool when no array references it."""

    address = 0

    def __del__(self) -> None:
        if cpu_pool is not None and self.address:
            cpu_pool.release((self.address, self.base), self.nbytes)


def block_of(array: Any) -> Any:
    """Return the block that contains an array; None if its memory is not from a pool."""
    while array is not None and not isinstance(array, PoolBlock):
        array = array.base
    return array


class Pool:
    """Pool of free memory blocks, indexed by size.

    Of the free blocks of a size, the one with the lowest address is used next, so that each step of a training loop has
    the same addresses, and launches kernels with the same arguments. The pool uses no lock, since garbage collection
    may free blocks at any point of any thread. Each update is a single statement without a call of a Python function,
    during which Python neither switches threads nor collects garbage.
    """

    def __init__(self, limit: int = 1 << 28) -> None:
        self.limit = limit
        # numbers of bytes: free in the pool, in use, and the peak in use
        self.free_bytes = self.used_bytes = self.peak_bytes = 0
        self._free: dict[int, list[Any]] = {}  # for each size a heap of (address, memory)

    @property
    def device(self) -> str:
        """The device that the memory belongs to."""
        return "cpu"

    def allocate(self, count: int) -> Any:
        """Allocate an aligned block of at least `count` bytes, rounded up to full cache lines."""
        address, raw = self.allocate_entry(self.size_of(count))
        block = raw.view(PoolBlock)
        block.address = address
        if _recorder_state.recording is not None:
            _recorder_state.recording.on_allocation(address, block.nbytes)
        return block

    def size_of(self, count: int) -> int:
        """Return the size of a block for `count` bytes: a multiple of the cache line size; above 4 KiB, a power of two
        or 1.5 times a power of two; above 4 GiB, a multiple of 64 KiB."""
        if count <= 4096 or count > 1 << 32:
            line = CACHE_LINE if count <= 4096 else 1 << 16
            return -(-count // line) * line or CACHE_LINE
        power = 1 << (count - 1).bit_length()
        return power if count > power * 3 // 4 else power * 3 // 4

    def allocate_entry(self, size: int) -> Any:
        """Return a free block of `size` bytes from the pool, or allocate one."""
        try:
            entry = heappop(self._free[size])
            self.free_bytes -= size
        except (KeyError, IndexError):  # no free memory of this size
            entry = allocate_with_retry(lambda: self.create_entry(size), size, self, self.device)
        self.used_bytes += size
        if self.used_bytes > self.peak_bytes:  # max() is not used, since a call may switch threads
            self.peak_bytes = self.used_bytes
        return entry

    def create_entry(self, size: int) -> Any:
        """Allocate `size` bytes. Return their address, and the array that owns them."""
        return aligned_memory(size)

    def release(self, entry: Any, size: int) -> None:
        """Return memory to the pool."""
        self.used_bytes -= size
        if self.free_bytes + size <= self.limit:
            self.free_bytes += size
            heappush(self._free.setdefault(size, []), entry)

    def clear(self) -> None:
        """Release free memory to the operating system."""
        for size, entries in tuple(self._free.items()):
            with contextlib.suppress(IndexError):  # another thread may remove the last entry
                while True:
                    entries.pop()
                    self.free_bytes -= size


def aligned_memory(size: int) -> tuple[int, Any]:
    """Allocate `size` bytes that are aligned to a cache line. Return their address, and the array that owns them."""
    raw = np.empty(size + CACHE_LINE, np.uint8)
    address = raw.ctypes.data
    start = -address % CACHE_LINE
    return address + start, np.frombuffer(cast(Any, memoryview(cast(Any, raw)[start:][:size])), np.uint8)


cpu_pool: Any = Pool()


def _call(kernel: Any, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
    return kernel(*operands, **attrs)


def set_call(call: Callable[..., Any]) -> None:
    """Set the function through which the operators of ``cpu`` arrays call kernels."""
    global _call
    _call = call


def dispatch_kernel(device: str, name: str, *operands: Any) -> Any:
    if device != "cpu":
        return get_kernels(name)[device](*operands)
    return _call(get_kernels(name)["cpu"], operands, _NO_ATTRS)


_NO_ATTRS: Mapping[str, Any] = {}


class TaichiArray(np.ndarray):
    """An array whose operators dispatch to the registered operations on its device, `device_name`."""

    device_name = ""
    address = 0  # address of the data if `empty` allocated the array, otherwise 0
    __array_priority__ = 100.0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> NoReturn:
        raise TypeError(
            f"{ufunc.__name__}: a NumPy ufunc cannot run on the device {self.device_name}; convert with x.numpy() "
            "first."
        )

    def _binary(name: str) -> Any:  # type: ignore[misc]
        return lambda self, other: dispatch_kernel(self.device_name, name, self, other)

    def _reflected(name: str) -> Any:  # type: ignore[misc]
        return lambda self, other: dispatch_kernel(self.device_name, name, other, self)

    __add__, __radd__ = _binary("add"), _reflected("add")
    __sub__, __rsub__ = _binary("sub"), _reflected("sub")
    __mul__, __rmul__ = _binary("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _binary("div"), _reflected("div")
    __pow__, __rpow__ = _binary("pow"), _reflected("pow")
    __matmul__, __rmatmul__ = _binary("matmul"), _reflected("matmul")
    __lt__, __le__, __gt__, __ge__ = _binary("lt"), _binary("le"), _binary("gt"), _binary("ge")
    __eq__, __ne__ = _binary("eq"), _binary("ne")
    __hash__ = None

    def __iadd__(self, other: Any) -> Any:  # type: ignore[misc]
        return get_kernels("add")[self.device_name](self, other, out=self)

    @property
    def host(self) -> Any:
        """The elements as a read-only NumPy array on the host."""
        return target.to_numpy(self)

    def copy(self, order: Any = "C") -> Any:
        """Return a contiguous copy."""
        return dispatch_kernel(self.device_name, "contiguous", self)

    def __copy__(self) -> Any:
        return self.copy()

    def __neg__(self) -> Any:
        return dispatch_kernel(self.device_name, "neg", self)

    def __abs__(self) -> Any:
        return dispatch_kernel(self.device_name, "abs", self)


class CpuArray(TaichiArray):
    """An array on the device ``cpu``."""

    device_name = "cpu"


class Target(NamedTuple):
    """Types and functions for the arrays of one architecture."""

    array: type[TaichiArray]
    pool: Any
    from_numpy: Callable[[Any, Any], Any]
    """Function that copies a NumPy array to an array of this type."""
    to_numpy: Callable[[Any], Any]
    """Function that returns the elements of an array as a NumPy array."""
    block: type[PoolBlock] = PoolBlock
    """Type of the memory blocks."""
    lacks_float64: bool = False
    """Whether float64 is unsupported, so that kernels use float32 in its place."""


class _RecorderState(threading.local):
    """Launch recorder of the current thread."""

    recording: Any = None  # the recorder of a step's launches; see `recording`


_recorder_state = _RecorderState()


def current_recorder() -> Any:
    """Return the launch recorder of this thread, or None."""
    return _recorder_state.recording


@contextlib.contextmanager
def record_with(listener: Any) -> Iterator[None]:
    """Return a context in which `listener` is notified of allocations, and of reads and writes by the host."""
    before, _recorder_state.recording = _recorder_state.recording, listener
    try:
        yield
    finally:
        _recorder_state.recording = before


_constants_by_address: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()  # by address


def register_constant(array: Any) -> Any:
    """Register `array`, a constant table for kernels, so that recorded launches may refer to it."""
    _constants_by_address[array.__array_interface__["data"][0]] = array
    return array


def constant_at(address: int) -> Any:
    """Return the constant table at an address, None if there is none."""
    return _constants_by_address.get(address)


def notify_host_access(verb: str) -> None:
    """Notify the recorder that the host reads, writes or copies elements."""
    if _recorder_state.recording is not None:
        _recorder_state.recording.refuse(f"the host {verb} elements")


def _to_numpy(array: Any) -> Any:
    notify_host_access("reads")
    return array.view(np.ndarray)


def _from_numpy(array: Any, empty: Any) -> Any:
    notify_host_access("writes")
    out = empty(array.shape, array.dtype)
    out.view(np.ndarray)[...] = array
    return out


CPU = Target(CpuArray, cpu_pool, _from_numpy, _to_numpy)
target = CPU


def set_target(new: Target) -> None:
    """Set the target of new arrays."""
    global target
    target = new


def current_target() -> Target:
    return target


def empty(shape: tuple[int, ...], dtype: Any, of_target: Target | None = None) -> TaichiArray:
    """Allocate an uninitialised array for kernels of the current architecture, or of target `of_target`."""
    if of_target is None:
        of_target = target
    dtype, size = np.dtype(dtype), math.prod(shape)
    if size > MAX_ELEMENTS:
        check_count(shape, of_target.array.device_name)
    if of_target.lacks_float64 and dtype is DOUBLE:
        dtype = FLOAT
    block = of_target.pool.allocate(size * dtype.itemsize)
    out = _new_array(of_target.array, shape, dtype, block)
    out.address = block.address
    return cast(TaichiArray, out)


_new_array: Callable[..., Any] = np.ndarray.__new__


def reshape_owned(array: Any, shape: tuple[int, ...]) -> Any:
    """Return a new array of another shape that takes over the memory of `array`, which must not be used again."""
    if not isinstance(array.base, PoolBlock):
        return array.reshape(shape)
    out = np.ndarray.__new__(array.__class__, shape, array.dtype, array.base)
    out.address = array.address
    return out


def owned_bytes(view: Any) -> int:
    """Return the size in bytes of the base array of `view`, or 0 if `empty` did not allocate it. `empty` allocates full
    cache lines."""
    base = view.base
    return base.nbytes if base.__class__ is CpuArray and base.address else 0


def check_view(view: Any, sample: Any) -> Any:
    """Return a NumPy view as an array of the type of `sample`. Raises if the view has more elements than the limit."""
    if view.size > MAX_ELEMENTS:
        check_count(view.shape, sample.device_name)
    return view.view(sample.__class__)


def share_numpy(array: Any) -> Any:
    """Return an array on the device ``cpu`` that shares the memory of a NumPy array. The memory is copied if its extent
    exceeds the range of indices, or if the strides are not multiples of the item size."""
    check_count(array.shape, CpuArray.device_name)
    extent = sum([abs(by) * (n - 1) for by, n in zip(array.strides, array.shape, strict=True)])
    if array.size and (extent // array.itemsize > MAX_ELEMENTS or any(by % array.itemsize for by in array.strides)):
        return CPU.from_numpy(array, lambda shape, dtype: empty(shape, dtype, CPU))
    return array.view(CpuArray)


def address_argument(x: Any) -> tuple[int, int, int]:
    """Return the kernel argument for an array whose size is not passed to the kernel."""
    return x.address or x.__array_interface__["data"][0], 1, 1


def array_argument(x: Any) -> tuple[Any, ...]:
    """Return the kernel argument for a contiguous array: its address, number of elements and bytes, and on a GPU its
    block."""
    if target is CPU:
        return x.address or x.__array_interface__["data"][0], x.size, x.nbytes
    return x.address or x.__array_interface__["data"][0], x.size, x.nbytes, block_of(x)


def copy_to_device(array: Any) -> TaichiArray:
    """Copy a NumPy array into memory of the current target."""
    return cast(TaichiArray, target.from_numpy(array, empty))
