"""Losses, with PyTorch's signatures. All take `reduction`: "none" gives a loss a number or a position, "sum" their sum,
"mean", the default, their mean, which is nan where there are none.

`size_average` and `reduce` stand for what `reduction` says; they are there so that places count as in PyTorch, and are
refused. ShapeError for shapes that do not fit, DTypeError for types, and ArgumentError for options.
"""

from __future__ import annotations

import warnings
from typing import Any, cast

from minigrad import ops
from minigrad.core.dtypes import int64, uint8
from minigrad.core.errors import ArgumentError, DTypeError, GraphError, ShapeError
from minigrad.core.modes import modes
from minigrad.core.registry import register
from minigrad.core.shapes import broadcast_shapes
from minigrad.core.symbolic import apply
from minigrad.core.tensor import Tensor
from minigrad.functional import reduce as reductions
from minigrad.functional.checks import (
    check_option,
    check_same_type,
    check_share,
    check_stretches,
    floats_of,
    shaped,
    tensor_of,
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
    _check_reduction("cross_entropy", reduction, size_average, reduce)
    _check_scores("cross_entropy", input, target)
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
    _check_reduction("nll_loss", reduction, size_average, reduce)
    _check_scores("nll_loss", input, target)
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
        raise ShapeError(_misfit(name, input, target))
    if weight is not None:
        _check_weight(name, input, weight)
        _check_constant(name, weight=weight)
        check_same_type(name, input=input, weight=weight)
    try:
        return cast(Tensor, getattr(ops, name)(input, target, weight, ignore_index=ignore_index, reduction=reduction))
    except IndexError:
        raise ShapeError(_no_such_class(name, target, shape[1], ignore_index)) from None


def _soft_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, label_smoothing: float
) -> Tensor:
    """Where each position has a probability for each class."""
    if target.shape != input.shape:
        raise ShapeError(_misfit("cross_entropy", input, target))
    if label_smoothing:
        target = target * (1.0 - label_smoothing) + label_smoothing / max(input.shape[1], 1)
    if weight is not None:
        _check_weight("cross_entropy", input, weight)
        target = target * _by_class(weight, input)
    return _reduced(ops.soft_cross_entropy(input, target), reduction)


def _even_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str
) -> Tensor:
    """Where at each position that counts all classes are equally right; the mean is that of the right classes."""
    counted = target != ignore_index
    weight = _by_class(input.new_ones(input.shape[1]) if weight is None else weight, input)
    even = ops.soft_cross_entropy(input, (weight / float(input.shape[1])).expand(*input.shape))
    losses = ops.where(counted, even, 0.0)
    if reduction != "mean":
        return _reduced(losses, reduction)
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
    _check_reduction("kl_div", reduction, size_average, reduce, "batchmean")
    _two_floats("kl_div", input, target)
    losses = ops.kl_div(input, target, log_target=bool(log_target))
    if reduction == "batchmean":
        return reductions.sum(losses) / (input.shape[0] if input.ndim else 1)
    return _reduced(losses, reduction)


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
    _check_reduction(name, reduction, size_average, reduce)
    _two_floats(name, input, target)
    _check_same_shape(name, input, target)
    check_same_type(name, input=input, target=target)
    try:
        losses = ops.binary_cross_entropy(input, target)
    except ValueError:
        raise ArgumentError(
            f"{name}: the input holds numbers that are no probabilities, from 0 to 1.\n"
            "  If they are scores: binary_cross_entropy_with_logits(input, target)."
        ) from None
    return _reduced(_weighted(name, losses, weight), reduction)


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
    _check_reduction(name, reduction, size_average, reduce)
    _two_floats(name, input, target)
    _check_same_shape(name, input, target)
    if pos_weight is None:
        losses = ops.bce_with_logits(input, target, 1.0)
    else:
        _check_constant(name, pos_weight=pos_weight)
        check_stretches(pos_weight, input.shape, name, "pos_weight")
        losses = ops.bce_with_logits(input, target, pos_weight)
    return _reduced(_weighted(name, losses, weight), reduction)


@register
def hinge_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """max(0, 1 - target * input), by number: for scores and answers of -1 or 1. PyTorch has none of this name.

    It is the loss of a support vector machine, as in scikit-learn (Cortes and Vapnik 1995).
    """
    _check_reduction("hinge_loss", reduction)
    floats_of(input, "hinge_loss")
    return _reduced(ops.hinge_loss(input, target), reduction)


