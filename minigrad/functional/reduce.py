"""Reductions and cumulative operations, with PyTorch's signatures.

`dim` is an int, a tuple of ints, or None for all dimensions; negative ints count from the end. Reduced dimensions are
removed from the result, or have size 1 if `keepdim`. A `dim` out of range or given twice raises ShapeError.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, cast, overload

from minigrad import ops
from minigrad.core.dtypes import DType, as_dtype
from minigrad.core.errors import ArgumentError
from minigrad.core.op import OPS
from minigrad.core.registry import register
from minigrad.core.symbolic import apply
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import (
    Dims,
    at_least_1d,
    cast_tensor,
    check_dims,
    check_floating,
    check_nonempty_dim,
    check_number,
    check_single_dim,
    check_tensor,
    flatten_all,
    reshape_to,
)
from minigrad.functional.elementwise import where
from minigrad.functional.return_types import AminmaxResult, ValuesIndices


@register(method=True)
def sum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Return the sum over `dim`, in `dtype`, which defaults to the input's, or to int64 for ints and bools.

    >>> import minigrad as mg
    >>> mg.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(dim=-1).tolist()
    [3.0, 7.0]
    """
    return _cast_result(dtype, _reduce("sum", cast_tensor(input, dtype, "sum"), dim, keepdim))


@register(method=True)
def mean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Return the mean over `dim`, nan if it is empty. Raises DTypeError for ints and bools without a float `dtype`."""
    return _reduce("mean", check_floating(cast_tensor(input, dtype, "mean"), "mean"), dim, keepdim)


@register(method=True)
def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Return the variance over `dim`: the sum of squared deviations divided by N - `correction`, by default 1.

    `unbiased` True or False means a `correction` of 1 or 0. Raises ArgumentError if both are given and DTypeError for
    ints and bools.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 3.0])
    >>> x.var().item(), x.var(unbiased=False).item()
    (2.0, 1.0)
    """
    return _dispersion("var", input, dim, unbiased, keepdim, correction)


@register(method=True)
def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Return the standard deviation over `dim`, without overflow or underflow of the squares; see `var`.

    Where all elements are equal it is not differentiable: the gradient is 0, as in PyTorch, and second derivatives nan.
    """
    return _dispersion("std", input, dim, unbiased, keepdim, correction)


@register
def var_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return `var` and `mean` over `dim`."""
    variance = _dispersion("var", input, dim, unbiased, keepdim, correction)
    return variance, mean(input, None if isinstance(dim, bool) else dim, keepdim)


@register
def std_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return `std` and `mean` over `dim`."""
    deviation = _dispersion("std", input, dim, unbiased, keepdim, correction)
    return deviation, mean(input, None if isinstance(dim, bool) else dim, keepdim)


@register(method=True)
def logsumexp(input: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """Return ``log(sum(exp(input)))`` over `dim`, without overflow; ints are converted to the default float dtype."""
    return _reduce("logsumexp", check_tensor(input, "logsumexp"), dim, keepdim)


@register(method=True)
def norm(
    input: Tensor, p: float | str = "fro", dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Return the vector norm over `dim`: ``sum(abs(input) ** p) ** (1 / p)``, max for inf, min for -inf.

    "fro" means p = 2, and p = 0 counts nonzero elements. Powers are scaled to avoid overflow and underflow. A norm is
    not differentiable at 0: the gradient is 0, as in PyTorch, and second derivatives are nan, also of ``norm(x) ** 2``;
    write ``(x * x).sum()`` instead. Raises DTypeError for ints and bools, and ArgumentError for other strings.

    >>> import minigrad as mg
    >>> round(mg.norm(mg.tensor([3e30, 4e30])).item() / 1e30, 4)
    5.0
    """
    x = check_floating(cast_tensor(input, dtype, "norm"), "norm")
    if isinstance(p, str) and p != "fro":
        raise ArgumentError(
            f'norm: order p={p!r} is not supported; expected a scalar, inf or "fro".\n  linalg.matrix_norm has "nuc".'
        )
    power = 2.0 if isinstance(p, str) else apply(float, p)
    if power == inf:
        return amax(ops.abs(x), dim if dim is not None else (), keepdim)
    if power == -inf:
        return amin(ops.abs(x), dim if dim is not None else (), keepdim)
    if power == 1:
        return sum(ops.abs(x), dim, keepdim)
    return _reduce("norm", x, dim, keepdim, p=power)


