"""Quantiles, medians, covariance and correlation, with PyTorch's signatures."""

from __future__ import annotations

from math import inf
from typing import Any, overload

from minigrad import ops
from minigrad.core.dtypes import get_default_dtype, int64
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from minigrad.core.registry import register
from minigrad.core.shapes import numel
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import (
    at_least_1d,
    check_floating,
    check_nonempty_dim,
    check_option,
    check_single_dim,
    check_tensor,
    flatten_all,
    reshape_to,
    split_tied_gradient,
)
from minigrad.functional.elementwise import clamp, where
from minigrad.functional.linalg import matmul
from minigrad.functional.reduce import any, mean, sum
from minigrad.functional.return_types import SortResult
from minigrad.functional.views import movedim


@register(method=True)
def quantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """Return the `q`-th quantiles of all elements or along `dim`; nan propagates.

    The quantile of n sorted elements is at index q (n - 1). Between two elements, `interpolation` selects "linear"
    interpolation, the "lower", "higher" or "nearest" element, or the "midpoint". `q`, in [0, 1], is a scalar, or a
    tensor (Q,) that adds a leading dimension. Gradients flow to the selected elements and, for "linear", to `q`; the
    derivative with respect to `q` is that of the linear interpolation, or 0 at an element. Raises DTypeError for
    non-floating-point input, ShapeError for an empty dimension, and ArgumentError for a `q` out of range.

    >>> import minigrad as mg
    >>> x = mg.tensor([4.0, 1.0, 3.0, 2.0])
    >>> mg.quantile(x, 0.5).item(), mg.quantile(x, mg.tensor([0.0, 0.25])).tolist()
    (2.5, [1.0, 1.75])
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation)


@register(method=True)
def nanquantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """Return the `quantile` of the elements that are not nan, or nan if there are none."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation)


