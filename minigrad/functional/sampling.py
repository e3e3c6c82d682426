"""Image sampling at grid points, for spatial transformers, with PyTorch's signatures.

Jaderberg et al., "Spatial Transformer Networks", 2015. The coordinates x (right) and y (down) are normalised to [-1, 1]
over the image: between its edges, or with `align_corners` between the centres of the corner pixels.
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
from minigrad.functional.checks import check_floating, check_option, check_same_dtype, reshape_to


@register
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return a sampling grid for images of `size`, given a batch of affine matrices `theta`.

    Images (N, C, H, W) and `theta` (N, 2, 3) give (N, H, W, 2); volumes (N, C, D, H, W) and (N, 3, 4) give
    (N, D, H, W, 3). The grid contains the points (x, y) = theta @ (column, row, 1), or (x, y, z), in normalised
    coordinates (eq. 1), for `grid_sample`. `align_corners` defaults to False. Raises ShapeError for
    other shapes, and DTypeError unless `theta` is floating point.

    >>> import minigrad as mg
    >>> mirror = mg.tensor([[[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> mg.functional.affine_grid(mirror, (1, 1, 1, 2)).tolist()
    [[[[0.5, 0.0], [-0.5, 0.0]]]]
    """
    check_floating(theta, "affine_grid", "theta")
    if len(size) not in (4, 5) or min(size) < 1:
        raise ShapeError(
            f"affine_grid: expected a positive size (N, C, H, W) or (N, C, D, H, W), but got {tuple(size)}."
        )
    space = len(size) - 2
    if theta.shape != (size[0], space, space + 1):
        raise ShapeError(
            f"affine_grid: expected theta of shape {(size[0], space, space + 1)} for size={tuple(size)}, but got "
            f"{theta.shape}."
        )
    matrix = theta[(slice(None), *[None] * space)]
    points = matrix[..., space]
    for k in range(space):  # x comes first and varies along the last dimension
        n = size[-1 - k]
        coordinates = theta.new_tensor(_normalised_coordinates(n, bool(align_corners))).reshape(n, *[1] * (k + 1))
        points = points + coordinates * matrix[..., k]
    return points


