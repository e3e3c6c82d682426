"""Functions of each number alone, with PyTorch's signatures. Arithmetic and comparisons have modules of their own.

Operations that take nothing more, as ``mg.sin(x)``, are registered in `operations`.
"""

from __future__ import annotations

import math
from math import inf
from typing import Any, cast, overload

from minigrad import ops
from minigrad.backends.limits import number
from minigrad.core.dtypes import finfo, get_default_dtype, of_number, result_type
from minigrad.core.errors import ArgumentError, DTypeError
from minigrad.core.modes import modes
from minigrad.core.registry import in_place_by_copy, register, register_method
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_number, common_dtype, floats_of, operands_of, tensor_of
from minigrad.functional.methods import in_place


@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Tensor, input: Tensor | float, other: Tensor | float) -> Tensor: ...
@overload
def where(condition: Any, input: Any, other: Any) -> Any: ...
@register
def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """`input` where `condition` holds, else `other`, all broadcast together; alone, ``nonzero(as_tuple=True)``.

    Nothing of the operand that is not chosen reaches the result or its gradient, not even nan. Raises DTypeError for a
    condition that is not of bools.

    >>> import minigrad as mg
    >>> mg.where(mg.tensor([True, False]), mg.tensor([1.0, 2.0]), 0.0)
    tensor([1., 0.])
    """
    if isinstance(condition, Tensor):
        if condition.dtype.kind:
            raise DTypeError(f"where: the condition holds {condition.dtype.name}, not bools; write x != 0.")
        if input is None and other is None:
            return condition.nonzero(as_tuple=True)
    return ops.where(condition, input, other)


@register(method=True, aliases=("clip",))
def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """`input` brought into `min` … `max`, numbers or tensors; None leaves that end open, and nan stays nan.

    Its slope is 1 inside and at the ends, 0 outside, where a tensor that is an end gets it. Raises ArgumentError where
    both ends are open.
    """
    if min is None and max is None:
        raise ArgumentError("clamp: both ends are open; give min, max or both.")
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        given = [x for x in (input, min, max) if isinstance(x, Tensor)]
        if modes.grad and any(x.requires_grad for x in given):  # with whole slopes at ties
            above = input if min is None else ops.where(ops.logical_or(input >= min, ops.isnan(input)), input, min)
            return above if max is None else ops.where(ops.logical_or(above <= max, ops.isnan(above)), above, max)
        above = input if min is None else ops.maximum(input, min)
        return above if max is None else ops.minimum(above, max)
    if isinstance(input, Tensor) and not input.dtype.is_floating_point:
        input = input.to(result_type([input.dtype], numbers=[of_number(x) for x in (min, max) if x is not None]))
    return ops.clamp(input, min, max)


