"""Functions of each number alone: PyTorch's, where they take more than the operations themselves do.

Every elementwise operation is a function and a method by its own name, as in ``mg.sin(x)`` and ``x.sin()``; those that
compute numbers also write in place, as in ``x.sin_()``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any, cast, overload

from minigrad import ops
from minigrad.backends.limits import number
from minigrad.core.dtypes import finfo, get_default_dtype, of_number, result_type
from minigrad.core.errors import ArgumentError, DivisionError, DTypeError, ShapeError
from minigrad.core.modes import modes
from minigrad.core.op import OPS, Op
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
from minigrad.functional.inline import inlined
from minigrad.functional.methods import in_place, method, or_in_place, reflected

__all__ = [
    "METHODS",
    "add",
    "addcdiv",
    "addcmul",
    "allclose",
    "clamp",
    "clamp_max",
    "clamp_min",
    "div",
    "equal",
    "floor_divide",
    "gelu",
    "hardtanh",
    "isclose",
    "logsigmoid",
    "nan_to_num",
    "pow",
    "prelu",
    "remainder",
    "round",
    "softplus",
    "sub",
    "where",
]


def add(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """``input + alpha * other``. Raises DTypeError for integers and a float `alpha`."""
    return ops.add(input, scaled(alpha, other, input, "add"))


def sub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """``input - alpha * other``. Raises DTypeError for integers and a float `alpha`."""
    return ops.sub(input, scaled(alpha, other, input, "sub"))


def _whole(x: Any) -> bool:
    return not x.dtype.is_floating_point if isinstance(x, Tensor) else isinstance(x, int)


def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``, as in the second moment of Adam."""
    return cast(Tensor, ops.add(input, _combined(ops.mul, "addcmul", input, tensor1, tensor2, value)))


def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``, as in the step of Adam."""
    return cast(Tensor, ops.add(input, _combined(ops.div, "addcdiv", input, tensor1, tensor2, value)))


def _combined(op: Op, name: str, input: Any, tensor1: Any, tensor2: Any, value: float) -> Any:
    """`value` times `op` of the two tensors, in the dtype that all three have together."""
    given = {"input": input, "tensor1": tensor1, "tensor2": tensor2}
    _, *pair = [tensor_of(x, name, argument) for argument, x in given.items()]
    dtype = common_dtype(input, *pair)
    return scaled(value, op(*[x.to(dtype) for x in pair]), input, name, "value")


def _add_product(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Add ``value * tensor1 * tensor2`` to these numbers."""
    return input.add_(_combined(ops.mul, "addcmul_", input, tensor1, tensor2, value))


def _add_quotient(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Add ``value * tensor1 / tensor2`` to these numbers."""
    return input.add_(_combined(ops.div, "addcdiv_", input, tensor1, tensor2, value))


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


def floor_divide(input: Any, other: Any) -> Any:
    """``input // other``, rounded down. Raises DivisionError where whole numbers are divided by 0."""
    _check_divisor("floor_divide", input, other)
    return ops.floor_divide(input, other)


def remainder(input: Any, other: Any) -> Any:
    """``input % other``, with the sign of `other`. Raises DivisionError where whole numbers are divided by 0."""
    _check_divisor("remainder", input, other)
    return ops.remainder(input, other)


def _check_divisor(name: str, input: Any, other: Any) -> None:
    if not (_whole(input) and _whole(other)) or (isinstance(input, Tensor) and not numel(input.shape)):
        return
    if bool(ops.any(other == 0, dim=None, keepdim=False)) if isinstance(other, Tensor) else other == 0:
        raise DivisionError(f"{name}: a whole number divided by 0; convert to float for inf and nan.")


def pow(input: Any, exponent: Any) -> Any:
    """``input ** exponent``. Raises DTypeError for whole numbers to a whole power below 0.

    The slope in `input` is 0 where `exponent` is 0, also at 0 ** 0, and that in `exponent` 0 where `input` is 0.
    """
    _check_power(input, exponent)
    return ops.pow(input, exponent)


def _check_power(input: Any, exponent: Any) -> None:
    if isinstance(input, Tensor) and isinstance(exponent, int) and exponent < 0 and not input.dtype.is_floating_point:
        raise DTypeError(f"pow: a whole number to the power {exponent} is not whole; write x.float() ** {exponent}.")


@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Tensor, input: Tensor | float, other: Tensor | float) -> Tensor: ...
@overload
def where(condition: Any, input: Any, other: Any) -> Any: ...
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


