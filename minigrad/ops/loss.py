"""Losses. Only `cross_entropy` and `nll_loss` include a reduction. Classes are dimension 1 of (N, C, d1, …)."""

from __future__ import annotations

from typing import Any

from minigrad.core.op import Op
from minigrad.ops.activation import relu, sigmoid, softplus
from minigrad.ops.attention import softmax
from minigrad.ops.elementwise import abs, clamp, div, exp, log, log1p, maximum, minimum, ne, neg, sign, square, where
from minigrad.ops.reduce import amax, logsumexp, pick_along, put_along, sum
from minigrad.ops.shape import expand, reshape

__all__ = [
    "bce_with_logits",
    "binary_cross_entropy",
    "cross_entropy",
    "cross_entropy_backward",
    "hinge_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "soft_cross_entropy",
]


# --- classification ---


def _unsqueeze_classes(x: Any) -> Any:
    """Insert a class dimension of size 1 into `x`, which has a single value per position."""
    return reshape(x, shape=(x.shape[0], 1, *x.shape[1:]))


def _log_softmax(a: Any) -> Any:
    return a - logsumexp(a, dim=(1,), keepdim=True)


def _target_losses(losses: Any, b: Any, c: Any, shape: Any, ignore_index: int, reduction: str) -> tuple[Any, ...]:
    """Return the reduced loss, and for each position the class index `at` and the weight `share`."""
    mask = ne(b, ignore_index)
    at = where(mask, b, 0.0)
    weight = 1.0
    if c is not None:
        weights = expand(reshape(c, shape=(1, shape[1], *(1,) * (len(shape) - 2))), shape=shape)
        weight = pick_along(weights, at, dim=1, keepdim=False)
    share = where(mask, weight, 0.0)
    weighted = where(mask, neg(pick_along(losses, at, dim=1, keepdim=False)) * share, 0.0)
    dims = tuple(range(len(shape) - 1))
    if reduction == "none":
        return weighted, at, share
    loss_sum = sum(weighted, dim=dims, keepdim=False)
    if reduction == "sum":
        return loss_sum, at, share
    weight_sum = sum(share, dim=dims, keepdim=False)
    return div(loss_sum, weight_sum), at, where(mask, div(share, weight_sum), 0.0)


def _cross_entropy_meaning(a: Any, b: Any, c: Any, a_shape: Any, ignore_index: int, reduction: str) -> tuple[Any, ...]:
    top = amax(a, dim=(1,), keepdim=True)
    total = sum(exp(a - top), dim=(1,), keepdim=True)
    return (*_target_losses(_log_softmax(a), b, c, a_shape, ignore_index, reduction), top, total)


# a contains logits, b class indices, and c class weights unless it is None. `share` is the weight of a position, which
# is 0 where b is ignore_index; for a mean, the weights are normalised to sum to 1. `at` is b, or 0 where ignored.
cross_entropy = Op(
    "cross_entropy",
    r"-\ln \operatorname{softmax}\left({a}\right)_{b}",
    vjp=(
        lambda g, a, at, share, top, total: cross_entropy_backward(g, a, at, share, top, total),
        None,
        None,
    ),
    shown=(
        r"{g} \cdot {share} \cdot \left(\operatorname{softmax} {a} - e_{b}\right)",
        None,
        None,
    ),
    aux=("at", "share", "top", "total"),
    attrs=("ignore_index", "reduction"),
    meaning=_cross_entropy_meaning,
)


def _softmax_jacobian_product(g: Any, weight: Any, a: Any) -> Any:
    """Multiply g by the Jacobian of softmax, diag(p) - p pᵀ, times the weight of each position."""
    p = softmax(a, dim=1)
    return _unsqueeze_classes(weight) * (p * (g - sum(p * g, dim=(1,), keepdim=True)))


# The VJP of cross_entropy: (softmax(a) - one_hot(at)) times `share` and the upstream gradient `up`. The kernel reuses
# top, the maximum of the logits, and total, the sum of exp(a - top). at, share, top and total receive no gradients.
cross_entropy_backward: Op = Op(
    "cross_entropy_backward",
    r"{up} \cdot \left(\operatorname{softmax} {a} - e_{at}\right)",
    inputs=("up", "a", "at", "share", "top", "total"),
    meaning=lambda up, a, at, share, a_shape: (
        _unsqueeze_classes(up * share) * softmax(a, dim=1)
        - put_along(up * share, at, shape=a_shape, dim=1, keepdim=False)
    ),
    vjp=(
        lambda g, a, at, share, top, total: sum(
            g * cross_entropy_backward(1.0, a, at, share, top, total), dim=(1,), keepdim=False
        ),
        lambda g, up, a, share: _softmax_jacobian_product(g, up * share, a),
        None,
        None,
        None,
        None,
    ),
    shown=(
        r"\operatorname{sum}\left({g} \cdot {share} \cdot \left(\operatorname{softmax} {a} - e_{at}\right)\right)",
        (
            r"{up} \cdot {share} \cdot \operatorname{softmax} {a} \cdot "
            r"\left({g} - \operatorname{sum}\left({g} \cdot \operatorname{softmax} {a}\right)\right)"
        ),
        None,
        None,
        None,
        None,
    ),
)