@register(method=True, in_place=True)
def nan_to_num(input: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """`input` with `nan` for nans, `posinf` and `neginf` for infinities, by default the extremes of its type."""
    if not input.dtype.is_floating_point:
        return input.clone()
    limits = finfo(input.dtype)
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    finite = ops.where(input == inf, high, ops.where(input == -inf, low, input))
    return cast(Tensor, ops.where(ops.isnan(input), nan, finite))


@register(method=True, in_place=True)
def clamp_min(input: Any, min: Any) -> Any:
    """`clamp` from below alone."""
    return clamp(input, min)


@register(method=True, in_place=True)
def clamp_max(input: Any, max: Any) -> Any:
    """`clamp` from above alone."""
    return clamp(input, None, max)


@register(method=True, in_place=True)
def round(input: Any, *, decimals: int = 0) -> Any:
    """The nearest whole number, of two the even one; with `decimals` so many digits after the point, or before it.

    With `decimals` it is round(x · 10ᵈ) / 10ᵈ, as in PyTorch. Its slope is 0. Raises DTypeError for `decimals` of ints.

    >>> import minigrad as mg
    >>> mg.round(mg.tensor([0.125, 2.5, 1234.0]), decimals=-2).tolist()
    [0.0, 0.0, 1200.0]
    """
    check_number(decimals, "round", "decimals", whole=True)
    if not decimals:
        return ops.round(input)
    if isinstance(input, Tensor):
        floats_of(input, "round")
    scale = 10.0 ** abs(decimals)
    return ops.round(input * scale) / scale if decimals > 0 else ops.round(input / scale) * scale


@register_method("where")
def _chosen(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """These numbers where `condition` holds, else `other`: see `mg.where`."""
    return cast(Tensor, where(condition, self, other))


@register_method("fill_")
def _fill(input: Tensor, value: Tensor | float) -> Tensor:
    """Overwrite each number with `value`. Raises DTypeError where that does not fit into the type."""
    return input.copy_(value if isinstance(value, Tensor) else number("fill_", value, input.dtype))


@register_method("zero_")
def _zero(input: Tensor) -> Tensor:
    """Overwrite each number with 0."""
    return input.copy_(0.0 if input.dtype.is_floating_point else False)


_clamped, _clamped_numbers = in_place_by_copy(clamp), in_place(ops.clamp)


@register_method("clamp_", "clip_")
def _clamp(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Overwrite these numbers with `clamp` of them, and return them."""
    numbers = [x for x in (min, max) if x is not None]
    if not numbers or not self.dtype.is_floating_point or any(isinstance(x, Tensor) for x in numbers):
        return cast(Tensor, _clamped(self, min, max))
    return _clamped_numbers(self, min, max)


@register(method=True, in_place=True)
def exp2(input: Tensor) -> Tensor:
    """2 to the power `input`."""
    return cast(Tensor, ops.pow(2.0, tensor_of(input, "exp2")))


@register(method=True, in_place=True)
def log10(input: Tensor) -> Tensor:
    """The logarithm to base 10, as ln x / ln 10: its last digit is rounded twice."""
    return cast(Tensor, ops.log(tensor_of(input, "log10")) / math.log(10.0))


@register(method=True, in_place=True)
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """``log(x / (1 - x))``, from which `sigmoid` comes back; with `eps`, of x brought into eps … 1 - eps."""
    x = tensor_of(input, "logit") if eps is None else clamp(tensor_of(input, "logit"), eps, 1 - eps)
    return cast(Tensor, ops.log(x) - ops.log1p(x * -1.0))  # a bool has no negative, that of a byte is another


@register(method=True)
def logaddexp(input: Any, other: Any) -> Tensor:
    """``log(exp(input) + exp(other))`` without overflow."""
    a, b = operands_of("logaddexp", input=input, other=other)
    first = a >= b  # of two that are equal one is the larger, so that the rules of `where` cut nothing off
    high, low = where(first, a, b), where(first, b, a)
    gap = where(ops.logical_and(high == low, ops.isinf(high)), 0.0, low - high)
    return cast(Tensor, high + ops.softplus(gap))


@register(method=True, in_place=True)
def hypot(input: Any, other: Any) -> Tensor:
    """``sqrt(input**2 + other**2)``, also where the squares are too large or too small; inf if either is infinite."""
    a, b = operands_of("hypot", input=input, other=other)
    size = ops.maximum(ops.abs(a.detach()), ops.abs(b.detach()))
    by = where(ops.logical_and(size > 0, size < inf), size, 1.0)
    found = ops.sqrt(ops.square(a / by) + ops.square(b / by)) * by
    endless = ops.logical_or(ops.isinf(a), ops.isinf(b))
    return cast(Tensor, where(ops.logical_and(ops.isnan(found), endless), inf, found))  # beside nan


@register(method=True, in_place=True)
def fix(input: Tensor) -> Tensor:
    """`trunc` by its other name."""
    return cast(Tensor, ops.trunc(input))


@register(method=True, in_place=True)
def frac(input: Tensor) -> Tensor:
    """What is behind the point, with the sign of `input`; its slope is 1."""
    return cast(Tensor, floats_of(input, "frac") - ops.trunc(input))


@register(method=True, in_place=True)
def deg2rad(input: Tensor) -> Tensor:
    """Degrees as radians."""
    return tensor_of(input, "deg2rad") * (math.pi / 180.0)


@register(method=True, in_place=True)
def rad2deg(input: Tensor) -> Tensor:
    """Radians as degrees."""
    return tensor_of(input, "rad2deg") * (180.0 / math.pi)


@register(method=True, in_place=True)
def heaviside(input: Any, values: Any) -> Tensor:
    """0 where `input` is below 0, 1 where it is above, and `values` where it is 0; nan stays nan. It has no slope."""
    x, at = [t.detach() for t in operands_of("heaviside", input=input, values=values)]
    if x.dtype is not at.dtype:
        raise DTypeError(f"heaviside: input holds {x.dtype.name}, and values {at.dtype.name}; convert one.")
    step = where(x == 0, at, (x > 0).to(x.dtype))
    return cast(Tensor, where(ops.isnan(x), x, step) if x.dtype.is_floating_point else step)


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