def _quantile(name: str, input: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Tensor:
    x = check_floating(input, name)
    check_option(interpolation, ("linear", "lower", "higher", "midpoint", "nearest"), name, "interpolation")
    quantiles = x.new_tensor(q) if not isinstance(q, Tensor) else q if interpolation == "linear" else q.detach()
    if quantiles.dtype is not x.dtype or quantiles.ndim > 1:
        raise DTypeError(
            f"{name}: q must be a scalar or a 1-d tensor of the input's dtype {x.dtype.name}, but got "
            f"{quantiles.dtype.name} of shape {quantiles.shape}."
        )
    if not bool(((quantiles >= 0) & (quantiles <= 1)).all()):
        raise ArgumentError(f"{name}: q must be in the range [0, 1], but got {q!r:.80}.")
    k = 0 if dim is None else check_single_dim(dim, x, name)
    rows = movedim(flatten_all(x) if dim is None else at_least_1d(x), k, -1)
    if not numel(x.shape):
        raise ShapeError(f"{name}: input must be non-empty, but got shape {x.shape}.")
    nans, last = ops.isnan(rows), float(rows.shape[-1] - 1)  # nans sort last
    if name == "nanquantile":
        positions = clamp(at_least_1d(quantiles) * (sum(ops.logical_not(nans), -1, keepdim=True) - 1).to(x.dtype), 0.0)
    else:
        positions = where(any(nans, -1, keepdim=True), last, at_least_1d(quantiles) * last)
    values = _interpolate_sorted(ops.sort(rows, dim=rows.ndim - 1)[0], positions, interpolation)
    leading_shape, count = values.shape[:-1], values.shape[-1]
    if keepdim and x.ndim:
        values = reshape_to(
            values, (*((1,) * x.ndim if dim is None else (*leading_shape[:k], 1, *leading_shape[k:])), count)
        )
    return movedim(values, -1, 0) if quantiles.ndim else reshape_to(values, values.shape[:-1])


def _interpolate_sorted(rows: Tensor, positions: Tensor, interpolation: str) -> Tensor:
    """Interpolate the sorted `rows` (…, n) at the fractional indices `positions` (…, Q)."""
    if interpolation in ("nearest", "lower", "higher"):
        positions = {"nearest": ops.round, "lower": ops.floor, "higher": ops.ceil}[interpolation](positions)
    lower, upper = (rounding(positions) for rounding in (ops.floor, ops.ceil))
    low, high = (ops.gather(rows, index.to(int64), dim=rows.ndim - 1) for index in (lower, upper))
    fraction = where(lower == upper, 0.0, 0.5) if interpolation == "midpoint" else positions - lower
    gap = high - low
    interpolated = where(low == -inf, high - (1.0 - fraction) * gap, low + fraction * gap)  # avoids -inf + inf
    result: Tensor = where(lower == upper, low, interpolated)
    return result


@overload
def nanmedian(input: Tensor, dim: None = None) -> Tensor: ...
@overload
def nanmedian(input: Tensor, dim: int, keepdim: bool = False) -> SortResult: ...
@register(method=True)
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the `median` of the elements that are not nan, or nan if there are none."""
    x = check_tensor(input, "nanmedian")
    if dim is None and keepdim:
        raise ArgumentError("nanmedian: keepdim requires a dim.")
    rows, k = (flatten_all(x), 0) if dim is None else (at_least_1d(x), check_single_dim(dim, x, "nanmedian"))
    check_nonempty_dim(rows, k, "nanmedian")
    last_valid = sum(rows == rows, k, keepdim=True) - 1  # nan != nan, and nan sorts last
    position = where(last_valid < 0, 0, last_valid // 2)
    result = [ops.gather(y, position, dim=k) for y in ops.sort(rows, dim=k)]
    if not (keepdim and x.ndim):
        result = [reshape_to(y, (*rows.shape[:k], *rows.shape[k + 1 :])) for y in result]
    return split_tied_gradient(rows, result[0]) if dim is None else SortResult(*result)


@register(method=True)
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Estimate the covariance matrix of variables in rows and observations in columns: ``X Xᵀ / (n - correction)``.

    X is the centred input, and a negative divisor is replaced by 0. For a single variable, return its variance, 0-d.
    `fweights` (n,) are integer repetition counts and `aweights` (n,) floating-point importance weights; with them n is
    the sum of the weights, and `aweights` scale the correction by their weighted mean. Raises ArgumentError for
    weights that are negative or all 0.
    """
    x = check_tensor(input, "cov")
    x = x if x.dtype.is_floating_point else x.to(get_default_dtype())
    if x.ndim > 2:
        raise ShapeError(
            f"cov: expected input to have two or fewer dimensions (variables, observations), but got shape {x.shape}."
        )
    rows = x if x.ndim == 2 else reshape_to(x, (1, numel(x.shape)))
    weight_operands = {"fweights": fweights, "aweights": aweights}
    weights = [_check_weights(name, w, rows) for name, w in weight_operands.items() if w is not None]
    if not weights:
        centred = rows - mean(rows, 1, keepdim=True)
        covariance = matmul(centred, centred.mT) / max(rows.shape[1] - correction, 0)
        return covariance if rows.shape[0] != 1 else reshape_to(covariance, ())
    weight = weights[0] * weights[-1] if len(weights) == 2 else weights[0]
    total = sum(weight)
    if not bool(total > 0):
        raise ArgumentError("cov: weights sum to zero, so they cannot be normalised.")
    centred = rows - sum(rows * weight, 1, keepdim=True) / total
    effective_correction = correction if aweights is None else correction * sum(weight * weights[-1]) / total
    covariance = matmul(centred * weight, centred.mT) / ops.clamp(total - effective_correction, min=0.0, max=None)
    return covariance if rows.shape[0] != 1 else reshape_to(covariance, ())


def _check_weights(name: str, weights: Tensor, rows: Tensor) -> Tensor:
    """Check `fweights` or `aweights` of `cov`; return a weight per column of `rows`, in the dtype of `rows`."""
    w = check_tensor(weights, "cov", name)
    if w.dtype.is_floating_point is (name == "fweights") or not w.dtype.kind:
        raise DTypeError(
            f"cov: fweights must have integral dtype and aweights floating-point dtype, but {name} has {w.dtype.name}."
        )
    if w.ndim > 1 or w.numel() != rows.shape[1]:
        raise ShapeError(
            f"cov: expected {name} to have the same numel as there are input observations, {rows.shape[1]}, but got "
            f"shape {w.shape}."
        )
    if bool((w < 0).any()):
        raise ArgumentError(f"cov: {name} cannot be negative.")
    return flatten_all(w).to(rows.dtype)


@register(method=True)
def corrcoef(input: Tensor) -> Tensor:
    """Return the Pearson correlation coefficients of variables in rows: `cov` normalised and clipped to [-1, 1]."""
    covariance = cov(input)
    if not covariance.ndim:
        return covariance / covariance
    deviation = covariance.diagonal() ** 0.5
    return (covariance / deviation[:, None] / deviation).clamp(-1.0, 1.0)
