"""Dropout as modules: in training they set numbers, or whole channels, to 0; after ``eval()`` they change nothing."""

from __future__ import annotations

from minigrad import functional as F
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_share
from minigrad.nn.module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "FeatureAlphaDropout"]


class _Dropout(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        check_share(p, type(self).__name__, "p")
        self.p, self.inplace = p, inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Each number 0 with probability `p`, the others divided by 1 - p. Srivastava et al. 2014.

    >>> import minigrad as mg
    >>> mg.nn.Dropout(0.5).eval()(mg.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """Each channel of (N, C, L), or one (C, L), 0 with probability `p`, the others divided by 1 - p."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """Each channel of (N, C, H, W), or one (C, H, W), 0 with probability `p`, the others divided by 1 - p.

    Pixels beside each other tell much the same, so that dropping some of them would say nothing. Tompson et al. 2015.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Dropout for networks of `SELU`: mean and variance stay 0 and 1. Klambauer et al. 2017."""

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels of (N, C, …)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
