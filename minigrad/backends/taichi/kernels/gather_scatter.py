"""Gather, scatter and scatter-add along one dimension.

The kernel iterates over the indices of the source and the destination; along `dim`, an index array contains the
position in one of the two arrays. Writes can collide only along `dim`. Scatters therefore iterate over `dim`
sequentially and parallelise over the other dimensions, without atomics: the last of several elements scattered to a
position wins, and scatter-adds accumulate in order, deterministically.
"""

from __future__ import annotations

from math import gcd, prod
from typing import Any, NamedTuple

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.strided_walk import broadcast_strides as strides_of
from minigrad.backends.taichi.codegen.strided_walk import collapse_dimensions
from minigrad.backends.taichi.kernels.elementwise import array_argument
from minigrad.backends.taichi.kernels.sorted_scatter import scatter_by_sorting
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.deferred_checks import check_index, check_slot, error_slot
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.core.errors import ShapeError

__all__ = ["DTYPE_BY_ITEMSIZE", "TASK_ELEMENTS", "gather_or_scatter"]

Shape = tuple[int, ...]

KERNEL_NAMES = {"take": "gather", "put": "scatter", "add": "scatter_add"}
STATEMENTS = {"take": "y_[{y}] = x_[{x} + offset]", "put": "y_[{y} + offset] = x_[{x}]"}
ADD_STATEMENT = "y_[{y} + offset] = ti.cast(y_[{y} + offset] {sign} x_[{x}], ti.{type})"
ADD_VECTORS_STATEMENT = "y_[{y} + offset] = y_[{y} + offset] + x_[{x}]"
DTYPE_BY_ITEMSIZE = {1: "uint8", 4: "int32", 8: "int64"}  # copies depend only on the itemsize, not on the dtype
CACHE_LINE = 64  # bytes per cache line
VECTOR_BYTES = 64, 16  # vector widths in bytes: sixteen floats, or four
TASK_ELEMENTS = 4096  # elements per task of a gather, which is parallel over all dimensions
MAX_BLOCKS = 16  # maximum number of parts of the last dimension of a scatter, which is sequential along `dim`


class _ArrayLayout(NamedTuple):
    """The memory layout of an array."""

    shape: Shape
    strides: Shape
    itemsize: int
    ndim: int


