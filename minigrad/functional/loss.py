"""Losses, with PyTorch's signatures. All take `reduction`: "none" gives a loss a number or a position, "sum" their sum,
"mean", the default, their mean, which is nan where there are none.

`size_average` and `reduce` stand for what `reduction` says; they are there so that places count as in PyTorch, and are
refused. ShapeError for shapes that do not fit, DTypeError for types, and ArgumentError for options.
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
from minigrad.functional.checks import check_same_type, check_share, check_stretches, shaped
from minigrad.functional.elementwise import clamp, where
from minigrad.functional.loss_checks import (
    averaged,
    check_constant,
    check_reduction,
    check_same_shape,
    check_scores,
    check_weight,
    checked_pair,
    no_such_class,
    reduced,
    shapes_that_do_not_fit,
    two_floats,
    weighted,
)

# --- of classes ---


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
    """-ln of the probability that softmax gives to the right class. `input` (N, C, d1, …) or (C,) holds the scores.

    `target` is the right class at each position, (N, d1, …) of int64 or uint8; or, in the shape of `input`, a
    probability for each class: then the loss is their sum weighted by these. `weight` (C,) weighs the classes; the mean
    over classes given by number is divided by the weights of the right ones. Positions where `target` is `ignore_index`
    count for nothing. `label_smoothing`, from 0 to 1, is the share of the right class that all classes get evenly
    (Szegedy et al. 2016, section 7).

    >>> import minigrad as mg
    >>> round(cross_entropy(mg.tensor([[0.0, 0.0], [0.0, 0.0]]), mg.tensor([0, 1])).item(), 4)  # ln 2
    0.6931
    """
    check_reduction("cross_entropy", reduction, size_average, reduce)
    check_scores("cross_entropy", input, target)
    check_share(label_smoothing, "cross_entropy", "label_smoothing")
    if input.ndim == 1:
        loss = cross_entropy(input[None], target[None], weight, None, ignore_index, None, reduction, label_smoothing)
        return shaped(loss, ())
    if target.dtype.is_floating_point:
        if ignore_index >= 0:
            raise ArgumentError("cross_entropy: ignore_index names a class, but the target holds probabilities.")
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing)
    loss = _of_classes("cross_entropy", input, target, weight, ignore_index, reduction)
    if not label_smoothing:
        return loss
    even = _even_cross_entropy(input, target, weight, ignore_index, reduction)
    return (1.0 - label_smoothing) * loss + label_smoothing * even


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
    """Minus the number at the right class. `input` (N, C, d1, …) or (C,) holds logarithms of probabilities.

    The rest is as in `cross_entropy`, which is this after log_softmax, in one go.
    """
    check_reduction("nll_loss", reduction, size_average, reduce)
    check_scores("nll_loss", input, target)
    if input.ndim == 1:
        loss = _of_classes("nll_loss", input[None], target[None], weight, ignore_index, reduction)
        return shaped(loss, ())
    return _of_classes("nll_loss", input, target, weight, ignore_index, reduction)


def _of_classes(
    name: str, input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str
) -> Tensor:
    """The op `name`, where each position has one right class."""
    if target.dtype not in (int64, uint8):
        raise DTypeError(f"{name}: classes are int64 or uint8, not {target.dtype.name}.\n  Write target.to(mg.int64).")
    shape = input.shape
    if target.shape != (shape[0], *shape[2:]):
        raise ShapeError(shapes_that_do_not_fit(name, input, target))
    if weight is not None:
        check_weight(name, input, weight)
        check_constant(name, weight=weight)
        check_same_type(name, input=input, weight=weight)
    try:
        return cast(Tensor, getattr(ops, name)(input, target, weight, ignore_index=ignore_index, reduction=reduction))
    except IndexError:
        raise ShapeError(no_such_class(name, target, shape[1], ignore_index)) from None


def _soft_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, label_smoothing: float
) -> Tensor:
    """Where each position has a probability for each class."""
    if target.shape != input.shape:
        raise ShapeError(shapes_that_do_not_fit("cross_entropy", input, target))
    if label_smoothing:
        target = target * (1.0 - label_smoothing) + label_smoothing / max(input.shape[1], 1)
    if weight is not None:
        check_weight("cross_entropy", input, weight)
        target = target * _by_class(weight, input)
    return reduced(ops.soft_cross_entropy(input, target), reduction)


def _even_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str
) -> Tensor:
    """Where at each position that counts all classes are equally right; the mean is that of the right classes."""
    counted = target != ignore_index
    weight = _by_class(input.new_ones(input.shape[1]) if weight is None else weight, input)
    even = ops.soft_cross_entropy(input, (weight / float(input.shape[1])).expand(*input.shape))
    losses = ops.where(counted, even, 0.0)
    if reduction != "mean":
        return reduced(losses, reduction)
    at = ops.where(counted, target, 0)
    of_right = ops.pick_along(weight.expand(*input.shape), at, dim=1, keepdim=False)
    whole = reductions.sum(ops.where(counted, of_right, 0.0))
    return reductions.sum(losses) / whole


def _by_class(weight: Tensor, input: Tensor) -> Tensor:
    """`weight` (C,) in a shape that broadcasts with `input` (N, C, d1, …)."""
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
    """target (ln target - input), by number: the divergence of Kullback and Leibler from exp(`input`) to `target`.

    `input` holds logarithms of probabilities; `target` probabilities, or with `log_target` their logarithms too. Over
    a batch the divergence is a sum: "batchmean" divides it by the size of the first dimension. Where a probability in
    `target` is 0 its slope is -inf, the limit; in PyTorch it is nan.
    """
    check_reduction("kl_div", reduction, size_average, reduce, "batchmean")
    two_floats("kl_div", input, target)
    losses = ops.kl_div(input, target, log_target=bool(log_target))
    if reduction == "batchmean":
        return reductions.sum(losses) / (input.shape[0] if input.ndim else 1)
    return reduced(losses, reduction)


# --- of yes and no ---


@register
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """-target ln input - (1 - target) ln(1 - input), by number, for probabilities in `input`, of the shape of `target`.

    The logarithms are at least -100, so that a certain answer that is wrong costs 100 and not inf. `weight`, which
    broadcasts to that shape, multiplies the losses. Raises ArgumentError for an input below 0, above 1 or nan.
    """
    name = "binary_cross_entropy"
    check_reduction(name, reduction, size_average, reduce)
    two_floats(name, input, target)
    check_same_shape(name, input, target)
    check_same_type(name, input=input, target=target)
    try:
        losses = ops.binary_cross_entropy(input, target)
    except ValueError:
        raise ArgumentError(
            f"{name}: the input holds numbers that are no probabilities, from 0 to 1.\n"
            "  If they are scores: binary_cross_entropy_with_logits(input, target)."
        ) from None
    return reduced(weighted(name, losses, weight), reduction)


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
    """`binary_cross_entropy` of sigmoid(`input`), right for scores of any size, whose logarithms are not cut off.

    `pos_weight`, which broadcasts to the shape of `input`, multiplies the losses of positive answers.
    """
    name = "binary_cross_entropy_with_logits"
    check_reduction(name, reduction, size_average, reduce)
    two_floats(name, input, target)
    check_same_shape(name, input, target)
    if pos_weight is None:
        losses = ops.bce_with_logits(input, target, 1.0)
    else:
        check_constant(name, pos_weight=pos_weight)
        check_stretches(pos_weight, input.shape, name, "pos_weight")
        losses = ops.bce_with_logits(input, target, pos_weight)
    return reduced(weighted(name, losses, weight), reduction)


# --- of distances ---


@register
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target)², by number. With a `weight`, of the shape of `input`, the mean is divided by the sum of it.

    Warns where shapes differ: a column less a row is a table, which is seldom meant.
    """
    check_reduction("mse_loss", reduction, size_average, reduce)
    return averaged(ops.mse_loss(*checked_pair("mse_loss", input, target, weight)), weight, reduction)


