"""Arrays on the device ``cpu``: NumPy's, in memory of our own, whose arithmetic is that of Taichi's kernels.

The memory is aligned to 64 bytes and a multiple of that long, so that kernels may load sixteen numbers at once, and it
comes back to a pool when the last array on it is gone.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn, cast

import numpy as np

from minigrad.kernels import kernels_of

__all__ = ["Block", "CpuArray", "empty", "like", "pool", "shaped"]

LINE = 64  # bytes: a line of the cache, and a vector of sixteen floats


class Block(np.ndarray):
    """Bytes that go back to the pool when nobody looks at them any more."""

    address = 0

    def __del__(self) -> None:
        if pool is not None and self.address:
            pool.give(self.base, self.address, self.nbytes)


class Pool:
    """Memory that is not in use, by size."""

    def __init__(self, limit: int = 1 << 28) -> None:
        self.limit = limit
        self.held = self.used = self.peak = 0  # bytes: kept here, given out, the most that ever was
        self._free: dict[int, list[Any]] = {}

    def take(self, count: int) -> Any:
        """At least `count` bytes, aligned, and as many as fill whole lines."""
        size = (count + LINE - 1) // LINE * LINE or LINE if count <= 4096 else _size_class(count)
        try:
            raw, address = self._free[size].pop()
            self.held -= size
        except (KeyError, IndexError):  # none was given back
            raw = np.empty(size + LINE, np.uint8)
            address = raw.ctypes.data
            raw = np.frombuffer(cast(Any, memoryview(cast(Any, raw)[-address % LINE :][:size])), np.uint8)
            address += -address % LINE
        self.used += size
        self.peak = max(self.peak, self.used)
        block = raw.view(Block)
        block.address = address
        return block

    def give(self, raw: Any, address: int, size: int) -> None:
        """Take memory back, for the next who asks."""
        self.used -= size
        if self.held + size <= self.limit:
            self.held += size
            self._free.setdefault(size, []).append((raw, address))

    def clear(self) -> None:
        """Give what is not in use back to the machine."""
        self._free.clear()
        self.held = 0


def _size_class(count: int) -> int:
    """Above a page, a power of two or one and a half."""
    power = 1 << (count - 1).bit_length()
    return power if count > power * 3 // 4 else power * 3 // 4


pool: Any = Pool()


def _compute(name: str, *operands: Any) -> Any:
    return kernels_of(name)["cpu"](*operands)


class CpuArray(np.ndarray):
    """An array whose operators are operations of the table, on the device ``cpu``."""

    place = "cpu"
    address = 0  # where it begins, known of one that `empty` made; views have to ask
    __array_priority__ = 100.0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> NoReturn:
        raise TypeError(f"{ufunc.__name__} of NumPy's was asked for on the device cpu; use x.numpy() for its memory.")

    def _binary(name: str) -> Any:  # type: ignore[misc]
        return lambda self, other: _compute(name, self, other)

    def _swapped(name: str) -> Any:  # type: ignore[misc]
        return lambda self, other: _compute(name, other, self)

    __add__, __radd__ = _binary("add"), _swapped("add")
    __sub__, __rsub__ = _binary("sub"), _swapped("sub")
    __mul__, __rmul__ = _binary("mul"), _swapped("mul")
    __truediv__, __rtruediv__ = _binary("div"), _swapped("div")
    __pow__, __rpow__ = _binary("pow"), _swapped("pow")
    __matmul__, __rmatmul__ = _binary("matmul"), _swapped("matmul")
    __lt__, __le__, __gt__, __ge__ = _binary("lt"), _binary("le"), _binary("gt"), _binary("ge")
    __eq__, __ne__ = _binary("eq"), _binary("ne")
    __hash__ = None

    def copy(self, order: Any = "C") -> Any:
        """The same numbers in memory of their own, row by row."""
        return _compute("contiguous", self)

    def __neg__(self) -> Any:
        return _compute("neg", self)

    def __abs__(self) -> Any:
        return _compute("abs", self)


def empty(shape: tuple[int, ...], dtype: Any) -> CpuArray:
    """An array with whatever is in its memory."""
    dtype = np.dtype(dtype)
    block = pool.take(math.prod(shape) * dtype.itemsize)
    out = np.ndarray.__new__(CpuArray, shape, dtype, block)
    out.address = block.address
    return out


def shaped(array: Any, shape: tuple[int, ...]) -> Any:
    """A new array in another shape, that owns its memory as that did, which nobody is to keep."""
    if array.base.__class__ is not Block:
        return array.reshape(shape)
    out = np.ndarray.__new__(CpuArray, shape, array.dtype, array.base)
    out.address = array.address
    return out


def like(array: Any) -> CpuArray:
    """`array` of NumPy's, copied into memory of our own."""
    out = empty(array.shape, array.dtype)
    host = out.view(np.ndarray)
    host[...] = array
    return out
