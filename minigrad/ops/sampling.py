"""Bilinear image sampling: Jaderberg et al., "Spatial Transformer Networks", 2015, section 3.3.

Images are (N, C, H, W), points (N, rows, columns) in pixel coordinates: x from the left, y from the top, with 0 at the
centre of the first pixel. Pixels outside of the image are zero. Elementwise operations convert normalised coordinates
and apply the padding mode.
"""

from __future__ import annotations

from typing import Any

from minigrad.core.op import Op
from minigrad.ops.elementwise import floor, where
from minigrad.ops.reduce import sum

__all__ = ["grid_put", "grid_sample"]


def _coordinate_grad(g: Any, image: Any, x: Any, y: Any, nearest: bool, along_x: bool) -> Any:
    """Return the derivative of ``sum(g * grid_sample(image, x, y))`` over channels with respect to x or y.

    It is interpolated between the pixel differences along two opposite sides of the cell of four pixels that contains
    the point (eq. 6 and 7).
    """
    if nearest:
        return where(False, x, 0.0)
    left, top = floor(x), floor(y)

    def difference(side: float) -> Any:
        ends = [(end, side) if along_x else (side, end) for end in (0.0, 1.0)]
        low, high = [grid_sample(image, left + dx, top + dy, nearest=True) for dx, dy in ends]
        return sum(g * (high - low), dim=(1,), keepdim=False)

    fraction = y - top if along_x else x - left
    return (1.0 - fraction) * difference(0.0) + fraction * difference(1.0)


# Samples the image a at the points (b, c), by bilinear interpolation between the four neighbouring pixels (eq. 5), or
# from the `nearest` pixel.
grid_sample: Op = Op(
    "grid_sample",
    r"{a}\left({b}, {c}\right)",
    vjp=(
        lambda g, a_shape, b, c, nearest: grid_put(g, b, c, shape=a_shape, nearest=nearest),
        lambda g, a, b, c, nearest: _coordinate_grad(g, a, b, c, nearest, True),
        lambda g, a, b, c, nearest: _coordinate_grad(g, a, b, c, nearest, False),
    ),
    shown=(
        r"\operatorname{spread}\left({g}, {b}, {c}\right)",
        r"\sum {g} \cdot \frac{\partial {y}}{\partial {b}}",
        r"\sum {g} \cdot \frac{\partial {y}}{\partial {c}}",
    ),
    attrs=("nearest",),
)
# The adjoint of grid_sample for the image. Accumulates the values a at the points (b, c) into an image of `shape`.
grid_put: Op = Op(
    "grid_put",
    r"{a}\left({b}, {c}\right)",
    vjp=(
        lambda g, b, c, nearest: grid_sample(g, b, c, nearest=nearest),
        lambda g, a, b, c, nearest: _coordinate_grad(a, g, b, c, nearest, True),
        lambda g, a, b, c, nearest: _coordinate_grad(a, g, b, c, nearest, False),
    ),
    shown=(
        r"{g}\left({b}, {c}\right)",
        r"\sum {a} \cdot \frac{\partial {g}\left({b}, {c}\right)}{\partial {b}}",
        r"\sum {a} \cdot \frac{\partial {g}\left({b}, {c}\right)}{\partial {c}}",
    ),
    attrs=("shape", "nearest"),
)
