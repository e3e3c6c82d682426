"""The device name, type aliases and the dtype of indices, shared by all kernel modules."""

from typing import Any

import numpy as np

__all__ = ["DEVICE", "Array", "Dims", "Shape", "as_indices"]

DEVICE = "numpy"

Array = Any  # an ndarray or a NumPy scalar
Shape = tuple[int, ...]
Dims = tuple[int, ...]


def as_indices(a: Array) -> Array:
    """Convert indices that NumPy computed to int64, as in PyTorch: NumPy's are as wide as a pointer.

    >>> as_indices(np.argmax([1.0, 3.0, 2.0])).dtype
    dtype('int64')
    """
    return a.astype(np.int64, copy=False)
