"""Where numbers differ from PyTorch's on purpose, a reason a line; and calls at whose corners slopes are compared."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

__all__ = ["CORNERS", "DECISIONS", "Decision"]


class Decision(NamedTuple):
    """Where a result may differ from PyTorch's, by operands, ours and PyTorch's: `where` gives a mask; and why."""

    op: str
    of: str  # "value", or the operand whose slope it is
    where: Any
    why: str


def _zeros(x: Any, mine: Any, its: Any) -> Any:
    return (mine == 0) & (its == 0)


def _cancelling(x: Any, mine: Any, its: Any) -> Any:
    import numpy as np

    return abs(mine - its) <= 32 * np.finfo(mine.dtype).eps * np.maximum(1, abs(x[0])) * np.maximum(1, abs(x[-1]))


def _fused(x: Any, mine: Any, its: Any) -> Any:
    import numpy as np

    a, b, c = (abs(v) for v in x)
    size = np.maximum(a, b) * np.maximum(1, c)
    return ~np.isfinite(mine) | (abs(mine - its) <= 8 * np.finfo(mine.dtype).eps * size) | _zeros(x, mine, its)


def _nan(x: Any, mine: Any, its: Any) -> Any:
    return x[0] != x[0]


def _there(x: Any, mine: Any, its: Any) -> Any:
    import numpy as np

    return np.isfinite(mine) & ~np.isfinite(its)


DECISIONS = [
    Decision("relu", "value", _zeros, "of -0 it is 0, the larger one; PyTorch keeps the sign"),
    Decision("gelu", "value", _zeros, "of what is far below 0 it is -0, a times 0; in PyTorch's float32 alone 0"),
    Decision("gelu", "value", lambda x, mine, its: mine == math.inf, "of inf it is inf; PyTorch's vectors say nan"),
    Decision("gelu", "value", _cancelling, "1 + erf cancels below 0, there and here, to ulps of 1"),
    Decision("gelu_tanh", "value", _cancelling, "1 + tanh cancels below 0, there and here, to ulps of 1"),
    Decision("gelu_tanh", "a", _cancelling, "1 - tanh² cancels there, to ulps of 1 times a"),
    Decision("mish", "a", _cancelling, "1 - tanh² cancels, there and here, to ulps of 1 times a"),
    Decision("selu", "a", _nan, "of nan PyTorch's is the scale or nan, by its place in memory"),
    Decision("elu", "a", _nan, "of nan PyTorch's slope is 1 or nan, by its place in memory"),
    Decision("hardtanh", "a", _nan, "of nan PyTorch's slope is 1 or 0, by its place in memory"),
    Decision("relu6", "a", _nan, "the same"),
    Decision("gelu_backward", "value", _cancelling, "the same"),
    Decision("gelu_backward", "a", _cancelling, "the same"),
    Decision("gelu_backward", "b", _cancelling, "the same"),
    Decision("gelu_tanh_backward", "value", _cancelling, "the same"),
    Decision("gelu_tanh_backward", "a", _cancelling, "the same"),
    Decision("gelu_tanh_backward", "b", _cancelling, "1 - tanh² cancels, there and here"),
    Decision("pow", "a", _zeros, "a slope of 0 has the sign of its factor 0"),
    Decision("pow", "b", _zeros, "the same"),
    Decision("remainder", "value", _zeros, "a zero has the sign of b, as Python's"),
    Decision("remainder", "value", _there, "it is exact however large a / b; PyTorch's vectorised one is nan"),
    Decision("lerp", "value", _fused, "PyTorch multiplies and adds in one step: it overflows and cancels later"),
    Decision("sinh", "value", _there, "finite up to the largest number, where PyTorch halves an infinite exponential"),
    Decision("cosh", "value", _there, "the same"),
    Decision("sinh", "a", _there, "the same"),
    Decision("cosh", "a", _there, "the same"),
    Decision("softsign", "a", _there, "of inf the slope is the limit, 0; PyTorch divides inf by inf"),
    Decision(
        "gelu_tanh_backward", "b", lambda x, mine, its: abs(x[1]) > 1e6, "its powers overflow, and inf * 0 is nan"
    ),
    Decision("silu", "value", lambda x, mine, its: its == 0, "PyTorch's sigmoid is 0 from exp(-88.7) on"),
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
