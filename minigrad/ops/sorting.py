"""Sorting along one dimension: numbers and the indices they came from, to which their gradients go back."""

from __future__ import annotations

from typing import Any

from minigrad.layout import Shape
from minigrad.op import Op
from minigrad.ops.indexing import scatter_add

__all__ = ["sort", "topk"]


def _back(g: Any, index: Any, shape: Shape, dim: int) -> Any:
    return scatter_add(None, index, g[0], dim=dim, shape=shape)


sort = Op(
    "sort",
    r"\operatorname{sort} {a}",
    vjp=(lambda g, y1, a_shape, dim: _back(g, y1, a_shape, dim),),
    attrs={"dim": ..., "descending": False},
    outputs=2,
)
topk = Op(
    "topk",
    r"\operatorname{topk} {a}",
    vjp=(lambda g, y1, a_shape, dim: _back(g, y1, a_shape, dim),),
    attrs={"k": ..., "dim": ..., "largest": True},
    outputs=2,
)
