"""Where a device ends: how many numbers it counts, and how much memory it has; and where a type of numbers does."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from math import prod
from numbers import Integral, Real
from typing import Any, cast

from minigrad.core.errors import DTypeError, OutOfMemoryError, ShapeError, a_kind

__all__ = ["MOST", "beyond", "check_count", "number", "obtained", "size_text"]

# The most numbers of an array on a device of Taichi's, which counts them in 32 bits. Its loops, and ours, round a count
# up to whole stretches: of 2**31 - 1 numbers they silently leave almost all out.
MOST = 2**31 - 2**16


def check_count(shape: tuple[int, ...], place: str, asked: str = "") -> None:
    """Raise ShapeError if an array of `shape` has more numbers than a device can count."""
    if len(shape) > 64:
        raise ShapeError(f"{asked and f'{asked}: '}a tensor has at most 64 dimensions, and here are {len(shape)}.")
    if 0 in shape and prod(filter(None, shape)) >= 2**60:  # NumPy counts them without the 0
        raise ShapeError(f"{asked and f'{asked}: '}shape {shape} has sizes beside its 0 that cannot be counted.")
    if place == "numpy" and prod(shape) >= 2**60:
        raise ShapeError(f"{asked and f'{asked}: '}shape {shape} has {prod(shape):,} numbers, more than any memory.")
    if place != "numpy" and prod(shape) > MOST:
        raise ShapeError(
            f"{asked and f'{asked}: '}shape {shape} has {prod(shape):,} numbers, and the device {place!r} counts to "
            f'{MOST:,} in a tensor.\n  Make several smaller ones, or one with device="numpy".'
        )


_BEYOND = ("array is too big", "Maximum allowed dimension", "iterator is too large", "negative dimensions are not")


_TOO_MANY_DIMENSIONS = ("maximum supported dimension", "number of dimensions must be within")


def beyond(
    kernel: Callable[..., Any], inputs: tuple[Any, ...], attrs: Mapping[str, Any], error: ValueError
) -> ShapeError | None:
    """What to say of `error` if by it NumPy says that a result has too many bytes to count, or too many dimensions."""
    if not str(error).startswith(_BEYOND + _TOO_MANY_DIMENSIONS):
        return None
    shapes = " and ".join(str(x.shape) for x in inputs if hasattr(x, "shape"))
    given = "".join(f", {name}={x!r}" for name, x in attrs.items())
    name = getattr(kernel, "__name__", "")
    asked = f"{name if name.isidentifier() else 'a view'}: of shape {shapes}{given} the result would have"
    if str(error).startswith(_TOO_MANY_DIMENSIONS):
        return ShapeError(f"{asked} more than 64 dimensions, the most there are.")
    return ShapeError(
        f"{asked} 2**63 bytes or more, which cannot be counted.\n"
        "  Sizes of a view count, too, and so do those beside a size of 0."
    )


def number(name: str, x: Any, dtype: Any) -> float:
    """A number as one of `dtype`. Raises DTypeError, for what is called `name`, if it is none or does not fit."""
    if not isinstance(x, Real):
        raise DTypeError(f"{name}: {a_kind(x)} is neither a tensor nor a number.\n  Make it one: mg.tensor(x).")
    if dtype.kind != 1:
        kind: Any = float if dtype.kind else bool
        return cast(float, x if x.__class__ is kind else kind(x))  # a symbolic float stays one
    signed = dtype.name != "uint8"
    high = 2 ** (8 * dtype.itemsize - signed) - 1
    low = -high - signed if signed or isinstance(x, Integral) else 0
    if not low <= cast(Any, x) <= high:
        raise DTypeError(f"{name}: {x} does not fit into numbers of type {dtype.name}, which end at {high}.")
    whole: int = int(cast(Any, x))
    return whole if signed else whole % 256  # as in PyTorch, which refuses -256 and lets -1 be 255


def obtained(make: Callable[[], Any], size: int, pool: Any, place: str) -> Any:
    """What `make` gives, memory of `size` bytes; if the device refuses, once more without what its `pool` keeps.

    Raises OutOfMemoryError if it still does.
    """
    try:
        return make()
    except MemoryError:
        kept = pool.held
        gc.collect()  # graphs in cycles hold memory, and give it to the pool
        pool.clear()
    try:
        return make()
    except MemoryError:
        raise OutOfMemoryError(
            f"{size_text(size)} were asked for on the device {place!r}, which has no more. Tensors hold "
            f"{size_text(pool.used)} there, and {size_text(kept)} that were kept for later have been given back.\n"
            "  Let go of tensors (del x, with mg.tidy():), compute in mg.no_grad() what needs no gradient, or take "
            "smaller batches."
        ) from None


def size_text(count: int) -> str:
    """A number of bytes as people say it.

    >>> size_text(512), size_text(1536), size_text(3 << 20)
    ('512 B', '1.5 KiB', '3.0 MiB')
    """
    size, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
