"""Sorting along one dimension, which returns values and indices. The gradient is scattered to the indices."""

from __future__ import annotations

from typing import Any

from minigrad.core.op import Op
from minigrad.core.shapes import Shape
from minigrad.ops.indexing import scatter_add

__all__ = ["sort", "topk"]


def _sort_rule(g: Any, y1: Any, a_shape: Shape, dim: int) -> Any:
    return scatter_add(None, y1, g[0], dim=dim, shape=a_shape)


sort = Op(
    "sort",
    r"\operatorname{sort} {a}",
    vjp=(_sort_rule,),
    shown=(r"\operatorname{sort}^{-1} {g}",),
    attrs={"dim": ..., "descending": False},
    outputs=2,
)
topk = Op(
    "topk",
    r"\operatorname{topk} {a}",
    vjp=(_sort_rule,),
    shown=(r"\begin{cases} {g} & \text{selected} \\ 0 & \text{otherwise} \end{cases}",),
    attrs={"k": ..., "dim": ..., "largest": True},
    outputs=2,
)
