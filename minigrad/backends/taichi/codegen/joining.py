"""Megakernels: recorded launches merged into one kernel with a sequence of loops, at the cost of one launch.

The loops are those of the original kernels, in order; consecutive parallel loops become one loop (`meeting.py`).
Arrays are offsets into a few base arrays; integers, including the offsets, are read from a table, so that a source is
compiled once for all sizes and offsets, and no loop is unrolled because its length is constant. Names get the index of
their launch as a prefix. A sequence that repeats, such as the layers of a network, becomes one kernel with several
launches. On a GPU the transformed sources are merged, with buffers and offsets.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from math import isfinite
from textwrap import indent
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from minigrad.backends.taichi.codegen.fusing import fused
from minigrad.backends.taichi.codegen.meeting import (
    CORE,
    EACH,
    ONE,
    OTHER,
    STEP,
    Phase,
    can_meet,
    joined,
    meeting_place,
)
from minigrad.backends.taichi.codegen.source import ADDRESS, CORES
from minigrad.backends.taichi.runtime.array import lasting, like, pointer
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.kernel import Kernel, bytes_of, for_gpu
from minigrad.backends.taichi.runtime.locking import parse
from minigrad.backends.taichi.runtime.offsets import Moved, moved
from minigrad.backends.taichi.runtime.recording import Launch, Place
from minigrad.core.symbolic import Traced

__all__ = ["Group", "fused", "grouped"]

ARGUMENTS = 64  # maximum number of arguments of a Taichi kernel
FAR = 1 << 29  # maximum offset in elements: offsets are 32-bit, and indices are added to them
LAUNCHES = 32  # maximum number of launches in a kernel: compile time grows faster than the source
LONG = 64  # number of launches of a step from which additional kernels are negligible
OF_LONG = 8  # launches per kernel of such a step: a GPT compiles in two thirds of the time
WHOLE = f"{CORES}*512", f"{CORES * 512}"  # bounds of a loop with one iteration per core
PERIOD = 128  # maximum length of a repeated sequence of launches
WORTH = 8  # number of equal launches that is worth an additional kernel
TABLES = {"ti.i32": ("numbers_", np.int32), "ti.i64": ("wholes_", np.int64)}


class Seen(NamedTuple):
    """An array argument of a merged kernel: the memory it belongs to, a byte offset, and its type annotation."""

    of: Any
    start: int
    note: str


class Group:
    """Launches merged into one kernel, with its arguments: `arrays`, `tables` of integers, and `numbers`."""

    def __init__(self, launches: Sequence[Launch], where: Callable[[Place], tuple[Any, int]], gpu: bool) -> None:
        self.arrays: list[Seen] = []
        self._gpu = gpu
        self._written: set[str] = set()
        self.numbers: list[Any] = []
        self._where = where
        self._types: list[str] = []
        self._tables: dict[str, list[int]] = {name: [] for name, _ in TABLES.values()}
        self._functions: dict[str, tuple[str, str]] = {}  # source before renaming -> new name, and source
        parts = [part for k, one in enumerate(launches) for part in self._loops(f"l{k}_", one)]
        self._meeting = meeting_place()
        place = "" if gpu or not can_meet() else self._number(self._meeting.ctypes.data, "ti.i64")
        loops = joined(parts, place)
        kept = {name: np.array(self._tables[name], kind) for name, kind in TABLES.values() if self._tables[name]}
        self._kept = [lasting(like(x)) if gpu else x for x in kept.values()]
        self.tables = [pointer(x) if gpu else (x.ctypes.data, len(x), x.nbytes) for x in self._kept]
        taken = {f"A{k}": seen.note for k, seen in enumerate(self.arrays)}
        taken.update((name, _array(kept[name].dtype)) for name in kept)
        arguments = [f"{name}: {note}{f', {name}_from: ti.i32' if gpu else ''}" for name, note in taken.items()]
        arguments += [f"x{k}: {note}" for k, note in enumerate(self._types)]
        body = f"(\n    {', '.join(arguments)}\n):\n{loops}"
        functions = "".join(f"{text}\n\n" for _, text in self._functions.values())
        name = f"step_{crc32((functions + body).encode()):08x}"
        kinds = "".join("p" if x == ADDRESS else "a" for x in taken.values())
        kinds += "".join("f" if "f" in x else "i" for x in self._types)
        text = f"{functions}@ti.kernel\ndef {name}_kernel{body}"
        made = Moved(text, tuple(map(_element, taken.values())), tuple(x in self._written for x in taken))
        self.kernel = _kernel(name, made, kinds, gpu)
        self.count = len(launches)

    def _loops(self, prefix: str, launch: Launch) -> tuple[Phase, ...]:
        """Return the loops of a launch, with its arguments substituted."""
        made = for_gpu(launch.kernel.text) if self._gpu else _moved(launch.kernel.text)
        head = _head(made.text)
        names: dict[str, str] = {}
        for one in _parts(made.text)[0] if head.functions else ():
            name = one.name
            names[name] = self._function(one, names)
        inside = {**names, **{x: prefix + x for x in head.stored}}
        loads: dict[str, str] = {}
        arguments, elements, written = iter(head.arguments), iter(made.arrays), iter(made.written)
        for x in launch.args:
            name, note = next(arguments)
            if isinstance(x, Place) and note == ADDRESS:
                inside[name], at = self._array(x, note, 1)
                loads[prefix + name] = self._whole(note, at)
                inside[name] += f" + {prefix}{name}"
            elif isinstance(x, Place):
                size = bytes_of(next(elements))
                start, _ = next(arguments)
                inside[name], at = self._array(x, note, size)
                if next(written):
                    self._written.add(inside[name])
                loads[prefix + start] = self._whole("ti.i32", at)
                inside[start] = f"{inside[name]}_from + {prefix}{start}" if self._gpu else prefix + start
            elif type(x) is not Traced and note in TABLES:
                inside[name], loads[prefix + name] = prefix + name, self._whole(note, x)
            elif type(x) is not Traced and isfinite(x):
                inside[name] = f"{note}({float(x)!r})"
            else:
                inside[name] = self._number(x, note)
        return _loops_of(made.text, tuple(inside.items()), tuple(loads.items()), prefix)

    def _array(self, place: Place, note: str, size: int) -> tuple[str, int]:
        """Return the array that contains a place, and the element offset in it.

        An array argument costs a microsecond per launch, so constant arrays near one another share one argument.
        """
        of, offset = self._where(place)
        if of[0] == "fixed" and not self._gpu:
            at = of[1] + offset
            for k, one in enumerate(self.arrays):
                away = at - one.start
                if one.of == ("fixed", 0) and one.note == note and not away % size and abs(away) < size * FAR:
                    return f"A{k}", away // size
            of, offset, seen = ("fixed", 0), 0, Seen(("fixed", 0), at, note)
        else:
            seen = Seen(of, offset % size, note)
        if seen not in self.arrays:
            self.arrays.append(seen)
        return f"A{self.arrays.index(seen)}", offset // size

    def _whole(self, note: str, x: int) -> str:
        name = TABLES[note][0]
        table = self._tables[name]
        table.append(x)  # without deduplication, so that the source does not depend on the values
        return f"{name}[{len(table) - 1}]"

    def _number(self, x: Any, note: str) -> str:
        for k, (known, of) in enumerate(zip(self.numbers, self._types, strict=True)):
            if known is x and of == note:
                return f"x{k}"
        self.numbers.append(x)
        self._types.append(note)
        return f"x{len(self.numbers) - 1}"

    def _function(self, function: ast.FunctionDef, names: dict[str, str]) -> str:
        """Return the name of a function in the merged kernel: equal names may have different sources."""
        text = ast.unparse(_Renamed(names).visit(function))
        if text not in self._functions:
            of_its_name = sum(one.startswith(f"{function.name}__") for one, _ in self._functions.values())
            function.name = f"{function.name}__{of_its_name}"
            self._functions[text] = function.name, ast.unparse(function)
        return self._functions[text][0]


@cached(256)
def _kernel(name: str, made: Moved, kinds: str, gpu: bool) -> Kernel:
    """Return one kernel for all groups with the same source, so that equal layers are compiled once."""
    return Kernel(name, made.text, kinds, long=True, made=made if gpu else None)


@cached(1024)
def _moved(text: str) -> Moved:
    """Return a source with offsets; cached, since a step launches many kernels repeatedly."""
    return moved(text, False)


def _element(note: str) -> str:
    """Return the element type of an array annotation, in the format of `Moved`."""
    dtype = note.partition("dtype=")[2].partition(", ndim")[0]
    vector, _, kind = dtype.removeprefix("ti.types.vector(").rstrip(")").partition(", ")
    return f"{kind.removeprefix('ti.')}*{vector}" if kind else dtype.removeprefix("ti.")


def _array(dtype: Any) -> str:
    return f"ti.types.ndarray(dtype=ti.i{dtype.itemsize * 8}, ndim=1)"


def _parts(text: str) -> tuple[list[ast.FunctionDef], ast.FunctionDef]:
    """Return the functions of a source, and its kernel."""
    found = [x for x in parse(text).body if isinstance(x, ast.FunctionDef)]
    (kernel,) = [x for x in found if any(ast.unparse(one) == "ti.kernel" for one in x.decorator_list)]
    return [x for x in found if x is not kernel], kernel


class Head(NamedTuple):
    """The names in a source that are replaced when it is merged."""

    functions: bool
    """Whether there are functions in addition to the kernel."""
    arguments: tuple[tuple[str, str], ...]
    """The names and annotations of the arguments."""
    stored: tuple[str, ...]
    """The names that the kernel assigns."""


@cached(1024)
def _head(text: str) -> Head:
    functions, kernel = _parts(text)
    arguments = [(x.arg, ast.unparse(x.annotation) if x.annotation else "") for x in kernel.args.args]
    stored = {x.id: None for x in ast.walk(kernel) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}
    return Head(bool(functions), tuple(arguments), tuple(stored))


class _Renamed(ast.NodeTransformer):
    """Replace names by expressions."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def visit_Name(self, node: ast.Name) -> ast.AST:
        text = self._texts.get(node.id)
        if text is None:
            return node
        return ast.Name(text, node.ctx) if text.isidentifier() else parse(text, mode="eval").body


