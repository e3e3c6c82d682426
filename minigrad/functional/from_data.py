"""Convert data that users pass (scalars, nested lists, arrays) to NumPy arrays, with checks of dtype and range."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from minigrad.core.dtypes import DType, as_dtype, get_default_dtype, of_number
from minigrad.core.errors import DTypeError, OutOfMemoryError, ShapeError, a_kind
from minigrad.core.storage import host
from minigrad.core.tensor import Tensor

__all__ = ["array_of", "check_fit", "dtype_name", "memory_for", "plain_number"]


def array_of(data: Any, dtype: DType | None, asked: str) -> Any:
    """Convert `data` to an array of a dtype that tensors support, sharing memory if possible."""
    if isinstance(data, Tensor):
        array = host(data._array)
    elif isinstance(data, np.ndarray | np.generic):
        array = np.asarray(data)
    else:
        try:
            array = np.asarray(data)
        except ValueError:
            raise ShapeError(f"{asked}: expected nested sequences of equal length, but got {data!r:.200}.") from None
        if dtype is None and array.dtype.kind in "biuf":
            kind = {"b": True, "i": 1, "u": 1, "f": 1.0}[array.dtype.kind]
            dtype = get_default_dtype() if array.size == 0 else of_number(kind)
        check_fit(array, as_dtype(dtype) if dtype is not None else None, asked)
    if array.dtype.kind not in "biuf":
        raise DTypeError(f"{asked}: {data!r:.200} {_unfit(data)}")
    return np.asarray(array, dtype=as_dtype(array.dtype if dtype is None else dtype).name)


def check_fit(array: Any, dtype: DType | None, asked: str) -> None:
    """Raise DTypeError if the integer `dtype` cannot represent a value in `array`, built from Python scalars."""
    if dtype is None or dtype.kind != 1 or array.dtype.kind not in "iuf" or not array.size:
        return
    ends, low, high = np.iinfo(dtype.name), array.min(), array.max()
    if not (ends.min <= low and high < ends.max + 1):  # False for nan
        wrong = high if ends.min <= low else low
        raise DTypeError(
            f"{asked}: value {wrong} cannot be converted to type {dtype.name} without overflow, "
            f"its range is {ends.min} to {ends.max}."
        )


def _unfit(data: Any) -> str:
    """Describe why `data` is not numeric, by the first offending item."""
    found = data
    while isinstance(found, list | tuple):
        found = next((x for x in found if not isinstance(x, int | float) or abs(x) >= 2**63), None)
    if hasattr(found, "detach"):
        return "contains Values, whose graph would be lost.\n  Write mg.tensor([x.data for x in values])."
    if isinstance(found, int):
        return f"contains {found}, which overflows int64 (maximum {2**63 - 1}).\n  Write it as a float."
    kind = f"NumPy's {found.dtype}" if hasattr(found, "dtype") else a_kind(found)
    what = "is" if found is data else "contains"
    return f"{what} {kind}, which is an invalid data type.\n  Use ints, floats and bools in nested lists."


def dtype_name(dtype: DType | None) -> str:
    return (get_default_dtype() if dtype is None else as_dtype(dtype)).name


def plain_number(x: Any, asked: str) -> Any:
    number = x.item() if hasattr(x, "item") else x
    if not isinstance(number, int | float):
        raise DTypeError(f"{asked}: {x!r} is {a_kind(x)}, not a number.")
    return number


@contextmanager
def memory_for(asked: str) -> Iterator[None]:
    """Context manager that converts NumPy's MemoryError to OutOfMemoryError."""
    try:
        yield
    except MemoryError as error:
        if isinstance(error, OutOfMemoryError):
            raise
        raise OutOfMemoryError(f"{asked}: {error}") from None
