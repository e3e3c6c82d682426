"""The device ``cpu``: kernels that Taichi compiles for this machine, on memory that NumPy sees too.

Importing this loads no Taichi: the first launch of a kernel does.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np

from minigrad.backends.taichi.array import Block, CpuArray, empty, like
from minigrad.backends.taichi.array import pool as memory_pool
from minigrad.kernels import Kernel, kernels_of, raw_numbers, runner
from minigrad.storage import Memory, add_memory

__all__ = ["DEVICE"]

DEVICE = "cpu"
add_memory(
    DEVICE,
    CpuArray,
    Memory(empty, lambda array: array.view(CpuArray), like, lambda array: array.view(np.ndarray), Block, memory_pool),
)


@runner(DEVICE)
def run(kernel: Kernel, inputs: tuple[Any, ...], attrs: Mapping[str, Any], out: Any = None) -> Any:
    """Call `kernel`; write into `out` where that is given."""
    if out is None:
        return kernel(*inputs, **attrs)
    if "out" in (getattr(kernel, "__kwdefaults__", None) or ()):
        return kernel(*inputs, **attrs, out=out)
    kernels_of("copy")[DEVICE](out, kernel(*inputs, **attrs), out=out)
    return out


def run_raw(kernel: Kernel, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
    return kernel(*inputs, **attrs)


raw_numbers(DEVICE, (CpuArray,), run_raw, nullcontext)


from minigrad.backends.taichi import (  # noqa: E402 -- each registers its kernels
    attention,  # noqa: F401
    conv,  # noqa: F401
    elementwise,  # noqa: F401
    indexing,  # noqa: F401
    loss,  # noqa: F401
    matmul,  # noqa: F401
    norms,  # noqa: F401
    pool,  # noqa: F401
    random,  # noqa: F401
    reduce,  # noqa: F401
    rows,  # noqa: F401
    running,  # noqa: F401
    sampling,  # noqa: F401
    shape,  # noqa: F401
    sorting,  # noqa: F401
)