@cached(1024)
def _loops_of(
    text: str, names: tuple[tuple[str, str], ...], reads: tuple[tuple[str, str], ...], prefix: str
) -> tuple[Phase, ...]:
    """Return the statements of a kernel with `names` replaced. A parallel loop loads the integers that it `reads` in
    each iteration, a serial one before the loop. Equal layers give equal results."""
    loads = dict(reads)
    inside, outside = _Renamed(dict(names)), _Renamed({name: loads.get(text, text) for name, text in names})
    parts, serial = list[Phase](), False
    for line in _parts(text)[1].body:
        text = ast.unparse(line)
        if text.startswith("ti.loop_config(serialize="):
            serial = text == "ti.loop_config(serialize=True)"
        elif not isinstance(line, ast.For):
            parts.append(Phase(OTHER, ast.unparse(outside.visit(line)) + "\n"))
        elif serial:
            loop = ast.unparse(inside.visit(line)) + "\n"
            parts.append(Phase(ONE, _loaded(loop, loads) + loop, f"{prefix}once"))
            serial = False
        else:
            name, rounds = f"{prefix}{ast.unparse(line.target)}", _rounds(outside.visit(line.iter))
            within, test, only = line.body, "", line.body[0]
            if len(within) == 1 and isinstance(only, ast.If) and not only.orelse:
                within, test = only.body, ast.unparse(inside.visit(only.test))
            text = "".join([f"{ast.unparse(inside.visit(x))}\n" for x in within])
            text = _loaded(text, loads) + text
            whole = test == f"ti.raw_mod({name}, 512) == 0" and rounds.replace(" ", "") in WHOLE
            if test and not whole:
                text = f"{_loaded(test, loads)}if {test}:\n{indent(text, STEP)}"
            parts.append(Phase(CORE if whole else EACH, text, name, rounds))
    return tuple(parts)


