"""Logic on bits: NumPy's own functions."""

import numpy as np

from minigrad.kernels import kernel

__all__: list[str] = []

DEVICE = "numpy"

kernel("bitwise_and", DEVICE)(np.bitwise_and)
kernel("bitwise_or", DEVICE)(np.bitwise_or)
kernel("bitwise_xor", DEVICE)(np.bitwise_xor)
kernel("bitwise_not", DEVICE)(np.bitwise_not)
