"""Operations that read, accumulate or overwrite elements by an index b of non-negative ints.

There are two families. In `gather`, `scatter_add` and `scatter`, b has as many dimensions as a and replaces the
coordinate along `dim`. In `index_select`, `index_add` and `index_copy`, b selects slices of a, and may have any number
of dimensions, which replace `dim`. Each family has an operation to read, to accumulate and to overwrite; reading and
accumulating are adjoint.

If a is None, `scatter_add` and `index_add` accumulate into zeros of `shape`.
"""

from __future__ import annotations

from typing import Any

from minigrad.core.op import Op
from minigrad.core.shapes import Shape
from minigrad.ops.elementwise import eq, where
from minigrad.ops.shape import reshape

__all__ = [
    "embedding",
    "gather",
    "index_add",
    "index_copy",
    "index_select",
    "last",
    "nonzero",
    "scatter",
    "scatter_add",
]


# Returns whether each element of b is the last occurrence of its value along `dim`, or in all of b if `dim` is None. Of
# several writes to a position, the last takes effect.
last = Op("last", r"\operatorname{last} {b}", inputs=("b",), vjp=(None,), attrs={"dim": None})

# --- b replaces the coordinate along `dim` ---

gather: Op = Op(
    "gather",
    r"{a}_{\left[{b}\right]}",
    vjp=(lambda g, a_shape, b, dim: scatter_add(None, b, g, dim=dim, shape=a_shape), None),
    shown=(
        r"\operatorname{scatter-add}\left(0, {b}, {g}\right)",
        None,
    ),
    attrs=("dim",),
)
scatter_add: Op = Op(
    "scatter_add",
    r"\operatorname{scatter-add}\left({a}, {b}, {c}\right)",
    vjp=(lambda g: g, None, lambda g, b, dim: gather(g, b, dim=dim)),
    shown=(
        "{g}",
        None,
        r"{g}_{\left[{b}\right]}",
    ),
    attrs={"dim": ..., "shape": None},
)
scatter: Op = Op(
    "scatter",
    r"\operatorname{scatter}\left({a}, {b}, {c}\right)",
    vjp=(
        lambda g, b, dim: scatter(g, b, 0.0, dim=dim),
        None,
        lambda g, b, dim: where(last(b, dim=dim), gather(g, b, dim=dim), 0.0),
    ),
    shown=(
        r"\begin{cases} 0 & \text{overwritten} \\ {g} & \text{otherwise} \end{cases}",
        None,
        r"\begin{cases} {g}_{\left[{b}\right]} & \text{written last} \\ 0 & \text{otherwise} \end{cases}",
    ),
    attrs=("dim",),
)


# --- b selects slices along `dim` ---


def _index_copy_rule(g: Any, b: Any, dim: int) -> Any:
    is_last_write = reshape(last(b), shape=(*b.shape, *(1,) * (g.ndim - dim - 1)))
    return where(is_last_write, index_select(g, b, dim=dim), 0.0)


index_select: Op = Op(
    "index_select",
    r"{a}_{\left[{b}\right]}",
    vjp=(lambda g, a_shape, b, dim: index_add(None, b, g, dim=dim, shape=a_shape), None),
    shown=(
        r"\operatorname{index-add}\left(0, {b}, {g}\right)",
        None,
    ),
    attrs=("dim",),
)
index_add: Op = Op(
    "index_add",
    r"\operatorname{index-add}\left({a}, {b}, {c}\right)",
    vjp=(lambda g: g, None, lambda g, b, dim: index_select(g, b, dim=dim)),
    shown=(
        "{g}",
        None,
        r"{g}_{\left[{b}\right]}",
    ),
    attrs={"dim": ..., "shape": None},
)
index_copy: Op = Op(
    "index_copy",
    r"\operatorname{index-copy}\left({a}, {b}, {c}\right)",
    vjp=(
        lambda g, b, dim: index_copy(g, b, 0.0, dim=dim),
        None,
        _index_copy_rule,
    ),
    shown=(
        r"\begin{cases} 0 & \text{overwritten} \\ {g} & \text{otherwise} \end{cases}",
        None,
        r"\begin{cases} {g}_{\left[{b}\right]} & \text{written last} \\ 0 & \text{otherwise} \end{cases}",
    ),
    attrs=("dim",),
)


def _embedding_rule(g: Any, a_shape: Shape, b: Any, padding_idx: int | None, by_freq: bool) -> Any:
    if by_freq:  # divide by the number of look-ups of each row
        unit_counts = where(reshape(eq(b, -1), shape=(*b.shape, 1)), g, 1.0)
        g = g / index_select(index_add(None, b, unit_counts, dim=0, shape=a_shape), b, dim=0)
    if padding_idx is not None:
        g = where(reshape(eq(b, padding_idx), shape=(*b.shape, 1)), 0.0, g)
    return index_add(None, b, g, dim=0, shape=a_shape)


# Looks up rows of a. The row at padding_idx receives no gradient. Every other row receives the sum of the gradients of
# its look-ups, or their mean if by_freq.
embedding = Op(
    "embedding",
    r"{a}_{\left[{b}\right]}",
    vjp=(_embedding_rule, None),
    shown=(
        (
            r"\begin{cases} 0 & \text{padding} \\ "
            r"\operatorname{index-add}\left(0, {b}, {g}\right) & \text{otherwise} \end{cases}"
        ),
        None,
    ),
    attrs={"padding_idx": None, "by_freq": False},
)

nonzero = Op("nonzero", r"\operatorname{nonzero} {a}", vjp=(None,))
