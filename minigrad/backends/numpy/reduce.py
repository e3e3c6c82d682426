"""Reductions and scans. `dim` is a tuple of non-negative ints, or one int for kernels that reduce one dimension."""

from __future__ import annotations

from functools import partial
from math import prod as product
from typing import Any

import numpy as np

from minigrad.backends.numpy.arrays import DEVICE, Array, Dims, as_indices
from minigrad.core.dispatch import Kernel, kernel

__all__: list[str] = []


def sum_dtype(a: Array) -> Any:
    """Return the dtype of a sum over `a`: the dtype of `a` if floating point, otherwise int64."""
    return a.dtype if a.dtype.kind == "f" else np.int64


def accumulator_dtype(a: Array) -> Any:
    """Return the accumulator dtype for reductions of `a` that need extra precision."""
    return np.float64 if a.dtype.kind == "f" else np.int64


def cast_to_sum_dtype(result: Array, a: Array) -> Array:
    return result.astype(sum_dtype(a), copy=False)


MAX_SEQUENTIAL = 1024  # a sequential float32 sum of this many elements has about six correct digits


def reduce_ufunc(ufunc: Any, a: Array, dim: Any, keepdim: bool, **kwargs: Any) -> Array:
    return ufunc.reduce(a, axis=dim, keepdims=keepdim, **kwargs)


def stable_sum(a: Array, dim: Any, keepdim: bool) -> Array:
    """Sum over `dim`, for many float32 elements in float64, since NumPy sums pairwise only along contiguous rows."""
    dims = dim if isinstance(dim, tuple) else range(a.ndim) if dim is None else (dim,)
    if a.dtype != np.float32 or product([a.shape[k] for k in dims]) <= MAX_SEQUENTIAL:
        return reduce_ufunc(np.add, a, dim, keepdim, dtype=sum_dtype(a))
    return reduce_ufunc(np.add, a, dim, keepdim, dtype=np.float64).astype(a.dtype)


@kernel("sum", DEVICE)
def sum(a: Array, *, dim: Dims, keepdim: bool) -> Array:
    return stable_sum(a, dim, keepdim)


@kernel("mean", DEVICE)
def mean(a: Array, *, dim: Dims, keepdim: bool) -> Array:
    return stable_sum(a, dim, keepdim) / product(a.shape[k] for k in dim)


def is_in_range(total: Array) -> bool:
    """Return whether a sum of powers neither overflowed nor underflowed."""
    return bool(np.all((total > np.finfo(total.dtype).tiny * 1e8) & (total < np.inf)))


def nonzero_extremum(magnitudes: Array, dim: Dims, ufunc: Any = np.maximum, start: float = 0.0) -> Array:
    """Return the extremum of `magnitudes` over `dim`, computed by `ufunc`; 1 where it is 0 or not finite."""
    extremum = reduce_ufunc(ufunc, magnitudes, dim, True, initial=start)
    return np.where((extremum > 0) & (extremum < np.inf), extremum, 1)


def scaled_variance(a: Array, dim: Dims, correction: float) -> tuple[Array, Any]:
    """Return the variance of ``a / divisor`` in float64, and the divisor, which prevents overflow and underflow."""
    count = product(a.shape[k] for k in dim)
    freedom = max(count - correction, 0)
    average = np.asarray(reduce_ufunc(np.add, a, dim, True, dtype=np.float64) / count)
    rounded = average.astype(a.dtype)
    centred = np.asarray(a - rounded)
    squares = np.asarray(reduce_ufunc(np.add, np.square(centred, out=centred), dim, True, dtype=np.float64))
    if not is_in_range(squares.astype(a.dtype)):
        centred = a - average
        divisor = nonzero_extremum(np.abs(centred), dim)
        return reduce_ufunc(np.add, np.square(centred / divisor), dim, True) / freedom, divisor
    if a.dtype != np.float64:  # subtract the rounding error of the mean
        squares = squares - count * np.square(average - rounded)
    return squares / freedom, 1.0


def squeeze_and_cast(result: Array, a: Array, dim: Dims, keepdim: bool) -> Array:
    """Cast a result to the dtype of `a`, and remove the reduced dimensions, of size 1, unless `keepdim`."""
    result = result.astype(a.dtype)
    return result if keepdim else result.reshape([n for k, n in enumerate(a.shape) if k not in dim])


@kernel("var", DEVICE)
def var(a: Array, *, dim: Dims, correction: float, keepdim: bool) -> Array:
    variance, divisor = scaled_variance(a, dim, correction)
    return squeeze_and_cast(variance * divisor * divisor, a, dim, keepdim)


@kernel("std", DEVICE)
def std(a: Array, *, dim: Dims, correction: float, keepdim: bool) -> Array:
    variance, divisor = scaled_variance(a, dim, correction)
    return squeeze_and_cast(np.sqrt(variance) * divisor, a, dim, keepdim)


