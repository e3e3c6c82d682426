"""Arithmetic functions that take more arguments than the operation itself, such as `alpha` and `rounding_mode`."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from minigrad import ops
from minigrad.backends.limits import convert_scalar
from minigrad.core.dtypes import float64
from minigrad.core.errors import DivisionError, DTypeError
from minigrad.core.modes import modes
from minigrad.core.op import Op
from minigrad.core.registry import inplace_by_copy, register, register_method
from minigrad.core.shapes import numel
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_option, check_tensor, common_dtype, promote_operands, scale_operand
from minigrad.functional.elementwise import where
from minigrad.functional.methods import in_place


@register(method=True, in_place=in_place(ops.add))
def add(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """Return ``input + alpha * other``. Raises DTypeError for integers and a float `alpha`."""
    return ops.add(input, scale_operand(alpha, other, input, "add"))


@register(method=True, in_place=in_place(ops.sub), aliases=("subtract",))
def sub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """Return ``input - alpha * other``. Raises DTypeError for integers and a float `alpha`."""
    return ops.sub(input, scale_operand(alpha, other, input, "sub"))


def _is_integer(x: Any) -> bool:
    return not x.dtype.is_floating_point if isinstance(x, Tensor) else isinstance(x, int)


@register(method=True)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Return ``input + value * tensor1 * tensor2``, as in the second moment of Adam."""
    return cast(Tensor, ops.add(input, _scaled_term(ops.mul, "addcmul", input, tensor1, tensor2, value)))


@register(method=True)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Return ``input + value * tensor1 / tensor2``, as in the update of Adam."""
    return cast(Tensor, ops.add(input, _scaled_term(ops.div, "addcdiv", input, tensor1, tensor2, value)))


def _scaled_term(op: Op, name: str, input: Any, tensor1: Any, tensor2: Any, value: float) -> Any:
    """Return ``value * op(tensor1, tensor2)``, computed in the common dtype of the three tensors."""
    operands = {"input": input, "tensor1": tensor1, "tensor2": tensor2}
    _, *factors = [check_tensor(x, name, argument) for argument, x in operands.items()]
    dtype = common_dtype(input, *factors)
    return scale_operand(value, op(*[x.to(dtype) for x in factors]), input, name, "value")


@register_method("addcmul_")
def _add_product(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Add ``value * tensor1 * tensor2`` in place."""
    return input.add_(_scaled_term(ops.mul, "addcmul_", input, tensor1, tensor2, value))


@register_method("addcdiv_")
def _add_quotient(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Add ``value * tensor1 / tensor2`` in place."""
    return input.add_(_scaled_term(ops.div, "addcdiv_", input, tensor1, tensor2, value))


@register(method=True, aliases=("divide", "true_divide"))
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """Return ``input / other``, rounded by `rounding_mode`: None (exact), "trunc" (toward 0) or "floor" (down).

    Raises ArgumentError for another mode, and DivisionError for rounded division of integers by 0.
    """
    check_option(rounding_mode, (None, "trunc", "floor"), "div", "rounding_mode")
    if rounding_mode is None:
        return ops.div(input, other)
    a, b = (x.detach() if modes.grad and getattr(x, "requires_grad", False) else x for x in (input, other))
    rounded = floor_divide(a, b) if rounding_mode == "floor" else _truncate_quotient(a, b)
    if a is input and b is other:
        return rounded
    return ops.where(False, ops.add(input, other), rounded)  # has a gradient of 0, even where `other` is 0


def _truncate_quotient(a: Any, b: Any) -> Any:
    """Return ``a / b`` rounded toward 0. Integers are divided exactly, without conversion to floats."""
    if not (_is_integer(a) and _is_integer(b)):
        return ops.trunc(ops.div(a, b))
    _check_divisor("div", a, b)
    floor = ops.floor_divide(a, b)
    return ops.where(ops.logical_and(floor < 0, floor * b != a), floor + 1, floor)


def _check_divisor(name: str, input: Any, other: Any) -> None:
    if not (_is_integer(input) and _is_integer(other)) or (isinstance(input, Tensor) and not numel(input.shape)):
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


def _check_integer_power(input: Any, exponent: Any) -> None:
    if isinstance(input, Tensor) and isinstance(exponent, int) and exponent < 0 and not input.dtype.is_floating_point:
        raise DTypeError(f"pow: integers to negative integer powers are not allowed; write x.float() ** {exponent}.")


@register(method=True, in_place=in_place(ops.pow, _check_integer_power), operator="pow")
def pow(input: Any, exponent: Any) -> Any:
    """Return ``input ** exponent``. Raises DTypeError for negative integer powers of integers.

    The derivative with respect to `input` is 0 where `exponent` is 0, even at 0 ** 0; with respect to `exponent` it is
    0 where `input` is 0.
    """
    _check_integer_power(input, exponent)
    return ops.pow(input, exponent)


@register(method=True)
@register_method("__pos__")
def positive(input: Tensor) -> Tensor:
    """Return `input` itself, ``+input``. Raises DTypeError for bool tensors."""
    if not check_tensor(input, "positive").dtype.kind:
        raise DTypeError(
            "positive: the + operator is not supported on bool tensors.\n  Convert it first: x.to(mg.int64)."
        )
    return input


_divide_rounded_, _divide_ = inplace_by_copy(div), in_place(ops.div)


@register_method("div_", "divide_", "true_divide_")
def _div(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Divide in place by `other`, and return the tensor: see `div`."""
    if rounding_mode is None:
        return _divide_(self, other)
    return cast(Tensor, _divide_rounded_(self, other, rounding_mode=rounding_mode))


@register(method=True, in_place=True)
def fmod(input: Tensor, other: Any) -> Tensor:
    """Return the remainder of ``input / other`` with the sign of `input`, as C's fmod; see also `remainder`."""
    magnitude = check_tensor(input, "fmod")
    other = other if isinstance(other, Tensor) else convert_scalar("fmod", other, common_dtype(input, other))
    if magnitude.dtype.kind:
        magnitude = where(input < 0, -input, input)  # unlike abs, the derivative at 0 is 1
    rest = remainder(magnitude, ops.abs(other) if isinstance(other, Tensor) else abs(other))
    return cast(Tensor, where(input < 0, -rest, rest))


@register
def rsub(input: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """Return ``other - alpha * input``."""
    return cast(Tensor, sub(other, check_tensor(input, "rsub"), alpha=alpha))


@register(method=True, in_place=True)
def float_power(input: Any, exponent: Any) -> Tensor:
    """Return ``input ** exponent``, computed in float64."""
    base, power = [x.to(float64) for x in promote_operands("float_power", input=input, exponent=exponent)]
    return base**power
