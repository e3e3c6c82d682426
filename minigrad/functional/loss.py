"""Loss functions, with PyTorch's signatures. All take `reduction`: "none" returns one loss per element or position,
"sum" their sum, and "mean" (the default) their mean, which is nan for an empty input.

`size_average` and `reduce` are deprecated in PyTorch; they exist only to keep positional arguments aligned, and passing
them raises ArgumentError. Mismatched shapes raise ShapeError, dtypes DTypeError, and invalid options ArgumentError.
"""

from __future__ import annotations

import math
from typing import cast

from minigrad import ops
from minigrad.core.dtypes import int64, uint8
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from minigrad.core.grad_mode import no_grad
from minigrad.core.registry import register
from minigrad.core.symbolic import apply
from minigrad.core.tensor import Tensor
from minigrad.functional import reduce as reductions
from minigrad.functional.checks import check_broadcastable, check_probability, check_same_dtype, reshape_to
from minigrad.functional.elementwise import clamp, where
from minigrad.functional.loss_checks import (
    apply_weight,
    check_float_pair,
    check_input_target,
    check_logits,
    check_no_grad_operand,
    check_reduction,
    check_same_shape,
    check_weight,
    class_index_message,
    reduce_losses,
    reduce_weighted,
    target_shape_message,
)

# --- classification ---


@register
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: None = None,
    ignore_index: int = -100,
    reduce: None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Compute the cross-entropy between logits `input`, (N, C, d1, …) or (C,), and `target`.

    `target` contains class indices (N, d1, …), int64 or uint8, or class probabilities in the shape of `input`. `weight`
    (C,) rescales each class; with class indices, "mean" divides by the total weight of the target classes. Positions
    where `target` equals `ignore_index` do not contribute. `label_smoothing`, in [0, 1], mixes the target with a
    uniform distribution (Szegedy et al. 2016, section 7).

    >>> import minigrad as mg
    >>> round(cross_entropy(mg.tensor([[0.0, 0.0], [0.0, 0.0]]), mg.tensor([0, 1])).item(), 4)  # ln 2
    0.6931
    """
    check_reduction("cross_entropy", reduction, size_average, reduce)
    check_logits("cross_entropy", input, target)
    check_probability(label_smoothing, "cross_entropy", "label_smoothing")
    if input.ndim == 1:
        loss = cross_entropy(input[None], target[None], weight, None, ignore_index, None, reduction, label_smoothing)
        return reshape_to(loss, ())
    if target.dtype.is_floating_point:
        if ignore_index >= 0:
            raise ArgumentError("cross_entropy: ignore_index is not supported for a floating-point target.")
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing)
    loss = _class_index_loss("cross_entropy", input, target, weight, ignore_index, reduction)
    if not label_smoothing:
        return loss
    uniform_loss = _uniform_cross_entropy(input, target, weight, ignore_index, reduction)
    return (1.0 - label_smoothing) * loss + label_smoothing * uniform_loss


@register
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: None = None,
    ignore_index: int = -100,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the negative log likelihood loss. `input`, (N, C, d1, …) or (C,), contains log-probabilities.

    The other arguments are as in `cross_entropy`, which fuses `log_softmax` and this loss.
    """
    check_reduction("nll_loss", reduction, size_average, reduce)
    check_logits("nll_loss", input, target)
    if input.ndim == 1:
        loss = _class_index_loss("nll_loss", input[None], target[None], weight, ignore_index, reduction)
        return reshape_to(loss, ())
    return _class_index_loss("nll_loss", input, target, weight, ignore_index, reduction)


def _class_index_loss(
    name: str, input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str
) -> Tensor:
    """Check the operands, and compute the loss `name` for a target of class indices."""
    if target.dtype not in (int64, uint8):
        raise DTypeError(
            f"{name}: expected target dtype to be int64 or uint8, but got {target.dtype.name}.\n"
            "  Write target.to(mg.int64)."
        )
    shape = input.shape
    if target.shape != (shape[0], *shape[2:]):
        raise ShapeError(target_shape_message(name, input, target))
    if weight is not None:
        check_weight(name, input, weight)
        check_no_grad_operand(name, weight=weight)
        check_same_dtype(name, input=input, weight=weight)
    try:
        return cast(Tensor, getattr(ops, name)(input, target, weight, ignore_index=ignore_index, reduction=reduction))
    except IndexError:
        raise ShapeError(class_index_message(name, target, shape[1], ignore_index)) from None


