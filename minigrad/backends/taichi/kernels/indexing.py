"""Kernels that take numbers by index, put them or add them up there, and the indices of what is not 0.

All but `nonzero` are one walk (`walked`), through an array of places, of what is read and of what is written: along one
dimension, `dim`, an index says where one of the two stands. Two numbers meet in one place only along `dim`. So what
writes goes through that dimension in order, one number after the other, and shares out the others among the cores: of
numbers put to one place the last stays there, and those added up there are added in their order, every time.
"""

from __future__ import annotations

from functools import cache, lru_cache
from math import gcd, prod
from typing import Any, NamedTuple

import numpy as np

from minigrad.backends.numpy import shape as views
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.walks import collapsed
from minigrad.backends.taichi.codegen.walks import stretched as strides_of
from minigrad.backends.taichi.kernels.elementwise import arange, computed, filled, fitting, pointer
from minigrad.backends.taichi.kernels.reduction import reduced
from minigrad.backends.taichi.kernels.segments import walked_by_places
from minigrad.backends.taichi.kernels.shape import in_rows
from minigrad.backends.taichi.runtime.array import DEVICE, empty, like
from minigrad.backends.taichi.runtime.checks import doubt, look_at, settle
from minigrad.backends.taichi.runtime.kernel import compiled
from minigrad.core.dispatch import kernel, kernels_of
from minigrad.core.errors import ShapeError

__all__: list[str] = []

Shape = tuple[int, ...]

STEPS = {"take": "y_[{y}] = x_[{x} + far]", "put": "y_[{y} + far] = x_[{x}]"}
ADD = "y_[{y} + far] = ti.cast(y_[{y} + far] {sign} x_[{x}], ti.{type})"
ADD_VECTORS = "y_[{y} + far] = y_[{y} + far] + x_[{x}]"
WORDS = {1: "uint8", 4: "int32", 8: "int64"}  # numbers that are only moved are so many bytes, whatever they mean
LINE = 64  # bytes of a line of the cache
VECTORS = 64, 16  # bytes that are moved at once where numbers lie so: of sixteen floats, or of four
PIECE = 4096  # so many numbers at once, of what may be shared out along all dimensions
BLOCKS = 16  # into so many is the last dimension divided, where the one of the index is not


class _Laid(NamedTuple):
    """How an array lies in memory."""

    shape: Shape
    strides: Shape
    itemsize: int
    ndim: int


