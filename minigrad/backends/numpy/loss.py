"""Loss kernels. Class scores are along dimension 1; the other dimensions are positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.backends.numpy.activation import softplus
from minigrad.backends.numpy.arrays import DEVICE, Array
from minigrad.core.dispatch import kernel

__all__ = ["REDUCTIONS"]


# --- classification ---


def shares(b: Array, c: Array | None, ignore_index: int, dtype: Any) -> tuple[Any, Array, Array]:
    """Return the mask of positions that are not ignored (True for all), their class and its weight (0 if ignored).

    Raises IndexError for a negative class; indexing raises for one that is too large.
    """
    if c is None and ignore_index < 0 and np.minimum.reduce(b, axis=None, initial=0) == 0:  # fast path: none is ignored
        return True, b.copy(), np.ones(b.shape, dtype)  # new arrays, as on the slow path, so that it can be captured
    counted = b != ignore_index
    at = b * counted
    if np.minimum.reduce(at, axis=None, initial=0) < 0:
        raise IndexError("target is out of bounds: a class index is negative")
    return counted, at, counted.astype(dtype) if c is None else np.where(counted, c[at], 0)


def place(at: Array) -> tuple[Array, ...]:
    """Return the index tuple of the scores of classes `at`."""
    if at.ndim == 1:
        return np.arange(len(at)), at
    first, *rest = [np.arange(n).reshape(n, *[1] * (at.ndim - 1 - k)) for k, n in enumerate(at.shape)]
    return (first, at, *rest)


REDUCTIONS = {"none": None, "sum": False, "mean": True}
"""Whether a reduction divides; None for no reduction. `functional` rejects other names before."""


def reduced(losses: Array, counted: Any, share: Array, reduction: str) -> tuple[Array, Array]:
    """Return the weighted and reduced loss, and its derivative with respect to the loss at each position."""
    divides = REDUCTIONS[reduction]
    weighted = losses if counted is True else np.where(counted, losses * share, 0)
    if divides is None:
        return weighted, share
    summed = np.add.reduce(weighted, axis=None)
    if not divides:
        return np.asarray(summed), share
    if counted is True:
        return np.asarray(summed / losses.size), share / share.dtype.type(losses.size)
    whole = np.add.reduce(share, axis=None)  # if 0, the mean is nan, and so are the derivatives of positions that count
    return np.asarray(summed / whole), np.divide(share, whole, out=share, where=counted)


def below_largest(a: Array) -> tuple[Array, Array]:
    """Return the maximum score at each position, and the scores minus it, whose exponentials do not overflow."""
    top = np.maximum.reduce(a, axis=1, keepdims=True, initial=-np.inf)
    return top, a - top


@kernel("cross_entropy", DEVICE)
def cross_entropy(a: Array, b: Array, c: Array | None, *, ignore_index: int, reduction: str) -> tuple[Array, ...]:
    counted, at, share = shares(b, c, ignore_index, a.dtype)
    top, shifted = below_largest(a)
    right = shifted[place(at)]
    total = np.add.reduce(np.exp(shifted, out=shifted), axis=1, keepdims=True)
    loss, share = reduced(np.log(total[:, 0]) - right, counted, share, reduction)
    return loss, at, share, top, total


@kernel("cross_entropy_backward", DEVICE)
def cross_entropy_backward(up: Any, a: Array, at: Array, share: Array, top: Array, total: Array) -> Array:
    scale = up * share
    out = a - top
    np.exp(out, out=out)
    out *= scale[:, None] / total
    out[place(at)] -= scale
    return out


@kernel("soft_cross_entropy", DEVICE)
def soft_cross_entropy(a: Array, b: Array) -> Array:
    _, shifted = below_largest(a)
    total = np.add.reduce(np.exp(shifted), axis=1, keepdims=True)
    return np.add.reduce(b * (np.log(total) - shifted), axis=1)


@kernel("nll_loss", DEVICE)
def nll_loss(a: Array, b: Array, c: Array | None, *, ignore_index: int, reduction: str) -> tuple[Array, ...]:
    counted, at, share = shares(b, c, ignore_index, a.dtype)
    loss, share = reduced(-a[place(at)], counted, share, reduction)
    return loss, at, share


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
    size = np.abs(a - b)
    near = np.minimum(size, delta)
    return near * (size - 0.5 * near)
