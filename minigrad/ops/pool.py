"""Pooling and resizing. Both look at windows: which numbers of a line each number of the result is made from.

A line's windows are ranges of places, one a result: what padding, stride, dilation and rounding came to. Averages and
resizing are linear in each dimension alone, so that one op, `resample`, does them all, and is its own derivative.
"""

from __future__ import annotations

from typing import Any

from minigrad.core.op import Op
from minigrad.core.shapes import Shape

__all__ = ["max_pool", "min_pool", "pick_at", "put_at", "resample"]


def _pool_rule(g: Any, y1: Any, a_shape: Shape, windows: tuple[Any, ...]) -> Any:
    return put_at(g[0], y1, shape=a_shape, dims=len(windows))


# The extremes over windows, one line of them for each of the last dimensions; and their places, counted in these
# dimensions together. Nan is both. Of equal numbers it is the first that gets the gradient.
max_pool = Op(
    "max_pool", r"\max {a}", vjp=(_pool_rule,), shown=(r"\sum_{\text{chosen}} {g}",), attrs=("windows",), outputs=2
)
min_pool = Op(
    "min_pool", r"\min {a}", vjp=(_pool_rule,), shown=(r"\sum_{\text{chosen}} {g}",), attrs=("windows",), outputs=2
)

# The numbers of a at the places b, counted in its last `dims` dimensions together; and a, added up there among zeros.
pick_at: Op = Op(
    "pick_at",
    "{a}_{b}",
    vjp=(lambda g, a_shape, b, dims: put_at(g, b, shape=a_shape, dims=dims), None),
    shown=(
        r"\sum_{\text{taken}} {g}",
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

# A matrix times each line along `dim`, or with `back` its transpose. A row of the matrix is (places, weights), and
# `size` its length; what is not at one of the places has weight 0 and is not looked at, be it inf or nan.
resample: Op = Op(
    "resample",
    "W {a}",
    vjp=(lambda g, rows, dim, size, back: resample(g, rows=rows, dim=dim, size=size, back=not back),),
    shown=(r"W^\top {g}",),
    attrs={"rows": ..., "dim": ..., "size": ..., "back": False},
    precedence=Op.PRODUCT,
)
