"""The array backends of tensors: NumPy, and Taichi where it is installed.

Other modules use these functions to observe launches and to run custom kernels without importing Taichi.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

import numpy as np

import minigrad.backends.numpy  # noqa: F401 -- registers its kernels
from minigrad.core.effects import EFFECTS, disable_effects
from minigrad.core.storage import DEVICE_BY_ARRAY_TYPE, get_allocator, to_numpy

if find_spec("taichi") is not None:  # Taichi is imported by the first kernel launch, not here
    from minigrad.backends.taichi.codegen import merge as _joining
    from minigrad.backends.taichi.kernels import custom_kernels, shape
    from minigrad.backends.taichi.runtime import driver, kernel, launch_recording

    _HAS_TAICHI = True
else:
    _HAS_TAICHI = False

__all__ = [
    "allow_custom_kernel",
    "capture_module",
    "from_custom_kernel",
    "from_snippet",
    "merge_module",
    "on_launch",
    "to_custom_kernel",
]


def on_launch(callback: Callable[[Any], None]) -> AbstractContextManager[None]:
    """Return a context manager that calls `callback` with each launched kernel, which has a `name` and a `text`."""
    return kernel.observe_launches(callback) if _HAS_TAICHI else nullcontext()


def capture_module(device: str) -> Any:
    """Return the module that captures launches on `device`, or None if unsupported; see `launch_recording`."""
    return launch_recording if _HAS_TAICHI and device not in ("", "numpy") else None


def merge_module(device: str) -> Any:
    """Return the module that merges captured launches into one kernel, or None; see `taichi.codegen.merge`."""
    return _joining if _HAS_TAICHI and device not in ("", "numpy") else None


@contextmanager
def allow_custom_kernel(device: str) -> Iterator[None]:
    """Allow a custom kernel to run on `device` within the block. A captured step records the call of the kernel, not
    its reads and allocations."""
    taichi_context = driver.user_kernels(device) if _HAS_TAICHI and device != "numpy" else nullcontext()
    with disable_effects(*(name for name in EFFECTS if name != "kernel_called")), taichi_context:
        yield


def from_snippet(op: str, inputs: tuple[str, ...], attrs: tuple[str, ...], snippet: str) -> Callable[..., Any]:
    """Compile a Taichi expression to the kernel of an elementwise operation. Raises ArgumentError if it is invalid."""
    return custom_kernels.from_snippet(op, inputs, attrs, snippet)


def to_custom_kernel(device: str, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Convert the operands of a custom kernel to contiguous arrays on ``cpu``, or to NumPy copies on a GPU."""
    if device == "numpy":
        return inputs
    convert = shape.as_contiguous if device == "cpu" else to_numpy
    return tuple([convert(x) if x.__class__ in DEVICE_BY_ARRAY_TYPE else x for x in inputs])


def from_custom_kernel(device: str, result: Any) -> Any:
    """Copy the result of a custom kernel to `device`."""
    if isinstance(result, tuple):
        return tuple([from_custom_kernel(device, item) for item in result])
    is_host_array = type(result) is np.ndarray or isinstance(result, np.generic)  # NumPy turns 0-d arrays into scalars
    return (
        get_allocator(device).copy(np.asarray(result)) if is_host_array and device not in ("numpy", "cpu") else result
    )
