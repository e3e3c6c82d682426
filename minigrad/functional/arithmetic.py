"""Arithmetic functions that take more arguments than the operation itself, such as `alpha` and `rounding_mode`."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from minigrad import ops
from minigrad.backends.limits import number
from minigrad.core.dtypes import float64
from minigrad.core.errors import DivisionError, DTypeError
from minigrad.core.modes import modes
from minigrad.core.op import Op
from minigrad.core.registry import in_place_by_copy, register, register_method
from minigrad.core.shapes import numel
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_option, common_dtype, operands_of, scaled, tensor_of
from minigrad.functional.elementwise import where
from minigrad.functional.methods import in_place


@register(method=True, in_place=in_place(ops.add))
def add(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """Return ``input + alpha * other``. Raises DTypeError for integers and a float `alpha`."""
    return ops.add(input, scaled(alpha, other, input, "add"))


@register(method=True, in_place=in_place(ops.sub), aliases=("subtract",))
def sub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """Return ``input - alpha * other``. Raises DTypeError for integers and a float `alpha`."""
    return ops.sub(input, scaled(alpha, other, input, "sub"))


def _whole(x: Any) -> bool:
    return not x.dtype.is_floating_point if isinstance(x, Tensor) else isinstance(x, int)


@register(method=True)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Return ``input + value * tensor1 * tensor2``, as in the second moment of Adam."""
    return cast(Tensor, ops.add(input, _combined(ops.mul, "addcmul", input, tensor1, tensor2, value)))


@register(method=True)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Return ``input + value * tensor1 / tensor2``, as in the update of Adam."""
    return cast(Tensor, ops.add(input, _combined(ops.div, "addcdiv", input, tensor1, tensor2, value)))


def _combined(op: Op, name: str, input: Any, tensor1: Any, tensor2: Any, value: float) -> Any:
    """Return `value` times `op` of the two tensors, in the common dtype of all three."""
    given = {"input": input, "tensor1": tensor1, "tensor2": tensor2}
    _, *pair = [tensor_of(x, name, argument) for argument, x in given.items()]
    dtype = common_dtype(input, *pair)
    return scaled(value, op(*[x.to(dtype) for x in pair]), input, name, "value")


@register_method("addcmul_")
def _add_product(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Add ``value * tensor1 * tensor2`` in place."""
    return input.add_(_combined(ops.mul, "addcmul_", input, tensor1, tensor2, value))


@register_method("addcdiv_")
def _add_quotient(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Add ``value * tensor1 / tensor2`` in place."""
    return input.add_(_combined(ops.div, "addcdiv_", input, tensor1, tensor2, value))


@register(method=True, aliases=("divide", "true_divide"))
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """Return ``input / other``, rounded by `rounding_mode`: None (exact), "trunc" (toward 0) or "floor" (down).

    Raises ArgumentError for another mode, and DivisionError for rounded division of integers by 0.
    """
    check_option(rounding_mode, (None, "trunc", "floor"), "div", "rounding_mode")
    if rounding_mode is None:
        return ops.div(input, other)
    a, b = (x.detach() if modes.grad and getattr(x, "requires_grad", False) else x for x in (input, other))
    rounded = floor_divide(a, b) if rounding_mode == "floor" else _truncated(a, b)
    if a is input and b is other:
        return rounded
    return ops.where(False, ops.add(input, other), rounded)  # the gradient is 0 even where `other` is 0


def _truncated(a: Any, b: Any) -> Any:
    """Return ``a / b`` rounded toward 0; integers are not converted to floats, which would lose digits."""
    if not (_whole(a) and _whole(b)):
        return ops.trunc(ops.div(a, b))
    _check_divisor("div", a, b)
    floor = ops.floor_divide(a, b)
    return ops.where(ops.logical_and(floor < 0, floor * b != a), floor + 1, floor)


def _check_divisor(name: str, input: Any, other: Any) -> None:
    if not (_whole(input) and _whole(other)) or (isinstance(input, Tensor) and not numel(input.shape)):
        return
    if bool(ops.any(other == 0, dim=None, keepdim=False)) if isinstance(other, Tensor) else other == 0:
        raise DivisionError(f"{name}: integer division or modulo by zero; convert to float for inf and nan.")


@register(
    method=True, in_place=in_place(ops.floor_divide, partial(_check_divisor, "floor_divide")), operator="floordiv"
)
def floor_divide(input: Any, other: Any) -> Any:
    """Return ``input // other``, rounded down. Raises DivisionError for integers divided by 0."""
    _check_divisor("floor_divide", input, other)
    return ops.floor_divide(input, other)


@register(method=True, in_place=in_place(ops.remainder, partial(_check_divisor, "remainder")), operator="mod")
def remainder(input: Any, other: Any) -> Any:
    """Return ``input % other``, with the sign of `other`. Raises DivisionError for integers modulo 0."""
    _check_divisor("remainder", input, other)
    return ops.remainder(input, other)


def _check_power(input: Any, exponent: Any) -> None:
    if isinstance(input, Tensor) and isinstance(exponent, int) and exponent < 0 and not input.dtype.is_floating_point:
        raise DTypeError(f"pow: integers to negative integer powers are not allowed; write x.float() ** {exponent}.")


@register(method=True, in_place=in_place(ops.pow, _check_power), operator="pow")
def pow(input: Any, exponent: Any) -> Any:
    """Return ``input ** exponent``. Raises DTypeError for integers to negative integer powers.

    The derivative with respect to `input` is 0 where `exponent` is 0, even at 0 ** 0; with respect to `exponent` it is
    0 where `input` is 0.
    """
    _check_power(input, exponent)
    return ops.pow(input, exponent)


@register(method=True)
@register_method("__pos__")
def positive(input: Tensor) -> Tensor:
    """Return `input` itself, ``+input``. Raises DTypeError for bool tensors."""
    if not tensor_of(input, "positive").dtype.kind:
        raise DTypeError(
            "positive: the + operator is not supported on bool tensors.\n  Convert it first: x.to(mg.int64)."
        )
    return input


_rounded, _divided = in_place_by_copy(div), in_place(ops.div)


@register_method("div_", "divide_", "true_divide_")
def _div(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Divide in place by `other`, and return the tensor: see `div`."""
    if rounding_mode is None:
        return _divided(self, other)
    return cast(Tensor, _rounded(self, other, rounding_mode=rounding_mode))


@register(method=True, in_place=True)
def fmod(input: Tensor, other: Any) -> Tensor:
    """Return the remainder of ``input / other`` with the sign of `input`, as C's fmod; see also `remainder`."""
    size = tensor_of(input, "fmod")
    other = other if isinstance(other, Tensor) else number("fmod", other, common_dtype(input, other))
    if size.dtype.kind:
        size = where(input < 0, -input, input)  # unlike abs, has a derivative at 0
    left = remainder(size, ops.abs(other) if isinstance(other, Tensor) else abs(other))
    return cast(Tensor, where(input < 0, -left, left))


@register
def rsub(input: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """Return ``other - alpha * input``."""
    return cast(Tensor, sub(other, tensor_of(input, "rsub"), alpha=alpha))


@register(method=True, in_place=True)
def float_power(input: Any, exponent: Any) -> Tensor:
    """Return ``input ** exponent``, computed in float64."""
    base, power = [x.to(float64) for x in operands_of("float_power", input=input, exponent=exponent)]
    return base**power