def gather_or_scatter(step: str, y: Any, x: Any, b: Any, shape: Shape, dim: int) -> None:
    """Gather `x` at index `b` into `y` ("take"), or scatter ("put") or scatter-add ("add") `x` into `y` at index `b`.

    `shape` is the iteration space, to which b and the array that is not indexed are broadcast. The indexed array may be
    larger. Raises ShapeError for an index out of range, without any out-of-bounds access.
    """
    if not prod(shape):
        return
    pointers = array_argument(y), array_argument(x)
    aligned = gcd(CACHE_LINE, pointers[0][0], pointers[1][0]) if source.VECTORIZED else 1
    layouts = [_ArrayLayout(one.shape, one.strides, one.itemsize, one.ndim) for one in (y, x, b)]
    launch, unit, scalars = _plan(step, y.dtype, b.dtype, *layouts, shape, dim, aligned)
    size = (x if step == "take" else y).shape[dim]
    error_args = ShapeError, "index out of range: an index is out of bounds for dimension {} with size {}", dim, size
    check_index(b, size, *error_args)
    error_flag = error_slot(*error_args)
    if step != "take" and not source.VECTORIZED:
        scatter_by_sorting(step, y, x, b, shape, dim, error_flag)
        return
    launch(
        *[(at[0], at[2] // unit, *at[2:]) for at in pointers], array_argument(b), array_argument(error_flag), *scalars
    )
    check_slot(error_flag, *error_args)


class _IndexedWalk(NamedTuple):
    """Sizes, and strides of y, x and the index, for the outer, the indexed and the innermost dimensions."""

    outer: list[int]
    outer_steps: list[list[int]]
    index_size: int
    steps: list[int]
    inner: int
    inner_steps: list[int]
    indexed_stride: int


@arch_cache(4096)
def _plan(
    step: str,
    dtype: Any,
    index: Any,
    y: _ArrayLayout,
    x: _ArrayLayout,
    b: _ArrayLayout,
    shape: Shape,
    dim: int,
    aligned: int,
) -> tuple[Any, int, tuple[int, ...]]:
    """Return the kernel for these layouts, the width in bytes of its loads and stores, and its scalar arguments."""
    target = x if step == "take" else y
    target_strides = [by // target.itemsize for by in target.strides]
    indexed_stride, target_strides[dim] = target_strides[dim], 0
    steps = [target_strides if one is target else strides_of(one, shape) for one in (y, x)] + [strides_of(b, shape)]
    rest = [k for k in range(len(shape)) if k != dim]
    sizes, walks = collapse_dimensions([shape[k] for k in rest], [[by[k] for k in rest] for by in steps])
    nested = any(n != 1 for n in shape[dim + 1 :])
    inner, inner_steps = (sizes[-1], [walk[-1] for walk in walks]) if nested else (1, [0, 0, 0])
    if nested:
        sizes, walks = (sizes[:-1], [walk[:-1] for walk in walks]) if len(sizes) > 1 else ([1], [[0], [0], [0]])
    walk = _IndexedWalk(sizes, walks, shape[dim], [by[dim] for by in steps], inner, inner_steps, indexed_stride)
    kind, unit = dtype.name if step == "add" else DTYPE_BY_ITEMSIZE[y.itemsize], y.itemsize
    for width in VECTOR_BYTES:
        if aligned % width == 0 and (step != "add" or kind == "float32") and _can_vectorise(walk, width // unit):
            walk, kind, unit = _vectorise(walk, width // unit), f"vector{width // 4}", width
            break
    serial = prod(shape) * target.itemsize // unit <= source.SERIAL_LIMIT
    index_per_line = nested and walk.inner_steps[2] == 0
    compiled_kernel = _compile_kernel(step, kind, index.name, len(walk.outer), nested, index_per_line, serial)
    return compiled_kernel, unit, _scalar_args(step, walk, CACHE_LINE // unit, target.shape[dim])


def _can_vectorise(walk: _IndexedWalk, unit: int) -> bool:
    """Return whether the layout allows vectors of `unit` elements."""
    strides = [walk.inner, *walk.outer_steps[0], *walk.outer_steps[1], *walk.steps[:2], walk.indexed_stride]
    return walk.inner_steps == [1, 1, 0] and not any(by % unit for by in strides)


def _vectorise(walk: _IndexedWalk, unit: int) -> _IndexedWalk:
    y, x, b = walk.outer_steps
    outer = [[by // unit for by in y], [by // unit for by in x], b]
    steps = [walk.steps[0] // unit, walk.steps[1] // unit, walk.steps[2]]
    return walk._replace(
        outer_steps=outer, steps=steps, inner=walk.inner // unit, indexed_stride=walk.indexed_stride // unit
    )


def _scalar_args(step: str, walk: _IndexedWalk, min_elements: int, size: int) -> tuple[int, ...]:
    """Return the scalar arguments of the kernel: sizes, strides, and the split of the work, into parts of at least
    `min_elements` elements."""
    lines, length, width = prod(walk.outer), walk.index_size, walk.inner
    if step == "take":
        piece = TASK_ELEMENTS if source.VECTORIZED else 1
        length, width = min(length, max(1, piece // width)), min(width, piece)
    elif lines < MAX_BLOCKS:
        width = max(-(-width // MAX_BLOCKS), min(width, min_elements))
    pieces, blocks = -(-walk.index_size // length), -(-walk.inner // width)
    steps = zip(walk.outer_steps, walk.steps, walk.inner_steps, strict=True)
    stride_args = [by for outer, own, inner in steps for by in (*outer, own, inner)]
    return (
        lines,
        pieces,
        length,
        blocks,
        width,
        walk.index_size,
        walk.inner,
        size,
        walk.indexed_stride,
        *stride_args,
        *walk.outer,
    )


@arch_cache()
def _compile_kernel(
    step: str, dtype: str, index: str, outer: int, nested: bool, index_per_line: bool, serial: bool
) -> Any:
    """Compile the kernel for a dtype and a number of outer dimensions. If `nested`, there is another dimension inside
    the indexed one.

    If `index_per_line`, each index applies to an entire line of the innermost dimension, and is read once.
    """
    name, dims = KERNEL_NAMES[step], range(outer)
    vector = dtype.removeprefix("vector")
    kind = source.TAICHI_NAMES.get(dtype) or f"types.vector({vector}, ti.f32)"
    body = STATEMENTS.get(step) or (ADD_VECTORS_STATEMENT if vector != dtype else ADD_STATEMENT)
    sign = "|" if dtype == "bool" else "+"
    size_names = ["lines", "pieces", "length", "blocks", "width", "count", "inner", "size", "indexed_stride"]
    size_names += [by for a in "yxb" for by in (*[f"{a}{k}" for k in dims], f"{a}k", f"{a}j")] + [f"n{k}" for k in dims]
    arguments = [f"{a}_: ti.types.ndarray(dtype=ti.{kind}, ndim=1)" for a in "yx"]
    arguments += [f"b_: {source.array_annotation(index)}", f"error_: {source.array_annotation('int32')}"]
    arguments += [f"{name}: ti.i32" for name in size_names]
    split = [f"        i{k} = rest % n{k}\n        rest = rest // n{k}\n" for k in reversed(dims) if k]
    offset_exprs = [f"{' + '.join(f'i{k} * {a}{k}' for k in dims)} + piece * length * {a}k\n" for a in "yxb"]
    offset_code = [f"        {a}{'_k' if nested else ''} = {at}" for a, at in zip("yxb", offset_exprs, strict=True)]
    if nested:
        walk = _inner_loop_source(
            index_per_line, body.format(y="y_k + j * y_stride", x="x_k + j * x_stride", sign=sign, type=kind)
        )
    else:
        walk = _bounds_check_source(12, "b", body.format(y="y", x="x", sign=sign, type=kind))
        walk += "".join(f"            {a} += {a}_stride\n" for a in "yxb")
    step_of = "j" if nested else "k"
    body_code = (
        "        i = t\n        block = i % blocks\n        piece = i // blocks % pieces\n"
        f"        rest = i // blocks // pieces\n{''.join(split)}        i0 = rest\n{''.join(offset_code)}"
        "        y_stride, x_stride, b_stride, index_stride, bound = "
        f"y{step_of}, x{step_of}, b{step_of}, indexed_stride, size\n"
        "        for k in range(piece * length, ti.min(piece * length + length, count)):\n"
        + walk
        + "".join(f"            {a}_k += {a}k\n" for a in ("yxb" if nested else ""))
    )
    loop = source.parallel_loop("lines * pieces * blocks", body_code, serial)
    code = f"@ti.kernel\ndef {name}_kernel(\n    {', '.join(arguments)}\n):\n{loop}"
    return get_kernel(name, code, "aaaa" + "i" * len(size_names))


def _bounds_check_source(indent: int, offset: str, statement: str) -> str:
    """Generate source that reads an index, and runs `statement` if it is in range; otherwise the source sets the error
    flag."""
    lines = [
        f"requested = b_[{offset}]",
        "offset = ti.cast(requested, ti.i32) * index_stride",
        "if (requested >= 0) & (requested < bound):",
    ]
    lines += [*[f"    {line}" for line in statement.splitlines()], "else:", "    error_[0] = 1"]
    return "".join(f"{' ' * indent}{line}\n" for line in lines)


def _inner_loop_source(index_per_line: bool, body: str) -> str:
    """Generate the loop over j in a block, with one index per element or one per line."""
    loop = "for j in range(block * width, ti.min(block * width + width, inner)):\n"
    if index_per_line:
        return _bounds_check_source(12, "b_k", f"{loop}    {body}\n")
    return f"            {loop}{_bounds_check_source(16, 'b_k + j * b_stride', body)}"
