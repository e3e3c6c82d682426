"""Arrays on a GPU. Their shapes and strides refer to host memory, which stays empty until elements are read.

A *block* is a buffer on the GPU and host memory of the same size, initially untouched. An array is a NumPy array over
the host memory, so that views are NumPy views; its offset there is also its offset in the buffer. The elements of a
block are in the buffer, in host memory, or in both: they are uploaded when a kernel first reads them, downloaded when
the host reads them, and not copied again until a kernel writes to them.
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
    aligned_memory,
    block_of,
    current_recorder,
    notify_host_access,
)
from minigrad.backends.taichi.runtime.deferred_checks import check_slots
from minigrad.backends.taichi.runtime.kernel import Kernel, get_kernel
from minigrad.backends.taichi.runtime.locking import lock
from minigrad.core.errors import DeviceError
from minigrad.core.storage import add_transfer

__all__ = ["ARRAYS", "POOLS", "GpuArray", "GpuBlock", "copy_from_numpy", "copy_to_numpy"]

# One argument is an address in host memory, the other a buffer. Both are declared as external arrays.
_COPY = """@ti.kernel
def {name}_kernel(y_: {words}, x_: {words}, count: ti.i32):
    for i in range(count):
        y_[i] = x_[i]
"""


LARGE_BUFFER = 1 << 33  # minimum size in bytes of a buffer that is copied in words of eight bytes
_OUT_OF_MEMORY = re.compile("out.of.memory|allocate_memory", re.IGNORECASE)  # out-of-memory errors of CUDA and Vulkan
_EMPTY_KERNEL = Kernel("nothing", "@ti.kernel\ndef nothing_kernel(n: ti.i32):\n    pass\n", "i")
_context_state = threading.local()  # the program whose context is current in this thread


def _make_context_current(program: Any) -> None:
    """Make the program's GPU context current in this thread, as launches do, unlike allocations and copies."""
    if getattr(_context_state, "program", None) is not program:
        _EMPTY_KERNEL.launch_unobserved(0)
        _context_state.program = program


@functools.cache
def _copy_driver() -> Any:
    """Load CUDA's driver, for copies that Taichi does not offer."""
    library = driver.cuda_driver()
    address, size = ctypes.c_uint64, ctypes.c_size_t
    library.cuMemcpyHtoD_v2.argtypes = library.cuMemcpyDtoH_v2.argtypes = [address, address, size]
    return library


