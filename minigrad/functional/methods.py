"""Wrappers that turn an operation into a method of Tensor, with its own name and signature in `help`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from minigrad.core.op import Op
from minigrad.core.tensor import Tensor
from minigrad.functional import checks

__all__ = ["in_place", "method", "reflected_method", "with_inplace_option"]

Function = TypeVar("Function", bound=Callable[..., Any])
_INPLACE_PARAM = inspect.Parameter("inplace", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False)
_ALPHA_PARAM = inspect.Parameter("alpha", inspect.Parameter.KEYWORD_ONLY, default=1)


def method(op: Op) -> Callable[..., Any]:
    """Return a method that applies `op` to the tensor and the other arguments."""

    def apply(self: Tensor, *args: Any, **attrs: Any) -> Any:
        return op(self, *args, **attrs)

    return _set_signature(op.fast_path or apply, op.name, op.__doc__, op)


def reflected_method(binary: Callable[..., Any]) -> Callable[..., Any]:
    """Return the reflected method of a binary operator, called if only its right operand is a tensor."""
    if isinstance(binary, Op) and binary.fast_path is not None:
        binary = binary.fast_path
    return lambda self, other: binary(other, self)


def in_place(op: Op, check: Callable[..., None] | None = None) -> Callable[..., Tensor]:
    """Return a method that calls `check` on the operands and writes the result of `op` into the first one.

    For `add` and `sub`, ``alpha`` multiplies the second operand.
    """

    has_alpha = op.name in ("add", "sub")

    def write(self: Tensor, *args: Any, **attrs: Any) -> Tensor:
        inputs, alpha = (self, *args), attrs.pop("alpha", 1) if has_alpha and attrs else 1
        if attrs or op.attrs or len(inputs) != len(op.inputs):
            inputs, attrs = op.bind(inputs, attrs)
        if check is not None:
            check(*inputs)
        if alpha != 1:
            inputs = (self, checks.scale_operand(alpha, inputs[1], self, f"{op.name}_"))
        return self._write_inplace(op, inputs, attrs)

    doc = f"In-place version of ``{op.name}({', '.join(('self', *op.inputs[1:], *op.attrs))})``; returns the tensor."
    return _set_signature(write, f"{op.name}_", doc, op, *[_ALPHA_PARAM] * has_alpha)


def with_inplace_option(op: Op) -> Callable[..., Any]:
    """Return a function that applies `op` and accepts PyTorch's ``inplace`` argument after the attributes."""
    write = in_place(op)

    def apply(input: Any, *args: Any, inplace: Any = False, **attrs: Any) -> Any:
        attr_count = len(op.attrs)
        if args[attr_count:]:
            args, inplace = args[:attr_count], args[attr_count]
        return write(input, *args, **attrs) if inplace else op(input, *args, **attrs)

    target: Any = apply
    target.__name__ = target.__qualname__ = op.name  # pickle imports functions by name
    target.__module__ = "minigrad.functional"
    target.__doc__ = f"{op.__doc__} If `inplace`, modify `input` in place."
    first_param, *other_params = inspect.signature(op).parameters.values()
    positional_params = [p.replace(kind=_INPLACE_PARAM.kind) for p in other_params]
    target.__signature__ = inspect.Signature([first_param.replace(name="input"), *positional_params, _INPLACE_PARAM])
    return apply


def _set_signature(
    function: Function, name: str, doc: str | None, op: Op, *extra_params: inspect.Parameter
) -> Function:
    first_param, *other_params = inspect.signature(op).parameters.values()
    target: Any = function
    target.__name__, target.__qualname__, target.__doc__ = name, f"Tensor.{name}", doc
    target.__signature__ = inspect.Signature([first_param.replace(name="self"), *other_params, *extra_params])
    return function
