"""Arrays on a GPU: NumPy shapes and strides over host memory that stays empty until elements are read.

A *block* is a buffer on the GPU and as many bytes of host memory, initially untouched. An array appears to lie in the
host memory, so that views are NumPy views, and its offset there is its offset in the buffer. The elements of a block
are in one of the two or in both: they are uploaded when a kernel first reads them, downloaded when the host reads them,
and not copied again until a kernel writes to them.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import re
import threading
from typing import Any, cast

import numpy as np

from minigrad.backends.taichi.runtime import driver
from minigrad.backends.taichi.runtime.array import (
    Pool,
    PoolBlock,
    TaichiArray,
    block_of,
    by_host,
    recorder,
    shaped_memory,
)
from minigrad.backends.taichi.runtime.checks import verify
from minigrad.backends.taichi.runtime.kernel import Kernel, compiled
from minigrad.backends.taichi.runtime.locking import lock
from minigrad.core.errors import DeviceError
from minigrad.core.storage import count_transfer

__all__ = ["ARRAYS", "POOLS", "GpuArray", "GpuBlock", "copied", "downloaded"]

# One side is passed as an address of host memory, the other as its buffer. Both are named like external arrays.
_COPY = """@ti.kernel
def {name}_kernel(y_: {words}, x_: {words}, count: ti.i32):
    for i in range(count):
        y_[i] = x_[i]
"""


LARGE = 1 << 33  # bytes from which a buffer is counted in words of eight bytes
_NO_MORE = re.compile("out.of.memory|allocate_memory", re.IGNORECASE)  # out-of-memory errors of CUDA and Vulkan
_NOTHING = Kernel("nothing", "@ti.kernel\ndef nothing_kernel(n: ti.i32):\n    pass\n", "i")
_here = threading.local()  # the program whose context is current in this thread


def _enter(program: Any) -> None:
    """Make the GPU context current in this thread. A launch does so, but allocations and copies do not."""
    if getattr(_here, "program", None) is not program:
        _NOTHING.unheard(0)
        _here.program = program


@functools.cache
def _driver() -> Any:
    """Load CUDA's driver, for copies that Taichi does not offer."""
    found = driver.cuda_driver()
    address, size = ctypes.c_uint64, ctypes.c_size_t
    found.cuMemcpyHtoD_v2.argtypes = found.cuMemcpyDtoH_v2.argtypes = [address, address, size]
    return found


