"""Reductions: a snippet maps the inputs, a combiner accumulates, and an epilogue maps the accumulator to the result.

A reduction of many elements to few takes two launches, so that all cores work: the first reduces chunks of fixed
length, the second their partial results. Sums accumulate in float64, and results do not depend on the number of cores.
Rows and columns of float32 are vectorised by 16, in `wide`. The plan for a shape is cached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod as product
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from minigrad.backends.taichi.codegen import blocks, source, wide
from minigrad.backends.taichi.codegen.walks import collapsed, stretched
from minigrad.backends.taichi.kernels import wide_lines
from minigrad.backends.taichi.kernels.elementwise import pointer
from minigrad.backends.taichi.runtime.array import LINE, current, empty
from minigrad.backends.taichi.runtime.caches import Remembered
from minigrad.backends.taichi.runtime.kernel import compiled
from minigrad.core.dtypes import DTYPES, iinfo
from minigrad.core.shapes import broadcast_shapes

__all__ = ["reduced"]

STRETCH = 8192  # minimum elements per partial result
WHOLE = 64  # more results than this keep all cores busy in a single launch
PIECE, THREADS = 64, 1 << 18  # on a GPU: minimum elements per partial result, and maximum threads

# On the CPU a chunk is contiguous. On a GPU it is strided, so that adjacent threads read adjacent elements (coalesced).
ROUNDS = {
    True: "        for r in range(first, ti.min(first + length, count)):\n",
    False: "        part = i % stretches\n        for turn in range((count - part + stretches - 1) // stretches):\n"
    "            r = part + turn * stretches\n",
}
# Without float64, sum groups of eight and then the group sums, which loses less precision than one long sum.
EIGHTS = (
    "            near = near + x\n            if turn % 8 == 7:\n                s = s + near\n"
    "                near = near - near\n"
)
JOINS = {
    "sum": ("s + x", "0"),
    "prod": ("s * x", "1"),
    "max": ("ti.select((x > s) | ((x == x) == 0), x, s)", "-inf"),
    "min": ("ti.select((x < s) | ((x == x) == 0), x, s)", "inf"),
    "any": ("s | ti.i32((x == 0) == 0)", "0"),
    "all": ("s & ti.i32((x == 0) == 0)", "1"),
}


def _start(join: str, kind: str) -> str:
    """Return the identity of a combiner: for an integer extremum the limit of the dtype. (Taichi has no literal for the
    minimum of a signed dtype.)"""
    if join not in ("max", "min") or kind.startswith("float"):
        return JOINS[join][1]
    if kind == "bool":
        return "0" if join == "max" else "1"
    limits, of = iinfo(DTYPES[kind]), f"ti.{source.TI[kind]}"
    if join == "min":
        return f"{of}({limits.max})"
    return f"-{of}({limits.max}) - {of}(1)" if limits.min else "0"


class ReductionStep(NamedTuple):
    """A launch: the kernel, the shape and dtype of its result, and its scalar arguments after the arrays."""

    kernel: Any
    shape: tuple[int, ...]
    dtype: Any
    numbers: tuple[Any, ...]


_plans: dict[Any, list[ReductionStep]] = Remembered()
PLANS = 4096  # capacity of the cache


def reduced(
    name: str,
    join: str,
    snippet: str,
    inputs: Sequence[Any],
    dims: Sequence[int] | None,
    keepdim: bool,
    dtype: Any,
    end: str = "s",
    numbers: Mapping[str, float] = MappingProxyType({}),
) -> Any:
    """Reduce a snippet of broadcastable arrays along `dims` with the combiner `join`, and apply the epilogue `end`.

    `end` refers to the accumulator as s; `numbers` are its scalar arguments. The result has `dtype`.
    """
    given = [pointer(x) for x in inputs]
    walks = [(x.shape, x.strides, x.dtype, at[0] % LINE == 0) for x, at in zip(inputs, given, strict=True)]
    key = (name, join, snippet, end, dims if dims is None else tuple(dims), keepdim, dtype, *walks, *numbers.values())
    steps = _plans.get(key)
    if steps is None:
        if len(_plans) >= PLANS:
            _plans.clear()
        types = tuple([x.dtype for x in inputs])
        what = Reduction(name, join, snippet, types, (), np.dtype(dtype), end, numbers)
        steps = _plans[key] = _planned(what, inputs, dims, keepdim)
    out: Any = None
    for step in steps:
        made = empty(step.shape, step.dtype)
        step.kernel(pointer(made), *given, *step.numbers)
        given, out = [pointer(made)], made  # the previous partial result is read by now, and may be released
    return out


def _planned(what: Reduction, inputs: Sequence[Any], dims: Sequence[int] | None, keepdim: bool) -> list[ReductionStep]:
    shape = broadcast_shapes(*[x.shape for x in inputs], op=what.name)
    dims = range(len(shape)) if dims is None else dims
    result = tuple([1 if k in dims else n for k, n in enumerate(shape) if keepdim or k not in dims])
    if not product(result):
        return [ReductionStep(lambda *_: None, result, what.dtype, ())]
    strides = [stretched(x, shape) for x in inputs]
    rest = [k for k in range(len(shape)) if k not in dims]
    walk = ReductionWalk(
        *collapsed([shape[k] for k in rest], [[by[k] for k in rest] for by in strides]),
        *collapsed([shape[k] for k in dims], [[by[k] for k in dims] for by in strides]),
    )
    in_vectors = what.join in wide.JOINS and all(map(wide_lines.aligned, inputs))
    return _steps(what._replace(shape=result), walk, in_vectors)


class ReductionWalk(NamedTuple):
    """The iteration space: sizes, and strides per array, of the outer (kept) and the inner (reduced) dimensions."""

    outer: list[int]
    outer_steps: list[list[int]]
    inner: list[int]
    inner_steps: list[list[int]]


class Reduction(NamedTuple):
    """The specification of a reduction over arrays of the given dtypes."""

    name: str
    join: str
    snippet: str
    types: tuple[Any, ...]
    shape: tuple[int, ...]
    dtype: Any
    end: str
    numbers: Mapping[str, float]


def _steps(what: Reduction, walk: ReductionWalk, in_vectors: bool) -> list[ReductionStep]:
    """Plan one launch, or two: over chunks, and over their partial results."""
    outs, count = product(walk.outer), product(walk.inner)
    lines, cut = _lines(what, walk) if in_vectors else None, None
    if in_vectors and lines is None and len(walk.outer) == 1 and len(walk.inner) == 2:
        runs = _runs(what, walk)
        if runs is not None:
            return runs
    if lines is not None:
        few, numbers = outs <= (WHOLE if lines.rows else wide.STRETCH // 16), outs * count
        stretches = min(-(-numbers // wide.STRETCH), -(-count // 64)) if few and numbers > wide.SERIAL else 1
        parts, of_rows = stretches if lines.rows else stretches * wide.phases(outs), lines.rows
    else:
        cut = blocks.cut_for(outs, count, blocks.beside(walk.outer_steps, walk.inner_steps), _kind(what))
        parts = stretches = cut.stretches if cut else _stretches(outs, count)
        of_rows = cut is None
    kind = _kind(what)
    first = what
    if parts > 1:
        shape = (outs, parts) if of_rows else (parts, outs)
        first = what._replace(name=f"{what.name}_stretches", shape=shape, dtype=np.dtype(kind), end="s", numbers={})
    step = _in_lines(first, lines, outs, count, stretches) if lines else _anyhow(first, walk, kind, stretches, cut)
    if parts == 1:
        return [step]
    joined = ReductionWalk([outs], [[parts if of_rows else 1]], [parts], [[1 if of_rows else outs]])
    last = _second(what, first)
    return [step, *_steps(last, joined, False)]


def _second(what: Reduction, first: Reduction) -> Reduction:
    """Return the reduction of the partial results of `first`."""
    join = "sum" if what.join == "squares" else what.join
    return what._replace(name=f"{what.name}_joined", join=join, snippet="a", types=(first.dtype,))


def _kind(what: Reduction) -> str:
    """Return the accumulator dtype."""
    if what.join in ("any", "all"):
        return "int32"
    return what.dtype.name if what.join in ("max", "min") else "float64" if what.dtype.kind == "f" else "int64"


def _runs(what: Reduction, walk: ReductionWalk) -> list[ReductionStep] | None:
    """Plan a reduction over contiguous runs, such as a channel of each image: first within runs, then across them."""
    (outs,), (count, _) = walk.outer, walk.inner
    over = [(b[0], a[0]) for a, b in zip(walk.outer_steps, walk.inner_steps, strict=True)]
    rows = ReductionWalk(
        *collapsed([count, outs], [list(by) for by in over]), walk.inner[1:], [b[1:] for b in walk.inner_steps]
    )
    first = what._replace(
        name=f"{what.name}_runs", shape=(count, outs), dtype=np.dtype(_kind(what)), end="s", numbers={}
    )
    lines = _lines(first, rows)
    if lines is None or not lines.rows:
        return None
    last = _second(what, first)
    return [
        _in_lines(first, lines, count * outs, walk.inner[1], 1),
        *_steps(last, ReductionWalk([outs], [[1]], [count], [[outs]]), False),
    ]


def _stretches(outs: int, count: int) -> int:
    """Return the number of chunks per reduction of `count` elements, where there are `outs` reductions."""
    if source.VECTORIZED:
        return -(-count // STRETCH) if outs <= WHOLE and count > 2 * STRETCH else 1
    return max(1, min(-(-count // PIECE), THREADS // max(outs, 1))) if count > 2 * PIECE else 1


class Lines(NamedTuple):
    """A layout in rows, or else in columns, and what each array has of a line: all elements, one, or one row."""

    rows: bool
    full: tuple[str, ...]
    snippet: str


def _lines(what: Reduction, walk: ReductionWalk) -> Lines | None:
    """Return the layout if it can be vectorised, otherwise None."""
    snippet = wide.packed(what.snippet)
    if snippet is None or len(walk.outer) > 1 or len(walk.inner) > 1:
        return None
    count, n = walk.outer[0], walk.inner[0]
    steps = [(a[0], b[0]) for a, b in zip(walk.outer_steps, walk.inner_steps, strict=True)]
    alone = count == 1  # the stride of a dimension of size 1 is irrelevant
    across = [wide.FULL if b == 1 and (alone or a == n) else _one(a, b, alone) for a, b in steps]
    if n >= wide.LEAST and wide.FULL in across and all(across):
        return Lines(True, tuple(across), snippet)
    down = [wide.FULL if a == 1 and b == count else _one(a, b, alone) or _place(a, b) for a, b in steps]
    if n >= 8 * wide.phases(count) and wide.FULL in down and all(down):
        return Lines(False, tuple(down), snippet)
    return None


def _one(along_lines: int, in_line: int, alone: bool) -> str:
    return wide.ONE if in_line == 0 and (alone or along_lines == 1) else ""


def _place(along_lines: int, in_line: int) -> str:
    return wide.PLACE if along_lines == 0 and in_line == 1 else ""


def _in_lines(what: Reduction, lines: Lines, outs: int, count: int, stretches: int) -> ReductionStep:
    joined = wide.joined_rows if lines.rows else wide.joined_columns
    made = wide.Joined(what.name, what.join, lines.snippet, lines.full, what.dtype.name, what.end, tuple(what.numbers))
    kernel, sizes = joined(made, count, outs, stretches)
    return ReductionStep(kernel, what.shape, what.dtype, (*what.numbers.values(), *sizes))


def _anyhow(what: Reduction, walk: ReductionWalk, kind: str, stretches: int, cut: blocks.Cut | None) -> ReductionStep:
    """Plan a launch over arbitrarily strided arrays."""
    if what.join == "squares":
        wide_one = f"ti.cast({what.snippet}, ti.f64)"
        what = what._replace(join="sum", snippet=f"{wide_one} * {wide_one}")
    outs, count = product(walk.outer), product(walk.inner)
    work = next((x.name for x in what.types if x.kind == "f"), "float64")
    takes = tuple([source.Taken("a", letter, x.name) for letter, x in zip(source.LETTERS, what.types, strict=False)])
    text, kinds = _text(what, takes, kind, work, len(walk.outer), len(walk.inner), outs * count <= source.SERIAL, cut)
    steps = [by for a, b in zip(walk.outer_steps, walk.inner_steps, strict=True) for by in (*a, *b)]
    numbers = (*what.numbers.values(), outs, stretches, -(-count // stretches), count, *steps, *walk.outer, *walk.inner)
    return ReductionStep(compiled(what.name, text, kinds), what.shape, what.dtype, numbers)


def _text(
    what: Reduction,
    takes: tuple[source.Taken, ...],
    kind: str,
    work: str,
    outer: int,
    inner: int,
    serial: bool,
    cut: blocks.Cut | None,
) -> tuple[str, str]:
    update, start, out = JOINS[what.join][0], _start(what.join, kind), what.dtype.name
    arrays = [one.name for one in takes]
    sizes = [f"o{k}" for k in range(outer)] + [f"r{k}" for k in range(inner)]
    steps = [f"{a}{s}" for a in arrays for s in sizes]
    near = {a: " + ".join(f"i{k} * {a}o{k}" for k in range(outer)) for a in arrays}
    far = {a: " + ".join([f"{a}_at", *[f"j{k} * {a}r{k}" for k in range(inner)]]) for a in arrays}
    split = [f"        i{k} = rest % o{k}\n        rest = rest // o{k}\n" for k in reversed(range(outer)) if k]
    walk = [f"            j{k} = left % r{k}\n            left = left // r{k}\n" for k in reversed(range(inner)) if k]
    start, read = f"ti.cast({start}, ti.{source.TI[kind]})", [f"            {a} = {a}_[{far[a]}]\n" for a in arrays]
    args = tuple([source.Taken("f", x, "float64") for x in what.numbers])
    if cut is not None:
        begins = "".join(f"        {a}_at = {near[a]}\n" for a in arrays)
        found = start, "".join(split), begins, "".join([*walk, "            j0 = left\n", *read])
        types, texts = (out, kind, work), (what.snippet, update, what.end)
        return blocks.text_of(what.name, (*takes, *args), types, [*steps, *sizes], found, texts, cut)
    in_eights = what.join == "sum" and current().narrow
    update = EIGHTS if in_eights else f"            s = {update}\n"
    body = (
        f"        i = t\n        rest = i // stretches\n"
        f"        first = i % stretches * length\n{''.join(split)}        i0 = rest\n"
        + "".join(f"        {a}_at = {near[a]}\n" for a in arrays)
        + f"        s = {start}\n"
        + "        near = s\n" * in_eights
        + ROUNDS[source.VECTORIZED]
        + f"            left = r\n{''.join(walk)}            j0 = left\n"
        + "".join(read)
        + f"            x = {what.snippet}\n{update}"
        + "        s = s + near\n" * in_eights
        + f"        y_[i] = ti.cast({what.end}, ti.{source.TI[out]})\n"
    )
    counts = ["outs", "stretches", "length", "count", *steps, *sizes]
    return source.wrapped(what.name, (*takes, *args), out, work, counts, "outs * stretches", body, serial, 1, True)
