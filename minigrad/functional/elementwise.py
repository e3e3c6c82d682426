"""Functions of each number alone: PyTorch's, where they take more than the operations themselves do.

Every elementwise operation is a function and a method by its own name, as in ``mg.sin(x)`` and ``x.sin()``; those that
compute numbers also write in place, as in ``x.sin_()``.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any, cast, overload

from minigrad import ops
from minigrad.backends.limits import number
from minigrad.core.dtypes import finfo, get_default_dtype, of_number, result_type
from minigrad.core.errors import ArgumentError, DivisionError, DTypeError, ShapeError
from minigrad.core.modes import modes
from minigrad.core.op import Op
from minigrad.core.registry import in_place_by_copy, register, register_method
from minigrad.core.shapes import numel
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import (
    check_number,
    check_option,
    common_dtype,
    floats_of,
    scaled,
    tensor_of,
)
from minigrad.functional.methods import in_place


@register(method=True, in_place=in_place(ops.add))
def add(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """``input + alpha * other``. Raises DTypeError for integers and a float `alpha`."""
    return ops.add(input, scaled(alpha, other, input, "add"))


@register(method=True, in_place=in_place(ops.sub), aliases=("subtract",))
def sub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """``input - alpha * other``. Raises DTypeError for integers and a float `alpha`."""
    return ops.sub(input, scaled(alpha, other, input, "sub"))


def _whole(x: Any) -> bool:
    return not x.dtype.is_floating_point if isinstance(x, Tensor) else isinstance(x, int)


@register(method=True)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``, as in the second moment of Adam."""
    return cast(Tensor, ops.add(input, _combined(ops.mul, "addcmul", input, tensor1, tensor2, value)))


@register(method=True)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``, as in the step of Adam."""
    return cast(Tensor, ops.add(input, _combined(ops.div, "addcdiv", input, tensor1, tensor2, value)))


def _combined(op: Op, name: str, input: Any, tensor1: Any, tensor2: Any, value: float) -> Any:
    """`value` times `op` of the two tensors, in the dtype that all three have together."""
    given = {"input": input, "tensor1": tensor1, "tensor2": tensor2}
    _, *pair = [tensor_of(x, name, argument) for argument, x in given.items()]
    dtype = common_dtype(input, *pair)
    return scaled(value, op(*[x.to(dtype) for x in pair]), input, name, "value")


@register_method("addcmul_")
def _add_product(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Add ``value * tensor1 * tensor2`` to these numbers."""
    return input.add_(_combined(ops.mul, "addcmul_", input, tensor1, tensor2, value))


