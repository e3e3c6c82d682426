"""Kernel source: a snippet for each element, inside loops that depend on the memory layout.

A snippet is a Taichi expression of the operands a, b, c, … and the attributes of an operation. The same snippet is
used in loops over contiguous memory, elementwise or in vectors of sixteen, and in strided loops. Sizes and strides
are arguments, so a source serves all shapes; dtypes and the number of dimensions are fixed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent
from typing import NamedTuple

from minigrad.backends.taichi.codegen.functions import needed, packable, packed
from minigrad.backends.taichi.runtime.muladd import FUSED
from minigrad.backends.taichi.runtime.types import TI
from minigrad.backends.taichi.runtime.vector_functions import typed

__all__ = [
    "ADDRESS",
    "LETTERS",
    "ONCE",
    "SERIAL",
    "TI",
    "Taken",
    "Work",
    "array_of",
    "blocks",
    "cut_for",
    "flat",
    "in_lines",
    "of_any_width",
    "repeated",
    "rows",
    "shared",
    "spread",
    "stored",
    "strided",
    "vectors",
    "wrapped",
]

LETTERS = "abcdefhijk"
FEW = 16384  # maximum number of elements for one core: waking another takes up to 0.1 ms
SERIAL = FEW  # the current limit, see `cut_for`
ROUND = 1024  # elements of a row per iteration of a loop
FOURS = False  # whether a thread processes four elements
VECTORIZED = True  # whether loops process vectors of sixteen elements


def _roomy() -> bool:
    """Return whether the CPU has AVX-512, with 32 registers of 64 bytes."""
    try:
        return FUSED and " avx512f " in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False


ROOMY = _roomy()
WIDE = 16  # elements of a vector
STRETCH = 64  # vectors per iteration of a loop
SERIAL_WIDE = 131072  # maximum number of elements for one core in vectorised loops
PAST = 1 << 24 if FUSED else sys.maxsize  # number of elements from which a result bypasses the cache
ONCE = "    ti.loop_config(serialize=True)\n"  # makes the next loop serial
ADDRESS = "ti.i64"  # type of the address of an array that bypasses the cache


def cut_for(arch: str) -> None:
    """Configure loops for `arch`: on a GPU one element per thread, with adjacent elements on adjacent threads."""
    global SERIAL, ROUND, VECTORIZED, FOURS
    SERIAL, ROUND, VECTORIZED = (FEW, STRETCH * WIDE, True) if arch == "cpu" else (0, 1, False)
    FOURS = arch == "cuda"


def stored(array: str, place: str, vector: str, past: bool) -> str:
    """Return the lines that store a vector in an array, or bypass the cache if `past`, with the array's address."""
    if not past:
        return f"{array}_[{place}] = {vector}\n"
    to, made = f"{array}_to", f"{array}_made"
    lines = f"{to} = {array}_ + ti.cast({place}, ti.i64) * {WIDE * 4}\n{made} = {vector}\n"
    return f"{lines}muladd.stream({to}, {made})\n"


class Taken(NamedTuple):
    """An argument of a kernel: an array ("a", "v" of vectors, "p" as an address) or a scalar ("f", "i"), its name in
    the snippet, and its dtype."""

    kind: str
    name: str
    dtype: str


class Work(NamedTuple):
    """The computation of a kernel in vectors of `WIDE`, or elementwise on a GPU: a snippet of its arguments after the
    result y.

    `along` is empty if all arrays are contiguous; otherwise it has the number of dimensions, and the last stride of
    each array. With a `join` the snippet is reduced over each row, then `end` is applied, an expression of `numbers`;
    and `along` has an entry per array. If it `writes` some of its arguments, the snippet is statements, and there is no
    y.
    """

    snippet: str
    takes: tuple[Taken, ...]
    along: tuple[int, ...]
    join: str = ""
    end: str = ""
    numbers: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


