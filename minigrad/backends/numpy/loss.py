"""Losses. Those of classes get them along dimension 1; positions are the other dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.backends.numpy.activation import softplus
from minigrad.backends.numpy.arrays import DEVICE, Array
from minigrad.core.dispatch import kernel

__all__ = ["REDUCTIONS"]


# --- of classes ---


def shares(b: Array, c: Array | None, ignore_index: int, dtype: Any) -> tuple[Any, Array, Array]:
    """Which positions count (True for all), the class to read there (0 elsewhere), and its weight (0 elsewhere).

    Raises IndexError for a class below 0; one that is too large has none to read.
    """
    if c is None and ignore_index < 0 and np.minimum.reduce(b, axis=None, initial=0) == 0:  # the usual case, quickly
        return True, b.copy(), np.ones(b.shape, dtype)  # as where some do not count, so that it can be recorded
    counted = b != ignore_index
    at = b * counted
    if np.minimum.reduce(at, axis=None, initial=0) < 0:
        raise IndexError("a class below 0")
    return counted, at, counted.astype(dtype) if c is None else np.where(counted, c[at], 0)


def place(at: Array) -> tuple[Array, ...]:
    """The index at which the scores of the classes `at` are found."""
    if at.ndim == 1:
        return np.arange(len(at)), at
    first, *rest = [np.arange(n).reshape(n, *[1] * (at.ndim - 1 - k)) for k, n in enumerate(at.shape)]
    return (first, at, *rest)


REDUCTIONS = {"none": None, "sum": False, "mean": True}
"""Whether a reduction divides; None for no reduction. Other words raise KeyError: `functional` refuses them before."""


def reduced(losses: Array, counted: Any, share: Array, reduction: str) -> tuple[Array, Array]:
    """The losses, weighted and reduced, and the slope by which the loss at each position counts for that."""
    divides = REDUCTIONS[reduction]
    weighted = losses if counted is True else np.where(counted, losses * share, 0)
    if divides is None:
        return weighted, share
    summed = np.add.reduce(weighted, axis=None)
    if not divides:
        return np.asarray(summed), share
    if counted is True:
        return np.asarray(summed / losses.size), share / share.dtype.type(losses.size)
    whole = np.add.reduce(share, axis=None)  # if it is 0, the mean is nan, and slopes only where a position counts
    return np.asarray(summed / whole), np.divide(share, whole, out=share, where=counted)


def below_largest(a: Array) -> tuple[Array, Array]:
    """The largest score at each position, and the scores less that, whose exponentials do not overflow."""
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


# --- of yes and no ---


@kernel("binary_cross_entropy", DEVICE)
def binary_cross_entropy(a: Array, b: Array) -> Array:
    if not (a >= 0).all() or not (a <= 1).all():
        raise ValueError("a probability below 0 or above 1")
    return (b - 1) * np.maximum(np.log1p(-a), -100) - b * np.maximum(np.log(a), -100)


@kernel("bce_with_logits", DEVICE)
def bce_with_logits(a: Array, b: Array, c: Any) -> Array:
    return (1 - b) * a + (1 + (c - 1) * b) * softplus(-a)


@kernel("hinge_loss", DEVICE)
def hinge_loss(a: Array, b: Array) -> Array:
    return np.maximum(1 - a * b, 0)


# --- of distances ---


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
