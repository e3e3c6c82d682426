"""minigrad: a place to see automatic differentiation.

>>> import minigrad as mg
>>> a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
>>> c = a * b
>>> c.backward()
>>> a.grad, b.grad
(-3.0, 2.0)
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from minigrad import autograd, data, errors, lessons, nn, ops
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
    is_grad_enabled,
    no_grad,
    record,
    scope,
    strict_shapes,
    topological,
)
from minigrad.kernels import dispatch, kernel, tap
from minigrad.op import OPS, Domain, Op
from minigrad.ops import (
    abs,
    cos,
    exp,
    log,
    maximum,
    minimum,
    pow,
    relu,
    sigmoid,
    sign,
    sin,
    sqrt,
    tanh,
    where,
)
from minigrad.value import Value

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Tensors load NumPy, so they come when they are first asked for: `import minigrad` works without it."""
    if not name.startswith("_"):
        if find_spec(f"minigrad.{name}") is not None:
            return import_module(f"minigrad.{name}")
        for room in ("functional", "_tensor", "creation", "random", "dtypes", "ops"):
            module = import_module(f"minigrad.{room}")
            if name in module.__all__:
                globals()[name] = found = getattr(module, name)
                return found
    raise AttributeError(f"module 'minigrad' has no attribute {name!r}")


__all__ = [
    "OPS",
    "Domain",
    "Event",
    "Op",
    "Recording",
    "Value",
    "abs",
    "autograd",
    "cos",
    "data",
    "detect_anomaly",
    "dispatch",
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
    "int32",
    "int64",
    "is_grad_enabled",
    "kernel",
    "lessons",
    "log",
    "maximum",
    "minimum",
    "nn",
    "no_grad",
    "ops",
    "pow",
    "record",
    "relu",
    "scope",
    "set_default_dtype",
    "sigmoid",
    "sign",
    "sin",
    "sqrt",
    "strict_shapes",
    "tanh",
    "tap",
    "topological",
    "uint8",
    "where",
]
