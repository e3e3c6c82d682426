"""Normalisation and dropout, with PyTorch's signatures.

N counts samples, C channels; … are any further dimensions, of space. Weight and bias may each be left out. Every norm
raises DTypeError for what is not a tensor of floats or not all of one type, and ShapeError where sizes do not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, cast

import numpy as np

from minigrad import ops
from minigrad.core.errors import ArgumentError, DTypeError, GraphError, ShapeError
from minigrad.core.op import OPS
from minigrad.core.registry import register
from minigrad.core.shapes import Shape, numel
from minigrad.core.tensor import Tensor
from minigrad.functional import reduce
from minigrad.functional.checks import check_number, check_same_type, floats_of, shaped
from minigrad.functional.padding import pad
from minigrad.functional.reduce import mean
from minigrad.ops.normalization import Norm


@register
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """``(input - mean) / sqrt(var + eps) * weight + bias``, with mean and variance of each channel of (N, C, …).

    The other operands have shape (C,). In training the statistics are those of `input`, the variance divided by the
    number of values; and ``running = (1 - momentum) * running + momentum * found`` is written in place to the running
    ones, the variance divided by one less. Otherwise the running statistics are used, and are constants. Ioffe and
    Szegedy 2015, algorithms 1 and 2.

    Raises ShapeError in training with one value a channel, whose variance says nothing; ArgumentError if statistics
    that are needed are missing; and GraphError if the running ones require a gradient.

    >>> import minigrad as mg
    >>> mean, var = mg.zeros(1), mg.ones(1)
    >>> mg.functional.batch_norm(mg.tensor([[1.0], [3.0]]), mean, var, training=True, eps=0.0).tolist()
    [[-1.0], [1.0]]
    >>> round(mean.item(), 3), round(var.item(), 3)  # 0.1 * 2 and 0.9 * 1 + 0.1 * 2
    (0.2, 1.1)
    """
    name = "batch_norm"
    n, channels, space = _channels(name, input, running_mean, running_var, weight, bias)
    if not training:
        return _by_running(name, input, running_mean, running_var, weight, bias, eps)
    if n * space == 1:
        raise ShapeError(
            f"{name}: training=True, but shape {input.shape} has one value a channel, whose norm is always 0.\n"
            "  Give it more samples, or training=False."
        )
    norm = Norm((n, channels, space), (0, 2), (1,), _eps(name, eps))
    return _following(name, input, running_mean, running_var, weight, bias, momentum, norm)


@register
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """As `batch_norm`, with mean and variance of each channel of each sample of (N, C, …) by itself.

    Running statistics follow the mean over the samples; they are used where `use_input_stats` is False. Ulyanov et al.
    2016, eq. 4. Raises ShapeError where a channel of a sample has one value, and else as `batch_norm`.
    """
    name = "instance_norm"
    n, channels, space = _channels(name, input, running_mean, running_var, weight, bias)
    if not use_input_stats:
        return _by_running(name, input, running_mean, running_var, weight, bias, eps)
    if space == 1:
        raise ShapeError(
            f"{name}: shape {input.shape} has one value in each channel of a sample, whose norm is "
            "always 0.\n  The dimensions after (N, C) are to hold more."
        )
    norm = Norm((n, channels, space), (2,), (1,), _eps(name, eps))
    return _following(name, input, running_mean, running_var, weight, bias, momentum, norm)


@register
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """``(input - mean) / sqrt(var + eps) * weight + bias``, over the last dimensions together.

    `normalized_shape` are their sizes, and the shape of `weight` and `bias`. Ba et al. 2016, eq. 4.

    >>> import minigrad as mg
    >>> mg.functional.layer_norm(mg.tensor([[1.0, 3.0], [0.0, 10.0]]), (2,), eps=0.0).tolist()
    [[-1.0, 1.0], [-1.0, 1.0]]
    """
    norm = _last("layer_norm", input, normalized_shape, eps, weight=weight, bias=bias)
    return cast(Tensor, ops.layer_norm(input, weight, bias, norm=norm))


@register
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """``input / sqrt(mean(input ** 2) + eps) * weight``, over the last dimensions together, as `layer_norm`.

    Without `eps` it is the distance from 1 to the next float of the type. Zhang and Sennrich 2019, eq. 4. Unlike in
    PyTorch the weight must be of the type of `input`.
    """
    if eps is None:
        eps = float(np.finfo(floats_of(input, "rms_norm").dtype.name).eps)
    norm = _last("rms_norm", input, normalized_shape, eps, weight=weight)
    return cast(Tensor, ops.rms_norm(input, weight, norm=norm._replace(centred=False)))


@register
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """As `layer_norm`, over each of `num_groups` equal groups of the channels of each sample of (N, C, …).

    `weight` and `bias` have shape (C,). Wu and He 2018, eq. 7. Raises ShapeError where the groups cannot be equal, and
    where there is one value in all.
    """
    name = "group_norm"
    n, channels, space = _channels(name, input, None, None, weight, bias)
    if num_groups < 1 or channels % num_groups:
        raise ShapeError(
            f"{name}: num_groups={num_groups} does not divide the {channels} channels of shape {input.shape}.\n"
            "  Take a divisor of them: 1 for all together, or as many as channels for each by itself."
        )
    size = channels // num_groups
    if n * size * space == 1:
        raise ShapeError(
            f"{name}: shape {input.shape} in {num_groups} groups has one value a group, whose norm is "
            "always 0.\n  Take fewer groups."
        )
    norm = Norm((n, num_groups, size, space), (2, 3), (1, 2), _eps(name, eps))
    return cast(Tensor, ops.group_norm(input, weight, bias, norm=norm))


@register
def normalize(input: Tensor, p: float = 2.0, dim: int | Sequence[int] | None = 1, eps: float = 1e-12) -> Tensor:
    """``input`` divided by its `norm` over `dim`, so that this is 1; by `eps` where the norm is smaller."""
    length = reduce.norm(input, p, dim, keepdim=True)
    return cast(Tensor, input / ops.clamp(length, eps, None))


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


# --- what they share ---


def _eps(name: str, eps: float) -> float:
    check_number(eps, name, "eps")
    if eps < 0:
        raise ArgumentError(f"{name}: eps={eps} is negative, and what it is added to, a variance, may be 0.")
    return float(eps)


def _fits(name: str, shape: Shape, input: Tensor, **others: Tensor | None) -> None:
    """Refuse those of `others` that are not None and not of `shape`."""
    for label, x in others.items():
        if x is not None and x.shape != shape:
            raise ShapeError(f"{name}: {label} has shape {x.shape}; for an input of shape {input.shape} it is {shape}.")


def _last(name: str, input: Tensor, sizes: Sequence[int], eps: float, **others: Tensor | None) -> Norm:
    """The norm over the last dimensions, which are to have these sizes, as are weight and bias."""
    check_same_type(name, input=floats_of(input, name), **others)
    if not isinstance(sizes, Sequence):
        raise DTypeError(f"{name}: normalized_shape={sizes!r} is not a shape.\n  Write ({sizes!r},) for one dimension.")
    shape = tuple(sizes)
    if not shape or input.shape[-len(shape) :] != shape:
        raise ShapeError(
            f"{name}: normalized_shape={shape} are not the last sizes of shape {input.shape}, one or more.\n"
            "  Write x.shape[-1:] to normalise over the last dimension."
        )
    _fits(name, shape, input, **others)
    return Norm((prod(input.shape[: -len(shape)]), prod(shape)), (1,), (1,), _eps(name, eps))


def _channels(name: str, input: Tensor, mean: Any, var: Any, weight: Any, bias: Any) -> tuple[int, int, int]:
    """Of (N, C, …) the sizes N and C, and how many values of space. Refuses operands without one value a channel."""
    others = {"running_mean": mean, "running_var": var, "weight": weight, "bias": bias}
    check_same_type(name, input=floats_of(input, name), **others)
    if input.ndim < 2:
        raise ShapeError(f"{name}: shape {input.shape} has no channels: it must be (N, C, …).")
    n, channels, *space = input.shape
    _fits(name, (channels,), input, **others)
    for label, x in others.items():
        if x is not None and label.startswith("running") and x.requires_grad:
            raise GraphError(f"{name}: {label} requires a gradient, but it is written, not learned; give a detach().")
    return n, channels, prod(space)


def _by_running(
    name: str, input: Tensor, mean: Any, var: Any, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """The norm by statistics that are constants."""
    if mean is None or var is None:
        raise ArgumentError(
            f"{name}: without the statistics of the input it needs running_mean and running_var, and one is None."
        )
    scale = ops.rsqrt(var + _eps(name, eps))
    mean, scale, bias = (
        None if x is None else shaped(x, (x.shape[0],) + (1,) * (input.ndim - 2))
        for x in (mean, scale if weight is None else scale * weight, bias)
    )
    result: Tensor = (input - mean) * scale
    return result if bias is None else result + bias


def _following(
    name: str, input: Tensor, mean: Any, var: Any, weight: Any, bias: Any, momentum: float, norm: Norm
) -> Tensor:
    """The norm by the statistics of the input, which the running ones follow if there are any."""
    if (mean is None) != (var is None):
        raise ArgumentError(f"{name}: running_mean and running_var go together, and one of them is None.")
    result: Tensor
    result, found_mean, found_var = OPS[name](input, weight, bias, norm=norm)
    count = prod(norm.shape[k] for k in norm.dim)
    if mean is not None and input._array.size:
        for running, found in ((mean, found_mean.detach()), (var, found_var.detach() * (count / (count - 1)))):
            running.copy_(running * (1.0 - momentum) + reduce.mean(found, (0, 2)) * momentum)
    return result