@register(method=True)
def amax(input: Tensor, dim: int | Sequence[int] = (), keepdim: bool = False) -> Tensor:
    """Return the maximum over `dim`, () meaning all. Propagates nan; the gradient is distributed evenly between ties.

    Raises ShapeError for an empty dimension.
    """
    return _reduce_extreme("amax", input, dim, keepdim)


@register(method=True)
def amin(input: Tensor, dim: int | Sequence[int] = (), keepdim: bool = False) -> Tensor:
    """Return the minimum over `dim`, () meaning all. Propagates nan; the gradient is distributed evenly between ties.

    Raises ShapeError for an empty dimension.
    """
    return _reduce_extreme("amin", input, dim, keepdim)


@overload
def max(input: Tensor, dim: Tensor | None = None, keepdim: bool = False) -> Tensor: ...


@overload
def max(input: Tensor, dim: int, keepdim: bool = False) -> ValuesIndices: ...


@register(method=True)
def max(input: Tensor, dim: int | Tensor | None = None, keepdim: bool = False) -> Any:
    """Return the maximum of all elements, like `amax`, or a `ValuesIndices` of values and indices along one `dim`.

    Along `dim`, the first of equal maxima determines the index and receives the gradient. If `dim` is a tensor,
    return the elementwise maximum. Unlike in PyTorch, a nan maximum of all elements makes the whole gradient nan, as
    with `amax`. Raises ShapeError for an empty dimension.

    >>> import minigrad as mg
    >>> values, indices = mg.tensor([[1.0, 5.0], [7.0, 2.0]]).max(dim=1)
    >>> values.tolist(), indices.tolist()
    ([5.0, 7.0], [1, 0])
    """
    return _max_or_min("max", "amax", "maximum", input, dim, keepdim)


@overload
def min(input: Tensor, dim: Tensor | None = None, keepdim: bool = False) -> Tensor: ...


@overload
def min(input: Tensor, dim: int, keepdim: bool = False) -> ValuesIndices: ...


@register(method=True)
def min(input: Tensor, dim: int | Tensor | None = None, keepdim: bool = False) -> Any:
    """Return the minimum of all elements, like `amin`, or a `ValuesIndices` along one `dim`; see `max`."""
    return _max_or_min("min", "amin", "minimum", input, dim, keepdim)


@register(method=True)
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the index of the first maximum along `dim`, by default of the flattened tensor. Nan counts as maximum.

    Raises ShapeError for an empty dimension.
    """
    return _arg_extreme("argmax", input, dim, keepdim)


@register(method=True)
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the index of the first minimum along `dim`, by default of the flattened tensor. Nan counts as minimum.

    Raises ShapeError for an empty dimension.
    """
    return _arg_extreme("argmin", input, dim, keepdim)


@register(method=True)
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Return the product over `dim`, or of all elements; dtypes are as in `sum`. Gradients at zeros are correct."""
    x = cast_tensor(input, dtype, "prod")
    if dim is None:
        result = ops.prod(flatten_all(x), dim=0, keepdim=False)
        return _cast_result(dtype, reshape_to(result, (1,) * x.ndim) if keepdim else result)
    k = check_single_dim(dim, x, "prod")
    return _cast_result(dtype, ops.prod(at_least_1d(x), dim=k, keepdim=keepdim and x.ndim > 0))


@register(method=True, in_place=True)
def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """Return the cumulative sum along `dim`; dtypes are as in `sum`."""
    return _cast_result(dtype, _cumulative("cumsum", cast_tensor(input, dtype, "cumsum"), dim))


@register(method=True, in_place=True)
def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """Return the cumulative product along `dim`; dtypes are as in `sum`."""
    return _cast_result(dtype, _cumulative("cumprod", cast_tensor(input, dtype, "cumprod"), dim))


@register(method=True)
def any(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Test whether any element over `dim` is nonzero or nan. Returns bool (uint8 for uint8); () reduces nothing."""
    return _reduce_bool("any", input, dim, keepdim)


