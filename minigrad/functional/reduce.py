"""Reductions and running totals, with PyTorch's signatures: one number of many, over all dimensions or some.

`dim` counts from either end: None is all of them, an int one, a tuple several. The reduced dimensions are gone from the
result; with `keepdim` they have size 1. ShapeError for a dimension that is not there, or there twice.
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
    check_number,
    check_some,
    flat,
    floats_of,
    line,
    one_dim_of,
    shaped,
    some_dims_of,
    tensor_as,
    tensor_of,
)
from minigrad.functional.elementwise import where
from minigrad.functional.return_types import Ends, Extremes


@register(method=True)
def sum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The sum over `dim`, added up as `dtype`: without one floats keep theirs, ints and bools become int64.

    >>> import minigrad as mg
    >>> mg.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(dim=-1).tolist()
    [3.0, 7.0]
    """
    return _as(dtype, _reduced("sum", tensor_as(input, dtype, "sum"), dim, keepdim))


@register(method=True)
def mean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The mean over `dim`; nan where there is nothing. Raises DTypeError for ints and bools without a float `dtype`."""
    return _reduced("mean", floats_of(tensor_as(input, dtype, "mean"), "mean"), dim, keepdim)


@register(method=True)
def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """The variance over `dim`: squared distances from the mean, over their number less `correction`, by default 1.

    `unbiased` True or False is a `correction` of 1 or 0. Raises ArgumentError for both, DTypeError for ints and bools.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 3.0])
    >>> x.var().item(), x.var(unbiased=False).item()
    (2.0, 1.0)
    """
    return _spread("var", input, dim, unbiased, keepdim, correction)


@register(method=True)
def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """The standard deviation over `dim`, the root of `var`, also where the squares overflow or underflow.

    Its gradient is 0 where all numbers are equal, as in PyTorch, though it has none there: a second derivative is nan.
    """
    return _spread("std", input, dim, unbiased, keepdim, correction)


@register
def var_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """`var` and `mean` over `dim`."""
    found = _spread("var", input, dim, unbiased, keepdim, correction)
    return found, mean(input, None if isinstance(dim, bool) else dim, keepdim)


@register
def std_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """`std` and `mean` over `dim`."""
    found = _spread("std", input, dim, unbiased, keepdim, correction)
    return found, mean(input, None if isinstance(dim, bool) else dim, keepdim)


@register(method=True)
def logsumexp(input: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """``log(sum(exp(input)))`` over `dim`, without overflow; ints become the default float."""
    return _reduced("logsumexp", tensor_of(input, "logsumexp"), dim, keepdim)


@register(method=True)
def norm(
    input: Tensor, p: float | str = "fro", dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The vector norm over `dim`: ``sum(abs(input) ** p) ** (1 / p)``; "fro" is p = 2, inf and -inf the extremes.

    p = 0 counts what is not 0. Powers that overflow or underflow do no harm. The gradient at 0 is 0, as in PyTorch,
    though a norm has none there: a second derivative, that of ``norm(x) ** 2`` too, is nan. Write ``(x * x).sum()``.
    Raises DTypeError for ints and bools, and ArgumentError for another string than "fro".

    >>> import minigrad as mg
    >>> round(mg.norm(mg.tensor([3e30, 4e30])).item() / 1e30, 4)
    5.0
    """
    x = floats_of(tensor_as(input, dtype, "norm"), "norm")
    if isinstance(p, str) and p != "fro":
        raise ArgumentError(
            f'norm: p={p!r} is not a vector norm; give a number, inf, or "fro" for 2.\n  linalg.matrix_norm has "nuc".'
        )
    power = 2.0 if isinstance(p, str) else apply(float, p)
    if power == inf:
        return amax(ops.abs(x), dim if dim is not None else (), keepdim)
    if power == -inf:
        return amin(ops.abs(x), dim if dim is not None else (), keepdim)
    if power == 1:
        return sum(ops.abs(x), dim, keepdim)
    return _reduced("norm", x, dim, keepdim, p=power)


