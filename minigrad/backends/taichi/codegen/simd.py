"""Source of vectorised float32 reductions along rows and columns: sums and extrema.

A row may start and end at any alignment. Its first and last vectors may also contain elements of adjacent rows, which
are masked. Elements are accumulated in float64, in sixteen partial sums.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import gcd
from typing import Any, NamedTuple

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.functions import required_functions
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.backends.taichi.runtime.vector_functions import cast_literals

__all__ = [
    "EDGES",
    "FULL",
    "MAX_SERIAL_ELEMENTS",
    "MAX_SERIAL_ROW_ELEMENTS",
    "MIN_CHUNK",
    "MIN_ROW_LENGTH",
    "NUMBER",
    "PER_COLUMN",
    "PER_LINE",
    "REDUCTIONS",
    "VECTOR",
    "LineReduction",
    "add_line",
    "alignment_phases",
    "column_reduction_kernel",
    "kernel_source",
    "row_reduction_kernel",
    "to_vector_form",
]  # fmt: skip

MIN_ROW_LENGTH = 32  # minimum number of elements of a row to vectorise
MIN_CHUNK = 1 << 17  # minimum number of elements per chunk of a sum
MAX_SERIAL_ELEMENTS = source.serial_limit(1 << 15)  # maximum number of elements for one core
MAX_SERIAL_ROW_ELEMENTS = source.serial_limit(1 << 15)  # the same limit for a reduction over rows
# The coverage of an array: all elements of each line, one element per line, or one element per column.
FULL, PER_LINE, PER_COLUMN = "full", "one", "place"
TILE = 4  # number of adjacent column vectors per tile, for longer contiguous reads
_LOWERED = re.compile(r"(?:exp16\(|[a-h]|\d+\.\d*|[()]|(?<=[\w)]) [*/+-] (?=[\w(]))+")


def to_vector_form(snippet: str) -> str | None:
    """Convert a snippet of arithmetic and `exp` to vector form. Return None for others, on most of which Taichi aborts.

    >>> to_vector_form("ti.exp(a - b)"), to_vector_form("-a"), to_vector_form("1 / a")
    ('exp16(a - b)', None, None)
    """
    snippet = snippet.replace("ti.exp(", "exp16(")
    return snippet if _LOWERED.fullmatch(snippet) else None


def kernel_source(
    name: str, arguments: Sequence[tuple[str, str]], count: str, body: str, serial: bool
) -> tuple[str, str]:
    """Return the source of a kernel with this body, and the kinds of its arguments, which are given as (name,
    annotation)."""
    letters = {"ti.f64": "f", source.ADDRESS: "p"}
    kinds = "".join("a" if "ndarray" in what else letters.get(what, "i") for _, what in arguments)
    head = f"@ti.kernel\ndef {name}_kernel(\n{source.format_parameters([f'{x}: {what}' for x, what in arguments])}):\n"
    loop = source.parallel_loop(count, f"        i = t\n{cast_literals(body, 'f32')}", serial)
    return f"{required_functions(body, 'f32', True)}{head}{loop}", kinds


VECTOR, NUMBER = source.array_annotation("float32", 16), source.array_annotation("float32")

# Locates the first and last vectors of a row from offset `start` to `end`, and their lanes that belong to the row.
EDGES = """        first = start >> 4
        last = (end - 1) >> 4
        low = ti.cast(start - first * 16, ti.f32)
        high = ti.cast(end - last * 16, ti.f32)
        lanes = ti.Vector([ti.cast(j, ti.f32) for j in range(16)])
        zeros = lanes * 0.0