def _rounds(iterated: ast.AST) -> str:
    """Return the source n of range(n)."""
    assert isinstance(iterated, ast.Call)
    assert ast.unparse(iterated.func) == "range"
    assert len(iterated.args) == 1
    return ast.unparse(iterated.args[0])


def _loaded(text: str, loads: dict[str, str]) -> str:
    """Return the lines that load the integers named in a source."""
    words = {x.id for x in ast.walk(parse(text)) if isinstance(x, ast.Name)}
    return "".join(f"{name} = {source}\n" for name, source in loads.items() if name in words)


def grouped(launches: Sequence[Launch], where: Callable[[Place], tuple[Any, int]], gpu: bool) -> list[Group]:
    """Merge launches into few kernels, in order; `where` returns the memory and the byte offset of a place."""
    numbers: dict[Any, int] = {}
    signs = [numbers.setdefault(_sign(one, where), len(numbers)) for one in launches]
    ends = [0, *accumulate(_lengths(signs, OF_LONG if len(launches) > LONG else LAUNCHES))]
    parts = [launches[begin:end] for begin, end in pairwise(ends)]
    return [group for part in parts for group in _fitting(part, where, gpu)]


def _sign(launch: Launch, where: Callable[[Place], tuple[Any, int]]) -> Any:
    """Return what the source of a merged kernel depends on in a launch."""
    places = [where(x)[0][0] for x in launch.args if isinstance(x, Place)]
    said = [id(x) if type(x) is Traced else x for x in launch.args if type(x) in (Traced, float)]
    return launch.kernel, *places, *said


