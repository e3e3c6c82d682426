"""Loss kernels. Class scores are along dimension 1; the other dimensions are positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.backends.numpy.activation import softplus
from minigrad.backends.numpy.arrays import DEVICE, Array
from minigrad.core.dispatch import kernel

__all__ = ["REDUCTIONS"]


# --- classification ---


def target_weights(b: Array, c: Array | None, ignore_index: int, dtype: Any) -> tuple[Any, Array, Array]:
    """Return a mask of positions that are not ignored, or True for all, and the class and weight of each position.

    The weight of an ignored position is 0. Raises IndexError for a negative class; indexing raises IndexError for a
    class that is too large.
    """
    if c is None and ignore_index < 0 and np.minimum.reduce(b, axis=None, initial=0) == 0:  # fast path: none is ignored
        return True, b.copy(), np.ones(b.shape, dtype)  # new arrays, as below, so that the call can be captured
    mask = b != ignore_index
    classes = b * mask
    if np.minimum.reduce(classes, axis=None, initial=0) < 0:
        raise IndexError("target is out of bounds: a class index is negative")
    return mask, classes, mask.astype(dtype) if c is None else np.where(mask, c[classes], 0)


def class_index(classes: Array) -> tuple[Array, ...]:
    """Return the index of the score of each position's class, as a tuple."""
    if classes.ndim == 1:
        return np.arange(len(classes)), classes
    first, *rest = [np.arange(n).reshape(n, *[1] * (classes.ndim - 1 - k)) for k, n in enumerate(classes.shape)]
    return (first, classes, *rest)


REDUCTIONS = {"none": None, "sum": False, "mean": True}
"""Maps a reduction to whether it divides by the total weight, "none" to None. `functional` rejects other names."""


def reduce_losses(losses: Array, mask: Any, weights: Array, reduction: str) -> tuple[Array, Array]:
    """Return the weighted and reduced loss, and its derivative with respect to the loss at each position."""
    divides = REDUCTIONS[reduction]
    weighted = losses if mask is True else np.where(mask, losses * weights, 0)
    if divides is None:
        return weighted, weights
    summed = np.add.reduce(weighted, axis=None)
    if not divides:
        return np.asarray(summed), weights
    if mask is True:
        return np.asarray(summed / losses.size), weights / weights.dtype.type(losses.size)
    # If the total weight is 0, the mean and the derivatives of positions that are not ignored are nan.
    total_weight = np.add.reduce(weights, axis=None)
    return np.asarray(summed / total_weight), np.divide(weights, total_weight, out=weights, where=mask)


def subtract_max(a: Array) -> tuple[Array, Array]:
    """Return the maximum score at each position, and the scores minus the maximum, to prevent overflow of exp."""
    top = np.maximum.reduce(a, axis=1, keepdims=True, initial=-np.inf)
    return top, a - top


@kernel("cross_entropy", DEVICE)
def cross_entropy(a: Array, b: Array, c: Array | None, *, ignore_index: int, reduction: str) -> tuple[Array, ...]:
    mask, classes, weights = target_weights(b, c, ignore_index, a.dtype)
    top, shifted = subtract_max(a)
    target_scores = shifted[class_index(classes)]
    total = np.add.reduce(np.exp(shifted, out=shifted), axis=1, keepdims=True)
    loss, weights = reduce_losses(np.log(total[:, 0]) - target_scores, mask, weights, reduction)
    return loss, classes, weights, top, total


@kernel("cross_entropy_backward", DEVICE)
def cross_entropy_backward(grad: Any, a: Array, classes: Array, weights: Array, top: Array, total: Array) -> Array:
    scale = grad * weights
    out = a - top
    np.exp(out, out=out)
    out *= scale[:, None] / total
    out[class_index(classes)] -= scale
    return out


@kernel("soft_cross_entropy", DEVICE)
def soft_cross_entropy(a: Array, b: Array) -> Array:
    _, shifted = subtract_max(a)
    total = np.add.reduce(np.exp(shifted), axis=1, keepdims=True)
    return np.add.reduce(b * (np.log(total) - shifted), axis=1)


@kernel("nll_loss", DEVICE)
def nll_loss(a: Array, b: Array, c: Array | None, *, ignore_index: int, reduction: str) -> tuple[Array, ...]:
    mask, classes, weights = target_weights(b, c, ignore_index, a.dtype)
    loss, weights = reduce_losses(-a[class_index(classes)], mask, weights, reduction)
    return loss, classes, weights


@kernel("kl_div", DEVICE)
def kl_div(a: Array, b: Array, *, log_target: bool) -> Array:
    if log_target:
        return np.exp(b) * (b - a)
    return np.where(b == 0, 0, b * np.log(b)) - b * a


# --- binary classification ---


@kernel("binary_cross_entropy", DEVICE)
def binary_cross_entropy(a: Array, b: Array) -> Array:
    if not (a >= 0).all() or not (a <= 1).all():
        raise ValueError("all elements of input should be between 0 and 1")
    return (b - 1) * np.maximum(np.log1p(-a), -100) - b * np.maximum(np.log(a), -100)


@kernel("bce_with_logits", DEVICE)
def bce_with_logits(a: Array, b: Array, c: Any) -> Array:
    return (1 - b) * a + (1 + (c - 1) * b) * softplus(-a)


@kernel("hinge_loss", DEVICE)
def hinge_loss(a: Array, b: Array) -> Array:
    return np.maximum(1 - a * b, 0)


# --- regression ---


@kernel("mse_loss", DEVICE)
def mse_loss(a: Array, b: Array) -> Array:
    return np.square(a - b)


@kernel("l1_loss", DEVICE)
def l1_loss(a: Array, b: Array) -> Array:
    return np.abs(a - b)


@kernel("huber_loss", DEVICE)
def huber_loss(a: Array, b: Array, *, delta: float) -> Array:
    distance = np.abs(a - b)
    near = np.minimum(distance, delta)
    return near * (distance - 0.5 * near)
