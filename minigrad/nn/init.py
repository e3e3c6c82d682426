"""Weight initialisation: PyTorch's `nn.init`. Each function overwrites a tensor in place and returns it.

Random values come from `generator`, by default that of `minigrad.random`, which `mg.manual_seed` seeds. For a weight of
shape (out, in, *kernel), fan_in = in · prod(kernel) is the number of inputs of an output element, and
fan_out = out · prod(kernel) the number of outputs that an input element affects.
"""

from __future__ import annotations

import math
from typing import Any

from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.core.grad_mode import no_grad
from minigrad.core.shapes import numel
from minigrad.core.tensor import Tensor
from minigrad.functional import argsort, where
from minigrad.functional.checks import check_option, check_probability, check_tensor
from minigrad.functional.creation import eye
from minigrad.random import Generator, rand_like, randn_like

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]
__path__: list[str] = []  # no submodules; `pytorch.import_hooks` handles imports of missing submodules

_GAINS = {"tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}
_UNIT_GAIN = ("linear", "sigmoid", *[f"conv{t}{n}d" for t in ("", "_transpose") for n in (1, 2, 3)])


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the gain of `nonlinearity`: the scale of the preceding weights that preserves the variance of signals.

    It is 1 for "linear", "sigmoid" and convolutions, 5 / 3 for "tanh", sqrt(2) for "relu", 3 / 4 for "selu", and
    sqrt(2 / (1 + param**2)) for "leaky_relu", with negative slope `param`, by default 0.01. Raises ArgumentError for
    others.

    >>> round(calculate_gain("leaky_relu", math.sqrt(5)), 4)     # sqrt(1 / 3)
    0.5774
    """
    check_option(nonlinearity, (*_UNIT_GAIN, *_GAINS, "leaky_relu"), "calculate_gain", "nonlinearity")
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    return _GAINS.get(nonlinearity, 1.0)


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ShapeError(
            "init: fan in and fan out can not be computed for a tensor with fewer than 2 dimensions, but got shape "
            f"{tensor.shape}; expected (out, in, …).\n  For a bias use uniform_, normal_ or zeros_."
        )
    kernel = numel(tensor.shape[2:])
    return tensor.shape[1] * kernel, tensor.shape[0] * kernel


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    check_option(mode, ("fan_in", "fan_out"), "kaiming", "mode")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


# --- independent samples ---


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill `tensor` with samples from the uniform distribution U(a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill `tensor` with samples from the normal distribution N(mean, std²)."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill `tensor` with samples from N(mean, std²) truncated to [a, b]. Values outside are resampled.

    Raises ArgumentError if the interval contains less than 5% of the probability, so that most samples would be
    rejected.
    """
    with no_grad():
        probability = _normal_cdf((b - mean) / std) - _normal_cdf((a - mean) / std) if std > 0 else 0.0
        if probability < 0.05:
            raise ArgumentError(
                f"trunc_normal_: only {probability:.2%} of a normal distribution with mean {mean} and std {std} lies "
                "within "
                f"[{a}, {b}].\n  Move mean towards the middle, or widen a and b: they are values, not multiples of std."
            )
        tensor.copy_(randn_like(tensor, generator=generator) * std + mean)
        while (outside := (tensor < a) | (tensor > b)).any():
            tensor.copy_(where(outside, randn_like(tensor, generator=generator) * std + mean, tensor))
        return tensor


def _normal_cdf(z: float) -> float:
    """Return the cumulative distribution function of the standard normal distribution at `z`."""
    return (1 + math.erf(z / math.sqrt(2))) / 2


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill `tensor` with samples from U(-b, b), b = gain sqrt(6 / (fan_in + fan_out)). Glorot and Bengio 2010, eq. 16.

    Raises ShapeError for a tensor with fewer than two dimensions.
    """
    bound = gain * math.sqrt(6 / max(sum(_calculate_fan_in_and_fan_out(tensor)), 1))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill `tensor` with samples from N(0, s²), s = gain sqrt(2 / (fan_in + fan_out)). Glorot and Bengio 2010, eq. 12.

    Raises ShapeError for a tensor with fewer than two dimensions.
    """
    std = gain * math.sqrt(2 / max(sum(_calculate_fan_in_and_fan_out(tensor)), 1))
    return normal_(tensor, 0.0, std, generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill `tensor` with samples from U(-b, b), b = gain sqrt(3 / fan). He et al. 2015, eq. 10-14.

    `mode` "fan_in" preserves the variance in the forward pass, "fan_out" in the backward pass. The gain is that of
    `nonlinearity`, the function that follows; `a` is the negative slope of "leaky_relu". Raises ShapeError for a tensor
    with fewer than two dimensions, ArgumentError for other options.

    >>> import minigrad as mg
    >>> w = kaiming_uniform_(mg.empty(128, 784), a=math.sqrt(5))      # as in nn.Linear: b = 1 / sqrt(784)
    >>> 0.0356 < w.max().item() <= 1 / 28, -1 / 28 <= w.min().item() < -0.0356
    (True, True)
    """
    fan = _calculate_correct_fan(tensor, mode)
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3 / fan) if fan else 0.0
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill `tensor` with samples from N(0, gain² / fan); see `kaiming_uniform_`."""
    fan = _calculate_correct_fan(tensor, mode)
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0, generator)


# --- matrices ---


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill `tensor` with `gain` times a random matrix whose rows, or columns if there are fewer, are orthonormal.

    Trailing dimensions are flattened. Samples from N(0, 1) are orthogonalised by the Gram-Schmidt process, applied
    twice to each row to compensate for rounding (Giraud et al. 2005). Saxe et al. 2013. Raises ShapeError for a tensor
    with fewer than two dimensions.

    >>> import minigrad as mg
    >>> w = orthogonal_(mg.empty(3, 5))
    >>> mg.allclose(w @ w.T, mg.eye(3), atol=1e-6)
    True
    """
    with no_grad():
        _calculate_fan_in_and_fan_out(tensor)  # raises for a vector
        rows, columns = tensor.shape[0], numel(tensor.shape[1:])
        if not rows * columns:
            return tensor
        samples = randn_like(tensor, generator=generator).reshape(rows, columns)
        vectors = _orthonormalize(samples if rows <= columns else samples.T)
        return tensor.copy_(((vectors if rows <= columns else vectors.T) * gain).reshape(tensor.shape))


def _orthonormalize(rows: Tensor) -> Tensor:
    result = rows.clone()
    for k in range(rows.shape[0]):
        row, previous = result[k], result[:k]
        for _ in range(2 if k else 0):
            row = row - (previous @ row) @ previous
        result[k] = row / row.norm()
    return result


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill a matrix with samples from N(0, std²) and a fraction `sparsity` of zeros per column. Martens 2010."""
    with no_grad():
        _check_matrix(tensor, "sparse_")
        check_probability(sparsity, "sparse_", "sparsity")
        num_zeros = math.ceil(sparsity * tensor.shape[0])
        ranks = argsort(argsort(rand_like(tensor, generator=generator), 0), 0)
        return tensor.copy_(where(ranks < num_zeros, 0.0, randn_like(tensor, generator=generator) * std))


def eye_(tensor: Tensor) -> Tensor:
    """Fill `tensor` with the identity matrix. Raises ShapeError unless it is 2-D."""
    with no_grad():
        _check_matrix(tensor, "eye_")
        return tensor.copy_(eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution, (out, in, *kernel), so that each of the `groups` preserves its inputs.

    Raises ShapeError unless it has 3 to 5 dimensions and `groups` divides out.
    """
    with no_grad():
        if tensor.ndim not in (3, 4, 5) or groups < 1 or tensor.shape[0] % groups:
            raise ShapeError(
                "dirac_: only tensors with 3, 4, or 5 dimensions, (out, in, *kernel), are supported, and dim 0 must be "
                f"divisible by groups, but got shape {tensor.shape} and groups={groups}."
            )
        tensor.zero_()
        size, centre = tensor.shape[0] // groups, tuple([n // 2 for n in tensor.shape[2:]])
        for group in range(groups):
            for k in range(min(size, tensor.shape[1])):
                tensor[(group * size + k, k, *centre)] = 1.0
        return tensor


def _check_matrix(tensor: Tensor, name: str) -> None:
    if tensor.ndim != 2:
        raise ShapeError(f"{name}: only tensors with 2 dimensions are supported, but got shape {tensor.shape}.")


# --- constants ---


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill `tensor` with `val`."""
    with no_grad():
        return check_tensor(tensor, "init").fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill `tensor` with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill `tensor` with zeros."""
    return constant_(tensor, 0.0)


def __getattr__(name: str) -> Any:
    from minigrad.pytorch.import_hooks import resolve_missing

    return resolve_missing(__name__, name)
