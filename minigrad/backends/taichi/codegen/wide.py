"""Source of vectorised float32 kernels along rows and columns: sums and extremes.

A row may start and end anywhere. Its first and last vector also contain elements of its neighbours, which are masked;
all others are its own. Elements are accumulated in float64, in sixteen partial sums.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import gcd
from typing import Any, NamedTuple

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.functions import needed
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.kernel import compiled
from minigrad.backends.taichi.runtime.vector_functions import typed

__all__ = [
    "EDGES", "FULL", "JOINS", "LEAST", "NUMBER", "ONE", "PLACE", "SERIAL", "SERIAL_LINES", "STRETCH", "VECTOR",
    "Joined", "add", "joined_columns", "joined_rows", "packed", "phases", "text_of",
]  # fmt: skip

LEAST = 32  # minimum number of elements of a row that is worth vectors
STRETCH = 1 << 17  # minimum number of elements per chunk of a sum
SERIAL = 1 << 20  # maximum number of elements for one core: waking another takes 0.1 ms
SERIAL_LINES = 1 << 20  # likewise if each row is one sum
FULL, ONE, PLACE = "full", "one", "place"  # an array has all elements of a line, one per line, or one per column
TILE = 4  # adjacent vectors of columns, so that memory is read in longer runs
_LOWERED = re.compile(r"(?:exp16\(|[a-h]|\d+\.\d*|[()]|(?<=[\w)]) [*/+-] (?=[\w(]))+")


def packed(snippet: str) -> str | None:
    """Return a snippet in vector form, or None: only arithmetic, since Taichi aborts on much else.

    >>> packed("ti.exp(a - b)"), packed("-a"), packed("1 / a")
    ('exp16(a - b)', None, None)
    """
    snippet = snippet.replace("ti.exp(", "exp16(")
    return snippet if _LOWERED.fullmatch(snippet) else None


def text_of(name: str, arguments: Sequence[tuple[str, str]], count: str, body: str, serial: bool) -> tuple[str, str]:
    """Return a kernel around a body, and the kinds of its arguments, given as (name, annotation)."""
    letters = {"ti.f64": "f", source.ADDRESS: "p"}
    kinds = "".join("a" if "ndarray" in what else letters.get(what, "i") for _, what in arguments)
    head = f"@ti.kernel\ndef {name}_kernel(\n{source.in_lines([f'{x}: {what}' for x, what in arguments])}):\n"
    loop = source.spread(count, f"        i = t\n{typed(body, 'f32')}", serial)
    return f"{needed(body, 'f32', True)}{head}{loop}", kinds


VECTOR, NUMBER = source.array_of("float32", 16), source.array_of("float32")

# The vectors of a row from offset `start` to `end`, and which lanes of the first and last belong to it.
EDGES = """        first = start >> 4
        last = (end - 1) >> 4
        low = ti.cast(start - first * 16, ti.f32)
        high = ti.cast(end - last * 16, ti.f32)
        lanes = ti.Vector([ti.cast(j, ti.f32) for j in range(16)])
        none = lanes * 0.0
