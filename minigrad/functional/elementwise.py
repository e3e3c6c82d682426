"""Functions of each number alone: PyTorch's, where they take more than the operations themselves do.

Every elementwise operation is a function and a method by its own name, as in ``mg.sin(x)`` and ``x.sin()``; those that
compute numbers also write in place, as in ``x.sin_()``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from minigrad import ops
from minigrad._tensor import Tensor
from minigrad.dtypes import get_default_dtype, of_number, result_type
from minigrad.errors import DivisionError, DTypeError, ShapeError
from minigrad.functional.inline import inlined
from minigrad.op import OPS, Op

__all__ = [
    "METHODS",
    "add",
    "allclose",
    "clamp",
    "div",
    "equal",
    "floor_divide",
    "gelu",
    "isclose",
    "logsigmoid",
    "pow",
    "prelu",
    "remainder",
    "softplus",
    "sub",
    "where",
]


def add(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """``input + alpha * other``. Raises DTypeError for whole numbers and an `alpha` with fractions."""
    return ops.add(input, _times(alpha, other, input, "add"))


def sub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """``input - alpha * other``. Raises DTypeError for whole numbers and an `alpha` with fractions."""
    return ops.sub(input, _times(alpha, other, input, "sub"))


def _times(alpha: float, other: Any, input: Any, name: str) -> Any:
    if alpha % 1 and isinstance(input, Tensor) and _whole(input) and _whole(other):
        raise DTypeError(f"{name}: alpha={alpha} has fractions, and both operands are whole numbers; convert one.")
    return other if alpha == 1 else other * alpha


def _whole(x: Any) -> bool:
    return not x.dtype.is_floating_point if isinstance(x, Tensor) else isinstance(x, int)


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """``input / other``, and its `rounding_mode`: None, "trunc" towards 0 or "floor" down.

    Raises DTypeError for another mode, and DivisionError where whole numbers are divided by 0 and rounded.
    """
    if rounding_mode is None:
        return ops.div(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode != "trunc":
        raise DTypeError(f'div: rounding_mode={rounding_mode!r} is none of None, "trunc" and "floor".')
    _check_divisor(input, other, "div")
    quotient = ops.trunc(ops.div(input, other))
    return quotient.to(ops.add(input, other).dtype) if isinstance(quotient, Tensor) else quotient  # ints stay ints


def floor_divide(input: Any, other: Any) -> Any:
    """``input // other``, rounded down. Raises DivisionError where whole numbers are divided by 0."""
    _check_divisor(input, other, "floor_divide")
    return ops.floor_divide(input, other)


def remainder(input: Any, other: Any) -> Any:
    """``input % other``, with the sign of `other`. Raises DivisionError where whole numbers are divided by 0."""
    _check_divisor(input, other, "remainder")
    return ops.remainder(input, other)


def _check_divisor(input: Any, other: Any, name: str) -> None:
    if not (_whole(input) and _whole(other)):
        return
    if bool(OPS["any"](other == 0, dim=None, keepdim=False)) if isinstance(other, Tensor) else other == 0:
        raise DivisionError(f"{name}: a whole number divided by 0; convert to float for inf and nan.")


def pow(input: Any, exponent: Any) -> Any:
    """``input ** exponent``. Raises DTypeError for whole numbers to a whole power below 0.

    The slope in `input` is 0 where `exponent` is 0, also at 0 ** 0, and that in `exponent` 0 where `input` is 0.
    """
    if isinstance(input, Tensor) and isinstance(exponent, int) and exponent < 0 and not input.dtype.is_floating_point:
        raise DTypeError(f"pow: a whole number to the power {exponent} is not whole; write x.float() ** {exponent}.")
    return ops.pow(input, exponent)


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

    Its slope is 1 inside and at the ends, 0 outside; where ends are tensors, ties share it, as in `maximum`. Raises
    DTypeError where both ends are open.
    """
    if min is None and max is None:
        raise DTypeError("clamp: both ends are open; give min, max or both.")
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        above = input if min is None else ops.maximum(input, min)
        return above if max is None else ops.minimum(above, max)
    if isinstance(input, Tensor) and not input.dtype.is_floating_point:
        input = input.to(result_type([input.dtype], numbers=[of_number(x) for x in (min, max) if x is not None]))
    return ops.clamp(input, min, max)


def gelu(input: Any, approximate: str = "none") -> Any:
    """x Φ(x), with Φ the normal distribution; `approximate` "tanh" takes a formula for Φ (Hendrycks, Gimpel 2016)."""
    if approximate not in ("none", "tanh"):
        raise DTypeError(f'gelu: approximate={approximate!r} is neither "none" nor "tanh".')
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
    """The logarithm of `sigmoid`, without underflow."""
    return -ops.softplus(-input)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`leaky_relu` with a learned slope: `weight` has one number, or one a channel, dimension 1 of `input`.

    He et al. 2015, eq. 1. Raises ShapeError for another number of slopes.
    """
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.ndim > 1 or weight._array.size not in (1, channels):
        raise ShapeError(
            f"prelu: weight has shape {weight.shape}, not (1,) or ({channels},): one slope, or one a channel."
        )
    if input.ndim > 1 and weight._array.size > 1:
        weight = cast(Tensor, OPS["reshape"](weight, shape=(channels, *[1] * (input.ndim - 2))))
    elif not input.ndim:
        weight = cast(Tensor, OPS["reshape"](weight, shape=()))
    return cast(Tensor, ops.prelu(input, weight))