@register(method=True)
def amax(input: Tensor, dim: int | Sequence[int] = (), keepdim: bool = False) -> Tensor:
    """The largest number over `dim`, () for all; nan where there is one. Ties share the gradient evenly.

    Raises ShapeError where there is nothing to choose from.
    """
    return _chosen("amax", input, dim, keepdim)


@register(method=True)
def amin(input: Tensor, dim: int | Sequence[int] = (), keepdim: bool = False) -> Tensor:
    """The smallest number over `dim`, () for all; nan where there is one. Ties share the gradient evenly.

    Raises ShapeError where there is nothing to choose from.
    """
    return _chosen("amin", input, dim, keepdim)


@overload
def max(input: Tensor, dim: Tensor | None = None, keepdim: bool = False) -> Tensor: ...


@overload
def max(input: Tensor, dim: int, keepdim: bool = False) -> Extremes: ...


@register(method=True)
def max(input: Tensor, dim: int | Tensor | None = None, keepdim: bool = False) -> Any:
    """The largest number of all, as `amax`; over one `dim`, an `Extremes`, whose index gets the gradient: the first.

    With a tensor in place of `dim`, the larger of each pair. Unlike in PyTorch the gradient of ``max(input)`` is nan
    everywhere where the largest is nan, as that of `amax`. Raises ShapeError where there is nothing to choose from.

    >>> import minigrad as mg
    >>> values, indices = mg.tensor([[1.0, 5.0], [7.0, 2.0]]).max(dim=1)
    >>> values.tolist(), indices.tolist()
    ([5.0, 7.0], [1, 0])
    """
    return _extremes("max", "amax", "maximum", input, dim, keepdim)


@overload
def min(input: Tensor, dim: Tensor | None = None, keepdim: bool = False) -> Tensor: ...


@overload
def min(input: Tensor, dim: int, keepdim: bool = False) -> Extremes: ...


@register(method=True)
def min(input: Tensor, dim: int | Tensor | None = None, keepdim: bool = False) -> Any:
    """The smallest number of all, as `amin`; over one `dim`, an `Extremes` with its first index. See `max`."""
    return _extremes("min", "amin", "minimum", input, dim, keepdim)


@register(method=True)
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the largest number first stands along `dim`; without one, in the flattened tensor. Nan counts as largest.

    Raises ShapeError where there is nothing to choose from.
    """
    return _placed("argmax", input, dim, keepdim)


@register(method=True)
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the smallest number first stands along `dim`; without one, in the flattened tensor. Nan counts as smallest.

    Raises ShapeError where there is nothing to choose from.
    """
    return _placed("argmin", input, dim, keepdim)


@register(method=True)
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The product over one `dim`, or of all numbers, in types as `sum`. Its gradient is right at zeros too."""
    x = tensor_as(input, dtype, "prod")
    if dim is None:
        found = ops.prod(flat(x), dim=0, keepdim=False)
        return _as(dtype, shaped(found, (1,) * x.ndim) if keepdim else found)
    k = one_dim_of(dim, x, "prod")
    return _as(dtype, ops.prod(line(x), dim=k, keepdim=keepdim and x.ndim > 0))


@register(method=True, in_place=True)
def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """The running sums along `dim`, of the shape of `input`, in types as `sum`."""
    return _as(dtype, _running("cumsum", tensor_as(input, dtype, "cumsum"), dim))


@register(method=True, in_place=True)
def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """The running products along `dim`, of the shape of `input`, in types as `sum`."""
    return _as(dtype, _running("cumprod", tensor_as(input, dtype, "cumprod"), dim))


@register(method=True)
def any(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether any number over `dim`, () for none, is not 0: bools, or uint8 of uint8. Nan is not 0."""
    return _truth("any", input, dim, keepdim)


