"""What layers of several families share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad import functional as F
from minigrad.autograd import Function
from minigrad.core.grad_mode import is_grad_enabled
from minigrad.core.tensor import Tensor
from minigrad.nn import init

__all__ = ["draw_bias", "parts"]


def draw_bias(bias: Tensor | None, weight: Tensor) -> None:
    """Draw `bias`, if there is one, from U(-k, k) with k = 1 / sqrt(fan_in) of `weight`, as the weight itself is."""
    if bias is not None:
        fan_in, _ = init._calculate_fan_in_and_fan_out(weight)
        bound = fan_in**-0.5 if fan_in else 0.0
        init.uniform_(bias, -bound, bound)


class _Split(Function):
    """A tensor cut along a dimension into parts, whose gradients are put together at once."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, into: int | Sequence[int], dim: int) -> tuple[Tensor, ...]:
        ctx.dim = dim
        return _cut(x, into, dim)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        return F.cat(gradients, ctx.dim), None, None


def _cut(x: Tensor, into: int | Sequence[int], dim: int) -> tuple[Tensor, ...]:
    found: tuple[Tensor, ...] = x.chunk(into, dim) if isinstance(into, int) else x.split(into, dim)
    return found


def parts(x: Tensor, into: int | Sequence[int], dim: int = -1) -> tuple[Tensor, ...]:
    """`x` cut along `dim` into that many equal parts, or parts of such sizes, none of which is written to.

    Views, as those of ``chunk``, would each bring back a gradient of the whole, zeros but for its part: for many parts
    work that grows with the square of their number.
    """
    found: tuple[Tensor, ...]
    found = _Split.apply(x, into, dim) if is_grad_enabled() and x.requires_grad else _cut(x, into, dim)
    return found
