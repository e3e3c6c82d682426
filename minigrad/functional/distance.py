"""Losses of distances and of distributions, and distances of all pairs: PyTorch's, composed of other functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from minigrad import ops
from minigrad.core.dtypes import get_default_dtype
from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.core.grad_mode import no_grad
from minigrad.core.registry import register
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_option, floats_of
from minigrad.functional.creation import zeros_like
from minigrad.functional.elementwise import clamp, where
from minigrad.functional.indexing import gather, scatter_add
from minigrad.functional.loss import cosine_similarity, pairwise_distance
from minigrad.functional.reduce import cumprod, mean, norm, sum
from minigrad.functional.scattering import scatter


@register
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """The `p`-norms of the differences of all rows of `x1` (…, P, M) and `x2` (…, R, M): (…, P, R).

    `compute_mode` is PyTorch's choice of a way, of which there is one here. Of equal rows the gradient is 0, and a
    second derivative nan, as of `norm`. Raises ShapeError for rows that differ.

    >>> import minigrad as mg
    >>> mg.cdist(mg.tensor([[0.0, 0.0]]), mg.tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[5.0, 1.0]]
    """
    floats_of(x1, "cdist", "x1")
    floats_of(x2, "cdist", "x2")
    if min(x1.ndim, x2.ndim) < 2 or x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(f"cdist: x1 {x1.shape} and x2 {x2.shape} are not rows of one length, (…, P, M) and (…, R, M).")
    return norm(x1[..., :, None, :] - x2[..., None, :, :], p, -1)


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
    """1 - cos of the rows' angle where `target` (N,) is 1, and how far cos is above `margin` where it is -1.

    The rows are (N, D), or one is (D,) and `target` a number. Integers are taken as the default floating-point dtype.
    Raises ShapeError for other shapes.
    """
    rows = [x if x.dtype.is_floating_point else x.to(get_default_dtype()) for x in (input1, input2)]
    if input1.ndim != target.ndim + 1 or input2.ndim != input1.ndim:
        raise ShapeError(
            f"cosine_embedding_loss: rows {input1.shape} and {input2.shape}, target {target.shape}: a target a row is "
            "(N,) for (N, D)."
        )
    cosine = cosine_similarity(rows[0], rows[1], dim=-1)
    return _reduced("cosine_embedding_loss", where(target == 1, 1.0 - cosine, clamp(cosine - margin, 0.0)), reduction)


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
    """``max(d(anchor, positive) - d(anchor, negative) + margin, 0)``, rows (N, D) with `pairwise_distance` as d.

    With `swap` d(positive, negative) counts where that is the smaller. Balntas et al. 2016. Raises ArgumentError for a
    `margin` that is not above 0.
    """
    _check_margin("triplet_margin_loss", margin)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = ops.minimum(far, pairwise_distance(positive, negative, p, eps))
    losses = clamp(pairwise_distance(anchor, positive, p, eps) - far + margin, 0.0)
    return _reduced("triplet_margin_loss", losses, reduction)


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
    return _reduced("gaussian_nll_loss", losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


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
    return _reduced("poisson_nll_loss", losses, reduction)


@register
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: None = None, reduce: None = None, reduction: str = "mean"
) -> Tensor:
    """``log(1 + exp(-target * input))``, for targets of 1 and -1."""
    return _reduced("soft_margin_loss", ops.softplus(target * -1.0 * input), reduction)


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
    """How far each wrong class comes within `margin` of the right one y: ``sum(max(0, margin - x_y + x_i) ** p) / C``.

    `input` is (N, C) or (C,), `target` (N,) or a number, `weight` (C,) the weight of each right class.
    """
    check_option(p, (1, 2), "multi_margin_loss", "p")
    scores = input if input.ndim == 2 else input.reshape(1, -1)
    right = target.reshape(-1, 1)
    if weight is not None and weight.shape != scores.shape[1:]:
        raise ShapeError(f"multi_margin_loss: weight {weight.shape} is not one for each of {scores.shape[1]} classes.")
    slack = clamp(margin - gather(scores, 1, right) + scores, 0.0)
    slack = scatter(slack, 1, right, value=0.0) ** p
    slack = slack if weight is None else slack * weight[right]
    losses = sum(slack, 1) / scores.shape[1]
    return _reduced("multi_margin_loss", losses if input.ndim == 2 else losses[0], reduction)


@register
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: None = None, reduce: None = None, reduction: str = "mean"
) -> Tensor:
    """How far each wrong class comes within 1 of each right one, summed, by the number C of classes.

    `input` is (N, C) or (C,), and `target` has its shape: in a row the right classes, then -1 and what is not read.
    """
    scores, given = (x if x.ndim == 2 else x.reshape(1, -1) for x in (input, target))
    there = cumprod((given >= 0).to(given.dtype), 1)
    at = where(there == 1, given, 0)
    right = scatter_add(zeros_like(given), 1, at, there) > 0
    slack = clamp(1.0 - gather(scores, 1, at)[:, :, None] + scores[:, None, :], 0.0)
    counts = ops.logical_and((there == 1)[:, :, None], ops.logical_not(right)[:, None, :])
    losses = sum(where(counts, slack, 0.0), (1, 2)) / scores.shape[1]
    return _reduced("multilabel_margin_loss", losses if input.ndim == 2 else losses[0], reduction)


@register
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over C classes of ``softplus(x) - target * x``: each class is there or not. (N, C) or (C,), both."""
    if not input.ndim:
        raise ShapeError("multilabel_soft_margin_loss: a number has no classes: input is (N, C) or (C,).")
    losses = ops.softplus(input) - target * input
    return _reduced("multilabel_soft_margin_loss", mean(losses if weight is None else losses * weight, -1), reduction)


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
    """`triplet_margin_loss` with another distance of rows; without one it is `pairwise_distance`."""
    _check_margin("triplet_margin_with_distance_loss", margin)
    distance = pairwise_distance if distance_function is None else distance_function
    far = distance(anchor, negative)
    if swap:
        far = ops.minimum(far, distance(positive, negative))
    losses = clamp(distance(anchor, positive) - far + margin, 0.0)
    return _reduced("triplet_margin_with_distance_loss", losses, reduction)


def _check_margin(name: str, margin: float) -> None:
    if margin <= 0:
        raise ArgumentError(f"{name}: margin={margin}, and it must be above 0.")


def _reduced(name: str, losses: Any, reduction: str) -> Tensor:
    check_option(reduction, ("mean", "sum", "none"), name, "reduction")
    found: Tensor = losses if reduction == "none" else mean(losses) if reduction == "mean" else sum(losses)
    return found