def nan_to_num(input: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """`input` with `nan` for nans, `posinf` and `neginf` for infinities, by default the extremes of its type."""
    if not input.dtype.is_floating_point:
        return input.clone()
    limits = finfo(input.dtype)
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    finite = ops.where(input == inf, high, ops.where(input == -inf, low, input))
    return cast(Tensor, ops.where(ops.isnan(input), nan, finite))


def clamp_min(input: Any, min: Any) -> Any:
    """`clamp` from below alone."""
    return clamp(input, min)


def clamp_max(input: Any, max: Any) -> Any:
    """`clamp` from above alone."""
    return clamp(input, None, max)


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


def gelu(input: Any, approximate: str = "none") -> Any:
    """x Φ(x), with Φ the normal distribution; `approximate` "tanh" takes a formula for Φ (Hendrycks, Gimpel 2016)."""
    check_option(approximate, ("none", "tanh"), "gelu", "approximate")
    return ops.gelu(input) if approximate == "none" else ops.gelu_tanh(input)


def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """``log(1 + exp(beta * input)) / beta``, a smooth relu; where beta * input is above `threshold`, the input itself.

    From 20 on the two are less than 1e-8 apart, so that a `threshold` of 20 or more, which PyTorch needs against
    overflow, changes nothing here.
    """
    scaled = input if beta == 1 else input * beta
    soft = ops.softplus(scaled) if beta == 1 else ops.softplus(scaled) / beta
    return soft if threshold >= 20 else ops.where(scaled > threshold, input, soft)


def logsigmoid(input: Any) -> Any:
    """The logarithm of `sigmoid`, without underflow. Raises DTypeError for a tensor of integers."""
    if isinstance(input, Tensor):
        floats_of(input, "logsigmoid")
    return -ops.softplus(-input)


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """Clamp to the range from `min_val` to `max_val`. Raises ArgumentError where the first is the larger."""
    found = ops.hardtanh(input, min_val=min_val, max_val=max_val)
    if min_val > max_val:
        raise ArgumentError(f"hardtanh: min_val={min_val} is above max_val={max_val}.")
    return input.copy_(found) if inplace else found


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


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether `isclose` holds everywhere."""
    return bool(ops.all(isclose(input, other, rtol, atol, equal_nan), dim=None, keepdim=False))


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and the same numbers."""
    tensor_of(input, "equal"), tensor_of(other, "equal", "other")
    return input.shape == other.shape and bool(ops.all(input == other, dim=None, keepdim=False))


# --- methods and operators ---


def _chosen(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """These numbers where `condition` holds, else `other`: see `mg.where`."""
    return cast(Tensor, where(condition, self, other))


ALIASES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "clip": "clamp", "divide": "div", "greater": "gt", "greater_equal": "ge",
    "less": "lt", "less_equal": "le", "multiply": "mul", "negative": "neg", "not_equal": "ne", "subtract": "sub",
    "true_divide": "div",
}  # fmt: skip


def _positive(input: Tensor) -> Tensor:
    """``+input``: itself. Raises DTypeError for bools, which have no sign."""
    if not input.dtype.kind:
        raise DTypeError("positive: bools have no sign; convert them first: x.to(mg.int64).")
    return input


def _fill(input: Tensor, value: Tensor | float) -> Tensor:
    """Overwrite each number with `value`. Raises DTypeError where that does not fit into the type."""
    return input.copy_(value if isinstance(value, Tensor) else number("fill_", value, input.dtype))


def _zero(input: Tensor) -> Tensor:
    """Overwrite each number with 0."""
    return input.copy_(0.0 if input.dtype.is_floating_point else False)


def _compared(op: Op) -> Callable[..., Any]:
    def compare(self: Tensor, other: Any) -> Any:  # x == None is False, as for all Python things
        return NotImplemented if other is None or isinstance(other, str) else op(self, other)

    return compare


for _op in ops.elementwise.ELEMENTWISE + ops.activation.ACTIVATIONS:
    _op.inlined = inlined(_op)

METHODS: dict[str, Any] = {"equal": equal, "allclose": allclose, "isclose": isclose, "prelu": prelu}
METHODS |= {"addcdiv": addcdiv, "addcdiv_": _add_quotient, "addcmul": addcmul, "addcmul_": _add_product}
METHODS |= {"clamp_max": clamp_max, "clamp_min": clamp_min, "nan_to_num": nan_to_num}
METHODS |= {"fill_": _fill, "zero_": _zero, "where": _chosen}
_FRONTS: dict[str, Any] = {"add": add, "sub": sub, "div": div, "floor_divide": floor_divide, "remainder": remainder}
_FRONTS |= {"clamp": clamp, "pow": pow, "round": round}
_CHECKS: dict[str, Any] = {name: partial(_check_divisor, name) for name in ("floor_divide", "remainder")}
_CHECKS["pow"] = _check_power
for _op in (*ops.elementwise.ELEMENTWISE, ops.relu, ops.sigmoid):
    if _op is not ops.where:
        METHODS[_op.name] = _FRONTS.get(_op.name) or method(_op)
        if (_op.differentiable or _op is ops.floor_divide) and _op is not ops.clamp:  # that is in `overwriting`
            METHODS[f"{_op.name}_"] = in_place(_op, _CHECKS.get(_op.name))
_MAY_BE_IN_PLACE = {"elu", "leaky_relu", "mish", "relu", "relu6", "selu", "silu"}
for _name in (*ops.elementwise.__all__, *ops.activation.__all__):
    if _name not in __all__:  # the operation itself is the function
        globals()[_name] = or_in_place(OPS[_name]) if _name in _MAY_BE_IN_PLACE else OPS[_name]
        __all__ += [_name]  # noqa: PLE0604 -- a name of a function
for _alias, _name in ALIASES.items():
    globals()[_alias] = globals().get(_name) or getattr(ops, _name)
    METHODS[_alias] = METHODS[_name]
    if f"{_name}_" in METHODS:
        METHODS[f"{_alias}_"] = METHODS[f"{_name}_"]
__all__ += ALIASES  # noqa: PLE0605 -- a dict gives its keys
_IN_PLACE = {"iadd": "add", "isub": "sub", "imul": "mul", "itruediv": "div", "ipow": "pow"}
_IN_PLACE |= {"ifloordiv": "floor_divide", "imod": "remainder"}
for _sign, _name in _IN_PLACE.items():
    METHODS[f"__{_sign}__"] = METHODS[f"{_name}_"]
for _sign, _front in (("mod", remainder), ("floordiv", floor_divide), ("pow", pow)):
    METHODS |= {f"__{_sign}__": _front, f"__r{_sign}__": reflected(_front)}
for _sign, _op in (("add", ops.add), ("sub", ops.sub), ("mul", ops.mul), ("truediv", ops.div)):
    METHODS |= {f"__{_sign}__": method(_op), f"__r{_sign}__": reflected(_op)}
METHODS["__pos__"] = METHODS["positive"] = _positive
METHODS |= {"__eq__": _compared(ops.eq), "__ne__": _compared(ops.ne)}
for _sign, _op in (("neg", ops.neg), ("abs", ops.abs)):
    METHODS[f"__{_sign}__"] = method(_op)
