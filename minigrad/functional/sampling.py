"""Sampling images at points, with PyTorch's signatures: what spatial transformers are made of.

Jaderberg et al., "Spatial Transformer Networks", 2015. The coordinates x, to the right, and y, downwards, go from -1 to
1 over the image: from edge to edge, or with `align_corners` between the centres of the corner pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from minigrad import ops
from minigrad._tensor import Tensor
from minigrad.errors import ShapeError
from minigrad.functional.checks import check_option, check_same_type, floats_of

__all__ = ["METHODS", "affine_grid", "grid_sample"]


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The points of a grid over an image of `size` (N, C, H, W), each moved by a matrix of `theta`, (N, 2, 3).

    The result, (N, H, W, 2), holds (x, y) = theta @ (column, row, 1), all from -1 to 1 (eq. 1): where `grid_sample` is
    to look for the pixel of that row and column. `align_corners` is False by default. Raises ShapeError and DTypeError.

    >>> import minigrad as mg
    >>> mirror = mg.tensor([[[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> mg.functional.affine_grid(mirror, (1, 1, 1, 2)).tolist()
    [[[[0.5, 0.0], [-0.5, 0.0]]]]
    """
    floats_of(theta, "affine_grid", "theta")
    if len(size) != 4 or min(size) < 1:
        raise ShapeError(
            f"affine_grid: size={tuple(size)} is not the size (N, C, H, W) of images, each 1 or more; grids over "
            "volumes are not here."
        )
    batch, _, height, width = size
    if theta.shape != (batch, 2, 3):
        raise ShapeError(
            f"affine_grid: theta has shape {theta.shape}, but size={tuple(size)} asks for {(batch, 2, 3)}."
        )
    columns, rows = [theta.new_tensor(_spaced(n, bool(align_corners))) for n in (width, height)]
    matrix = theta[:, None, None]
    return columns[:, None] * matrix[..., 0] + rows[:, None, None] * matrix[..., 1] + matrix[..., 2]


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The images `input`, (N, C, H, W), at the points (x, y) in `grid`, (N, rows, columns, 2): (N, C, rows, columns).

    mode "bilinear" mixes the four pixels around a point (eq. 5), "nearest" takes the nearest. Off the image
    `padding_mode` "zeros" finds zeros, "border" the pixel at the edge, "reflection" what a mirror at the edge shows: at
    the middle of the corner pixels with `align_corners`, else (the default) at their outer edge. Gradients go to the
    images and, but for "nearest", to the points (eq. 6 and 7); they are PyTorch's, and can be differentiated again.

    A point at nan gives nan with "zeros" and bilinear, else the first pixel's row or column, as in PyTorch, and no
    gradient. Raises ArgumentError for other modes, DTypeError, and ShapeError.

    >>> import minigrad as mg
    >>> image = mg.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> mg.functional.grid_sample(image, mg.tensor([[[[0.0, 0.0], [0.5, -0.5]]]])).tolist()
    [[[[2.5, 2.0]]]]
    """
    check_option(mode, ("bilinear", "nearest"), "grid_sample", "mode")
    check_option(padding_mode, ("zeros", "border", "reflection"), "grid_sample", "padding_mode")
    check_same_type("grid_sample", input=floats_of(input, "grid_sample"), grid=grid)
    if input.ndim != 4 or 0 in input.shape[2:]:
        raise ShapeError(
            f"grid_sample: input has shape {input.shape}, where images (N, C, H, W), not empty, are asked."
        )
    if grid.ndim != 4 or grid.shape[0] != input.shape[0] or grid.shape[3] != 2:
        raise ShapeError(
            f"grid_sample: grid has shape {grid.shape}, where ({input.shape[0]}, rows, columns, 2) is asked, for input "
            f"{input.shape}."
        )
    height, width = input.shape[2:]
    x, y = [_pixels(grid[..., k], n, padding_mode, bool(align_corners)) for k, n in enumerate((width, height))]
    return cast(Tensor, ops.grid_sample(input, x, y, nearest=mode == "nearest"))


def _spaced(n: int, align_corners: bool) -> list[float]:
    """The coordinates of `n` pixels in a row."""
    last = n - 1 if align_corners else n
    return [(2 * k - (n - 1)) / max(last, 1) for k in range(n)]


def _pixels(at: Tensor, n: int, padding_mode: str, align_corners: bool) -> Tensor:
    """The coordinates `at` along a dimension of `n` pixels, counted in pixels and brought inside."""
    at = 0.5 * (n - 1) * (at + 1.0) if align_corners else 0.5 * (n * (at + 1.0) - 1.0)
    if padding_mode == "zeros":
        return at
    if padding_mode == "reflection":
        low, span = (0.0, n - 1.0) if align_corners else (-0.5, float(n))
        way = ops.remainder(ops.where(at < low, low - at, at - low), 2.0 * span)  # to the far edge and back
        at = low + ops.where(way < span, way, 2.0 * span - way)
    # The slope at the border is 0, as in PyTorch; nan is brought to the first pixel.
    return cast(Tensor, ops.where(at > 0.0, ops.where(at < n - 1.0, at, n - 1.0), 0.0))


METHODS: dict[str, Callable[..., Any]] = {}  # as in PyTorch, tensors have none
