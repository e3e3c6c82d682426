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
from minigrad.functional.checks import check_share, floats_of, tensor_of
from minigrad.functional.elementwise import where


@register
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training each number becomes 0 with probability `p`, else ``input / (1 - p)``: the mean stays.

    Otherwise, and for p = 0, the result is `input` itself. Which numbers become 0 follows from `minigrad.random`'s
    default generator; its seed makes them repeat. Srivastava et al. 2014. Unlike in PyTorch an infinite number that is
    dropped becomes 0, not nan. Raises ArgumentError for a `p` that is no probability, DTypeError for ints and bools.
    """
    check_share(p, "dropout", "p")
    if not training or p == 0:
        return tensor_of(input, "dropout")
    x = floats_of(input, "dropout")
    key, place = random.default_generator.key_for(x.numel())
    attrs = {"p": apply(float, p), "key": key}
    if place:  # rows of a batch: what the kernel does, from that place of the stream on
        stream = random.Generator(key)
        stream.draw(place)
        drawn = random.rand(x.shape, generator=stream, dtype=float32, device=x.device)
        y = ops.where(drawn >= p, x / (1 - p), 0.0)
        return x.copy_(y) if inplace else cast(Tensor, y)
    if inplace:
        return x._write(ops.dropout, (x,), attrs)
    return cast(Tensor, ops.dropout(x, **attrs))


@register
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """As `dropout`, of whole channels of (N, C, L), or one (C, L). Tompson et al. 2015."""
    return _channels_dropped("dropout1d", input, (2, 3), p, training, inplace)


@register
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """As `dropout`, of whole channels of (N, C, H, W). Tompson et al. 2015.

    Three dimensions are (N, C, L), as in PyTorch, and not one image: give that as x[None].
    """
    return _channels_dropped("dropout2d", input, (3, 4), p, training, inplace)


_LEFT = -1.7580993408473766  # what SELU has far to the left: - its scale · α, Klambauer et al. 2017


@register
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout for `selu`: in training what is dropped has its lowest value, and mean and variance stay 0 and 1.

    Klambauer, Unterthiner, Mayr, Hochreiter 2017, "Self-normalizing neural networks". Raises as `dropout`.
    """
    return _alpha_dropped("alpha_dropout", input, tensor_of(input, "alpha_dropout").shape, p, training, inplace)


@register
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels of (N, C, …)."""
    x = tensor_of(input, "feature_alpha_dropout")
    shape = (*x.shape[:2], *(1,) * (x.ndim - 2))
    return _alpha_dropped("feature_alpha_dropout", x, shape, p, training, inplace)


# --- what they share ---


def _channels_dropped(
    name: str, input: Tensor, ndims: tuple[int, ...], p: float, training: bool, inplace: bool
) -> Tensor:
    check_share(p, name, "p")
    if floats_of(input, name).ndim not in ndims:
        raise ShapeError(
            f"{name}: it takes {ndims[0]} or {ndims[1]} dimensions, and the input has shape {input.shape}."
        )
    if not training or p == 0:
        return input
    first = 1 if input.ndim == 2 else 2
    factors = dropout(input.new_ones((*input.shape[:first], *(1,) * (input.ndim - first))), p)
    return input.mul_(factors) if inplace else input * factors


def _alpha_dropped(name: str, x: Tensor, shape: Sequence[int], p: float, training: bool, inplace: bool) -> Tensor:
    check_share(p, name, "p")
    if not training or p == 0:
        return x
    kept = dropout(floats_of(x, name).new_ones(shape), p) != 0
    scale = 0.0 if p == 1 else ((1 - p) * (1 + p * _LEFT**2)) ** -0.5
    found = where(kept, x, _LEFT) * scale - scale * _LEFT * p
    return x.copy_(found) if inplace else found
