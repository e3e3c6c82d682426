"""Kernels of float32 along lines, sixteen numbers at a time: sums and extremes of rows and of columns, softmax and its
kin.

A row may begin and end anywhere. Its first and its last vector hold numbers of its neighbours too, which are masked;
all between are its own. Numbers are added up as float64, sixteen sums beside one another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from math import gcd, prod
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from minigrad.backends.taichi import source
from minigrad.backends.taichi.array import LINE
from minigrad.backends.taichi.elementwise import pointer
from minigrad.backends.taichi.functions import needed
from minigrad.backends.taichi.runtime import Remembered, compiled
from minigrad.backends.taichi.vector_functions import typed
from minigrad.backends.taichi.walks import collapsed, stretched

__all__ = [
    "EDGES", "FULL", "JOINS", "LEAST", "LINE", "NUMBER", "ONE", "PLACE", "SERIAL", "SERIAL_LINES", "SERIAL_ROWS",
    "STRETCH", "VECTOR", "aligned", "broadcast", "columns", "in_columns_of", "in_rows_of", "joined_columns",
    "joined_rows", "packed", "phases", "rows", "text_of", "top_and_total",
]  # fmt: skip

FLOAT = np.dtype(np.float32)
LEAST = 32  # a row of fewer numbers gains nothing
STRETCH = 1 << 17  # so many numbers at least for each first step of a sum
SERIAL = 1 << 20  # up to so many numbers to add up a second core is not worth waking: a tenth of a millisecond
SERIAL_LINES = 1 << 20  # the same where each row is one sum
SERIAL_ROWS = 1 << 17  # the same where there are exponentials to compute
FULL, ONE, PLACE = "full", "one", "place"  # an array has all numbers of a line, or one a line, or one a place in lines
TILE = 4  # vectors of columns beside one another, so that memory is read in longer pieces


def aligned(x: Any) -> bool:
    """Whether `x` is float32 and begins where a vector may."""
    return source.VECTORIZED and x.dtype == FLOAT and pointer(x)[0] % LINE == 0


_LOWERED = re.compile(r"(?:exp16\(|[a-h]|\d+\.\d*|[()]|(?<=[\w)]) [*/+-] (?=[\w(]))+")


def packed(snippet: str) -> str | None:
    """A snippet for vectors, or None if there is none: arithmetic alone, since Taichi aborts on much else.

    >>> packed("ti.exp(a - b)"), packed("-a"), packed("1 / a")
    ('exp16(a - b)', None, None)
    """
    snippet = snippet.replace("ti.exp(", "exp16(")
    return snippet if _LOWERED.fullmatch(snippet) else None


def text_of(name: str, arguments: Sequence[tuple[str, str]], count: str, body: str, serial: bool) -> tuple[str, str]:
    """The text around a body, and the kinds of its arguments: pairs of a name and what it is."""
    letters = {"ti.f64": "f", source.ADDRESS: "p"}
    kinds = "".join("a" if "ndarray" in what else letters.get(what, "i") for _, what in arguments)
    head = f"@ti.kernel\ndef {name}_kernel(\n{source.in_lines([f'{x}: {what}' for x, what in arguments])}):\n"
    loop = source.spread(count, f"        i = t\n{typed(body, 'f32')}", serial)
    return f"{needed(body, 'f32', True)}{head}{loop}", kinds


VECTOR, NUMBER = source.array_of("float32", 16), source.array_of("float32")

# The vectors of a row from number `start` up to `end`, and which lanes of the first and of the last are its own.
EDGES = """        first = start >> 4
        last = (end - 1) >> 4
        low = ti.cast(start - first * 16, ti.f32)
        high = ti.cast(end - last * 16, ti.f32)
        lanes = ti.Vector([ti.cast(j, ti.f32) for j in range(16)])
        none = lanes * 0.0
"""
_ADD = "{s} = {s} + ti.Vector([ti.cast({x}[j], ti.f64) for j in range({wide})])\n"


def _add(indent: int, x: str, s: str = "sums", wide: int = 16) -> str:
    return " " * indent + _ADD.format(s=s, x=x, wide=wide)


# --- sums and extremes ---


class Join(NamedTuple):
    """How sixteen results beside one another, {s}, begin, take in {x}, are ready, and become s, in lines of text.

    A lane without a number takes in `nothing`. If by `fours`, so many vectors are added up before.
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
    """What is not a number is kept beside, so that the next step waits for one instruction alone."""
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


