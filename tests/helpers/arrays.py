"""Arrays with distinct elements."""

import numpy as np

__all__ = ["arange"]


def arange(*shape):
    return np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
