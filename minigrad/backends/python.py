"""The device ``python``: kernels on floats, for `Value`.

Floats follow IEEE 754, as in NumPy: 1/0 is inf, log(0) is -inf, exp(1000) is inf, (-2)**0.5 is nan.
Python raises an error in all four cases, which would interrupt a lesson before it displays the infinity.
"""

import math
import operator
from collections.abc import Callable
from functools import partial

from minigrad.core.dispatch import PYTHON, kernel

__all__: list[str] = []

inf, nan = math.inf, math.nan

for _name in ("add", "sub", "mul", "neg", "abs", "lt", "le", "gt", "ge", "eq", "ne"):
    kernel(_name, PYTHON)(getattr(operator, _name))


@kernel("div", PYTHON)
def div(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        return nan if a == 0 or a != a else math.copysign(inf, a) * math.copysign(1.0, b)


@kernel("pow", PYTHON)
def pow(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except (OverflowError, ValueError):
        if a < 0 and b != math.floor(b):
            return nan
        return -inf if math.copysign(1.0, a) < 0 and b % 2 == 1 else inf


@kernel("exp", PYTHON)
def exp(a: float) -> float:
    try:
        return math.exp(a)
    except OverflowError:
        return inf


@kernel("log", PYTHON)
def log(a: float) -> float:
    return math.log(a) if a > 0 else -inf if a == 0 else nan


@kernel("sqrt", PYTHON)
def sqrt(a: float) -> float:
    return math.sqrt(a) if a >= 0 else nan


@kernel("sin", PYTHON)
def sin(a: float) -> float:
    return math.sin(a) if -inf < a < inf else nan


@kernel("cos", PYTHON)
def cos(a: float) -> float:
    return math.cos(a) if -inf < a < inf else nan


for _name in ("tanh", "asinh", "atan", "atan2", "erf", "isnan", "isinf", "isfinite"):
    kernel(_name, PYTHON)(getattr(math, _name))


@kernel("tan", PYTHON)
def tan(a: float) -> float:
    return math.tan(a) if -inf < a < inf else nan


@kernel("asin", PYTHON)
def asin(a: float) -> float:
    return math.asin(a) if -1 <= a <= 1 else nan


@kernel("acos", PYTHON)
def acos(a: float) -> float:
    return math.acos(a) if -1 <= a <= 1 else nan


@kernel("sinh", PYTHON)
def sinh(a: float) -> float:
    try:
        return math.sinh(a)
    except OverflowError:
        return math.copysign(inf, a)


@kernel("cosh", PYTHON)
def cosh(a: float) -> float:
    try:
        return math.cosh(a)
    except OverflowError:
        return inf


@kernel("acosh", PYTHON)
def acosh(a: float) -> float:
    return math.acosh(a) if a >= 1 else nan


@kernel("atanh", PYTHON)
def atanh(a: float) -> float:
    return math.atanh(a) if -1 < a < 1 else math.copysign(inf, a) if -1 <= a <= 1 else nan


@kernel("expm1", PYTHON)
def expm1(a: float) -> float:
    try:
        return math.expm1(a)
    except OverflowError:
        return inf


@kernel("log1p", PYTHON)
def log1p(a: float) -> float:
    return math.log1p(a) if a > -1 else -inf if a == -1 else nan


@kernel("log2", PYTHON)
def log2(a: float) -> float:
    return math.log2(a) if a > 0 else -inf if a == 0 else nan


@kernel("square", PYTHON)
def square(a: float) -> float:
    return a * a


kernel("reciprocal", PYTHON)(partial(div, 1.0))


@kernel("rsqrt", PYTHON)
def rsqrt(a: float) -> float:
    return 1.0 / math.sqrt(a) if a > 0 else math.copysign(inf, a) if a == 0 else nan


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    """Wrap `function` to return floats, and to preserve infinities, nan and the sign of zero."""
    return lambda a: math.copysign(function(a), a) if -inf < a < inf else a


kernel("floor", PYTHON)(_whole(math.floor))
kernel("ceil", PYTHON)(_whole(math.ceil))
kernel("trunc", PYTHON)(_whole(math.trunc))
kernel("round", PYTHON)(_whole(round))


@kernel("floor_divide", PYTHON)
def floor_divide(a: float, b: float) -> float:
    return div(a, b) if b == 0 else a // b if -inf < a < inf else nan


@kernel("remainder", PYTHON)
def remainder(a: float, b: float) -> float:
    return a % b if b != 0 and -inf < a < inf else nan


@kernel("logical_and", PYTHON)
def logical_and(a: float, b: float) -> bool:
    return a != 0 and b != 0


@kernel("logical_or", PYTHON)
def logical_or(a: float, b: float) -> bool:
    return a != 0 or b != 0


@kernel("logical_xor", PYTHON)
def logical_xor(a: float, b: float) -> bool:
    return (a != 0) is not (b != 0)


@kernel("logical_not", PYTHON)
def logical_not(a: float) -> bool:
    return a == 0


@kernel("sign", PYTHON)
def sign(a: float) -> float:
    return 1.0 if a > 0 else -1.0 if a < 0 else 0.0  # also 0 for nan, as in PyTorch; NumPy returns nan


@kernel("maximum", PYTHON)
def maximum(a: float, b: float) -> float:
    return a if a > b or a != a else b


@kernel("minimum", PYTHON)
def minimum(a: float, b: float) -> float:
    return a if a < b or a != a else b


@kernel("where", PYTHON)
def where(condition: bool, a: float, b: float) -> float:
    return a if condition else b


@kernel("clamp", PYTHON)
def clamp(a: float, *, min: float | None, max: float | None) -> float:
    if min is not None and (a < min or min != min):
        a = min
    return max if max is not None and (a > max or max != max) else a


@kernel("lerp", PYTHON)
def lerp(a: float, b: float, c: float) -> float:
    return a + c * (b - a) if abs(c) < 0.5 else b - (b - a) * (1.0 - c)  # exact at both ends: c = 0 and c = 1


# --- activations ---


@kernel("sigmoid", PYTHON)
def sigmoid(a: float) -> float:
    if a >= 0:
        return 1.0 / (1.0 + math.exp(-a))
    e = math.exp(a)  # for a < 0 the formula above may overflow
    return e / (1.0 + e)


@kernel("softplus", PYTHON)
def softplus(a: float) -> float:
    return (0.0 if a <= 0 else a) + math.log1p(math.exp(-abs(a)))  # PyTorch returns a for a > 20, equal within 1e-10


@kernel("silu", PYTHON)
def silu(a: float) -> float:
    y: float = a * sigmoid(a)
    return y


@kernel("mish", PYTHON)
def mish(a: float) -> float:
    return a * math.tanh(softplus(a))


@kernel("softsign", PYTHON)
def softsign(a: float) -> float:
    return a / (1.0 + abs(a))


@kernel("relu", PYTHON)
def relu(a: float) -> float:
    return 0.0 if a <= 0 else a  # this comparison propagates nan


@kernel("relu_backward", PYTHON)
def relu_backward(a: float, b: float) -> float:
    return 0.0 if b <= 0 else a


@kernel("relu6", PYTHON)
def relu6(a: float) -> float:
    return 0.0 if a < 0 else 6.0 if a >= 6 else a


@kernel("hardtanh", PYTHON)
def hardtanh(a: float, *, min_val: float, max_val: float) -> float:
    y: float = clamp(a, min=min_val, max=max_val)
    return y


@kernel("selu", PYTHON)
def selu(a: float) -> float:
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return scale * alpha * math.expm1(a) if a <= 0 else scale * a


@kernel("elu", PYTHON)
def elu(a: float, *, alpha: float) -> float:
    return alpha * math.expm1(a) if a < 0 else a


@kernel("leaky_relu", PYTHON)
def leaky_relu(a: float, *, negative_slope: float) -> float:
    return a if a > 0 else a * negative_slope


@kernel("prelu", PYTHON)
def prelu(a: float, b: float) -> float:
    return a if a > 0 else a * b


@kernel("step", PYTHON)
def step(a: float, *, alpha: float) -> float:
    return 1.0 if a > 0 else alpha if a == a else nan


@kernel("gelu", PYTHON)
def gelu(a: float) -> float:
    return a * (0.5 * (1.0 + math.erf(a * math.sqrt(0.5))))


@kernel("gelu_tanh", PYTHON)
def gelu_tanh(a: float) -> float:
    return a * float(sigmoid(2.0 * math.sqrt(2.0 / math.pi) * (a + 0.044715 * (a * a * a))))  # also accurate for a < 0


@kernel("gelu_backward", PYTHON)
def gelu_backward(a: float, b: float) -> float:
    density = math.exp(-0.5 * b * b) / math.sqrt(2.0 * math.pi)
    return a * (0.5 * (1.0 + math.erf(b * math.sqrt(0.5))) + b * density)


@kernel("gelu_tanh_backward", PYTHON)
def gelu_tanh_backward(a: float, b: float) -> float:
    root, cubic = math.sqrt(2.0 / math.pi), 0.044715
    bent = 2.0 * root * (b + cubic * (b * b * b))
    s: float = sigmoid(bent)
    rest: float = sigmoid(-bent)  # 1 - s would cancel where s is close to 1
    return a * (s + b * ((s * rest) * (2.0 * root * (1.0 + 3.0 * cubic * (b * b)))))
