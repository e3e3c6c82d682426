"""minigrad: a place to see automatic differentiation.

>>> import minigrad as mg
>>> a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
>>> c = a * b
>>> c.backward()
>>> a.grad, b.grad
(-3.0, 2.0)
"""

from minigrad import data, errors, lessons, nn, ops
from minigrad.autograd import events, grad
from minigrad.check import gradcheck, gradgradcheck
from minigrad.graph import (
    Event,
    Recording,
    enable_grad,
    is_grad_enabled,
    no_grad,
    record,
    scope,
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

__all__ = [
    "OPS",
    "Domain",
    "Event",
    "Op",
    "Recording",
    "Value",
    "abs",
    "cos",
    "data",
    "dispatch",
    "enable_grad",
    "errors",
    "events",
    "exp",
    "grad",
    "gradcheck",
    "gradgradcheck",
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
    "sigmoid",
    "sign",
    "sin",
    "sqrt",
    "tanh",
    "tap",
    "topological",
    "where",
]
