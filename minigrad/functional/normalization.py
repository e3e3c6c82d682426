"""Normalisation layers as functions, with PyTorch's signatures.

N is the batch size, C the number of channels, and … any number of spatial dimensions. Weight and bias are optional.
Every function raises DTypeError for non-floating-point or mixed dtypes and ShapeError for mismatched sizes.
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
from minigrad.functional.checks import check_floating, check_number, check_same_dtype, reshape_to
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
    """Compute ``(input - mean) / sqrt(var + eps) * weight + bias`` per channel of an input (N, C, …).

    The other operands have shape (C,). If `training`, mean and biased variance are computed from `input`, and the
    running statistics are updated in place: ``running = (1 - momentum) * running + momentum * batch_statistic``, with
    the unbiased variance. Otherwise the running statistics are used as constants. Ioffe and Szegedy 2015, algorithms 1
    and 2.

    Raises ShapeError when training with one value per channel, ArgumentError if required running statistics are
    missing, and GraphError if they require grad.

    >>> import minigrad as mg
    >>> mean, var = mg.zeros(1), mg.ones(1)
    >>> mg.functional.batch_norm(mg.tensor([[1.0], [3.0]]), mean, var, training=True, eps=0.0).tolist()
    [[-1.0], [1.0]]
    >>> round(mean.item(), 3), round(var.item(), 3)  # 0.1 * 2 and 0.9 * 1 + 0.1 * 2
    (0.2, 1.1)
    """
    name = "batch_norm"
    n, channels, space = _check_channels(name, input, running_mean, running_var, weight, bias)
    if not training:
        return _normalise_with_running_stats(name, input, running_mean, running_var, weight, bias, eps)
    if n * space == 1:
        raise ShapeError(
            f"{name}: expected more than 1 value per channel when training, but got input of shape {input.shape}.\n"
            "  Use a larger batch, or training=False."
        )
    norm = Norm((n, channels, space), (0, 2), (1,), _check_eps(name, eps))
    return _normalise_with_batch_stats(name, input, running_mean, running_var, weight, bias, momentum, norm)


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
    """Normalise each channel of each sample of (N, C, …) separately; see `batch_norm`.

    Running statistics are updated with the mean over the batch, and used if `use_input_stats` is False. Ulyanov et al.
    2016, eq. 4. Raises ShapeError for a single value per channel and sample, otherwise like `batch_norm`.
    """
    name = "instance_norm"
    n, channels, space = _check_channels(name, input, running_mean, running_var, weight, bias)
    if not use_input_stats:
        return _normalise_with_running_stats(name, input, running_mean, running_var, weight, bias, eps)
    if space == 1:
        raise ShapeError(
            f"{name}: expected more than 1 spatial element, but got input of shape {input.shape}.\n"
            "  The dimensions after (N, C) must hold more than one value."
        )
    norm = Norm((n, channels, space), (2,), (1,), _check_eps(name, eps))
    return _normalise_with_batch_stats(name, input, running_mean, running_var, weight, bias, momentum, norm)


@register
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Compute ``(input - mean) / sqrt(var + eps) * weight + bias`` over the last dimensions.

    Those dimensions, `weight` and `bias` have the shape `normalized_shape`. Ba et al. 2016, eq. 4.

    >>> import minigrad as mg
    >>> mg.functional.layer_norm(mg.tensor([[1.0, 3.0], [0.0, 10.0]]), (2,), eps=0.0).tolist()
    [[-1.0, 1.0], [-1.0, 1.0]]
    """
    norm = _last_dims_norm("layer_norm", input, normalized_shape, eps, weight=weight, bias=bias)
    return cast(Tensor, ops.layer_norm(input, weight, bias, norm=norm))


@register
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Compute ``input / sqrt(mean(input ** 2) + eps) * weight`` over the last dimensions; see `layer_norm`.

    `eps` defaults to the machine epsilon of the dtype. Zhang and Sennrich 2019, eq. 4. Unlike in PyTorch, `weight` must
    have the dtype of `input`.
    """
    if eps is None:
        eps = float(np.finfo(check_floating(input, "rms_norm").dtype.name).eps)
    norm = _last_dims_norm("rms_norm", input, normalized_shape, eps, weight=weight)
    return cast(Tensor, ops.rms_norm(input, weight, norm=norm._replace(centred=False)))


@register
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalise each of `num_groups` equal groups of channels, per sample of (N, C, …); see `layer_norm`.

    `weight` and `bias` have shape (C,). Wu and He 2018, eq. 7. Raises ShapeError if `num_groups` does not divide C, and
    for a single value per group.
    """
    name = "group_norm"
    n, channels, space = _check_channels(name, input, None, None, weight, bias)
    if num_groups < 1 or channels % num_groups:
        raise ShapeError(
            f"{name}: expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{input.shape} and num_groups={num_groups}.\n"
            f"  Choose a divisor of {channels}: 1 normalises all channels together, {channels} each one separately."
        )
    size = channels // num_groups
    if n * size * space == 1:
        raise ShapeError(
            f"{name}: expected more than 1 value per group, but got input of shape {input.shape} and "
            f"num_groups={num_groups}.\n  Use fewer groups."
        )
    norm = Norm((n, num_groups, size, space), (2, 3), (1, 2), _check_eps(name, eps))
    return cast(Tensor, ops.group_norm(input, weight, bias, norm=norm))


@register
def normalize(input: Tensor, p: float = 2.0, dim: int | Sequence[int] | None = 1, eps: float = 1e-12) -> Tensor:
    """Divide `input` by ``max(norm(input, p, dim), eps)``, so that its `norm` over `dim` is 1."""
    norm_value = reduce.norm(input, p, dim, keepdim=True)
    return cast(Tensor, input / ops.clamp(norm_value, eps, None))


