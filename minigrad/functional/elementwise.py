"""Elementwise functions with PyTorch's signatures. See also `arithmetic` and `comparison`.

`operations` registers single operations that need no further arguments, such as ``mg.sin(x)``.
"""

from __future__ import annotations

import math
from math import inf
from typing import Any, cast, overload

from minigrad import ops
from minigrad.backends.limits import convert_scalar
from minigrad.core.dtypes import dtype_of_scalar, finfo, get_default_dtype, result_type
from minigrad.core.errors import ArgumentError, DTypeError
from minigrad.core.modes import modes
from minigrad.core.registry import inplace_by_copy, register, register_method
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_floating, check_number, check_tensor, common_dtype, promote_operands
from minigrad.functional.methods import in_place


@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Tensor, input: Tensor | float, other: Tensor | float) -> Tensor: ...
@overload
def where(condition: Any, input: Any, other: Any) -> Any: ...
@register
def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Return `input` where `condition` is True, else `other`, with broadcasting.

    With `condition` alone return ``nonzero(as_tuple=True)``. Elements not selected, even nan, affect neither the result
    nor its gradient. Raises DTypeError unless `condition` is bool.

    >>> import minigrad as mg
    >>> mg.where(mg.tensor([True, False]), mg.tensor([1.0, 2.0]), 0.0)
    tensor([1., 0.])
    """
    if isinstance(condition, Tensor):
        if condition.dtype.kind:
            raise DTypeError(
                f"where: expected condition to be a boolean tensor, but got {condition.dtype.name}; write x != 0."
            )
        if input is None and other is None:
            return condition.nonzero(as_tuple=True)
    return ops.where(condition, input, other)


@register(method=True, aliases=("clip",))
def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """Clamp `input` to [`min`, `max`], scalars or tensors; None leaves that side unbounded, and nan stays nan.

    The derivative is 1 inside and at the bounds, and 0 outside, where a tensor bound receives the gradient. Raises
    ArgumentError if both bounds are None.
    """
    if min is None and max is None:
        raise ArgumentError("clamp: at least one of min and max must not be None.")
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        tensors = [x for x in (input, min, max) if isinstance(x, Tensor)]
        if modes.grad and any(x.requires_grad for x in tensors):  # in a tie, input receives the full gradient
            result = input if min is None else ops.where(ops.logical_or(input >= min, ops.isnan(input)), input, min)
            return result if max is None else ops.where(ops.logical_or(result <= max, ops.isnan(result)), result, max)
        result = input if min is None else ops.maximum(input, min)
        return result if max is None else ops.minimum(result, max)
    if isinstance(input, Tensor) and not input.dtype.is_floating_point:
        input = input.to(result_type([input.dtype], numbers=[dtype_of_scalar(x) for x in (min, max) if x is not None]))
    return ops.clamp(input, min, max)


@register(method=True, in_place=True)
def nan_to_num(input: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Replace nan by `nan`, and infinities by `posinf` and `neginf`, by default the limits of the dtype."""
    if not input.dtype.is_floating_point:
        return input.clone()
    limits = finfo(input.dtype)
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    finite = ops.where(input == inf, high, ops.where(input == -inf, low, input))
    return cast(Tensor, ops.where(ops.isnan(input), nan, finite))


@register(method=True, in_place=True)
def clamp_min(input: Any, min: Any) -> Any:
    """Clamp `input` from below: see `clamp`."""
    return clamp(input, min)


@register(method=True, in_place=True)
def clamp_max(input: Any, max: Any) -> Any:
    """Clamp `input` from above: see `clamp`."""
    return clamp(input, None, max)


@register(method=True, in_place=True)
def round(input: Any, *, decimals: int = 0) -> Any:
    """Round to the nearest integer, half to even, or to `decimals` decimal places (before the point if negative).

    With `decimals` it is round(x · 10ᵈ) / 10ᵈ, as in PyTorch. The derivative is 0. Raises DTypeError for `decimals` of
    integers.

    >>> import minigrad as mg
    >>> mg.round(mg.tensor([0.125, 2.5, 1234.0]), decimals=-2).tolist()
    [0.0, 0.0, 1200.0]
    """
    check_number(decimals, "round", "decimals", integer=True)
    if not decimals:
        return ops.round(input)
    if isinstance(input, Tensor):
        check_floating(input, "round")
    scale = 10.0 ** abs(decimals)
    return ops.round(input * scale) / scale if decimals > 0 else ops.round(input / scale) * scale


@register_method("where")
def _where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """Return this tensor where `condition` is True, else `other`: see `mg.where`."""
    return cast(Tensor, where(condition, self, other))


@register_method("fill_")
def _fill(input: Tensor, value: Tensor | float) -> Tensor:
    """Fill this tensor with `value` in place. Raises DTypeError if its dtype cannot represent it."""
    return input.copy_(value if isinstance(value, Tensor) else convert_scalar("fill_", value, input.dtype))


@register_method("zero_")
def _zero(input: Tensor) -> Tensor:
    """Fill this tensor with 0 in place."""
    return input.copy_(0.0 if input.dtype.is_floating_point else False)


_clamp_by_copy, _clamp_by_scalars = inplace_by_copy(clamp), in_place(ops.clamp)