class End(NamedTuple):
    """The epilogue of a product, applied to each vector, with index `e`: statements, their array and scalar arguments,
    and the functions that they call."""

    lines: str
    arrays: tuple[str, ...]
    numbers: tuple[str, ...]
    functions: str


NO_END = End("", (), (), "")


def flat(name: str, snippet: str, takes: tuple[Taken, ...], out: str, work: str, serial: bool) -> tuple[str, str]:
    """Return a kernel over contiguous arrays and the kinds of its arguments: y, `takes`, the number of elements.

    `out` is the dtype of the result, and `work` that of float literals in the snippet.
    """
    reads = [f"        {one.name} = {one.name}_[i]\n" for one in takes if one.kind == "a"]
    store = f"y_[i] = ti.cast({snippet}, ti.{TI[out]})\n"
    if not FOURS:
        return wrapped(name, takes, out, work, ["n"], "n", f"{''.join(reads)}        {store}", serial)
    arrays = [one.name for one in takes if one.kind == "a"]
    return wrapped(
        name,
        takes,
        out,
        work,
        ["n"],
        "(n + 1023) // 1024 * 256",
        _fours(arrays, snippet, store, out),
        serial,
        long=True,
    )


def _fours(arrays: Sequence[str], snippet: str, store: str, out: str) -> str:
    """Return the body for four elements, 256 apart, all loaded before the first store, with coalesced accesses."""
    read = "".join(f"            {x}{k} = {x}_[first + {256 * k}]\n" for x in arrays for k in range(4))
    made = "".join(
        f"            i = first + {256 * k}\n"
        + "".join(f"            {x} = {x}{k}\n" for x in arrays)
        + f"            made{k} = ti.cast({snippet}, ti.{TI[out]})\n"
        for k in range(4)
    )
    written = "".join(f"            y_[first + {256 * k}] = made{k}\n" for k in range(4))
    rest = "".join(f"                {x} = {x}_[i]\n" for x in arrays)
    return (
        f"        first = t // 256 * 1024 + t % 256\n        if first + 768 < n:\n{read}{made}{written}"
        "        else:\n            for k in range((n - first + 255) // 256):\n"
        f"                i = first + k * 256\n{rest}                {store}"
    )


def vectors(name: str, snippet: str, takes: tuple[Taken, ...], serial: bool, past: bool = False) -> tuple[str, str]:
    """Return a kernel of float32 in vectors of sixteen over arrays aligned to 64 bytes and padded to full vectors, that
    bypasses the cache if `past`.

    An iteration processes `STRETCH` vectors.
    """
    reads = [f"            {one.name} = {one.name}_[i]\n" for one in takes if one.kind == "a"]
    body = (
        f"{''.join(repeated(f'{one.name}_', one.name, WIDE) for one in takes if one.kind == 'f')}"
        f"        for i in range(t * {STRETCH}, ti.min(n, t * {STRETCH} + {STRETCH})):\n"
        f"{''.join(reads)}{indent(stored('y', 'i', packed(snippet), past), STEP * 3)}"
    )
    count = f"(n + {STRETCH - 1}) // {STRETCH}"
    wide = tuple([one._replace(kind="v") if one.kind == "a" else one for one in takes])
    return wrapped(name, wide, ADDRESS if past else "float32", "float32", ["n"], count, body, serial, WIDE, True)


def repeated(number: str, name: str, wide: int) -> str:
    """Return the line that broadcasts a scalar to a vector, as functions of vectors require."""
    return f"        {name} = ti.Vector([{number} for j in range({wide})])\n"


def in_vectors(snippet: str, takes: Sequence[Taken], out: str) -> bool:
    """Return whether a snippet can be vectorised: all dtypes are float32, and all its functions can be lowered."""
    return VECTORIZED and out == "float32" and all(x.dtype == "float32" for x in takes) and packable(snippet)


def of_any_width(snippet: str) -> bool:
    """Return whether a vectorised snippet is plain arithmetic, and so also works on shorter vectors."""
    return "16(" not in packed(snippet) + needed(packed(snippet), "f32", True)


