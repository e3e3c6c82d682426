"""Reductions, specified by a snippet that maps the inputs, a combiner that accumulates the mapped elements, and an
epilogue that maps the accumulator to the result.

A reduction of many elements to few takes two launches, so that all cores work: the first reduces chunks of fixed
length, the second their partial results. Sums accumulate in float64, and results do not depend on the number of cores.
Rows and columns of float32 are vectorised by 16, in `simd`. The plan for a shape is cached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod as product
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from minigrad.backends.taichi.codegen import block_reductions, simd, source
from minigrad.backends.taichi.codegen.strided_walk import broadcast_strides, collapse_dimensions
from minigrad.backends.taichi.kernels import simd_lines
from minigrad.backends.taichi.kernels.elementwise import array_argument
from minigrad.backends.taichi.runtime.array import CACHE_LINE, current_target, empty
from minigrad.backends.taichi.runtime.caches import ArchDict
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.core.dtypes import DTYPES, iinfo
from minigrad.core.shapes import broadcast_shapes

__all__ = ["reduce_snippet"]

CHUNK_SIZE = 8192  # number of elements per partial result
# Maximum number of results whose reductions are split. More results occupy all cores in a single launch.
MAX_SPLIT_OUTPUTS = 64
# Minimum number of elements per partial result, and maximum number of threads, on a GPU.
MIN_GPU_CHUNK, MAX_GPU_THREADS = 64, 1 << 18

# On the CPU a chunk is contiguous. On a GPU it is strided, so that adjacent threads read adjacent elements (coalesced).
CHUNK_LOOPS = {
    True: "        for r in range(first, ti.min(first + length, count)):\n",
    False: "        chunk = i % chunks\n        for iteration in range((count - chunk + chunks - 1) // chunks):\n"
    "            r = chunk + iteration * chunks\n",
}
# Without float64, sum groups of eight elements, then the group sums, which is more accurate than one long sum.
BLOCKED_SUM = (
    "            block_sum = block_sum + x\n            if iteration % 8 == 7:\n                s = s + block_sum\n"
    "                block_sum = block_sum - block_sum\n"
)
COMBINERS = {
    "sum": ("s + x", "0"),
    "prod": ("s * x", "1"),
    "max": ("ti.select((x > s) | ((x == x) == 0), x, s)", "-inf"),
    "min": ("ti.select((x < s) | ((x == x) == 0), x, s)", "inf"),
    "any": ("s | ti.i32((x == 0) == 0)", "0"),
    "all": ("s & ti.i32((x == 0) == 0)", "1"),
}


def _identity(combine: str, dtype_name: str) -> str:
    """Return the identity element of a combiner. For an integer extremum this is the limit of the dtype. (Taichi has no
    literal for the minimum of a signed dtype.)"""
    if combine not in ("max", "min") or dtype_name.startswith("float"):
        return COMBINERS[combine][1]
    if dtype_name == "bool":
        return "0" if combine == "max" else "1"
    limits, cast = iinfo(DTYPES[dtype_name]), f"ti.{source.TAICHI_NAMES[dtype_name]}"
    if combine == "min":
        return f"{cast}({limits.max})"
    return f"-{cast}({limits.max}) - {cast}(1)" if limits.min else "0"


class ReductionStep(NamedTuple):
    """Kernel launch of a reduction, with the shape and dtype of its result and its scalar arguments."""

    kernel: Any
    shape: tuple[int, ...]
    dtype: Any
    scalars: tuple[Any, ...]


_plans: dict[Any, list[ReductionStep]] = ArchDict()
MAX_PLANS = 4096  # capacity of the cache


def reduce_snippet(
    name: str,
    combine: str,
    snippet: str,
    inputs: Sequence[Any],
    dims: Sequence[int] | None,
    keepdim: bool,
    dtype: Any,
    epilogue: str = "s",
    scalars: Mapping[str, float] = MappingProxyType({}),
) -> Any:
    """Reduce the expression `snippet` of broadcastable arrays along `dims` with the combiner `combine`, then apply
    `epilogue`.

    `epilogue` is an expression of the accumulator ``s`` and of `scalars`. The result has `dtype`.
    """
    pointers = [array_argument(x) for x in inputs]
    layouts = [(x.shape, x.strides, x.dtype, at[0] % CACHE_LINE == 0) for x, at in zip(inputs, pointers, strict=True)]
    key = (
        name,
        combine,
        snippet,
        epilogue,
        dims if dims is None else tuple(dims),
        keepdim,
        dtype,
        *layouts,
        *scalars.values(),
    )
    steps = _plans.get(key)
    if steps is None:
        if len(_plans) >= MAX_PLANS:
            _plans.clear()
        types = tuple([x.dtype for x in inputs])
        spec = Reduction(name, combine, snippet, types, (), np.dtype(dtype), epilogue, scalars)
        steps = _plans[key] = _make_plan(spec, inputs, dims, keepdim)
    out: Any = None
    for step in steps:
        partial = empty(step.shape, step.dtype)
        step.kernel(array_argument(partial), *pointers, *step.scalars)
        # The launch has read the previous partial result, which may now be released.
        pointers, out = [array_argument(partial)], partial
    return out


def _make_plan(
    spec: Reduction, inputs: Sequence[Any], dims: Sequence[int] | None, keepdim: bool
) -> list[ReductionStep]:
    shape = broadcast_shapes(*[x.shape for x in inputs], op=spec.name)
    dims = range(len(shape)) if dims is None else dims
    result = tuple([1 if k in dims else n for k, n in enumerate(shape) if keepdim or k not in dims])
    if not product(result):
        return [ReductionStep(lambda *_: None, result, spec.dtype, ())]
    strides = [broadcast_strides(x, shape) for x in inputs]
    kept_dims = [k for k in range(len(shape)) if k not in dims]
    walk = ReductionWalk(
        *collapse_dimensions([shape[k] for k in kept_dims], [[by[k] for k in kept_dims] for by in strides]),
        *collapse_dimensions([shape[k] for k in dims], [[by[k] for k in dims] for by in strides]),
    )
    in_vectors = spec.combine in simd.REDUCTIONS and all(map(simd_lines.is_vector_aligned, inputs))
    return _plan_steps(spec._replace(shape=result), walk, in_vectors)


class ReductionWalk(NamedTuple):
    """Sizes of the outer (kept) and inner (reduced) dimensions of a reduction, and the strides of each array."""

    outer: list[int]
    outer_steps: list[list[int]]
    inner: list[int]
    inner_steps: list[list[int]]


class Reduction(NamedTuple):
    """Specification of a reduction, including the dtypes of its inputs."""

    name: str
    combine: str
    snippet: str
    types: tuple[Any, ...]
    shape: tuple[int, ...]
    dtype: Any
    epilogue: str
    scalars: Mapping[str, float]


def _plan_steps(spec: Reduction, walk: ReductionWalk, in_vectors: bool) -> list[ReductionStep]:
    """Plan a single launch, or a launch over chunks followed by sequential launches over their partial results."""
    outs, count = product(walk.outer), product(walk.inner)
    lines, cut = _line_layout(spec, walk) if in_vectors else None, None
    if in_vectors and lines is None and len(walk.outer) == 1 and len(walk.inner) == 2:
        runs = _plan_runs(spec, walk)
        if runs is not None:
            return runs
    if lines is not None:
        few_outputs, elements = outs <= (MAX_SPLIT_OUTPUTS if lines.rows else simd.MIN_CHUNK // 16), outs * count
        chunks = (
            min(-(-elements // simd.MIN_CHUNK), -(-count // 64))
            if few_outputs and elements > simd.MAX_SERIAL_ELEMENTS
            else 1
        )
        partials, row_major = chunks if lines.rows else chunks * simd.alignment_phases(outs), lines.rows
    else:
        cut = block_reductions.partition_for(
            outs,
            count,
            block_reductions.is_outer_contiguous(walk.outer_steps, walk.inner_steps),
            _accumulator_dtype(spec),
        )
        partials = chunks = cut.chunks if cut else _chunk_count(outs, count)
        row_major = cut is None
    kind = _accumulator_dtype(spec)
    first = spec
    if partials > 1:
        shape = (outs, partials) if row_major else (partials, outs)
        first = spec._replace(name=f"{spec.name}_partial", shape=shape, dtype=np.dtype(kind), epilogue="s", scalars={})
    step = (
        _vectorised_step(first, lines, outs, count, chunks) if lines else _strided_step(first, walk, kind, chunks, cut)
    )
    if partials == 1:
        return [step]
    combine_walk = ReductionWalk([outs], [[partials if row_major else 1]], [partials], [[1 if row_major else outs]])
    combine_spec = _combine_spec(spec, first)
    return [step, *_plan_steps(combine_spec, combine_walk, False)]


def _combine_spec(spec: Reduction, first: Reduction) -> Reduction:
    """Return the specification of the reduction over the partial results of `first`."""
    combine = "sum" if spec.combine == "squares" else spec.combine
    return spec._replace(name=f"{spec.name}_combine", combine=combine, snippet="a", types=(first.dtype,))


def _accumulator_dtype(spec: Reduction) -> str:
    if spec.combine in ("any", "all"):
        return "int32"
    return spec.dtype.name if spec.combine in ("max", "min") else "float64" if spec.dtype.kind == "f" else "int64"


def _plan_runs(spec: Reduction, walk: ReductionWalk) -> list[ReductionStep] | None:
    """Plan a reduction over contiguous runs, such as a channel of each image: first within runs, then across them."""
    (outs,), (count, _) = walk.outer, walk.inner
    outer_strides = [(b[0], a[0]) for a, b in zip(walk.outer_steps, walk.inner_steps, strict=True)]
    rows = ReductionWalk(
        *collapse_dimensions([count, outs], [list(by) for by in outer_strides]),
        walk.inner[1:],
        [b[1:] for b in walk.inner_steps],
    )
    first = spec._replace(
        name=f"{spec.name}_runs",
        shape=(count, outs),
        dtype=np.dtype(_accumulator_dtype(spec)),
        epilogue="s",
        scalars={},
    )
    lines = _line_layout(first, rows)
    if lines is None or not lines.rows:
        return None
    combine_spec = _combine_spec(spec, first)
    return [
        _vectorised_step(first, lines, count * outs, walk.inner[1], 1),
        *_plan_steps(combine_spec, ReductionWalk([outs], [[1]], [count], [[outs]]), False),
    ]


def _chunk_count(outs: int, count: int) -> int:
    """Return the number of chunks into which each of `outs` reductions of `count` elements is split."""
    if source.VECTORIZED:
        return -(-count // CHUNK_SIZE) if outs <= MAX_SPLIT_OUTPUTS and count > 2 * CHUNK_SIZE else 1
    return max(1, min(-(-count // MIN_GPU_CHUNK), MAX_GPU_THREADS // max(outs, 1))) if count > 2 * MIN_GPU_CHUNK else 1


class LineLayout(NamedTuple):
    """Vectorisable layout of a reduction by rows or by columns. `roles` states, for each array, whether it has all
    elements of a line, one per line, or one per position."""

    rows: bool
    roles: tuple[str, ...]
    snippet: str


def _line_layout(spec: Reduction, walk: ReductionWalk) -> LineLayout | None:
    """Return the layout if it can be vectorised, otherwise None."""
    snippet = simd.to_vector_form(spec.snippet)
    if snippet is None or len(walk.outer) > 1 or len(walk.inner) > 1:
        return None
    count, n = walk.outer[0], walk.inner[0]
    steps = [(a[0], b[0]) for a, b in zip(walk.outer_steps, walk.inner_steps, strict=True)]
    is_single = count == 1  # the stride of a dimension of size 1 is irrelevant
    row_roles = [simd.FULL if b == 1 and (is_single or a == n) else _per_line_role(a, b, is_single) for a, b in steps]
    if n >= simd.MIN_ROW_LENGTH and simd.FULL in row_roles and all(row_roles):
        return LineLayout(True, tuple(row_roles), snippet)
    column_roles = [
        simd.FULL if a == 1 and b == count else _per_line_role(a, b, is_single) or _per_position_role(a, b)
        for a, b in steps
    ]
    if n >= 8 * simd.alignment_phases(count) and simd.FULL in column_roles and all(column_roles):
        return LineLayout(False, tuple(column_roles), snippet)
    return None


def _per_line_role(along_lines: int, in_line: int, alone: bool) -> str:
    return simd.PER_LINE if in_line == 0 and (alone or along_lines == 1) else ""


def _per_position_role(along_lines: int, in_line: int) -> str:
    return simd.PER_COLUMN if along_lines == 0 and in_line == 1 else ""


def _vectorised_step(spec: Reduction, lines: LineLayout, outs: int, count: int, chunks: int) -> ReductionStep:
    generate = simd.row_reduction_kernel if lines.rows else simd.column_reduction_kernel
    joined_spec = simd.LineReduction(
        spec.name, spec.combine, lines.snippet, lines.roles, spec.dtype.name, spec.epilogue, tuple(spec.scalars)
    )
    kernel, sizes = generate(joined_spec, count, outs, chunks)
    return ReductionStep(kernel, spec.shape, spec.dtype, (*spec.scalars.values(), *sizes))


def _strided_step(
    spec: Reduction, walk: ReductionWalk, kind: str, chunks: int, cut: block_reductions.Partition | None
) -> ReductionStep:
    """Plan a launch over arbitrarily strided arrays."""
    if spec.combine == "squares":
        operand_as_float64 = f"ti.cast({spec.snippet}, ti.f64)"
        spec = spec._replace(combine="sum", snippet=f"{operand_as_float64} * {operand_as_float64}")
    outs, count = product(walk.outer), product(walk.inner)
    compute_dtype = next((x.name for x in spec.types if x.kind == "f"), "float64")
    params = tuple(
        [source.KernelArgument("a", letter, x.name) for letter, x in zip(source.LETTERS, spec.types, strict=False)]
    )
    code, kinds = _strided_source(
        spec, params, kind, compute_dtype, len(walk.outer), len(walk.inner), outs * count <= source.SERIAL_LIMIT, cut
    )
    steps = [by for a, b in zip(walk.outer_steps, walk.inner_steps, strict=True) for by in (*a, *b)]
    scalars = (*spec.scalars.values(), outs, chunks, -(-count // chunks), count, *steps, *walk.outer, *walk.inner)
    return ReductionStep(get_kernel(spec.name, code, kinds), spec.shape, spec.dtype, scalars)


def _strided_source(
    spec: Reduction,
    params: tuple[source.KernelArgument, ...],
    kind: str,
    compute_dtype: str,
    outer: int,
    inner: int,
    serial: bool,
    cut: block_reductions.Partition | None,
) -> tuple[str, str]:
    update, start, out = COMBINERS[spec.combine][0], _identity(spec.combine, kind), spec.dtype.name
    arrays = [param.name for param in params]
    sizes = [f"o{k}" for k in range(outer)] + [f"r{k}" for k in range(inner)]
    steps = [f"{a}{s}" for a in arrays for s in sizes]
    outer_offsets = {a: " + ".join(f"i{k} * {a}o{k}" for k in range(outer)) for a in arrays}
    inner_offsets = {a: " + ".join([f"{a}_offset", *[f"j{k} * {a}r{k}" for k in range(inner)]]) for a in arrays}
    outer_index_code = [
        f"        i{k} = outer_index % o{k}\n        outer_index = outer_index // o{k}\n"
        for k in range(outer - 1, 0, -1)
    ]
    inner_index_code = [
        f"            j{k} = inner_index % r{k}\n            inner_index = inner_index // r{k}\n"
        for k in range(inner - 1, 0, -1)
    ]
    start, loads = (
        f"ti.cast({start}, ti.{source.TAICHI_NAMES[kind]})",
        [f"            {a} = {a}_[{inner_offsets[a]}]\n" for a in arrays],
    )
    args = tuple([source.KernelArgument("f", x, "float64") for x in spec.scalars])
    if cut is not None:
        offset_code = "".join(f"        {a}_offset = {outer_offsets[a]}\n" for a in arrays)
        parts = (
            start,
            "".join(outer_index_code),
            offset_code,
            "".join([*inner_index_code, "            j0 = inner_index\n", *loads]),
        )
        types, expressions = (out, kind, compute_dtype), (spec.snippet, update, spec.epilogue)
        return block_reductions.kernel_source(
            spec.name, (*params, *args), types, [*steps, *sizes], parts, expressions, cut
        )
    blocked_sum = spec.combine == "sum" and current_target().lacks_float64
    update = BLOCKED_SUM if blocked_sum else f"            s = {update}\n"
    body = (
        f"        i = t\n        outer_index = i // chunks\n"
        f"        first = i % chunks * length\n{''.join(outer_index_code)}        i0 = outer_index\n"
        + "".join(f"        {a}_offset = {outer_offsets[a]}\n" for a in arrays)
        + f"        s = {start}\n"
        + "        block_sum = s\n" * blocked_sum
        + CHUNK_LOOPS[source.VECTORIZED]
        + f"            inner_index = r\n{''.join(inner_index_code)}            j0 = inner_index\n"
        + "".join(loads)
        + f"            x = {spec.snippet}\n{update}"
        + "        s = s + block_sum\n" * blocked_sum
        + f"        y_[i] = ti.cast({spec.epilogue}, ti.{source.TAICHI_NAMES[out]})\n"
    )
    counts = ["outs", "chunks", "length", "count", *steps, *sizes]
    return source.wrap_kernel(
        spec.name, (*params, *args), out, compute_dtype, counts, "outs * chunks", body, serial, 1, True
    )
