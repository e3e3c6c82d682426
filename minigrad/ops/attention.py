"""Softmax and scaled dot-product attention."""

from __future__ import annotations

from typing import Any

from minigrad.core.op import Op, adjoint_formula
from minigrad.ops.elementwise import exp, where
from minigrad.ops.normalization import dropout
from minigrad.ops.reduce import logsumexp, sum
from minigrad.ops.shape import sum_to

__all__ = [
    "attention_backward",
    "log_softmax",
    "log_softmax_backward",
    "scaled_dot_product_attention",
    "softmax",
    "softmax_backward",
]


softmax = Op(
    "softmax",
    r"\frac{e^{a}}{\operatorname{sum} e^{a}}",
    vjp=(lambda g, y, dim: softmax_backward(g, y, dim=dim),),
    shown=(r"{y} \cdot \left({g} - \operatorname{sum}\left({g} \cdot {y}\right)\right)",),
    attrs=("dim",),
    promotes="float",
    meaning=lambda a, dim: exp(log_softmax(a, dim=dim)),
)
log_softmax: Op = Op(
    "log_softmax",
    r"{a} - \ln \operatorname{sum} e^{a}",
    vjp=(lambda g, y, dim: log_softmax_backward(g, y, dim=dim),),
    shown=(r"{g} - e^{y} \cdot \operatorname{sum} {g}",),
    attrs=("dim",),
    promotes="float",
    meaning=lambda a, dim: a - logsumexp(a, dim=(dim,), keepdim=True),
)


def _sum_keepdim(x: Any, dim: int) -> Any:
    return sum(x, dim=(dim,), keepdim=True)


# The VJP of softmax, s (u - sum(u s)), from the upstream gradient u and the saved output s. It is self-adjoint in u.
softmax_backward: Op = Op(
    "softmax_backward",
    r"{s} \cdot \left({u} - \operatorname{sum}\left({u} \cdot {s}\right)\right)",
    vjp=(
        lambda g, s, dim: softmax_backward(g, s, dim=dim),
        lambda g, u, s, dim: g * (u - _sum_keepdim(u * s, dim)) - u * _sum_keepdim(g * s, dim),
    ),
    shown=(
        r"{s} \cdot \left({g} - \operatorname{sum}\left({g} \cdot {s}\right)\right)",
        (
            r"{g} \cdot \left({u} - \operatorname{sum}\left({u} \cdot {s}\right)\right)"
            r" - {u} \cdot \operatorname{sum}\left({g} \cdot {s}\right)"
        ),
    ),
    inputs=("u", "s"),
    attrs=("dim",),
    meaning=lambda u, s, dim: s * (u - _sum_keepdim(u * s, dim)),
)

# The VJP of log_softmax. u is the upstream gradient, s the saved output.
log_softmax_backward: Op = Op(
    "log_softmax_backward",
    r"{u} - e^{s} \cdot \operatorname{sum} {u}",
    vjp=(
        lambda g, s, dim: g - _sum_keepdim(g * exp(s), dim),
        lambda g, u, s, dim: -(g * exp(s)) * _sum_keepdim(u, dim),
    ),
    shown=(
        r"{g} - \operatorname{sum}\left({g} \cdot e^{s}\right)",
        r"-{g} \cdot e^{s} \cdot \operatorname{sum} {u}",
    ),
    inputs=("u", "s"),
    attrs=("dim",),
    meaning=lambda u, s, dim: u - exp(s) * _sum_keepdim(u, dim),
)

# scaled_dot_product_attention returns softmax(scale q kᵀ + m) v and the attention weights, which are the softmax
# (Vaswani et al. 2017, eq. 1). The weights are an output rather than an auxiliary result, so that gradients flow
# through them. Dropout with probability p and key `seed` is applied to the weights.


def _apply_dropout(x: Any, p: float, seed: int) -> Any:
    return dropout(x, p=p, key=seed) if p else x


def _sum_to_weights(x: Any, weights: Any) -> Any:
    """Reduce `x` to the shape of `weights` by summing over broadcast batch dimensions."""
    return x if x.shape == weights.shape else sum_to(x, shape=weights.shape)


def _attention_rule(
    g: Any, y1: Any, q: Any, k: Any, v: Any, m_shape: Any, scale: float, p: float, seed: int
) -> tuple[Any, ...]:
    grad_result, grad_weights = g
    grads: list[Any] = [None] * 4
    if grad_result is not None:
        grads = list(attention_backward(grad_result, q, k, v, y1, scale=scale, p=p, seed=seed))
    if grad_weights is not None:
        s = softmax_backward(grad_weights, y1, dim=grad_weights.ndim - 1)
        weight_grads = (s @ k * scale, s.mT @ q * scale, None, s)
        grads = [b if a is None else a if b is None else a + b for a, b in zip(grads, weight_grads, strict=True)]
    return (*grads[:3], None if m_shape is None else grads[3])


def _attention_backward_rule(
    g: Any, u: Any, q: Any, k: Any, v: Any, w: Any, scale: float, p: float, seed: int
) -> tuple[Any, ...]:
    """VJP of `attention_backward`. weights_grad is the gradient of the weights w, s the gradient of the scores."""
    grad_q, grad_k, grad_v, grad_scores = [
        where(False, x, 0.0) if a is None else a for a, x in zip(g, (q, k, v, w), strict=True)
    ]
    last = w.ndim - 1
    weights_grad = _sum_to_weights(_apply_dropout(u @ v.mT, p, seed), w)
    s = softmax_backward(weights_grad, w, dim=last)
    grad_s = _sum_to_weights(grad_q @ k.mT * scale + q @ grad_k.mT * scale, w) + grad_scores
    grad_p = softmax_backward(grad_s, w, dim=last)
    grad_p_dropped, weights_dropped = _apply_dropout(grad_p, p, seed), _apply_dropout(w, p, seed)
    grad_w = grad_s * (weights_grad - _sum_keepdim(weights_grad * w, last)) - weights_grad * _sum_keepdim(
        grad_s * w, last
    )
    return (
        grad_p_dropped @ v + weights_dropped @ grad_v,
        s @ grad_k * scale,
        s.mT @ grad_q * scale,
        grad_p_dropped.mT @ u,
        grad_w + _sum_to_weights(_apply_dropout(u @ grad_v.mT, p, seed), w),
    )


# Returns the gradients of q, k, v and m. u is the upstream gradient, w contains the saved attention weights.
attention_backward = Op(
    "attention_backward",
    r"\operatorname{attentionBackward}\left({u}, {q}, {k}, {v}, {w}\right)",
    vjp=_attention_backward_rule,
    shown=(
        adjoint_formula("u"),
        adjoint_formula("q"),
        adjoint_formula("k"),
        adjoint_formula("v"),
        adjoint_formula("w"),
    ),
    inputs=("u", "q", "k", "v", "w"),
    attrs=("scale", "p", "seed"),
    outputs=4,
)
scaled_dot_product_attention = Op(
    "scaled_dot_product_attention",
    r"\operatorname{softmax}\left(\operatorname{scale} \cdot {q} {k}^\top + {m}\right) {v}",
    vjp=_attention_rule,
    shown=(
        adjoint_formula("q"),
        adjoint_formula("k"),
        (
            r"\left(\operatorname{dropout} \operatorname{softmax}"
            r"\left({scale} \cdot {q} {k}^\top + {m}\right)\right)^\top {g}"
        ),
        adjoint_formula("m"),
    ),
    inputs=("q", "k", "v", "m"),
    attrs=("is_causal", "scale", "p", "seed"),
    outputs=2,
)
