"""Comparisons without an operator, with PyTorch's signatures, such as `isclose` and `fmax`."""

from __future__ import annotations

from math import inf
from typing import Any, cast

from minigrad import ops
from minigrad.core.dtypes import get_default_dtype
from minigrad.core.errors import ArgumentError
from minigrad.core.registry import register
from minigrad.core.shapes import numel
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_tensor, promote_operands
from minigrad.functional.elementwise import where


@register(method=True)
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Test elementwise whether ``|input - other| <= atol + rtol * |other|``; equal infinities are close.

    With `equal_nan`, two nans are close too. Raises ArgumentError for a negative `rtol` or `atol`.
    """
    check_tensor(input, "isclose"), check_tensor(other, "isclose", "other")
    if min(rtol, atol) < 0:
        raise ArgumentError(f"isclose: rtol={rtol} and atol={atol} must be greater than or equal to 0.")
    other = other if other.dtype.is_floating_point else other.to(get_default_dtype())
    input = input if input.dtype.kind else input.to(other.dtype)
    within_tolerance = ops.le(ops.abs(input - other), atol + rtol * ops.abs(other))
    close = ops.logical_or(input == other, ops.logical_and(within_tolerance, ops.isfinite(other)))
    if equal_nan:
        close = ops.logical_or(close, ops.logical_and(ops.isnan(input), ops.isnan(other)))
    return cast(Tensor, close)


@register(method=True)
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Return whether `isclose` is True for all elements."""
    return bool(ops.all(isclose(input, other, rtol, atol, equal_nan), dim=None, keepdim=False))


@register(method=True)
def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape and elements."""
    check_tensor(input, "equal"), check_tensor(other, "equal", "other")
    return input.shape == other.shape and bool(ops.all(input == other, dim=None, keepdim=False))


@register(method=True)
def fmax(input: Any, other: Any) -> Tensor:
    """Return the elementwise maximum, ignoring a single nan. In a tie, the gradient flows to `input`, as in PyTorch."""
    a, b = promote_operands("fmax", input=input, other=other)
    return cast(Tensor, where(ops.logical_or(a >= b, ops.isnan(b)), a, b))


@register(method=True)
def fmin(input: Any, other: Any) -> Tensor:
    """Return the elementwise minimum, ignoring a single nan. In a tie, the gradient flows to `input`, as in PyTorch."""
    a, b = promote_operands("fmin", input=input, other=other)
    return cast(Tensor, where(ops.logical_or(a <= b, ops.isnan(b)), a, b))


@register(method=True)
def isposinf(input: Tensor) -> Tensor:
    """Test whether each element is inf."""
    return check_tensor(input, "isposinf") == inf


@register(method=True)
def isneginf(input: Tensor) -> Tensor:
    """Test whether each element is -inf."""
    return check_tensor(input, "isneginf") == -inf


@register(method=True)
def signbit(input: Tensor) -> Tensor:
    """Test whether the sign bit of each element is set, including -0.0 and nan."""
    return cast(Tensor, ops.signbit(check_tensor(input, "signbit")))


@register(method=True)
def is_nonzero(input: Tensor) -> bool:
    """Return whether the only element of `input` is not 0. Raises ArgumentError unless there is exactly one."""
    if numel(check_tensor(input, "is_nonzero").shape) != 1:
        raise ArgumentError(
            f"is_nonzero: boolean value of a tensor with {numel(input.shape)} elements is ambiguous.\n"
            "  Write x.any() or x.all()."
        )
    return bool(input)


@register(method=True)
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape."""
    return check_tensor(input, "is_same_size").shape == check_tensor(other, "is_same_size", "other").shape