"""
_ADD = "{s} = {s} + ti.Vector([ti.cast({x}[j], ti.f64) for j in range({wide})])\n"


def add(indent: int, x: str, s: str = "sums", wide: int = 16) -> str:
    return " " * indent + _ADD.format(s=s, x=x, wide=wide)


# --- sums and extremes ---


class Join(NamedTuple):
    """A vectorised reduction: statements to initialise sixteen accumulators {s}, add {x}, finish, and reduce to s.

    Masked lanes are replaced by `nothing`. With `fours`, four vectors are added first.
    """

    start: str
    add: str
    nothing: str
    ready: str
    end: str
    fours: bool = False

    def lines(self, part: str, indent: int, s: str = "sums", x: str = "x") -> str:
        return "".join(f"{' ' * indent}{line}\n" for line in part.format(s=s, x=x).splitlines())


_JOINED = """s = {s}[0]
for j in ti.static(range(1, 16)):
    s = ti.select(({s}[j] SIGN s) | (({s}[j] == {s}[j]) == 0), {s}[j], s)"""


def _of_extreme(sign: str, least: str) -> Join:
    """Return an extreme that tracks nan in a second accumulator, to keep the dependency chain at one instruction."""
    sixteen = "ti.Vector([ti.cast({least}, ti.f32) for j in range(16)])"
    return Join(
        f"{{s}} = {sixteen.format(least=least)}\n{{s}}_odd = {sixteen.format(least=1)}",
        f"{{s}} = ti.select({{x}} {sign} {{s}}, {{x}}, {{s}})\n{{s}}_odd = ti.select({{x}} == {{x}}, {{s}}_odd, {{x}})",
        f"none + {least}",
        "{s} = ti.select({s}_odd == {s}_odd, {s}, {s}_odd)",
        _JOINED.replace("SIGN", sign),
    )


JOINS = {
    "sum": Join(
        "{s} = ti.Vector([ti.cast(0, ti.f64) for j in range(16)])",
        "{s} = {s} + ti.Vector([ti.cast({x}[j], ti.f64) for j in range(16)])",
        "none",
        "",
        "s = {s}.sum()",
        True,
    ),
    "squares": Join(
        "{s} = ti.Vector([ti.cast(0, ti.f64) for j in range(16)])",
        "{s} = {s} + ti.Vector([ti.cast({x}[j], ti.f64) * ti.cast({x}[j], ti.f64) for j in range(16)])",
        "none",
        "",
        "s = {s}.sum()",
    ),
    "max": _of_extreme(">", "-inf"),
    "min": _of_extreme("<", "inf"),
}


class Joined(NamedTuple):
    """A reduction `join` of a snippet along lines, with the final expression `end` of `numbers`, as dtype `out`.

    `full` states which elements each array has: all of a line, FULL, one per line, ONE, or one per column position,
    PLACE.
    """

    name: str
    join: str
    snippet: str
    full: tuple[str, ...]
    out: str
    end: str
    numbers: tuple[str, ...]


@cached()
def _joined_rows(what: Joined, serial: bool) -> tuple[str, str]:
    name, join, snippet, full, out, end, numbers = what
    how = JOINS[join]
    letters = source.LETTERS[: len(full)]
    each = [letter for letter, kind in zip(letters, full, strict=True) if kind == FULL]

    def reads(indent: int, at: str) -> str:
        return "".join(f"{' ' * indent}{x} = {x}_[{at}]\n" for x in each) + f"{' ' * indent}x = {snippet}\n"

    fours = "        turns = ti.max(last + 1 - edge - begin, 0) // 4\n        for turn in range(turns):\n"
    for t in range(4):
        fours += f"            k{t} = begin + turn * 4 + {t}\n{reads(12, f'k{t}')}            x{t} = x\n"
    fours += f"            x = x0 + x1 + x2 + x3\n{how.lines(how.add, 12)}        near = none\n"
    fours += "        for k in range(begin + turns * 4, last + 1 - edge):\n"
    fours += f"{reads(12, 'k')}            near = near + x\n{how.lines(how.add, 8, x='near')}"
    ones = f"        for k in range(begin, last + 1 - edge):\n{reads(12, 'k')}{how.lines(how.add, 12)}"
    body = (
        "        row = i // stretches\n        start = row * size + i % stretches * length\n"
        f"        end = ti.min(start + length, row * size + size)\n{EDGES}        nothing = {how.nothing}\n"
        + "".join(f"        {x} = {x}_[row]\n" for x in letters if x not in each)
        + how.lines(how.start, 8)
        + "        edge = ti.select((start | end) % 16 == 0, 0, 1)\n        begin = first + edge\n"
        + (fours if how.fours else ones)
        + "        if (edge == 1) & (start < end):\n            most = ti.select(first < last, 16.0, high)\n"
        + reads(12, "first")
        + f"            x = ti.select((lanes >= low) & (lanes < most), x, nothing)\n{how.lines(how.add, 12)}"
        + f"        if (edge == 1) & (first < last):\n{reads(12, 'last')}"
        + f"            x = ti.select(lanes < high, x, nothing)\n{how.lines(how.add, 12)}"
        + how.lines(f"{how.ready}\n{how.end}", 8)
        + f"        y_[i] = ti.cast({end}, ti.{source.TI[out]})\n"
    )
    arguments = [("y_", source.array_of(out))]
    arguments += [(f"{x}_", VECTOR if x in each else NUMBER) for x in letters]
    arguments += [(x, "ti.f64") for x in numbers] + [(x, "ti.i32") for x in ("outs", "stretches", "length", "size")]
    return text_of(f"{name}_of_rows", arguments, "outs * stretches", body, serial)


def joined_rows(what: Joined, n: int, count: int, stretches: int) -> tuple[Any, tuple[int, ...]]:
    """Return a kernel of a reduction over `count` rows of `n` elements, or `stretches` chunks of each, and sizes."""
    length = -(-n // stretches)
    length += -length % 16 if stretches > 1 else 0
    made = compiled(f"{what.name}_of_rows", *_joined_rows(what, n * count <= SERIAL_LINES))
    if what.out == "float32":
        takes = tuple([source.Taken("a", letter, what.out) for letter in source.LETTERS[: len(what.full)]])
        along = tuple([int(x == FULL) for x in what.full])
        made.work = source.Work(what.snippet, takes, along, what.join, what.end, what.numbers)
    return made, (count, stretches, length, n)


def phases(columns: int) -> int:
    """Return the number of rows after which a row has the same alignment as the first."""
    return 16 // gcd(columns, 16)


@cached()
def _joined_columns(what: Joined, serial: bool) -> tuple[str, str]:
    name, join, snippet, full, out, end, numbers = what
    how = JOINS[join]
    letters, tile = source.LETTERS[: len(full)], range(TILE)
    each, fixed, places = ([x for x, k in zip(letters, full, strict=True) if k == one] for one in (FULL, ONE, PLACE))
    lines = ["        group = i // tiles\n        phase = group % phases\n        begin = group // phases * length\n"]
    lines.append("        stop = ti.min(begin + length, (rows - phase + phases - 1) // phases)\n")
    lines.append("        offset = (phase * columns) & 15\n        most = (offset + columns - 1) >> 4\n")
    for t in tile:
        lines.append(f"        at{t} = ti.min(i % tiles * {TILE} + {t}, most)\n")
        lines.append(how.lines(how.start, 8, f"sum{t}"))
        column = f"ti.min(ti.max(at{t} * 16 + j - offset, 0), columns - 1)"
        lines += [f"        {x}_{t} = ti.Vector([{x}_[{column}] for j in range(16)])\n" for x in fixed]
    lines.append("        for q in range(begin, stop):\n            r = phase + q * phases\n")
    lines.append("            start = (r * columns) >> 4\n")
    lines += [f"            {x} = {x}_[r]\n" for x in places]
    for t in tile:
        lines += [f"            {x} = {x}_[start + at{t}]\n" for x in each]
        lines += [f"            {x} = {x}_{t}\n" for x in fixed]
        lines += [f"            x{t} = {snippet}\n", how.lines(how.add, 12, f"sum{t}", f"x{t}")]
    for t in tile:
        lines.append(how.lines(how.ready, 8, f"sum{t}"))
        lines.append(f"        for j in ti.static(range(16)):\n            column{t} = at{t} * 16 + j - offset\n")
        lines.append(f"            if (column{t} >= 0) & (column{t} < columns):\n                s = sum{t}[j]\n")
        lines.append(f"                y_[group * columns + column{t}] = ti.cast({end}, ti.{source.TI[out]})\n")
    arguments = [("y_", source.array_of(out)), *[(f"{x}_", VECTOR if x in each else NUMBER) for x in letters]]
    arguments += [(x, "ti.f64") for x in numbers]
    arguments += [(x, "ti.i32") for x in ("tiles", "phases", "stretches", "length", "rows", "columns")]
    return text_of(f"{name}_of_columns", arguments, "tiles * phases * stretches", "".join(lines), serial)


def joined_columns(what: Joined, n: int, count: int, stretches: int) -> tuple[Any, tuple[int, ...]]:
    """Return a kernel of a reduction over `count` columns of `n` elements, and its sizes.

    Rows with the same alignment are added together: the result has a row per phase and chunk.
    """
    text = _joined_columns(what, n * count <= SERIAL)
    apart = phases(count)
    vectors = (count + 30) // 16 if apart > 1 else count // 16  # maximum per row
    length = -(-n // (apart * stretches))
    return compiled(f"{what.name}_of_columns", *text), (-(-vectors // TILE), apart, stretches, length, n, count)