@kernel("logsumexp", DEVICE)
def logsumexp(a: Array, *, dim: Dims, keepdim: bool) -> Array:
    top = reduce_ufunc(np.maximum, a, dim, True, initial=-np.inf)
    top = np.where(np.isinf(top), 0, top)  # avoids inf - inf
    return squeeze_and_cast(np.log(stable_sum(np.exp(a - top), dim, True)) + top, a, dim, keepdim)


@kernel("norm", DEVICE)
def norm(a: Array, *, p: float, dim: Dims, keepdim: bool) -> Array:
    if p == 0:
        return reduce_ufunc(np.add, a != 0, dim, keepdim, dtype=np.int64).astype(a.dtype)
    divisor: Any = 1.0
    square = p == 2
    total = (
        reduce_ufunc(np.add, np.square(a, dtype=np.float64), dim, True)
        if square
        else stable_sum(np.abs(a) ** p, dim, True)
    )
    if not (square and a.dtype == np.float32) and not is_in_range(total):
        magnitudes = np.abs(a.astype(np.float64))
        divisor = nonzero_extremum(magnitudes, dim) if p > 0 else nonzero_extremum(magnitudes, dim, np.minimum, np.inf)
        total = reduce_ufunc(np.add, (magnitudes / divisor) ** p, dim, True)
    return squeeze_and_cast((np.sqrt(total) if square else total ** (1 / p)) * divisor, a, dim, keepdim)


kernel("amax", DEVICE)(partial(reduce_ufunc, np.maximum))
kernel("amin", DEVICE)(partial(reduce_ufunc, np.minimum))


@kernel("any", DEVICE)
def any(a: Array, *, dim: Dims, keepdim: bool) -> Array:
    return bool_or_uint8(reduce_ufunc(np.logical_or, a, dim, keepdim), a)


@kernel("all", DEVICE)
def all(a: Array, *, dim: Dims, keepdim: bool) -> Array:
    return bool_or_uint8(reduce_ufunc(np.logical_and, a, dim, keepdim), a)


def bool_or_uint8(result: Array, a: Array) -> Array:
    return result.astype(np.uint8) if a.dtype == np.uint8 else result  # as in PyTorch


# --- along one dimension ---


@kernel("argmax", DEVICE)
def argmax(a: Array, *, dim: int, keepdim: bool) -> Array:
    return as_indices(np.argmax(a, axis=dim, keepdims=keepdim))


@kernel("argmin", DEVICE)
def argmin(a: Array, *, dim: int, keepdim: bool) -> Array:
    return as_indices(np.argmin(a, axis=dim, keepdims=keepdim))


@kernel("max", DEVICE)
def max_along(a: Array, *, dim: int, keepdim: bool) -> tuple[Array, Array]:
    indices = np.asarray(argmax(a, dim=dim, keepdim=keepdim))
    return pick_along(a, indices, dim=dim, keepdim=keepdim), indices


@kernel("min", DEVICE)
def min_along(a: Array, *, dim: int, keepdim: bool) -> tuple[Array, Array]:
    indices = np.asarray(argmin(a, dim=dim, keepdim=keepdim))
    return pick_along(a, indices, dim=dim, keepdim=keepdim), indices


@kernel("pick_along", DEVICE)
def pick_along(a: Array, b: Array, *, dim: int, keepdim: bool) -> Array:
    picked = np.take_along_axis(a, b if keepdim else np.expand_dims(b, dim), dim)
    return picked if keepdim else picked.squeeze(dim)


@kernel("put_along", DEVICE)
def put_along(a: Array, b: Array, *, shape: Dims, dim: int, keepdim: bool) -> Array:
    out = np.zeros(shape, a.dtype)
    if not keepdim:
        a, b = np.expand_dims(a, dim), np.expand_dims(b, dim)
    np.put_along_axis(out, b, a, dim)
    return out


@kernel("prod", DEVICE)
def prod(a: Array, *, dim: int, keepdim: bool) -> Array:
    return cast_to_sum_dtype(reduce_ufunc(np.multiply, a, dim, keepdim, dtype=accumulator_dtype(a)), a)


def scan_kernel(ufunc: Any) -> Kernel:
    """Return the scan kernel of a ufunc such as np.add."""

    def run(a: Array, *, dim: int, reverse: bool) -> Array:
        if reverse:
            return np.flip(
                cast_to_sum_dtype(ufunc.accumulate(np.flip(a, dim), axis=dim, dtype=accumulator_dtype(a)), a), dim
            )
        return cast_to_sum_dtype(ufunc.accumulate(a, axis=dim, dtype=accumulator_dtype(a)), a)

    return run


kernel("cumsum", DEVICE)(scan_kernel(np.add))
kernel("cumprod", DEVICE)(scan_kernel(np.multiply))


@kernel("recur", DEVICE)
def recur(a: Array, b: Array, *, dim: int, reverse: bool) -> Array:
    y = np.array(b)
    outputs, factors = np.moveaxis(y, dim, 0), np.moveaxis(a, dim, 0)
    if reverse:
        outputs, factors = outputs[::-1], factors[::-1]
    for k in range(1, len(outputs)):
        outputs[k] += factors[k] * outputs[k - 1]
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