@register
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Sample images `input` (N, C, H, W) at the points (x, y) of `grid` (N, H_out, W_out, 2), as (N, C, H_out, W_out).

    For volumes (N, C, D, H, W), `grid` contains points (x, y, z), (N, D_out, H_out, W_out, 3). `mode` "bilinear"
    interpolates between the neighbouring pixels (eq. 5; trilinear for volumes), "nearest" selects the nearest, and
    "bicubic" (images only) uses Keys' kernel with a = -0.75, IEEE Trans. ASSP 29, 1981. Outside the image,
    `padding_mode` "zeros" reads zeros, "border" the edge pixel, and "reflection" mirrors the image at the centres of
    the corner pixels if `align_corners`, else (the default) at its edges. Gradients, as in PyTorch, flow to `input`
    and, unless "nearest", to `grid` (eq. 6 and 7); higher orders are supported.

    A nan coordinate gives nan for "zeros" with bilinear, else reads the first row or column, as in PyTorch, and gets no
    gradient. Raises ArgumentError for other modes, DTypeError for other dtypes, and ShapeError for other shapes.

    >>> import minigrad as mg
    >>> image = mg.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> mg.functional.grid_sample(image, mg.tensor([[[[0.0, 0.0], [0.5, -0.5]]]])).tolist()
    [[[[2.5, 2.0]]]]
    """
    check_option(mode, ("bilinear", "nearest", "bicubic"), "grid_sample", "mode")
    check_option(padding_mode, ("zeros", "border", "reflection"), "grid_sample", "padding_mode")
    check_same_dtype("grid_sample", input=check_floating(input, "grid_sample"), grid=grid)
    if input.ndim not in (4, 5) or 0 in input.shape[2:]:
        raise ShapeError(
            f"grid_sample: expected a non-empty input (N, C, H, W) or (N, C, D, H, W), but got {input.shape}."
        )
    if grid.ndim != input.ndim or grid.shape[0] != input.shape[0] or grid.shape[-1] != input.ndim - 2:
        expected = "H_out, W_out, 2" if input.ndim == 4 else "D_out, H_out, W_out, 3"
        raise ShapeError(
            f"grid_sample: expected grid of shape ({input.shape[0]}, {expected}) for input {input.shape}, but got "
            f"{grid.shape}."
        )
    if mode == "bicubic" and input.ndim == 5:
        raise ArgumentError("grid_sample: bicubic interpolation only supports 4-d input, but got 5-d.")
    sizes, aligned = input.shape[:1:-1], bool(align_corners)
    points = [_to_pixels(grid[..., k], n, aligned) for k, n in enumerate(sizes)]
    if mode == "bicubic":
        return _interpolate(
            input, [_cubic_taps(at, n, padding_mode, aligned) for at, n in zip(points, sizes, strict=True)]
        )
    points = [_apply_padding_mode(at, n, padding_mode, aligned) for at, n in zip(points, sizes, strict=True)]
    if input.ndim == 4:
        return cast(Tensor, ops.grid_sample(input, *points, nearest=mode == "nearest"))
    flat_points = [reshape_to(at, (at.shape[0], at.shape[1], numel(at.shape[2:]))) for at in points]
    sampled = _interpolate(input, [_linear_taps(at, mode == "nearest") for at in flat_points])
    return reshape_to(sampled, (*input.shape[:2], *grid.shape[1:-1]))


Taps = list[tuple[Tensor, Tensor | float]]
"""Pixels between which a point is interpolated along one dimension, as pairs of coordinate and weight. Coordinates are
integers stored as floats."""


def _linear_taps(coordinate: Tensor, nearest: bool) -> Taps:
    if nearest:
        return [(ops.round(coordinate.detach()), 1.0)]
    left = ops.floor(coordinate.detach())
    return [(left, left + 1.0 - coordinate), (left + 1.0, coordinate - left)]


def _cubic_taps(coordinate: Tensor, n: int, padding_mode: str, align_corners: bool) -> Taps:
    left = ops.floor(coordinate.detach())
    t = coordinate - left
    u, a = 1.0 - t, -0.75
    weights = [
        a * t * u * u,
        ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0,
        ((a + 2.0) * u - (a + 3.0)) * u * u + 1.0,
        a * u * t * t,
    ]
    return [
        (_apply_padding_mode(left + (k - 1.0), n, padding_mode, align_corners), weight)
        for k, weight in enumerate(weights)
    ]


def _interpolate(input: Tensor, taps: list[Taps]) -> Tensor:
    """Sum the pixels over all combinations of one tap per dimension, weighted by the product of their weights."""
    height = input.shape[-2]
    rows, columns = numel(input.shape[2:-1]), input.shape[-1]
    image = reshape_to(input, (*input.shape[:2], rows, columns))
    total: Any = 0.0
    for combination in itertools.product(*taps):
        (x, y, *depth), weights = zip(*combination, strict=True)
        for z in depth:  # `image` stacks the planes of a volume vertically
            y = ops.where(ops.logical_and(y >= 0.0, y < float(height)), y + z * float(height), -1.0)
        pixels = ops.grid_sample(image, x, y, nearest=True)
        weight = math.prod(weights)
        total = total + (pixels if isinstance(weight, float) else pixels * weight[:, None])
    return cast(Tensor, total)


def _normalised_coordinates(n: int, align_corners: bool) -> list[float]:
    """Return the coordinates of `n` pixels along a dimension, normalised to [-1, 1]."""
    last = n - 1 if align_corners else n
    return [(2 * k - (n - 1)) / max(last, 1) for k in range(n)]


def _to_pixels(coordinate: Tensor, n: int, align_corners: bool) -> Tensor:
    """Convert coordinates normalised to [-1, 1] to pixel coordinates along a dimension of `n` pixels."""
    return 0.5 * (n - 1) * (coordinate + 1.0) if align_corners else 0.5 * (n * (coordinate + 1.0) - 1.0)


def _apply_padding_mode(coordinate: Tensor, n: int, padding_mode: str, align_corners: bool) -> Tensor:
    """Map pixel coordinates outside the image into it, according to `padding_mode`."""
    if padding_mode == "zeros":
        return coordinate
    if padding_mode == "reflection":
        low, span = (0.0, n - 1.0) if align_corners else (-0.5, float(n))
        # One period covers the image in both directions.
        reflected = ops.remainder(ops.where(coordinate < low, low - coordinate, coordinate - low), 2.0 * span)
        coordinate = low + ops.where(reflected < span, reflected, 2.0 * span - reflected)
    # The gradient at the border is 0, as in PyTorch; nan maps to the first pixel.
    return cast(Tensor, ops.where(coordinate > 0.0, ops.where(coordinate < n - 1.0, coordinate, n - 1.0), 0.0))
