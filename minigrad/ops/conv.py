"""Convolution and its kin: operations on images (N, C, H, W). In one dimension an image has one row.

What deep learning calls convolution is correlation: a window goes over the image, unflipped, and each place of the
result is the product of weights and window, summed. See Dumoulin and Visin, "A guide to convolution arithmetic for
deep learning", 2016, for the sizes.
"""

from __future__ import annotations

from typing import NamedTuple

from minigrad.core.op import Op
from minigrad.ops.reduce import sum

__all__ = ["Window", "col2im", "conv2d", "conv2d_input", "conv2d_weight", "im2col"]


class Window(NamedTuple):
    """How a window goes over an image, each for rows and for columns."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]  # zeros before and after; what is below 0 is cut off
    dilation: tuple[int, ...]  # from one place that the window sees to the next


# Each is linear in either operand, and what it gives an operand is one of the others. So every order is closed.
_HOW = ("window", "groups")
conv2d: Op = Op(
    "conv2d",
    r"\operatorname{conv}\left({a}, {b}\right)",
    inputs=("a", "b", "bias"),
    vjp=(
        lambda g, b, a_shape, window, groups: conv2d_input(g, b, shape=a_shape, window=window, groups=groups),
        lambda g, a, window, groups: conv2d_weight(g, a, window=window, groups=groups),
        lambda g: sum(g, dim=(0, 2, 3), keepdim=False),
    ),
    shown=(
        r"\operatorname{spread}\left({g}, {b}\right)",
        r"\operatorname{correlate}\left({g}, {a}\right)",
        r"\sum {g}",
    ),
    attrs=_HOW,
)

# The gradient of the images, of `shape`, from that of the result, a, and the weights, b. It spreads each number over
# the window that it came from: the transposed convolution.
conv2d_input: Op = Op(
    "conv2d_input",
    r"\operatorname{spread}\left({a}, {b}\right)",
    vjp=(
        lambda g, b, window, groups: conv2d(g, b, None, window=window, groups=groups),
        lambda g, a, window, groups: conv2d_weight(a, g, window=window, groups=groups),
    ),
    shown=(
        r"\operatorname{conv}\left({g}, {b}\right)",
        r"\operatorname{correlate}\left({a}, {g}\right)",
    ),
    attrs=("shape", *_HOW),
)

# The gradient of the weights, from that of the result, a, and the images, b.
conv2d_weight: Op = Op(
    "conv2d_weight",
    r"\operatorname{correlate}\left({a}, {b}\right)",
    vjp=(
        lambda g, b, window, groups: conv2d(b, g, None, window=window, groups=groups),
        lambda g, a, b_shape, window, groups: conv2d_input(a, g, shape=b_shape, window=window, groups=groups),
    ),
    shown=(
        r"\operatorname{conv}\left({b}, {g}\right)",
        r"\operatorname{spread}\left({a}, {g}\right)",
    ),
    attrs=_HOW,
)

# The windows as columns (N, C kH kW, places), and columns added up where their windows lie in images of `shape`.
im2col: Op = Op(
    "im2col",
    r"\operatorname{im2col} {a}",
    vjp=(lambda g, a_shape, window: col2im(g, shape=a_shape, window=window),),
    shown=(r"\operatorname{col2im} {g}",),
    attrs=("window",),
)
col2im: Op = Op(
    "col2im",
    r"\operatorname{col2im} {a}",
    vjp=(lambda g, window: im2col(g, window=window),),
    shown=(r"\operatorname{im2col} {g}",),
    attrs=("shape", "window"),
)
