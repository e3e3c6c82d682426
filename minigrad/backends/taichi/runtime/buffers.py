"""Arrays on a GPU: shapes and strides are NumPy's, over memory of the host that is empty until numbers are asked for.

A *block* is some bytes of the GPU, a buffer, and as many of the host's, which nothing touches. An array looks as if it
lay in the host's part, so that its views are those of NumPy; and where it lies there says where it lies in the buffer.
The numbers of a block are in one of the two, or in both: they go up when a kernel first reads them, down when somebody
looks at them, and neither way again until a kernel has written to them.
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

# What one side is given as an address, as memory of the host, the other by its buffer. Both are named as outsiders.
_COPY = """@ti.kernel
def {name}_kernel(y_: {words}, x_: {words}, count: ti.i32):
    for i in range(count):
        y_[i] = x_[i]
"""


LARGE = 1 << 33  # so many bytes cannot be counted in words of four
_NO_MORE = re.compile("out.of.memory|allocate_memory", re.IGNORECASE)  # so say CUDA and Vulkan that there is none
_NOTHING = Kernel("nothing", "@ti.kernel\ndef nothing_kernel(n: ti.i32):\n    pass\n", "i")
_here = threading.local()  # of a thread the program in whose context it is


def _enter(program: Any) -> None:
    """Make the context of the GPU this thread's, as a launch does; to ask for memory, or to copy, does not."""
    if getattr(_here, "program", None) is not program:
        _NOTHING.unheard(0)
        _here.program = program


@functools.cache
def _driver() -> Any:
    """CUDA's driver, whose copies Taichi does not offer."""
    found = driver.cuda_driver()
    address, size = ctypes.c_uint64, ctypes.c_size_t
    found.cuMemcpyHtoD_v2.argtypes = found.cuMemcpyDtoH_v2.argtypes = [address, address, size]
    return found


class DeviceBuffer:
    """Some bytes of the GPU. Raises MemoryError where it has no more."""

    __slots__ = ("_now", "_program", "raw")

    def __init__(self, size: int) -> None:
        self._now = driver.running()  # the module's name for it is gone when Python ends
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
        """Whether the program runs that it belongs to."""
        return self._now.current and self._program is self._now.program

    def __del__(self, lock: Any = lock) -> None:
        if hasattr(self, "raw") and self.alive:
            with lock:
                self._program.delete_ndarray(self.raw)


def _down(name: str) -> Any:
    return lambda self, *args: getattr(self.host, name)(*args)


_LOST = (
    "Taichi was started again, by ti.init or ti.reset, after these numbers were computed on its GPU: they are gone.\n"
    "  Start Taichi first and compute then, or bring tensors back with cpu() before."
)


class GpuArray(TaichiArray):
    """An array whose numbers are in a buffer of the GPU. To look at them brings them down."""

    item, tolist, tobytes = _down("item"), _down("tolist"), _down("tobytes")
    __bool__, __int__, __float__, __repr__ = _down("__bool__"), _down("__int__"), _down("__float__"), _down("__repr__")


ARRAYS: dict[str, type[GpuArray]] = {
    name: type(f"{name.capitalize()}Array", (GpuArray,), {"place": name, "__doc__": f"An array on the device {name}."})
    for name in driver.GPUS
}


class _Below(np.ndarray):
    """The host's part of a block. It has the buffer, since Python's collector of garbage does not see what an array is
    a view of: in a cycle it would end the buffer while the block gives that back to the pool."""

    buffer: Any = None


class GpuBlock(PoolBlock):
    """Bytes of the GPU, and where arrays on them seem to lie."""

    pool: Any = None
    size = 0  # the bytes that were asked for: what is moved
    above = False  # whether the numbers are in the buffer
    below = False  # and here
    lost = False  # or nowhere
    moving = False  # or being copied to the buffer

    def __del__(self) -> None:
        if POOLS is not None and self.address:
            self.pool.give((self.base, self.address), self.nbytes)

    @property
    def buffer(self) -> Any:
        """Its memory on the GPU."""
        return cast(Any, self.base).buffer

    def _move(self, up: bool) -> None:
        """Copy the numbers to the buffer, or from there.

        A kernel of Taichi's does it in words of four bytes, of eight where those are too many. On CUDA such a kernel
        copies the host's part to the GPU first and back after, whichever way is meant, so there the driver is asked: 43
        MB went down in 27 ms, and go in 4.
        """
        by_host("moves")
        if driver.arch() == "cuda":
            self._move_by_driver(up)
        else:
            self._move_by_kernel(up)
        count_transfer("up" if up else "down", self.size)

    def _move_by_driver(self, up: bool) -> None:
        """Queued after what was launched before, as a launch is."""
        program = driver.running().program
        with lock:
            _enter(program)
            there = program.get_ndarray_data_ptr_as_int(self.buffer.raw)
            if up:
                failed = _driver().cuMemcpyHtoD_v2(there, self.address, self.size)
            else:
                failed = _driver().cuMemcpyDtoH_v2(self.address, there, self.size)
        if failed:
            raise DeviceError(f"cuda: a copy of {self.size:,} bytes failed: CUDA's error {failed}.")

    def _move_by_kernel(self, up: bool) -> None:
        way, word = ("up", "down")[not up], 4 if self.nbytes < LARGE else 8
        here = self.address, self.nbytes // word, self.nbytes
        text = _COPY.format(name=f"transfer_{way}", words=f"ti.types.ndarray(dtype=ti.i{8 * word}, ndim=1)")
        ends = ((*here, self), here) if up else (here, (*here, self))
        compiled(f"transfer_{way}", text, "ahi" if up else "hai").launch(*ends, -(-self.size // word))

    def raise_up(self) -> None:
        """Let the numbers be in the buffer. Those of a block that nobody has written to are whatever they are."""
        with lock:
            if self.moving:  # called by the kernel that copies; other threads wait for the lock
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
        """Let the numbers be here."""
        with lock:
            if (self.above or self.lost) and not self.below:
                if self.lost or not self.buffer.alive:
                    raise DeviceError(_LOST)
                driver.synchronize()
                self._move(up=False)
                driver.synchronize()
            self.below = True


def _miss() -> None:
    """Taichi was started anew: what was in buffers alone is lost, the rest goes up again when it is asked for."""
    for x in gc.get_objects():
        if issubclass(type(x), GpuBlock) and x.address:
            x.lost = x.above and not x.below
            x.above = False


driver.on_restart(_miss)


class GpuPool(Pool):
    """Buffers that are not in use, by size."""

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
        while not found[0].buffer.alive:  # of a program that is gone
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


POOLS: Any = {name: GpuPool(1 << 62) for name in driver.GPUS}  # until the GPU has no more


def copied(array: Any, empty: Any) -> Any:
    """`array` of NumPy's as one on the GPU, which goes up when a kernel first reads it."""
    by_host("writes")
    out = empty(array.shape, array.dtype)
    np.copyto(out.view(np.ndarray), array)
    block_of(out).below = True
    return out


def downloaded(array: Any) -> Any:
    """The numbers of an array on the GPU, as one of NumPy's that nobody else has."""
    by_host("reads")
    block_of(array).bring_down()
    verify()
    return array.view(np.ndarray).copy()
