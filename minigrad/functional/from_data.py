"""Convert data that users pass (scalars, nested lists, arrays) to NumPy arrays, with checks of dtype and range."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from minigrad.backends.limits import TOO_MANY_BYTES, is_size_error
from minigrad.core.dtypes import DType, as_dtype, dtype_of_scalar, get_default_dtype
from minigrad.core.errors import DTypeError, OutOfMemoryError, ShapeError, describe_type
from minigrad.core.storage import to_numpy
from minigrad.core.tensor import Tensor

__all__ = ["array_from_data", "check_integer_range", "convert_memory_errors", "dtype_name", "to_python_scalar"]


def array_from_data(data: Any, dtype: DType | None, func_name: str) -> Any:
    """Convert `data` to an array of a dtype that tensors support, sharing memory if possible."""
    if isinstance(data, Tensor):
        array = to_numpy(data._array)
    elif isinstance(data, np.ndarray | np.generic):
        array = np.asarray(data)
    else:
        try:
            array = np.asarray(data)
        except ValueError:
            raise ShapeError(
                f"{func_name}: expected nested sequences of equal length, but got {data!r:.200}."
            ) from None
        if dtype is None and array.dtype.kind in "biuf":
            sample = {"b": True, "i": 1, "u": 1, "f": 1.0}[array.dtype.kind]
            dtype = get_default_dtype() if array.size == 0 else dtype_of_scalar(sample)
        check_integer_range(array, as_dtype(dtype) if dtype is not None else None, func_name)
    if array.dtype.kind not in "biuf":
        raise DTypeError(f"{func_name}: {data!r:.200} {_describe_invalid_data(data)}")
    return np.asarray(array, dtype=as_dtype(array.dtype if dtype is None else dtype).name)


def check_integer_range(array: Any, dtype: DType | None, func_name: str) -> None:
    """Raise DTypeError if the integer `dtype` cannot represent a value in `array`, built from Python scalars."""
    if dtype is None or dtype.kind != 1 or array.dtype.kind not in "iuf" or not array.size:
        return
    limits, low, high = np.iinfo(dtype.name), array.min(), array.max()
    if not (limits.min <= low and high < limits.max + 1):  # False for nan
        out_of_range = high if limits.min <= low else low
        raise DTypeError(
            f"{func_name}: value {out_of_range} cannot be converted to type {dtype.name} without overflow, "
            f"its range is {limits.min} to {limits.max}."
        )


def _describe_invalid_data(data: Any) -> str:
    """Describe why `data` is not numeric, naming the first offending item."""
    item = data
    while isinstance(item, list | tuple):
        item = next((x for x in item if not isinstance(x, int | float) or abs(x) >= 2**63), None)
    if hasattr(item, "detach"):
        return "contains Values, whose graph would be lost.\n  Write mg.tensor([x.data for x in values])."
    if isinstance(item, int):
        return f"contains {item}, which overflows int64 (maximum {2**63 - 1}).\n  Write it as a float."
    type_name = f"NumPy's {item.dtype}" if hasattr(item, "dtype") else describe_type(item)
    verb = "is" if item is data else "contains"
    return f"{verb} {type_name}, which is an invalid data type.\n  Use ints, floats and bools in nested lists."


def dtype_name(dtype: DType | None) -> str:
    return (get_default_dtype() if dtype is None else as_dtype(dtype)).name


def to_python_scalar(x: Any, func_name: str) -> Any:
    scalar = x.item() if hasattr(x, "item") else x
    if not isinstance(scalar, int | float):
        raise DTypeError(f"{func_name}: {x!r} is {describe_type(x)}, not a number.")
    return scalar


@contextmanager
def convert_memory_errors(func_name: str) -> Iterator[None]:
    """Context manager that converts NumPy's MemoryError to OutOfMemoryError, and that for its limits to ShapeError."""
    try:
        yield
    except MemoryError as error:
        if isinstance(error, OutOfMemoryError):
            raise
        raise OutOfMemoryError(f"{func_name}: {error}") from None
    except ValueError as error:
        if not is_size_error(error):
            raise
        raise ShapeError(f"{func_name}: the result would have {TOO_MANY_BYTES}") from None
