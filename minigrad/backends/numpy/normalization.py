"""Normalisation and dropout kernels. `norm` is a `Norm`: the shape of the input's view and the reduced dimensions."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array, Dims
from minigrad.backends.numpy.random import uniform
from minigrad.backends.numpy.reduce import is_in_range
from minigrad.core.dispatch import kernel

__all__: list[str] = []


ROWS_PER_BLOCK = 1024  # rows per partial sum


def sum_of_products(dims_to_sum: Dims, *arrays: Array) -> Array:
    """Sum the product of `arrays` over the dimensions `dims_to_sum`, which are kept with size 1, without a temporary.

    A sum over rows is computed in blocks, because the rounding error grows with the number of summands.
    """
    shape = arrays[0].shape
    dims = list(range(len(shape)))
    rest = [k for k in dims if k not in dims_to_sum]
    step = ROWS_PER_BLOCK if 0 in dims_to_sum else max(shape[0], 1)
    starts = range(0, max(shape[0], 1), step)
    blocks = [np.einsum(*[part for x in arrays for part in (x[k : k + step], dims)], rest) for k in starts]
    total = np.add.reduce(blocks, dtype=np.float64).astype(blocks[0].dtype)
    return total.reshape([1 if k in dims_to_sum else size for k, size in enumerate(shape)])


def group_size(norm: Any) -> int:
    """Return the number of elements over which a mean is computed."""
    return prod([norm.shape[k] for k in norm.dim])


def stable_mean(a: Array, norm: Any) -> Array:
    """Return the mean, accumulated in float64, since a float32 rounding error may exceed a small standard deviation."""
    total = np.add.reduce(a.reshape(norm.shape), axis=norm.dim, keepdims=True, dtype=np.float64)
    return (total / group_size(norm)).astype(a.dtype)


def reshape_parameter(weight: Array, norm: Any) -> Array:
    return weight.reshape([size if k in norm.along else 1 for k, size in enumerate(norm.shape)])


def subtract_mean(a: Array, mean: Array, norm: Any) -> Array:
    x = a.reshape(norm.shape)
    return x - mean if norm.centred else x


def multiply_inplace(x: Array, factor: Array, norm: Any) -> Array:
    return np.multiply(x, factor, out=x if norm.centred else None)  # without centring, x is a view of the operand


def normalise(a: Array, weight: Array, bias: Array, norm: Any) -> tuple[Array, Array, Array, Array]:
    """Return the output, mean, variance and rstd. The last three keep the reduced dimensions, with size 1."""
    mean = stable_mean(a, norm) if norm.centred else np.zeros((), a.dtype)
    x = subtract_mean(a, mean, norm)
    var = sum_of_products(norm.dim, x, x) / group_size(norm)
    if not is_in_range(var + norm.eps):
        var = np.add.reduce(np.square(x, dtype=np.float64), axis=norm.dim, keepdims=True) / group_size(norm)
    rstd = (1 / np.sqrt(var + norm.eps)).astype(a.dtype)
    y = multiply_inplace(x, rstd, norm)
    if weight is not None:
        y *= reshape_parameter(weight, norm)
    if bias is not None:
        y += reshape_parameter(bias, norm)
    return y.reshape(a.shape), mean, var.astype(a.dtype), rstd


@kernel("layer_norm", DEVICE)
@kernel("group_norm", DEVICE)
@kernel("rms_norm", DEVICE)
def norm(a: Array, weight: Array, bias: Array = None, *, norm: Any) -> tuple[Array, Array, Array]:
    y, mean, _, rstd = normalise(a, weight, bias, norm)
    return y, mean, rstd


@kernel("batch_norm", DEVICE)
@kernel("instance_norm", DEVICE)
def norm_with_statistics(a: Array, weight: Array, bias: Array, *, norm: Any) -> tuple[Array, ...]:
    y, mean, var, rstd = normalise(a, weight, bias, norm)
    return y, mean, var, mean, rstd


@kernel("norm_backward", DEVICE)
def norm_backward(u: Array, a: Array, weight: Array, mean: Array, rstd: Array, *, norm: Any) -> Array:
    weighted_grad = u.reshape(norm.shape)
    if weight is not None:
        weighted_grad = weighted_grad * reshape_parameter(weight, norm)
    x = subtract_mean(a, mean, norm)
    projection = sum_of_products(norm.dim, weighted_grad, x) * rstd * rstd / -group_size(norm)
    y = multiply_inplace(x, projection, norm)
    y += weighted_grad
    if norm.centred:
        y -= sum_of_products(norm.dim, weighted_grad) / group_size(norm)
    y *= rstd
    return y.reshape(a.shape)


@kernel("norm_weight", DEVICE)
def norm_weight(u: Array, a: Array, mean: Array, rstd: Array, *, to: Dims, norm: Any) -> Array:
    x = multiply_inplace(subtract_mean(a, mean, norm), rstd, norm)
    rest = tuple(k for k in range(x.ndim) if k not in norm.along)
    return sum_of_products(rest, u.reshape(norm.shape), x).reshape(to)


@kernel("dropout", DEVICE)
def dropout(a: Array, *, p: float, key: int) -> Array:
    return np.where(dropout_mask(a.shape, p, key), a / (1 - p), 0)


def dropout_mask(shape: Dims, p: float, key: int) -> Array:
    """Return the dropout mask: each element is kept with probability 1 - p, deterministically for a given key."""
    return uniform(key, 0, prod(shape)).reshape(shape) >= p
