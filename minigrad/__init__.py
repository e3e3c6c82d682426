"""minigrad: automatic differentiation that you can inspect.

>>> import minigrad as mg
>>> a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
>>> c = a * b
>>> c.backward()
>>> a.grad, b.grad
(-3.0, 2.0)
"""

import sys
import warnings
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from math import e, inf, nan, pi
from types import ModuleType
from typing import Any

import minigrad.backends.python  # noqa: F401 -- registers the kernels of Values
from minigrad import autograd, data, lessons, nn, ops
from minigrad.autograd import detect_anomaly, events, grad, gradcheck, gradgradcheck
from minigrad.backends.custom import kernel
from minigrad.core import errors, modes
from minigrad.core.dispatch import dispatch, synchronize, tap
from minigrad.core.dtypes import (
    float32,
    float64,
    get_default_dtype,
    int32,
    int64,
    set_default_dtype,
    uint8,
)
from minigrad.core.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    scope,
    set_grad_enabled,
    strict_shapes,
)
from minigrad.core.graph import Event, Recording, record, topological
from minigrad.core.op import OPS, Domain, Op
from minigrad.core.packages import explained
from minigrad.core.storage import device
from minigrad.core.value import Value
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
from minigrad.utils.pytree import register_pytree_node

__version__ = "0.1.0"
modes.listen()
newaxis = None
Size: type[tuple[int, ...]] = tuple
"""PyTorch's name for the type of ``x.shape``, here a plain tuple."""


# Module aliases: public ones, then the old names of moved modules, which work for one release.
_ALIASES = {"cuda": "pytorch.cuda", "errors": "core.errors"}
_MOVED = {
    "check": "autograd.gradcheck",
    "creation": "functional.creation",
    "distributed.sweeps.table": "distributed.sweeps.progress",
    "dtypes": "core.dtypes",
    "effects": "core.effects",
    "engine": "profiling",
    "generators": "random.generators",
    "graph": "core.graph",
    "kernels": "core.dispatch",
    "layout": "core.shapes",
    "op": "core.op",
    "own": "backends.custom",
    "packages": "core.packages",
    "pytree": "utils.pytree",
    "sources": "profiling.source",
    "storage": "core.storage",
    "tape": "compiler.tape",
    "tidying": "profiling.tidying",
    "value": "core.value",
    "views": "core.views",
}
# The new modules of names that moved out of a module, and the names that were also renamed.
_LEFT = {"engine": "core.storage", "graph": "core.grad_mode", "op": "core.rules", "storage": "core.storage"}
_RENAMED = {"Memory": "Allocator", "Plan": "SavePlan"}


@explained()
def __getattr__(name: str) -> Any:
    """Import tensors, and so NumPy, on first use: `import minigrad` works without NumPy."""
    if not name.startswith("_"):
        if PathFinder.find_spec(f"minigrad.{name}", __path__) is not None:
            if name == "random" and find_spec("numpy"):
                import_module("minigrad.functional")  # adds the tensor methods
            return import_module(f"minigrad.{name}")
        for module in _lazy():
            if name in module.__all__:
                globals()[name] = found = getattr(module, name)
                return found
        if name in _ALIASES:
            return import_module(f"minigrad.{name}")
        if name in _MOVED and name not in ("layout", "storage"):  # also in PyTorch: `absent` suggests alternatives
            _warn_of(name, 4)  # above `explained`
            return _moved(name)
    from minigrad.pytorch.modules import absent

    if find_spec("numpy"):
        return absent(__name__, name)
    without = f"module 'minigrad' has no attribute {name!r}; its tensors need NumPy, which is not installed"
    raise AttributeError(without, name=name, obj=sys.modules[__name__])


def _warn_of(name: str, stacklevel: int) -> None:
    said = f"minigrad.{name} has moved to minigrad.{_MOVED[name]}; the old name will be removed in the next release."
    warnings.warn(said, DeprecationWarning, stacklevel=stacklevel)


def _moved(name: str) -> ModuleType:
    """Return the module behind `name`, with access to the names that moved out of it."""
    module = import_module(f"minigrad.{_ALIASES.get(name) or _MOVED[name]}")
    if name in _LEFT:
        vars(module)["__getattr__"] = partial(_departed, name, import_module(f"minigrad.{_LEFT[name]}"))
    return module


def _departed(old: str, new: ModuleType, name: str) -> Any:
    """Return `name`, which moved from the module `old` to `new`."""
    now = _RENAMED.get(name, name)
    if now not in new.__all__:
        raise AttributeError(f"module 'minigrad.{old}' has no attribute {name!r}", name=name)
    said = f"minigrad.{old}.{name} has moved to {new.__name__}.{now}; the old name will be removed in the next release."
    warnings.warn(said, DeprecationWarning, stacklevel=2)
    return getattr(new, now)


class _Alias(Loader):
    """Loader that imports a module under another name, without a copy."""

    def exec_module(self, module: ModuleType) -> None:
        """Replace the module in ``sys.modules``."""
        sys.modules[module.__name__] = _moved(module.__name__.removeprefix("minigrad."))


class _Finder:
    """Finder of last resort for modules without a file: aliases, and PyTorch's (`pytorch.modules`)."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        package, _, last = name.partition(".")
        if package != "minigrad":
            return None
        if last in _ALIASES or last in _MOVED:
            if last in _MOVED:
                _warn_of(last, 3)
            return ModuleSpec(name, _Alias())
        parent = sys.modules.get(name.rpartition(".")[0])
        if PathFinder.find_spec(name, getattr(parent, "__path__", None)):
            return None  # for importers that look for the file themselves, as pytest does
        from minigrad.pytorch.modules import spec_of

        return spec_of(name)


sys.meta_path.append(_Finder)


def __dir__() -> list[str]:
    """Return the public names, including those that need tensors."""
    listed = [name for module in _lazy() if module.__name__ not in _INNER for name in module.__all__]
    return sorted(
        {*__all__, *listed, *(("Tensor", "functional", "optim") if find_spec("numpy") else ()), "__version__"}
    )


def _lazy() -> Iterator[ModuleType]:
    """Yield the lazily imported modules with public names, in order of lookup."""
    tensors = (
        *("functional", "core.tensor", "functional.creation", "random", "profiling", "io", "compiler.tape"),
        "compiler.jit",
    )
    for module in (*(tensors if find_spec("numpy") else ()), "core.dtypes", "ops"):
        yield import_module(f"minigrad.{module}")


_INNER = ("minigrad.core.tensor", "minigrad.ops")  # internal, except for a few names


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