@register_method("clamp_", "clip_")
def _clamp(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Clamp this tensor in place, and return it: see `clamp`."""
    bounds = [x for x in (min, max) if x is not None]
    if not bounds or not self.dtype.is_floating_point or any(isinstance(x, Tensor) for x in bounds):
        return cast(Tensor, _clamp_by_copy(self, min, max))
    return _clamp_by_scalars(self, min, max)


@register(method=True, in_place=True)
def exp2(input: Tensor) -> Tensor:
    """Return 2 to the power of `input`."""
    return cast(Tensor, ops.pow(2.0, check_tensor(input, "exp2")))


@register(method=True, in_place=True)
def log10(input: Tensor) -> Tensor:
    """Return the base 10 logarithm, computed as ln x / ln 10, with two roundings."""
    return cast(Tensor, ops.log(check_tensor(input, "log10")) / math.log(10.0))


@register(method=True, in_place=True)
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """Return ``log(x / (1 - x))``, the inverse of `sigmoid`; `eps` clamps x to [eps, 1 - eps] first."""
    x = check_tensor(input, "logit") if eps is None else clamp(check_tensor(input, "logit"), eps, 1 - eps)
    return cast(Tensor, ops.log(x) - ops.log1p(x * -1.0))  # -x fails for bool and wraps around for uint8


@register(method=True)
def logaddexp(input: Any, other: Any) -> Tensor:
    """Return ``log(exp(input) + exp(other))`` without overflow."""
    a, b = promote_operands("logaddexp", input=input, other=other)
    input_is_larger = a >= b  # in a tie, high is a and low is b, so both receive a gradient
    high, low = where(input_is_larger, a, b), where(input_is_larger, b, a)
    difference = where(ops.logical_and(high == low, ops.isinf(high)), 0.0, low - high)
    return cast(Tensor, high + ops.softplus(difference))


@register(method=True, in_place=True)
def hypot(input: Any, other: Any) -> Tensor:
    """Return ``sqrt(input**2 + other**2)`` without overflow or underflow of the squares; inf if either is infinite."""
    a, b = promote_operands("hypot", input=input, other=other)
    magnitude = ops.maximum(ops.abs(a.detach()), ops.abs(b.detach()))
    scale = where(ops.logical_and(magnitude > 0, magnitude < inf), magnitude, 1.0)
    result = ops.sqrt(ops.square(a / scale) + ops.square(b / scale)) * scale
    has_inf = ops.logical_or(ops.isinf(a), ops.isinf(b))
    return cast(Tensor, where(ops.logical_and(ops.isnan(result), has_inf), inf, result))  # hypot(inf, nan) is inf


@register(method=True, in_place=True)
def fix(input: Tensor) -> Tensor:
    """Alias of `trunc`."""
    return cast(Tensor, ops.trunc(input))


@register(method=True, in_place=True)
def frac(input: Tensor) -> Tensor:
    """Return the fractional part, with the sign of `input`; the derivative is 1."""
    return cast(Tensor, check_floating(input, "frac") - ops.trunc(input))


@register(method=True, in_place=True)
def deg2rad(input: Tensor) -> Tensor:
    """Convert degrees to radians."""
    return check_tensor(input, "deg2rad") * (math.pi / 180.0)


@register(method=True, in_place=True)
def rad2deg(input: Tensor) -> Tensor:
    """Convert radians to degrees."""
    return check_tensor(input, "rad2deg") * (180.0 / math.pi)


@register(method=True, in_place=True)
def heaviside(input: Any, values: Any) -> Tensor:
    """Return 0 where `input` < 0, 1 where `input` > 0, and `values` where it is 0. Propagates nan. Has no gradient."""
    x, zero_values = [t.detach() for t in promote_operands("heaviside", input=input, values=values)]
    if x.dtype is not zero_values.dtype:
        raise DTypeError(
            f"heaviside: input and values must have the same dtype, but got {x.dtype.name} and "
            f"{zero_values.dtype.name}."
        )
    result = where(x == 0, zero_values, (x > 0).to(x.dtype))
    return cast(Tensor, where(ops.isnan(x), x, result) if x.dtype.is_floating_point else result)


@register(method=True)
def logaddexp2(input: Any, other: Any) -> Tensor:
    """Return ``log2(2**input + 2**other)`` without overflow."""
    a, b = promote_operands("logaddexp2", input=input, other=other)
    input_is_larger = a >= b
    # In a tie, high is a and low is b, so both receive a gradient.
    high, low = where(input_is_larger, a, b), where(input_is_larger, b, a)
    difference = where(ops.logical_and(high == low, ops.isinf(high)), 0.0, low - high)  # inf - inf is nan
    return cast(Tensor, high + ops.softplus(difference * math.log(2.0)) / math.log(2.0))


@register(method=True, in_place=True)
def sinc(input: Tensor) -> Tensor:
    """Return ``sin(pi * x) / (pi * x)``, and 1 at 0. Near 0, the power series gives accurate derivatives."""
    x = check_tensor(input, "sinc") * math.pi
    near_zero = ops.abs(x) < 0.5  # derivatives of the quotient suffer from cancellation there
    small = where(near_zero, x, 0.0)
    square = small * small
    series = 1.0 / math.factorial(17)
    for k in range(14, -1, -2):  # the next term is below 1e-22, and its fourth derivative 1e-16
        series = series * square + (-1.0) ** (k // 2) / math.factorial(k + 1)
    safe = where(near_zero, 1.0, x)
    return cast(Tensor, where(near_zero, series, ops.sin(safe) / safe))


@register(method=True, in_place=True)
def xlogy(input: Any, other: Any) -> Tensor:
    """Return ``input * log(other)``, and 0 where `input` is 0, unless `other` is nan. Either may be a Python scalar.

    Where `input` is 0 and `other` is not positive, all derivatives are 0, the first as in PyTorch.
    """
    operands = promote_operands("xlogy", input=input, other=other)
    dtype = common_dtype(*operands)
    x, y = [t.to(dtype if dtype.is_floating_point else get_default_dtype()) for t in operands]
    degenerate = ops.logical_and(x == 0, ops.logical_or(y <= 0, y == inf))  # the logarithm is infinite or nan
    return cast(Tensor, where(ops.isnan(y), y, x * ops.log(where(degenerate, 1.0, y))))
