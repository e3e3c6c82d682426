"""Operations that are functions and methods of tensors themselves, as ``mg.sin(x)``, ``x.sin()`` and ``x.sin_()``.

Declaring an operation in `ops.elementwise` or `ops.activation` is enough: it is registered here under its own name,
unless `functional` has a function of that name, which takes more than the operation does.
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
"""PyTorch's second names."""

TAKES_INPLACE = ("elu", "leaky_relu", "mish", "relu", "relu6", "selu", "silu")
_FUNCTIONS_ONLY = {*ops.activation.ACTIVATIONS, ops.where} - {ops.relu, ops.sigmoid}
_BINARY = {"add": ops.add, "sub": ops.sub, "mul": ops.mul, "truediv": ops.div}


def register_operations() -> None:
    """Register each operation that is a function itself, its second names, and the operators of Python."""
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
    def compare(self: Tensor, other: Any) -> Any:  # x == None is False, as for all Python things
        return NotImplemented if other is None or isinstance(other, str) else op(self, other)

    return compare
