"""Normalisation layers. The computations are in `minigrad.functional.normalization`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad import functional as F
from minigrad.core.dtypes import DType, int64
from minigrad.core.errors import ShapeError
from minigrad.core.grad_mode import no_grad
from minigrad.core.tensor import Tensor
from minigrad.functional.creation import ones, tensor, zeros
from minigrad.nn import init
from minigrad.nn.module import Module, Parameter

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "LayerNorm",
    "LocalResponseNorm",
    "RMSNorm",
]


class _AffineNorm(Module):
    """Base class of norms with an optional learned scale, `weight`, and offset, `bias`, initialised to 1 and 0."""

    weight: Parameter | None
    bias: Parameter | None

    def _add_affine(self, shape: Any, weight: bool, bias: bool | None, device: Any, dtype: Any) -> None:
        """Register weight and bias with `shape`, or None where disabled. If `bias` is None, no bias is registered."""
        scale = Parameter(ones(shape, device=device, dtype=dtype)) if weight else None
        self.register_parameter("weight", scale)
        if bias is not None:
            offset = Parameter(zeros(shape, device=device, dtype=dtype)) if weight and bias else None
            self.register_parameter("bias", offset)

    def reset_parameters(self) -> None:
        """Reset the scale to 1 and the offset to 0."""
        for name, initializer in (("weight", init.ones_), ("bias", init.zeros_)):
            if self._parameters.get(name) is not None:
                initializer(getattr(self, name))


class _NormBase(_AffineNorm):
    """Base class of norms over the channels of (N, C, …) that may track running statistics."""

    ndims: tuple[int, ...]  # allowed numbers of input dimensions
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: str | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._add_affine(num_features, affine, bias, device, dtype)
        tracks = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype) if tracks else None)
        self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype) if tracks else None)
        self.register_buffer("num_batches_tracked", tensor(0, dtype=int64, device=device) if tracks else None)

    def reset_running_stats(self) -> None:
        """Reset the running mean to 0, the running variance to 1 and the number of tracked batches to 0."""
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            self.running_mean.zero_()
            self.running_var.fill_(1.0)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Reset the running statistics and the affine parameters."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in self.ndims:
            expected = " or ".join(map(str, self.ndims))
            raise ShapeError(
                f"{type(self).__name__}: expected {expected}D input, but got {input.ndim}D input of shape "
                f"{input.shape}."
            )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = self.momentum
        batch_counter = self.num_batches_tracked if self.training else None
        if batch_counter is not None and momentum is None:  # cumulative average
            momentum = 1.0 / (batch_counter.item() + 1)
        use_batch_stats = self.training or self.running_mean is None
        update_running_stats = self.training and self.track_running_stats
        mean, var = (
            (None, None) if use_batch_stats and not update_running_stats else (self.running_mean, self.running_var)
        )
        output = F.batch_norm(input, mean, var, self.weight, self.bias, use_batch_stats, momentum or 0.0, self.eps)
        if batch_counter is not None:
            with no_grad():
                batch_counter.add_(1)  # not counted if the forward pass raises
        return output


class BatchNorm1d(_BatchNorm):
    """Applies batch normalisation over (N, C) or (N, C, L); see `BatchNorm2d`."""

    ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalises each channel of (N, C, H, W) to mean 0 and variance 1 over the batch, times `weight`, plus `bias`.

    Training updates the running statistics: ``running = (1 - momentum) running + momentum batch``, or their cumulative
    average if `momentum` is None. Evaluation mode uses them. Without `track_running_stats` every mode uses the batch's
    statistics. Ioffe and Szegedy 2015. Raises ShapeError for other numbers of dimensions, and in training for a single
    value per channel.

    >>> import minigrad as mg
    >>> norm = mg.nn.BatchNorm2d(3)
    >>> norm(mg.ones(2, 3, 4, 4)).shape, norm.num_batches_tracked.item()
    ((2, 3, 4, 4), 1)
    """

    ndims = (4,)


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: str | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        batch = input if input.ndim == self.ndims[-1] else input.unsqueeze(0)
        if batch.shape[1] != self.num_features:
            raise ShapeError(
                f"{type(self).__name__}: expected num_features={self.num_features} channels, but got {batch.shape[1]}."
            )
        statistics = (self.running_mean, self.running_var, self.weight, self.bias)
        use_input_stats = self.training or not self.track_running_stats
        out = F.instance_norm(batch, *statistics, use_input_stats, self.momentum or 0.0, self.eps)
        return out if batch is input else out.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """Applies instance normalisation over (N, C, L) or (C, L); see `InstanceNorm2d`."""

    ndims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalises each channel of each sample of (N, C, H, W), or of (C, H, W), to mean 0 and variance 1.

    `affine` adds a learned `weight` and `bias`; `track_running_stats` works as in `BatchNorm2d`. Ulyanov et al. 2016.
    """

    ndims = (3, 4)


class LayerNorm(_AffineNorm):
    """Normalises the last dimensions, `normalized_shape`, to mean 0 and variance 1, times `weight`, plus `bias`.

    `weight` and `bias` have the shape `normalized_shape`. `elementwise_affine=False` disables both, `bias=False` only
    `bias`. Ba et al. 2016.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._add_affine(self.normalized_shape, elementwise_affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(_AffineNorm):
    """Divides the last dimensions, `normalized_shape`, by their root mean square, times `weight`.

    `eps` defaults to the machine epsilon of the dtype. Zhang and Sennrich 2019.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._add_affine(self.normalized_shape, elementwise_affine, None, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class LocalResponseNorm(Module):
    """Normalises each channel of (N, C, …) across `size` neighbouring channels: see `functional.local_response_norm`.

    Krizhevsky, Sutskever and Hinton 2012.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class GroupNorm(_AffineNorm):
    """Normalises each of `num_groups` groups of channels, per sample of (N, C, …), to mean 0 and variance 1.

    `affine` adds a learned `weight` and `bias` per channel. Wu and He 2018. Raises ShapeError unless `num_groups`
    divides `num_channels`.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: str | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise ShapeError(
                f"GroupNorm: num_channels must be divisible by num_groups, but got {num_channels=} and {num_groups=}."
            )
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._add_affine(num_channels, affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


def _as_shape(normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
