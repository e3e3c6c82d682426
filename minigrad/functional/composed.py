"""What layers compute that are made of others' operations: pools by powers, unpooling, bags of rows, and the like."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from minigrad import ops
from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.core.registry import register
from minigrad.core.shapes import numel
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import Ints, check_option, check_share, flat, floats_of, ints_of, shaped, tensor_of
from minigrad.functional.creation import arange
from minigrad.functional.derived import searchsorted
from minigrad.functional.elementwise import where
from minigrad.functional.indexing import embedding
from minigrad.functional.normalization import dropout
from minigrad.functional.pool import avg_pool1d, avg_pool2d, max_pool1d, max_pool2d
from minigrad.functional.reduce import mean
from minigrad.functional.scattering import scatter, scatter_reduce
from minigrad.functional.shape import pad, repeat_interleave
from minigrad.functional.subscript import in_range, shorten


@register
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """``input / (k + alpha * mean) ** beta``, with the mean of the squares of `size` channels around, of (N, C, …).

    Channels that are not there count as 0. Krizhevsky, Sutskever, Hinton 2012, 3.3, where `alpha` is divided by `size`
    already. Raises ShapeError for fewer than three dimensions.

    >>> import minigrad as mg
    >>> mg.nn.functional.local_response_norm(mg.ones(1, 3, 1), size=3, alpha=3.0, beta=1.0).tolist()
    [[[0.3333333432674408], [0.25], [0.3333333432674408]]]
    """
    x = floats_of(input, "local_response_norm")
    if x.ndim < 3 or size < 1:
        raise ShapeError(f"local_response_norm: input is (N, C, …) and size 1 or more, not {x.shape} and {size}.")
    squares = shaped(x * x, (*x.shape[:2], numel(x.shape[2:])))
    near = mean(pad(squares, (0, 0, size // 2, (size - 1) // 2)).unfold(1, size, 1), -1)
    return x / (shaped(near, x.shape) * alpha + k) ** beta


@register
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels of (N, C, …) dealt out anew: the first of each of `groups` equal groups, then the second, ….

    Zhang, Zhou, Lin, Sun 2018, "ShuffleNet". Raises ShapeError where the groups are not equal.
    """
    x = tensor_of(input, "channel_shuffle")
    if x.ndim < 3 or groups < 1 or x.shape[1] % groups:
        raise ShapeError(f"channel_shuffle: groups={groups} does not divide the channels of (N, C, …), here {x.shape}.")
    dealt = shaped(x, (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])).transpose(1, 2)
    return dealt.reshape(x.shape)


# --- pools ---


@register
def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
) -> Tensor:
    """``sum(x ** norm_type) ** (1 / norm_type)`` of each window of (N, C, L); see `lp_pool2d`."""
    return _lp_pooled("lp_pool1d", 1, input, norm_type, (kernel_size, stride), ceil_mode)


@register
def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
) -> Tensor:
    """``sum(x ** norm_type) ** (1 / norm_type)`` of each window of (N, C, H, W).

    inf is the largest absolute number, -inf the smallest. The numbers keep their signs otherwise, as in PyTorch: 1 is a
    sum, and the root of a sum below 0 is nan. Where a sum is 0 its gradient is 0. Raises ArgumentError for 0.

    >>> import minigrad as mg
    >>> x = mg.tensor([[[1.0, -3.0, 2.0, 4.0]]])
    >>> mg.nn.functional.lp_pool1d(x, 1, 2).tolist(), mg.nn.functional.lp_pool1d(x, math.inf, 2).tolist()
    ([[[-2.0, 6.0]]], [[[3.0, 4.0]]])
    """
    return _lp_pooled("lp_pool2d", 2, input, norm_type, (kernel_size, stride), ceil_mode)


def _lp_pooled(name: str, dims: int, x: Any, power: float, sizes: tuple[Any, Any], ceil_mode: bool) -> Tensor:
    kernel = ints_of(sizes[0], dims, name, "kernel_size", 1)
    if power == 0:
        raise ArgumentError(f"{name}: norm_type=0: there is no root of order 1 / 0.")
    if abs(power) == math.inf:
        extreme = (max_pool1d, max_pool2d)[dims - 1]
        found: Tensor = extreme(ops.abs(x) if power > 0 else -ops.abs(x), kernel, sizes[1], ceil_mode=ceil_mode)
        return found if power > 0 else -found
    means = (avg_pool1d, avg_pool2d)[dims - 1](x**power, kernel, sizes[1], 0, ceil_mode)
    # The root has an infinite slope at 0: none goes on from there.
    return cast(Tensor, (ops.where(means == 0, 0.0, means) * numel(kernel)) ** (1.0 / power))


@register
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """`max_pool1d` backwards: each number at its place of `indices`, all else 0. See `max_unpool2d`."""
    return _unpooled("max_unpool1d", 1, input, indices, (kernel_size, stride, padding), output_size)


@register
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """`max_pool2d` backwards: (N, C, H, W), each number at its place of the pool's `indices`, and all else 0.

    `output_size`, or its last two sizes, tells which of the images that give (H, W) it was. Zeiler, Fergus 2014.
    Raises ShapeError where `indices` have another shape than `input`.

    >>> import minigrad as mg
    >>> F = mg.nn.functional
    >>> y, places = F.max_pool2d(mg.tensor([[[[1.0, 2.0], [4.0, 3.0]]]]), 2, return_indices=True)
    >>> F.max_unpool2d(y, places, 2).tolist()
    [[[[0.0, 0.0], [4.0, 0.0]]]]
    """
    return _unpooled("max_unpool2d", 2, input, indices, (kernel_size, stride, padding), output_size)