class DeviceBuffer:
    """A buffer on the GPU. Raises MemoryError if the GPU is out of memory."""

    __slots__ = ("_program", "_taichi_state", "raw")

    def __init__(self, size: int) -> None:
        self._taichi_state = driver.ensure_started()  # keep a reference, since module globals are cleared at exit
        ti, self._program = self._taichi_state.ti, self._taichi_state.program
        debug = ti._lib.core.DebugInfo("")
        kind, word = (ti.i32, 4) if size < LARGE_BUFFER else (ti.i64, 8)
        if driver.arch() == "cuda":
            _make_context_current(self._program)
        try:
            with lock:
                self.raw = self._program.create_ndarray(
                    kind, (-(-size // word),), layout=ti.lang.enums.Layout.NULL, zero_fill=False, dbg_info=debug
                )
        except RuntimeError as error:
            if _OUT_OF_MEMORY.search(str(error)):
                raise MemoryError(str(error)) from error
            raise

    @property
    def is_alive(self) -> bool:
        """Whether the Taichi program that owns the buffer is running."""
        return self._taichi_state.is_current and self._program is self._taichi_state.program

    def __del__(self, lock: Any = lock) -> None:
        if hasattr(self, "raw") and self.is_alive:
            with lock:
                self._program.delete_ndarray(self.raw)


def _on_host(name: str) -> Any:
    return lambda self, *args: getattr(self.host, name)(*args)


_LOST_MESSAGE = (
    "Taichi was restarted, by ti.init or ti.reset, after these elements were computed on its GPU: they are lost.\n"
    "  Start Taichi first and compute then, or copy tensors to the host with cpu() before."
)


class GpuArray(TaichiArray):
    """Array whose elements are stored in a GPU buffer, and downloaded when the host reads them."""

    item, tolist, tobytes = _on_host("item"), _on_host("tolist"), _on_host("tobytes")
    __bool__, __int__, __float__, __repr__ = (
        _on_host("__bool__"),
        _on_host("__int__"),
        _on_host("__float__"),
        _on_host("__repr__"),
    )


ARRAYS: dict[str, type[GpuArray]] = {
    name: type(
        f"{name.capitalize()}Array", (GpuArray,), {"device_name": name, "__doc__": f"An array on the device {name}."}
    )
    for name in driver.GPUS
}


class _HostMemory(np.ndarray):
    """The host memory of a block. It references the buffer, since Python's garbage collector ignores the base of an
    array: in a reference cycle, it would free the buffer while the block returns it to the pool."""

    buffer: Any = None


class GpuBlock(PoolBlock):
    """Memory block that consists of a GPU buffer and host memory. Arrays in the block have addresses in host memory."""

    pool: Any = None
    requested_bytes = 0  # number of requested bytes, which are copied
    on_device = False  # whether the buffer is up to date
    on_host = False  # whether the host memory is up to date
    is_lost = False  # whether neither copy is up to date
    is_uploading = False  # whether the elements are being uploaded

    def __del__(self) -> None:
        if POOLS is not None and self.address:
            self.pool.release((self.address, self.base), self.nbytes)

    @property
    def buffer(self) -> Any:
        """The buffer on the GPU."""
        return cast(Any, self.base).buffer

    def _transfer(self, up: bool) -> None:
        """Copy the elements to the GPU if `up`, otherwise to the host.

        A Taichi kernel copies words of four bytes, or of eight for large blocks. On CUDA the driver copies instead,
        since a kernel would transfer the host memory in both directions: a download of 43 MB took 27 ms with the
        kernel, and takes 4 ms with the driver.
        """
        notify_host_access("copies")
        if driver.arch() == "cuda":
            self._transfer_by_driver(up)
        else:
            self._transfer_by_kernel(up)
        add_transfer("up" if up else "down", self.requested_bytes)

    def _transfer_by_driver(self, up: bool) -> None:
        """Copy with the CUDA driver, after all earlier launches."""
        program = driver.ensure_started().program
        with lock:
            _make_context_current(program)
            device_address = program.get_ndarray_data_ptr_as_int(self.buffer.raw)
            if up:
                error_code = _copy_driver().cuMemcpyHtoD_v2(device_address, self.address, self.requested_bytes)
            else:
                error_code = _copy_driver().cuMemcpyDtoH_v2(self.address, device_address, self.requested_bytes)
        if error_code:
            raise DeviceError(f"cuda: a copy of {self.requested_bytes:,} bytes failed with CUDA error {error_code}.")

    def _transfer_by_kernel(self, up: bool) -> None:
        direction, word = ("up", "down")[not up], 4 if self.nbytes < LARGE_BUFFER else 8
        host_argument = self.address, self.nbytes // word, self.nbytes
        text = _COPY.format(name=f"transfer_{direction}", words=f"ti.types.ndarray(dtype=ti.i{8 * word}, ndim=1)")
        arguments = ((*host_argument, self), host_argument) if up else (host_argument, (*host_argument, self))
        get_kernel(f"transfer_{direction}", text, "ahi" if up else "hai").launch(
            *arguments, -(-self.requested_bytes // word)
        )

    def upload(self) -> None:
        """Upload the elements if the buffer is not up to date. A block that was never written to stays
        uninitialised."""
        with lock:
            if self.is_uploading:  # the copy kernel calls this method; other threads wait for the lock
                return
            if self.is_lost:
                raise DeviceError(_LOST_MESSAGE)
            if not self.buffer.is_alive:
                cast(Any, self.base).buffer = DeviceBuffer(self.nbytes)
            if self.on_host and not self.on_device:
                self.is_uploading = True
                try:
                    self._transfer(up=True)
                finally:
                    self.is_uploading = False
                self.on_host = True
            self.on_device = True

    def download(self) -> None:
        """Download the elements if necessary."""
        with lock:
            if (self.on_device or self.is_lost) and not self.on_host:
                if self.is_lost or not self.buffer.is_alive:
                    raise DeviceError(_LOST_MESSAGE)
                driver.synchronize()
                self._transfer(up=False)
                driver.synchronize()
            self.on_host = True


def _mark_lost() -> None:
    """Mark all blocks as absent from the GPU after a restart of Taichi. Elements that were only in buffers are lost;
    others are uploaded again on use."""
    if not any(pool.used_bytes for pool in POOLS.values()):
        return  # without blocks there is nothing to look for among all objects, such as when Taichi first starts
    for x in gc.get_objects():
        if issubclass(type(x), GpuBlock) and x.address:
            x.is_lost = x.on_device and not x.on_host
            x.on_device = False


driver.on_restart(_mark_lost)


class GpuPool(Pool):
    """Pool of free GPU buffers, indexed by size."""

    @property
    def device(self) -> str:
        return driver.arch()

    def allocate(self, count: int) -> Any:
        address, raw = self.allocate_entry(self.size_of(count))
        block = raw.view(GpuBlock)
        block.address, block.requested_bytes, block.pool = address, count, self
        if current_recorder() is not None:
            current_recorder().on_allocation(address, block.nbytes)
        return block

    def allocate_entry(self, size: int) -> Any:
        entry = super().allocate_entry(size)
        while not entry[1].buffer.is_alive:  # its program has ended
            self.used_bytes -= size
            entry = super().allocate_entry(size)
        return entry

    def create_entry(self, size: int) -> Any:
        address, raw = aligned_memory(size)
        host_memory = raw.view(_HostMemory)
        host_memory.buffer = DeviceBuffer(size)
        return address, host_memory

    def release(self, entry: Any, size: int) -> None:
        if entry[1].buffer.is_alive:
            super().release(entry, size)
        else:
            self.used_bytes -= size

    def clear(self) -> None:
        driver.synchronize()
        super().clear()


POOLS: Any = {name: GpuPool(1 << 62) for name in driver.GPUS}  # limited only by the GPU's memory


def copy_from_numpy(array: Any, empty: Any) -> Any:
    """Copy a NumPy array to a GPU array. The elements are uploaded when a kernel first reads them."""
    notify_host_access("writes")
    out = empty(array.shape, array.dtype)
    np.copyto(out.view(np.ndarray), array)
    block_of(out).on_host = True
    return out


def copy_to_numpy(array: Any) -> Any:
    """Return the elements of an array on the GPU as a new NumPy array."""
    notify_host_access("reads")
    block_of(array).download()
    check_slots()
    return array.view(np.ndarray).copy()
