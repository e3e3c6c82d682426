"""Softmax and attention."""

from __future__ import annotations

from typing import Any

from minigrad.op import Op
from minigrad.ops.elementwise import exp, where
from minigrad.ops.linalg import matmul
from minigrad.ops.normalization import dropout
from minigrad.ops.reduce import sum as total
from minigrad.ops.shape import sum_to

__all__ = [
    "log_softmax",
    "log_softmax_backward",
    "scaled_dot_product_attention",
    "softmax",
    "softmax_backward",
]

log_softmax_backward: Op
softmax_backward: Op

softmax = Op(
    "softmax",
    r"\frac{e^{a}}{\operatorname{sum} e^{a}}",
    vjp=(lambda g, y, dim: softmax_backward(g, y, dim=dim),),
    attrs=("dim",),
    promotes="float",
)
log_softmax = Op(
    "log_softmax",
    r"{a} - \ln \operatorname{sum} e^{a}",
    vjp=(lambda g, y, dim: log_softmax_backward(g, y, dim=dim),),
    attrs=("dim",),
    promotes="float",
)


def _total(x: Any, dim: int) -> Any:
    return total(x, dim=(dim,), keepdim=True)


# From u, the gradient of a softmax, and s, its result: s (u - sum(u s)). As a map of u it is its own transpose.
softmax_backward = Op(
    "softmax_backward",
    r"{s} \cdot \left({u} - \operatorname{sum}\left({u} \cdot {s}\right)\right)",
    vjp=(
        lambda g, s, dim: softmax_backward(g, s, dim=dim),
        lambda g, u, s, dim: g * (u - _total(u * s, dim)) - u * _total(g * s, dim),
    ),
    inputs=("u", "s"),
    attrs=("dim",),
)

# The same with s the logarithm of a softmax.
log_softmax_backward = Op(
    "log_softmax_backward",
    r"{u} - e^{s} \cdot \operatorname{sum} {u}",
    vjp=(
        lambda g, s, dim: g - _total(g * exp(s), dim),
        lambda g, u, s, dim: -(g * exp(s)) * _total(u, dim),
    ),
    inputs=("u", "s"),
    attrs=("dim",),
)

# softmax(scale q kᵀ + m) v, and the softmax itself, the weights: Vaswani et al. 2017, eq. 1. The weights are an output,
# not an auxiliary result, so that the rules can be derived through them. They are dropped with probability p; `seed` is
# the key of that dropout.


def _dropped(x: Any, p: float, seed: int) -> Any:
    return dropout(x, p=p, key=seed) if p else x


def _scores(g: Any, weights: Any, v: Any, p: float, seed: int) -> Any:
    """What scale q kᵀ + m gets: by way of the weights, which may have a gradient of their own."""
    u = g[1]
    if g[0] is not None:
        by_result = _dropped(matmul(g[0], v.mT), p, seed)
        by_result = by_result if by_result.shape == weights.shape else sum_to(by_result, shape=weights.shape)
        u = by_result if u is None else u + by_result
    return softmax_backward(u, weights, dim=weights.ndim - 1)


def _value(g: Any, weights: Any, v: Any, p: float, seed: int) -> Any:
    return where(False, v, 0.0) if g[0] is None else matmul(_dropped(weights, p, seed).mT, g[0])


scaled_dot_product_attention = Op(
    "scaled_dot_product_attention",
    r"\operatorname{softmax}\left(\operatorname{scale} \cdot {q} {k}^T + {m}\right) {v}",
    vjp=(
        lambda g, y1, k, v, scale, p, seed: matmul(_scores(g, y1, v, p, seed), k) * scale,
        lambda g, y1, q, v, scale, p, seed: matmul(_scores(g, y1, v, p, seed).mT, q) * scale,
        lambda g, y1, v, p, seed: _value(g, y1, v, p, seed),
        lambda g, y1, v, p, seed: _scores(g, y1, v, p, seed),
    ),
    inputs=("q", "k", "v", "m"),
    attrs=("is_causal", "scale", "p", "seed"),
    outputs=2,
)
