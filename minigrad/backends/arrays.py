"""The devices that have arrays, of which tensors are made: NumPy's, and Taichi's where it is installed.

What the rest asks of Taichi's without knowing it: which texts are launched, and kernels that readers write.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

import numpy as np

import minigrad.backends.numpy  # noqa: F401 -- registers its kernels
from minigrad.core.effects import EFFECTS, unheard
from minigrad.core.storage import PLACES, host, memory

if find_spec("taichi") is not None:  # loads no Taichi: the first launch of a kernel does
    from minigrad.backends.taichi.codegen import joining as _joining
    from minigrad.backends.taichi.kernels import own, shape
    from minigrad.backends.taichi.runtime import driver, kernel, recording

    _compiles = True
else:
    _compiles = False

__all__ = ["for_reader", "from_reader", "from_snippet", "joining", "launches", "readers_own", "recordings"]


def launches(listener: Callable[[Any], None]) -> AbstractContextManager[None]:
    """A block in which `listener` is told of each compiled kernel, which has a `name` and a `text`, when it runs."""
    return kernel.launches(listener) if _compiles else nullcontext()


def recordings(device: str) -> Any:
    """What records the launches of a run on `device`, None where it cannot be; see `taichi.runtime.recording`."""
    return recording if _compiles and device not in ("", "numpy") else None


def joining(device: str) -> Any:
    """What makes one kernel of recorded launches, None where that cannot be done; see `taichi.codegen.joining`."""
    return _joining if _compiles and device not in ("", "numpy") else None


@contextmanager
def readers_own(device: str) -> Iterator[None]:
    """A block in which a reader's own kernel may run on `device`. A step that is recorded hears of its call, and not of
    what it reads and makes."""
    own = driver.readers_own(device) if _compiles and device != "numpy" else nullcontext()
    with unheard(*(name for name in EFFECTS if name != "kernel_called")), own:
        yield


def from_snippet(op: str, inputs: tuple[str, ...], attrs: tuple[str, ...], snippet: str) -> Callable[..., Any]:
    """The kernel of an elementwise operation from an expression of Taichi's. Raises ArgumentError if it is none."""
    return own.from_snippet(op, inputs, attrs, snippet)


def for_reader(device: str, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a reader's own kernel gets: on ``cpu`` arrays that lie row by row, without gaps; of a GPU NumPy's copies."""
    if device == "numpy":
        return inputs
    take = shape.in_rows if device == "cpu" else host
    return tuple([take(x) if x.__class__ in PLACES else x for x in inputs])


def from_reader(device: str, result: Any) -> Any:
    """What it returned, on the device."""
    if isinstance(result, tuple):
        return tuple([from_reader(device, one) for one in result])
    made = type(result) is np.ndarray or isinstance(
        result, np.generic
    )  # NumPy makes numbers of arrays without dimensions
    return memory(device).copied(np.asarray(result)) if made and device not in ("numpy", "cpu") else result
