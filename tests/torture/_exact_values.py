"""Functions and their derivatives at 50 digits with mpmath, and points near which precision is easily lost."""

from __future__ import annotations

from typing import Any

import mpmath as mp

__all__ = ["FUNCTIONS", "NEAR", "exact"]

DIGITS = 50


def _normal(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _density(x: Any) -> Any:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _softplus(x: Any) -> Any:
    return mp.log1p(mp.exp(x))


def _mish_derivative(x: Any) -> Any:
    return mp.tanh(_softplus(x)) + x * _sigmoid(x) * mp.sech(_softplus(x)) ** 2


def _inner(x: Any) -> Any:
    return mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)


def _gelu_tanh_derivative(x: Any) -> Any:
    inner = mp.sqrt(2 / mp.pi) * (1 + 3 * mp.mpf("0.044715") * x * x)
    return _sigmoid(2 * _inner(x)) + x / 2 * mp.sech(_inner(x)) ** 2 * inner


SCALE, ALPHA = mp.mpf("1.0507009873554804934193349852946"), mp.mpf("1.6732632423543772848170429916717")

# Each with its derivative.
FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "exp": (mp.exp, mp.exp),
    "expm1": (mp.expm1, mp.exp),
    "log": (mp.log, lambda x: 1 / x),
    "log1p": (mp.log1p, lambda x: 1 / (1 + x)),
    "log2": (lambda x: mp.log(x) / mp.log(2), lambda x: 1 / (x * mp.log(2))),
    "sqrt": (mp.sqrt, lambda x: 1 / (2 * mp.sqrt(x))),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), lambda x: -(x ** mp.mpf("-1.5")) / 2),
    "reciprocal": (lambda x: 1 / x, lambda x: -1 / x**2),
    "sin": (mp.sin, mp.cos),
    "cos": (mp.cos, lambda x: -mp.sin(x)),
    "tan": (mp.tan, lambda x: 1 / mp.cos(x) ** 2),
    "asin": (mp.asin, lambda x: 1 / mp.sqrt((1 - x) * (1 + x))),
    "acos": (mp.acos, lambda x: -1 / mp.sqrt((1 - x) * (1 + x))),
    "atan": (mp.atan, lambda x: 1 / (1 + x * x)),
    "sinh": (mp.sinh, mp.cosh),
    "cosh": (mp.cosh, mp.sinh),
    "tanh": (mp.tanh, lambda x: mp.sech(x) ** 2),
    "asinh": (mp.asinh, lambda x: 1 / mp.sqrt(1 + x * x)),
    "acosh": (mp.acosh, lambda x: 1 / mp.sqrt((x - 1) * (x + 1))),
    "atanh": (mp.atanh, lambda x: 1 / ((1 - x) * (1 + x))),
    "erf": (mp.erf, lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x)),
    "sigmoid": (_sigmoid, lambda x: _sigmoid(x) * _sigmoid(-x)),
    "softplus": (_softplus, _sigmoid),
    "silu": (lambda x: x * _sigmoid(x), lambda x: _sigmoid(x) * (1 + x * _sigmoid(-x))),
    "mish": (lambda x: x * mp.tanh(_softplus(x)), _mish_derivative),
    "softsign": (lambda x: x / (1 + abs(x)), lambda x: 1 / (1 + abs(x)) ** 2),
    "gelu": (lambda x: x * _normal(x), lambda x: _normal(x) + x * _density(x)),
    "gelu_tanh": (lambda x: x * _sigmoid(2 * _inner(x)), _gelu_tanh_derivative),
    "selu": (
        lambda x: SCALE * (x if x > 0 else ALPHA * mp.expm1(x)),
        lambda x: SCALE * (1 if x > 0 else ALPHA * mp.exp(x)),
    ),
    "elu": (lambda x: x if x > 0 else 1.5 * mp.expm1(x), lambda x: mp.mpf(1) if x > 0 else 1.5 * mp.exp(x)),
}
# Points approached from both sides, as far as the function is defined. Large ones apply to float32 too.
NEAR: dict[str, tuple[float, ...]] = {
    "exp": (0.0, -87.3, 88.7),
    "expm1": (0.0, 88.0, -17.0),
    "log": (0.0, 1.0),
    "log1p": (0.0, -1.0),
    "log2": (0.0, 1.0),
    "sin": (0.0, 3.141592653589793, 1e5, 710.0),
    "cos": (1.5707963267948966, 1e5),
    "tan": (0.0, 1.5707963267948966, 3.141592653589793),
    "asin": (0.0, 1.0, -1.0),
    "acos": (0.0, 1.0, -1.0),
    "sinh": (0.0, 88.0),
    "cosh": (0.0, -88.0),
    "tanh": (0.0, 0.5, 9.0),
    "asinh": (0.0, -30.0, 1e10),
    "acosh": (1.0, 1e10),
    "atanh": (0.0, 1.0, -1.0),
    "erf": (0.0, 0.46875, 4.0, -5.9),
    "sigmoid": (0.0, -30.0, -80.0, 30.0),
    "softplus": (0.0, -80.0, 19.0, 21.0),
    "silu": (0.0, -1.278, -80.0, 30.0),
    "mish": (0.0, -80.0, 30.0),
    "softsign": (0.0, 1e4, -1e6),
    "gelu": (0.0, -1.0, -3.0, -9.0, 5.0),
    "gelu_tanh": (0.0, -1.0, -3.0, -9.0, 5.0),
    "selu": (0.0, -17.0, -80.0),
    "elu": (0.0, -17.0, -80.0),
}


def exact(function: Any, points: list[float]) -> list[Any]:
    """Return `function` at the exact points, to 50 digits; None where it is not defined."""
    results: list[Any] = []
    with mp.workdps(DIGITS):
        for x in points:
            try:
                y = function(mp.mpf(x))
            except (ValueError, ZeroDivisionError):
                y = None
            results.append(y if isinstance(y, mp.mpf) and mp.isfinite(y) else None)
    return results
