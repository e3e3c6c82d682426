"""Rearrange the channels of images, with PyTorch's signatures: `pixel_shuffle`, `channel_shuffle` and inverses."""

from __future__ import annotations

from minigrad.core.errors import ShapeError
from minigrad.core.registry import register
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_tensor, reshape_to


@register
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Rearrange (…, C r², H, W) to (…, C, H r, W r), where r is `upscale_factor`. Shi et al. 2016, eq. 4.

    Raises ShapeError if the channels are not divisible by r².
    """
    r = _check_factor("pixel_shuffle", "upscale_factor", input, upscale_factor)
    *batch, channels, height, width = input.shape
    if channels % (r * r):
        raise ShapeError(
            f"pixel_shuffle: expected channels divisible by {r * r}, but got {channels} in shape {input.shape}."
        )
    x = input.reshape(*batch, channels // (r * r), r, r, height, width)
    return x.movedim((-4, -3), (-3, -1)).reshape(*batch, channels // (r * r), height * r, width * r)


@register
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Rearrange (…, C, H r, W r) to (…, C r², H, W), the inverse of `pixel_shuffle`.

    Raises ShapeError if height or width is not divisible by r.
    """
    r = _check_factor("pixel_unshuffle", "downscale_factor", input, downscale_factor)
    *batch, channels, height, width = input.shape
    if height % r or width % r:
        raise ShapeError(f"pixel_unshuffle: expected height and width divisible by {r}, but got shape {input.shape}.")
    x = input.reshape(*batch, channels, height // r, r, width // r, r)
    return x.movedim((-3, -1), (-4, -3)).reshape(*batch, channels * r * r, height // r, width // r)


def _check_factor(name: str, argument: str, input: Tensor, factor: int) -> int:
    if check_tensor(input, name).ndim < 3 or factor < 1:
        raise ShapeError(
            f"{name}: expected input (…, C, H, W) and {argument} >= 1, but got {input.shape} and {factor}."
        )
    return factor


@register
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleave `groups` groups of channels of (N, C, …): the first channel of each group, then the second, and so on.

    Zhang, Zhou, Lin, Sun 2018, "ShuffleNet". Raises ShapeError if C is not divisible by `groups`.
    """
    x = check_tensor(input, "channel_shuffle")
    if x.ndim < 3 or groups < 1 or x.shape[1] % groups:
        raise ShapeError(f"channel_shuffle: expected (N, C, …) with C divisible by groups={groups}, but got {x.shape}.")
    interleaved = reshape_to(x, (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])).transpose(1, 2)
    return interleaved.reshape(x.shape)
