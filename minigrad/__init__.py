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
from minigrad.core.packages import explain_import_errors
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
modes.register_cell_callback()
if sys.platform == "emscripten":
    import_module("minigrad.utils.pyodide").install()
newaxis = None
Size: type[tuple[int, ...]] = tuple
"""The type of ``x.shape``, which is the built-in tuple; the name exists for PyTorch compatibility."""


# Public aliases of modules, and the old names of modules that have moved, which are deprecated for one release.
_ALIASES = {"cuda": "pytorch.cuda", "errors": "core.errors"}
_MOVED_MODULES = {
    "check": "autograd.gradcheck",
    "creation": "functional.creation",
    "data.known": "data.catalogue",
    "distributed.engine": "distributed.ray_runtime",
    "distributed.flat": "distributed.flat_gradients",
    "distributed.sweeps.asking": "distributed.sweeps.launch",
    "distributed.sweeps.table": "distributed.sweeps.progress",
    "distributed.team": "distributed.worker_group",
    "dtypes": "core.dtypes",
    "effects": "core.effects",
    "engine": "profiling",
    "generators": "random.generators",
    "graph": "core.graph",
    "io.pickles": "io.unpickler",
    "io.whole": "io.atomic",
    "kernels": "core.dispatch",
    "layout": "core.shapes",
    "nn.layer": "nn.layer_utils",
    "nn.naming": "nn.call_scopes",
    "nn.printing": "nn.module_repr",
    "nn.stateful": "nn.state_mixin",
    "nn.utils.normed": "nn.utils.weight_norms",
    "op": "core.op",
    "optim.lr_scheduler.joined": "optim.lr_scheduler.composition",
    "own": "backends.custom",
    "packages": "core.packages",
    "pytorch.modules": "pytorch.import_hooks",
    "pytree": "utils.pytree",
    "sources": "profiling.source",
    "storage": "core.storage",
    "tape": "compiler.tape",
    "tidying": "profiling.tidying",
    "value": "core.value",
    "views": "core.views",
}
# Maps each old module to the module that some of its names have moved to, and old names to new ones.
_NEW_MODULES = {"engine": "core.storage", "graph": "core.grad_mode", "op": "core.rules", "storage": "core.storage"}
_RENAMED_NAMES = {
    "Memory": "Allocator",
    "Plan": "SavePlan",
    "keep_lines": "record_lines",
    "keep_operands": "copy_overwritten",
}


@explain_import_errors()
def __getattr__(name: str) -> Any:
    """Import tensors, and so NumPy, on first use: `import minigrad` works without NumPy."""
    if not name.startswith("_"):
        if PathFinder.find_spec(f"minigrad.{name}", __path__) is not None:
            if name == "random" and find_spec("numpy"):
                import_module("minigrad.functional")  # adds the tensor methods
            return import_module(f"minigrad.{name}")
        for module in _lazy_modules():
            if name in module.__all__:
                globals()[name] = attribute = getattr(module, name)
                return attribute
        if name in _ALIASES:
            return import_module(f"minigrad.{name}")
        # `resolve_missing` suggests alternatives for the names that PyTorch has too.
        if name in _MOVED_MODULES and name not in ("layout", "storage"):
            _warn_moved(name, 4)  # above `explain_import_errors`
            return _import_moved(name)
    from minigrad.pytorch.import_hooks import resolve_missing

    if find_spec("numpy"):
        return resolve_missing(__name__, name)
    message = f"module 'minigrad' has no attribute {name!r}; its tensors need NumPy, which is not installed"
    raise AttributeError(message, name=name, obj=sys.modules[__name__])


def _warn_moved(name: str, stacklevel: int) -> None:
    message = (
        f"minigrad.{name} has moved to minigrad.{_MOVED_MODULES[name]}; the old name will be removed in the next "
        "release."
    )
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel)


def _import_moved(name: str) -> ModuleType:
    """Import the module that `name` is an alias of. Names that have moved out of the module remain accessible."""
    module = import_module(f"minigrad.{_ALIASES.get(name) or _MOVED_MODULES[name]}")
    if name in _NEW_MODULES:
        vars(module)["__getattr__"] = partial(_get_moved_name, name, import_module(f"minigrad.{_NEW_MODULES[name]}"))
    return module


def _get_moved_name(old: str, new: ModuleType, name: str) -> Any:
    """Return the attribute `name`, which has moved from the module `old` to `new`, and issue a DeprecationWarning."""
    new_name = _RENAMED_NAMES.get(name, name)
    if new_name not in new.__all__:
        raise AttributeError(f"module 'minigrad.{old}' has no attribute {name!r}", name=name)
    message = (
        f"minigrad.{old}.{name} has moved to {new.__name__}.{new_name}; the old name will be removed in the next "
        "release."
    )
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return getattr(new, new_name)


class _Alias(Loader):
    """Loader that imports a module under another name, as the same module object."""

    def exec_module(self, module: ModuleType) -> None:
        """Replace the module in ``sys.modules``."""
        sys.modules[module.__name__] = _import_moved(module.__name__.removeprefix("minigrad."))


class _Finder:
    """Import finder for modules that have no file: aliases, and modules of PyTorch (`pytorch.import_hooks`)."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        package, _, last = name.partition(".")
        if package != "minigrad":
            return None
        if last in _ALIASES or last in _MOVED_MODULES:
            if last in _MOVED_MODULES:
                _warn_moved(last, 3)
            return ModuleSpec(name, _Alias())
        parent = sys.modules.get(name.rpartition(".")[0])
        if PathFinder.find_spec(name, getattr(parent, "__path__", None)):
            return None  # some importers, such as pytest's, search for the file themselves
        from minigrad.pytorch.import_hooks import find_spec

        return find_spec(name)


sys.meta_path.append(_Finder)


def __dir__() -> list[str]:
    """Return the public names, including those that need tensors."""
    lazy_names = [
        name for module in _lazy_modules() if module.__name__ not in _INTERNAL_MODULES for name in module.__all__
    ]
    return sorted(
        {*__all__, *lazy_names, *(("Tensor", "functional", "optim") if find_spec("numpy") else ()), "__version__"}
    )


def _lazy_modules() -> Iterator[ModuleType]:
    """Yield the lazily imported modules with public names, in order of lookup."""
    tensors = (
        *("functional", "core.tensor", "functional.creation", "random", "profiling", "io", "compiler.tape"),
        "compiler.jit",
    )
    for module in (*(tensors if find_spec("numpy") else ("compiler.tape",)), "core.dtypes", "ops"):
        yield import_module(f"minigrad.{module}")


_INTERNAL_MODULES = ("minigrad.core.tensor", "minigrad.ops")  # internal, except for a few names


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
