"""Operations on shape, layout, dtype and device, which do not compute new values."""

from __future__ import annotations

from typing import Any

from minigrad.core.op import Op
from minigrad.core.views import replay
from minigrad.ops.elementwise import where

__all__ = [
    "as_strided",
    "as_strided_backward",
    "cat",
    "contiguous",
    "copy",
    "diagonal",
    "diagonal_backward",
    "expand",
    "flip",
    "index",
    "index_backward",
    "move",
    "overwrite",
    "pad",
    "permute",
    "pick",
    "repeat_interleave",
    "repeat_interleave_backward",
    "reshape",
    "roll",
    "sum_to",
    "to",
    "tril",
    "triu",
    "unfold",
    "unfold_backward",
]


# Broadcasting and summing over broadcast dimensions are adjoint.
sum_to: Op = Op(
    "sum_to",
    r"\sum {a}",
    vjp=(lambda g, a_shape: expand(g, shape=a_shape),),
    shown=(r"\operatorname{expand} {g}",),
    attrs=("shape",),
)
expand: Op = Op(
    "expand",
    r"\operatorname{expand}\left({a}, {shape}\right)",
    vjp=(lambda g, a_shape: sum_to(g, shape=a_shape),),
    shown=(r"\sum {g}",),
    attrs=("shape",),
    view=True,
)

# Returns a view if the strides allow it, otherwise a copy.
reshape: Op = Op(
    "reshape",
    r"\operatorname{reshape}\left({a}, {shape}\right)",
    vjp=(lambda g, a_shape: reshape(g, shape=a_shape),),
    shown=(r"\operatorname{reshape} {g}",),
    attrs=("shape",),
    view=True,
)
permute: Op = Op(
    "permute",
    r"\operatorname{permute}\left({a}, {dims}\right)",
    vjp=(lambda g, dims: permute(g, dims=tuple(sorted(range(len(dims)), key=dims.__getitem__))),),
    shown=(r"\operatorname{permute}^{-1} {g}",),
    attrs=("dims",),
    view=True,
)

# Basic indexing with ints, slices, None and `...`. The gradient of elements that are not selected is 0.
index: Op = Op(
    "index",
    "{a}_{key}",
    vjp=(lambda g, a_shape, key: index_backward(g, shape=a_shape, key=key),),
    shown=(r"\begin{cases} {g} & \text{selected} \\ 0 & \text{otherwise} \end{cases}",),
    attrs=("key",),
    view="part",
)
index_backward: Op = Op(
    "index_backward",
    r"\operatorname{put} {a}",
    vjp=(lambda g, key: index(g, key=key),),
    shown=("{g}_{key}",),
    attrs=("shape", "key"),
)

_DIAGONAL_ATTRS = ("offset", "dim1", "dim2")
diagonal: Op = Op(
    "diagonal",
    r"\operatorname{diag} {a}",
    vjp=(lambda g, a_shape, offset, dim1, dim2: diagonal_backward(g, a_shape, offset, dim1, dim2),),
    shown=(r"\operatorname{diag} {g}",),
    attrs=_DIAGONAL_ATTRS,
    view="part",
)
diagonal_backward: Op = Op(
    "diagonal_backward",
    r"\operatorname{diag} {a}",
    vjp=(lambda g, offset, dim1, dim2: diagonal(g, offset, dim1, dim2),),
    shown=(r"\operatorname{diag} {g}",),
    attrs=("shape", *_DIAGONAL_ATTRS),
)

# unfold returns windows of `size` along `dim`, one every `step` elements, in a new last dimension. Its adjoint sums
# overlapping windows.
_UNFOLD_ATTRS = ("dim", "size", "step")
unfold: Op = Op(
    "unfold",
    r"\operatorname{unfold} {a}",
    vjp=(lambda g, a_shape, dim, size, step: unfold_backward(g, a_shape, dim, size, step),),
    shown=(r"\operatorname{fold} {g}",),
    attrs=_UNFOLD_ATTRS,
    view=True,
)
unfold_backward: Op = Op(
    "unfold_backward",
    r"\operatorname{fold} {a}",
    vjp=(lambda g, dim, size, step: unfold(g, dim, size, step),),
    shown=(r"\operatorname{unfold} {g}",),
    attrs=("shape", *_UNFOLD_ATTRS),
)

# Returns a view of the memory of a with arbitrary strides. `own` contains the strides of a; `offset` is relative to the
# first element of a.
_AS_STRIDED_ATTRS = ("own", "size", "stride", "offset")
as_strided: Op = Op(
    "as_strided",
    r"\operatorname{strided} {a}",
    vjp=(lambda g, a_shape, own, size, stride, offset: as_strided_backward(g, a_shape, own, size, stride, offset),),
    shown=(r"\operatorname{strided}^\top {g}",),
    attrs=_AS_STRIDED_ATTRS,
    view=True,
)
as_strided_backward: Op = Op(
    "as_strided_backward",
    r"\operatorname{strided}^\top {a}",
    vjp=(lambda g, own, size, stride, offset: as_strided(g, own, size, stride, offset),),
    shown=(r"\operatorname{strided} {g}",),
    attrs=("shape", *_AS_STRIDED_ATTRS),
)

