"""Convolution, its gradients and im2col, for images (N, C, H, W). A 1-d convolution uses images with one row.

As usual in deep learning, "convolution" means cross-correlation: the kernel is not flipped. See Dumoulin and Visin, "A
guide to convolution arithmetic for deep learning", 2016, for the sizes.
"""

from __future__ import annotations

from typing import NamedTuple

from minigrad.core.op import Op
from minigrad.ops.reduce import sum

__all__ = ["Window", "col2im", "conv2d", "conv2d_input", "conv2d_weight", "im2col"]


class Window(NamedTuple):
    """Parameters of a sliding window, each with one value for rows and one for columns."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]  # number of zeros before and after; negative padding crops
    dilation: tuple[int, ...]  # distance between neighbouring elements of the window


# conv2d, conv2d_input and conv2d_weight are bilinear. The VJPs of each are the other two, so derivatives of every order
# are available.
_CONV_ATTRS = ("window", "groups")
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
    attrs=_CONV_ATTRS,
)

# The VJP of conv2d for its input, which has the shape `shape`. a is the upstream gradient, b the weight. The VJP is a
# transposed convolution.
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
    attrs=("shape", *_CONV_ATTRS),
)

# The VJP of conv2d for its weight. a is the upstream gradient, b the input.
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
    attrs=_CONV_ATTRS,
)

# im2col unfolds windows to columns (N, C kH kW, L). Its adjoint, col2im, accumulates columns into images of `shape`.
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
