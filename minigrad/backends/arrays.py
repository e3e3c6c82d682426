"""The devices that have arrays, of which tensors are made: NumPy's, and Taichi's where it is installed."""

from importlib.util import find_spec

import minigrad.backends.numpy

if find_spec("taichi") is not None:
    import minigrad.backends.taichi  # noqa: F401 -- loads no Taichi: the first launch of a kernel does

__all__: list[str] = []
