"""Softmax and attention kernels. They subtract the maximum first, so that no exponential overflows."""

from __future__ import annotations

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array
from minigrad.backends.numpy.normalization import dropout_mask, sum_of_products
from minigrad.backends.numpy.reduce import reduce_ufunc, stable_sum
from minigrad.backends.numpy.shape import sum_to
from minigrad.core.dispatch import kernel

__all__: list[str] = []


def subtract_max(a: Array, dim: int) -> Array:
    return a - reduce_ufunc(np.maximum, a, dim, True, initial=-np.inf)


@kernel("softmax", DEVICE)
def softmax(a: Array, *, dim: int) -> Array:
    y = subtract_max(a, dim)
    np.exp(y, out=y)
    y /= stable_sum(y, dim, True)
    return y


@kernel("log_softmax", DEVICE)
def log_softmax(a: Array, *, dim: int) -> Array:
    y = subtract_max(a, dim)
    y -= np.log(stable_sum(np.exp(y), dim, True))
    return y


@kernel("softmax_backward", DEVICE)
def softmax_backward(u: Array, s: Array, *, dim: int) -> Array:
    y = u - sum_of_products((dim,), u, s)
    y *= s
    return y


@kernel("log_softmax_backward", DEVICE)
def log_softmax_backward(u: Array, s: Array, *, dim: int) -> Array:
    y = np.exp(s)
    y *= stable_sum(u, dim, True)
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
    top = reduce_ufunc(np.maximum, weights, -1, True, initial=-np.inf)
    weights -= np.where(np.isneginf(top), 0, top)  # a fully masked row has weights of 0
    np.exp(weights, out=weights)
    total = stable_sum(weights, -1, True)
    weights /= np.where(total == 0, 1, total)
    dropped_weights = np.where(dropout_mask(weights.shape, p, seed), weights / (1 - p), 0) if p else weights
    return np.matmul(dropped_weights, value), weights


@kernel("attention_backward", DEVICE)
def attention_backward(
    u: Array, query: Array, key: Array, value: Array, weights: Array, *, scale: float, p: float, seed: int
) -> tuple[Array, ...]:
    keep_mask = dropout_mask(weights.shape, p, seed) if p else None
    grad_weights = np.matmul(u, value.swapaxes(-1, -2))
    dropped_weights = weights
    if keep_mask is not None:
        grad_weights, dropped_weights = (np.where(keep_mask, x / (1 - p), 0) for x in (grad_weights, weights))
    if grad_weights.shape != weights.shape:  # value has batch dimensions that query and key lack
        grad_weights = sum_to(grad_weights, shape=weights.shape)
    grad_scores = softmax_backward(grad_weights, weights, dim=weights.ndim - 1)
    grad_query, grad_key = np.matmul(grad_scores, key), np.matmul(grad_scores.swapaxes(-1, -2), query)
    grad_query *= scale
    grad_key *= scale
    return grad_query, grad_key, np.matmul(dropped_weights.swapaxes(-1, -2), u), grad_scores