def _soft_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, label_smoothing: float
) -> Tensor:
    """Compute the cross-entropy for a target of class probabilities."""
    if target.shape != input.shape:
        raise ShapeError(target_shape_message("cross_entropy", input, target))
    if label_smoothing:
        target = target * (1.0 - label_smoothing) + label_smoothing / max(input.shape[1], 1)
    if weight is not None:
        check_weight("cross_entropy", input, weight)
        target = target * _broadcast_class_weight(weight, input)
    return reduce_losses(ops.soft_cross_entropy(input, target), reduction)


def _uniform_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str
) -> Tensor:
    """Compute the cross-entropy for a uniform target. "mean" divides by the total weight of the target classes."""
    mask = target != ignore_index
    weight = _broadcast_class_weight(input.new_ones(input.shape[1]) if weight is None else weight, input)
    uniform_loss = ops.soft_cross_entropy(input, (weight / float(input.shape[1])).expand(*input.shape))
    losses = ops.where(mask, uniform_loss, 0.0)
    if reduction != "mean":
        return reduce_losses(losses, reduction)
    safe_target = ops.where(mask, target, 0)
    target_weight = ops.pick_along(weight.expand(*input.shape), safe_target, dim=1, keepdim=False)
    weight_sum = reductions.sum(ops.where(mask, target_weight, 0.0))
    return reductions.sum(losses) / weight_sum


def _broadcast_class_weight(weight: Tensor, input: Tensor) -> Tensor:
    """Reshape `weight` (C,) to broadcast with `input` (N, C, d1, …)."""
    return cast(Tensor, ops.reshape(weight, shape=(-1, *(1,) * (input.ndim - 2))))


@register
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Compute the Kullback-Leibler divergence, ``target * (log(target) - input)``, elementwise.

    `input` contains log-probabilities; `target` contains probabilities, or log-probabilities if `log_target`. The
    reduction "batchmean" divides the sum by the batch size and gives the mathematical divergence. The gradient of a
    `target` of 0 is -inf, the limit; in PyTorch it is nan.
    """
    check_reduction("kl_div", reduction, size_average, reduce, "batchmean")
    check_float_pair("kl_div", input, target)
    losses = ops.kl_div(input, target, log_target=bool(log_target))
    if reduction == "batchmean":
        return reductions.sum(losses) / (input.shape[0] if input.ndim else 1)
    return reduce_losses(losses, reduction)


# --- binary classification ---


@register
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the binary cross-entropy between probabilities `input` and `target`, of the same shape.

    The logarithms are clamped to -100 or more, so the loss stays finite. `weight` multiplies the losses and must
    broadcast to their shape. Raises ArgumentError for an input below 0, above 1 or nan.
    """
    name = "binary_cross_entropy"
    check_reduction(name, reduction, size_average, reduce)
    check_float_pair(name, input, target)
    check_same_shape(name, input, target)
    check_same_dtype(name, input=input, target=target)
    try:
        losses = ops.binary_cross_entropy(input, target)
    except ValueError:
        raise ArgumentError(
            f"{name}: all elements of input should be between 0 and 1.\n"
            "  For logits, write binary_cross_entropy_with_logits(input, target)."
        ) from None
    return reduce_losses(apply_weight(name, losses, weight), reduction)


