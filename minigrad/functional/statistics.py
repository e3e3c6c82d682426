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
    check_option,
    check_some,
    flat,
    floats_of,
    line,
    one_dim_of,
    shaped,
    tensor_of,
    tied,
)
from minigrad.functional.elementwise import clamp, where
from minigrad.functional.linalg import matmul
from minigrad.functional.reduce import any, mean, sum
from minigrad.functional.return_types import Sorted
from minigrad.functional.views import movedim


@register(method=True)
def quantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """Return the `q`-th quantiles of all elements or along `dim`; nan propagates.

    The quantile of n sorted elements is at index q (n - 1). Between two elements, `interpolation` selects "linear"
    interpolation, the "lower", "higher" or "nearest" element, or the "midpoint". `q`, in [0, 1], is a scalar, or a
    tensor (Q,) that adds a leading dimension. Gradients flow to the selected elements and, for "linear", to `q`: the
    slope between them, or 0 at an element. Raises DTypeError for non-floating-point input, ShapeError for an empty
    dimension, and ArgumentError for a `q` out of range.

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


def _quantile(name: str, input: Any, q: Any, dim: int | None, keepdim: bool, way: str) -> Tensor:
    x = floats_of(input, name)
    check_option(way, ("linear", "lower", "higher", "midpoint", "nearest"), name, "interpolation")
    shares = x.new_tensor(q) if not isinstance(q, Tensor) else q if way == "linear" else q.detach()
    if shares.dtype is not x.dtype or shares.ndim > 1:
        raise DTypeError(
            f"{name}: q must be a scalar or a 1-d tensor of the input's dtype {x.dtype.name}, but got "
            f"{shares.dtype.name} of shape {shares.shape}."
        )
    if not bool(((shares >= 0) & (shares <= 1)).all()):
        raise ArgumentError(f"{name}: q must be in the range [0, 1], but got {q!r:.80}.")
    k = 0 if dim is None else one_dim_of(dim, x, name)
    rows = movedim(flat(x) if dim is None else line(x), k, -1)
    if not numel(x.shape):
        raise ShapeError(f"{name}: input must be non-empty, but got shape {x.shape}.")
    nans, last = ops.isnan(rows), float(rows.shape[-1] - 1)  # nans sort last
    if name == "nanquantile":
        place = clamp(line(shares) * (sum(ops.logical_not(nans), -1, keepdim=True) - 1).to(x.dtype), 0.0)
    else:
        place = where(any(nans, -1, keepdim=True), last, line(shares) * last)
    found = _between(ops.sort(rows, dim=rows.ndim - 1)[0], place, way)
    rest, count = found.shape[:-1], found.shape[-1]
    if keepdim and x.ndim:
        found = shaped(found, (*((1,) * x.ndim if dim is None else (*rest[:k], 1, *rest[k:])), count))
    return movedim(found, -1, 0) if shares.ndim else shaped(found, found.shape[:-1])


def _between(rows: Tensor, place: Tensor, way: str) -> Tensor:
    """Interpolate the sorted `rows` (…, n) at each fractional index `place` (…, Q)."""
    if way in ("nearest", "lower", "higher"):
        place = {"nearest": ops.round, "lower": ops.floor, "higher": ops.ceil}[way](place)
    below, above = (end(place) for end in (ops.floor, ops.ceil))
    low, high = (ops.gather(rows, at.to(int64), dim=rows.ndim - 1) for at in (below, above))
    share = where(below == above, 0.0, 0.5) if way == "midpoint" else place - below
    gap = high - low
    between = where(low == -inf, high - (1.0 - share) * gap, low + share * gap)  # start from the finite end
    found: Tensor = where(below == above, low, between)
    return found


@overload
def nanmedian(input: Tensor, dim: None = None) -> Tensor: ...
@overload
def nanmedian(input: Tensor, dim: int, keepdim: bool = False) -> Sorted: ...
@register(method=True)
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the `median` of the elements that are not nan, or nan if there are none."""
    x = tensor_of(input, "nanmedian")
    if dim is None and keepdim:
        raise ArgumentError("nanmedian: keepdim requires a dim.")
    lines, k = (flat(x), 0) if dim is None else (line(x), one_dim_of(dim, x, "nanmedian"))
    check_some(lines, k, "nanmedian")
    end = sum(lines == lines, k, keepdim=True) - 1  # nans differ from themselves, and sort last
    place = where(end < 0, 0, end // 2)
    found = [ops.gather(y, place, dim=k) for y in ops.sort(lines, dim=k)]
    if not (keepdim and x.ndim):
        found = [shaped(y, (*lines.shape[:k], *lines.shape[k + 1 :])) for y in found]
    return tied(lines, found[0]) if dim is None else Sorted(*found)


@register(method=True)
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Estimate the covariance matrix of variables in rows and observations in columns: ``X Xᵀ / (n - correction)``.

    X is the centred input, and a negative divisor is replaced by 0. A single variable gives its variance, 0-d.
    `fweights` (n,) are integer repetition counts and `aweights` (n,) floating-point importance weights; with them n is
    the sum of the weights, and `aweights` scale the correction by their weighted mean. Raises ArgumentError for
    weights that are negative or all 0.
    """
    x = tensor_of(input, "cov")
    x = x if x.dtype.is_floating_point else x.to(get_default_dtype())
    if x.ndim > 2:
        raise ShapeError(
            f"cov: expected input to have two or fewer dimensions (variables, observations), but got shape {x.shape}."
        )
    rows = x if x.ndim == 2 else shaped(x, (1, numel(x.shape)))
    given = {"fweights": fweights, "aweights": aweights}
    weights = [_weights(name, w, rows) for name, w in given.items() if w is not None]
    if not weights:
        centred = rows - mean(rows, 1, keepdim=True)
        found = matmul(centred, centred.mT) / max(rows.shape[1] - correction, 0)
        return found if rows.shape[0] != 1 else shaped(found, ())
    weight = weights[0] * weights[-1] if len(weights) == 2 else weights[0]
    total = sum(weight)
    if not bool(total > 0):
        raise ArgumentError("cov: weights sum to zero, so they cannot be normalised.")
    centred = rows - sum(rows * weight, 1, keepdim=True) / total
    less = correction if aweights is None else correction * sum(weight * weights[-1]) / total
    found = matmul(centred * weight, centred.mT) / ops.clamp(total - less, min=0.0, max=None)
    return found if rows.shape[0] != 1 else shaped(found, ())


def _weights(name: str, given: Tensor, rows: Tensor) -> Tensor:
    """Check `fweights` or `aweights` of `cov`; return one weight per column of `rows`, in their dtype."""
    w = tensor_of(given, "cov", name)
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
    return flat(w).to(rows.dtype)


@register(method=True)
def corrcoef(input: Tensor) -> Tensor:
    """Return the Pearson correlation coefficients of variables in rows: `cov` normalised and clipped to [-1, 1]."""
    found = cov(input)
    if not found.ndim:
        return found / found
    spread = found.diagonal() ** 0.5
    return (found / spread[:, None] / spread).clamp(-1.0, 1.0)
