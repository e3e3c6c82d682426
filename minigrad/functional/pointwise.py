"""More of PyTorch's functions of each number alone, each a line or two of others, which give it its gradient."""

from __future__ import annotations

import math
from math import inf
from typing import Any, cast

from minigrad import ops
from minigrad.backends.limits import number
from minigrad.core.dtypes import float64, get_default_dtype
from minigrad.core.errors import DTypeError
from minigrad.core.registry import register
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import common_dtype, floats_of, operands_of, tensor_of
from minigrad.functional.elementwise import remainder, sub, where


@register(method=True, in_place=True)
def fix(input: Tensor) -> Tensor:
    """`trunc` by its other name."""
    return cast(Tensor, ops.trunc(input))


@register(method=True, in_place=True)
def frac(input: Tensor) -> Tensor:
    """What is behind the point, with the sign of `input`; its slope is 1."""
    return cast(Tensor, floats_of(input, "frac") - ops.trunc(input))


@register(method=True, in_place=True)
def fmod(input: Tensor, other: Any) -> Tensor:
    """What is left of ``input / other``, with the sign of `input`, as C's fmod; `remainder` has that of `other`."""
    size = tensor_of(input, "fmod")
    other = other if isinstance(other, Tensor) else number("fmod", other, common_dtype(input, other))
    if size.dtype.kind:
        size = where(input < 0, -input, input)  # unlike abs it has a slope at 0
    left = remainder(size, ops.abs(other) if isinstance(other, Tensor) else abs(other))
    return cast(Tensor, where(input < 0, -left, left))


@register
def rsub(input: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """``other - alpha * input``."""
    return cast(Tensor, sub(other, tensor_of(input, "rsub"), alpha=alpha))


@register(method=True, in_place=True)
def deg2rad(input: Tensor) -> Tensor:
    """Degrees as radians."""
    return tensor_of(input, "deg2rad") * (math.pi / 180.0)


@register(method=True, in_place=True)
def rad2deg(input: Tensor) -> Tensor:
    """Radians as degrees."""
    return tensor_of(input, "rad2deg") * (180.0 / math.pi)


@register(method=True, in_place=True)
def float_power(input: Any, exponent: Any) -> Tensor:
    """``input ** exponent`` in float64, whatever the types were."""
    base, power = [x.to(float64) for x in operands_of("float_power", input=input, exponent=exponent)]
    return base**power


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


@register(method=True, in_place=True)
def heaviside(input: Any, values: Any) -> Tensor:
    """0 where `input` is below 0, 1 where it is above, and `values` where it is 0; nan stays nan. It has no slope."""
    x, at = [t.detach() for t in operands_of("heaviside", input=input, values=values)]
    if x.dtype is not at.dtype:
        raise DTypeError(f"heaviside: input holds {x.dtype.name}, and values {at.dtype.name}; convert one.")
    step = where(x == 0, at, (x > 0).to(x.dtype))
    return cast(Tensor, where(ops.isnan(x), x, step) if x.dtype.is_floating_point else step)


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
def logaddexp2(input: Any, other: Any) -> Tensor:
    """``log2(2**input + 2**other)`` without overflow."""
    a, b = operands_of("logaddexp2", input=input, other=other)
    first = a >= b
    high, low = where(first, a, b), where(first, b, a)  # unlike maximum they have one derivative in a tie
    gap = where(ops.logical_and(high == low, ops.isinf(high)), 0.0, low - high)  # inf - inf is nan
    return cast(Tensor, high + ops.softplus(gap * math.log(2.0)) / math.log(2.0))


@register(method=True, in_place=True)
def sinc(input: Tensor) -> Tensor:
    """``sin(pi * x) / (pi * x)``, which is 1 at 0, with the derivatives of its power series there."""
    x = tensor_of(input, "sinc") * math.pi
    near = ops.abs(x) < 0.5  # where each derivative of the quotient would be a difference of larger numbers
    small = where(near, x, 0.0)
    square = small * small
    series = 1.0 / math.factorial(17)
    for k in range(14, -1, -2):  # the next term is below 1e-22, and its fourth derivative 1e-16
        series = series * square + (-1.0) ** (k // 2) / math.factorial(k + 1)
    safe = where(near, 1.0, x)
    return cast(Tensor, where(near, series, ops.sin(safe) / safe))


@register(method=True, in_place=True)
def xlogy(input: Any, other: Any) -> Tensor:
    """``input * log(other)``, and 0 where `input` is 0, whatever `other` is but nan. One of the two may be a number.

    Where `input` is 0 and `other` is not above 0, all derivatives count as 0, of which the first is PyTorch's too.
    """
    pair = operands_of("xlogy", input=input, other=other)
    dtype = common_dtype(*pair)
    x, y = [t.to(dtype if dtype.is_floating_point else get_default_dtype()) for t in pair]
    nothing = ops.logical_and(x == 0, ops.logical_or(y <= 0, y == inf))  # whose logarithm would be infinite or nan
    return cast(Tensor, where(ops.isnan(y), y, x * ops.log(where(nothing, 1.0, y))))
