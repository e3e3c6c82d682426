"""The Taichi device for tests of its kernels: the default device if Taichi computes there, else ``cpu``."""

from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad.backends.devices import GPUS
from minigrad.core.storage import get_allocator

DEVICE = mg.get_default_device() if mg.get_default_device() != "numpy" else "cpu"
ON_GPU = DEVICE in GPUS
in_memory = pytest.mark.needs("NumPy-accessible memory")


def to_device(x: Any) -> Any:
    """Copy a NumPy array to that device; return other objects unchanged."""
    return get_allocator(DEVICE).copy(x) if isinstance(x, np.ndarray) else x