"""
_ADD = "{s} = {s} + ti.Vector([ti.cast({x}[j], ti.f64) for j in range({wide})])\n"


def add_line(indent: int, x: str, s: str = "sums", wide: int = 16) -> str:
    return " " * indent + _ADD.format(s=s, x=x, wide=wide)


# --- sums and extremes ---


class VectorReduction(NamedTuple):
    """A vectorised reduction: statements that initialise sixteen accumulators {s}, add {x}, and reduce them to s.

    Masked lanes are replaced by `identity`. With `adds_by_four`, four vectors are summed before they are accumulated.
    """

    start: str
    add: str
    identity: str
    finish: str
    reduce_lanes: str
    adds_by_four: bool = False

    def lines(self, part: str, indent: int, s: str = "sums", x: str = "x") -> str:
        return "".join(f"{' ' * indent}{line}\n" for line in part.format(s=s, x=x).splitlines())


_EXTREME_OF_LANES = """s = {s}[0]
for j in ti.static(range(1, 16)):
    s = ti.select(({s}[j] SIGN s) | (({s}[j] == {s}[j]) == 0), {s}[j], s)"""


def _extreme_reduction(sign: str, identity: str) -> VectorReduction:
    """Return an extremum reduction. It tracks nan in a second accumulator, so that each dependency chain has only one
    instruction per vector."""
    sixteen = "ti.Vector([ti.cast({least}, ti.f32) for j in range(16)])"
    return VectorReduction(
        f"{{s}} = {sixteen.format(least=identity)}\n{{s}}_nan = {sixteen.format(least=1)}",
        f"{{s}} = ti.select({{x}} {sign} {{s}}, {{x}}, {{s}})\n{{s}}_nan = ti.select({{x}} == {{x}}, {{s}}_nan, {{x}})",
        f"zeros + {identity}",
        "{s} = ti.select({s}_nan == {s}_nan, {s}, {s}_nan)",
        _EXTREME_OF_LANES.replace("SIGN", sign),
    )


REDUCTIONS = {
    "sum": VectorReduction(
        "{s} = ti.Vector([ti.cast(0, ti.f64) for j in range(16)])",
        "{s} = {s} + ti.Vector([ti.cast({x}[j], ti.f64) for j in range(16)])",
        "zeros",
        "",
        "s = {s}.sum()",
        True,
    ),
    "squares": VectorReduction(
        "{s} = ti.Vector([ti.cast(0, ti.f64) for j in range(16)])",
        "{s} = {s} + ti.Vector([ti.cast({x}[j], ti.f64) * ti.cast({x}[j], ti.f64) for j in range(16)])",
        "zeros",
        "",
        "s = {s}.sum()",
    ),
    "max": _extreme_reduction(">", "-inf"),
    "min": _extreme_reduction("<", "inf"),
}


class LineReduction(NamedTuple):
    """A reduction of a snippet along lines. The final expression `end` may refer to the scalars `numbers`; the result
    has dtype `out`.

    `coverage` states which elements each array has: all elements of a line (`FULL`), one per line (`PER_LINE`), or one
    per column (`PER_COLUMN`).
    """

    name: str
    reduction: str
    snippet: str
    coverage: tuple[str, ...]
    out: str
    end: str
    numbers: tuple[str, ...]


@arch_cache()
def _row_reduction_source(what: LineReduction, serial: bool) -> tuple[str, str]:
    name, join, snippet, full, out, end, numbers = what
    how = REDUCTIONS[join]
    letters = source.LETTERS[: len(full)]
    each = [letter for letter, kind in zip(letters, full, strict=True) if kind == FULL]

    def reads(indent: int, at: str) -> str:
        return "".join(f"{' ' * indent}{x} = {x}_[{at}]\n" for x in each) + f"{' ' * indent}x = {snippet}\n"

    fours = (
        "        iterations = ti.max(last + 1 - edge - begin, 0) // 4\n        for iteration in range(iterations):\n"
    )
    for t in range(4):
        fours += f"            k{t} = begin + iteration * 4 + {t}\n{reads(12, f'k{t}')}            x{t} = x\n"
    fours += f"            x = x0 + x1 + x2 + x3\n{how.lines(how.add, 12)}        partial = zeros\n"
    fours += "        for k in range(begin + iterations * 4, last + 1 - edge):\n"
    fours += f"{reads(12, 'k')}            partial = partial + x\n{how.lines(how.add, 8, x='partial')}"
    ones = f"        for k in range(begin, last + 1 - edge):\n{reads(12, 'k')}{how.lines(how.add, 12)}"
    body = (
        "        row = i // chunks\n        start = row * size + i % chunks * length\n"
        f"        end = ti.min(start + length, row * size + size)\n{EDGES}        identity = {how.identity}\n"
        + "".join(f"        {x} = {x}_[row]\n" for x in letters if x not in each)
        + how.lines(how.start, 8)
        + "        edge = ti.select((start | end) % 16 == 0, 0, 1)\n        begin = first + edge\n"
        + (fours if how.adds_by_four else ones)
        + "        if (edge == 1) & (start < end):\n            limit = ti.select(first < last, 16.0, high)\n"
        + reads(12, "first")
        + f"            x = ti.select((lanes >= low) & (lanes < limit), x, identity)\n{how.lines(how.add, 12)}"
        + f"        if (edge == 1) & (first < last):\n{reads(12, 'last')}"
        + f"            x = ti.select(lanes < high, x, identity)\n{how.lines(how.add, 12)}"
        + how.lines(f"{how.finish}\n{how.reduce_lanes}", 8)
        + f"        y_[i] = ti.cast({end}, ti.{source.TAICHI_NAMES[out]})\n"
    )
    arguments = [("y_", source.array_annotation(out))]
    arguments += [(f"{x}_", VECTOR if x in each else NUMBER) for x in letters]
    arguments += [(x, "ti.f64") for x in numbers] + [(x, "ti.i32") for x in ("outs", "chunks", "length", "size")]
    return kernel_source(f"{name}_rows", arguments, "outs * chunks", body, serial)


def row_reduction_kernel(reduction: LineReduction, n: int, count: int, chunks: int) -> tuple[Any, tuple[int, ...]]:
    """Return a kernel that reduces `count` rows of `n` elements, each split into `chunks`, and its size arguments."""
    length = -(-n // chunks)
    length += -length % 16 if chunks > 1 else 0
    kernel = get_kernel(
        f"{reduction.name}_rows", *_row_reduction_source(reduction, n * count <= MAX_SERIAL_ROW_ELEMENTS)
    )
    if reduction.out == "float32":
        takes = tuple(
            [source.KernelArgument("a", letter, reduction.out) for letter in source.LETTERS[: len(reduction.coverage)]]
        )
        along = tuple([int(x == FULL) for x in reduction.coverage])
        kernel.work = source.Computation(
            reduction.snippet, takes, along, reduction.reduction, reduction.end, reduction.numbers
        )
    return kernel, (count, chunks, length, n)


def alignment_phases(columns: int) -> int:
    """Return the number of rows after which the alignment of rows repeats."""
    return 16 // gcd(columns, 16)


@arch_cache()
def _column_reduction_source(what: LineReduction, serial: bool) -> tuple[str, str]:
    name, join, snippet, full, out, end, numbers = what
    how = REDUCTIONS[join]
    letters, tile = source.LETTERS[: len(full)], range(TILE)
    each, fixed, places = (
        [x for x, k in zip(letters, full, strict=True) if k == one] for one in (FULL, PER_LINE, PER_COLUMN)
    )
    lines = ["        group = i // tiles\n        phase = group % phases\n        begin = group // phases * length\n"]
    lines.append("        stop = ti.min(begin + length, (rows - phase + phases - 1) // phases)\n")
    lines.append("        offset = (phase * columns) & 15\n        last_vector = (offset + columns - 1) >> 4\n")
    for t in tile:
        lines.append(f"        vector{t} = ti.min(i % tiles * {TILE} + {t}, last_vector)\n")
        lines.append(how.lines(how.start, 8, f"sum{t}"))
        column = f"ti.min(ti.max(vector{t} * 16 + j - offset, 0), columns - 1)"
        lines += [f"        {x}_{t} = ti.Vector([{x}_[{column}] for j in range(16)])\n" for x in fixed]
    lines.append("        for q in range(begin, stop):\n            r = phase + q * phases\n")
    lines.append("            start = (r * columns) >> 4\n")
    lines += [f"            {x} = {x}_[r]\n" for x in places]
    for t in tile:
        lines += [f"            {x} = {x}_[start + vector{t}]\n" for x in each]
        lines += [f"            {x} = {x}_{t}\n" for x in fixed]
        lines += [f"            x{t} = {snippet}\n", how.lines(how.add, 12, f"sum{t}", f"x{t}")]
    for t in tile:
        lines.append(how.lines(how.finish, 8, f"sum{t}"))
        lines.append(f"        for j in ti.static(range(16)):\n            column{t} = vector{t} * 16 + j - offset\n")
        lines.append(f"            if (column{t} >= 0) & (column{t} < columns):\n                s = sum{t}[j]\n")
        lines.append(
            f"                y_[group * columns + column{t}] = ti.cast({end}, ti.{source.TAICHI_NAMES[out]})\n"
        )
    arguments = [("y_", source.array_annotation(out)), *[(f"{x}_", VECTOR if x in each else NUMBER) for x in letters]]
    arguments += [(x, "ti.f64") for x in numbers]
    arguments += [(x, "ti.i32") for x in ("tiles", "phases", "chunks", "length", "rows", "columns")]
    return kernel_source(f"{name}_columns", arguments, "tiles * phases * chunks", "".join(lines), serial)


def column_reduction_kernel(reduction: LineReduction, n: int, count: int, chunks: int) -> tuple[Any, tuple[int, ...]]:
    """Return a kernel that reduces `count` columns of `n` elements, and its size arguments.

    Rows with the same alignment are added, so that the result has a row per phase and chunk.
    """
    text = _column_reduction_source(reduction, n * count <= MAX_SERIAL_ELEMENTS)
    phase_count = alignment_phases(count)
    vectors = (count + 30) // 16 if phase_count > 1 else count // 16  # maximum per row
    length = -(-n // (phase_count * chunks))
    return get_kernel(f"{reduction.name}_columns", *text), (
        -(-vectors // TILE),
        phase_count,
        chunks,
        length,
        n,
        count,
    )