def walked(step: str, y: Any, x: Any, b: Any, shape: Shape, dim: int) -> None:
    """Take from `x` into `y` at the index `b`, or put or add `x` into `y` there.

    `shape` is that of the walk, to which b and the array without index are broadcast. The other may be larger.
    Raises ShapeError for an index that is out of range; nothing is read or written outside.
    """
    if not prod(shape):
        return
    given = pointer(y), pointer(x)
    aligned = gcd(LINE, given[0][0], given[1][0]) if source.VECTORIZED else 1
    laid = [_Laid(one.shape, one.strides, one.itemsize, one.ndim) for one in (y, x, b)]
    launch, unit, numbers = _plan(step, y.dtype, b.dtype, *laid, shape, dim, aligned)
    size = (x if step == "take" else y).shape[dim]
    complaint = ShapeError, "an index is out of range: dimension {} has size {}", dim, size
    look_at(b, size, *complaint)
    wrong = doubt(*complaint)
    if step != "take" and not source.VECTORIZED:
        walked_by_places(step, y, x, b, shape, dim, wrong)
        return
    launch(*[(at[0], at[2] // unit, *at[2:]) for at in given], pointer(b), pointer(wrong), *numbers)
    settle(wrong, *complaint)


class _Walk(NamedTuple):
    """Sizes, and the steps in memory of y, x and the index, along the outer dimensions, the index's, and the last."""

    outer: list[int]
    outer_steps: list[list[int]]
    places: int
    steps: list[int]
    inner: int
    inner_steps: list[int]
    along: int


@lru_cache(maxsize=4096)
def _plan(
    step: str, dtype: Any, index: Any, y: _Laid, x: _Laid, b: _Laid, shape: Shape, dim: int, aligned: int
) -> tuple[Any, int, tuple[int, ...]]:
    """The kernel for arrays that lie so, the bytes of what it moves at once, and its numbers."""
    target = x if step == "take" else y
    whole = [by // target.itemsize for by in target.strides]
    along, whole[dim] = whole[dim], 0
    steps = [whole if one is target else strides_of(one, shape) for one in (y, x)] + [strides_of(b, shape)]
    rest = [k for k in range(len(shape)) if k != dim]
    sizes, walks = collapsed([shape[k] for k in rest], [[by[k] for k in rest] for by in steps])
    nested = any(n != 1 for n in shape[dim + 1 :])
    inner, inner_steps = (sizes[-1], [walk[-1] for walk in walks]) if nested else (1, [0, 0, 0])
    if nested:
        sizes, walks = (sizes[:-1], [walk[:-1] for walk in walks]) if len(sizes) > 1 else ([1], [[0], [0], [0]])
    walk = _Walk(sizes, walks, shape[dim], [by[dim] for by in steps], inner, inner_steps, along)
    kind, unit = dtype.name if step == "add" else WORDS[y.itemsize], y.itemsize
    for width in VECTORS:
        if aligned % width == 0 and (step != "add" or kind == "float32") and _in_vectors(walk, width // unit):
            walk, kind, unit = _by_vectors(walk, width // unit), f"vector{width // 4}", width
            break
    serial = prod(shape) * target.itemsize // unit <= source.SERIAL
    lines = nested and walk.inner_steps[2] == 0
    made = _kernel(step, kind, index.name, len(walk.outer), nested, lines, serial)
    return made, unit, _numbers(step, walk, LINE // unit, target.shape[dim])


def _in_vectors(walk: _Walk, unit: int) -> bool:
    """Whether the numbers lie so that `unit` of them can be moved at once."""
    moves = [walk.inner, *walk.outer_steps[0], *walk.outer_steps[1], *walk.steps[:2], walk.along]
    return walk.inner_steps == [1, 1, 0] and not any(by % unit for by in moves)


def _by_vectors(walk: _Walk, unit: int) -> _Walk:
    y, x, b = walk.outer_steps
    outer = [[by // unit for by in y], [by // unit for by in x], b]
    steps = [walk.steps[0] // unit, walk.steps[1] // unit, walk.steps[2]]
    return walk._replace(outer_steps=outer, steps=steps, inner=walk.inner // unit, along=walk.along // unit)


def _numbers(step: str, walk: _Walk, least: int, size: int) -> tuple[int, ...]:
    """What the kernel is told of sizes and steps, and of how the work is divided: by `least` numbers or more."""
    lines, length, width = prod(walk.outer), walk.places, walk.inner
    if step == "take":
        piece = PIECE if source.VECTORIZED else 1
        length, width = min(length, max(1, piece // width)), min(width, piece)
    elif lines < BLOCKS:
        width = max(-(-width // BLOCKS), min(width, least))
    pieces, blocks = -(-walk.places // length), -(-walk.inner // width)
    steps = zip(walk.outer_steps, walk.steps, walk.inner_steps, strict=True)
    ends = [by for outer, own, inner in steps for by in (*outer, own, inner)]
    return (lines, pieces, length, blocks, width, walk.places, walk.inner, size, walk.along, *ends, *walk.outer)


@cache
def _kernel(step: str, dtype: str, index: str, outer: int, nested: bool, lines: bool, serial: bool) -> Any:
    """The walk for such numbers, with so many outer dimensions, and one within that of the index where `nested`.

    Where an index is for `lines` of numbers along that one, it is read once for each.
    """
    dims = range(outer)
    vector = dtype.removeprefix("vector")
    kind = source.TI.get(dtype) or f"types.vector({vector}, ti.f32)"
    body = STEPS.get(step) or (ADD_VECTORS if vector != dtype else ADD)
    sign = "|" if dtype == "bool" else "+"
    numbers = ["lines", "pieces", "length", "blocks", "width", "count", "inner", "size", "along"]
    numbers += [by for a in "yxb" for by in (*[f"{a}{k}" for k in dims], f"{a}k", f"{a}j")] + [f"n{k}" for k in dims]
    arguments = [f"{a}_: ti.types.ndarray(dtype=ti.{kind}, ndim=1)" for a in "yx"]
    arguments += [f"b_: {source.array_of(index)}", f"wrong_: {source.array_of('int32')}"]
    arguments += [f"{name}: ti.i32" for name in numbers]
    split = [f"        i{k} = rest % n{k}\n        rest = rest // n{k}\n" for k in reversed(dims) if k]
    first = [f"{' + '.join(f'i{k} * {a}{k}' for k in dims)} + piece * length * {a}k\n" for a in "yxb"]
    near = [f"        {a}{'_k' if nested else ''} = {at}" for a, at in zip("yxb", first, strict=True)]
    if nested:
        walk = _nested(lines, body.format(y="y_k + j * y_by", x="x_k + j * x_by", sign=sign, type=kind))
    else:
        walk = _asked(12, "b", body.format(y="y", x="x", sign=sign, type=kind))
        walk += "".join(f"            {a} += {a}_by\n" for a in "yxb")
    step_of = "j" if nested else "k"
    each = (
        "        i = t\n        block = i % blocks\n        piece = i // blocks % pieces\n"
        f"        rest = i // blocks // pieces\n{''.join(split)}        i0 = rest\n{''.join(near)}"
        f"        y_by, x_by, b_by, index_by, end = y{step_of}, x{step_of}, b{step_of}, along, size\n"
        "        for k in range(piece * length, ti.min(piece * length + length, count)):\n"
        + walk
        + "".join(f"            {a}_k += {a}k\n" for a in ("yxb" if nested else ""))
    )
    loop = source.spread("lines * pieces * blocks", each, serial)
    text = f"@ti.kernel\ndef {step}_along_kernel(\n    {', '.join(arguments)}\n):\n{loop}"
    return compiled(f"{step}_along", text, "aaaa" + "i" * len(numbers))


def _asked(indent: int, place: str, then: str) -> str:
    """What is done with the index at a place, where that is in range; else it is noted."""
    lines = [f"asked = b_[{place}]", "far = ti.cast(asked, ti.i32) * index_by", "if (asked >= 0) & (asked < end):"]
    lines += [*[f"    {line}" for line in then.splitlines()], "else:", "    wrong_[0] = 1"]
    return "".join(f"{' ' * indent}{line}\n" for line in lines)


def _nested(lines: bool, body: str) -> str:
    """A body for each j of a block, with an index each or one for all."""
    loop = "for j in range(block * width, ti.min(block * width + width, inner)):\n"
    if lines:
        return _asked(12, "b_k", f"{loop}    {body}\n")
    return f"            {loop}{_asked(16, 'b_k + j * b_by', body)}"


def _as(x: Any, dtype: Any) -> Any:
    """Numbers, or one, as an array of `dtype`. Raises OverflowError for an int that does not fit."""
    if isinstance(x, np.ndarray):
        return x if x.dtype == dtype else computed("to", "a", (x,), dtype)
    return filled((), dtype, fitting(x, np.dtype(dtype)))


def _into(a: Any, shape: Shape | None, dtype: Any) -> Any:
    """A copy of `a`, or zeros of `shape` where that is given."""
    return kernels_of("contiguous")[DEVICE](a) if shape is None else filled(shape, dtype)


def _index(b: Any, dim: int, ndim: int) -> Any:
    """An index into slices as one that is read along `dim`."""
    b = b if b.ndim == 1 else kernels_of("reshape")[DEVICE](b, shape=(b.size,))
    return b.reshape(*(1,) * dim, b.size, *(1,) * (ndim - dim - 1))


def _slices(step: str, y: Any, x: Any, b: Any, dim: int) -> None:
    """`walked` with an index into slices; x, where it is put or added, has its dimensions in place of `dim`."""
    target = x if step == "take" else y
    shape = (*target.shape[:dim], b.size, *target.shape[dim + 1 :])
    if step == "take":
        y = y.reshape(shape)
    elif b.ndim != 1 and x.size != 1:
        whole = np.broadcast_to(x, (*y.shape[:dim], *b.shape, *y.shape[dim + 1 :]), subok=True)
        x = kernels_of("reshape")[DEVICE](whole, shape=shape)
    elif x.size == 1:
        x = x.reshape(())
    walked(step, y, x, _index(b, dim, len(shape)), shape, dim)


# --- lines ---


@kernel("gather", DEVICE)
def gather(a: Any, b: Any, *, dim: int) -> Any:
    out = empty(b.shape, a.dtype)
    walked("take", out, a, b, b.shape, dim)
    return out


@kernel("scatter", DEVICE)
def scatter(a: Any, b: Any, c: Any, *, dim: int) -> Any:
    out = _into(a, None, a.dtype)
    walked("put", out, _as(c, a.dtype), b, b.shape, dim)
    return out


@kernel("scatter_add", DEVICE)
def scatter_add(a: Any, b: Any, c: Any, *, dim: int, shape: Shape | None) -> Any:
    out = _into(a, shape, c.dtype)
    walked("add", out, _as(c, out.dtype), b, b.shape, dim)
    return out


@kernel("pick_along", DEVICE)
def pick_along(a: Any, b: Any, *, dim: int, keepdim: bool) -> Any:
    found = gather(a, b if keepdim else np.expand_dims(b, dim), dim=dim)
    return found if keepdim else found.reshape(b.shape)


@kernel("put_along", DEVICE)
def put_along(a: Any, b: Any, *, shape: Shape, dim: int, keepdim: bool) -> Any:
    out = filled(shape, a.dtype)
    if not keepdim:
        a, b = np.expand_dims(a, dim), np.expand_dims(b, dim)
    walked("put", out, a, b, b.shape, dim)
    return out


@kernel("pick_at", DEVICE)
def pick_at(a: Any, b: Any, *, dims: int) -> Any:
    lead = a.shape[: a.ndim - dims]
    lines = kernels_of("reshape")[DEVICE](a, shape=(*lead, prod(a.shape[a.ndim - dims :])))
    at = kernels_of("reshape")[DEVICE](b, shape=(*lead, prod(b.shape[b.ndim - dims :])))
    return gather(lines, at, dim=len(lead)).reshape(b.shape)


@kernel("put_at", DEVICE)
def put_at(a: Any, b: Any, *, shape: Shape, dims: int) -> Any:
    lead = shape[:-dims]
    of = (*lead, prod(b.shape[b.ndim - dims :]))
    given, at = [kernels_of("reshape")[DEVICE](x, shape=of) for x in (a, b)]
    if source.VECTORIZED and prod(of) and prod(shape[-dims:]):
        return _put_on_planes(given, at, shape, prod(lead), of[-1])
    return scatter_add(None, at, given, dim=len(lead), shape=(*lead, prod(shape[-dims:]))).reshape(shape)


def _put_on_planes(given: Any, at: Any, shape: Shape, planes: int, count: int) -> Any:
    """The same where a core takes whole planes: one number after the other, as they are in memory."""
    out = empty(shape, given.dtype)
    complaint = ShapeError, "an index is out of range: a plane has {} places", out.size // planes
    wrong = doubt(*complaint)
    arrays = (out, in_rows(given), in_rows(at), wrong)
    made = compiled("put_on_planes", *_on_planes(given.dtype.name, at.dtype.name, given.size <= source.SERIAL))
    made(*map(pointer, arrays), planes, count, out.size // planes)
    settle(wrong, *complaint)
    return out


@cache
def _on_planes(dtype: str, index: str, serial: bool) -> tuple[str, str]:
    body = f"""        for k in range(t * size, t * size + size):
            y_[k] = ti.cast(0, ti.{source.TI[dtype]})
        for k in range(t * count, t * count + count):
            place = ti.cast(at_[k], ti.i32)
            if (at_[k] >= 0) & (at_[k] < size):
                y_[t * size + place] = ti.cast(y_[t * size + place] + x_[k], ti.{source.TI[dtype]})
            else:
                wrong_[0] = 1
"""
    text = f"""@ti.kernel
def put_on_planes_kernel(
    y_: {source.array_of(dtype)}, x_: {source.array_of(dtype)}, at_: {source.array_of(index)},
    wrong_: {source.array_of("int32")}, planes: ti.i32, count: ti.i32, size: ti.i32
):
{source.spread("planes", body, serial)}"""
    return text, "aaaaiii"


# --- slices ---


@kernel("index_select", DEVICE)
def index_select(a: Any, b: Any, *, dim: int) -> Any:
    out = empty((*a.shape[:dim], *b.shape, *a.shape[dim + 1 :]), a.dtype)
    _slices("take", out, a, b, dim)
    return out


@kernel("embedding", DEVICE)
def embedding(a: Any, b: Any, *, padding_idx: int | None, by_freq: bool) -> Any:
    return index_select(a, b, dim=0)


@kernel("index_add", DEVICE)
def index_add(a: Any, b: Any, c: Any, *, dim: int, shape: Shape | None) -> Any:
    out = _into(a, shape, c.dtype)
    _slices("add", out, _as(c, out.dtype), b, dim)
    return out


@kernel("index_copy", DEVICE)
def index_copy(a: Any, b: Any, c: Any, *, dim: int, out: Any = None) -> Any:
    given = _as(c, a.dtype)
    if out is None:
        out = _into(a, None, a.dtype)
    else:  # what is read must not be what is written
        b, given = [kernels_of("contiguous")[DEVICE](x) if np.may_share_memory(x, out) else x for x in (b, given)]
    _slices("put", out, given, b, dim)
    return out


@kernel("repeat_interleave", DEVICE)
def repeat_interleave(a: Any, *, repeats: Any, dim: int) -> Any:
    return index_select(a, _repeated(repeats, a.shape[dim]), dim=dim)


@kernel("repeat_interleave_backward", DEVICE)
def repeat_interleave_backward(a: Any, *, count: int, repeats: Any, dim: int) -> Any:
    if not isinstance(repeats, int):
        return index_add(
            None, _repeated(repeats, count), a, dim=dim, shape=(*a.shape[:dim], count, *a.shape[dim + 1 :])
        )
    parts = kernels_of("reshape")[DEVICE](a, shape=(*a.shape[:dim], count, repeats, *a.shape[dim + 1 :]))
    return reduced("sum", "sum", "a", (parts,), (dim + 1,), False, a.dtype)


def _repeated(repeats: Any, count: int) -> Any:
    """0 to `count`, each as often as `repeats` says: an int, or one for each."""
    if not isinstance(repeats, int):
        return like(np.repeat(np.arange(count), repeats))
    return computed("repeated", "i // by", (), np.int64, empty((count * repeats,), np.int64), {"by": repeats})


@kernel("as_strided_backward", DEVICE)
def as_strided_backward(a: Any, *, shape: Shape, own: Shape, size: Shape, stride: Shape, offset: int) -> Any:
    start, count = views.span(shape, own)
    memory = filled((count,), a.dtype)
    by = tuple([step * 8 for step in stride])
    places = views.arranged(arange(count), size, by, (start + offset) * 8).view(memory.__class__)
    order, apart = _apart(size, stride)
    of = (prod([size[k] for k in order[:apart]]), prod([size[k] for k in order[apart:]]))
    given, at = [kernels_of("reshape")[DEVICE](x.transpose(order), shape=of) for x in (a, places)]
    walked("add", np.broadcast_to(memory, (of[0], count), subok=True), given, at, of, 1)
    out = views.arranged(memory, shape, tuple([step * a.itemsize for step in own]), start * a.itemsize)
    return kernels_of("contiguous")[DEVICE](out.view(memory.__class__))


def _apart(size: Shape, stride: Shape) -> tuple[list[int], int]:
    """The dimensions, and how many of them, first, have steps so large that their parts share no number."""
    order = sorted(range(len(size)), key=lambda k: -abs(stride[k]))
    spans = [(size[k] - 1) * abs(stride[k]) for k in order]
    apart = 0
    while apart < len(order) and abs(stride[order[apart]]) > sum(spans[apart + 1 :]):
        apart += 1
    return order[:apart] + sorted(order[apart:]), apart


@kernel("last", DEVICE)
def last(b: Any, *, dim: int | None) -> Any:
    index = b if dim is not None else kernels_of("reshape")[DEVICE](b, shape=(b.size,))
    along = dim or 0
    if not b.size:
        return empty(b.shape, np.bool_)
    end = int(reduced("amax", "max", "a", (index,), None, False, b.dtype).host) + 1
    number = arange(index.shape[along]).reshape(-1, *(1,) * (index.ndim - along - 1))
    written = empty((*index.shape[:along], end, *index.shape[along + 1 :]), np.int64)
    walked("put", written, number, index, index.shape, along)
    found = gather(written, index, dim=along)
    return computed("eq", "a == b", (found, number), np.bool_).reshape(b.shape)


# --- what is not 0 ---


@kernel("nonzero", DEVICE)
def nonzero(a: Any) -> Any:
    """Count in stretches, add the counts up, and let each stretch write from where its own begin."""
    a = in_rows(a)
    stretches = -(-a.size // PIECE)
    ends = empty((stretches + 1,), np.int32)
    # bits of a float, less the sign, are 0 of 0 alone; compared as floats, subnormal ones may be taken for 0
    serial, dtype = a.size <= source.SERIAL, WORDS[a.itemsize]
    there = "((x_[k] + x_[k]) == 0) == 0" if a.dtype.kind == "f" else "x_[k] != 0"
    _counting(dtype, there, serial)(pointer(ends), pointer(a), a.size, stretches)
    out = empty((int(ends.host[-1]), a.ndim), np.int64)
    if out.size:
        _writing(dtype, there, a.ndim, serial)(pointer(out), pointer(a), pointer(ends), a.size, stretches, *a.shape)
    return out


_SERIAL = "    ti.loop_config(serialize=True)\n"


@cache
def _counting(dtype: str, there: str, serial: bool) -> Any:
    text = f"""@ti.kernel
def nonzero_counts_kernel(
    y_: {source.array_of("int32")}, x_: {source.array_of(dtype)}, size: ti.i32, stretches: ti.i32
):
{_SERIAL * serial}    for i in range(stretches):
        found = 0
        for k in range(i * {PIECE}, ti.min(i * {PIECE} + {PIECE}, size)):
            found += ti.cast({there}, ti.i32)
        y_[i + 1] = found
    ti.loop_config(serialize=True)
    for i in range(stretches + 1):
        y_[i] = 0 if i == 0 else y_[i] + y_[i - 1]
"""
    return compiled("nonzero_counts", text, "aaii")


@cache
def _writing(dtype: str, there: str, ndim: int, serial: bool) -> Any:
    sizes = "".join(f", n{k}: ti.i32" for k in range(ndim))
    place = "                y_[at * {n} + {k}] = ti.cast({rest}, ti.i64)\n"
    row = "".join(
        place.format(n=ndim, k=k, rest=f"rest % n{k}") + f"                rest = rest // n{k}\n"
        for k in reversed(range(1, ndim))
    )
    row += place.format(n=ndim, k=0, rest="rest") if ndim else ""
    text = f"""@ti.kernel
def nonzero_kernel(
    y_: {source.array_of("int64")}, x_: {source.array_of(dtype)}, ends_: {source.array_of("int32")},
    size: ti.i32, stretches: ti.i32{sizes}
):
{_SERIAL * serial}    for i in range(stretches):
        at = ends_[i]
        for k in range(i * {PIECE}, ti.min(i * {PIECE} + {PIECE}, size)):
            if {there}:
                rest = k
{row}                at += 1
"""
    return compiled("nonzero", text, "aaaii" + "i" * ndim)
