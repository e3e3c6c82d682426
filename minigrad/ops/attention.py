"""Softmax and scaled dot-product attention."""

from __future__ import annotations

from typing import Any

from minigrad.core.op import Op, adjoint
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


def _total(x: Any, dim: int) -> Any:
    return sum(x, dim=(dim,), keepdim=True)


# The VJP of softmax, s (u - sum(u s)), from the upstream gradient u and the saved output s. It is self-adjoint in u.
softmax_backward: Op = Op(
    "softmax_backward",
    r"{s} \cdot \left({u} - \operatorname{sum}\left({u} \cdot {s}\right)\right)",
    vjp=(
        lambda g, s, dim: softmax_backward(g, s, dim=dim),
        lambda g, u, s, dim: g * (u - _total(u * s, dim)) - u * _total(g * s, dim),
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
    meaning=lambda u, s, dim: s * (u - _total(u * s, dim)),
)

# The VJP of log_softmax, with s its saved output.
log_softmax_backward: Op = Op(
    "log_softmax_backward",
    r"{u} - e^{s} \cdot \operatorname{sum} {u}",
    vjp=(
        lambda g, s, dim: g - _total(g * exp(s), dim),
        lambda g, u, s, dim: -(g * exp(s)) * _total(u, dim),
    ),
    shown=(
        r"{g} - \operatorname{sum}\left({g} \cdot e^{s}\right)",
        r"-{g} \cdot e^{s} \cdot \operatorname{sum} {u}",
    ),
    inputs=("u", "s"),
    attrs=("dim",),
    meaning=lambda u, s, dim: u - exp(s) * _total(u, dim),
)

# softmax(scale q kᵀ + m) v and the attention weights, i.e. the softmax: Vaswani et al. 2017, eq. 1. The weights are an
# output rather than an auxiliary result, so that gradients flow through them. Dropout with probability p and key `seed`
# applies to the weights.


def _dropped(x: Any, p: float, seed: int) -> Any:
    return dropout(x, p=p, key=seed) if p else x


def _like(x: Any, weights: Any) -> Any:
    """Sum `x` over batch dimensions that were broadcast, to the shape of `weights`."""
    return x if x.shape == weights.shape else sum_to(x, shape=weights.shape)


def _attention_rule(
    g: Any, y1: Any, q: Any, k: Any, v: Any, m_shape: Any, scale: float, p: float, seed: int
) -> tuple[Any, ...]:
    by_result, by_weights = g
    found: list[Any] = [None] * 4
    if by_result is not None:
        found = list(attention_backward(by_result, q, k, v, y1, scale=scale, p=p, seed=seed))
    if by_weights is not None:
        s = softmax_backward(by_weights, y1, dim=by_weights.ndim - 1)
        more = (s @ k * scale, s.mT @ q * scale, None, s)
        found = [b if a is None else a if b is None else a + b for a, b in zip(found, more, strict=True)]
    return (*found[:3], None if m_shape is None else found[3])


def _attention_backward_rule(
    g: Any, u: Any, q: Any, k: Any, v: Any, w: Any, scale: float, p: float, seed: int
) -> tuple[Any, ...]:
    """VJP of `attention_backward`; P is the gradient of the weights w, and S = softmax_backward(P, w) of the scores."""
    by_q, by_k, by_v, by_s = [where(False, x, 0.0) if a is None else a for a, x in zip(g, (q, k, v, w), strict=True)]
    last = w.ndim - 1
    at_p = _like(_dropped(u @ v.mT, p, seed), w)
    s = softmax_backward(at_p, w, dim=last)
    at_s = _like(by_q @ k.mT * scale + q @ by_k.mT * scale, w) + by_s
    back = softmax_backward(at_s, w, dim=last)
    back_dropped, dropped = _dropped(back, p, seed), _dropped(w, p, seed)
    by_w = at_s * (at_p - _total(at_p * w, last)) - at_p * _total(at_s * w, last)
    return (
        back_dropped @ v + dropped @ by_v,
        s @ by_k * scale,
        s.mT @ by_q * scale,
        back_dropped.mT @ u,
        by_w + _like(_dropped(u @ by_v.mT, p, seed), w),
    )


# The gradients of q, k, v and m, from the upstream gradient u and the saved attention weights w.
attention_backward = Op(
    "attention_backward",
    r"\operatorname{attentionBackward}\left({u}, {q}, {k}, {v}, {w}\right)",
    vjp=_attention_backward_rule,
    shown=(
        adjoint("u"),
        adjoint("q"),
        adjoint("k"),
        adjoint("v"),
        adjoint("w"),
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
        adjoint("q"),
        adjoint("k"),
        (
            r"\left(\operatorname{dropout} \operatorname{softmax}"
            r"\left({scale} \cdot {q} {k}^\top + {m}\right)\right)^\top {g}"
        ),
        adjoint("m"),
    ),
    inputs=("q", "k", "v", "m"),
    attrs=("is_causal", "scale", "p", "seed"),
    outputs=2,
)
