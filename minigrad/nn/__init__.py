"""Neural network layers with PyTorch's names. `nn.scalar` builds networks of single Values, to inspect every weight."""

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from minigrad.core.packages import explained
from minigrad.nn import scalar as scalar

if TYPE_CHECKING:  # imported lazily by `__getattr__`: tensors need NumPy
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

_ROOMS = (
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


@explained()
def __getattr__(name: str) -> Any:
    if find_spec("numpy"):
        if name == "__all__":
            layers = [layer for room in _ROOMS for layer in import_module(f"minigrad.nn.{room}").__all__]
            return ["functional", "init", "scalar", "utils", *layers]
        if not name.startswith("_"):
            if PathFinder.find_spec(f"minigrad.nn.{name}", globals()["__path__"]) is not None:
                return import_module(f"minigrad.nn.{name}")
            for room in _ROOMS:
                module = import_module(f"minigrad.nn.{room}")
                if name in module.__all__:
                    globals()[name] = found = getattr(module, name)
                    return found
    elif name == "__all__":
        return ["scalar"]
    if find_spec("numpy"):
        from minigrad.pytorch.modules import absent

        return absent(__name__, name)
    without = f"module 'minigrad.nn' has no attribute {name!r}; its layers need NumPy, which is not installed"
    raise AttributeError(without, name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted([*__getattr__("__all__"), "__all__"])
