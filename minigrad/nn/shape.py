"""Layers that rearrange or pad tensors, without parameters."""

from __future__ import annotations

from typing import Any

from minigrad import functional as F
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import Ints, to_int_tuple
from minigrad.nn.function_module import UnaryFunctionModule
from minigrad.nn.module import Module

__all__ = [
    "ChannelShuffle",
    "CircularPad1d",
    "CircularPad2d",
    "ConstantPad1d",
    "ConstantPad2d",
    "Flatten",
    "Fold",
    "PixelShuffle",
    "PixelUnshuffle",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "Unflatten",
    "Unfold",
    "ZeroPad1d",
    "ZeroPad2d",
]


class ChannelShuffle(UnaryFunctionModule, of="channel_shuffle"):
    """Interleaves the channels of (N, C, …) across `groups`: see `functional.channel_shuffle`."""

    def __init__(self, groups: int) -> None:
        super().__init__(groups=groups)


class Flatten(UnaryFunctionModule, of="flatten"):
    """Flattens dimensions `start_dim` to `end_dim` into one; by default all but the batch dimension."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__(start_dim=start_dim, end_dim=end_dim)


class Unflatten(Module):
    """Expands dimension `dim` into dimensions of sizes `unflattened_size`."""

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Unfold(UnaryFunctionModule, of="unfold"):
    """Extracts sliding blocks of a batch of images as columns: see `functional.unfold`."""

    def __init__(self, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> None:
        super().__init__(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)


class Fold(UnaryFunctionModule, of="fold"):
    """Sums columns of overlapping blocks into images: see `functional.fold`."""

    def __init__(
        self, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
    ) -> None:
        options: Any = {"dilation": dilation, "padding": padding, "stride": stride}
        super().__init__(output_size=output_size, kernel_size=kernel_size, **options)


class PixelShuffle(UnaryFunctionModule, of="pixel_shuffle"):
    """Rearranges (…, C r², H, W) to (…, C, H r, W r), where r is `upscale_factor`. Shi et al. 2016."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__(upscale_factor=upscale_factor)


class PixelUnshuffle(UnaryFunctionModule, of="pixel_unshuffle"):
    """Rearranges (…, C, H r, W r) to (…, C r², H, W), where r is `downscale_factor`."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__(downscale_factor=downscale_factor)


class _PadNd(Module):
    """Base class of layers that pad the last `dims` dimensions by `functional.pad`."""

    dims: int
    mode: str

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = to_int_tuple(padding, 2 * self.dims, type(self).__name__, "padding", -(2**63))

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    mode = "constant"

    def __init__(self, padding: Ints, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads (…, L) with `value`, by `padding` elements on both sides or (left, right)."""

    dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads (…, H, W) with `value`, by `padding` elements on all sides or (left, right, top, bottom)."""

    dims = 2


class ZeroPad1d(_PadNd):
    """Pads (…, L) with zeros, by `padding` elements on both sides or (left, right)."""

    dims, mode = 1, "constant"


class ZeroPad2d(_PadNd):
    """Pads (…, H, W) with zeros, by `padding` elements on all sides or (left, right, top, bottom)."""

    dims, mode = 2, "constant"


class ReflectionPad1d(_PadNd):
    """Pads (…, L) by reflection, by `padding` elements on both sides or (left, right)."""

    dims, mode = 1, "reflect"


class ReflectionPad2d(_PadNd):
    """Pads (…, H, W) by reflection, by `padding` elements on all sides or (left, right, top, bottom)."""

    dims, mode = 2, "reflect"


class ReplicationPad1d(_PadNd):
    """Pads (…, L) by replicating the edge, by `padding` elements on both sides or (left, right)."""

    dims, mode = 1, "replicate"


class ReplicationPad2d(_PadNd):
    """Pads (…, H, W) by replicating the edge, by `padding` elements on all sides or (left, right, top, bottom)."""

    dims, mode = 2, "replicate"


class CircularPad1d(_PadNd):
    """Pads (…, L) circularly, by `padding` elements on both sides or (left, right)."""

    dims, mode = 1, "circular"


class CircularPad2d(_PadNd):
    """Pads (…, H, W) circularly, by `padding` elements on all sides or (left, right, top, bottom)."""

    dims, mode = 2, "circular"
