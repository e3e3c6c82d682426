"""What every module of kernels speaks of."""

from typing import Any

__all__ = ["DEVICE", "Array", "Dims", "Shape"]

DEVICE = "numpy"

Array = Any  # an ndarray, or a number of NumPy's
Shape = tuple[int, ...]
Dims = tuple[int, ...]
