"""Float kernels follow IEEE 754 in every corner case, as NumPy does."""

import math
import operator

import numpy as np
import pytest

from cases import merge_cases
from minigrad.core.dispatch import dispatch, get_kernels
from strategies import ATTRS

scale, alpha = 1.0507009873554805, 1.6732632423543772  # of selu

CORNERS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -2.0,
    0.5,
    -0.5,
    3.0,
    -3.0,
    1e308,
    -1e308,
    5e-324,
    1e3,
    -1e3,
    math.inf,
    -math.inf,
    math.nan,
)
ROOT = np.sqrt(2.0 / np.pi)


def _half_one_plus_tanh(x, sign=1.0):
    """Return (1 + tanh u) / 2 for the u of tanh-GELU, or with sign=-1 one minus that."""
    u = sign * ROOT * (x + 0.044715 * x**3)
    return np.exp(np.minimum(2.0 * u, 0.0)) / (1.0 + np.exp(-2.0 * abs(u)))


def _gelu_tanh_slope(y):
    return _half_one_plus_tanh(y) + y * (
        (_half_one_plus_tanh(y) * _half_one_plus_tanh(y, -1.0)) * (2.0 * ROOT * (1.0 + 0.134145 * (y * y)))
    )


UNARY = {
    "neg": np.negative, "abs": np.abs, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos,
    "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "relu": lambda x: np.maximum(x, 0.0),
    "sign": lambda x: np.nan_to_num(np.sign(x)),  # as in PyTorch; NumPy returns nan for nan
    "square": np.square, "reciprocal": np.reciprocal, "rsqrt": lambda x: 1 / np.sqrt(x), "expm1": np.expm1,
    "log1p": np.log1p, "log2": np.log2, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erf": math.erf,
    "floor": np.floor, "ceil": np.ceil, "round": np.round, "trunc": np.trunc,
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "logical_not": np.logical_not,
    "softplus": lambda x: np.logaddexp(x, 0.0), "silu": lambda x: x / (1 + np.exp(-x)),
    "mish": lambda x: x * np.tanh(np.logaddexp(x, 0.0)), "softsign": lambda x: x / (1 + np.abs(x)),
    "relu6": lambda x: np.clip(x, 0.0, 6.0), "hardtanh": lambda x: np.clip(x, -1.0, 1.0),
    "selu": lambda x: scale * np.where(x > 0, x, alpha * np.expm1(x)),
    "clamp": lambda x: np.clip(x, -1.0, 1.0), "elu": lambda x: np.where(x > 0, x, 1.5 * np.expm1(x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.1 * x), "step": lambda x: np.where(x > 0, 1.0, 0.1) + 0.0 * np.sign(x),
    "gelu": lambda x: x * (0.5 * (1.0 + math.erf(x * np.sqrt(0.5)))),
    "gelu_tanh": lambda x: x * _half_one_plus_tanh(x),
}  # fmt: skip
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power,
    "maximum": np.maximum, "minimum": np.minimum,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "floor_divide": np.floor_divide, "remainder": np.remainder, "prelu": lambda x, y: np.where(x > 0, x, x * y),
    "atan2": np.arctan2,
    "gelu_backward": lambda x, y: x * (
        0.5 * (1.0 + math.erf(y * np.sqrt(0.5))) + y * (np.exp(-0.5 * y * y) / np.sqrt(2.0 * np.pi))
    ),
    "gelu_tanh_backward": lambda x, y: x * _gelu_tanh_slope(y),
    "relu_backward": lambda x, y: np.where(y <= 0, 0.0, x),
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip


def assert_same(actual, expected, *, signed_zero=True):
    expected = float(expected)
    if math.isnan(expected):
        return math.isnan(actual)
    close = actual == expected or math.isclose(actual, expected, rel_tol=1e-15, abs_tol=5e-324)
    return close and (not signed_zero or actual != 0 or math.copysign(1, actual) == math.copysign(1, expected))


@merge_cases
@pytest.mark.parametrize("name", UNARY)
def test_unary_function_matches_numpy_in_every_corner_case(name):
    with np.errstate(all="ignore"):
        for x in CORNERS:
            assert assert_same(
                dispatch(name, "python", (x,), ATTRS.get(name)),
                UNARY[name](np.float64(x)),
                signed_zero=name not in ("relu", "relu6", "sign"),
            ), x


@merge_cases
@pytest.mark.parametrize("name", BINARY)
def test_binary_function_matches_numpy_in_every_corner_case(name):
    with np.errstate(all="ignore"):
        for x in CORNERS:
            for y in CORNERS:
                if (name, y) == ("pow", 0.5):
                    continue  # NumPy calls sqrt, which differs from IEEE pow at -0 and -inf
                expected = BINARY[name](np.float64(x), np.float64(y))
                actual = dispatch(name, "python", (x, y))
                assert assert_same(actual, expected, signed_zero=name not in ("maximum", "minimum")), (x, y)


def test_where_selects_without_arithmetic():
    assert dispatch("where", "python", (True, 1.0, math.nan)) == 1.0
    assert dispatch("where", "python", (False, math.inf, 2.0)) == 2.0


def test_clamp_takes_either_bound_or_none_and_max_wins():
    def clamp(a, low, high):
        return dispatch("clamp", "python", (a,), {"min": low, "max": high})

    assert (clamp(5.0, None, 2.0), clamp(-5.0, 0.0, None), clamp(5.0, None, None)) == (2.0, 0.0, 5.0)
    assert clamp(5.0, 3.0, 1.0) == np.clip(5.0, 3.0, 1.0) == 1.0
    assert all(math.isnan(clamp(5.0, *ends)) for ends in ((math.nan, 1.0), (1.0, math.nan), (math.nan, None)))


def test_lerp_reaches_both_ends_exactly():
    for a, b in ((0.1, 1e30), (1e30, 0.1), (-3.0, 0.7)):
        assert [dispatch("lerp", "python", (a, b, c)) for c in (0.0, 1.0)] == [a, b]
    assert dispatch("lerp", "python", (1.0, 3.0, 0.25)) == 1.5


def test_every_python_kernel_is_compared_here():
    from minigrad import OPS

    compared = {*UNARY, *BINARY, "where", "lerp"}
    assert {name for name in OPS if "python" in get_kernels(name)} <= compared
