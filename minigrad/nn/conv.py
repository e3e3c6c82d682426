"""Convolution layers, computed by `minigrad.functional.conv`. A size is an int, or a tuple of one int per dimension."""

from __future__ import annotations

import math
from typing import Any

from minigrad import functional as F
from minigrad.core.dtypes import DType
from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import Ints, check_option, to_int_tuple
from minigrad.functional.creation import empty
from minigrad.nn import init
from minigrad.nn.layer_utils import draw_bias
from minigrad.nn.module import Module, Parameter

__all__ = ["Conv1d", "Conv2d", "ConvTranspose1d", "ConvTranspose2d"]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """Base class of convolutions.

    `weight` is (out, in / groups, *kernel), or (in, out / groups, *kernel) if `transposed`.
    """

    dims: int
    transposed = False
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints | str = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: str | None = None,
        dtype: DType | None = None,
        output_padding: Ints = 0,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ShapeError(
                f"{name}: in_channels and out_channels must be divisible by groups, but got "
                f"in_channels={in_channels}, out_channels={out_channels} and groups={groups}."
            )
        check_option(padding_mode, _PADDING_MODES, name, "padding_mode")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = to_int_tuple(kernel_size, self.dims, name, "kernel_size", 1)
        self.stride = to_int_tuple(stride, self.dims, name, "stride", 1)
        if isinstance(padding, str):
            check_option(padding, ("valid", "same"), name, "padding")
            if padding == "same" and max(self.stride) > 1:
                raise ArgumentError(
                    f"{name}: padding='same' is not supported for strided convolutions, but got {stride=}."
                )
        self.padding = padding if isinstance(padding, str) else to_int_tuple(padding, self.dims, name, "padding")
        self.dilation = to_int_tuple(dilation, self.dims, name, "dilation", 1)
        self.output_padding = to_int_tuple(output_padding, self.dims, name, "output_padding")
        self.groups, self.padding_mode = groups, padding_mode
        rows, columns = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = Parameter(empty(rows, columns // groups, *self.kernel_size, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sample weight and bias from U(-k, k), k = 1 / sqrt(in / groups · kernel size)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        draw_bias(self.bias, self.weight)

    def _padding_per_side(self) -> list[int]:
        """Return the padding before and after each dimension, last dimension first, for `functional.pad`."""
        if self.padding == "valid":
            return [0] * (2 * self.dims)
        if self.padding == "same":
            total_padding = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            return [n for r in reversed(total_padding) for n in (r // 2, r - r // 2)]
        padding: Any = self.padding
        return [n for p in reversed(padding) for n in (p, p)]

    def _conv_forward(self, function: Any, input: Tensor) -> Tensor:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._padding_per_side(), self.padding_mode), 0
        result: Tensor = function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)
        return result

    def _transposed_forward(self, function: Any, input: Tensor, output_size: Any) -> Tensor:
        output_padding = self.output_padding if output_size is None else self._output_padding(input, output_size)
        settings = (self.stride, self.padding, output_padding, self.groups, self.dilation)
        result: Tensor = function(input, self.weight, self.bias, *settings)
        return result

    def _output_padding(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
        """Return the output padding that yields the requested `output_size`, ignoring its leading dimensions."""
        name = type(self).__name__
        requested = to_int_tuple(tuple(output_size)[-self.dims :], self.dims, name, "output_size")
        dimensions = zip(
            requested,
            input.shape[-self.dims :],
            self.stride,
            self.padding,
            self.dilation,
            self.kernel_size,
            strict=True,
        )
        output_padding = tuple(n - ((m - 1) * s - 2 * p + d * (k - 1) + 1) for n, m, s, p, d, k in dimensions)
        if any(not 0 <= n < s for n, s in zip(output_padding, self.stride, strict=True)):
            min_sizes = tuple(n - m for n, m in zip(requested, output_padding, strict=True))
            raise ShapeError(
                f"{name}: requested output_size={tuple(requested)}, but for an input of shape {input.shape} with "
                f"stride {self.stride} valid sizes range from {min_sizes} to less than that plus stride."
            )
        return output_padding

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        zeros = (0,) * self.dims
        parts += [f"padding={self.padding}"] * (self.padding != zeros)
        parts += [f"dilation={self.dilation}"] * (self.dilation != (1,) * self.dims)
        parts += [f"output_padding={self.output_padding}"] * (self.output_padding != zeros)
        parts += [f"groups={self.groups}"] * (self.groups != 1)
        parts += ["bias=False"] * (self.bias is None)
        parts += [f"padding_mode={self.padding_mode}"] * (self.padding_mode != "zeros")
        return ", ".join(parts)


class Conv1d(_ConvNd):
    """Applies a 1D convolution to (N, in, L) or (in, L): see `functional.conv1d`.

    `weight` is (out, in / groups, k), `bias` (out,).
    """

    dims = 1

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(F.conv1d, input)


class Conv2d(_ConvNd):
    """Applies a 2D convolution to (N, in, H, W) or (in, H, W): see `functional.conv2d`.

    `weight` is (out, in / groups, kH, kW), `bias` (out,); both are initialised from U(-k, k), where
    k = 1 / sqrt(in / groups · kH · kW). `padding_mode` is "zeros" or a mode of `functional.pad`. Raises ShapeError
    unless `groups` divides both channel counts, ArgumentError for unknown options.

    >>> import minigrad as mg
    >>> layer = mg.nn.Conv2d(3, 16, 3, padding="same", padding_mode="reflect")
    >>> layer(mg.ones(2, 3, 8, 8)).shape
    (2, 16, 8, 8)
    """

    dims = 2

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(F.conv2d, input)


class _ConvTransposeNd(_ConvNd):
    """Base class of transposed convolutions. The order of arguments differs, and only zero padding is supported."""

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Ints = 1,
        padding_mode: str = "zeros",
        device: str | None = None,
        dtype: DType | None = None,
    ) -> None:
        name = type(self).__name__
        if padding_mode != "zeros" or isinstance(padding, str):
            raise ArgumentError(
                f'{name}: only "zeros" padding mode and int padding are supported, but got {padding_mode=}, {padding=}.'
            )
        settings = (stride, padding, dilation, groups, bias, padding_mode, device, dtype)
        super().__init__(in_channels, out_channels, kernel_size, *settings, output_padding=output_padding)


class ConvTranspose1d(_ConvTransposeNd):
    """Applies a 1D transposed convolution to (N, in, L) or (in, L): see `functional.conv_transpose1d`.

    `weight` is (in, out / groups, k), `bias` (out,).
    """

    dims = 1

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """Compute the output. `output_size` selects one of its possible sizes."""
        return self._transposed_forward(F.conv_transpose1d, input, output_size)


class ConvTranspose2d(_ConvTransposeNd):
    """Applies a 2D transposed convolution to (N, in, H, W) or (in, H, W): see `functional.conv_transpose2d`.

    `weight` is (in, out / groups, kH, kW), `bias` (out,).

    >>> import minigrad as mg
    >>> mg.nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1)(mg.ones(1, 4, 4, 4), output_size=(8, 8)).shape
    (1, 3, 8, 8)
    """

    dims = 2

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """Compute the output. `output_size`, (height, width), selects one of its possible sizes."""
        return self._transposed_forward(F.conv_transpose2d, input, output_size)