# --- copies ---

move: Op = Op(
    "move",
    "{a}",
    vjp=(lambda g, device, source: move(g, device=source, source=device),),
    attrs=("device", "source"),
)
contiguous = Op("contiguous", "{a}", vjp=(lambda g: g,))
flip: Op = Op(
    "flip",
    r"\operatorname{flip} {a}",
    vjp=(lambda g, dims: flip(g, dims=dims),),
    shown=(r"\operatorname{flip} {g}",),
    attrs=("dims",),
)
roll: Op = Op(
    "roll",
    r"\operatorname{roll} {a}",
    vjp=(lambda g, shifts, dims: roll(g, shifts=tuple(-by for by in shifts), dims=dims),),
    shown=(r"\operatorname{roll}^{-1} {g}",),
    attrs=("shifts", "dims"),
)
tril: Op = Op(
    "tril",
    r"\operatorname{tril} {a}",
    vjp=(lambda g, diagonal: tril(g, diagonal=diagonal),),
    shown=(r"\operatorname{tril} {g}",),
    attrs=("diagonal",),
)
triu: Op = Op(
    "triu",
    r"\operatorname{triu} {a}",
    vjp=(lambda g, diagonal: triu(g, diagonal=diagonal),),
    shown=(r"\operatorname{triu} {g}",),
    attrs=("diagonal",),
)


def _cat_rule(g: Any, slot: int, dim: int, sizes: tuple[int, ...]) -> Any:
    start = sum(sizes[:slot])
    return index(g, key=(slice(None),) * dim + (slice(start, start + sizes[slot]),))


# Concatenates the operands along `dim`. `sizes` contains their sizes in that dimension.
cat = Op(
    "cat", "{a}", vjp=(_cat_rule,), shown=(r"\operatorname{part}_{slot} {g}",), attrs=("dim", "sizes"), variadic=True
)

# `pads` contains (before, after) for each dimension. Negative padding crops, so the VJP pads by the negated amounts.
pad: Op = Op(
    "pad",
    r"\operatorname{pad} {a}",
    vjp=(lambda g, pads: pad(g, pads=tuple((-before, -after) for before, after in pads), value=0.0),),
    shown=(r"\operatorname{pad}^\top {g}",),
    attrs=("pads", "value"),
)

# Repeats each element along `dim`, by `repeats`, an int or one int per element. The adjoint sums the repetitions.
repeat_interleave: Op = Op(
    "repeat_interleave",
    r"\operatorname{repeat} {a}",
    vjp=(lambda g, a_shape, repeats, dim: repeat_interleave_backward(g, a_shape[dim], repeats, dim),),
    shown=(r"\sum_{\text{repeats}} {g}",),
    attrs=("repeats", "dim"),
)
repeat_interleave_backward: Op = Op(
    "repeat_interleave_backward",
    r"\sum_{\text{repeats}} {a}",
    vjp=(lambda g, repeats, dim: repeat_interleave(g, repeats, dim),),
    shown=(r"\operatorname{repeat} {g}",),
    attrs=("count", "repeats", "dim"),
)

to = Op("to", r"\operatorname{to}\left({a}, {dtype}\right)", vjp=(lambda g: g,), attrs=("dtype",))
# Copies b into a. In the graph a remains an operand, with gradient 0, as in PyTorch.
copy = Op("copy", "{b}", vjp=(lambda g: where(False, g, 0.0), lambda g: g))

# Selects one of several outputs of an op by index. The gradient is placed at that index of a tuple.
pick = Op(
    "pick",
    r"{a}_{\left[{index}\right]}",
    vjp=(lambda g, index, count: tuple(g if k == index else None for k in range(count)),),
    shown=(r"{g} \text{as output} {index}",),
    attrs=("index", "count"),
)


# Returns a copy of a in which b replaces the view that results from the view ops in `chain`. This is the functional
# form of an in-place write to a view. The copy has the strides of the base, `stride`, so that each op in `chain`
# returns a view.
overwrite: Op = Op(
    "overwrite",
    r"\operatorname{overwrite}\left({a}_{chain}, {b}\right)",
    vjp=(
        lambda g, chain, stride: overwrite(g, 0.0, chain=chain, stride=stride),
        lambda g, chain: replay(g, chain),
    ),
    shown=(
        r"\begin{cases} 0 & \text{overwritten} \\ {g} & \text{otherwise} \end{cases}",
        r"\operatorname{view} {g}",
    ),
    attrs=("chain", "stride"),
)
