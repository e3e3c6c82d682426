"""Helpers shared by several families of layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad import functional as F
from minigrad.autograd import Function
from minigrad.core.grad_mode import is_grad_enabled
from minigrad.core.tensor import Tensor
from minigrad.nn import init

__all__ = ["draw_bias", "split_with_concat_grad"]


def draw_bias(bias: Tensor | None, weight: Tensor) -> None:
    """Sample `bias`, unless it is None, from U(-k, k), where k = 1 / sqrt(fan_in) for the fan_in of `weight`."""
    if bias is not None:
        fan_in, _ = init._calculate_fan_in_and_fan_out(weight)
        bound = fan_in**-0.5 if fan_in else 0.0
        init.uniform_(bias, -bound, bound)


class _Split(Function):
    """Splits a tensor along a dimension. The backward pass concatenates the gradients of the chunks."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, chunks: int | Sequence[int], dim: int) -> tuple[Tensor, ...]:
        ctx.dim = dim
        return _split(x, chunks, dim)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        return F.cat(gradients, ctx.dim), None, None


def _split(x: Tensor, chunks: int | Sequence[int], dim: int) -> tuple[Tensor, ...]:
    pieces: tuple[Tensor, ...] = x.chunk(chunks, dim) if isinstance(chunks, int) else x.split(chunks, dim)
    return pieces


def split_with_concat_grad(x: Tensor, chunks: int | Sequence[int], dim: int = -1) -> tuple[Tensor, ...]:
    """Split `x` along `dim` into `chunks` equal chunks, or chunks of the sizes `chunks`. Do not write to the chunks.

    The backward pass concatenates their gradients. The backward pass of ``Tensor.chunk`` would pad the gradient of each
    chunk with zeros to the size of `x`, at a cost quadratic in the number of chunks.
    """
    pieces: tuple[Tensor, ...]
    pieces = _Split.apply(x, chunks, dim) if is_grad_enabled() and x.requires_grad else _split(x, chunks, dim)
    return pieces
