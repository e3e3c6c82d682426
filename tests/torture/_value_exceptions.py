"""Deliberate differences from PyTorch's values, with reasons; and functions with corners, to compare derivatives at."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

__all__ = ["CORNERS", "EXCEPTIONS", "Exception_"]


class Exception_(NamedTuple):
    """Where a result may differ from PyTorch's: `mask` returns a mask from the operands and both results; and why."""

    op: str
    output: str  # "value", or the operand of the derivative
    mask: Any
    reason: str


def are_both_zero(x: Any, actual: Any, expected: Any) -> Any:
    return (actual == 0) & (expected == 0)


def is_within_cancellation(x: Any, actual: Any, expected: Any) -> Any:
    import numpy as np

    return abs(actual - expected) <= 32 * np.finfo(actual.dtype).eps * np.maximum(1, abs(x[0])) * np.maximum(
        1, abs(x[-1])
    )


def is_within_fma(x: Any, actual: Any, expected: Any) -> Any:
    import numpy as np

    a, b, c = (abs(v) for v in x)
    size = np.maximum(a, b) * np.maximum(1, c)
    return (
        ~np.isfinite(actual)
        | (abs(actual - expected) <= 8 * np.finfo(actual.dtype).eps * size)
        | are_both_zero(x, actual, expected)
    )


def is_nan(x: Any, actual: Any, expected: Any) -> Any:
    return x[0] != x[0]


def is_only_minigrad_finite(x: Any, actual: Any, expected: Any) -> Any:
    import numpy as np

    return np.isfinite(actual) & ~np.isfinite(expected)


EXCEPTIONS = [
    Exception_("relu", "value", are_both_zero, "relu(-0) is 0, the maximum; PyTorch returns -0"),
    Exception_(
        "gelu", "value", are_both_zero, "far below 0 the result is -0, a times 0; PyTorch returns 0 in float32 only"
    ),
    Exception_(
        "gelu",
        "value",
        lambda x, actual, expected: actual == math.inf,
        "gelu(inf) is inf; PyTorch's vectorised version returns nan",
    ),
    Exception_("gelu", "value", is_within_cancellation, "1 + erf cancels below 0 in both libraries, to ulps of 1"),
    Exception_(
        "gelu_tanh", "value", is_within_cancellation, "1 + tanh cancels below 0 in both libraries, to ulps of 1"
    ),
    Exception_("gelu_tanh", "a", is_within_cancellation, "1 - tanh² cancels in PyTorch, to ulps of 1 times a"),
    Exception_("mish", "a", is_within_cancellation, "1 - tanh² cancels in both libraries, to ulps of 1 times a"),
    Exception_("selu", "a", is_nan, "at nan PyTorch's derivative is the scale or nan, depending on the memory layout"),
    Exception_("elu", "a", is_nan, "at nan PyTorch's derivative is 1 or nan, depending on the memory layout"),
    Exception_("hardtanh", "a", is_nan, "at nan PyTorch's derivative is 1 or 0, depending on the memory layout"),
    Exception_("relu6", "a", is_nan, "the same"),
    Exception_("gelu_backward", "value", is_within_cancellation, "the same"),
    Exception_("gelu_backward", "a", is_within_cancellation, "the same"),
    Exception_("gelu_backward", "b", is_within_cancellation, "the same"),
    Exception_("gelu_tanh_backward", "value", is_within_cancellation, "the same"),
    Exception_("gelu_tanh_backward", "a", is_within_cancellation, "the same"),
    Exception_("gelu_tanh_backward", "b", is_within_cancellation, "1 - tanh² cancels in both libraries"),
    Exception_("pow", "a", are_both_zero, "a derivative of 0 has the sign of its factor 0"),
    Exception_("pow", "b", are_both_zero, "the same"),
    Exception_("remainder", "value", are_both_zero, "a zero has the sign of b, as in Python"),
    Exception_(
        "remainder",
        "value",
        is_only_minigrad_finite,
        "the result is exact for any a / b; PyTorch's vectorised version returns nan",
    ),
    Exception_("lerp", "value", is_within_fma, "PyTorch uses a fused multiply-add, which overflows and cancels later"),
    Exception_(
        "sinh",
        "value",
        is_only_minigrad_finite,
        "finite up to the largest float, where PyTorch halves an infinite exponential",
    ),
    Exception_("cosh", "value", is_only_minigrad_finite, "the same"),
    Exception_("sinh", "a", is_only_minigrad_finite, "the same"),
    Exception_("cosh", "a", is_only_minigrad_finite, "the same"),
    Exception_(
        "softsign", "a", is_only_minigrad_finite, "at inf the derivative is the limit, 0; PyTorch divides inf by inf"
    ),
    Exception_(
        "gelu_tanh_backward",
        "b",
        lambda x, actual, expected: abs(x[1]) > 1e6,
        "its powers overflow, and inf * 0 is nan",
    ),
    Exception_("silu", "value", lambda x, actual, expected: expected == 0, "PyTorch's sigmoid is 0 below -88.7"),
]

