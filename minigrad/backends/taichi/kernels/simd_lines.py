"""float32 kernels along lines, vectorised by 16: the softmax family, and snippets of broadcast arrays.

Rows may start and end at any alignment, as in `simd`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.simd import (
    EDGES,
    MIN_ROW_LENGTH,
    NUMBER,
    VECTOR,
    add_line,
    kernel_source,
    to_vector_form,
)
from minigrad.backends.taichi.codegen.strided_walk import broadcast_strides, collapse_dimensions
from minigrad.backends.taichi.runtime.array import CACHE_LINE, array_argument
from minigrad.backends.taichi.runtime.caches import ArchDict, arch_cache
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.backends.taichi.runtime.types import FLOAT

__all__ = [
    "LineSpec",
    "evaluate_broadcast",
    "has_vector_columns",
    "has_vector_rows",
    "is_vector_aligned",
    "row_max_and_sum",
    "run_columns",
    "run_rows",
]

MAX_SERIAL = source.serial_limit(1 << 14)  # maximum number of elements on one core, for kernels with exponentials


def is_vector_aligned(x: Any) -> bool:
    """Return whether `x` is float32 and vector-aligned."""
    return source.VECTORIZED and x.dtype == FLOAT and array_argument(x)[0] % CACHE_LINE == 0


# --- broadcast arrays ---


@arch_cache()
def _broadcast_source(name: str, snippet: str, inner: tuple[bool, ...], ndim: int, serial: bool) -> tuple[str, str]:
    letters, dims = source.LETTERS[: len(inner)], range(ndim)
    lines = [f"        i{k} = rest % n{k}\n        rest = rest // n{k}\n" for k in reversed(dims) if k]
    lines = ["        rest = i\n", *lines, "        i0 = rest\n"]
    for x, along in zip(letters, inner, strict=True):
        offset = " + ".join(f"i{k} * {x}{k}" for k in dims)
        lines.append(f"        {x}_offset = {offset}\n" if along else f"        {x} = {x}_[{offset}]\n")
    lines.append("        for m in range(n):\n")
    lines += [f"            {x} = {x}_[{x}_offset + m]\n" for x, along in zip(letters, inner, strict=True) if along]
    lines.append(f"            y_[i * n + m] = {snippet}\n")
    arguments = [
        ("y_", VECTOR),
        *[(f"{x}_", VECTOR if along else NUMBER) for x, along in zip(letters, inner, strict=True)],
    ]
    arguments += [(f"{x}{k}", "ti.i32") for x in letters for k in dims]
    arguments += [(f"n{k}", "ti.i32") for k in dims] + [("n", "ti.i32")]
    return kernel_source(f"{name}_broadcast", arguments, " * ".join(f"n{k}" for k in dims), "".join(lines), serial)


def evaluate_broadcast(name: str, snippet: str, inputs: Sequence[Any], y: Any) -> bool:
    """Evaluate the expression `snippet` of `inputs` into `y`. Return False if it cannot be vectorised."""
    pointers = [array_argument(x) for x in inputs]
    if not source.VECTORIZED or not y.size or y.dtype != FLOAT or any(at[0] % CACHE_LINE for at in pointers):
        return False
    key = (name, snippet, y.shape, *[(x.shape, x.strides, x.dtype) for x in inputs])
    if key not in _plans:
        if len(_plans) >= MAX_PLANS:
            _plans.clear()
        _plans[key] = _make_plan(name, snippet, inputs, y)
    plan = _plans[key]
    if plan is not None:
        plan[0](array_argument(y), *pointers, *plan[1])
    return plan is not None


MAX_PLANS = 4096  # capacity of the cache
_plans: dict[Any, tuple[Any, tuple[int, ...]] | None] = ArchDict()


def _make_plan(name: str, snippet: str, inputs: Sequence[Any], y: Any) -> tuple[Any, tuple[int, ...]] | None:
    """Return the kernel and its integer arguments, or None if the expression cannot be vectorised."""
    vector_code = to_vector_form(snippet)
    sizes, strides = collapse_dimensions(y.shape, [broadcast_strides(x, y.shape) for x in inputs])
    if vector_code is None or sizes[-1] % 16 or any(x.dtype != FLOAT for x in inputs):
        return None
    if len(sizes) == 1:
        sizes, strides = [1, *sizes], [[0, *by] for by in strides]
    inner = tuple([by[-1] == 1 for by in strides])
    for by, along in zip(strides, inner, strict=True):
        if (along and any(step % 16 for step in by[:-1])) or (not along and by[-1]):
            return None
    steps = [step // 16 if along else step for by, along in zip(strides, inner, strict=True) for step in by[:-1]]
    code = _broadcast_source(name, vector_code, inner, len(sizes) - 1, y.size <= MAX_SERIAL)
    return get_kernel(f"{name}_broadcast", *code), (*steps, *sizes[:-1], sizes[-1] // 16)


# --- rows and their sums ---


class LineSpec(NamedTuple):
    """Computation performed on each line. `result` is a source expression that is evaluated for each element.

    It may use elements of the arrays, per-line values, and "normalizer", which is the value of `finish`. In `finish`,
    s64 is the sum of `summand` over the line. In `summand`, "row_max" is the maximum of a. If `store_summand`, `result`
    refers to the stored summand as x.
    """

    result: str
    summand: str = ""
    finish: str = "s64"
    needs_max: bool = False
    store_summand: bool = False


# first and last vectors of a row, with masks of their lanes
_EDGE_MASKS = (("first", "lanes >= low"), ("last", "lanes < high"))


def _load_source(arrays: Sequence[str], indent: int, at: str) -> str:
    return "".join(f"{' ' * indent}{x} = {x}_[{at}]\n" for x in arrays)


def _max_source() -> str:
    """Generate source that computes "row_max", the maximum of a."""
    edges = [
        f"        max_lanes = ti.max(max_lanes, ti.select({mask}, a_[{at}], lowest))\n" for at, mask in _EDGE_MASKS
    ]
    inner_loop = "        for k in range(first + 1, last):\n            max_lanes = ti.max(max_lanes, a_[k])\n"
    start = "        lowest = zeros - inf\n        max_lanes = lowest\n"
    return f"{start}{inner_loop}{''.join(edges)}        row_max = max_lanes.max()\n"


def _sum_source(arrays: Sequence[str], summand: str, store_summand: bool = False) -> str:
    """Generate source that computes s64, the sum of an expression, and, if `store_summand`, stores the summands in
    y."""
    lines = ["        sums = ti.Vector([ti.cast(0, ti.f64) for j in range(16)])\n"]
    lines.append(
        f"        for k in range(first + 1, last):\n{_load_source(arrays, 12, 'k')}            x = {summand}\n"
    )
    lines.append(("            y_[k] = x\n" if store_summand else "") + add_line(12, "x"))
    for at, mask in _EDGE_MASKS:
        lines.append(
            f"{_load_source(arrays, 8, at)}        x = ti.select({mask}, {summand}, zeros)\n{add_line(8, 'x')}"
        )
    return f"{''.join(lines)}        s64 = sums.sum()\n"


@arch_cache()
def _rows_source(
    name: str, arrays: tuple[str, ...], row_arrays: tuple[str, ...], line: LineSpec, serial: bool
) -> tuple[str, str]:
    result, summand, finish, needs_max, store_summand = line
    lines = [f"        start = i * n\n        end = start + n\n{EDGES}{_load_source(row_arrays, 8, 'i')}"]
    if needs_max:
        lines.append(_max_source())
    if summand:
        lines.append(f"{_sum_source(arrays, summand, store_summand)}        normalizer = ti.cast({finish}, ti.f32)\n")
    loads = "            x = y_[k]\n" if store_summand else _load_source(arrays, 12, "k")
    lines.append(f"        for k in range(first + 1, last):\n{loads}            y_[k] = {result}\n")
    for at, mask in _EDGE_MASKS:
        lines.append(
            _load_source(arrays, 8, at)
            + (f"        x = {summand}\n" if store_summand else "")
            + f"        x = {result}\n"
        )
        mask = mask.replace("lanes", "ti.cast(j, ti.f32)")
        lines.append(f"        for j in ti.static(range(16)):\n            if {mask}:\n")
        lines.append(f"                z_[{at} * 16 + j] = x[j]\n")
    arguments = [
        ("y_", VECTOR),
        ("z_", NUMBER),
        *[(f"{x}_", VECTOR) for x in arrays],
        *[(f"{x}_", NUMBER) for x in row_arrays],
    ]
    return kernel_source(
        f"{name}_rows", [*arguments, ("lines", "ti.i32"), ("n", "ti.i32")], "lines", "".join(lines), serial
    )


def run_rows(
    name: str, arrays: Mapping[str, Any], y: Any, line: LineSpec, row_arrays: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """Compute the rows of `y` as specified by `line`. `row_arrays` have one element per row."""
    n = y.shape[-1]
    code = _rows_source(name, tuple(arrays), tuple(row_arrays), line, y.size <= MAX_SERIAL)
    pointers = [array_argument(x) for x in (*arrays.values(), *row_arrays.values())]
    get_kernel(f"{name}_rows", *code)(array_argument(y), array_argument(y), *pointers, y.size // n, n)


@arch_cache()
def _columns_source(name: str, arrays: tuple[str, ...], line: LineSpec, serial: bool) -> tuple[str, str]:
    result, summand, finish, needs_max, store_summand = line
    loop_code = f"        for k in range(n):\n            index = start + k * step\n{_load_source(arrays, 12, 'index')}"
    lines = ["        start = i // step * n * step + i % step\n"]
    if needs_max:
        lines.append(f"        row_max = a_[start]\n{loop_code}            row_max = ti.max(row_max, a)\n")
    lines.append("        sums = ti.Vector([ti.cast(0, ti.f64) for j in range(16)])\n")
    lines.append(
        f"{loop_code}            x = {summand}\n{'            y_[index] = x' if store_summand else ''}\n"
        f"{add_line(12, 'x')}"
    )
    lane_finish = finish.replace("s64", "sums[j]")
    lines.append(f"        normalizer = ti.Vector([ti.cast({lane_finish}, ti.f32) for j in range(16)])\n")
    lines.append(
        f"{loop_code}{'            x = y_[index]' if store_summand else ''}\n            y_[index] = {result}\n"
    )
    arguments = [("y_", VECTOR), *[(f"{x}_", VECTOR) for x in arrays]]
    arguments += [(x, "ti.i32") for x in ("count", "n", "step")]
    return kernel_source(f"{name}_columns", arguments, "count", "".join(lines), serial)


def run_columns(name: str, arrays: Mapping[str, Any], dim: int, y: Any, line: LineSpec) -> None:
    """Compute the lines of `y` along `dim`, which is not the last dimension, 16 adjacent lines at a time."""
    code = _columns_source(name, tuple(arrays), line, y.size <= MAX_SERIAL)
    n, step = y.shape[dim], prod(y.shape[dim + 1 :]) // 16
    pointers = [array_argument(x) for x in arrays.values()]
    get_kernel(f"{name}_columns", *code)(array_argument(y), *pointers, y.size // (16 * n), n, step)


@arch_cache()
def _max_and_sum_source(serial: bool) -> tuple[str, str]:
    body = (
        f"        start = i * n\n        end = start + n\n{EDGES}{_max_source()}"
        f"{_sum_source(('a',), 'exp16(a - row_max)')}"
        "        y_[i] = row_max\n        z_[i] = ti.cast(s64, ti.f32)\n"
    )
    arguments = [("y_", NUMBER), ("z_", NUMBER), ("a_", VECTOR), ("lines", "ti.i32"), ("n", "ti.i32")]
    return kernel_source("max_and_sum_exp_rows", arguments, "lines", body, serial)


def row_max_and_sum(a: Any, row_max: Any, sum_exp: Any) -> None:
    """Store the maximum of each row of `a` in row_max, and the sum of exp(a - row_max) in sum_exp."""
    compiled_kernel = get_kernel("max_and_sum_exp_rows", *_max_and_sum_source(a.size <= MAX_SERIAL))
    compiled_kernel(array_argument(row_max), array_argument(sum_exp), array_argument(a), row_max.size, a.shape[-1])


def has_vector_columns(a: Any, dim: int) -> bool:
    """Return whether groups of 16 lines of `a` along `dim` are adjacent in memory and vector-aligned."""
    return bool(a.size and prod(a.shape[dim + 1 :]) % 16 == 0 and is_vector_aligned(a) and a.flags.c_contiguous)


def has_vector_rows(a: Any, dim: int) -> bool:
    """Return whether `dim` is the last dimension of a contiguous array whose rows are long enough to vectorise."""
    return bool(
        dim == a.ndim - 1
        and a.shape[dim] >= MIN_ROW_LENGTH
        and a.size
        and is_vector_aligned(a)
        and a.flags.c_contiguous
    )
