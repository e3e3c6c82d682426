"""float32 kernels along lines, vectorised by 16: the softmax family, and snippets of broadcast arrays.

Rows may start and end at any alignment, as in `wide`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.walks import collapsed, stretched
from minigrad.backends.taichi.codegen.wide import EDGES, LEAST, NUMBER, VECTOR, add, packed, text_of
from minigrad.backends.taichi.runtime.array import LINE, pointer
from minigrad.backends.taichi.runtime.caches import Remembered, cached
from minigrad.backends.taichi.runtime.kernel import compiled
from minigrad.backends.taichi.runtime.types import FLOAT

__all__ = ["Line", "aligned", "broadcast", "columns", "in_columns_of", "in_rows_of", "rows", "top_and_total"]

SERIAL_ROWS = 1 << 17  # maximum elements for one core, with exponentials to compute


def aligned(x: Any) -> bool:
    """Return whether `x` is float32 and vector-aligned."""
    return source.VECTORIZED and x.dtype == FLOAT and pointer(x)[0] % LINE == 0


# --- broadcast arrays ---


@cached()
def _broadcast(name: str, snippet: str, inner: tuple[bool, ...], ndim: int, serial: bool) -> tuple[str, str]:
    letters, dims = source.LETTERS[: len(inner)], range(ndim)
    lines = [f"        i{k} = rest % n{k}\n        rest = rest // n{k}\n" for k in reversed(dims) if k]
    lines = ["        rest = i\n", *lines, "        i0 = rest\n"]
    for x, along in zip(letters, inner, strict=True):
        place = " + ".join(f"i{k} * {x}{k}" for k in dims)
        lines.append(f"        {x}_at = {place}\n" if along else f"        {x} = {x}_[{place}]\n")
    lines.append("        for m in range(n):\n")
    lines += [f"            {x} = {x}_[{x}_at + m]\n" for x, along in zip(letters, inner, strict=True) if along]
    lines.append(f"            y_[i * n + m] = {snippet}\n")
    arguments = [
        ("y_", VECTOR),
        *[(f"{x}_", VECTOR if along else NUMBER) for x, along in zip(letters, inner, strict=True)],
    ]
    arguments += [(f"{x}{k}", "ti.i32") for x in letters for k in dims]
    arguments += [(f"n{k}", "ti.i32") for k in dims] + [("n", "ti.i32")]
    return text_of(f"{name}_broadcast", arguments, " * ".join(f"n{k}" for k in dims), "".join(lines), serial)


def broadcast(name: str, snippet: str, inputs: Sequence[Any], y: Any) -> bool:
    """Fill the new array `y` with a snippet of arrays broadcast to its shape. Return whether it can be vectorised."""
    given = [pointer(x) for x in inputs]
    if not source.VECTORIZED or not y.size or y.dtype != FLOAT or any(at[0] % LINE for at in given):
        return False
    key = (name, snippet, y.shape, *[(x.shape, x.strides, x.dtype) for x in inputs])
    if key not in _plans:
        if len(_plans) >= PLANS:
            _plans.clear()
        _plans[key] = _planned(name, snippet, inputs, y)
    plan = _plans[key]
    if plan is not None:
        plan[0](pointer(y), *given, *plan[1])
    return plan is not None


PLANS = 4096  # capacity of the cache
_plans: dict[Any, tuple[Any, tuple[int, ...]] | None] = Remembered()


def _planned(name: str, snippet: str, inputs: Sequence[Any], y: Any) -> tuple[Any, tuple[int, ...]] | None:
    """Return the kernel and its sizes, or None if it cannot be vectorised."""
    vectors = packed(snippet)
    sizes, strides = collapsed(y.shape, [stretched(x, y.shape) for x in inputs])
    if vectors is None or sizes[-1] % 16 or any(x.dtype != FLOAT for x in inputs):
        return None
    if len(sizes) == 1:
        sizes, strides = [1, *sizes], [[0, *by] for by in strides]
    inner = tuple([by[-1] == 1 for by in strides])
    for by, along in zip(strides, inner, strict=True):
        if (along and any(step % 16 for step in by[:-1])) or (not along and by[-1]):
            return None
    steps = [step // 16 if along else step for by, along in zip(strides, inner, strict=True) for step in by[:-1]]
    text = _broadcast(name, vectors, inner, len(sizes) - 1, y.size <= SERIAL_ROWS)
    return compiled(f"{name}_broadcast", *text), (*steps, *sizes[:-1], sizes[-1] // 16)


# --- rows and their sums ---


class Line(NamedTuple):
    """The computation of a line: `result`, a source expression evaluated for each element.

    It refers to elements of the arrays, to per-line values, and to "whole": `after` applied to s64, the sum of the
    expression `summed` over the line. In `summed`, "top" is the maximum of a. If `kept`, the summand is stored as x.
    """

    result: str
    summed: str = ""
    after: str = "s64"
    top: bool = False
    kept: bool = False


_OWN = (("first", "lanes >= low"), ("last", "lanes < high"))  # edge vectors of a row, and masks of its lanes


def _reads(arrays: Sequence[str], indent: int, at: str) -> str:
    return "".join(f"{' ' * indent}{x} = {x}_[{at}]\n" for x in arrays)


def _peak() -> str:
    """Generate source that computes "top", the maximum of a."""
    edges = [f"        peaks = ti.max(peaks, ti.select({own}, a_[{at}], least))\n" for at, own in _OWN]
    between = "        for k in range(first + 1, last):\n            peaks = ti.max(peaks, a_[k])\n"
    return f"        least = none - inf\n        peaks = least\n{between}{''.join(edges)}        top = peaks.max()\n"


def _sum(arrays: Sequence[str], summed: str, kept: bool = False) -> str:
    """Generate source that computes s64, the sum of an expression, and, if `kept`, stores the summands in y."""
    lines = ["        sums = ti.Vector([ti.cast(0, ti.f64) for j in range(16)])\n"]
    lines.append(f"        for k in range(first + 1, last):\n{_reads(arrays, 12, 'k')}            x = {summed}\n")
    lines.append(("            y_[k] = x\n" if kept else "") + add(12, "x"))
    for at, own in _OWN:
        lines.append(f"{_reads(arrays, 8, at)}        x = ti.select({own}, {summed}, none)\n{add(8, 'x')}")
    return f"{''.join(lines)}        s64 = sums.sum()\n"


@cached()
def _rows(name: str, arrays: tuple[str, ...], ones: tuple[str, ...], line: Line, serial: bool) -> tuple[str, str]:
    result, summed, after, top, kept = line
    lines = [f"        start = i * n\n        end = start + n\n{EDGES}{_reads(ones, 8, 'i')}"]
    if top:
        lines.append(_peak())
    if summed:
        lines.append(f"{_sum(arrays, summed, kept)}        whole = ti.cast({after}, ti.f32)\n")
    inner = "            x = y_[k]\n" if kept else _reads(arrays, 12, "k")
    lines.append(f"        for k in range(first + 1, last):\n{inner}            y_[k] = {result}\n")
    for at, own in _OWN:
        lines.append(_reads(arrays, 8, at) + (f"        x = {summed}\n" if kept else "") + f"        x = {result}\n")
        own = own.replace("lanes", "ti.cast(j, ti.f32)")
        lines.append(f"        for j in ti.static(range(16)):\n            if {own}:\n")
        lines.append(f"                z_[{at} * 16 + j] = x[j]\n")
    arguments = [
        ("y_", VECTOR),
        ("z_", NUMBER),
        *[(f"{x}_", VECTOR) for x in arrays],
        *[(f"{x}_", NUMBER) for x in ones],
    ]
    return text_of(f"{name}_rows", [*arguments, ("lines", "ti.i32"), ("n", "ti.i32")], "lines", "".join(lines), serial)


def rows(
    name: str, arrays: Mapping[str, Any], y: Any, line: Line, ones: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """Compute the rows of `y`, along its last dimension, as `line` specifies; `ones` have one element per row."""
    n = y.shape[-1]
    text = _rows(name, tuple(arrays), tuple(ones), line, y.size <= SERIAL_ROWS)
    given = [pointer(x) for x in (*arrays.values(), *ones.values())]
    compiled(f"{name}_rows", *text)(pointer(y), pointer(y), *given, y.size // n, n)


@cached()
def _columns(name: str, arrays: tuple[str, ...], line: Line, serial: bool) -> tuple[str, str]:
    result, summed, after, top, kept = line
    each = f"        for k in range(n):\n            at = start + k * step\n{_reads(arrays, 12, 'at')}"
    lines = ["        start = i // step * n * step + i % step\n"]
    if top:
        lines.append(f"        top = a_[start]\n{each}            top = ti.max(top, a)\n")
    lines.append("        sums = ti.Vector([ti.cast(0, ti.f64) for j in range(16)])\n")
    lines.append(f"{each}            x = {summed}\n{'            y_[at] = x' if kept else ''}\n{add(12, 'x')}")
    last = after.replace("s64", "sums[j]")
    lines.append(f"        whole = ti.Vector([ti.cast({last}, ti.f32) for j in range(16)])\n")
    lines.append(f"{each}{'            x = y_[at]' if kept else ''}\n            y_[at] = {result}\n")
    arguments = [("y_", VECTOR), *[(f"{x}_", VECTOR) for x in arrays]]
    arguments += [(x, "ti.i32") for x in ("count", "n", "step")]
    return text_of(f"{name}_columns", arguments, "count", "".join(lines), serial)


def columns(name: str, arrays: Mapping[str, Any], dim: int, y: Any, line: Line) -> None:
    """Compute `y` along another dimension, 16 adjacent lines at a time."""
    text = _columns(name, tuple(arrays), line, y.size <= SERIAL_ROWS)
    n, step = y.shape[dim], prod(y.shape[dim + 1 :]) // 16
    given = [pointer(x) for x in arrays.values()]
    compiled(f"{name}_columns", *text)(pointer(y), *given, y.size // (16 * n), n, step)


@cached()
def _top_and_total(serial: bool) -> tuple[str, str]:
    body = (
        f"        start = i * n\n        end = start + n\n{EDGES}{_peak()}{_sum(('a',), 'exp16(a - top)')}"
        "        y_[i] = top\n        z_[i] = ti.cast(s64, ti.f32)\n"
    )
    arguments = [("y_", NUMBER), ("z_", NUMBER), ("a_", VECTOR), ("lines", "ti.i32"), ("n", "ti.i32")]
    return text_of("top_and_total", arguments, "lines", body, serial)


def top_and_total(a: Any, top: Any, total: Any) -> None:
    """Store the maximum of each row of `a` in top, and the sum of exp(a - top) in total."""
    made = compiled("top_and_total", *_top_and_total(a.size <= SERIAL_ROWS))
    made(pointer(top), pointer(total), pointer(a), top.size, a.shape[-1])


def in_columns_of(a: Any, dim: int) -> bool:
    """Return whether groups of 16 lines of `a` along `dim` are adjacent in memory and vector-aligned."""
    return bool(a.size and prod(a.shape[dim + 1 :]) % 16 == 0 and aligned(a) and a.flags.c_contiguous)


def in_rows_of(a: Any, dim: int) -> bool:
    """Return whether lines of `a` along `dim` are rows worth vectorising."""
    return bool(dim == a.ndim - 1 and a.shape[dim] >= LEAST and a.size and aligned(a) and a.flags.c_contiguous)
