"""Dropout as modules: in training they set numbers, or whole channels, to 0; after ``eval()`` they change nothing."""

from __future__ import annotations

from typing import Any

from minigrad import functional as F
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_share
from minigrad.nn.applied import AppliedToInput

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "FeatureAlphaDropout"]


class _Dropout(AppliedToInput):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        check_share(p, type(self).__name__, "p")
        super().__init__(p=p, inplace=inplace)

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self.applies)(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout, of="dropout"):
    """Each number 0 with probability `p`, the others divided by 1 - p. Srivastava et al. 2014.

    >>> import minigrad as mg
    >>> mg.nn.Dropout(0.5).eval()(mg.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    """


class Dropout1d(_Dropout, of="dropout1d"):
    """Each channel of (N, C, L), or one (C, L), 0 with probability `p`, the others divided by 1 - p."""


class Dropout2d(_Dropout, of="dropout2d"):
    """Each channel of (N, C, H, W), or one (C, H, W), 0 with probability `p`, the others divided by 1 - p.

    Pixels beside each other tell much the same, so that dropping some of them would say nothing. Tompson et al. 2015.
    """


class AlphaDropout(_Dropout, of="alpha_dropout"):
    """Dropout for networks of `SELU`: mean and variance stay 0 and 1. Klambauer et al. 2017."""


class FeatureAlphaDropout(_Dropout, of="feature_alpha_dropout"):
    """`AlphaDropout` of whole channels of (N, C, …)."""