def _unpooled(name: str, dims: int, input: Any, indices: Any, how: tuple[Any, Any, Any], output_size: Any) -> Tensor:
    x, at = tensor_of(input, name), tensor_of(indices, name, "indices")
    if x.shape != at.shape or x.ndim <= dims:
        raise ShapeError(f"{name}: input {x.shape} and indices {at.shape} are of one shape, (N, C, …) or (C, …).")
    size = ints_of(how[0], dims, name, "kernel_size", 1)
    stride = size if how[1] is None else ints_of(how[1], dims, name, "stride", 1)
    padding = ints_of(how[2], dims, name, "padding")
    default = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(x.shape[-dims:], stride, padding, size, strict=True)]
    space = tuple(default if output_size is None else output_size[-dims:])
    rest = x.shape[:-dims]
    lines, places = (shaped(t, (*rest, numel(x.shape[-dims:]))) for t in (x.detach(), at))
    last = shaped(scatter(x.new_zeros((*rest, numel(space))), len(rest), places, lines), (*rest, *space))
    if not x.requires_grad:
        return last
    # Where windows overlap the last element is taken, and each gets the gradient, as in PyTorch: that of their sum.
    total = ops.put_at(x, at, shape=(*rest, *space), dims=dims)
    return cast(Tensor, where(total.detach() == last, total, total + (last - total.detach())))


# --- what is drawn ---

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


def _alpha_dropped(name: str, x: Tensor, shape: Sequence[int], p: float, training: bool, inplace: bool) -> Tensor:
    check_share(p, name, "p")
    if not training or p == 0:
        return x
    kept = dropout(floats_of(x, name).new_ones(shape), p) != 0
    scale = 0.0 if p == 1 else ((1 - p) * (1 + p * _LEFT**2)) ** -0.5
    found = where(kept, x, _LEFT) * scale - scale * _LEFT * p
    return x.copy_(found) if inplace else found


# --- bags of rows ---


@register
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The "mean", "sum" or "max" of the rows of `weight`, (n, m), in each of B bags: (B, m), 0 for an empty bag.

    `input` has a bag a row, (B, N), or all of them in a line, cut by `offsets` (B,), where each begins; with
    `include_last_offset` the last of these is the end. `per_sample_weights`, of the shape of `input`, go with "sum".
    Ints that are `padding_idx` are left out. Raises ShapeError where `offsets` and `input` do not go together, and
    ArgumentError for options that do not go together. `max_norm` and `scale_grad_by_freq` are those of `embedding`; the
    latter goes with "mean" and "sum".

    >>> import minigrad as mg
    >>> table = mg.tensor([[1.0], [2.0], [4.0]])
    >>> F = mg.nn.functional
    >>> F.embedding_bag(mg.tensor([0, 1, 2]), table, mg.tensor([0, 1]), mode="sum").tolist()
    [[1.0], [6.0]]
    """
    check_option(mode, ("mean", "sum", "max"), "embedding_bag", "mode")
    if sparse or (scale_grad_by_freq and mode == "max"):
        what = "sparse gradients are not here" if sparse else 'scale_grad_by_freq goes with "mean" and "sum"'
        raise ArgumentError(f"embedding_bag: {what}: leave {'sparse' if sparse else 'it'} out.")
    if per_sample_weights is not None and mode != "sum":
        raise ArgumentError(f'embedding_bag: per_sample_weights go with mode="sum", not {mode!r}.')
    count, bags = _bags(tensor_of(input, "embedding_bag"), offsets, include_last_offset)
    at, factors = flat(input), None if per_sample_weights is None else flat(per_sample_weights)
    size = floats_of(weight, "embedding_bag", "weight").shape[0]
    if max_norm is not None:
        shorten(weight, in_range("embedding_bag", at, size, 0), max_norm, norm_type)
    if padding_idx is not None:
        if not -size <= padding_idx < size:
            raise ShapeError(f"embedding_bag: padding_idx={padding_idx} is not one of the {size} rows of weight.")
        there = at != padding_idx % size
        at, bags, factors = at[there], bags[there], None if factors is None else factors[there]
    rows = embedding(at, weight, scale_grad_by_freq=scale_grad_by_freq)
    rows = rows if factors is None else rows * factors[:, None]
    places = bags[:, None].expand(*rows.shape)
    reduce = "amax" if mode == "max" else mode
    return scatter_reduce(rows.new_zeros((count, rows.shape[1])), 0, places, rows, reduce, include_self=False)


def _bags(input: Tensor, offsets: Tensor | None, include_last_offset: bool) -> tuple[int, Tensor]:
    """How many bags there are, and in which of them each int is."""
    if input.ndim not in (1, 2) or (input.ndim == 1) is (offsets is None):
        raise ShapeError(
            f"embedding_bag: input has shape {input.shape} and offsets {'are' if offsets is not None else 'are not'} "
            "given.\n  Bags of one size are rows (B, N) without offsets; others stand in one line, with them."
        )
    if offsets is None:
        rows, size = input.shape
        return rows, repeat_interleave(arange(rows, device=input.device), size)
    if bool((offsets > input.shape[0]).any()):
        raise ShapeError(
            f"embedding_bag: offsets go beyond the {input.shape[0]} ints of input: {offsets.tolist()!r:.80}."
        )
    if include_last_offset and not offsets.shape[0]:
        raise ShapeError("embedding_bag: with include_last_offset there is one offset at least, the end.")
    starts = offsets[:-1] if include_last_offset else offsets
    places = arange(input.shape[0], device=input.device)
    return starts.shape[0], searchsorted(starts, places.to(starts.dtype), right=True) - 1
