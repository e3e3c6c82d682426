"""Joining: recorded launches, one after the other, as one kernel of as many loops, whose launch costs what one does.

The loops are those of the texts, in their order; where cores share several, these are one loop (`meeting.py`). An array
of theirs is a place in one of few arrays, whole pieces of memory; a whole number is read from a table, so that texts
are compiled once for all sizes, and no loop is unrolled because its length is known; names get the number of their
launch in front. For a GPU the texts are joined as it gets them, with buffers and where in them to begin.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import isfinite
from textwrap import indent
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from minigrad._traced import Traced
from minigrad.backends.taichi.array import lasting, like, pointer
from minigrad.backends.taichi.fusing import fused
from minigrad.backends.taichi.meeting import CORE, EACH, ONE, OTHER, STEP, Loop, can_meet, joined, meeting_place
from minigrad.backends.taichi.offsets import Moved, moved
from minigrad.backends.taichi.recording import Launch, Place
from minigrad.backends.taichi.runtime import Kernel, bytes_of, for_gpu
from minigrad.backends.taichi.source import CORES

__all__ = ["Group", "fused", "grouped"]

ARGUMENTS = 64  # that Taichi's kernels take at most
FAR = 1 << 29  # elements: places in an array are counted by 32 bits, and what lies there goes on from them
LAUNCHES = 32  # in one kernel at most: what takes long to compile grows faster than the text
TABLES = {"ti.i32": ("numbers_", np.int32), "ti.i64": ("wholes_", np.int64)}


class Seen(NamedTuple):
    """An array of a joined kernel: memory `of` something, from so many bytes on, as elements of a type."""

    of: Any
    start: int
    note: str


class Group:
    """Launches in one kernel. `arrays` are what it takes, then `tables`, as they are given to it, and `numbers`."""

    def __init__(self, launches: Sequence[Launch], where: Callable[[Place], tuple[Any, int]], gpu: bool) -> None:
        self.arrays: list[Seen] = []
        self._gpu = gpu
        self._written: set[str] = set()
        self.numbers: list[Any] = []
        self._where = where
        self._types: list[str] = []
        self._tables: dict[str, list[int]] = {name: [] for name, _ in TABLES.values()}
        self._functions: dict[str, tuple[str, str]] = {}  # as it was, other names in place -> its name here, and text
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
        kinds = "a" * (len(self.arrays) + len(kept)) + "".join("f" if "f" in x else "i" for x in self._types)
        text = f"{functions}@ti.kernel\ndef {name}_kernel{body}"
        made = Moved(text, tuple(map(_element, taken.values())), tuple(x in self._written for x in taken))
        self.kernel = Kernel(name, text, kinds, long=True, made=made if gpu else None)
        self.count = len(launches)

    def _loops(self, prefix: str, launch: Launch) -> list[Loop]:
        """The loops of a launch, with its places and numbers in them."""
        made = for_gpu(launch.kernel.text) if self._gpu else _moved(launch.kernel.text)
        functions, kernel = _parts(made.text)
        names: dict[str, str] = {}
        for name, one in [(one.name, one) for one in functions]:
            names[name] = self._function(one, names)
        stored = {x.id for x in ast.walk(kernel) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}
        inside = {**names, **{x: prefix + x for x in stored}}
        loads: dict[str, str] = {}
        arguments, elements, written = iter(kernel.args.args), iter(made.arrays), iter(made.written)
        for x in launch.args:
            argument = next(arguments)
            name, note = argument.arg, ast.unparse(argument.annotation) if argument.annotation else ""
            if isinstance(x, Place):
                size = bytes_of(next(elements))
                start = next(arguments).arg
                inside[name], at, known = self._array(x, note, size)
                if next(written):
                    self._written.add(inside[name])
                if self._gpu:
                    inside[start] = f"{inside[name]}_from + {at}"
                    continue
                inside[start] = str(at) if known else prefix + start
                if not known:
                    loads[prefix + start] = self._whole("ti.i32", at)
            elif type(x) is not Traced and note in TABLES:
                inside[name], loads[prefix + name] = prefix + name, self._whole(note, x)
            elif type(x) is not Traced and isfinite(x):
                inside[name] = f"{note}({float(x)!r})"
            else:
                inside[name] = self._number(x, note)
        outside = {name: loads.get(text, text) for name, text in inside.items()}
        return _parts_of(kernel.body, _Renamed(inside), _Renamed(outside), loads, prefix)

    def _array(self, place: Place, note: str, size: int) -> tuple[str, int, bool]:
        """The array that a place is in, where in it, and whether that is known of the text in all processes.

        An array costs a launch a microsecond. So memory that stays where it is counts as part of what is near it.
        """
        of, offset = self._where(place)
        if of[0] == "fixed" and not self._gpu:
            at = of[1] + offset
            for k, one in enumerate(self.arrays):
                away = at - one.start
                if one.of == ("fixed", 0) and one.note == note and not away % size and abs(away) < size * FAR:
                    return f"A{k}", away // size, False
            of, offset, seen = ("fixed", 0), 0, Seen(("fixed", 0), at, note)
        else:
            seen = Seen(of, offset % size, note)
        if seen not in self.arrays:
            self.arrays.append(seen)
        return f"A{self.arrays.index(seen)}", offset // size, of[0] != "fixed"

    def _whole(self, note: str, x: int) -> str:
        name = TABLES[note][0]
        table = self._tables[name]
        if x not in table:
            table.append(x)
        return f"{name}[{table.index(x)}]"

    def _number(self, x: Any, note: str) -> str:
        for k, (known, of) in enumerate(zip(self.numbers, self._types, strict=True)):
            if known is x and of == note:
                return f"x{k}"
        self.numbers.append(x)
        self._types.append(note)
        return f"x{len(self.numbers) - 1}"

    def _function(self, function: ast.FunctionDef, names: dict[str, str]) -> str:
        """The name that a function has here: functions of one name are not the same everywhere."""
        text = ast.unparse(_Renamed(names).visit(function))
        if text not in self._functions:
            of_its_name = sum(one.startswith(f"{function.name}__") for one, _ in self._functions.values())
            function.name = f"{function.name}__{of_its_name}"
            self._functions[text] = function.name, ast.unparse(function)
        return self._functions[text][0]


@lru_cache(maxsize=1024)
def _moved(text: str) -> Moved:
    """A text with places to begin: a step launches many kernels often."""
    return moved(text, False)


def _element(note: str) -> str:
    """The type of the elements of an array, as `Moved` has it."""
    dtype = note.partition("dtype=")[2].partition(", ndim")[0]
    vector, _, kind = dtype.removeprefix("ti.types.vector(").rstrip(")").partition(", ")
    return f"{kind.removeprefix('ti.')}*{vector}" if kind else dtype.removeprefix("ti.")


def _array(dtype: Any) -> str:
    return f"ti.types.ndarray(dtype=ti.i{dtype.itemsize * 8}, ndim=1)"


def _parts(text: str) -> tuple[list[ast.FunctionDef], ast.FunctionDef]:
    """The functions of a text, and its kernel."""
    found = [x for x in ast.parse(text).body if isinstance(x, ast.FunctionDef)]
    (kernel,) = [x for x in found if any(ast.unparse(one) == "ti.kernel" for one in x.decorator_list)]
    return [x for x in found if x is not kernel], kernel


class _Renamed(ast.NodeTransformer):
    """Names as other texts."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def visit_Name(self, node: ast.Name) -> ast.AST:
        text = self._texts.get(node.id)
        if text is None:
            return node
        return ast.Name(text, node.ctx) if text.isidentifier() else ast.parse(text, mode="eval").body


