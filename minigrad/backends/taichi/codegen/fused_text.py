"""Source of fused kernels: elementwise loops, and loops with row reductions that need several passes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from math import prod
from textwrap import dedent, indent
from typing import Any
from zlib import crc32

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.functions import needed, packed
from minigrad.backends.taichi.codegen.loops import Loop, Lying, Product
from minigrad.backends.taichi.codegen.source import (
    CORES,
    SERIAL_WIDE,
    STRETCH,
    WIDE,
    End,
    Taken,
    repeated,
    rows,
    wrapped,
)
from minigrad.backends.taichi.codegen.wide import JOINS, NUMBER, VECTOR, text_of
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.kernel import Kernel, compiled
from minigrad.backends.taichi.runtime.recording import Launch, Place, Region
from minigrad.backends.taichi.runtime.vector_functions import typed
from minigrad.core.symbolic import Traced

__all__ = ["ended", "made"]

FLOAT = "float32"
_ASSIGNED = re.compile(r"^(\w+) = ", re.MULTILINE)


def made(loops: Sequence[Loop], stored: Callable[[Region], bool]) -> Launch:
    """Return the launch of one kernel for several loops. It stores the results that are `stored`, or else the last."""
    stores = _stores(loops, stored) or {loops[-1].y.key: len(loops) - 1}
    if any(x.y.row for x in loops):
        return _Passes(loops, set(stores)).launch()
    y, past = next(iter(stores)), prod(loops[0].sizes) * WIDE >= source.PAST
    writer = _VectorWriter(y, past=past) if source.VECTORIZED else _ScalarWriter(y, "i")
    for k, loop in enumerate(loops):
        writer.compute(loop, {key for key, by in stores.items() if by == k})
    return writer.launch(loops)


def _stores(loops: Sequence[Loop], stored: Callable[[Region], bool]) -> dict[Any, int]:
    """Return which loop stores each result that is `stored`: the last that computes it."""
    return {x.key: k for k, one in enumerate(loops) for x in one.results if stored(x.place.part)}


def ended(product: Product, loops: Sequence[Loop], stored: Callable[[Region], bool]) -> Launch:
    """Return the launch of a product with an epilogue: loops applied to its result tile by tile."""
    stores = _stores(loops, stored)
    writer = _VectorWriter(product.y.key, "e")
    for k, loop in enumerate(loops):
        writer.compute(loop, {key for key, by in stores.items() if by == k})
    return writer.end(product, loops)


def _filled(snippet: str, names: Mapping[str, str]) -> str:
    """Return a snippet with its operands renamed."""
    pattern = rf"(?<![\w.])({'|'.join(map(re.escape, names))})\b(?!\()"
    return re.sub(pattern, lambda found: names[found[1]], snippet) if names else snippet


class _VectorWriter:
    """Generator of a vectorised kernel. The array with key `y` is its output, `at` the index of the current vector in
    an array. Arrays that are only stored bypass the cache if `past`."""

    def __init__(self, y: Any, at: str = "{name}_at + i", past: bool = False) -> None:
        self._y, self._at, self._past = y, at, past
        self._away: set[Any] = set()  # keys of arrays that bypass the cache
        self._arrays: dict[Any, tuple[str, Lying]] = {}
        self._numbers: dict[Any, tuple[str, Any]] = {}
        self._in: dict[Any, str] = {}  # key -> register with the current vector
        self._heads = self._body = ""
        self._registers = (f"v{k}" for k in count())

    @staticmethod
    def _lines(text: str) -> str:
        """Return statements in vector form."""
        return packed(text)

    @staticmethod
    def _result(text: str) -> str:
        """Return a snippet in vector form."""
        return packed(text)

    def compute(self, loop: Loop, stored: Collection[Any]) -> None:
        """Append a loop that stores those of its results that are in `stored`."""
        work = loop.work
        names = {one.name: self._name(x) for one, x in zip(work.takes, loop.given, strict=True)}
        if work.writes:
            for name in [one.name for one in work.takes if one.kind == "a"]:  # the statements may assign any of these
                before, names[name] = names[name], next(self._registers)
                self._line(f"{names[name]} = {before}")
            names |= {name: next(self._registers) for name in _ASSIGNED.findall(work.snippet) if name not in names}
            for line in self._lines(_filled(work.snippet, names)).splitlines():
                self._line(line)
            made = [names[name] for name in work.writes]
        else:
            made = [next(self._registers)]
            self._line(f"{made[0]} = {self._result(_filled(work.snippet, names))}")
        for x, register in zip(loop.results, made, strict=True):
            self._in[x.key] = register
            if x.key in stored:
                if self._past and x.key not in self._arrays:
                    self._away.add(x.key)
                name = self._array(x)
                lines = source.stored(name, self._at.format(name=name), register, x.key in self._away)
                for line in lines.splitlines():
                    self._line(line)

    def _line(self, text: str) -> None:
        self._body += f"            {text}\n"

    def _array(self, x: Lying) -> str:
        name = "y" if x.key == self._y else f"p{len(self._arrays)}"
        return self._arrays.setdefault(x.key, (name, x))[0]

    def _name(self, x: Any) -> str:
        """Return the register of an operand."""
        if not isinstance(x, Lying):
            key = id(x) if type(x) is Traced else float(x).hex()
            return self._numbers.setdefault(key, (f"x{len(self._numbers)}", x))[0]
        if x.key not in self._in:
            name = self._array(x)
            register = self._in[x.key] = next(self._registers)
            if x.row:
                self._heads += repeated(f"{name}_[{name}_at]", register, WIDE)
            else:
                self._line(f"{register} = {name}_[{self._at.format(name=name)}]")
        return self._in[x.key]

    def launch(self, loops: Sequence[Loop]) -> Launch:
        """Return the launch of the kernel."""
        sizes = loops[0].sizes
        arrays = sorted(self._arrays.values(), key=lambda one: one[0] != "y")
        begin, names, rounds = rows([name for name, _ in arrays], len(sizes), STRETCH)
        spread = "".join(repeated(f"{name}_", name, WIDE) for name, _ in self._numbers.values())
        inner = f"        for i in range(first, ti.min(n{len(sizes) - 1}, first + {STRETCH})):\n{self._body}"
        takes = [
            Taken("p", name, "int64") if x.key in self._away else Taken("a" if x.row else "v", name, FLOAT)
            for name, x in arrays[1:]
        ]
        takes += [Taken("f", name, FLOAT) for name, _ in self._numbers.values()]
        serial = prod(sizes) * WIDE <= SERIAL_WIDE
        y, body = source.ADDRESS if self._y in self._away else FLOAT, f"{begin}{spread}{self._heads}{inner}"
        what = y, FLOAT, names, rounds, body, serial, WIDE, True
        text, kinds = wrapped("fused", takes, *what)
        strides = [by for _, x in arrays for by in x.strides]
        args = *[x.place for _, x in arrays], *[x for _, x in self._numbers.values()], *strides, *sizes
        return _launch(text, kinds, args, loops)

    def end(self, product: Product, loops: Sequence[Loop]) -> Launch:
        """Return the launch of a product with these statements as its epilogue."""
        arrays = [one for one in self._arrays.values() if one[0] != "y"]
        numbers, lines = list(self._numbers.values()), dedent(self._body)
        end = End(
            typed(lines, "f32"),
            tuple([name for name, _ in arrays]),
            tuple([name for name, _ in numbers]),
            needed(lines, "f32", True),
        )
        args = *product.launch.args, *[x.place for _, x in arrays], *[x for _, x in numbers]
        calls = *product.launch.calls, *[call for loop in loops for call in loop.launch.calls]
        made = product.launch.kernel.work.kernel(end)
        name = f"product_{crc32(made.text.encode()):08x}"
        text = made.text.replace(f"def {made.name}_kernel(", f"def {name}_kernel(")
        return Launch(compiled(name, text, made.kinds), args, calls)


class _ScalarWriter(_VectorWriter):
    """Generator of a GPU kernel, with one thread per element."""

    @staticmethod
    def _lines(text: str) -> str:
        return text

    @staticmethod
    def _result(text: str) -> str:
        return f"ti.cast({text}, ti.f32)"

    def launch(self, loops: Sequence[Loop]) -> Launch:
        arrays = sorted(self._arrays.values(), key=lambda one: one[0] != "y")
        takes = [Taken("a", name, FLOAT) for name, _ in arrays[1:]]
        takes += [Taken("f", name, FLOAT) for name, _ in self._numbers.values()]
        text, kinds = wrapped("fused", takes, FLOAT, FLOAT, ["n"], "n", indent(dedent(self._body), " " * 8), False)
        args = *[x.place for _, x in arrays], *[x for _, x in self._numbers.values()], *loops[0].sizes
        return _launch(text, kinds, args, loops)


class _Passes:
    """Generator of a kernel with several passes over each row: results of a reduction are available in the next pass.
    Elements of a row that a later pass reads are stored in their own memory: one row per core if nothing else does."""

    def __init__(self, loops: Sequence[Loop], stored: set[Any]) -> None:
        self._loops, self._stored = loops, stored
        self._serial = prod(loops[0].sizes) * WIDE <= SERIAL_WIDE
        self._away: set[Any] = set()  # keys of arrays that bypass the cache
        self._arrays: dict[Any, tuple[str, Lying]] = {}
        self._numbers: dict[Any, tuple[str, Any]] = {}
        self._rows: dict[Any, str] = {}  # key -> vector with a broadcast scalar of the row
        self._made: dict[Any, int] = {}  # key -> first pass that can read a result of a reduction
        self._passes: list[int] = []
        kept: set[Any] = set()
        for loop in loops:
            keys = [x.key for x in loop.reads]
            turn = max((self._made.get(key, 0) for key in keys), default=0)
            kept.update(key for key in keys if self._made.get(key, turn) < turn and not key[3])
            self._passes.append(turn)
            self._made[loop.y.key] = turn + bool(loop.work.join)
        self._kept = kept - stored
        if prod(loops[0].sizes) * WIDE >= source.PAST:
            self._away = {x.y.key for x in loops if x.y.key in stored - kept and not x.y.row}
        self._body = "".join([self._pass(turn) for turn in range(max(self._passes) + 1)])

    def _pass(self, turn: int) -> str:
        """Return the statements of one pass."""
        self._heads = self._inner = self._after = ""
        self._starts = self._fours = ""
        self._near: list[str] = []
        self._in: dict[Any, str] = {}
        for k, loop in enumerate(self._loops):
            if self._passes[k] == turn:
                self._compute(k, loop)
        through = f"        for k in range(n):\n{self._inner}" if self._inner else ""
        if self._near:
            through = f"        for turn in range((n + 3) // 4):\n{''.join(self._near)}"
            through += "            for k in range(turn * 4, ti.min(n, turn * 4 + 4)):\n"
            through += indent(self._inner, "    ") + self._fours
        return self._heads + self._starts + through + self._after

    def _compute(self, k: int, loop: Loop) -> None:
        work = loop.work
        names = {one.name: self._name(x) for one, x in zip(work.takes, loop.given, strict=True)}
        snippet = packed(_filled(work.snippet, names))
        if work.join:
            how = JOINS[work.join]
            sums, s = f"sums{k}", f"s{k}"
            self._starts += how.lines(how.start, 8, sums)
            term, near = f"term{k}", f"near{k}"
            self._inner += f"            {term} = {snippet}\n"
            if how.fours:  # in the same order of additions as the kernel of this sum alone
                self._near.append(repeated("0.0", f"    {near}", WIDE))
                self._inner += f"            {near} = {near} + {term}\n"
                self._fours += how.lines(how.add, 12, sums, near)
            else:
                self._inner += how.lines(how.add, 12, sums, term)
            ends = {"s": s, **{name: self._number(x) for name, x in loop.ends.items()}}
            self._after += re.sub(r"\bs\b", s, how.lines(f"{how.ready}\n{how.end}", 8, sums))
            self._after += f"        one{k} = ti.cast({_filled(work.end, ends)}, ti.f32)\n"
            self._after += repeated(f"one{k}", f"r{k}", WIDE) + self._store(loop.y, f"one{k}", 8)
            self._rows[loop.y.key] = f"r{k}"
        elif loop.y.row:
            # All lanes are equal. With one lane LLVM compares vectors of 1, which AVX-512 lacks, and aborts.
            self._heads += f"        r{k} = {snippet}\n{self._store(loop.y, f'r{k}.max()', 8)}"
            self._rows[loop.y.key] = f"r{k}"
        else:
            self._inner += f"            r{k} = {snippet}\n{self._store(loop.y, f'r{k}', 12)}"
            self._in[loop.y.key] = f"r{k}"

    def _store(self, y: Lying, value: str, depth: int) -> str:
        if y.key not in self._stored | self._kept:
            return ""
        if y.key in self._away:
            name = self._array(y)
            return indent(source.stored(name, f"{name}_row + k", value, True), " " * depth)
        return f"{' ' * depth}{self._at(y)} = {value}\n"

    def _at(self, x: Lying) -> str:
        """Return the expression of a row's scalar or current vector in memory."""
        name = self._array(x)
        row = f"{name}_row"
        if x.key in self._kept:
            row = "0" if self._serial else "core // 512 * n"
        return f"{name}_[{row}]" if x.row else f"{name}_[{row} + k]"

    def _array(self, x: Lying) -> str:
        return self._arrays.setdefault(x.key, (f"p{len(self._arrays)}", x))[0]

    def _note(self, x: Lying) -> str:
        return source.ADDRESS if x.key in self._away else NUMBER if x.row else VECTOR

    def _number(self, x: Any) -> str:
        key = id(x) if type(x) is Traced else float(x).hex()
        return self._numbers.setdefault(key, (f"x{len(self._numbers)}", x))[0]

    def _name(self, x: Any) -> str:
        """Return the vector register of an operand."""
        if not isinstance(x, Lying):
            return f"{self._number(x)}_"
        if x.row:
            if x.key not in self._rows:
                self._rows[x.key] = f"{self._array(x)}_one"
                self._heads += repeated(self._at(x), self._rows[x.key], WIDE)
            return self._rows[x.key]
        if x.key not in self._in:
            self._in[x.key] = f"{self._array(x)}_now"
            self._inner += f"            {self._in[x.key]} = {self._at(x)}\n"
        return self._in[x.key]

    def launch(self) -> Launch:
        """Return the launch of the kernel."""
        arrays, numbers = list(self._arrays.values()), list(self._numbers.values())
        strides = [(name, x.strides[0]) for name, x in arrays if x.key not in self._kept]
        begin = "".join(f"        {name}_row = i * {name}0\n" for name, _ in strides)
        spread = "".join(repeated(f"ti.cast({name}, ti.f32)", f"{name}_", WIDE) for name, _ in numbers)
        takes = [(f"{name}_", self._note(x)) for name, x in arrays]
        takes += [(name, "ti.f64") for name, _ in numbers]
        takes += [(name, "ti.i32") for name in (*[f"{name}0" for name, _ in strides], "rows", "n")]
        text, kinds = text_of("fused", takes, "rows", f"{begin}{spread}{self._body}", self._serial)
        places = [self._room(x.place) if x.key in self._kept else x.place for _, x in arrays]
        args = *places, *[x for _, x in numbers], *[by for _, by in strides], *self._loops[0].sizes
        return _launch(text, kinds, args, self._loops)

    def _room(self, place: Place) -> Place:
        """Return the scratch memory of an array that is not stored: one row per core."""
        items = self._loops[0].sizes[1] * WIDE * (1 if self._serial else CORES)
        return Place(place.part._replace(size=items * 4), 0, items, items * 4)


@cached(1024)
def _kernel(text: str, kinds: str) -> Kernel:
    name = f"fused_{crc32(text.encode()):08x}"
    return compiled(name, text.replace("def fused_kernel(", f"def {name}_kernel("), kinds)


def _launch(text: str, kinds: str, args: tuple[Any, ...], loops: Sequence[Loop]) -> Launch:
    """Return the launch of a source, whose kernel is named by its hash."""
    return Launch(_kernel(text, kinds), args, tuple([call for loop in loops for call in loop.launch.calls]))