@register(method=True)
def all(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Test whether all elements over `dim` are nonzero or nan. Returns bool (uint8 for uint8); () reduces nothing."""
    return _reduce_bool("all", input, dim, keepdim)


@register(method=True)
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> AminmaxResult:
    """Return `amin` and `amax` along `dim`, or of all elements."""
    dims = () if dim is None else dim
    return AminmaxResult(amin(input, dims, keepdim), amax(input, dims, keepdim))


@register(method=True)
def nansum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Return the sum over `dim`, treating nan as 0."""
    x = check_tensor(input, "nansum")
    return sum(where(ops.isnan(x), 0.0, x) if x.dtype.is_floating_point else x, dim, keepdim, dtype=dtype)


@register(method=True)
def nanmean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Return the mean over `dim` of elements that are not nan, or nan if there are none. `dtype` is floating point."""
    x = check_floating(cast_tensor(check_floating(input, "nanmean"), dtype, "nanmean"), "nanmean")
    return nansum(x, dim, keepdim) / sum(ops.logical_not(ops.isnan(x)), dim, keepdim).to(x.dtype)


# --- helpers ---


def _dispersion(
    name: str, input: Tensor, dim: Any, unbiased: bool | None, keepdim: bool, correction: float | None
) -> Tensor:
    if isinstance(dim, bool) and unbiased is None:
        dim, unbiased = None, dim  # as in PyTorch, a first bool argument is `unbiased`
    if unbiased is not None and correction is not None:
        raise ArgumentError(f"{name}: got both unbiased={unbiased} and correction={correction}; give only one.")
    if correction is not None:
        check_number(correction, name, "correction")
    degrees_lost = correction if correction is not None else int(unbiased is not False)
    return _reduce(name, check_floating(input, name), dim, keepdim, correction=degrees_lost)


def _cast_result(dtype: DType | None, result: Any) -> Tensor:
    """Convert `result` to `dtype` if one was requested, because kernels accumulate ints and bools in int64."""
    return cast(Tensor, result if dtype is None else result.to(as_dtype(dtype)))


def _reduce(name: str, x: Tensor, dim: Dims, keepdim: bool, **attrs: Any) -> Tensor:
    dims = check_dims(None if dim == () or dim == [] else dim, x, name)  # () means all dimensions, as in PyTorch
    return cast(Tensor, OPS[name](x, dim=dims, keepdim=bool(keepdim), **attrs))


def _reduce_bool(name: str, x: Any, dim: Dims, keepdim: bool) -> Tensor:
    dims = check_dims(dim, check_tensor(x, name), name)
    return cast(Tensor, OPS[name](x, dim=dims, keepdim=bool(keepdim)))


def _reduce_extreme(name: str, x: Any, dim: Dims, keepdim: bool) -> Tensor:
    for k in check_dims(None if dim == () or dim == [] else dim, check_tensor(x, name), name):
        check_nonempty_dim(x, k, name)
    return _reduce(name, x, dim, keepdim)


def _max_or_min(name: str, reduction: str, pairwise: str, x: Any, dim: Any, keepdim: bool) -> Any:
    if dim is None:
        if keepdim:
            raise ArgumentError(f"{name}: keepdim requires a dim.\n  Write {reduction}(x, keepdim=True).")
        return _reduce_extreme(reduction, x, None, False)
    if isinstance(dim, Tensor):
        return OPS[pairwise](x, dim)
    k = check_single_dim(dim, check_tensor(x, name), name)
    check_nonempty_dim(x, k, name)
    return ValuesIndices(*OPS[name](at_least_1d(x), dim=k, keepdim=bool(keepdim) and x.ndim > 0))


def _arg_extreme(name: str, x: Any, dim: int | None, keepdim: bool) -> Tensor:
    if dim is None:
        elements = flatten_all(check_tensor(x, name).detach())
        check_nonempty_dim(elements, 0, name)
        return reshape_to(OPS[name](elements, dim=0, keepdim=False), (1,) * x.ndim if keepdim else ())
    k = check_single_dim(dim, check_tensor(x, name), name)
    check_nonempty_dim(x, k, name)
    return cast(Tensor, OPS[name](at_least_1d(x), dim=k, keepdim=bool(keepdim) and x.ndim > 0))


def _cumulative(name: str, x: Tensor, dim: int) -> Tensor:
    k = check_single_dim(dim, x, name)
    return reshape_to(OPS[name](at_least_1d(x), dim=k, reverse=False), x.shape)
