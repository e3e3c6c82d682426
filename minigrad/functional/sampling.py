"""Sampling images at points, with PyTorch's signatures: what spatial transformers are made of.

Jaderberg et al., "Spatial Transformer Networks", 2015. The coordinates x, to the right, and y, downwards, go from -1 to
1 over the image: from edge to edge, or with `align_corners` between the centres of the corner pixels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, cast

from minigrad import ops
from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.core.registry import register
from minigrad.core.shapes import numel
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_option, check_same_type, floats_of, shaped


@register
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return a grid of points over images of `size`, each transformed by a matrix of `theta`.

    Of images (N, C, H, W) and `theta` (N, 2, 3) the result is (N, H, W, 2), of volumes (N, C, D, H, W) and (N, 3, 4)
    it is (N, D, H, W, 3). It holds (x, y) = theta @ (column, row, 1), or (x, y, z), all from -1 to 1 (eq. 1): where
    `grid_sample` is to look for that element. `align_corners` is False by default. Raises ShapeError and DTypeError.

    >>> import minigrad as mg
    >>> mirror = mg.tensor([[[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> mg.functional.affine_grid(mirror, (1, 1, 1, 2)).tolist()
    [[[[0.5, 0.0], [-0.5, 0.0]]]]
    """
    floats_of(theta, "affine_grid", "theta")
    if len(size) not in (4, 5) or min(size) < 1:
        raise ShapeError(
            f"affine_grid: size={tuple(size)} is neither (N, C, H, W) nor (N, C, D, H, W), each 1 or more."
        )
    space = len(size) - 2
    if theta.shape != (size[0], space, space + 1):
        raise ShapeError(
            f"affine_grid: theta has shape {theta.shape}, and size={tuple(size)} needs {(size[0], space, space + 1)}."
        )
    matrix = theta[(slice(None), *[None] * space)]
    moved = matrix[..., space]
    for k in range(space):  # x first, which runs along the last dimension
        n = size[-1 - k]
        along = theta.new_tensor(_spaced(n, bool(align_corners))).reshape(n, *[1] * (k + 1))
        moved = moved + along * matrix[..., k]
    return moved


