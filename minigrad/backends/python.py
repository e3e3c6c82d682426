"""The device ``python``: kernels on floats, for `Value`.

Floats are IEEE 754 floats, as in NumPy: 1/0 is inf, log(0) is -inf, exp(1000) is inf, (-2)**0.5 is nan.
Python raises in all four places; that would end a lesson where a picture of the infinity should begin.
"""

import math
import operator

from minigrad.kernels import kernel

__all__ = ["DEVICE"]

DEVICE = "python"
inf, nan = math.inf, math.nan

for _name in ("add", "sub", "mul", "neg", "abs", "lt", "le", "gt", "ge", "eq", "ne"):
    kernel(_name, DEVICE)(getattr(operator, _name))


@kernel("div", DEVICE)
def div(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        return nan if a == 0 or a != a else math.copysign(inf, a) * math.copysign(1.0, b)


@kernel("pow", DEVICE)
def pow(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except (OverflowError, ValueError):
        if a < 0 and b != math.floor(b):
            return nan
        return -inf if math.copysign(1.0, a) < 0 and b % 2 == 1 else inf


@kernel("exp", DEVICE)
def exp(a: float) -> float:
    try:
        return math.exp(a)
    except OverflowError:
        return inf


@kernel("log", DEVICE)
def log(a: float) -> float:
    return math.log(a) if a > 0 else -inf if a == 0 else nan


@kernel("sqrt", DEVICE)
def sqrt(a: float) -> float:
    return math.sqrt(a) if a >= 0 else nan


@kernel("sin", DEVICE)
def sin(a: float) -> float:
    return math.sin(a) if -inf < a < inf else nan


@kernel("cos", DEVICE)
def cos(a: float) -> float:
    return math.cos(a) if -inf < a < inf else nan


kernel("tanh", DEVICE)(math.tanh)


@kernel("sigmoid", DEVICE)
def sigmoid(a: float) -> float:
    if a >= 0:
        return 1.0 / (1.0 + math.exp(-a))
    e = math.exp(a)  # for a < 0 the form above would overflow
    return e / (1.0 + e)


@kernel("relu", DEVICE)
def relu(a: float) -> float:
    return 0.0 if a <= 0 else a  # this way round a nan stays a nan


@kernel("sign", DEVICE)
def sign(a: float) -> float:
    return 1.0 if a > 0 else -1.0 if a < 0 else 0.0  # of a nan too, as in PyTorch; NumPy says nan


@kernel("maximum", DEVICE)
def maximum(a: float, b: float) -> float:
    return a if a > b or a != a else b


@kernel("minimum", DEVICE)
def minimum(a: float, b: float) -> float:
    return a if a < b or a != a else b


@kernel("where", DEVICE)
def where(condition: bool, a: float, b: float) -> float:
    return a if condition else b
