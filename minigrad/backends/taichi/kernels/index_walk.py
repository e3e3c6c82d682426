"""Gather, scatter and scatter-add along one dimension.

The kernel iterates over the indices of the source and the destination; along `dim`, an index array gives the position
in one of the two. Writes can collide only along `dim`. Scatters therefore iterate over `dim` sequentially and
parallelise over the other dimensions, without atomics: the last of several elements scattered to a position wins, and
scatter-adds accumulate in order, deterministically.
"""

from __future__ import annotations

from math import gcd, prod
from typing import Any, NamedTuple

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.walks import collapsed
from minigrad.backends.taichi.codegen.walks import stretched as strides_of
from minigrad.backends.taichi.kernels.elementwise import pointer
from minigrad.backends.taichi.kernels.segments import walked_by_places
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.checks import doubt, look_at, settle
from minigrad.backends.taichi.runtime.kernel import compiled
from minigrad.core.errors import ShapeError

__all__ = ["PIECE", "WORDS", "walked"]

Shape = tuple[int, ...]

STEPS = {"take": "y_[{y}] = x_[{x} + far]", "put": "y_[{y} + far] = x_[{x}]"}
ADD = "y_[{y} + far] = ti.cast(y_[{y} + far] {sign} x_[{x}], ti.{type})"
ADD_VECTORS = "y_[{y} + far] = y_[{y} + far] + x_[{x}]"
WORDS = {1: "uint8", 4: "int32", 8: "int64"}  # copies depend only on the itemsize, not on the dtype
LINE = 64  # bytes per cache line
VECTORS = 64, 16  # vector widths in bytes: sixteen floats, or four
PIECE = 4096  # elements per task of a gather, which is parallel over all dimensions
BLOCKS = 16  # pieces of the last dimension of a scatter, which is sequential along `dim`


class _Laid(NamedTuple):
    """The memory layout of an array."""

    shape: Shape
    strides: Shape
    itemsize: int
    ndim: int


def walked(step: str, y: Any, x: Any, b: Any, shape: Shape, dim: int) -> None:
    """Gather from `x` to `y` at index `b` ("take"), or scatter ("put") or scatter-add ("add") `x` to `y` there.

    `shape` is the iteration space, to which b and the array without index are broadcast. The indexed array may be
    larger. Raises ShapeError for an index out of range, without any out-of-bounds access.
    """
    if not prod(shape):
        return
    given = pointer(y), pointer(x)
    aligned = gcd(LINE, given[0][0], given[1][0]) if source.VECTORIZED else 1
    laid = [_Laid(one.shape, one.strides, one.itemsize, one.ndim) for one in (y, x, b)]
    launch, unit, numbers = _plan(step, y.dtype, b.dtype, *laid, shape, dim, aligned)
    size = (x if step == "take" else y).shape[dim]
    complaint = ShapeError, "index out of range: an index is out of bounds for dimension {} with size {}", dim, size
    look_at(b, size, *complaint)
    wrong = doubt(*complaint)
    if step != "take" and not source.VECTORIZED:
        walked_by_places(step, y, x, b, shape, dim, wrong)
        return
    launch(*[(at[0], at[2] // unit, *at[2:]) for at in given], pointer(b), pointer(wrong), *numbers)
    settle(wrong, *complaint)


class _Walk(NamedTuple):
    """Sizes, and strides of y, x and the index, of the outer dimensions, the indexed one, and the innermost."""

    outer: list[int]
    outer_steps: list[list[int]]
    places: int
    steps: list[int]
    inner: int
    inner_steps: list[int]
    along: int


@cached(4096)
def _plan(
    step: str, dtype: Any, index: Any, y: _Laid, x: _Laid, b: _Laid, shape: Shape, dim: int, aligned: int
) -> tuple[Any, int, tuple[int, ...]]:
    """Return the kernel for these layouts, the width in bytes of its loads and stores, and its scalar arguments."""
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
    """Return whether the layout allows vectors of `unit` elements."""
    moves = [walk.inner, *walk.outer_steps[0], *walk.outer_steps[1], *walk.steps[:2], walk.along]
    return walk.inner_steps == [1, 1, 0] and not any(by % unit for by in moves)


def _by_vectors(walk: _Walk, unit: int) -> _Walk:
    y, x, b = walk.outer_steps
    outer = [[by // unit for by in y], [by // unit for by in x], b]
    steps = [walk.steps[0] // unit, walk.steps[1] // unit, walk.steps[2]]
    return walk._replace(outer_steps=outer, steps=steps, inner=walk.inner // unit, along=walk.along // unit)


def _numbers(step: str, walk: _Walk, least: int, size: int) -> tuple[int, ...]:
    """Return the scalar arguments of the kernel, sizes and strides, and how the work is split: by at least `least`
    elements."""
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


@cached()
def _kernel(step: str, dtype: str, index: str, outer: int, nested: bool, lines: bool, serial: bool) -> Any:
    """Compile the kernel for a dtype and a number of outer dimensions; `nested` adds one inside the indexed dimension.

    If `lines`, an index applies to an entire line of that dimension and is read once.
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
    """Generate source that reads an index and runs `then` if it is in range; otherwise sets the error flag."""
    lines = [f"asked = b_[{place}]", "far = ti.cast(asked, ti.i32) * index_by", "if (asked >= 0) & (asked < end):"]
    lines += [*[f"    {line}" for line in then.splitlines()], "else:", "    wrong_[0] = 1"]
    return "".join(f"{' ' * indent}{line}\n" for line in lines)


def _nested(lines: bool, body: str) -> str:
    """Generate the loop of a body over j in a block, with one index per element or one per line."""
    loop = "for j in range(block * width, ti.min(block * width + width, inner)):\n"
    if lines:
        return _asked(12, "b_k", f"{loop}    {body}\n")
    return f"            {loop}{_asked(16, 'b_k + j * b_by', body)}"