@register(method=True)
def all(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether no number over `dim`, () for none, is 0: bools, or uint8 of uint8. Nan is not 0."""
    return _truth("all", input, dim, keepdim)


@register(method=True)
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Ends:
    """`amin` and `amax` along `dim`, or of all numbers."""
    along = () if dim is None else dim
    return Ends(amin(input, along, keepdim), amax(input, along, keepdim))


@register(method=True)
def nansum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """`sum`, in which nan counts as 0."""
    x = tensor_of(input, "nansum")
    return sum(where(ops.isnan(x), 0.0, x) if x.dtype.is_floating_point else x, dim, keepdim, dtype=dtype)


@register(method=True)
def nanmean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The mean of what is not nan, in a floating-point `dtype`; nan where nothing is."""
    x = floats_of(tensor_as(floats_of(input, "nanmean"), dtype, "nanmean"), "nanmean")
    return nansum(x, dim, keepdim) / sum(ops.logical_not(ops.isnan(x)), dim, keepdim).to(x.dtype)


# --- what they share ---


def _spread(
    name: str, input: Tensor, dim: Any, unbiased: bool | None, keepdim: bool, correction: float | None
) -> Tensor:
    if isinstance(dim, bool) and unbiased is None:
        dim, unbiased = None, dim  # the first may be either in PyTorch
    if unbiased is not None and correction is not None:
        raise ArgumentError(f"{name}: unbiased={unbiased} and correction={correction} are the same choice; give one.")
    if correction is not None:
        check_number(correction, name, "correction")
    less = correction if correction is not None else int(unbiased is not False)
    return _reduced(name, floats_of(input, name), dim, keepdim, correction=less)


def _as(dtype: DType | None, found: Any) -> Tensor:
    """`found` as `dtype`, where one was asked for: kernels add up integers and bools as int64."""
    return cast(Tensor, found if dtype is None else found.to(as_dtype(dtype)))


def _reduced(name: str, x: Tensor, dim: Dims, keepdim: bool, **attrs: Any) -> Tensor:
    dims = some_dims_of(None if dim == () or dim == [] else dim, x, name)  # no dimensions are all, as in PyTorch
    return cast(Tensor, OPS[name](x, dim=dims, keepdim=bool(keepdim), **attrs))


def _truth(name: str, x: Any, dim: Dims, keepdim: bool) -> Tensor:
    dims = some_dims_of(dim, tensor_of(x, name), name)
    return cast(Tensor, OPS[name](x, dim=dims, keepdim=bool(keepdim)))


def _chosen(name: str, x: Any, dim: Dims, keepdim: bool) -> Tensor:
    for k in some_dims_of(None if dim == () or dim == [] else dim, tensor_of(x, name), name):
        check_some(x, k, name)
    return _reduced(name, x, dim, keepdim)


def _extremes(name: str, whole: str, pairwise: str, x: Any, dim: Any, keepdim: bool) -> Any:
    if dim is None:
        if keepdim:
            raise ArgumentError(f"{name}: keepdim goes with a dim; {whole}(x, keepdim=True) keeps all of them.")
        return _chosen(whole, x, None, False)
    if isinstance(dim, Tensor):
        return OPS[pairwise](x, dim)
    k = one_dim_of(dim, tensor_of(x, name), name)
    check_some(x, k, name)
    return Extremes(*OPS[name](line(x), dim=k, keepdim=bool(keepdim) and x.ndim > 0))


def _placed(name: str, x: Any, dim: int | None, keepdim: bool) -> Tensor:
    if dim is None:
        numbers = flat(tensor_of(x, name).detach())
        check_some(numbers, 0, name)
        return shaped(OPS[name](numbers, dim=0, keepdim=False), (1,) * x.ndim if keepdim else ())
    k = one_dim_of(dim, tensor_of(x, name), name)
    check_some(x, k, name)
    return cast(Tensor, OPS[name](line(x), dim=k, keepdim=bool(keepdim) and x.ndim > 0))


def _running(name: str, x: Tensor, dim: int) -> Tensor:
    k = one_dim_of(dim, x, name)
    return shaped(OPS[name](line(x), dim=k, reverse=False), x.shape)
