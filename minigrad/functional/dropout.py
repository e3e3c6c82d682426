"""Dropout of elements and of channels, with PyTorch's signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from minigrad import ops, random
from minigrad.core.dtypes import float32
from minigrad.core.errors import ShapeError
from minigrad.core.registry import register
from minigrad.core.symbolic import apply
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_floating, check_probability, check_tensor
from minigrad.functional.elementwise import where


@register
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability `p` in training, and scale the others by 1 / (1 - p), preserving the mean.

    Outside training, and for p = 0, return `input` itself. The mask is drawn from the default generator of
    `minigrad.random`, whose seed makes it reproducible. Srivastava et al. 2014. Unlike in PyTorch, a dropped infinite
    value becomes 0, not nan. Raises ArgumentError for an invalid probability, DTypeError for ints and bools.
    """
    check_probability(p, "dropout", "p")
    if not training or p == 0:
        return check_tensor(input, "dropout")
    x = check_floating(input, "dropout")
    key, offset = random.default_generator.key_for(x.numel())
    attrs = {"p": apply(float, p), "key": key}
    if offset:  # for part of a batch, draw the same values as the kernel, from this offset
        stream = random.Generator(key)
        stream.draw(offset)
        samples = random.rand(x.shape, generator=stream, dtype=float32, device=x.device)
        result = ops.where(samples >= p, x / (1 - p), 0.0)
        return x.copy_(result) if inplace else cast(Tensor, result)
    if inplace:
        return x._write_inplace(ops.dropout, (x,), attrs)
    return cast(Tensor, ops.dropout(x, **attrs))


@register
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Apply `dropout` to entire channels of (N, C, L) or (C, L). Tompson et al. 2015."""
    return _channel_dropout("dropout1d", input, (2, 3), p, training, inplace)


@register
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Apply `dropout` to entire channels of (N, C, H, W). Tompson et al. 2015.

    A 3-d input is interpreted as (N, C, L), as in PyTorch; pass a single image as x[None].
    """
    return _channel_dropout("dropout2d", input, (3, 4), p, training, inplace)


_SELU_MIN = -1.7580993408473766  # minimum of SELU, -scale · α; Klambauer et al. 2017


@register
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Set dropped elements to the minimum of `selu` in training, preserving a mean of 0 and a variance of 1.

    Klambauer, Unterthiner, Mayr, Hochreiter 2017, "Self-normalizing neural networks". Raises the same errors
    as `dropout`.
    """
    return _alpha_dropout("alpha_dropout", input, check_tensor(input, "alpha_dropout").shape, p, training, inplace)


@register
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Apply `alpha_dropout` to entire channels of (N, C, …)."""
    x = check_tensor(input, "feature_alpha_dropout")
    shape = (*x.shape[:2], *(1,) * (x.ndim - 2))
    return _alpha_dropout("feature_alpha_dropout", x, shape, p, training, inplace)


# --- helpers ---


def _channel_dropout(
    name: str, input: Tensor, ndims: tuple[int, ...], p: float, training: bool, inplace: bool
) -> Tensor:
    check_probability(p, name, "p")
    if check_floating(input, name).ndim not in ndims:
        raise ShapeError(
            f"{name}: expected {ndims[0]}D or {ndims[1]}D input, but received a {input.ndim}D input of shape "
            f"{input.shape}."
        )
    if not training or p == 0:
        return input
    leading_dims = 1 if input.ndim == 2 else 2
    mask = dropout(input.new_ones((*input.shape[:leading_dims], *(1,) * (input.ndim - leading_dims))), p)
    return input.mul_(mask) if inplace else input * mask


def _alpha_dropout(name: str, x: Tensor, shape: Sequence[int], p: float, training: bool, inplace: bool) -> Tensor:
    check_probability(p, name, "p")
    if not training or p == 0:
        return x
    keep_mask = dropout(check_floating(x, name).new_ones(shape), p) != 0
    scale = 0.0 if p == 1 else ((1 - p) * (1 + p * _SELU_MIN**2)) ** -0.5
    result = where(keep_mask, x, _SELU_MIN) * scale - scale * _SELU_MIN * p
    return x.copy_(result) if inplace else result