@register
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|, by number; `weight` and shapes as in `mse_loss`. The slope is 0 where they are equal."""
    check_reduction("l1_loss", reduction, size_average, reduce)
    return averaged(ops.l1_loss(*checked_pair("l1_loss", input, target, weight)), weight, reduction)


@register
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """|input - target| - beta/2, but (input - target)² / (2 beta) below beta: `huber_loss` over beta; l1 for beta = 0.

    Girshick 2015, "Fast R-CNN", eq. 3. Raises ArgumentError for a negative `beta`.
    """
    if beta < 0:
        raise ArgumentError(f"smooth_l1_loss: beta={beta} is negative; it is a distance.")
    if beta == 0:
        return l1_loss(input, target, size_average, reduce, reduction)
    check_reduction("smooth_l1_loss", reduction, size_average, reduce)
    pair = checked_pair("smooth_l1_loss", input, target)
    return reduced(ops.huber_loss(*pair, delta=apply(float, beta)) * (1.0 / beta), reduction)


@register
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """(input - target)² / 2 up to a distance of `delta`, delta (|input - target| - delta/2) from there on: Huber 1964.

    `weight`, of the shape of `input`, multiplies the losses. Raises ArgumentError unless `delta` is above 0.
    """
    check_reduction("huber_loss", reduction)
    if not delta > 0:
        raise ArgumentError(f"huber_loss: delta={delta} is not above 0; it is a distance.")
    losses = ops.huber_loss(*checked_pair("huber_loss", input, target, weight), delta=apply(float, delta))
    return reduced(losses if weight is None else losses * weight, reduction)


@register
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """-ln of the normal density of `target`: ½(ln σ² + (x - μ)²/σ²) for a mean `input` and variance `var` ≥ `eps`.

    `var` has the shape of `input`, or 1 or nothing in place of its last size. With `full` the constant ½ ln 2π is in
    it. The lower bound has no gradient. Nix, Weigend 1994. Raises ArgumentError where `var` is below 0.
    """
    spread = var if isinstance(var, Tensor) else input.new_full(input.shape, var)
    if spread.shape != input.shape and spread.shape == input.shape[:-1]:
        spread = spread[..., None]
    with no_grad():
        if bool((spread < 0).any()):
            raise ArgumentError("gaussian_nll_loss: var holds numbers below 0, which no variance is.")
        floor = clamp(spread, eps) - spread
    spread = spread + floor
    losses = 0.5 * (ops.log(spread) + (input - target) ** 2 / spread)
    check_reduction("gaussian_nll_loss", reduction)
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


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
    """-ln of Poisson's probability of the count `target`, whose rate is exp(`input`), or `input` without `log_input`.

    With `full` ln(target!) is in it, by Stirling's formula, for counts above 1.
    """
    losses = ops.exp(input) - target * input if log_input else input - target * ops.log(input + eps)
    if full:
        safe = where(target > 1, target, 1.0)
        stirling = safe * ops.log(safe) - safe + 0.5 * ops.log(2 * math.pi * safe)
        losses = losses + where(target > 1, stirling, 0.0)
    check_reduction("poisson_nll_loss", reduction)
    return reduced(losses, reduction)
