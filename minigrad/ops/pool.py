"""Pooling and resizing over windows.

The windows of a dimension are index ranges, one per output element, with padding, stride, dilation and rounding already
applied. Average pooling and resizing are separable and linear, so one op, `resample`, computes both, and its VJP is
`resample` with the transposed matrix.
"""

from __future__ import annotations

from typing import Any

from minigrad.core.op import Op
from minigrad.core.shapes import Shape

__all__ = ["max_pool", "min_pool", "pick_at", "put_at", "resample"]


def _max_pool_rule(g: Any, y1: Any, a_shape: Shape, windows: tuple[Any, ...]) -> Any:
    return put_at(g[0], y1, shape=a_shape, dims=len(windows))


# Returns the extremes over `windows`, a list of windows for each of the last dimensions, and the flat indices of the
# extremes in these dimensions. Nan propagates. The first of equal extremes receives the gradient.
max_pool = Op(
    "max_pool",
    r"\max {a}",
    vjp=(_max_pool_rule,),
    shown=(r"\sum_{\text{selected}} {g}",),
    attrs=("windows",),
    outputs=2,
)
min_pool = Op(
    "min_pool",
    r"\min {a}",
    vjp=(_max_pool_rule,),
    shown=(r"\sum_{\text{selected}} {g}",),
    attrs=("windows",),
    outputs=2,
)

# pick_at reads a at the flat indices b into its last `dims` dimensions. Its adjoint, put_at, accumulates a into zeros.
pick_at: Op = Op(
    "pick_at",
    "{a}_{b}",
    vjp=(lambda g, a_shape, b, dims: put_at(g, b, shape=a_shape, dims=dims), None),
    shown=(
        r"\sum_{\text{selected}} {g}",
        None,
    ),
    attrs=("dims",),
)
put_at: Op = Op(
    "put_at",
    r"\operatorname{put}\left({a}, {b}\right)",
    vjp=(lambda g, b, dims: pick_at(g, b, dims=dims), None),
    shown=(
        "{g}_{b}",
        None,
    ),
    attrs=("shape", "dims"),
)

# Multiplies along `dim` by a sparse matrix, or by its transpose if `back`. A row of the matrix is (indices, weights)
# and has length `size`. Elements without a weight are not read, so inf and nan do not propagate.
resample: Op = Op(
    "resample",
    "W {a}",
    vjp=(lambda g, rows, dim, size, back: resample(g, rows=rows, dim=dim, size=size, back=not back),),
    shown=(r"W^\top {g}",),
    attrs={"rows": ..., "dim": ..., "size": ..., "back": False},
    precedence=Op.PRODUCT,
)
