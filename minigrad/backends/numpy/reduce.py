"""Reductions and scans. `dim` is a tuple of non-negative ints, or one int for kernels that reduce one dimension."""

from __future__ import annotations

from functools import partial
from math import prod as product
from typing import Any

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array, Dims
from minigrad.core.dispatch import Kernel, kernel

__all__: list[str] = []


def total(a: Array) -> Any:
    """Return the dtype of a sum over `a`: its own if floating point, otherwise int64."""
    return a.dtype if a.dtype.kind == "f" else np.int64


def wide(a: Array) -> Any:
    """Return the accumulator dtype for reductions of `a` that need extra precision."""
    return np.float64 if a.dtype.kind == "f" else np.int64


def cut(found: Array, a: Array) -> Array:
    """Cast a result accumulated in `wide` to the dtype of `total`."""
    return found.astype(total(a), copy=False)


MANY = 1024  # elements: a sequential float32 sum of as many has about six correct digits


def over(ufunc: Any, a: Array, dim: Any, keepdim: bool, **more: Any) -> Array:
    return ufunc.reduce(a, axis=dim, keepdims=keepdim, **more)


def summed(a: Array, dim: Any, keepdim: bool) -> Array:
    """Sum over `dim`, accumulating many float32 in float64: NumPy sums pairwise only along contiguous rows."""
    dims = dim if isinstance(dim, tuple) else range(a.ndim) if dim is None else (dim,)
    if a.dtype != np.float32 or product([a.shape[k] for k in dims]) <= MANY:
        return over(np.add, a, dim, keepdim, dtype=total(a))
    return over(np.add, a, dim, keepdim, dtype=np.float64).astype(a.dtype)


@kernel("sum", DEVICE)
def sum(a: Array, *, dim: Dims, keepdim: bool) -> Array:
    return summed(a, dim, keepdim)


@kernel("mean", DEVICE)
def mean(a: Array, *, dim: Dims, keepdim: bool) -> Array:
    return summed(a, dim, keepdim) / product(a.shape[k] for k in dim)


def in_range(total: Array) -> bool:
    """Return whether a sum of powers neither overflowed nor underflowed."""
    return bool(np.all((total > np.finfo(total.dtype).tiny * 1e8) & (total < np.inf)))


def scale(sizes: Array, dim: Dims, ends: Any = np.maximum, start: float = 0.0) -> Array:
    """Return the maximum of `sizes` over `dim`, or another extremum by `ends`; 1 where it is 0 or not finite."""
    end = over(ends, sizes, dim, True, initial=start)
    return np.where((end > 0) & (end < np.inf), end, 1)


def spread(a: Array, dim: Dims, correction: float) -> tuple[Array, Any]:
    """Return the variance of `a` divided by a scale squared, in float64, and the scale."""
    count = product(a.shape[k] for k in dim)
    freedom = max(count - correction, 0)
    average = np.asarray(over(np.add, a, dim, True, dtype=np.float64) / count)
    rounded = average.astype(a.dtype)
    centred = np.asarray(a - rounded)
    squares = np.asarray(over(np.add, np.square(centred, out=centred), dim, True, dtype=np.float64))
    if not in_range(squares.astype(a.dtype)):
        centred = a - average
        by = scale(np.abs(centred), dim)
        return over(np.add, np.square(centred / by), dim, True) / freedom, by
    if a.dtype != np.float64:  # subtract the rounding error of the mean
        squares = squares - count * np.square(average - rounded)
    return squares / freedom, 1.0


def without(found: Array, a: Array, dim: Dims, keepdim: bool) -> Array:
    """Cast a result with kept dimensions to the dtype of `a`, and drop `dim` unless `keepdim`."""
    found = found.astype(a.dtype)
    return found if keepdim else found.reshape([n for k, n in enumerate(a.shape) if k not in dim])


@kernel("var", DEVICE)
def var(a: Array, *, dim: Dims, correction: float, keepdim: bool) -> Array:
    found, by = spread(a, dim, correction)
    return without(found * by * by, a, dim, keepdim)


@kernel("std", DEVICE)
def std(a: Array, *, dim: Dims, correction: float, keepdim: bool) -> Array:
    found, by = spread(a, dim, correction)
    return without(np.sqrt(found) * by, a, dim, keepdim)


@kernel("logsumexp", DEVICE)
def logsumexp(a: Array, *, dim: Dims, keepdim: bool) -> Array:
    top = over(np.maximum, a, dim, True, initial=-np.inf)
    top = np.where(np.isinf(top), 0, top)  # avoids inf - inf
    return without(np.log(summed(np.exp(a - top), dim, True)) + top, a, dim, keepdim)


