"""Dropout layers, which zero random elements or channels in training and are the identity in evaluation mode."""

from __future__ import annotations

from typing import Any

from minigrad import functional as F
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_probability
from minigrad.nn.function_module import UnaryFunctionModule

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "FeatureAlphaDropout"]


class _Dropout(UnaryFunctionModule):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        check_probability(p, type(self).__name__, "p")
        super().__init__(p=p, inplace=inplace)

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self.applies)(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout, of="dropout"):
    """Zeroes each element with probability `p` and scales the others by 1 / (1 - p). Srivastava et al. 2014.

    >>> import minigrad as mg
    >>> mg.nn.Dropout(0.5).eval()(mg.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    """


class Dropout1d(_Dropout, of="dropout1d"):
    """Zeroes each channel of (N, C, L) or (C, L) with probability `p` and scales the others by 1 / (1 - p)."""


class Dropout2d(_Dropout, of="dropout2d"):
    """Zeroes each channel of (N, C, H, W) or (C, H, W) with probability `p` and scales the others by 1 / (1 - p).

    Adjacent pixels are strongly correlated, so dropping single elements would not regularise. Tompson et al. 2015.
    """


class AlphaDropout(_Dropout, of="alpha_dropout"):
    """Dropout that preserves mean 0 and variance 1, for networks with `SELU` activations. Klambauer et al. 2017."""


class FeatureAlphaDropout(_Dropout, of="feature_alpha_dropout"):
    """`AlphaDropout` that masks entire channels of (N, C, …)."""