def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Where ``|input - other| <= atol + rtol * |other|``; equal infinities are close, and with `equal_nan` two nans."""
    other = other if other.dtype.is_floating_point else other.to(get_default_dtype())
    input = input if input.dtype.kind else input.to(other.dtype)
    near = ops.le(ops.abs(input - other), atol + rtol * ops.abs(other))
    close = ops.logical_or(input == other, ops.logical_and(near, ops.isfinite(other)))
    if equal_nan:
        close = ops.logical_or(close, ops.logical_and(ops.isnan(input), ops.isnan(other)))
    return cast(Tensor, close)


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether `isclose` holds everywhere."""
    return bool(OPS["all"](isclose(input, other, rtol, atol, equal_nan), dim=None, keepdim=False))


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and the same numbers."""
    return input.shape == other.shape and bool(OPS["all"](input == other, dim=None, keepdim=False))


# --- methods and operators ---

ALIASES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "clip": "clamp", "divide": "div", "greater": "gt", "greater_equal": "ge",
    "less": "lt", "less_equal": "le", "multiply": "mul", "negative": "neg", "not_equal": "ne", "subtract": "sub",
    "true_divide": "div",
}  # fmt: skip


def _fill(input: Tensor, value: Tensor | float) -> Tensor:
    """Overwrite each number with `value`."""
    return input.copy_(value)


def _zero(input: Tensor) -> Tensor:
    """Overwrite each number with 0."""
    return input.copy_(0.0 if input.dtype.is_floating_point else False)


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    if isinstance(function, Op) and function.inlined is not None:
        return function.inlined
    return lambda self, *args, **keywords: function(self, *args, **keywords)


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    if isinstance(function, Op) and function.inlined is not None:
        function = function.inlined
    return lambda self, other: function(other, self)


def _compared(op: Op) -> Callable[..., Any]:
    def compare(self: Tensor, other: Any) -> Any:  # x == None is False, as for all Python things
        return NotImplemented if other is None or isinstance(other, str) else op(self, other)

    return compare


def _in_place(op: Op) -> Callable[..., Tensor]:
    """The method that writes the result of `op` over its first operand; `alpha` multiplies the second."""

    def method(self: Tensor, *args: Any, alpha: float = 1, **attrs: Any) -> Tensor:
        inputs = (self, *args)
        if attrs or op.attrs:
            inputs, attrs = op.bind(inputs, attrs)
        if alpha != 1:
            inputs = (self, inputs[1] * alpha)
        return self._write(op, inputs, attrs)

    return method


for _op in ops.elementwise.ELEMENTWISE + ops.activation.ACTIVATIONS:
    _op.inlined = inlined(_op)

METHODS: dict[str, Any] = {"equal": equal, "allclose": allclose, "isclose": isclose, "prelu": prelu}
METHODS |= {"fill_": _fill, "zero_": _zero, "where": lambda self, condition, other: where(condition, self, other)}
_FRONTS: dict[str, Any] = {"add": add, "sub": sub, "div": div, "floor_divide": floor_divide, "remainder": remainder}
_FRONTS |= {"clamp": clamp, "pow": pow}
for _op in (*ops.elementwise.ELEMENTWISE, ops.relu, ops.sigmoid):
    if _op is not ops.where:
        METHODS[_op.name] = _FRONTS.get(_op.name) or _method(_op)
        if _op.differentiable or _op is ops.floor_divide:
            METHODS[f"{_op.name}_"] = _in_place(_op)
for _name in (*ops.elementwise.__all__, *ops.activation.__all__):
    if _name not in __all__:  # the operation itself is the function
        globals()[_name] = getattr(ops, _name)
        __all__ += [_name]  # noqa: PLE0604 -- a name of a function
for _alias, _name in ALIASES.items():
    globals()[_alias] = globals().get(_name) or getattr(ops, _name)
    METHODS[_alias] = METHODS[_name]
    if f"{_name}_" in METHODS:
        METHODS[f"{_alias}_"] = METHODS[f"{_name}_"]
__all__ += ALIASES  # noqa: PLE0605 -- a dict gives its keys
for _sign, _name in (("iadd", "add"), ("isub", "sub"), ("imul", "mul"), ("itruediv", "div"), ("ipow", "pow")):
    METHODS[f"__{_sign}__"] = METHODS[f"{_name}_"]
for _sign, _front in (("mod", remainder), ("floordiv", floor_divide), ("pow", pow)):
    METHODS |= {f"__{_sign}__": _front, f"__r{_sign}__": _reflected(_front)}
for _sign, _op in (("add", ops.add), ("sub", ops.sub), ("mul", ops.mul), ("truediv", ops.div)):
    METHODS |= {f"__{_sign}__": _method(_op), f"__r{_sign}__": _reflected(_op)}
METHODS |= {"__eq__": _compared(ops.eq), "__ne__": _compared(ops.ne)}
for _sign, _op in (("neg", ops.neg), ("abs", ops.abs)):
    METHODS[f"__{_sign}__"] = _method(_op)