@kernel("norm", DEVICE)
def norm(a: Array, *, p: float, dim: Dims, keepdim: bool) -> Array:
    if p == 0:
        return over(np.add, a != 0, dim, keepdim, dtype=np.int64).astype(a.dtype)
    by: Any = 1.0
    square = p == 2
    total = over(np.add, np.square(a, dtype=np.float64), dim, True) if square else summed(np.abs(a) ** p, dim, True)
    if not (square and a.dtype == np.float32) and not in_range(total):
        sizes = np.abs(a.astype(np.float64))
        by = scale(sizes, dim) if p > 0 else scale(sizes, dim, np.minimum, np.inf)
        total = over(np.add, (sizes / by) ** p, dim, True)
    return without((np.sqrt(total) if square else total ** (1 / p)) * by, a, dim, keepdim)


kernel("amax", DEVICE)(partial(over, np.maximum))
kernel("amin", DEVICE)(partial(over, np.minimum))


@kernel("any", DEVICE)
def any(a: Array, *, dim: Dims, keepdim: bool) -> Array:
    return truth(over(np.logical_or, a, dim, keepdim), a)


@kernel("all", DEVICE)
def all(a: Array, *, dim: Dims, keepdim: bool) -> Array:
    return truth(over(np.logical_and, a, dim, keepdim), a)


def truth(found: Array, a: Array) -> Array:
    return found.astype(np.uint8) if a.dtype == np.uint8 else found  # as in PyTorch


# --- along one dimension ---


@kernel("argmax", DEVICE)
def argmax(a: Array, *, dim: int, keepdim: bool) -> Array:
    return np.argmax(a, axis=dim, keepdims=keepdim)


@kernel("argmin", DEVICE)
def argmin(a: Array, *, dim: int, keepdim: bool) -> Array:
    return np.argmin(a, axis=dim, keepdims=keepdim)


@kernel("max", DEVICE)
def max_along(a: Array, *, dim: int, keepdim: bool) -> tuple[Array, Array]:
    at = np.asarray(np.argmax(a, axis=dim, keepdims=keepdim))
    return pick_along(a, at, dim=dim, keepdim=keepdim), at


@kernel("min", DEVICE)
def min_along(a: Array, *, dim: int, keepdim: bool) -> tuple[Array, Array]:
    at = np.asarray(np.argmin(a, axis=dim, keepdims=keepdim))
    return pick_along(a, at, dim=dim, keepdim=keepdim), at


@kernel("pick_along", DEVICE)
def pick_along(a: Array, b: Array, *, dim: int, keepdim: bool) -> Array:
    found = np.take_along_axis(a, b if keepdim else np.expand_dims(b, dim), dim)
    return found if keepdim else found.squeeze(dim)


@kernel("put_along", DEVICE)
def put_along(a: Array, b: Array, *, shape: Dims, dim: int, keepdim: bool) -> Array:
    out = np.zeros(shape, a.dtype)
    if not keepdim:
        a, b = np.expand_dims(a, dim), np.expand_dims(b, dim)
    np.put_along_axis(out, b, a, dim)
    return out


@kernel("prod", DEVICE)
def prod(a: Array, *, dim: int, keepdim: bool) -> Array:
    return cut(over(np.multiply, a, dim, keepdim, dtype=wide(a)), a)


def running(function: Any) -> Kernel:
    """Return the scan kernel of a ufunc such as np.add."""

    def run(a: Array, *, dim: int, reverse: bool) -> Array:
        if reverse:
            return np.flip(cut(function.accumulate(np.flip(a, dim), axis=dim, dtype=wide(a)), a), dim)
        return cut(function.accumulate(a, axis=dim, dtype=wide(a)), a)

    return run


kernel("cumsum", DEVICE)(running(np.add))
kernel("cumprod", DEVICE)(running(np.multiply))


@kernel("recur", DEVICE)
def recur(a: Array, b: Array, *, dim: int, reverse: bool) -> Array:
    y = np.array(b)
    along, factors = np.moveaxis(y, dim, 0), np.moveaxis(a, dim, 0)
    if reverse:
        along, factors = along[::-1], factors[::-1]
    for k in range(1, len(along)):
        along[k] += factors[k] * along[k - 1]
    return y


@kernel("shift", DEVICE)
def shift(a: Array, *, dim: int, by: int, fill: float) -> Array:
    out = np.full_like(a, fill)
    target, source = np.moveaxis(out, dim, 0), np.moveaxis(a, dim, 0)
    if by > 0:
        target[by:] = source[:-by]
    else:
        target[:by] = source[-by:]
    return out