@register
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """For distances in `input`: the distance where `target` is 1, max(0, margin - distance) where it is -1.

    Where `target` is neither, both count, as in PyTorch.
    """
    _check_reduction("hinge_embedding_loss", reduction, size_average, reduce)
    floats_of(input, "hinge_embedding_loss")
    near = ops.where(target == -1, 0.0, input)
    far = ops.where(target == 1, 0.0, ops.clamp(margin - input, min=0.0, max=None))
    return _reduced(near + far, reduction)


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
    """max(0, margin - target * (input1 - input2)): `target` is 1 where input1 should rank higher, else -1."""
    _check_reduction("margin_ranking_loss", reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise ShapeError(
            f"margin_ranking_loss: {input1.shape}, {input2.shape} and target {target.shape} differ in dimensions."
        )
    return _reduced(ops.clamp(-target * (input1 - input2) + margin, min=0.0, max=None), reduction)


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
    _check_reduction("mse_loss", reduction, size_average, reduce)
    return _averaged(ops.mse_loss(*_pair("mse_loss", input, target, weight)), weight, reduction)


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
    _check_reduction("l1_loss", reduction, size_average, reduce)
    return _averaged(ops.l1_loss(*_pair("l1_loss", input, target, weight)), weight, reduction)


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
    _check_reduction("smooth_l1_loss", reduction, size_average, reduce)
    pair = _pair("smooth_l1_loss", input, target)
    return _reduced(ops.huber_loss(*pair, delta=apply(float, beta)) * (1.0 / beta), reduction)


@register
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """(input - target)² / 2 up to a distance of `delta`, delta (|input - target| - delta/2) from there on: Huber 1964.

    `weight`, of the shape of `input`, multiplies the losses. Raises ArgumentError unless `delta` is above 0.
    """
    _check_reduction("huber_loss", reduction)
    if not delta > 0:
        raise ArgumentError(f"huber_loss: delta={delta} is not above 0; it is a distance.")
    losses = ops.huber_loss(*_pair("huber_loss", input, target, weight), delta=apply(float, delta))
    return _reduced(losses if weight is None else losses * weight, reduction)


@register
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The norm of ``x1 - x2 + eps`` over the last dimension; eps keeps the slope finite where the two are equal."""
    return reductions.norm(x1 - x2 + eps, p, -1, keepdim)


@register
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between `x1` and `x2` over `dim` of their common shape; lengths are `eps` at least."""
    floats_of(x1, "cosine_similarity", "x1")
    floats_of(x2, "cosine_similarity", "x2")
    shape = broadcast_shapes(x1.shape, x2.shape, op="cosine_similarity")
    x1, x2 = x1.expand(*shape), x2.expand(*shape)
    lengths = [ops.clamp(reductions.norm(x, 2.0, dim, True), min=eps, max=None) for x in (x1, x2)]
    return cast(Tensor, reductions.sum(x1 / lengths[0] * x2, dim, keepdim=True) / lengths[1]).squeeze(dim)


# --- what they share ---


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return losses
    return reductions.mean(losses) if reduction == "mean" else reductions.sum(losses)


def _averaged(losses: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    """`losses` times `weight`, reduced; the mean is over the weights."""
    if weight is None:
        return _reduced(losses, reduction)
    if reduction != "mean":
        return _reduced(losses * weight, reduction)
    return reductions.sum(losses * weight) / reductions.sum(weight)


def _weighted(name: str, losses: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None:
        return losses
    _check_constant(name, weight=weight)
    check_stretches(weight, losses.shape, name, "weight")
    return losses * weight


def _pair(name: str, input: Tensor, target: Tensor, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """`input` and `target`, with a warning where their shapes differ."""
    tensor_of(input, name)
    tensor_of(target, name, "target")
    if input.shape != target.shape:
        shape = broadcast_shapes(input.shape, target.shape, op=name)
        warnings.warn(
            f"{name}: the input has shape {input.shape}, but the target {target.shape}: both stretch to {shape}, which "
            "is seldom meant.\n  Give them one shape: target.reshape(input.shape), say.",
            stacklevel=3,
        )
    if weight is not None and weight.shape != input.shape:
        raise ShapeError(f"{name}: weight has shape {weight.shape}, but the input {input.shape}.")
    return input, target


def _check_reduction(name: str, reduction: str, size_average: Any = None, reduce: Any = None, *more: str) -> None:
    if size_average is not None or reduce is not None:
        modern = "none" if reduce is False else "sum" if size_average is False else "mean"
        raise ArgumentError(
            f"{name}: size_average and reduce are gone; reduction says it all.\n"
            f'  Write {name}(…, reduction="{modern}").'
        )
    check_option(reduction, ("mean", "sum", "none", *more), name, "reduction")


def _check_scores(name: str, input: Tensor, target: Tensor) -> None:
    tensor_of(target, name, "target")
    floats_of(input, name)
    if not input.ndim:
        raise ShapeError(f"{name}: the input has no dimensions, so no classes; it is (N, C), (C,) or (N, C, d1, …).")


def _two_floats(name: str, input: Tensor, target: Tensor) -> None:
    floats_of(input, name)
    floats_of(target, name, "target")


def _check_constant(name: str, **tensors: Tensor) -> None:
    for argument, x in tensors.items():
        if x.requires_grad and modes.grad:
            raise GraphError(f"{name}: {argument} gets no gradient here.\n  Write {argument}.detach().")


def _check_same_shape(name: str, input: Tensor, target: Tensor) -> None:
    if input.shape != target.shape:
        raise ShapeError(
            f"{name}: the input has shape {input.shape}, but the target {target.shape}.\n"
            "  Give them one shape: target.reshape(input.shape), say."
        )


def _check_weight(name: str, input: Tensor, weight: Tensor) -> None:
    if weight.shape != input.shape[1:2]:
        raise ShapeError(
            f"{name}: the input has {input.shape[1]} classes, but weight has shape {weight.shape}, not "
            f"({input.shape[1]},): a number for each class."
        )


def _misfit(name: str, input: Tensor, target: Tensor) -> str:
    positions = (input.shape[0], *input.shape[2:])
    if target.shape == positions:  # of fractions, or it would fit
        return (
            f"{name}: target {target.shape} has a number for each position, as for classes by number, but it holds "
            f"{target.dtype.name}.\n  Write target.long() for those; for a probability each, it is {input.shape}."
        )
    text = (
        f"{name}: input {input.shape} has {input.shape[1]} classes, along dimension 1, but target has shape "
        f"{target.shape}.\n  For classes by number it is {positions}"
    )
    return text + (f"; for a probability each, {input.shape}." if name == "cross_entropy" else ".")


def _no_such_class(name: str, target: Tensor, count: int, ignore_index: int) -> str:
    given = ops.reshape(target, shape=(-1,)).tolist()
    wrong = next(k for k in given if k != ignore_index and not 0 <= k < count)
    return (
        f"{name}: the target names class {wrong}, but the input has {count} classes, numbered from 0 to {count - 1}.\n"
        "  Classes count from 0; positions to be left out hold ignore_index."
    )
