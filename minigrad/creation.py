"""Tensors from numbers: PyTorch's functions that make one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad._tensor import Tensor, wrap
from minigrad.dtypes import DType, as_dtype, get_default_dtype, of_number
from minigrad.errors import DTypeError, ShapeError

__all__ = ["from_numpy", "full", "ones", "tensor", "zeros"]


def tensor(data: Any, *, dtype: DType | None = None, requires_grad: bool = False) -> Tensor:
    """A new tensor that holds a copy of `data`: a number, nested sequences of numbers, a NumPy array or a tensor.

    Without `dtype`, Python's floats become the default float, ints int64 and bools bool; arrays keep their type.
    Raises ShapeError for rows of different lengths, DTypeError for what is not a number.

    >>> tensor([[1.0, 2.0], [3.0, 4.0]]).shape
    (2, 2)
    """
    if isinstance(data, Tensor):
        array = data._array
    elif isinstance(data, np.ndarray | np.generic):
        array = np.asarray(data)
    else:
        try:
            array = np.asarray(data)
        except ValueError:
            raise ShapeError(f"tensor: rows of different lengths make no tensor: {data!r:.200}.") from None
        if dtype is None and array.dtype.kind in "biuf":
            kind = {"b": True, "i": 1, "u": 1, "f": 1.0}[array.dtype.kind]
            dtype = get_default_dtype() if array.size == 0 else of_number(kind)
    if array.dtype.kind not in "biuf":
        raise DTypeError(f"tensor: {data!r:.200} holds {array.dtype}, not numbers.")
    out = wrap(np.array(array, dtype=as_dtype(array.dtype if dtype is None else dtype).name, order="C"))
    return out.requires_grad_() if requires_grad else out


def from_numpy(array: Any) -> Tensor:
    """A tensor that shares the memory of a NumPy array: a write to either shows in the other."""
    if not isinstance(array, np.ndarray):
        raise DTypeError(f"from_numpy: {array!r:.200} is a {type(array).__name__}, not a NumPy array; see mg.tensor.")
    as_dtype(array.dtype)  # raises for a type that minigrad has not
    return wrap(array)


def full(size: Sequence[int], fill_value: float, *, dtype: DType | None = None, requires_grad: bool = False) -> Tensor:
    """A tensor of shape `size` in which every number is `fill_value`."""
    kind = of_number(fill_value) if dtype is None else as_dtype(dtype)
    out = wrap(np.full(tuple(size), fill_value, kind.name))
    return out.requires_grad_() if requires_grad else out


def zeros(*size: int, dtype: DType | None = None, requires_grad: bool = False) -> Tensor:
    """A tensor of zeros, as in ``zeros(2, 3)``."""
    return full(_size(size), 0.0, dtype=dtype, requires_grad=requires_grad)


def ones(*size: int, dtype: DType | None = None, requires_grad: bool = False) -> Tensor:
    """A tensor of ones, as in ``ones(2, 3)``."""
    return full(_size(size), 1.0, dtype=dtype, requires_grad=requires_grad)


def _size(size: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], Sequence) else size
