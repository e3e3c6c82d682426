"""Registration of elementwise operations as functions and methods: ``mg.sin(x)``, ``x.sin()`` and ``x.sin_()``.

Every operation declared in `ops.elementwise` or `ops.activation` is registered here under its name, unless
`functional` defines a function of that name with more arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad import ops
from minigrad.core.op import Op
from minigrad.core.registry import FUNCTIONS, METHODS, add_function
from minigrad.core.tensor import Tensor
from minigrad.functional.fast_path import build_fast_path
from minigrad.functional.methods import in_place, method, reflected_method, with_inplace_option

__all__ = ["ALIASES", "INPLACE_ACTIVATIONS", "register_operations"]

ALIASES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
    "multiply": "mul", "negative": "neg", "not_equal": "ne",
}  # fmt: skip
"""Maps PyTorch's aliases to the names of operations."""

INPLACE_ACTIVATIONS = ("elu", "leaky_relu", "mish", "relu", "relu6", "selu", "silu")
_FUNCTIONS_ONLY = {*ops.activation.ACTIVATIONS, ops.where} - {ops.relu, ops.sigmoid}
_BINARY = {"add": ops.add, "sub": ops.sub, "mul": ops.mul, "truediv": ops.div}


def register_operations() -> None:
    """Register the elementwise operations, their aliases, and Python's operators."""
    for op in (*ops.elementwise.ELEMENTWISE, *ops.activation.ACTIVATIONS):
        op.fast_path = build_fast_path(op)
        if op.name in FUNCTIONS:
            continue
        names = (op.name, *(alias for alias, name in ALIASES.items() if name == op.name))
        function: Callable[..., Any] = with_inplace_option(op) if op.name in INPLACE_ACTIVATIONS else op
        add_function(__name__, *names, function=function)
        if op not in _FUNCTIONS_ONLY:
            add_function(__name__, *names, method=method(op), in_place=in_place(op) if op.differentiable else None)
    for symbol, op in _BINARY.items():
        METHODS.update(
            {f"__{symbol}__": method(op), f"__r{symbol}__": reflected_method(op), f"__i{symbol}__": in_place(op)}
        )
    for symbol, op in (("neg", ops.neg), ("abs", ops.abs)):
        METHODS[f"__{symbol}__"] = method(op)
    METHODS.update(__eq__=_comparison_method(ops.eq), __ne__=_comparison_method(ops.ne))


def _comparison_method(op: Op) -> Callable[..., Any]:
    def compare_tensors(self: Tensor, other: Any) -> Any:  # x == None is False, as for any Python object
        return NotImplemented if other is None or isinstance(other, str) else op(self, other)

    return compare_tensors
