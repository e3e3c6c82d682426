"""Bitwise kernels: mostly NumPy functions."""

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array
from minigrad.core.dispatch import kernel

__all__: list[str] = []

kernel("bitwise_and", DEVICE)(np.bitwise_and)
kernel("bitwise_or", DEVICE)(np.bitwise_or)
kernel("bitwise_xor", DEVICE)(np.bitwise_xor)
kernel("bitwise_not", DEVICE)(np.bitwise_not)


@kernel("signbit", DEVICE)
def signbit(a: Array) -> Array:
    return np.signbit(a) if a.dtype.kind == "f" else a < 0
