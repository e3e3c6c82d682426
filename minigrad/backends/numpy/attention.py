"""Softmax and attention kernels. They subtract the maximum first, so that no exponential overflows."""

from __future__ import annotations

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array
from minigrad.backends.numpy.normalization import dot, kept
from minigrad.backends.numpy.reduce import over, summed
from minigrad.backends.numpy.shape import sum_to
from minigrad.core.dispatch import kernel

__all__: list[str] = []


def below_top(a: Array, dim: int) -> Array:
    return a - over(np.maximum, a, dim, True, initial=-np.inf)


@kernel("softmax", DEVICE)
def softmax(a: Array, *, dim: int) -> Array:
    y = below_top(a, dim)
    np.exp(y, out=y)
    y /= summed(y, dim, True)
    return y


@kernel("log_softmax", DEVICE)
def log_softmax(a: Array, *, dim: int) -> Array:
    y = below_top(a, dim)
    y -= np.log(summed(np.exp(y), dim, True))
    return y


@kernel("softmax_backward", DEVICE)
def softmax_backward(u: Array, s: Array, *, dim: int) -> Array:
    y = u - dot((dim,), u, s)
    y *= s
    return y


@kernel("log_softmax_backward", DEVICE)
def log_softmax_backward(u: Array, s: Array, *, dim: int) -> Array:
    y = np.exp(s)
    y *= summed(u, dim, True)
    return np.subtract(u, y, out=y)


@kernel("scaled_dot_product_attention", DEVICE)
def attention(
    query: Array, key: Array, value: Array, mask: Array, *, is_causal: bool, scale: float, p: float, seed: int
) -> tuple[Array, Array]:
    weights = np.matmul(query * scale, key.swapaxes(-1, -2))
    if is_causal:
        mask = np.tri(*weights.shape[-2:], dtype=bool)
    if mask is not None:
        weights += mask if mask.dtype.kind == "f" else np.where(mask, 0, -np.inf)
    top = over(np.maximum, weights, -1, True, initial=-np.inf)
    weights -= np.where(np.isneginf(top), 0, top)  # a fully masked row has weights of 0
    np.exp(weights, out=weights)
    total = summed(weights, -1, True)
    weights /= np.where(total == 0, 1, total)
    dropped = np.where(kept(weights.shape, p, seed), weights / (1 - p), 0) if p else weights
    return np.matmul(dropped, value), weights


@kernel("attention_backward", DEVICE)
def attention_backward(
    u: Array, query: Array, key: Array, value: Array, weights: Array, *, scale: float, p: float, seed: int
) -> tuple[Array, ...]:
    keep = kept(weights.shape, p, seed) if p else None
    by_weights = np.matmul(u, value.swapaxes(-1, -2))
    dropped = weights
    if keep is not None:
        by_weights, dropped = (np.where(keep, x / (1 - p), 0) for x in (by_weights, weights))
    if by_weights.shape != weights.shape:  # value has batch dimensions that query and key lack
        by_weights = sum_to(by_weights, shape=weights.shape)
    scores = softmax_backward(by_weights, weights, dim=weights.ndim - 1)
    by_query, by_key = np.matmul(scores, key), np.matmul(scores.swapaxes(-1, -2), query)
    by_query *= scale
    by_key *= scale
    return by_query, by_key, np.matmul(dropped.swapaxes(-1, -2), u), scores
