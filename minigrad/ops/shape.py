"""Operations on shapes and types: how numbers are arranged, not what they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minigrad.op import Op

__all__ = [
    "copy",
    "expand",
    "index",
    "index_backward",
    "overwrite",
    "permute",
    "pick",
    "replay",
    "reshape",
    "sum_to",
    "to",
]

Chain = tuple[tuple[Op, Mapping[str, Any]], ...]

expand: Op
index: Op
index_backward: Op
overwrite: Op
permute: Op
reshape: Op
sum_to: Op
to: Op

# Broadcasting and its undoing are each other's derivative.
sum_to = Op("sum_to", r"\sum {a}", vjp=(lambda g, a_shape: expand(g, shape=a_shape),), attrs=("shape",))
expand = Op("expand", "{a}", vjp=(lambda g, a_shape: sum_to(g, shape=a_shape),), attrs=("shape",), view=True)

reshape = Op("reshape", "{a}", vjp=(lambda g, a_shape: reshape(g, shape=a_shape),), attrs=("shape",))
permute = Op(
    "permute",
    "{a}",
    vjp=(lambda g, dims: permute(g, dims=tuple(sorted(range(len(dims)), key=dims.__getitem__))),),
    attrs=("dims",),
    view=True,
)

# Basic indexing, with ints, slices, None and …; what it leaves out gets no gradient.
index = Op(
    "index",
    "{a}",
    vjp=(lambda g, a_shape, key: index_backward(g, shape=a_shape, key=key),),
    attrs=("key",),
    view=True,
)
index_backward = Op("index_backward", "{a}", vjp=(lambda g, key: index(g, key=key),), attrs=("shape", "key"))

to = Op("to", "{a}", vjp=(lambda g: g,), attrs=("dtype",))
copy = Op("copy", "{b}", vjp=(None, lambda g: g))

# One of several outputs of an op, by number: its gradient goes to that place of a tuple.
pick = Op(
    "pick",
    "{a}",
    vjp=(lambda g, index, count: tuple(g if k == index else None for k in range(count)),),
    attrs=("index", "count"),
)


def replay(x: Any, chain: Chain) -> Any:
    """The view of `x` that a chain of view operations leads to."""
    for op, attrs in chain:
        x = op(x, **attrs)
    return x


# A copy of a, with b in place of the view of it that `chain` leads to: what a write through a view is, in the graph.
overwrite = Op(
    "overwrite",
    "{a}",
    vjp=(lambda g, chain: overwrite(g, 0.0, chain=chain), lambda g, chain: replay(g, chain)),
    attrs=("chain",),
)
