"""Modules that arrange numbers otherwise, or add some at the edges; they learn nothing."""

from __future__ import annotations

from typing import Any

from minigrad import functional as F
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import Ints, ints_of
from minigrad.nn.applied import AppliedToInput
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


class ChannelShuffle(AppliedToInput, of="channel_shuffle"):
    """The channels of (N, C, …) dealt out anew, one of each of `groups` in turn: `functional.channel_shuffle`."""

    def __init__(self, groups: int) -> None:
        super().__init__(groups=groups)


class Flatten(AppliedToInput, of="flatten"):
    """The dimensions `start_dim` to `end_dim` as one: by default all but the batch."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__(start_dim=start_dim, end_dim=end_dim)


class Unflatten(Module):
    """Dimension `dim` as several, of sizes `unflattened_size`."""

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Unfold(AppliedToInput, of="unfold"):
    """The windows of images as columns: `functional.unfold`."""

    def __init__(self, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> None:
        super().__init__(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)


class Fold(AppliedToInput, of="fold"):
    """Images in which columns are added up where their windows lie: `functional.fold`."""

    def __init__(
        self, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
    ) -> None:
        more: Any = {"dilation": dilation, "padding": padding, "stride": stride}
        super().__init__(output_size=output_size, kernel_size=kernel_size, **more)


class PixelShuffle(AppliedToInput, of="pixel_shuffle"):
    """Channels as pixels: (…, C r², H, W) to (…, C, H r, W r), r the `upscale_factor`. Shi et al. 2016."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__(upscale_factor=upscale_factor)


class PixelUnshuffle(AppliedToInput, of="pixel_unshuffle"):
    """Pixels as channels: (…, C, H r, W r) to (…, C r², H, W), r the `downscale_factor`."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__(downscale_factor=downscale_factor)


class _Pad(Module):
    """More places at the edges of the last `dims` dimensions, as `functional.pad` makes them."""

    dims: int
    mode: str

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = ints_of(padding, 2 * self.dims, type(self).__name__, "padding", -(2**63))

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    mode = "constant"

    def __init__(self, padding: Ints, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """`value` at the edges: `padding` places, or (left, right)."""

    dims = 1


class ConstantPad2d(_ConstantPad):
    """`value` at the edges: `padding` places, or (left, right, top, bottom)."""

    dims = 2


class ZeroPad1d(_Pad):
    """Zeros at the edges: `padding` places, or (left, right)."""

    dims, mode = 1, "constant"


class ZeroPad2d(_Pad):
    """Zeros at the edges: `padding` places, or (left, right, top, bottom)."""

    dims, mode = 2, "constant"


class ReflectionPad1d(_Pad):
    """A mirror at the edges: `padding` places, or (left, right)."""

    dims, mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """A mirror at the edges: `padding` places, or (left, right, top, bottom)."""

    dims, mode = 2, "reflect"


class ReplicationPad1d(_Pad):
    """The edge number, repeated, at the edges: `padding` places, or (left, right)."""

    dims, mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """The edge number, repeated, at the edges: `padding` places, or (left, right, top, bottom)."""

    dims, mode = 2, "replicate"


class CircularPad1d(_Pad):
    """What is at the other edge at the edges: `padding` places, or (left, right)."""

    dims, mode = 1, "circular"


class CircularPad2d(_Pad):
    """What is at the other edge at the edges: `padding` places, or (left, right, top, bottom)."""

    dims, mode = 2, "circular"
