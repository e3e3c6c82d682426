"""The text of kernels: a snippet for each number, and around it the loops for how the numbers lie in memory.

A snippet is an expression of Taichi's Python in the operands a, b, c, … and the attributes of an operation. The same
goes into a loop over memory row by row, number by number or in vectors of sixteen, and into one that follows strides.
Sizes and strides are arguments, so that a text serves all shapes; types and the number of dimensions are not.
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
FEW = 16384  # up to so many numbers a second core is not worth waking, which takes up to a tenth of a millisecond
SERIAL = FEW  # the same, as loops are cut now
ROUND = 1024  # so many numbers along a row are one round of a loop
FOURS = False  # whether a thread takes four numbers
VECTORIZED = True  # whether sixteen numbers can be taken at once


def _roomy() -> bool:
    """Whether the processor is known to have 32 registers of 64 bytes (AVX-512), and not 16 of 32, or as little."""
    try:
        return FUSED and " avx512f " in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False


ROOMY = _roomy()
WIDE = 16  # numbers in a vector
STRETCH = 64  # of so many
SERIAL_WIDE = 131072  # the same of numbers in vectors
PAST = 1 << 24 if FUSED else sys.maxsize  # a result of so many numbers, more than caches keep, is stored past them
ONCE = "    ti.loop_config(serialize=True)\n"  # before a loop that one core goes through
ADDRESS = "ti.i64"  # what a kernel gets of an array that it stores so


def cut_for(arch: str) -> None:
    """Cut loops as `arch` likes them: on a GPU each number is a thread's, that of its neighbour the next thread's."""
    global SERIAL, ROUND, VECTORIZED, FOURS
    SERIAL, ROUND, VECTORIZED = (FEW, STRETCH * WIDE, True) if arch == "cpu" else (0, 1, False)
    FOURS = arch == "cuda"


def stored(array: str, place: str, vector: str, past: bool) -> str:
    """The lines that store a vector at some place of an array, or `past` the cache, where a kernel gets its address."""
    if not past:
        return f"{array}_[{place}] = {vector}\n"
    to, made = f"{array}_to", f"{array}_made"
    lines = f"{to} = {array}_ + ti.cast({place}, ti.i64) * {WIDE * 4}\n{made} = {vector}\n"
    return f"{lines}muladd.stream({to}, {made})\n"


class Taken(NamedTuple):
    """What a kernel takes: an array ("a", "v" of vectors, "p" its address) or a number ("f", "i"), its name in the
    snippet, its type."""

    kind: str
    name: str
    dtype: str


class Work(NamedTuple):
    """What a kernel computes in vectors of `WIDE`, or on a GPU number by number: a snippet of what it takes, after y,
    the result.

    `along` is empty where all lie row by row; else it has the dimensions, and by array how it goes along the last.
    With a `join` it is what that makes of each row, and then its `end`, which names `numbers`; and `along` is by array.
    If it `writes` some of what it takes, it is lines that change them, and there is no y.
    """

    snippet: str
    takes: tuple[Taken, ...]
    along: tuple[int, ...]
    join: str = ""
    end: str = ""
    numbers: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


class End(NamedTuple):
    """What is to be done with each vector of a product, number `e`, when it is there: lines, and what they take beside
    it, arrays of vectors and numbers; with functions that they call."""

    lines: str
    arrays: tuple[str, ...]
    numbers: tuple[str, ...]
    functions: str


NO_END = End("", (), (), "")


def flat(name: str, snippet: str, takes: tuple[Taken, ...], out: str, work: str, serial: bool) -> tuple[str, str]:
    """A kernel of numbers that all lie row by row, and the kinds of its arguments: y, what it takes, the count.

    `out` is the type of the result, and `work` that of fractions in the snippet.
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
    """A step of four numbers, 256 apart: all are read before the first is written, and neighbours by neighbours."""
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
    """The same of float32, sixteen at a time, in memory that begins at a multiple of 64 bytes and ends at one; stored
    `past` the cache, if so.

    A round is a stretch of `STRETCH` vectors.
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
    """A number as a vector, since functions of vectors take nothing else."""
    return f"        {name} = ti.Vector([{number} for j in range({wide})])\n"


def in_vectors(snippet: str, takes: Sequence[Taken], out: str) -> bool:
    """Whether a snippet can be computed in vectors: all is float32, and what it calls can be lowered."""
    return VECTORIZED and out == "float32" and all(x.dtype == "float32" for x in takes) and packable(snippet)


def of_any_width(snippet: str) -> bool:
    """Whether a snippet in vectors is arithmetic alone, and serves fewer than sixteen numbers too."""
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
    """The same of numbers that lie anyhow: after y and what it takes come for y, then for each array, `ndim` strides;
    then the sizes. A step goes along the last dimension, so that where a row begins is not asked for each number.

    `along` makes it one of vectors: arrays whose entry is 1 are read in vectors along the last dimension, y too, and
    those whose entry is 0 have one number there for a row. Then strides and the last size are in vectors, of `wide`.
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
    """A round t as `length` steps along a row: lines that find `first` and where each array's row begins, as ``y_at``;
    the numbers that they need, strides by array and sizes; and how many rounds there are."""
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
    """The loop around a body, in which i, or t where a round is `long`, goes up to the text `count`, as a kernel of y,
    `takes` and `numbers`. Or it is one of so many blocks of `threads`, as of `blocks`.

    The elements of y, and of arrays of the kind "v", are vectors of `wide` numbers; or y is an `ADDRESS`, like `out`.
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
    """The arguments of a kernel: a line for each array, whose type is long, and eight numbers in a line.

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
    """A loop in which t goes up to the text `count`, of long rounds, be they few, on all cores.

    Taichi cuts a loop into one piece for each core, but of 512 rounds at least: so a piece is the first of 512, the
    others empty.
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


FEW_BLOCKS = 2048  # so many at most


def blocks(count: str, threads: int, body: str, few: bool) -> str:
    """A loop of blocks of threads over the text `count`, which may be `few`: then it is one launch, see `offsets`."""
    head = f"    ti.loop_config(block_dim={threads})\n"
    if not few:
        return f"{head}    for t in range(({count}) * {threads}):\n{body}"
    body = f"        if t < ({count}) * {threads}:\n{indent(body, STEP)}"
    return f"{head}    for t in range({FEW_BLOCKS * threads}):\n{body}"


STEP = "    "
CORES = os.cpu_count() or 1


def shared(count: str, body: str, serial: bool, known: str = "") -> str:
    """A loop in which each core goes from its first_t up to its last_t, of all below the text `count`; `me` is its
    number. Lines that `count` needs are `known` before."""
    cores = 1 if serial else CORES
    once = ONCE if serial else ""
    return (
        f"{once}    for core in range({cores * 512}):\n        if core % 512 == 0:\n{known}"
        f"            me = core // 512\n            share = ({count} + {cores - 1}) // {cores}\n"
        f"            first_t = me * share\n            last_t = ti.min({count}, first_t + share)\n{body}"
    )


def array_of(dtype: str, wide: int = 1) -> str:
    """The annotation of an array of numbers, row by row, or of vectors of `wide` numbers."""
    element = f"ti.{TI[dtype]}" if wide == 1 else f"ti.types.vector({wide}, ti.{TI[dtype]})"
    return f"ti.types.ndarray(dtype={element}, ndim=1)"
