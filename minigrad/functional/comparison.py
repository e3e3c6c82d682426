"""Comparisons beyond the operators, with PyTorch's signatures, as `isclose` and `fmax`."""

from __future__ import annotations

from math import inf
from typing import Any, cast

from minigrad import ops
from minigrad.core.dtypes import get_default_dtype
from minigrad.core.errors import ArgumentError
from minigrad.core.registry import register
from minigrad.core.shapes import numel
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import operands_of, tensor_of
from minigrad.functional.elementwise import where


@register(method=True)
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Where ``|input - other| <= atol + rtol * |other|``; equal infinities are close, and with `equal_nan` two nans."""
    tensor_of(input, "isclose"), tensor_of(other, "isclose", "other")
    if min(rtol, atol) < 0:
        raise ArgumentError(f"isclose: rtol={rtol} and atol={atol} must be 0 or more.")
    other = other if other.dtype.is_floating_point else other.to(get_default_dtype())
    input = input if input.dtype.kind else input.to(other.dtype)
    near = ops.le(ops.abs(input - other), atol + rtol * ops.abs(other))
    close = ops.logical_or(input == other, ops.logical_and(near, ops.isfinite(other)))
    if equal_nan:
        close = ops.logical_or(close, ops.logical_and(ops.isnan(input), ops.isnan(other)))
    return cast(Tensor, close)


@register(method=True)
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether `isclose` holds everywhere."""
    return bool(ops.all(isclose(input, other, rtol, atol, equal_nan), dim=None, keepdim=False))


@register(method=True)
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and the same numbers."""
    tensor_of(input, "equal"), tensor_of(other, "equal", "other")
    return input.shape == other.shape and bool(ops.all(input == other, dim=None, keepdim=False))


@register(method=True)
def fmax(input: Any, other: Any) -> Tensor:
    """`maximum`, in which a nan gives way to a number; where two tie, the first gets the gradient, as in PyTorch."""
    a, b = operands_of("fmax", input=input, other=other)
    return cast(Tensor, where(ops.logical_or(a >= b, ops.isnan(b)), a, b))


@register(method=True)
def fmin(input: Any, other: Any) -> Tensor:
    """`minimum`, in which a nan gives way to a number; where two tie, the first gets the gradient, as in PyTorch."""
    a, b = operands_of("fmin", input=input, other=other)
    return cast(Tensor, where(ops.logical_or(a <= b, ops.isnan(b)), a, b))


@register(method=True)
def isposinf(input: Tensor) -> Tensor:
    """Where a number is inf."""
    return tensor_of(input, "isposinf") == inf


@register(method=True)
def isneginf(input: Tensor) -> Tensor:
    """Where a number is -inf."""
    return tensor_of(input, "isneginf") == -inf


@register(method=True)
def signbit(input: Tensor) -> Tensor:
    """Where the sign is a minus, that of -0.0 and of a nan too."""
    return cast(Tensor, ops.signbit(tensor_of(input, "signbit")))


@register(method=True)
def is_nonzero(input: Tensor) -> bool:
    """Whether the one number in `input` is not 0. Raises ArgumentError where there are several, or none."""
    if numel(tensor_of(input, "is_nonzero").shape) != 1:
        raise ArgumentError(f"is_nonzero: shape {input.shape} is not that of one number.\n  Write x.any() or x.all().")
    return bool(input)


@register(method=True)
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape."""
    return tensor_of(input, "is_same_size").shape == tensor_of(other, "is_same_size", "other").shape