@register
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Sample images `input` (N, C, H, W) at the points (x, y) of `grid` (N, rows, columns, 2): (N, C, rows, columns).

    Volumes (N, C, D, H, W) go with points (x, y, z), (N, depth, rows, columns, 3). mode "bilinear" mixes the pixels at
    the corners around a point (eq. 5; eight of a volume), "nearest" takes the nearest, "bicubic" (images only) mixes
    sixteen by Keys' kernel with a = -0.75, IEEE Trans. ASSP 29, 1981. Off the image `padding_mode` "zeros" finds
    zeros, "border" the pixel at the edge, "reflection" what a mirror at the edge shows: at the middle of the corner
    pixels with `align_corners`, else (the default) at their outer edge. Gradients go to the images and, but for
    "nearest", to the points (eq. 6 and 7); they are PyTorch's, and can be differentiated again.

    A point at nan gives nan with "zeros" and bilinear, else the first pixel's row or column, as in PyTorch, and no
    gradient. Raises ArgumentError for other modes, DTypeError, and ShapeError.

    >>> import minigrad as mg
    >>> image = mg.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> mg.functional.grid_sample(image, mg.tensor([[[[0.0, 0.0], [0.5, -0.5]]]])).tolist()
    [[[[2.5, 2.0]]]]
    """
    check_option(mode, ("bilinear", "nearest", "bicubic"), "grid_sample", "mode")
    check_option(padding_mode, ("zeros", "border", "reflection"), "grid_sample", "padding_mode")
    check_same_type("grid_sample", input=floats_of(input, "grid_sample"), grid=grid)
    if input.ndim not in (4, 5) or 0 in input.shape[2:]:
        raise ShapeError(
            f"grid_sample: input has shape {input.shape}, and is to be (N, C, H, W) or (N, C, D, H, W), not empty."
        )
    if grid.ndim != input.ndim or grid.shape[0] != input.shape[0] or grid.shape[-1] != input.ndim - 2:
        asked = "rows, columns, 2" if input.ndim == 4 else "depth, rows, columns, 3"
        raise ShapeError(
            f"grid_sample: grid has shape {grid.shape}, where ({input.shape[0]}, {asked}) is asked, for input "
            f"{input.shape}."
        )
    if mode == "bicubic" and input.ndim == 5:
        raise ArgumentError("grid_sample: bicubic is of images (N, C, H, W), and input has five dimensions.")
    sizes, aligned = input.shape[:1:-1], bool(align_corners)
    points = [_unnormalised(grid[..., k], n, aligned) for k, n in enumerate(sizes)]
    if mode == "bicubic":
        return _mixed(input, [_cubic_taps(at, n, padding_mode, aligned) for at, n in zip(points, sizes, strict=True)])
    points = [_inside(at, n, padding_mode, aligned) for at, n in zip(points, sizes, strict=True)]
    if input.ndim == 4:
        return cast(Tensor, ops.grid_sample(input, *points, nearest=mode == "nearest"))
    flat = [shaped(at, (at.shape[0], at.shape[1], numel(at.shape[2:]))) for at in points]
    found = _mixed(input, [_linear_taps(at, mode == "nearest") for at in flat])
    return shaped(found, (*input.shape[:2], *grid.shape[1:-1]))


Taps = list[tuple[Tensor, Tensor | float]]
"""Along one dimension the pixels that a point is mixed from: where each is, a whole number, and its weight."""


def _linear_taps(at: Tensor, nearest: bool) -> Taps:
    if nearest:
        return [(ops.round(at.detach()), 1.0)]
    left = ops.floor(at.detach())
    return [(left, left + 1.0 - at), (left + 1.0, at - left)]


def _cubic_taps(at: Tensor, n: int, padding_mode: str, align_corners: bool) -> Taps:
    left = ops.floor(at.detach())
    t = at - left
    u, a = 1.0 - t, -0.75
    weights = [
        a * t * u * u,
        ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0,
        ((a + 2.0) * u - (a + 3.0)) * u * u + 1.0,
        a * u * t * t,
    ]
    return [(_inside(left + (k - 1.0), n, padding_mode, align_corners), weight) for k, weight in enumerate(weights)]


def _mixed(input: Tensor, taps: list[Taps]) -> Tensor:
    """The sum over all combinations of pixels, one along each dimension, of the products of their weights."""
    height = input.shape[-2]
    rows, columns = numel(input.shape[2:-1]), input.shape[-1]
    image = shaped(input, (*input.shape[:2], rows, columns))
    total: Any = 0.0
    for combination in itertools.product(*taps):
        (x, y, *depth), weights = zip(*combination, strict=True)
        for z in depth:  # planes lie below one another in one image
            y = ops.where(ops.logical_and(y >= 0.0, y < float(height)), y + z * float(height), -1.0)
        found = ops.grid_sample(image, x, y, nearest=True)
        factor = math.prod(weights)
        total = total + (found if isinstance(factor, float) else found * factor[:, None])
    return cast(Tensor, total)


def _spaced(n: int, align_corners: bool) -> list[float]:
    """The coordinates of `n` pixels in a row."""
    last = n - 1 if align_corners else n
    return [(2 * k - (n - 1)) / max(last, 1) for k in range(n)]


def _unnormalised(at: Tensor, n: int, align_corners: bool) -> Tensor:
    """The coordinates `at`, from -1 to 1 along a dimension of `n` pixels, counted in pixels."""
    return 0.5 * (n - 1) * (at + 1.0) if align_corners else 0.5 * (n * (at + 1.0) - 1.0)


def _inside(at: Tensor, n: int, padding_mode: str, align_corners: bool) -> Tensor:
    """Coordinates in pixels, those outside brought inside as `padding_mode` does."""
    if padding_mode == "zeros":
        return at
    if padding_mode == "reflection":
        low, span = (0.0, n - 1.0) if align_corners else (-0.5, float(n))
        way = ops.remainder(ops.where(at < low, low - at, at - low), 2.0 * span)  # to the far edge and back
        at = low + ops.where(way < span, way, 2.0 * span - way)
    # The gradient at the border is 0, as in PyTorch; nan is brought to the first pixel.
    return cast(Tensor, ops.where(at > 0.0, ops.where(at < n - 1.0, at, n - 1.0), 0.0))
