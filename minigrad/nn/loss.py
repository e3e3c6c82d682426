"""Loss functions and distances as modules. The computations are in `minigrad.functional.loss`.

`reduction` is "mean", "sum" or "none". PyTorch's deprecated `size_average` and `reduce` are not supported.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from minigrad import functional as F
from minigrad.core.errors import ArgumentError
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_option
from minigrad.nn.function_module import FunctionModule
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


class _ReducedLoss(FunctionModule):
    """Base class of losses with a reduction. The tensors in `weights` are settings that are stored as buffers."""

    _repr_settings = ()
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
                f'{name}: size_average and reduce are not supported.\n  Write reduction="mean", "sum" or "none".'
            )
        check_option(reduction, self._reductions, name, "reduction")
        for setting, x in weights.items():
            self.register_buffer(setting, x)
        self._settings += tuple(weights)


class _TargetLoss(_ReducedLoss):
    """Base class of losses of an input and a target."""

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return getattr(F, self.applies)(input, target, **self._kwargs())


class _Loss(_TargetLoss):
    """Base class of losses of an input and a target, without further settings."""

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)


class L1Loss(_Loss, of="l1_loss"):
    """Measures the absolute error, ``|input - target|``."""


class MSELoss(_Loss, of="mse_loss"):
    """Measures the squared error, ``(input - target) ** 2``.

    >>> import minigrad as mg
    >>> mg.nn.MSELoss()(mg.tensor([1.0, 3.0]), mg.tensor([0.0, 0.0])).item()
    5.0
    """


class SmoothL1Loss(_TargetLoss, of="smooth_l1_loss"):
    """A loss that is quadratic for errors below `beta` and linear above. Girshick 2015."""

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction, beta=beta)


class HuberLoss(_TargetLoss, of="huber_loss"):
    """`SmoothL1Loss` with `delta` as its threshold, multiplied by `delta`. Huber 1964."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction, delta=delta)


class KLDivLoss(_TargetLoss, of="kl_div"):
    """Kullback-Leibler divergence, ``target (log(target) - input)``.

    `input` contains logarithms, and so does `target` if `log_target`.
    """

    _reductions = ("mean", "batchmean", "sum", "none")

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False
    ) -> None:
        super().__init__(size_average, reduce, reduction, log_target=log_target)


class NLLLoss(_TargetLoss, of="nll_loss"):
    """Negative log likelihood of `target`, (N, …), under log probabilities, (N, C, …).

    Positions where the target is `ignore_index` are ignored.
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction, weights={"weight": weight}, ignore_index=ignore_index)


class CrossEntropyLoss(_TargetLoss, of="cross_entropy"):
    """Cross entropy of logits, (N, C, …), and targets: class indices, (N, …), or class probabilities, (N, C, …).

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
        options: Any = {"ignore_index": ignore_index, "label_smoothing": label_smoothing}
        super().__init__(size_average, reduce, reduction, weights={"weight": weight}, **options)


class _WeightedLoss(_TargetLoss):
    """Base class of losses with a rescaling weight per class or element, stored as buffer `weight`."""

    def __init__(
        self, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction, weights={"weight": weight})


class BCELoss(_WeightedLoss, of="binary_cross_entropy"):
    """Binary cross entropy of probabilities: ``-(target log(input) + (1 - target) log(1 - input))``.

    `weight` rescales each element.
    """


class BCEWithLogitsLoss(_TargetLoss, of="binary_cross_entropy_with_logits"):
    """Numerically stable `BCELoss` of the sigmoid of logits. `pos_weight` multiplies the terms of positive targets."""

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
    """Support vector machine loss, ``max(1 - input target, 0)``, for targets of 1 and -1. Not in PyTorch."""


class HingeEmbeddingLoss(_TargetLoss, of="hinge_embedding_loss"):
    """Embedding loss of a distance `input`: ``input`` where target is 1, ``max(margin - input, 0)`` where it is -1."""

    def __init__(
        self, margin: float = 1.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction, margin=margin)


class MarginRankingLoss(_ReducedLoss, of="margin_ranking_loss"):
    """Ranking loss, ``max(-target (input1 - input2) + margin, 0)``: target 1 ranks input1 above input2, -1 below."""

    def __init__(
        self, margin: float = 0.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction, margin=margin)

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Any:
        return getattr(F, self.applies)(input1, input2, target, **self._kwargs())


class CosineEmbeddingLoss(MarginRankingLoss, of="cosine_embedding_loss"):
    """Loss of the cosine similarity of rows: ``1 - cos`` where target is 1, ``max(cos - margin, 0)`` where it is -1."""


class _TripletLoss(_ReducedLoss):
    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Any:
        return getattr(F, self.applies)(anchor, positive, negative, **self._kwargs())


class TripletMarginLoss(_TripletLoss, of="triplet_margin_loss"):
    """Triplet loss, ``max(d(anchor, positive) - d(anchor, negative) + margin, 0)``: see `F.triplet_margin_loss`."""

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


class TripletMarginWithDistanceLoss(_TripletLoss, of="triplet_margin_with_distance_loss"):
    """`TripletMarginLoss` with a custom distance: see `functional.triplet_margin_with_distance_loss`."""

    def __init__(
        self, *, distance_function: Any = None, margin: float = 1.0, swap: bool = False, reduction: str = "mean"
    ) -> None:
        distance = PairwiseDistance() if distance_function is None else distance_function
        super().__init__(reduction=reduction, distance_function=distance, margin=margin, swap=swap)


class SoftMarginLoss(_Loss, of="soft_margin_loss"):
    """Logistic loss, ``log(1 + exp(-target input))``, for targets of 1 and -1."""


class PoissonNLLLoss(_ReducedLoss, of="poisson_nll_loss"):
    """Negative log likelihood of counts under a Poisson distribution of log rate `input`: see `F.poisson_nll_loss`."""

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
        return getattr(F, self.applies)(log_input, target, **self._kwargs())


class GaussianNLLLoss(_ReducedLoss, of="gaussian_nll_loss"):
    """Negative log likelihood under a normal distribution of given mean and variance: see `F.gaussian_nll_loss`."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction, full=full, eps=eps)

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Any:
        return getattr(F, self.applies)(input, target, var, **self._kwargs())


class CosineSimilarity(Module):
    """Computes the cosine similarity between x1 and x2 along `dim`."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """Computes the `p`-norm of ``x1 - x2 + eps`` along the last dimension."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class MultiMarginLoss(_TargetLoss, of="multi_margin_loss"):
    """Multi-class hinge loss between the score of the target class and the other scores: see `F.multi_margin_loss`."""

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
    """Multi-class multi-label hinge loss with margin 1: see `functional.multilabel_margin_loss`."""


class MultiLabelSoftMarginLoss(_WeightedLoss, of="multilabel_soft_margin_loss"):
    """Multi-label loss: the mean over classes, present or not, of ``softplus(x) - target * x``, times `weight` (C,)."""