@register_method("addcdiv_")
def _add_quotient(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Add ``value * tensor1 / tensor2`` to these numbers."""
    return input.add_(_combined(ops.div, "addcdiv_", input, tensor1, tensor2, value))


@register(method=True, aliases=("divide", "true_divide"))
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """``input / other``, and its `rounding_mode`: None, "trunc" towards 0 or "floor" down.

    Raises ArgumentError for another mode, and DivisionError where whole numbers are divided by 0 and rounded.
    """
    check_option(rounding_mode, (None, "trunc", "floor"), "div", "rounding_mode")
    if rounding_mode is None:
        return ops.div(input, other)
    a, b = (x.detach() if modes.grad and getattr(x, "requires_grad", False) else x for x in (input, other))
    rounded = floor_divide(a, b) if rounding_mode == "floor" else _truncated(a, b)
    if a is input and b is other:
        return rounded
    return ops.where(False, ops.add(input, other), rounded)  # whose slope is 0, also where `other` is


def _truncated(a: Any, b: Any) -> Any:
    """``a / b``, rounded towards 0; of integers without a detour by floats, which have fewer digits."""
    if not (_whole(a) and _whole(b)):
        return ops.trunc(ops.div(a, b))
    _check_divisor("div", a, b)
    floor = ops.floor_divide(a, b)
    return ops.where(ops.logical_and(floor < 0, floor * b != a), floor + 1, floor)


def _check_divisor(name: str, input: Any, other: Any) -> None:
    if not (_whole(input) and _whole(other)) or (isinstance(input, Tensor) and not numel(input.shape)):
        return
    if bool(ops.any(other == 0, dim=None, keepdim=False)) if isinstance(other, Tensor) else other == 0:
        raise DivisionError(f"{name}: a whole number divided by 0; convert to float for inf and nan.")


@register(
    method=True, in_place=in_place(ops.floor_divide, partial(_check_divisor, "floor_divide")), operator="floordiv"
)
def floor_divide(input: Any, other: Any) -> Any:
    """``input // other``, rounded down. Raises DivisionError where whole numbers are divided by 0."""
    _check_divisor("floor_divide", input, other)
    return ops.floor_divide(input, other)


@register(method=True, in_place=in_place(ops.remainder, partial(_check_divisor, "remainder")), operator="mod")
def remainder(input: Any, other: Any) -> Any:
    """``input % other``, with the sign of `other`. Raises DivisionError where whole numbers are divided by 0."""
    _check_divisor("remainder", input, other)
    return ops.remainder(input, other)


def _check_power(input: Any, exponent: Any) -> None:
    if isinstance(input, Tensor) and isinstance(exponent, int) and exponent < 0 and not input.dtype.is_floating_point:
        raise DTypeError(f"pow: a whole number to the power {exponent} is not whole; write x.float() ** {exponent}.")


@register(method=True, in_place=in_place(ops.pow, _check_power), operator="pow")
def pow(input: Any, exponent: Any) -> Any:
    """``input ** exponent``. Raises DTypeError for whole numbers to a whole power below 0.

    The slope in `input` is 0 where `exponent` is 0, also at 0 ** 0, and that in `exponent` 0 where `input` is 0.
    """
    _check_power(input, exponent)
    return ops.pow(input, exponent)


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


@register
def gelu(input: Any, approximate: str = "none") -> Any:
    """x Φ(x), with Φ the normal distribution; `approximate` "tanh" takes a formula for Φ (Hendrycks, Gimpel 2016)."""
    check_option(approximate, ("none", "tanh"), "gelu", "approximate")
    return ops.gelu(input) if approximate == "none" else ops.gelu_tanh(input)


@register
def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """``log(1 + exp(beta * input)) / beta``, a smooth relu; where beta * input is above `threshold`, the input itself.

    From 20 on the two are less than 1e-8 apart, so that a `threshold` of 20 or more, which PyTorch needs against
    overflow, changes nothing here.
    """
    scaled = input if beta == 1 else input * beta
    soft = ops.softplus(scaled) if beta == 1 else ops.softplus(scaled) / beta
    return soft if threshold >= 20 else ops.where(scaled > threshold, input, soft)


@register
def logsigmoid(input: Any) -> Any:
    """The logarithm of `sigmoid`, without underflow. Raises DTypeError for a tensor of integers."""
    if isinstance(input, Tensor):
        floats_of(input, "logsigmoid")
    return -ops.softplus(-input)


@register
def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """Clamp to the range from `min_val` to `max_val`. Raises ArgumentError where the first is the larger."""
    found = ops.hardtanh(input, min_val=min_val, max_val=max_val)
    if min_val > max_val:
        raise ArgumentError(f"hardtanh: min_val={min_val} is above max_val={max_val}.")
    return input.copy_(found) if inplace else found


@register(method=True)
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`leaky_relu` with a learned slope: `weight` has one number, or one a channel, dimension 1 of `input`.

    He et al. 2015, eq. 1. Raises ShapeError for another number of slopes.
    """
    channels = input.shape[1] if tensor_of(input, "prelu").ndim > 1 else 1
    if tensor_of(weight, "prelu", "weight").ndim > 1 or weight._array.size not in (1, channels):
        raise ShapeError(
            f"prelu: weight has shape {weight.shape}, not (1,) or ({channels},): one slope, or one a channel."
        )
    if input.ndim > 1 and weight._array.size > 1:
        weight = cast(Tensor, ops.reshape(weight, shape=(channels, *[1] * (input.ndim - 2))))
    elif not input.ndim:
        weight = cast(Tensor, ops.reshape(weight, shape=()))
    return cast(Tensor, ops.prelu(input, weight))


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


# --- methods and operators ---


@register_method("where")
def _chosen(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """These numbers where `condition` holds, else `other`: see `mg.where`."""
    return cast(Tensor, where(condition, self, other))


@register(method=True)
@register_method("__pos__")
def positive(input: Tensor) -> Tensor:
    """``+input``: itself. Raises DTypeError for bools, which have no sign."""
    if not tensor_of(input, "positive").dtype.kind:
        raise DTypeError("positive: bools have no sign; convert them first: x.to(mg.int64).")
    return input


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


_rounded, _divided = in_place_by_copy(div), in_place(ops.div)


@register_method("div_", "divide_", "true_divide_")
def _div(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Overwrite these numbers with `div` of them, and return them."""
    if rounding_mode is None:
        return _divided(self, other)
    return cast(Tensor, _rounded(self, other, rounding_mode=rounding_mode))