class DeviceBuffer:
    """A buffer on the GPU. Raises MemoryError if the GPU is out of memory."""

    __slots__ = ("_now", "_program", "raw")

    def __init__(self, size: int) -> None:
        self._now = driver.running()  # a reference, since module globals are cleared at exit
        ti, self._program = self._now.ti, self._now.program
        debug = ti._lib.core.DebugInfo("")
        kind, word = (ti.i32, 4) if size < LARGE else (ti.i64, 8)
        if driver.arch() == "cuda":
            _enter(self._program)
        try:
            with lock:
                self.raw = self._program.create_ndarray(
                    kind, (-(-size // word),), layout=ti.lang.enums.Layout.NULL, zero_fill=False, dbg_info=debug
                )
        except RuntimeError as error:
            if _NO_MORE.search(str(error)):
                raise MemoryError(str(error)) from error
            raise

    @property
    def alive(self) -> bool:
        """Whether the Taichi program that owns the buffer is running."""
        return self._now.current and self._program is self._now.program

    def __del__(self, lock: Any = lock) -> None:
        if hasattr(self, "raw") and self.alive:
            with lock:
                self._program.delete_ndarray(self.raw)


def _down(name: str) -> Any:
    return lambda self, *args: getattr(self.host, name)(*args)


_LOST = (
    "Taichi was restarted, by ti.init or ti.reset, after these elements were computed on its GPU: they are lost.\n"
    "  Start Taichi first and compute then, or copy tensors to the host with cpu() before."
)


class GpuArray(TaichiArray):
    """An array whose elements are in a buffer on the GPU. Reading them downloads them."""

    item, tolist, tobytes = _down("item"), _down("tolist"), _down("tobytes")
    __bool__, __int__, __float__, __repr__ = _down("__bool__"), _down("__int__"), _down("__float__"), _down("__repr__")


ARRAYS: dict[str, type[GpuArray]] = {
    name: type(f"{name.capitalize()}Array", (GpuArray,), {"place": name, "__doc__": f"An array on the device {name}."})
    for name in driver.GPUS
}


class _Below(np.ndarray):
    """The host memory of a block. It references the buffer, since Python's garbage collector does not see the base of
    an array: in a cycle it would free the buffer while the block returns it to the pool."""

    buffer: Any = None


class GpuBlock(PoolBlock):
    """Bytes on the GPU, and the host memory that gives arrays in them an address."""

    pool: Any = None
    size = 0  # the requested bytes, which are copied
    above = False  # whether the buffer is up to date
    below = False  # whether the host memory is up to date
    lost = False  # whether neither is
    moving = False  # whether the elements are being uploaded

    def __del__(self) -> None:
        if POOLS is not None and self.address:
            self.pool.give((self.base, self.address), self.nbytes)

    @property
    def buffer(self) -> Any:
        """The buffer on the GPU."""
        return cast(Any, self.base).buffer

    def _move(self, up: bool) -> None:
        """Copy the elements to the buffer or from it.

        A Taichi kernel copies words of four bytes, or of eight for large blocks. On CUDA such a kernel uploads the host
        memory before it runs and downloads it afterwards, in both directions, so the driver copies instead: a download
        of 43 MB took 27 ms with the kernel, and takes 4 ms.
        """
        by_host("copies")
        if driver.arch() == "cuda":
            self._move_by_driver(up)
        else:
            self._move_by_kernel(up)
        count_transfer("up" if up else "down", self.size)

    def _move_by_driver(self, up: bool) -> None:
        """Copy by the driver, ordered after earlier launches."""
        program = driver.running().program
        with lock:
            _enter(program)
            there = program.get_ndarray_data_ptr_as_int(self.buffer.raw)
            if up:
                failed = _driver().cuMemcpyHtoD_v2(there, self.address, self.size)
            else:
                failed = _driver().cuMemcpyDtoH_v2(self.address, there, self.size)
        if failed:
            raise DeviceError(f"cuda: a copy of {self.size:,} bytes failed with CUDA error {failed}.")

    def _move_by_kernel(self, up: bool) -> None:
        way, word = ("up", "down")[not up], 4 if self.nbytes < LARGE else 8
        here = self.address, self.nbytes // word, self.nbytes
        text = _COPY.format(name=f"transfer_{way}", words=f"ti.types.ndarray(dtype=ti.i{8 * word}, ndim=1)")
        ends = ((*here, self), here) if up else (here, (*here, self))
        compiled(f"transfer_{way}", text, "ahi" if up else "hai").launch(*ends, -(-self.size // word))

    def raise_up(self) -> None:
        """Upload the elements if necessary. A block that was never written to is uninitialised."""
        with lock:
            if self.moving:  # the copy kernel calls this method; other threads wait for the lock
                return
            if self.lost:
                raise DeviceError(_LOST)
            if not self.buffer.alive:
                cast(Any, self.base).buffer = DeviceBuffer(self.nbytes)
            if self.below and not self.above:
                self.moving = True
                try:
                    self._move(up=True)
                finally:
                    self.moving = False
                self.below = True
            self.above = True

    def bring_down(self) -> None:
        """Download the elements if necessary."""
        with lock:
            if (self.above or self.lost) and not self.below:
                if self.lost or not self.buffer.alive:
                    raise DeviceError(_LOST)
                driver.synchronize()
                self._move(up=False)
                driver.synchronize()
            self.below = True


def _miss() -> None:
    """Mark blocks after a restart of Taichi: elements only in buffers are lost, others are uploaded again on use."""
    for x in gc.get_objects():
        if issubclass(type(x), GpuBlock) and x.address:
            x.lost = x.above and not x.below
            x.above = False


driver.on_restart(_miss)


class GpuPool(Pool):
    """Free buffers, by size."""

    @property
    def place(self) -> str:
        return driver.arch()

    def take(self, count: int) -> Any:
        raw, address = self.entry(self.size_of(count))
        block = raw.view(GpuBlock)
        block.address, block.size, block.pool = address, count, self
        if recorder() is not None:
            recorder().took(address, block.nbytes)
        return block

    def entry(self, size: int) -> Any:
        found = super().entry(size)
        while not found[0].buffer.alive:  # its program has ended
            self.used -= size
            found = super().entry(size)
        return found

    def new(self, size: int) -> Any:
        raw, address = shaped_memory(size)
        below = raw.view(_Below)
        below.buffer = DeviceBuffer(size)
        return below, address

    def give(self, entry: Any, size: int) -> None:
        if entry[0].buffer.alive:
            super().give(entry, size)
        else:
            self.used -= size

    def clear(self) -> None:
        driver.synchronize()
        super().clear()


POOLS: Any = {name: GpuPool(1 << 62) for name in driver.GPUS}  # limited only by the GPU's memory


def copied(array: Any, empty: Any) -> Any:
    """Copy a NumPy array to an array on the GPU, uploaded when a kernel first reads it."""
    by_host("writes")
    out = empty(array.shape, array.dtype)
    np.copyto(out.view(np.ndarray), array)
    block_of(out).below = True
    return out


def downloaded(array: Any) -> Any:
    """Return the elements of an array on the GPU as a new NumPy array."""
    by_host("reads")
    block_of(array).bring_down()
    verify()
    return array.view(np.ndarray).copy()
