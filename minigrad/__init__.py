"""minigrad: a place to see automatic differentiation.

>>> import minigrad as mg
>>> a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
>>> c = a * b
>>> c.backward()
>>> a.grad, b.grad
(-3.0, 2.0)
"""

import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from math import e, inf, nan, pi
from types import ModuleType
from typing import Any

from minigrad import _blocks, autograd, cuda, data, errors, lessons, nn, ops
from minigrad.autograd import detect_anomaly, events, grad
from minigrad.check import gradcheck, gradgradcheck
from minigrad.dtypes import (
    float32,
    float64,
    get_default_dtype,
    int32,
    int64,
    set_default_dtype,
    uint8,
)
from minigrad.graph import (
    Event,
    Recording,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    record,
    scope,
    set_grad_enabled,
    strict_shapes,
    topological,
)
from minigrad.kernels import dispatch, synchronize, tap
from minigrad.op import OPS, Domain, Op
from minigrad.ops import (
    abs,
    cos,
    exp,
    log,
    maximum,
    minimum,
    relu,
    sigmoid,
    sign,
    sin,
    sqrt,
    tanh,
)
from minigrad.own import kernel
from minigrad.packages import explained
from minigrad.pytree import register_pytree_node
from minigrad.storage import device
from minigrad.value import Value

__version__ = "0.1.0"
_blocks.listen()
newaxis = None
Size: type[tuple[int, ...]] = tuple
"""PyTorch's name for what ``x.shape`` is, which is a plain tuple here."""


@explained()
def __getattr__(name: str) -> Any:
    """Tensors load NumPy, so they come when they are first asked for: `import minigrad` works without it."""
    if not name.startswith("_"):
        if PathFinder.find_spec(f"minigrad.{name}", __path__) is not None:
            if name in ("random", "creation") and find_spec("numpy"):
                import_module("minigrad.functional")  # which gives tensors their methods
            return import_module(f"minigrad.{name}")
        for room in _rooms():
            if name in room.__all__:
                globals()[name] = found = getattr(room, name)
                return found
    from minigrad.pytorch.modules import absent

    if find_spec("numpy"):
        return absent(__name__, name)
    without = f"module 'minigrad' has no attribute {name!r}; its tensors need NumPy, which is not installed"
    raise AttributeError(without, name=name, obj=sys.modules[__name__])


class _PyTorchs:
    """Finds modules that PyTorch has and for which there is no file; it is asked last. See `pytorch.modules`."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        parent = sys.modules.get(name.rpartition(".")[0])
        if not name.startswith("minigrad.") or PathFinder.find_spec(name, getattr(parent, "__path__", None)):
            return None  # the latter where somebody asks for a file in another way, as pytest does
        from minigrad.pytorch.modules import spec_of

        return spec_of(name)


sys.meta_path.append(_PyTorchs)


def __dir__() -> list[str]:
    """What there is to ask for: the names listed here, and those that come with the tensors."""
    listed = [name for room in _rooms() if room.__name__ not in _INNER for name in room.__all__ if name != "METHODS"]
    return sorted(
        {*__all__, *listed, *(("Tensor", "functional", "optim") if find_spec("numpy") else ()), "__version__"}
    )


def _rooms() -> Iterator[ModuleType]:
    """Where the public names are that are not here. The first that has one gives it."""
    tensors = (
        ("functional", "_tensor", "creation", "random", "engine", "sources", "tidying", "io", "tape", "_jit")
        if find_spec("numpy")
        else ()
    )
    for room in (*tensors, "dtypes", "ops"):
        yield import_module(f"minigrad.{room}")


_INNER = ("minigrad._tensor", "minigrad.ops")  # whose names are for those who look inside, but for a few


__all__ = [
    "OPS",
    "Domain",
    "Event",
    "Op",
    "Recording",
    "Size",
    "Value",
    "abs",
    "autograd",
    "cos",
    "cuda",
    "data",
    "detect_anomaly",
    "device",
    "dispatch",
    "e",
    "enable_grad",
    "errors",
    "events",
    "exp",
    "float32",
    "float64",
    "get_default_dtype",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inf",
    "inference_mode",
    "int32",
    "int64",
    "is_grad_enabled",
    "kernel",
    "lessons",
    "log",
    "maximum",
    "minimum",
    "nan",
    "newaxis",
    "nn",
    "no_grad",
    "ops",
    "pi",
    "pow",
    "record",
    "register_pytree_node",
    "relu",
    "scope",
    "set_default_dtype",
    "set_grad_enabled",
    "sigmoid",
    "sign",
    "sin",
    "sqrt",
    "strict_shapes",
    "synchronize",
    "tanh",
    "tap",
    "topological",
    "uint8",
    "where",
]