def strided(
    name: str,
    snippet: str,
    takes: tuple[Taken, ...],
    out: str,
    work: str,
    ndim: int,
    serial: bool,
    along: Sequence[int] | None = None,
    wide: int = WIDE,
) -> tuple[str, str]:
    """Return a kernel over strided arrays: y and `takes` are followed by `ndim` strides for y and each array, then by
    the sizes. The inner loop is over the last dimension, so that row offsets are computed once per row.

    With `along` it is vectorised: y and arrays with entry 1 are read in vectors along the last dimension, arrays with
    entry 0 have one element per row. Strides and the last size are then in units of vectors, of `wide` elements.
    """
    walked = ["y", *[one.name for one in takes if one.kind == "a"]]
    vectors = along is not None
    last, length = ndim - 1, STRETCH if vectors else ROUND
    body, numbers, count = rows(walked, ndim, length)
    inner = f"        for i in range(first, ti.min(n{last}, first + {length})):\n"
    in_rows = {one for one, by in zip(walked[1:], along or (), strict=False) if by}
    for one in walked[1:]:
        if vectors and one not in in_rows:
            body += repeated(f"{one}_[{one}_at]", one, wide)
        else:
            inner += f"            {one} = {one}_[{one}_at + i{'' if vectors else f' * {one}{last}'}]\n"
    if vectors:
        body += "".join(repeated(f"{one.name}_", one.name, wide) for one in takes if one.kind == "f")
        inner += f"            y_[y_at + i] = {packed(snippet)}\n"
    else:
        inner += f"            y_[y_at + i * y{last}] = ti.cast({snippet}, ti.{TI[out]})\n"
    read = tuple([one._replace(kind="v") if one.name in in_rows else one for one in takes])
    return wrapped(name, read, out, work, numbers, count, body + inner, serial, wide if vectors else 1, True)


def rows(walked: Sequence[str], ndim: int, length: int) -> tuple[str, list[str], str]:
    """Return the lines that compute `first` and the row offset ``y_at`` of each array for iteration t, which covers
    `length` elements of a row; their arguments, strides by array and sizes; and the number of iterations."""
    last = ndim - 1
    steps = [f"        i{k} = rest % n{k}\n        rest = rest // n{k}\n" for k in reversed(range(1, last))]
    begins = {one: " + ".join(f"i{k} * {one}{k}" for k in range(last)) or "0" for one in walked}
    lines = (
        f"        parts = (n{last} + {length - 1}) // {length}\n        rest = t // parts\n"
        f"        first = t % parts * {length}\n{''.join(steps)}        i0 = rest\n"
        + "".join(f"        {one}_at = {begins[one]}\n" for one in walked)
    )
    numbers = [f"{one}{k}" for one in walked for k in range(ndim)] + [f"n{k}" for k in range(ndim)]
    return lines, numbers, " * ".join([*[f"n{k}" for k in range(last)], f"((n{last} + {length - 1}) // {length})"])


def wrapped(
    name: str,
    takes: Sequence[Taken],
    out: str,
    work: str,
    numbers: Sequence[str],
    count: str,
    body: str,
    serial: bool,
    wide: int = 1,
    long: bool = False,
    threads: tuple[int, bool] | None = None,
) -> tuple[str, str]:
    """Return a kernel of y, `takes` and `numbers`, with a loop over the expression `count` around a body; the index is
    i, or t if an iteration is `long`. With `threads` it is a loop over thread blocks, see `blocks`.

    The elements of y, and of arrays of kind "v", are vectors of `wide` elements; or y is an `ADDRESS`, like `out`.
    """
    past = out == ADDRESS
    arguments = [f"y_: {ADDRESS if past else array_of(out, wide)}"]
    for x in takes:
        array = array_of(x.dtype, wide if x.kind == "v" else 1)
        name_of = x.name if x.kind not in "av" and wide == 1 else f"{x.name}_"
        arguments.append(f"{name_of}: {array if x.kind in 'av' else f'ti.{TI[x.dtype]}'}")
    arguments += [f"{number}: ti.i32" for number in numbers]
    body, before = typed(body, TI[work]), needed(body, TI[work], wide > 1)
    once = ONCE if serial else ""
    loop = spread(count, body, serial) if long else f"{once}    for i in range({count}):\n{body}"
    if threads:
        loop = blocks(count, threads[0], body, threads[1])
    text = f"{before}@ti.kernel\ndef {name}_kernel(\n{in_lines(arguments)}):\n{loop}"
    return text, "ap"[past] + "".join([x.kind for x in takes]).replace("v", "a") + "i" * len(numbers)


