"""Kernels of linear algebra: NumPy's, which are BLAS's."""

from __future__ import annotations

import numpy as np

from minigrad.kernels import kernel

__all__: list[str] = []

kernel("matmul", "numpy")(np.matmul)
