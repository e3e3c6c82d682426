"""Losses and distances as modules. What they compute is in `minigrad.functional.loss`.

`reduction` is "mean", "sum" or "none". `size_average` and `reduce`, which PyTorch has given up, are not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from minigrad import functional as F
from minigrad.core.errors import ArgumentError
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_option
from minigrad.nn.applied import Applied
from minigrad.nn.module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HingeLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PairwiseDistance",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class _Reduced(Applied):
    """A function whose elements are reduced. `weights` are settings that are buffers."""

    _shown = ()
    _reductions: tuple[str, ...] = ("mean", "sum", "none")

    def __init__(
        self,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        *,
        weights: Mapping[str, Tensor | None] = MappingProxyType({}),
        **settings: Any,
    ) -> None:
        super().__init__(reduction=reduction, **settings)
        name = type(self).__name__
        if size_average is not None or reduce is not None:
            raise ArgumentError(
                f'{name}: size_average and reduce are not here.\n  Write reduction="mean", "sum" or "none".'
            )
        check_option(reduction, self._reductions, name, "reduction")
        for setting, x in weights.items():
            self.register_buffer(setting, x)
        self._settings += tuple(weights)


class _OfTarget(_Reduced):
    """A reduced function of input and target."""

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return getattr(F, self.applies)(input, target, **self._keywords())


class _Loss(_OfTarget):
    """A reduced function of input and target that has no settings of its own."""

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)


class L1Loss(_Loss, of="l1_loss"):
    """``|input - target|``."""


class MSELoss(_Loss, of="mse_loss"):
    """``(input - target) ** 2``.

    >>> import minigrad as mg
    >>> mg.nn.MSELoss()(mg.tensor([1.0, 3.0]), mg.tensor([0.0, 0.0])).item()
    5.0
    """


class SmoothL1Loss(_OfTarget, of="smooth_l1_loss"):
    """A parabola where the difference is below `beta`, and a line beyond. Girshick 2015."""

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction, beta=beta)


class HuberLoss(_OfTarget, of="huber_loss"):
    """`SmoothL1Loss` times `delta`. Huber 1964."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction, delta=delta)


class KLDivLoss(_OfTarget, of="kl_div"):
    """``target (log(target) - input)``, `input` being logarithms; with `log_target` the target is, too."""

    _reductions = ("mean", "batchmean", "sum", "none")

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False
    ) -> None:
        super().__init__(size_average, reduce, reduction, log_target=log_target)


class NLLLoss(_OfTarget, of="nll_loss"):
    """Minus the log probability that `input`, (N, C, …), has for the class in `target`, (N, …); not `ignore_index`."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction, weights={"weight": weight}, ignore_index=ignore_index)


class CrossEntropyLoss(_OfTarget, of="cross_entropy"):
    """`NLLLoss` of the log_softmax of scores (N, C, …): of classes (N, …), or of probabilities (N, C, …).

    >>> import minigrad as mg
    >>> round(mg.nn.CrossEntropyLoss()(mg.zeros(2, 3), mg.tensor([0, 2])).item(), 4)     # ln 3
    1.0986
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        more: Any = {"ignore_index": ignore_index, "label_smoothing": label_smoothing}
        super().__init__(size_average, reduce, reduction, weights={"weight": weight}, **more)


class _Weighted(_OfTarget):
    """A loss with a factor for each class, or each number: the buffer `weight`."""

    def __init__(
        self, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction, weights={"weight": weight})


class BCELoss(_Weighted, of="binary_cross_entropy"):
    """``-(target log(input) + (1 - target) log(1 - input))`` of probabilities; `weight` is a factor for each."""


class BCEWithLogitsLoss(_OfTarget, of="binary_cross_entropy_with_logits"):
    """`BCELoss` of the sigmoid of scores, without overflow; `pos_weight` multiplies what is lost where target is 1."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction, weights={"weight": weight, "pos_weight": pos_weight})


class HingeLoss(_Loss, of="hinge_loss"):
    """``max(1 - input target, 0)``, with targets of 1 and -1: a support vector machine's, which PyTorch has not."""


class HingeEmbeddingLoss(_OfTarget, of="hinge_embedding_loss"):
    """`input`, a distance, where target is 1, and ``max(margin - input, 0)`` where it is -1."""

    def __init__(
        self, margin: float = 1.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction, margin=margin)


class MarginRankingLoss(_Reduced, of="margin_ranking_loss"):
    """``max(-target (input1 - input2) + margin, 0)``: target 1 says that input1 is to be the larger."""

    def __init__(
        self, margin: float = 0.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction, margin=margin)

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Any:
        return getattr(F, self.applies)(input1, input2, target, **self._keywords())


class CosineEmbeddingLoss(MarginRankingLoss, of="cosine_embedding_loss"):
    """1 - cos of the rows' angle where target is 1, and ``max(cos - margin, 0)`` where it is -1."""


class _Triplet(_Reduced):
    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Any:
        return getattr(F, self.applies)(anchor, positive, negative, **self._keywords())


class TripletMarginLoss(_Triplet, of="triplet_margin_loss"):
    """``max(d(anchor, positive) - d(anchor, negative) + margin, 0)``: see `F.triplet_margin_loss`."""

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction, margin=margin, p=p, eps=eps, swap=swap)


class TripletMarginWithDistanceLoss(_Triplet, of="triplet_margin_with_distance_loss"):
    """`TripletMarginLoss` with another distance: `functional.triplet_margin_with_distance_loss`."""

    def __init__(
        self, *, distance_function: Any = None, margin: float = 1.0, swap: bool = False, reduction: str = "mean"
    ) -> None:
        distance = PairwiseDistance() if distance_function is None else distance_function
        super().__init__(reduction=reduction, distance_function=distance, margin=margin, swap=swap)


class SoftMarginLoss(_Loss, of="soft_margin_loss"):
    """``log(1 + exp(-target input))``, for targets of 1 and -1."""


class PoissonNLLLoss(_Reduced, of="poisson_nll_loss"):
    """-ln of Poisson's probability of counts, by the logarithms of the rates: see `F.poisson_nll_loss`."""

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: Any = None,
        eps: float = 1e-8,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction, log_input=log_input, full=full, eps=eps)

    def forward(self, log_input: Tensor, target: Tensor) -> Any:
        return getattr(F, self.applies)(log_input, target, **self._keywords())


class GaussianNLLLoss(_Reduced, of="gaussian_nll_loss"):
    """-ln of the normal density of targets, by mean and variance: see `F.gaussian_nll_loss`."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction, full=full, eps=eps)

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Any:
        return getattr(F, self.applies)(input, target, var, **self._keywords())


class CosineSimilarity(Module):
    """The cosine of the angle between x1 and x2 along `dim`."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The `p`-norm of ``x1 - x2 + eps`` along the last dimension."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class MultiMarginLoss(_OfTarget, of="multi_margin_loss"):
    """How far each wrong class comes within `margin` of the right one: `functional.multi_margin_loss`."""

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction, weights={"weight": weight}, p=p, margin=margin)


class MultiLabelMarginLoss(_Loss, of="multilabel_margin_loss"):
    """How far each wrong class comes within 1 of each right one: `functional.multilabel_margin_loss`."""


class MultiLabelSoftMarginLoss(_Weighted, of="multilabel_soft_margin_loss"):
    """The mean over classes, each there or not, of ``softplus(x) - target * x``, times `weight` (C,)."""
