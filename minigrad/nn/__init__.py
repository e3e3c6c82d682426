"""Neural network layers with PyTorch's names. `nn.scalar` builds networks of single Values, to inspect every weight."""

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from minigrad.core.packages import explain_import_errors
from minigrad.nn import scalar as scalar

if TYPE_CHECKING:  # imported lazily by `__getattr__`, because tensors need NumPy
    from minigrad.nn import functional as functional
    from minigrad.nn import init as init
    from minigrad.nn import utils as utils
    from minigrad.nn.activation import *  # noqa: F403 -- each module defines `__all__`
    from minigrad.nn.attention import *  # noqa: F403
    from minigrad.nn.containers import *  # noqa: F403
    from minigrad.nn.conv import *  # noqa: F403
    from minigrad.nn.dropout import *  # noqa: F403
    from minigrad.nn.embedding import *  # noqa: F403
    from minigrad.nn.linear import *  # noqa: F403
    from minigrad.nn.loss import *  # noqa: F403
    from minigrad.nn.module import *  # noqa: F403
    from minigrad.nn.norm import *  # noqa: F403
    from minigrad.nn.pooling import *  # noqa: F403
    from minigrad.nn.recurrent import *  # noqa: F403
    from minigrad.nn.shape import *  # noqa: F403
    from minigrad.nn.transformer import *  # noqa: F403

_MODULES = (
    "module",
    "containers",
    "linear",
    "conv",
    "pooling",
    "activation",
    "norm",
    "shape",
    "embedding",
    "dropout",
    "loss",
    "recurrent",
    "attention",
    "transformer",
)


@explain_import_errors()
def __getattr__(name: str) -> Any:
    if find_spec("numpy"):
        if name == "__all__":
            layers = [
                layer for module_name in _MODULES for layer in import_module(f"minigrad.nn.{module_name}").__all__
            ]
            return ["functional", "init", "scalar", "utils", *layers]
        if not name.startswith("_"):
            if PathFinder.find_spec(f"minigrad.nn.{name}", globals()["__path__"]) is not None:
                return import_module(f"minigrad.nn.{name}")
            for submodule in _MODULES:
                module = import_module(f"minigrad.nn.{submodule}")
                if name in module.__all__:
                    globals()[name] = value = getattr(module, name)
                    return value
    elif name == "__all__":
        return ["scalar"]
    if find_spec("numpy"):
        from minigrad.pytorch.import_hooks import resolve_missing

        return resolve_missing(__name__, name)
    message = f"module 'minigrad.nn' has no attribute {name!r}; its layers need NumPy, which is not installed"
    raise AttributeError(message, name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted([*__getattr__("__all__"), "__all__"])