@register
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Compute ``input / (k + alpha * mean) ** beta``, with the mean of squares over `size` neighbouring channels.

    `input` is (N, C, …), zero-padded along C. Krizhevsky, Sutskever, Hinton 2012, section 3.3, where `alpha` is already
    divided by `size`. Raises ShapeError for fewer than three dimensions.

    >>> import minigrad as mg
    >>> mg.nn.functional.local_response_norm(mg.ones(1, 3, 1), size=3, alpha=3.0, beta=1.0).tolist()
    [[[0.3333333432674408], [0.25], [0.3333333432674408]]]
    """
    x = check_floating(input, "local_response_norm")
    if x.ndim < 3 or size < 1:
        raise ShapeError(
            f"local_response_norm: expected an input (N, C, …) and a size of 1 or more, but got {x.shape} and {size}."
        )
    squares = reshape_to(x * x, (*x.shape[:2], numel(x.shape[2:])))
    mean_square = mean(pad(squares, (0, 0, size // 2, (size - 1) // 2)).unfold(1, size, 1), -1)
    return x / (reshape_to(mean_square, x.shape) * alpha + k) ** beta


# --- helpers ---


def _check_eps(name: str, eps: float) -> float:
    check_number(eps, name, "eps")
    if eps < 0:
        raise ArgumentError(f"{name}: eps={eps} is negative; it is added to a variance, which may be 0.")
    return float(eps)


def _check_shapes(name: str, shape: Shape, input: Tensor, **operands: Tensor | None) -> None:
    """Raise ShapeError unless each of `operands` is None or has shape `shape`."""
    for label, x in operands.items():
        if x is not None and x.shape != shape:
            raise ShapeError(
                f"{name}: expected {label} of shape {shape} for an input of shape {input.shape}, but got {x.shape}."
            )


def _last_dims_norm(name: str, input: Tensor, sizes: Sequence[int], eps: float, **operands: Tensor | None) -> Norm:
    """Check that the last dimensions and the operands have sizes `sizes`. Return the `Norm` over these dimensions."""
    check_same_dtype(name, input=check_floating(input, name), **operands)
    if not isinstance(sizes, Sequence):
        raise DTypeError(
            f"{name}: normalized_shape={sizes!r} is not a sequence of ints.\n  Write ({sizes!r},) for one dimension."
        )
    shape = tuple(sizes)
    if not shape or input.shape[-len(shape) :] != shape:
        raise ShapeError(
            f"{name}: given normalized_shape={shape}, expected input with shape (*, {', '.join(map(str, shape))}), but "
            f"got input of shape {input.shape}.\n"
            "  Write x.shape[-1:] to normalise over the last dimension."
        )
    _check_shapes(name, shape, input, **operands)
    return Norm((prod(input.shape[: -len(shape)]), prod(shape)), (1,), (1,), _check_eps(name, eps))


def _check_channels(name: str, input: Tensor, mean: Any, var: Any, weight: Any, bias: Any) -> tuple[int, int, int]:
    """Check that the operands have shape (C,). Return N, C and the number of spatial elements of `input` (N, C, …)."""
    operands = {"running_mean": mean, "running_var": var, "weight": weight, "bias": bias}
    check_same_dtype(name, input=check_floating(input, name), **operands)
    if input.ndim < 2:
        raise ShapeError(f"{name}: expected input (N, C, …), but got shape {input.shape}.")
    n, channels, *space = input.shape
    _check_shapes(name, (channels,), input, **operands)
    for label, x in operands.items():
        if x is not None and label.startswith("running") and x.requires_grad:
            raise GraphError(f"{name}: {label} requires grad, but it is updated in place.\n  Write {label}.detach().")
    return n, channels, prod(space)


def _normalise_with_running_stats(
    name: str, input: Tensor, mean: Any, var: Any, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """Normalise `input` with the running statistics `mean` and `var`, which are treated as constants."""
    if mean is None or var is None:
        raise ArgumentError(f"{name}: running_mean and running_var must be given in evaluation mode.")
    scale = ops.rsqrt(var + _check_eps(name, eps))
    mean, scale, bias = (
        None if x is None else reshape_to(x, (x.shape[0],) + (1,) * (input.ndim - 2))
        for x in (mean, scale if weight is None else scale * weight, bias)
    )
    result: Tensor = (input - mean) * scale
    return result if bias is None else result + bias


def _normalise_with_batch_stats(
    name: str, input: Tensor, mean: Any, var: Any, weight: Any, bias: Any, momentum: float, norm: Norm
) -> Tensor:
    """Normalise `input` with its own statistics, and update the running statistics `mean` and `var` unless None."""
    if (mean is None) != (var is None):
        raise ArgumentError(f"{name}: running_mean and running_var must both be given or both be None.")
    result: Tensor
    result, batch_mean, batch_var = OPS[name](input, weight, bias, norm=norm)
    count = prod(norm.shape[k] for k in norm.dim)
    if mean is not None and input._array.size:
        for running_stat, batch_stat, scale in ((mean, batch_mean, 1.0), (var, batch_var, count / (count - 1))):
            new_stat = batch_stat.detach()
            # A norm over the batch has one statistic per channel, other norms one per sample and channel.
            new_stat = reshape_to(new_stat, running_stat.shape) if 0 in norm.dim else reduce.mean(new_stat, (0, 2))
            running_stat.copy_(running_stat * (1.0 - momentum) + new_stat * (momentum * scale))
    return result
