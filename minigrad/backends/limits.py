"""Limits of devices and dtypes: the largest array, the available memory, and the range of a dtype."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping
from math import prod
from numbers import Integral, Real
from typing import Any, cast

from minigrad.core.errors import DTypeError, OutOfMemoryError, ShapeError, describe_type

__all__ = [
    "MAX_ELEMENTS",
    "TOO_MANY_BYTES",
    "allocate_with_retry",
    "check_count",
    "convert_scalar",
    "format_size",
    "is_size_error",
    "size_error",
]

# The maximum number of elements of a Taichi array, which has 32-bit indices. Loops round their trip count up to a
# multiple of the chunk size, so that 2**31 - 1 would overflow and silently skip almost all elements.
MAX_ELEMENTS = 2**31 - 2**16
# NumPy's limits are those of its index type, which is as wide as a pointer.
_MAX_HOST_ELEMENTS = min(2**60 - 1, sys.maxsize)


def check_count(shape: tuple[int, ...], device: str, context: str = "") -> None:
    """Raise ShapeError if an array of `shape` has more elements than a device can index."""
    if len(shape) > 64:
        raise ShapeError(f"{context and f'{context}: '}a tensor has at most 64 dimensions, but got {len(shape)}.")
    if 0 in shape and prod(filter(None, shape)) > _MAX_HOST_ELEMENTS:  # NumPy multiplies only the nonzero sizes
        raise ShapeError(f"{context and f'{context}: '}the nonzero sizes of shape {shape} overflow the element count.")
    if device == "numpy" and prod(shape) > _MAX_HOST_ELEMENTS:
        raise ShapeError(
            f"{context and f'{context}: '}shape {shape} has {prod(shape):,} elements, too many for any memory."
        )
    if device != "numpy" and prod(shape) > MAX_ELEMENTS:
        raise ShapeError(
            f"{context and f'{context}: '}shape {shape} has {prod(shape):,} elements, but a tensor on the device "
            f"{device!r} "
            f'has at most {MAX_ELEMENTS:,}.\n  Use several smaller tensors, or device="numpy".'
        )


_TOO_LARGE_PREFIXES = (
    "array is too big",
    "Maximum allowed dimension",
    "iterator is too large",
    "negative dimensions are not",
)


TOO_MANY_BYTES = f"2**{sys.maxsize.bit_length()} bytes or more, which overflows the byte count."
_TOO_MANY_DIMS_PREFIXES = ("maximum supported dimension", "number of dimensions must be within")


def size_error(
    kernel: Callable[..., Any], inputs: tuple[Any, ...], attrs: Mapping[str, Any], error: ValueError | OverflowError
) -> ShapeError | None:
    """Return the ShapeError to raise for NumPy's `error` about a result that is too large or has too many dimensions.

    Return None for any other `error`.
    """
    if isinstance(error, OverflowError):  # a size does not fit, or a scalar operand, which `core.dispatch` explains
        sizes = [n for x in attrs.values() for n in (x if isinstance(x, tuple) else (x,)) if isinstance(n, int)]
        if max(sizes, default=0) <= sys.maxsize:
            return None
    elif not str(error).startswith(_TOO_LARGE_PREFIXES + _TOO_MANY_DIMS_PREFIXES):
        return None
    shapes = " and ".join(str(x.shape) for x in inputs if hasattr(x, "shape"))
    attr_text = "".join(f", {name}={x!r}" for name, x in attrs.items())
    name = getattr(kernel, "__name__", "")
    prefix = f"{name if name.isidentifier() else 'a view'}: of shape {shapes}{attr_text} the result would have"
    if str(error).startswith(_TOO_MANY_DIMS_PREFIXES):
        return ShapeError(f"{prefix} more than 64 dimensions, the maximum.")
    return ShapeError(f"{prefix} {TOO_MANY_BYTES}\n  The sizes of a view count too, even next to a size of 0.")


def is_size_error(error: ValueError) -> bool:
    """Return whether NumPy raised `error` for an array of more bytes than a pointer can address."""
    return str(error).startswith(_TOO_LARGE_PREFIXES)


def convert_scalar(name: str, x: Any, dtype: Any) -> float:
    """Convert a Python scalar to `dtype`. Raises DTypeError for `name` if `x` is not a scalar or overflows."""
    if not isinstance(x, Real):
        raise DTypeError(f"{name}: {describe_type(x)} is neither a tensor nor a number.\n  Make it one: mg.tensor(x).")
    if dtype.kind != 1:
        kind: Any = float if dtype.kind else bool
        return cast(float, x if x.__class__ is kind else kind(x))  # a symbolic float stays symbolic
    signed = dtype.name != "uint8"
    high = 2 ** (8 * dtype.itemsize - signed) - 1
    low = -high - signed if signed or isinstance(x, Integral) else 0
    if not low <= cast(Any, x) <= high:
        raise DTypeError(f"{name}: {x} cannot be converted to {dtype.name} without overflow; its maximum is {high}.")
    value: int = int(cast(Any, x))
    return value if signed else value % 256  # as in PyTorch, which rejects -256 and wraps -1 to 255


def allocate_with_retry(allocate: Callable[[], Any], size: int, pool: Any, device: str) -> Any:
    """Allocate `size` bytes by calling `allocate`; if that fails, release the cached memory of `pool` and retry once.

    Raises OutOfMemoryError if the retry fails too.
    """
    try:
        return allocate()
    except MemoryError:
        cached = pool.free_bytes
        gc.collect()  # collecting graphs in reference cycles returns their memory to the pool
        pool.clear()
    try:
        return allocate()
    except MemoryError:
        raise OutOfMemoryError(
            f"out of memory on the device {device!r}: tried to allocate {format_size(size)}. Tensors hold "
            f"{format_size(pool.used_bytes)} there, and {format_size(cached)} of cached memory have been released.\n"
            "  Free tensors (del x, with mg.tidy():), compute in mg.no_grad() what needs no gradient, or use a "
            "smaller batch size."
        ) from None


def format_size(count: int) -> str:
    """Format a size in bytes with a binary unit.

    >>> format_size(512), format_size(1536), format_size(3 << 20)
    ('512 B', '1.5 KiB', '3.0 MiB')
    """
    size, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
