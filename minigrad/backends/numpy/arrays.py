"""Type aliases and the device name shared by all kernel modules."""

from typing import Any

__all__ = ["DEVICE", "Array", "Dims", "Shape"]

DEVICE = "numpy"

Array = Any  # an ndarray or a NumPy scalar
Shape = tuple[int, ...]
Dims = tuple[int, ...]
