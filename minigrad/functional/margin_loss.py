"""Margin and embedding losses, over classes, pairs or triplets, with PyTorch's signatures.

The argument `reduction` is that of the functions in `loss`."""

from __future__ import annotations

from collections.abc import Callable

from minigrad import ops
from minigrad.core.dtypes import get_default_dtype
from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.core.registry import register
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_floating, check_option
from minigrad.functional.creation import zeros_like
from minigrad.functional.distance import cosine_similarity, pairwise_distance
from minigrad.functional.elementwise import clamp, where
from minigrad.functional.indexing import gather, scatter_add
from minigrad.functional.loss_checks import check_reduction, reduce_losses
from minigrad.functional.reduce import cumprod, mean, sum
from minigrad.functional.scattering import scatter


@register
def hinge_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Compute the hinge loss max(0, 1 - target * input), elementwise, for targets of 1 and -1. Not in PyTorch.

    This is the loss of a support vector machine (Cortes and Vapnik 1995), as in scikit-learn.
    """
    check_reduction("hinge_loss", reduction)
    check_floating(input, "hinge_loss")
    return reduce_losses(ops.hinge_loss(input, target), reduction)


@register
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the distances `input` where `target` is 1, and max(0, margin - input) where it is -1.

    For any other `target`, the loss is the sum of both terms, as in PyTorch.
    """
    check_reduction("hinge_embedding_loss", reduction, size_average, reduce)
    check_floating(input, "hinge_embedding_loss")
    positive_term = ops.where(target == -1, 0.0, input)
    negative_term = ops.where(target == 1, 0.0, ops.clamp(margin - input, min=0.0, max=None))
    return reduce_losses(positive_term + negative_term, reduction)


@register
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute max(0, margin - target * (input1 - input2)); `target` is 1 where input1 should rank higher, else -1."""
    check_reduction("margin_ranking_loss", reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise ShapeError(
            "margin_ranking_loss: expected input1, input2 and target with the same number of dimensions, but got "
            f"{input1.shape}, {input2.shape} and {target.shape}."
        )
    return reduce_losses(ops.clamp(-target * (input1 - input2) + margin, min=0.0, max=None), reduction)


@register
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute 1 - cos(input1, input2) where `target` is 1, and max(0, cos - margin) where it is -1.

    The inputs are (N, D) and `target` (N,), or (D,) and 0-d. Integers are converted to the default floating-point
    dtype. Raises ShapeError for other shapes.
    """
    rows = [x if x.dtype.is_floating_point else x.to(get_default_dtype()) for x in (input1, input2)]
    if input1.ndim != target.ndim + 1 or input2.ndim != input1.ndim:
        raise ShapeError(
            "cosine_embedding_loss: expected inputs (N, D) and target (N,), but got inputs "
            f"{input1.shape} and {input2.shape} and target {target.shape}."
        )
    cosine = cosine_similarity(rows[0], rows[1], dim=-1)
    check_reduction("cosine_embedding_loss", reduction)
    return reduce_losses(where(target == 1, 1.0 - cosine, clamp(cosine - margin, 0.0)), reduction)


@register
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute ``max(d(anchor, positive) - d(anchor, negative) + margin, 0)`` for (N, D), d being `pairwise_distance`.

    `swap` replaces d(anchor, negative) by d(positive, negative) where that is smaller. Balntas et al. 2016. Raises
    ArgumentError unless `margin` is positive.
    """
    _check_margin("triplet_margin_loss", margin)
    negative_distance = pairwise_distance(anchor, negative, p, eps)
    if swap:
        negative_distance = ops.minimum(negative_distance, pairwise_distance(positive, negative, p, eps))
    losses = clamp(pairwise_distance(anchor, positive, p, eps) - negative_distance + margin, 0.0)
    check_reduction("triplet_margin_loss", reduction)
    return reduce_losses(losses, reduction)


@register
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: None = None, reduce: None = None, reduction: str = "mean"
) -> Tensor:
    """Compute ``log(1 + exp(-target * input))``, for targets of 1 and -1."""
    check_reduction("soft_margin_loss", reduction)
    return reduce_losses(ops.softplus(target * -1.0 * input), reduction)


@register
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the multi-class margin loss ``sum(max(0, margin - x[y] + x[i]) ** p) / C`` over all classes i ≠ y.

    `input` is (N, C) or (C,), `target` y is (N,) or 0-d, and `weight` (C,) rescales the losses by target class.
    """
    check_option(p, (1, 2), "multi_margin_loss", "p")
    scores = input if input.ndim == 2 else input.reshape(1, -1)
    target_index = target.reshape(-1, 1)
    if weight is not None and weight.shape != scores.shape[1:]:
        raise ShapeError(
            f"multi_margin_loss: expected weight of shape ({scores.shape[1]},), one value for each class, but got "
            f"{weight.shape}."
        )
    slack = clamp(margin - gather(scores, 1, target_index) + scores, 0.0)
    slack = scatter(slack, 1, target_index, value=0.0) ** p
    slack = slack if weight is None else slack * weight[target_index]
    losses = sum(slack, 1) / scores.shape[1]
    check_reduction("multi_margin_loss", reduction)
    return reduce_losses(losses if input.ndim == 2 else losses[0], reduction)


@register
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: None = None, reduce: None = None, reduction: str = "mean"
) -> Tensor:
    """Compute the multi-label margin loss ``sum(max(0, 1 - x[y] + x[i])) / C`` over targets y and non-targets i.

    `input` is (N, C) or (C,). `target` has the same shape: each row lists the target classes, terminated by -1.
    """
    scores, targets = (x if x.ndim == 2 else x.reshape(1, -1) for x in (input, target))
    is_label = cumprod((targets >= 0).to(targets.dtype), 1)
    safe_targets = where(is_label == 1, targets, 0)
    is_target = scatter_add(zeros_like(targets), 1, safe_targets, is_label) > 0
    slack = clamp(1.0 - gather(scores, 1, safe_targets)[:, :, None] + scores[:, None, :], 0.0)
    mask = ops.logical_and((is_label == 1)[:, :, None], ops.logical_not(is_target)[:, None, :])
    losses = sum(where(mask, slack, 0.0), (1, 2)) / scores.shape[1]
    check_reduction("multilabel_margin_loss", reduction)
    return reduce_losses(losses if input.ndim == 2 else losses[0], reduction)


@register
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the mean of ``softplus(x) - target * x`` over C binary labels. Both tensors are (N, C) or (C,)."""
    if not input.ndim:
        raise ShapeError("multilabel_soft_margin_loss: expected input (N, C) or (C,), but got a 0-d tensor.")
    losses = ops.softplus(input) - target * input
    check_reduction("multilabel_soft_margin_loss", reduction)
    return reduce_losses(mean(losses if weight is None else losses * weight, -1), reduction)


@register
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Compute `triplet_margin_loss` with a custom `distance_function`, by default `pairwise_distance`."""
    _check_margin("triplet_margin_with_distance_loss", margin)
    distance = pairwise_distance if distance_function is None else distance_function
    negative_distance = distance(anchor, negative)
    if swap:
        negative_distance = ops.minimum(negative_distance, distance(positive, negative))
    losses = clamp(distance(anchor, positive) - negative_distance + margin, 0.0)
    check_reduction("triplet_margin_with_distance_loss", reduction)
    return reduce_losses(losses, reduction)


def _check_margin(name: str, margin: float) -> None:
    if margin <= 0:
        raise ArgumentError(f"{name}: margin={margin} is not positive.")