@cache
def _joined_rows(
    name: str,
    join: str,
    snippet: str,
    full: tuple[str, ...],
    out: str,
    end: str,
    numbers: tuple[str, ...],
    serial: bool,
) -> tuple[str, str]:
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


def joined_rows(
    name: str, join: str, snippet: str, full: tuple[str, ...], n: int, count: int, stretches: int, out: str, end: str,
    numbers: tuple[str, ...],
) -> tuple[Any, tuple[int, ...]]:  # fmt: skip
    """A kernel of what `join` makes of a snippet over `count` rows of `n` numbers, or each of their `stretches`.

    With it come its sizes. `full` says of each array which numbers it has: all of a row, FULL, or one a row, ONE.
    """
    length = -(-n // stretches)
    length += -length % 16 if stretches > 1 else 0
    text = _joined_rows(name, join, snippet, full, out, end, numbers, n * count <= SERIAL_LINES)
    made = compiled(f"{name}_of_rows", *text)
    if out == "float32":
        takes = tuple([source.Taken("a", letter, out) for letter in source.LETTERS[: len(full)]])
        made.work = source.Work(snippet, takes, tuple([int(x == FULL) for x in full]), join, end, numbers)
    return made, (count, stretches, length, n)


def phases(columns: int) -> int:
    """How many rows it takes until one begins at the same place in a vector as the first."""
    return 16 // gcd(columns, 16)


@cache
def _joined_columns(
    name: str,
    join: str,
    snippet: str,
    full: tuple[str, ...],
    out: str,
    end: str,
    numbers: tuple[str, ...],
    serial: bool,
) -> tuple[str, str]:
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


def joined_columns(
    name: str, join: str, snippet: str, full: tuple[str, ...], n: int, count: int, stretches: int, out: str, end: str,
    numbers: tuple[str, ...],
) -> tuple[Any, tuple[int, ...]]:  # fmt: skip
    """The same of columns, `n` numbers each. PLACE: one a row.

    Rows that begin at the same place in a vector are added up together: the result has a row for each of the phases of
    each of the stretches.
    """
    text = _joined_columns(name, join, snippet, full, out, end, numbers, n * count <= SERIAL)
    apart = phases(count)
    vectors = (count + 30) // 16 if apart > 1 else count // 16  # of a row, at most
    length = -(-n // (apart * stretches))
    return compiled(f"{name}_of_columns", *text), (-(-vectors // TILE), apart, stretches, length, n, count)


# --- what is made of arrays that broadcast ---


@cache
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
    """Fill `y`, which is new, with a snippet of arrays that broadcast to its shape. Whether vectors can do that."""
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


PLANS = 4096  # that are remembered
_plans: dict[Any, tuple[Any, tuple[int, ...]] | None] = Remembered()


def _planned(name: str, snippet: str, inputs: Sequence[Any], y: Any) -> tuple[Any, tuple[int, ...]] | None:
    """A kernel and its sizes, if there is one."""
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


# --- what is made of a row and of its sum ---

_OWN = (("first", "lanes >= low"), ("last", "lanes < high"))  # the vectors at the edges of a row, and its lanes there


def _reads(arrays: Sequence[str], indent: int, at: str) -> str:
    return "".join(f"{' ' * indent}{x} = {x}_[{at}]\n" for x in arrays)


def _peak() -> str:
    """The lines that find `top`, the largest number of a."""
    edges = [f"        peaks = ti.max(peaks, ti.select({own}, a_[{at}], least))\n" for at, own in _OWN]
    between = "        for k in range(first + 1, last):\n            peaks = ti.max(peaks, a_[k])\n"
    return f"        least = none - inf\n        peaks = least\n{between}{''.join(edges)}        top = peaks.max()\n"


def _sum(arrays: Sequence[str], summed: str, kept: bool = False) -> str:
    """The lines that make s64, the sum of a text, and keep in y what is summed."""
    lines = ["        sums = ti.Vector([ti.cast(0, ti.f64) for j in range(16)])\n"]
    lines.append(f"        for k in range(first + 1, last):\n{_reads(arrays, 12, 'k')}            x = {summed}\n")
    lines.append(("            y_[k] = x\n" if kept else "") + _add(12, "x"))
    for at, own in _OWN:
        lines.append(f"{_reads(arrays, 8, at)}        x = ti.select({own}, {summed}, none)\n{_add(8, 'x')}")
    return f"{''.join(lines)}        s64 = sums.sum()\n"


@cache
def _rows(
    name: str, arrays: tuple[str, ...], ones: tuple[str, ...], top: bool, summed: str, after: str, result: str,
    kept: bool, serial: bool,
) -> tuple[str, str]:  # fmt: skip
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
    name: str,
    arrays: Mapping[str, Any],
    y: Any,
    result: str,
    summed: str = "",
    after: str = "s64",
    top: bool = False,
    kept: bool = False,
    ones: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Fill the rows of `y`, along its last dimension, with `result`.

    It is a text in the arrays' numbers, in those of `ones`, of which a row has one, and in `whole`: that is `after` of
    s64, the sum over the row of `summed`, a text in which `top` is the largest of a. If `kept`, what was summed is x.
    """
    n = y.shape[-1]
    text = _rows(name, tuple(arrays), tuple(ones), top, summed, after, result, kept, y.size <= SERIAL_ROWS)
    given = [pointer(x) for x in (*arrays.values(), *ones.values())]
    compiled(f"{name}_rows", *text)(pointer(y), pointer(y), *given, y.size // n, n)


@cache
def _columns(
    name: str, arrays: tuple[str, ...], top: bool, summed: str, after: str, result: str, kept: bool, serial: bool
) -> tuple[str, str]:
    each = f"        for k in range(n):\n            at = start + k * step\n{_reads(arrays, 12, 'at')}"
    lines = ["        start = i // step * n * step + i % step\n"]
    if top:
        lines.append(f"        top = a_[start]\n{each}            top = ti.max(top, a)\n")
    lines.append("        sums = ti.Vector([ti.cast(0, ti.f64) for j in range(16)])\n")
    lines.append(f"{each}            x = {summed}\n{'            y_[at] = x' if kept else ''}\n{_add(12, 'x')}")
    last = after.replace("s64", "sums[j]")
    lines.append(f"        whole = ti.Vector([ti.cast({last}, ti.f32) for j in range(16)])\n")
    lines.append(f"{each}{'            x = y_[at]' if kept else ''}\n            y_[at] = {result}\n")
    arguments = [("y_", VECTOR), *[(f"{x}_", VECTOR) for x in arrays]]
    arguments += [(x, "ti.i32") for x in ("count", "n", "step")]
    return text_of(f"{name}_columns", arguments, "count", "".join(lines), serial)


def columns(
    name: str,
    arrays: Mapping[str, Any],
    dim: int,
    y: Any,
    result: str,
    summed: str,
    after: str = "s64",
    top: bool = False,
    kept: bool = False,
) -> None:
    """The same along another dimension: sixteen lines beside one another."""
    text = _columns(name, tuple(arrays), top, summed, after, result, kept, y.size <= SERIAL_ROWS)
    n, step = y.shape[dim], prod(y.shape[dim + 1 :]) // 16
    given = [pointer(x) for x in arrays.values()]
    compiled(f"{name}_columns", *text)(pointer(y), *given, y.size // (16 * n), n, step)


@cache
def _top_and_total(serial: bool) -> tuple[str, str]:
    body = (
        f"        start = i * n\n        end = start + n\n{EDGES}{_peak()}{_sum(('a',), 'exp16(a - top)')}"
        "        y_[i] = top\n        z_[i] = ti.cast(s64, ti.f32)\n"
    )
    arguments = [("y_", NUMBER), ("z_", NUMBER), ("a_", VECTOR), ("lines", "ti.i32"), ("n", "ti.i32")]
    return text_of("top_and_total", arguments, "lines", body, serial)


def top_and_total(a: Any, top: Any, total: Any) -> None:
    """Fill `top` with the largest number of each row of `a`, and `total` with the sum of exp(a - top)."""
    made = compiled("top_and_total", *_top_and_total(a.size <= SERIAL_ROWS))
    made(pointer(top), pointer(total), pointer(a), top.size, a.shape[-1])


def in_columns_of(a: Any, dim: int) -> bool:
    """Whether sixteen lines of `a` along `dim` lie beside one another, and the next begin where a vector may."""
    return bool(a.size and prod(a.shape[dim + 1 :]) % 16 == 0 and aligned(a) and a.flags.c_contiguous)


def in_rows_of(a: Any, dim: int) -> bool:
    """Whether lines of `a` along `dim` are rows that vectors are good for."""
    return bool(dim == a.ndim - 1 and a.shape[dim] >= LEAST and a.size and aligned(a) and a.flags.c_contiguous)