def _parts_of(
    body: list[ast.stmt], inside: _Renamed, outside: _Renamed, loads: dict[str, str], prefix: str
) -> list[Loop]:
    """The statements of a kernel: in a loop the numbers that it needs are read first; in one in turn, once for all."""
    parts, serial = [], False
    for line in body:
        text = ast.unparse(line)
        if text.startswith("ti.loop_config(serialize="):
            serial = text == "ti.loop_config(serialize=True)"
        elif not isinstance(line, ast.For):
            parts.append(Loop(OTHER, ast.unparse(outside.visit(line)) + "\n"))
        elif serial:
            loop = ast.unparse(inside.visit(line)) + "\n"
            parts.append(Loop(ONE, _loaded(loop, loads) + loop, f"{prefix}once"))
            serial = False
        else:
            name, rounds = f"{prefix}{ast.unparse(line.target)}", _rounds(outside.visit(line.iter))
            within, test, only = line.body, "", line.body[0]
            if len(within) == 1 and isinstance(only, ast.If) and not only.orelse:
                within, test = only.body, ast.unparse(inside.visit(only.test))
            text = "".join([f"{ast.unparse(inside.visit(x))}\n" for x in within])
            text = _loaded(text, loads) + text
            whole = test == f"{name} % 512 == 0" and rounds.replace(" ", "") in (f"{CORES}*512", f"{CORES * 512}")
            if test and not whole:
                text = f"{_loaded(test, loads)}if {test}:\n{indent(text, STEP)}"
            parts.append(Loop(CORE if whole else EACH, text, name, rounds))
    return parts


def _rounds(iterated: ast.AST) -> str:
    """The text n of range(n)."""
    assert isinstance(iterated, ast.Call)
    assert ast.unparse(iterated.func) == "range"
    assert len(iterated.args) == 1
    return ast.unparse(iterated.args[0])


def _loaded(text: str, loads: dict[str, str]) -> str:
    """Lines that read those numbers which a text names."""
    words = {x.id for x in ast.walk(ast.parse(text)) if isinstance(x, ast.Name)}
    return "".join(f"{name} = {source}\n" for name, source in loads.items() if name in words)


def grouped(launches: Sequence[Launch], where: Callable[[Place], tuple[Any, int]], gpu: bool) -> list[Group]:
    """The launches in few kernels, in their order; `where` tells the piece of memory of a place, and the offset."""
    parts = [launches[k : k + LAUNCHES] for k in range(0, len(launches), LAUNCHES)]
    return [group for part in parts for group in _fitting(part, where, gpu)]


def _fitting(launches: Sequence[Launch], where: Callable[[Place], tuple[Any, int]], gpu: bool) -> list[Group]:
    """One kernel, or those of the halves where it would have too many arguments: on a GPU each array has two."""
    group, half = Group(launches, where, gpu), len(launches) // 2
    kinds = group.kernel.kinds
    if len(kinds) + gpu * kinds.count("a") <= ARGUMENTS or not half:
        return [group]
    return [*_fitting(launches[:half], where, gpu), *_fitting(launches[half:], where, gpu)]
