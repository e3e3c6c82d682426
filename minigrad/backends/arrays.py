"""The array backends of tensors: NumPy, and Taichi where it is installed.

The functions here let the rest of minigrad observe launches and run custom kernels without importing Taichi.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

import numpy as np

import minigrad.backends.numpy  # noqa: F401 -- registers its kernels
from minigrad.core.effects import EFFECTS, unheard
from minigrad.core.storage import PLACES, host, memory

if find_spec("taichi") is not None:  # does not import Taichi: the first kernel launch does
    from minigrad.backends.taichi.codegen import joining as _joining
    from minigrad.backends.taichi.kernels import own, shape
    from minigrad.backends.taichi.runtime import driver, kernel, recording

    _compiles = True
else:
    _compiles = False

__all__ = ["for_reader", "from_reader", "from_snippet", "joining", "launches", "readers_own", "recordings"]


def launches(listener: Callable[[Any], None]) -> AbstractContextManager[None]:
    """Return a context manager that calls `listener` with each launched kernel, which has a `name` and a `text`."""
    return kernel.launches(listener) if _compiles else nullcontext()


def recordings(device: str) -> Any:
    """Return the module that captures launches on `device`, or None if unsupported; see `taichi.runtime.recording`."""
    return recording if _compiles and device not in ("", "numpy") else None


def joining(device: str) -> Any:
    """Return the module that merges captured launches into one kernel, or None; see `taichi.codegen.joining`."""
    return _joining if _compiles and device not in ("", "numpy") else None


@contextmanager
def readers_own(device: str) -> Iterator[None]:
    """Allow a custom kernel to run on `device` within the block. A captured step records the call of the kernel, not
    its reads and allocations."""
    own = driver.readers_own(device) if _compiles and device != "numpy" else nullcontext()
    with unheard(*(name for name in EFFECTS if name != "kernel_called")), own:
        yield


def from_snippet(op: str, inputs: tuple[str, ...], attrs: tuple[str, ...], snippet: str) -> Callable[..., Any]:
    """Compile a Taichi expression to the kernel of an elementwise operation. Raises ArgumentError if it is invalid."""
    return own.from_snippet(op, inputs, attrs, snippet)


def for_reader(device: str, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Convert operands for a custom kernel: to contiguous arrays on ``cpu``, to NumPy copies for a GPU."""
    if device == "numpy":
        return inputs
    take = shape.in_rows if device == "cpu" else host
    return tuple([take(x) if x.__class__ in PLACES else x for x in inputs])


def from_reader(device: str, result: Any) -> Any:
    """Copy the result of a custom kernel to `device`."""
    if isinstance(result, tuple):
        return tuple([from_reader(device, one) for one in result])
    made = type(result) is np.ndarray or isinstance(result, np.generic)  # NumPy turns 0-d arrays into scalars
    return memory(device).copied(np.asarray(result)) if made and device not in ("numpy", "cpu") else result