CORNERS: dict[str, tuple[Any, tuple[tuple[float, ...], ...]]] = {
    "where around a root": (lambda L, x: L.where(x > 0, x.sqrt(), L.zeros_like(x)), ((0.0, 4.0),)),
    "root": (lambda L, x: x.sqrt(), ((0.0, 4.0, math.inf),)),
    "norm": (lambda L, x: x.norm(), ((0.0, 0.0, 0.0),)),
    "norm 1": (lambda L, x: x.norm(p=1), ((0.0, -2.0, 3.0),)),
    "norm 3": (lambda L, x: x.norm(p=3), ((0.0, 0.0),)),
    "norm 1.5": (lambda L, x: x.norm(p=1.5), ((0.0, -2.0),)),
    "norm inf": (lambda L, x: x.norm(p=math.inf), ((2.0, -2.0, 1.0),)),
    "square": (lambda L, x: x**2, ((0.0, -0.0, 1.0),)),
    "power 0": (lambda L, x: x**0, ((0.0, 1.0, -1.0),)),
    "power 1": (lambda L, x: x**1, ((0.0, 1.0, -1.0),)),
    "power of 0": (lambda L, x: 0.0**x, ((0.0, 1.0, 2.0),)),
    "power, both": (lambda L, x, y: x**y, ((0.0, 0.0, 0.0, 1.0), (0.0, 1.0, 2.0, 0.0))),
    "abs": (lambda L, x: x.abs(), ((0.0, -0.0, -1.0),)),
    "max, tied": (lambda L, x: x.max(), ((3.0, 1.0, 3.0),)),
    "max along, tied": (lambda L, x: x.max(0)[0], ((3.0, 1.0, 3.0),)),
    "maximum, tied": (lambda L, x, y: L.maximum(x, y), ((0.0, 1.0), (0.0, 2.0))),
    "fmax, tied": (lambda L, x, y: L.fmax(x, y), ((0.0, 1.0, math.nan), (0.0, 2.0, 1.0))),
    "relu": (lambda L, x: x.relu(), ((0.0, -0.0, 1.0),)),
    "clamp": (lambda L, x: x.clamp(-1.0, 1.0), ((-1.0, 1.0, 2.0),)),
    "atan2 of the origin": (lambda L, x, y: L.atan2(x, y), ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0))),
    "prod with a zero": (lambda L, x: x.prod(), ((0.0, 2.0, 3.0),)),
    "prod with two": (lambda L, x: x.prod(), ((0.0, 0.0, 3.0),)),
    "cumprod with a zero": (lambda L, x: x.cumprod(0), ((2.0, 0.0, 3.0, 4.0),)),
    "std of equals": (lambda L, x: x.std(), ((5.0, 5.0, 5.0),)),
    "var of equals": (lambda L, x: x.var(), ((5.0, 5.0, 5.0),)),
    "cdist": (lambda L, x, y: L.cdist(x.view(1, -1), y.view(1, -1)), ((1.0, 2.0), (1.0, 2.0))),
    "cdist 1": (lambda L, x, y: L.cdist(x.view(1, -1), y.view(1, -1), p=1.0), ((1.0, 2.0), (1.0, 3.0))),
    "pairwise": (lambda L, x, y: L.nn.functional.pairwise_distance(x, y), ((1.0, 2.0), (1.0, 2.0))),
    "cosine": (lambda L, x, y: L.cosine_similarity(x, y, dim=0), ((0.0, 0.0), (1.0, 2.0))),
    "normalize": (lambda L, x: L.nn.functional.normalize(x, dim=0), ((0.0, 0.0),)),
    "logit": (lambda L, x: x.logit(), ((0.0, 1.0, 0.5),)),
    "sinc": (lambda L, x: x.sinc(), ((0.0, 1.0),)),
    "fmod": (lambda L, x, y: L.fmod(x, y), ((0.0, -5.0), (3.0, 3.0))),
    "hypot": (lambda L, x, y: L.hypot(x, y), ((0.0, 3e30), (2.0, 4e30))),
    "xlogy": (lambda L, x, y: L.xlogy(x, y), ((1.0, 2.0), (0.0, 2.0))),
    "logsumexp of nothing likely": (lambda L, x: x.logsumexp(0), ((-math.inf, -math.inf),)),
    "softmax of one likely": (lambda L, x: x.softmax(0), ((-math.inf, 0.0),)),
}