@register
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Compute the binary cross-entropy between logits `input` and `target`, in a numerically stable way.

    `pos_weight` multiplies the losses of positive samples and must broadcast to the shape of `input`.
    """
    name = "binary_cross_entropy_with_logits"
    check_reduction(name, reduction, size_average, reduce)
    check_float_pair(name, input, target)
    check_same_shape(name, input, target)
    if pos_weight is None:
        losses = ops.bce_with_logits(input, target, 1.0)
    else:
        check_no_grad_operand(name, pos_weight=pos_weight)
        check_broadcastable(pos_weight, input.shape, name, "pos_weight")
        losses = ops.bce_with_logits(input, target, pos_weight)
    return reduce_losses(apply_weight(name, losses, weight), reduction)


# --- regression ---


@register
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Compute the squared error, elementwise. `weight`, of the shape of `input`, makes "mean" a weighted mean.

    Warns if the shapes differ: broadcasting (N, 1) with (1, N) is seldom intended.
    """
    check_reduction("mse_loss", reduction, size_average, reduce)
    return reduce_weighted(ops.mse_loss(*check_input_target("mse_loss", input, target, weight)), weight, reduction)


@register
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Compute the absolute error, elementwise; see `mse_loss`. The gradient is 0 where `input` equals `target`."""
    check_reduction("l1_loss", reduction, size_average, reduce)
    return reduce_weighted(ops.l1_loss(*check_input_target("l1_loss", input, target, weight)), weight, reduction)


@register
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Compute d² / (2 beta) if |d| < beta, else |d| - beta/2, for d = input - target: `huber_loss` divided by beta.

    A `beta` of 0 gives `l1_loss`. Girshick 2015, "Fast R-CNN", eq. 3. Raises ArgumentError for a negative `beta`.
    """
    if beta < 0:
        raise ArgumentError(f"smooth_l1_loss: beta={beta} is negative; expected 0 or more.")
    if beta == 0:
        return l1_loss(input, target, size_average, reduce, reduction)
    check_reduction("smooth_l1_loss", reduction, size_average, reduce)
    pair = check_input_target("smooth_l1_loss", input, target)
    return reduce_losses(ops.huber_loss(*pair, delta=apply(float, beta)) * (1.0 / beta), reduction)


@register
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Compute d² / 2 if |d| <= delta, else delta (|d| - delta/2), for d = input - target. Huber 1964.

    `weight`, of the shape of `input`, multiplies the losses. Raises ArgumentError unless `delta` is positive.
    """
    check_reduction("huber_loss", reduction)
    if not delta > 0:
        raise ArgumentError(f"huber_loss: delta={delta} is not positive.")
    losses = ops.huber_loss(*check_input_target("huber_loss", input, target, weight), delta=apply(float, delta))
    return reduce_losses(losses if weight is None else losses * weight, reduction)


@register
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Compute the Gaussian negative log likelihood ½(ln σ² + (x - μ)²/σ²), for x = `target`, μ = `input`, σ² = `var`.

    `var` has the shape of `input`, but its last size may be 1 or missing. It is clamped to at least `eps`, without
    affecting gradients. `full` adds the constant ½ ln 2π. Nix and Weigend 1994. Raises ArgumentError for a negative
    `var`.
    """
    variance = var if isinstance(var, Tensor) else input.new_full(input.shape, var)
    if variance.shape != input.shape and variance.shape == input.shape[:-1]:
        variance = variance[..., None]
    with no_grad():
        if bool((variance < 0).any()):
            raise ArgumentError("gaussian_nll_loss: var has negative entries; a variance is 0 or more.")
        clamp_offset = clamp(variance, eps) - variance
    variance = variance + clamp_offset
    losses = 0.5 * (ops.log(variance) + (input - target) ** 2 / variance)
    check_reduction("gaussian_nll_loss", reduction)
    return reduce_losses(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


@register
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: None = None,
    eps: float = 1e-8,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the Poisson negative log likelihood of `target` for rates exp(`input`), or `input` unless `log_input`.

    `full` adds ln(target!), by Stirling's approximation, for targets above 1.
    """
    losses = ops.exp(input) - target * input if log_input else input - target * ops.log(input + eps)
    if full:
        safe_target = where(target > 1, target, 1.0)
        stirling = safe_target * ops.log(safe_target) - safe_target + 0.5 * ops.log(2 * math.pi * safe_target)
        losses = losses + where(target > 1, stirling, 0.0)
    check_reduction("poisson_nll_loss", reduction)
    return reduce_losses(losses, reduction)