def _lengths(signs: Sequence[int], most: int) -> list[int]:
    """Return the number of launches per kernel: as many as allowed, but a repeated sequence, such as layers, is divided
    equally, since equal kernels are compiled once."""
    begin, period, times = _repeated(signs)
    if not times:
        return _even(len(signs), most)
    end = begin + period * times
    return [*_lengths(signs[:begin], most), *_even(period, most) * times, *_lengths(signs[end:], most)]


def _even(count: int, most: int) -> list[int]:
    parts = -(-count // most)
    return [count * (k + 1) // parts - count * k // parts for k in range(parts)]


def _repeated(signs: Sequence[int]) -> tuple[int, int, int]:
    """Return the start, length and count of the best repeated sequence; a count of 0 if none is worth it.

    The benefit is the launches that need not be compiled, minus the cost of the additional launches.
    """
    best, found = 0, (0, 0, 0)
    for period in range(2, min(PERIOD, len(signs) // 2) + 1):
        same = 0
        for k in range(len(signs) - period, -1, -1):
            same = same + 1 if k + period < len(signs) and signs[k] == signs[k + period] else 0
            times = same // period + 1
            worth = (times - 1) * period - times * WORTH
            if worth > best:
                best, found = worth, (k, period, times)
    return found


def _fitting(launches: Sequence[Launch], where: Callable[[Place], tuple[Any, int]], gpu: bool) -> list[Group]:
    """Return one kernel, or split the launches in halves if it has too many arguments: on a GPU an array has two."""
    group, half = Group(launches, where, gpu), len(launches) // 2
    kinds = group.kernel.kinds
    if len(kinds) + gpu * kinds.count("a") <= ARGUMENTS or not half:
        return [group]
    return [*_fitting(launches[:half], where, gpu), *_fitting(launches[half:], where, gpu)]
