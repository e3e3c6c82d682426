"""Limits of devices and dtypes: the largest array, the available memory, and the range of a dtype."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from math import prod
from numbers import Integral, Real
from typing import Any, cast

from minigrad.core.errors import DTypeError, OutOfMemoryError, ShapeError, a_kind

__all__ = ["MOST", "beyond", "check_count", "number", "obtained", "size_text"]

# The maximum number of elements of a Taichi array, which has 32-bit indices. Loops round their trip count up to a
# multiple of the chunk size, so that 2**31 - 1 would overflow and silently skip almost all elements.
MOST = 2**31 - 2**16


def check_count(shape: tuple[int, ...], place: str, asked: str = "") -> None:
    """Raise ShapeError if an array of `shape` has more elements than a device can index."""
    if len(shape) > 64:
        raise ShapeError(f"{asked and f'{asked}: '}a tensor has at most 64 dimensions, but got {len(shape)}.")
    if 0 in shape and prod(filter(None, shape)) >= 2**60:  # NumPy multiplies the sizes without the 0
        raise ShapeError(f"{asked and f'{asked}: '}the nonzero sizes of shape {shape} overflow the element count.")
    if place == "numpy" and prod(shape) >= 2**60:
        raise ShapeError(
            f"{asked and f'{asked}: '}shape {shape} has {prod(shape):,} elements, too many for any memory."
        )
    if place != "numpy" and prod(shape) > MOST:
        raise ShapeError(
            f"{asked and f'{asked}: '}shape {shape} has {prod(shape):,} elements, but a tensor on the device {place!r} "
            f'has at most {MOST:,}.\n  Use several smaller tensors, or device="numpy".'
        )


_BEYOND = ("array is too big", "Maximum allowed dimension", "iterator is too large", "negative dimensions are not")


_TOO_MANY_DIMENSIONS = ("maximum supported dimension", "number of dimensions must be within")


def beyond(
    kernel: Callable[..., Any], inputs: tuple[Any, ...], attrs: Mapping[str, Any], error: ValueError
) -> ShapeError | None:
    """Return the ShapeError to raise for NumPy's `error` about a result that is too large or has too many dimensions.

    Return None for any other `error`.
    """
    if not str(error).startswith(_BEYOND + _TOO_MANY_DIMENSIONS):
        return None
    shapes = " and ".join(str(x.shape) for x in inputs if hasattr(x, "shape"))
    given = "".join(f", {name}={x!r}" for name, x in attrs.items())
    name = getattr(kernel, "__name__", "")
    asked = f"{name if name.isidentifier() else 'a view'}: of shape {shapes}{given} the result would have"
    if str(error).startswith(_TOO_MANY_DIMENSIONS):
        return ShapeError(f"{asked} more than 64 dimensions, the maximum.")
    return ShapeError(
        f"{asked} 2**63 bytes or more, which overflows the byte count.\n"
        "  The sizes of a view count too, even next to a size of 0."
    )


def number(name: str, x: Any, dtype: Any) -> float:
    """Convert a Python scalar to `dtype`. Raises DTypeError, naming `name`, if `x` is not a scalar or overflows."""
    if not isinstance(x, Real):
        raise DTypeError(f"{name}: {a_kind(x)} is neither a tensor nor a number.\n  Make it one: mg.tensor(x).")
    if dtype.kind != 1:
        kind: Any = float if dtype.kind else bool
        return cast(float, x if x.__class__ is kind else kind(x))  # a symbolic float stays one
    signed = dtype.name != "uint8"
    high = 2 ** (8 * dtype.itemsize - signed) - 1
    low = -high - signed if signed or isinstance(x, Integral) else 0
    if not low <= cast(Any, x) <= high:
        raise DTypeError(f"{name}: {x} cannot be converted to {dtype.name} without overflow; its maximum is {high}.")
    whole: int = int(cast(Any, x))
    return whole if signed else whole % 256  # as in PyTorch, which rejects -256 and wraps -1 to 255


def obtained(make: Callable[[], Any], size: int, pool: Any, place: str) -> Any:
    """Allocate `size` bytes by calling `make`; if that fails, release the cached memory of `pool` and retry once.

    Raises OutOfMemoryError if the retry fails too.
    """
    try:
        return make()
    except MemoryError:
        kept = pool.held
        gc.collect()  # graphs in reference cycles hold memory; collecting them returns it to the pool
        pool.clear()
    try:
        return make()
    except MemoryError:
        raise OutOfMemoryError(
            f"out of memory on the device {place!r}: tried to allocate {size_text(size)}. Tensors hold "
            f"{size_text(pool.used)} there, and {size_text(kept)} of cached memory have been released.\n"
            "  Free tensors (del x, with mg.tidy():), compute in mg.no_grad() what needs no gradient, or use a "
            "smaller batch size."
        ) from None


def size_text(count: int) -> str:
    """Format a size in bytes with a binary unit.

    >>> size_text(512), size_text(1536), size_text(3 << 20)
    ('512 B', '1.5 KiB', '3.0 MiB')
    """
    size, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
