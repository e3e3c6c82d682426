"""Registration of elementwise operations as functions and methods: ``mg.sin(x)``, ``x.sin()`` and ``x.sin_()``.

Every operation declared in `ops.elementwise` or `ops.activation` is registered here under its name, unless
`functional` defines a function of that name with more arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad import ops
from minigrad.core.op import Op
from minigrad.core.registry import FUNCTIONS, METHODS, add
from minigrad.core.tensor import Tensor
from minigrad.functional.inline import inlined
from minigrad.functional.methods import in_place, method, or_in_place, reflected

__all__ = ["ALIASES", "TAKES_INPLACE", "register_operations"]

ALIASES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
    "multiply": "mul", "negative": "neg", "not_equal": "ne",
}  # fmt: skip
"""PyTorch's aliases: alias to name of the operation."""

TAKES_INPLACE = ("elu", "leaky_relu", "mish", "relu", "relu6", "selu", "silu")
_FUNCTIONS_ONLY = {*ops.activation.ACTIVATIONS, ops.where} - {ops.relu, ops.sigmoid}
_BINARY = {"add": ops.add, "sub": ops.sub, "mul": ops.mul, "truediv": ops.div}


def register_operations() -> None:
    """Register the elementwise operations, their aliases, and Python's operators."""
    for op in (*ops.elementwise.ELEMENTWISE, *ops.activation.ACTIVATIONS):
        op.inlined = inlined(op)
        if op.name in FUNCTIONS:
            continue
        names = (op.name, *(alias for alias, name in ALIASES.items() if name == op.name))
        function: Callable[..., Any] = or_in_place(op) if op.name in TAKES_INPLACE else op
        add(__name__, *names, function=function)
        if op not in _FUNCTIONS_ONLY:
            add(__name__, *names, method=method(op), in_place=in_place(op) if op.differentiable else None)
    for sign, op in _BINARY.items():
        METHODS.update({f"__{sign}__": method(op), f"__r{sign}__": reflected(op), f"__i{sign}__": in_place(op)})
    for sign, op in (("neg", ops.neg), ("abs", ops.abs)):
        METHODS[f"__{sign}__"] = method(op)
    METHODS.update(__eq__=_compared(ops.eq), __ne__=_compared(ops.ne))


def _compared(op: Op) -> Callable[..., Any]:
    def compare(self: Tensor, other: Any) -> Any:  # x == None is False, as for any Python object
        return NotImplemented if other is None or isinstance(other, str) else op(self, other)

    return compare