def in_lines(arguments: Sequence[str]) -> str:
    """Return the parameter list of a kernel: a line per array, whose type is long, and eight scalars per line.

    >>> print(in_lines(["y_: ti.types.ndarray(dtype=ti.f32, ndim=1)", "n: ti.i32", "m: ti.i32"]), end="")
        y_: ti.types.ndarray(dtype=ti.f32, ndim=1),
        n: ti.i32, m: ti.i32,
    """
    lines: list[list[str]] = []
    for one in arguments:
        if "ndarray" in one or not lines or "ndarray" in lines[-1][0] or len(lines[-1]) == 8:
            lines.append([])
        lines[-1].append(one)
    return "".join(f"    {', '.join(line)},\n" for line in lines)


def spread(count: str, body: str, serial: bool) -> str:
    """Return a loop over t up to the expression `count`, of few long iterations, on all cores.

    Taichi divides a loop between cores in chunks of at least 512 iterations, so a chunk is one iteration of 512, and
    the others are empty.
    """
    if serial:
        return f"{ONCE}    for t in range({count}):\n{body}"
    if not VECTORIZED:
        return f"    for t in range({count}):\n{body}"
    length = f"({count} + {CORES - 1}) // {CORES}"
    return (
        f"    for core in range({CORES} * 512):\n        if core % 512 == 0:\n"
        f"            first_t = core // 512 * ({length})\n"
        f"            for t in range(first_t, ti.min({count}, first_t + {length})):\n"
        f"{indent(body, ' ' * 8)}" + "            muladd.streamed()\n" * ("muladd.stream(" in body)
    )


FEW_BLOCKS = 2048  # maximum number of blocks in a single launch


def blocks(count: str, threads: int, body: str, few: bool) -> str:
    """Return a loop over `count` thread blocks; if they are `few`, its bound is constant, see `offsets`."""
    head = f"    ti.loop_config(block_dim={threads})\n"
    if not few:
        return f"{head}    for t in range(({count}) * {threads}):\n{body}"
    body = f"        if t < ({count}) * {threads}:\n{indent(body, STEP)}"
    return f"{head}    for t in range({FEW_BLOCKS * threads}):\n{body}"


STEP = "    "
CORES = os.cpu_count() or 1


def shared(count: str, body: str, serial: bool, known: str = "") -> str:
    """Return a loop in which core `me` processes first_t to last_t of the range of the expression `count`. The lines
    `known` compute variables in `count`."""
    cores = 1 if serial else CORES
    once = ONCE if serial else ""
    return (
        f"{once}    for core in range({cores * 512}):\n        if core % 512 == 0:\n{known}"
        f"            me = core // 512\n            share = ({count} + {cores - 1}) // {cores}\n"
        f"            first_t = me * share\n            last_t = ti.min({count}, first_t + share)\n{body}"
    )


def array_of(dtype: str, wide: int = 1) -> str:
    """Return the annotation of a contiguous array of elements, or of vectors of `wide` elements."""
    element = f"ti.{TI[dtype]}" if wide == 1 else f"ti.types.vector({wide}, ti.{TI[dtype]})"
    return f"ti.types.ndarray(dtype={element}, ndim=1)"