# At each position, the sum over classes of -b ln softmax(a), where b contains class probabilities.
soft_cross_entropy = Op(
    "soft_cross_entropy",
    r"-\sum {b} \ln \operatorname{softmax} {a}",
    vjp=(
        lambda g, a, b: _unsqueeze_classes(g) * (softmax(a, dim=1) * sum(b, dim=(1,), keepdim=True) - b),
        lambda g, a: _unsqueeze_classes(g) * (logsumexp(a, dim=(1,), keepdim=True) - a),
    ),
    meaning=lambda a, b: neg(sum(b * _log_softmax(a), dim=(1,), keepdim=False)),
    shown=(
        r"{g} \cdot \left(\operatorname{softmax} {a} \cdot \operatorname{sum} {b} - {b}\right)",
        r"-{g} \cdot \ln \operatorname{softmax} {a}",
    ),
    promotes="float",
)

# cross_entropy of log-probabilities a.
nll_loss = Op(
    "nll_loss",
    "-{a}_{b}",
    vjp=(
        lambda g, a_shape, at, share: put_along(neg(g * share), at, shape=a_shape, dim=1, keepdim=False),
        None,
        None,
    ),
    shown=(
        r"-{g} \cdot {share} \cdot e_{b}",
        None,
        None,
    ),
    aux=("at", "share"),
    attrs=("ignore_index", "reduction"),
    meaning=lambda a, b, c, a_shape, ignore_index, reduction: _target_losses(a, b, c, a_shape, ignore_index, reduction),
)

kl_div = Op(
    "kl_div",
    r"{b} \left(\ln {b} - {a}\right)",
    vjp=(
        lambda g, b, log_target: neg(g * (exp(b) if log_target else b)),
        lambda g, a, b, log_target: g * (exp(b) * (b - a + 1.0) if log_target else log(b) - a + 1.0),
    ),
    shown=(
        lambda g, b, log_target: neg(g * where(log_target, exp(b), b)),
        lambda g, a, b, log_target: g * where(log_target, exp(b) * (b - a + 1.0), log(b) - a + 1.0),
    ),
    attrs=("log_target",),
    promotes="float",
)

# --- binary classification ---

binary_cross_entropy = Op(
    "binary_cross_entropy",
    r"-{b} \ln {a} - \left(1 - {b}\right) \ln\left(1 - {a}\right)",
    vjp=(
        lambda g, a, b: g * div(a - b, maximum(a * (1.0 - a), 1e-12)),  # 1e-12 as in PyTorch
        lambda g, a: g * (log1p(neg(a)) - log(a)),
    ),
    shown=(lambda g, a, b: g * div(a - b, a * (1.0 - a)), lambda g, a: g * (log1p(neg(a)) - log(a))),
    promotes="float",
    meaning=lambda a, b: (b - 1.0) * maximum(log1p(neg(a)), -100.0) - b * maximum(log(a), -100.0),
)
bce_with_logits = Op(  # binary cross-entropy of sigmoid(a); c is the weight of positive samples
    "bce_with_logits",
    r"-{c} {b} \ln \sigma {a} - \left(1 - {b}\right) \ln\left(1 - \sigma {a}\right)",
    vjp=(
        lambda g, a, b, c: g * ((1.0 + (c - 1.0) * b) * sigmoid(a) - c * b),
        lambda g, a, c: g * ((c - 1.0) * softplus(neg(a)) - a),
        None,
    ),
    promotes="float",
    meaning=lambda a, b, c: (1.0 - b) * a + (1.0 + (c - 1.0) * b) * softplus(neg(a)),
)
hinge_loss = Op(
    "hinge_loss",
    r"\max\left(0, 1 - {a} {b}\right)",
    vjp=(lambda g, a, b: where(a * b < 1, neg(g * b), 0.0), lambda g, a, b: where(a * b < 1, neg(g * a), 0.0)),
    promotes="number",
    meaning=lambda a, b: relu(1.0 - a * b),
)

# --- regression ---

mse_loss = Op(
    "mse_loss",
    r"\left({a} - {b}\right)^2",
    vjp=(lambda g, a, b: g * (2.0 * (a - b)), lambda g, a, b: g * (2.0 * (b - a))),
    promotes="number",
    meaning=lambda a, b: square(a - b),
)
l1_loss = Op(
    "l1_loss",
    r"\left|{a} - {b}\right|",
    vjp=(lambda g, a, b: g * sign(a - b), lambda g, a, b: g * sign(b - a)),
    promotes="number",
    meaning=lambda a, b: abs(a - b),
)


def _huber_meaning(distance: Any, delta: float) -> Any:
    clipped = minimum(distance, delta)
    return clipped * (distance - 0.5 * clipped)


huber_loss = Op(  # quadratic up to delta, then linear with the same derivative
    "huber_loss",
    r"\operatorname{huber}\left({a} - {b}\right)",
    vjp=(
        lambda g, a, b, delta: g * clamp(a - b, min=-delta, max=delta),
        lambda g, a, b, delta: g * clamp(b - a, min=-delta, max=delta),
    ),
    attrs=("delta",),
    promotes="float",
    meaning=lambda a, b, delta: _huber_meaning(abs(a - b), delta),
)
