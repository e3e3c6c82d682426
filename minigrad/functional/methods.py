"""Wrappers that turn an operation into a method of Tensor, with its own name and signature in `help`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from minigrad.core.op import Op
from minigrad.core.tensor import Tensor
from minigrad.functional import checks

__all__ = ["in_place", "method", "or_in_place", "reflected"]

Function = TypeVar("Function", bound=Callable[..., Any])
_INPLACE = inspect.Parameter("inplace", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False)
_ALPHA = inspect.Parameter("alpha", inspect.Parameter.KEYWORD_ONLY, default=1)


def method(op: Op) -> Callable[..., Any]:
    """Return a method that applies `op` to the tensor and the other arguments."""

    def apply(self: Tensor, *args: Any, **attrs: Any) -> Any:
        return op(self, *args, **attrs)

    return _named(op.inlined or apply, op.name, op.__doc__, op)


def reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the reflected method, for a tensor on the right of an operator."""
    if isinstance(function, Op) and function.inlined is not None:
        function = function.inlined
    return lambda self, other: function(other, self)


def in_place(op: Op, check: Callable[..., None] | None = None) -> Callable[..., Tensor]:
    """Return a method that calls `check` on the operands and writes the result of `op` into the first one.

    For `add` and `sub`, ``alpha`` multiplies the second operand.
    """

    scaled = op.name in ("add", "sub")

    def write(self: Tensor, *args: Any, **attrs: Any) -> Tensor:
        inputs, alpha = (self, *args), attrs.pop("alpha", 1) if scaled and attrs else 1
        if attrs or op.attrs or len(inputs) != len(op.inputs):
            inputs, attrs = op.bind(inputs, attrs)
        if check is not None:
            check(*inputs)
        if alpha != 1:
            inputs = (self, checks.scaled(alpha, inputs[1], self, f"{op.name}_"))
        return self._write(op, inputs, attrs)

    doc = f"In-place version of ``{op.name}({', '.join(('self', *op.inputs[1:], *op.attrs))})``; returns the tensor."
    return _named(write, f"{op.name}_", doc, op, *[_ALPHA] * scaled)


def or_in_place(op: Op) -> Callable[..., Any]:
    """Return a function that applies `op` and takes PyTorch's ``inplace`` after its attributes."""
    write = in_place(op)

    def apply(input: Any, *args: Any, inplace: Any = False, **attrs: Any) -> Any:
        given = len(op.attrs)
        if args[given:]:
            args, inplace = args[:given], args[given]
        return write(input, *args, **attrs) if inplace else op(input, *args, **attrs)

    shown: Any = apply
    shown.__name__ = shown.__qualname__ = op.name  # pickle looks functions up by these
    shown.__module__ = "minigrad.functional"
    shown.__doc__ = f"{op.__doc__} If `inplace`, modify `input` in place."
    own, *others = inspect.signature(op).parameters.values()
    either = [p.replace(kind=_INPLACE.kind) for p in others]
    shown.__signature__ = inspect.Signature([own.replace(name="input"), *either, _INPLACE])
    return apply


def _named(function: Function, name: str, doc: str | None, op: Op, *more: inspect.Parameter) -> Function:
    own, *others = inspect.signature(op).parameters.values()
    shown: Any = function
    shown.__name__, shown.__qualname__, shown.__doc__ = name, f"Tensor.{name}", doc
    shown.__signature__ = inspect.Signature([own.replace(name="self"), *others, *more])
    return function
