"""minigrad: a place to see automatic differentiation.

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
"""PyTorch's name for what ``x.shape`` is, which is a plain tuple here."""


# Modules that are found under another name than that of their file: public ones, then those that moved, whose old names
# work for one release.
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
# Where names that were in a module of before are now, and which of them have another name.
_LEFT = {"engine": "core.storage", "graph": "core.grad_mode", "op": "core.rules", "storage": "core.storage"}
_RENAMED = {"Memory": "Allocator", "Plan": "SavePlan"}


@explained()
def __getattr__(name: str) -> Any:
    """Tensors load NumPy, so they come when they are first asked for: `import minigrad` works without it."""
    if not name.startswith("_"):
        if PathFinder.find_spec(f"minigrad.{name}", __path__) is not None:
            if name == "random" and find_spec("numpy"):
                import_module("minigrad.functional")  # which gives tensors their methods
            return import_module(f"minigrad.{name}")
        for module in _lazy():
            if name in module.__all__:
                globals()[name] = found = getattr(module, name)
                return found
        if name in _ALIASES:
            return import_module(f"minigrad.{name}")
        if name in _MOVED and name not in ("layout", "storage"):  # PyTorch's too: `absent` says what to do without
            _warn_of(name, 4)  # above `explained`
            return _moved(name)
    from minigrad.pytorch.modules import absent

    if find_spec("numpy"):
        return absent(__name__, name)
    without = f"module 'minigrad' has no attribute {name!r}; its tensors need NumPy, which is not installed"
    raise AttributeError(without, name=name, obj=sys.modules[__name__])


def _warn_of(name: str, stacklevel: int) -> None:
    said = f"minigrad.{name} is minigrad.{_MOVED[name]} now; the old name goes with the next release."
    warnings.warn(said, DeprecationWarning, stacklevel=stacklevel)


def _moved(name: str) -> ModuleType:
    """Return the module that `name` stands for, which from then on finds the names that have left it."""
    module = import_module(f"minigrad.{_ALIASES.get(name) or _MOVED[name]}")
    if name in _LEFT:
        vars(module)["__getattr__"] = partial(_departed, name, import_module(f"minigrad.{_LEFT[name]}"))
    return module


def _departed(old: str, new: ModuleType, name: str) -> Any:
    """Return `name`, which was in the module `old` and is in `new` now."""
    now = _RENAMED.get(name, name)
    if now not in new.__all__:
        raise AttributeError(f"module 'minigrad.{old}' has no attribute {name!r}", name=name)
    said = f"minigrad.{old}.{name} is {new.__name__}.{now} now; the old name goes with the next release."
    warnings.warn(said, DeprecationWarning, stacklevel=2)
    return getattr(new, now)


class _Alias(Loader):
    """Imports a module under another name: it is one module, not a copy."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the module where `import` looks for the result."""
        sys.modules[module.__name__] = _moved(module.__name__.removeprefix("minigrad."))


class _Finder:
    """Finds modules for which there is no file: aliases, and PyTorch's (`pytorch.modules`). It is asked last."""

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
            return None  # where somebody asks for a file in another way, as pytest does
        from minigrad.pytorch.modules import spec_of

        return spec_of(name)


sys.meta_path.append(_Finder)


def __dir__() -> list[str]:
    """What there is to ask for: the names listed here, and those that come with the tensors."""
    listed = [name for module in _lazy() if module.__name__ not in _INNER for name in module.__all__]
    return sorted(
        {*__all__, *listed, *(("Tensor", "functional", "optim") if find_spec("numpy") else ()), "__version__"}
    )


def _lazy() -> Iterator[ModuleType]:
    """The modules of the public names that are not here. The first that has one gives it."""
    tensors = (
        *("functional", "core.tensor", "functional.creation", "random", "profiling", "io", "compiler.tape"),
        "compiler.jit",
    )
    for module in (*(tensors if find_spec("numpy") else ()), "core.dtypes", "ops"):
        yield import_module(f"minigrad.{module}")


_INNER = ("minigrad.core.tensor", "minigrad.ops")  # whose names are for those who look inside, but for a few


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
