"""Normalisation and dropout kernels. `norm` is a `Norm`: the shape of the input's view, and the reduced dimensions."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array, Dims
from minigrad.backends.numpy.random import uniform
from minigrad.backends.numpy.reduce import in_range
from minigrad.core.dispatch import kernel

__all__: list[str] = []


ROWS = 1024  # rows per partial sum


def dot(over: Dims, *arrays: Array) -> Array:
    """Sum the products of `arrays` over the dimensions `over`, kept with size 1, in one pass without a temporary.

    A sum over rows is blocked, because the rounding error grows with the number of summands.
    """
    shape = arrays[0].shape
    dims = list(range(len(shape)))
    rest = [k for k in dims if k not in over]
    step = ROWS if 0 in over else max(shape[0], 1)
    starts = range(0, max(shape[0], 1), step)
    blocks = [np.einsum(*[part for x in arrays for part in (x[k : k + step], dims)], rest) for k in starts]
    total = np.add.reduce(blocks, dtype=np.float64).astype(blocks[0].dtype)
    return total.reshape([1 if k in over else size for k, size in enumerate(shape)])


def count(norm: Any) -> int:
    """Return the number of elements that share a mean."""
    return prod([norm.shape[k] for k in norm.dim])


def average(a: Array, norm: Any) -> Array:
    """Return the mean, accumulated in float64: its rounding error would be large relative to a small deviation."""
    total = np.add.reduce(a.reshape(norm.shape), axis=norm.dim, keepdims=True, dtype=np.float64)
    return (total / count(norm)).astype(a.dtype)


def aligned(weight: Array, norm: Any) -> Array:
    return weight.reshape([size if k in norm.along else 1 for k, size in enumerate(norm.shape)])


def centred(a: Array, mean: Array, norm: Any) -> Array:
    x = a.reshape(norm.shape)
    return x - mean if norm.centred else x


def scaled(x: Array, by: Array, norm: Any) -> Array:
    return np.multiply(x, by, out=x if norm.centred else None)  # without centring, x is still the operand


def standardised(a: Array, weight: Array, bias: Array, norm: Any) -> tuple[Array, Array, Array, Array]:
    """Return the output, mean, variance and rstd; the last three keep their dimensions."""
    mean = average(a, norm) if norm.centred else np.zeros((), a.dtype)
    x = centred(a, mean, norm)
    var = dot(norm.dim, x, x) / count(norm)
    if not in_range(var + norm.eps):
        var = np.add.reduce(np.square(x, dtype=np.float64), axis=norm.dim, keepdims=True) / count(norm)
    rstd = (1 / np.sqrt(var + norm.eps)).astype(a.dtype)
    y = scaled(x, rstd, norm)
    if weight is not None:
        y *= aligned(weight, norm)
    if bias is not None:
        y += aligned(bias, norm)
    return y.reshape(a.shape), mean, var.astype(a.dtype), rstd


@kernel("layer_norm", DEVICE)
@kernel("group_norm", DEVICE)
@kernel("rms_norm", DEVICE)
def norm(a: Array, weight: Array, bias: Array = None, *, norm: Any) -> tuple[Array, Array, Array]:
    y, mean, _, rstd = standardised(a, weight, bias, norm)
    return y, mean, rstd


@kernel("batch_norm", DEVICE)
@kernel("instance_norm", DEVICE)
def norm_with_statistics(a: Array, weight: Array, bias: Array, *, norm: Any) -> tuple[Array, ...]:
    y, mean, var, rstd = standardised(a, weight, bias, norm)
    return y, mean, var, mean, rstd


@kernel("norm_backward", DEVICE)
def norm_backward(u: Array, a: Array, weight: Array, mean: Array, rstd: Array, *, norm: Any) -> Array:
    h = u.reshape(norm.shape)
    if weight is not None:
        h = h * aligned(weight, norm)
    x = centred(a, mean, norm)
    share = dot(norm.dim, h, x) * rstd * rstd / -count(norm)
    y = scaled(x, share, norm)
    y += h
    if norm.centred:
        y -= dot(norm.dim, h) / count(norm)
    y *= rstd
    return y.reshape(a.shape)


@kernel("norm_weight", DEVICE)
def norm_weight(u: Array, a: Array, mean: Array, rstd: Array, *, to: Dims, norm: Any) -> Array:
    x = scaled(centred(a, mean, norm), rstd, norm)
    rest = tuple(k for k in range(x.ndim) if k not in norm.along)
    return dot(rest, u.reshape(norm.shape), x).reshape(to)


@kernel("dropout", DEVICE)
def dropout(a: Array, *, p: float, key: int) -> Array:
    return np.where(kept(a.shape, p, key), a / (1 - p), 0)


def kept(shape: Dims, p: float, key: int) -> Array:
    """Return the dropout mask: each element is kept with probability 1 - p, deterministically for a given key."""
    return uniform(key, 0, prod(shape)).reshape(shape) >= p
