"""Megakernels: recorded launches merged into one kernel with a sequence of loops, at the cost of one launch.

The loops are those of the original kernels, in order; consecutive parallel loops become one loop (`barrier.py`).
Arrays are accessed by offsets into a few base arrays. Integers, including the offsets, are read from a table, so that a
source is compiled once for all sizes and offsets, and no loop is unrolled because its length is constant. Names are
prefixed with the index of their launch. A repeated sequence, such as the layers of a network, becomes one kernel with
several launches. On a GPU the transformed sources are merged, with buffers and offsets.
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

from minigrad.backends.taichi.codegen.barrier import (
    PARALLEL,
    PER_CORE,
    SERIAL,
    STATEMENT,
    STEP,
    KernelLoop,
    barrier_counter,
    can_use_barriers,
    insert_barriers,
)
from minigrad.backends.taichi.codegen.fusion import fuse_launches
from minigrad.backends.taichi.codegen.source import ADDRESS, CORES
from minigrad.backends.taichi.runtime.array import array_argument, copy_to_device, register_constant
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import Kernel, element_bytes, transform_for_gpu
from minigrad.backends.taichi.runtime.launch_recording import ArrayArgument, Launch
from minigrad.backends.taichi.runtime.locking import parse
from minigrad.backends.taichi.runtime.transforms import TransformedSource, add_offsets
from minigrad.core.symbolic import SymbolicScalar

__all__ = ["Megakernel", "fuse_launches", "merge_launches"]

MAX_ARGUMENTS = 64  # maximum number of arguments of a Taichi kernel
MAX_OFFSET = 1 << 29  # maximum offset in elements: offsets are 32-bit, and indices are added to them
MAX_LAUNCHES = 32  # maximum number of launches in a kernel: compile time grows faster than the source
LONG_STEP_LAUNCHES = 64  # minimum number of launches of a step for which additional kernels are negligible
MAX_LAUNCHES_IN_LONG_STEP = 8  # maximum for such a step; a GPT compiles in two thirds of the time
PER_CORE_BOUNDS = f"{CORES}*512", f"{CORES * 512}"  # bounds of a loop with one iteration per core
MAX_PERIOD = 128  # maximum length of a repeated sequence of launches
MIN_REPEATED_LAUNCHES = 8  # cost of an additional kernel, in launches to compile
INTEGER_TABLES = {"ti.i32": ("scalars_", np.int32), "ti.i64": ("scalars64_", np.int64)}


class BaseArray(NamedTuple):
    """An array argument of a merged kernel: its memory, its byte offset there, and its type annotation."""

    memory: Any
    start: int
    annotation: str


class Megakernel:
    """Launches merged into one kernel, with its arguments: `element_types`, `tables` of integers, and `scalars`."""

    def __init__(
        self, launches: Sequence[Launch], where: Callable[[ArrayArgument], tuple[Any, int]], gpu: bool
    ) -> None:
        self.arrays: list[BaseArray] = []
        self._gpu = gpu
        self._written: set[str] = set()
        self.scalars: list[Any] = []
        self._locate = where
        self._types: list[str] = []
        self._tables: dict[str, list[int]] = {name: [] for name, _ in INTEGER_TABLES.values()}
        self._functions: dict[str, tuple[str, str]] = {}  # maps an original source to the new name and source
        parts = [part for k, one in enumerate(launches) for part in self._launch_loops(f"l{k}_", one)]
        self._barrier_counter = barrier_counter()
        counter = "" if gpu or not can_use_barriers() else self._add_scalar(self._barrier_counter.ctypes.data, "ti.i64")
        loops = insert_barriers(parts, counter)
        tables = {
            name: np.array(self._tables[name], kind) for name, kind in INTEGER_TABLES.values() if self._tables[name]
        }
        self._table_arrays = [register_constant(copy_to_device(x)) if gpu else x for x in tables.values()]
        self.tables = [array_argument(x) if gpu else (x.ctypes.data, len(x), x.nbytes) for x in self._table_arrays]
        annotations = {f"A{k}": base_array.annotation for k, base_array in enumerate(self.arrays)}
        annotations.update((name, _table_annotation(tables[name].dtype)) for name in tables)
        arguments = [f"{name}: {note}{f', {name}_base: ti.i32' if gpu else ''}" for name, note in annotations.items()]
        arguments += [f"x{k}: {note}" for k, note in enumerate(self._types)]
        body = f"(\n    {', '.join(arguments)}\n):\n{loops}"
        functions = "".join(f"{text}\n\n" for _, text in self._functions.values())
        name = f"step_{crc32((functions + body).encode()):08x}"
        kinds = "".join("p" if x == ADDRESS else "a" for x in annotations.values())
        kinds += "".join("f" if "f" in x else "i" for x in self._types)
        text = f"{functions}@ti.kernel\ndef {name}_kernel{body}"
        transformed = TransformedSource(
            text, tuple(map(_element_type, annotations.values())), tuple(x in self._written for x in annotations)
        )
        self.kernel = _merged_kernel(name, transformed, kinds, gpu)
        self.count = len(launches)

    def _launch_loops(self, prefix: str, launch: Launch) -> tuple[KernelLoop, ...]:
        """Return the loops of a launch, with its arguments substituted."""
        transformed = transform_for_gpu(launch.kernel.source) if self._gpu else _with_offsets(launch.kernel.source)
        head = _source_names(transformed.source)
        names: dict[str, str] = {}
        for one in _split_source(transformed.source)[0] if head.functions else ():
            name = one.name
            names[name] = self._add_function(one, names)
        replacements = {**names, **{x: prefix + x for x in head.stored}}
        loads: dict[str, str] = {}
        arguments, elements, written = (
            iter(head.arguments),
            iter(transformed.element_types),
            iter(transformed.is_written),
        )
        for x in launch.args:
            name, note = next(arguments)
            if isinstance(x, ArrayArgument) and note == ADDRESS:
                replacements[name], offset = self._base_array(x, note, 1)
                loads[prefix + name] = self._add_to_table(note, offset)
                replacements[name] += f" + {prefix}{name}"
            elif isinstance(x, ArrayArgument):
                size = element_bytes(next(elements))
                start, _ = next(arguments)
                replacements[name], offset = self._base_array(x, note, size)
                if next(written):
                    self._written.add(replacements[name])
                loads[prefix + start] = self._add_to_table("ti.i32", offset)
                replacements[start] = f"{replacements[name]}_base + {prefix}{start}" if self._gpu else prefix + start
            elif type(x) is not SymbolicScalar and note in INTEGER_TABLES:
                replacements[name], loads[prefix + name] = prefix + name, self._add_to_table(note, x)
            elif type(x) is not SymbolicScalar and isfinite(x):
                replacements[name] = f"{note}({float(x)!r})"
            else:
                replacements[name] = self._add_scalar(x, note)
        return _kernel_loops(transformed.source, tuple(replacements.items()), tuple(loads.items()), prefix)

    def _base_array(self, place: ArrayArgument, note: str, size: int) -> tuple[str, int]:
        """Return the name of the base array that contains an array argument, and the argument's offset in elements.

        An array argument costs a microsecond per launch, so constant arrays at nearby addresses share one argument.
        """
        of, offset = self._locate(place)
        if of[0] == "fixed" and not self._gpu:
            address = of[1] + offset
            for k, one in enumerate(self.arrays):
                distance = address - one.start
                if (
                    one.memory == ("fixed", 0)
                    and one.annotation == note
                    and not distance % size
                    and abs(distance) < size * MAX_OFFSET
                ):
                    return f"A{k}", distance // size
            of, offset, seen = ("fixed", 0), 0, BaseArray(("fixed", 0), address, note)
        else:
            seen = BaseArray(of, offset % size, note)
        if seen not in self.arrays:
            self.arrays.append(seen)
        return f"A{self.arrays.index(seen)}", offset // size

    def _add_to_table(self, note: str, x: int) -> str:
        name = INTEGER_TABLES[note][0]
        table = self._tables[name]
        table.append(x)  # without deduplication, so that the source does not depend on the values
        return f"{name}[{len(table) - 1}]"

    def _add_scalar(self, x: Any, note: str) -> str:
        for k, (known, of) in enumerate(zip(self.scalars, self._types, strict=True)):
            if known is x and of == note:
                return f"x{k}"
        self.scalars.append(x)
        self._types.append(note)
        return f"x{len(self.scalars) - 1}"

    def _add_function(self, function: ast.FunctionDef, names: dict[str, str]) -> str:
        """Add a function. Return its name in the merged kernel, where functions with equal names may differ."""
        text = ast.unparse(_NameReplacer(names).visit(function))
        if text not in self._functions:
            same_name_count = sum(one.startswith(f"{function.name}__") for one, _ in self._functions.values())
            function.name = f"{function.name}__{same_name_count}"
            self._functions[text] = function.name, ast.unparse(function)
        return self._functions[text][0]


@arch_cache(256)
def _merged_kernel(name: str, made: TransformedSource, kinds: str, gpu: bool) -> Kernel:
    """Return one kernel for all groups with the same source, so that equal layers are compiled once."""
    return Kernel(name, made.source, kinds, is_long=True, transformed=made if gpu else None)


@arch_cache(1024)
def _with_offsets(text: str) -> TransformedSource:
    """Add offsets to a source. The result is cached, since a step launches many kernels repeatedly."""
    return add_offsets(text, False)


def _element_type(note: str) -> str:
    """Return the element type of an array annotation, in the format of `TransformedSource`."""
    dtype = note.partition("dtype=")[2].partition(", ndim")[0]
    vector, _, kind = dtype.removeprefix("ti.types.vector(").rstrip(")").partition(", ")
    return f"{kind.removeprefix('ti.')}*{vector}" if kind else dtype.removeprefix("ti.")


def _table_annotation(dtype: Any) -> str:
    return f"ti.types.ndarray(dtype=ti.i{dtype.itemsize * 8}, ndim=1)"


def _split_source(text: str) -> tuple[list[ast.FunctionDef], ast.FunctionDef]:
    """Split a source into its functions and its kernel."""
    functions = [x for x in parse(text).body if isinstance(x, ast.FunctionDef)]
    (kernel,) = [x for x in functions if any(ast.unparse(one) == "ti.kernel" for one in x.decorator_list)]
    return [x for x in functions if x is not kernel], kernel


class SourceNames(NamedTuple):
    """The names in a source that are replaced when it is merged."""

    functions: bool
    """Whether there are functions in addition to the kernel."""
    arguments: tuple[tuple[str, str], ...]
    """The names and annotations of the arguments."""
    stored: tuple[str, ...]
    """The names that the kernel assigns."""


@arch_cache(1024)
def _source_names(text: str) -> SourceNames:
    functions, kernel = _split_source(text)
    arguments = [(x.arg, ast.unparse(x.annotation) if x.annotation else "") for x in kernel.args.args]
    stored = {x.id: None for x in ast.walk(kernel) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}
    return SourceNames(bool(functions), tuple(arguments), tuple(stored))


class _NameReplacer(ast.NodeTransformer):
    """Replace names by expressions."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._expressions = texts

    def visit_Name(self, node: ast.Name) -> ast.AST:
        text = self._expressions.get(node.id)
        if text is None:
            return node
        return ast.Name(text, node.ctx) if text.isidentifier() else parse(text, mode="eval").body


@arch_cache(1024)
def _kernel_loops(
    text: str, names: tuple[tuple[str, str], ...], reads: tuple[tuple[str, str], ...], prefix: str
) -> tuple[KernelLoop, ...]:
    """Return the loops and statements of a kernel with `names` replaced. A parallel loop loads integers, by the code in
    `reads`, in each iteration, and a serial loop once before the loop. Results are shared by equal layers."""
    loads = dict(reads)
    inside, outside = _NameReplacer(dict(names)), _NameReplacer({name: loads.get(text, text) for name, text in names})
    parts, serial = list[KernelLoop](), False
    for line in _split_source(text)[1].body:
        text = ast.unparse(line)
        if text.startswith("ti.loop_config(serialize="):
            serial = text == "ti.loop_config(serialize=True)"
        elif not isinstance(line, ast.For):
            parts.append(KernelLoop(STATEMENT, ast.unparse(outside.visit(line)) + "\n"))
        elif serial:
            loop = ast.unparse(inside.visit(line)) + "\n"
            parts.append(KernelLoop(SERIAL, _load_lines(loop, loads) + loop, f"{prefix}once"))
            serial = False
        else:
            name, rounds = f"{prefix}{ast.unparse(line.target)}", _loop_bound(outside.visit(line.iter))
            body, test, statement = line.body, "", line.body[0]
            if len(body) == 1 and isinstance(statement, ast.If) and not statement.orelse:
                body, test = statement.body, ast.unparse(inside.visit(statement.test))
            text = "".join([f"{ast.unparse(inside.visit(x))}\n" for x in body])
            text = _load_lines(text, loads) + text
            is_per_core = test == f"ti.raw_mod({name}, 512) == 0" and rounds.replace(" ", "") in PER_CORE_BOUNDS
            if test and not is_per_core:
                text = f"{_load_lines(test, loads)}if {test}:\n{indent(text, STEP)}"
            parts.append(KernelLoop(PER_CORE if is_per_core else PARALLEL, text, name, rounds))
    return tuple(parts)


def _loop_bound(iterated: ast.AST) -> str:
    """Return the source of the bound n of an iteration over range(n)."""
    assert isinstance(iterated, ast.Call)
    assert ast.unparse(iterated.func) == "range"
    assert len(iterated.args) == 1
    return ast.unparse(iterated.args[0])


def _load_lines(text: str, loads: dict[str, str]) -> str:
    """Return the lines that load the integers whose names occur in a source."""
    words = {x.id for x in ast.walk(parse(text)) if isinstance(x, ast.Name)}
    return "".join(f"{name} = {source}\n" for name, source in loads.items() if name in words)


def merge_launches(
    launches: Sequence[Launch], where: Callable[[ArrayArgument], tuple[Any, int]], gpu: bool
) -> list[Megakernel]:
    """Merge launches into few kernels, in order. `where` returns the memory and byte offset of an array argument."""
    signature_ids: dict[Any, int] = {}
    signatures = [signature_ids.setdefault(_signature(one, where), len(signature_ids)) for one in launches]
    ends = [
        0,
        *accumulate(
            _launches_per_kernel(
                signatures, MAX_LAUNCHES_IN_LONG_STEP if len(launches) > LONG_STEP_LAUNCHES else MAX_LAUNCHES
            )
        ),
    ]
    parts = [launches[begin:end] for begin, end in pairwise(ends)]
    return [group for part in parts for group in _merge_within_limits(part, where, gpu)]


def _signature(launch: Launch, where: Callable[[ArrayArgument], tuple[Any, int]]) -> Any:
    """Return the parts of a launch on which the source of a merged kernel depends."""
    places = [where(x)[0][0] for x in launch.args if isinstance(x, ArrayArgument)]
    scalars = [id(x) if type(x) is SymbolicScalar else x for x in launch.args if type(x) in (SymbolicScalar, float)]
    return launch.kernel, *places, *scalars


def _launches_per_kernel(signs: Sequence[int], max_launches: int) -> list[int]:
    """Return the number of launches of each kernel, at most `max_launches`. A repeated sequence, such as the layers of
    a network, is always split in the same way, since equal kernels are compiled once."""
    begin, period, times = _find_repetition(signs)
    if not times:
        return _split_evenly(len(signs), max_launches)
    end = begin + period * times
    return [
        *_launches_per_kernel(signs[:begin], max_launches),
        *_split_evenly(period, max_launches) * times,
        *_launches_per_kernel(signs[end:], max_launches),
    ]


def _split_evenly(count: int, max_length: int) -> list[int]:
    parts = -(-count // max_length)
    return [count * (k + 1) // parts - count * k // parts for k in range(parts)]


def _find_repetition(signs: Sequence[int]) -> tuple[int, int, int]:
    """Return the start, length and count of the best repeated sequence; the count is 0 if no sequence is worthwhile.

    The benefit is the number of launches that need not be compiled, minus the cost of the additional kernels.
    """
    best, found = 0, (0, 0, 0)
    for period in range(2, min(MAX_PERIOD, len(signs) // 2) + 1):
        same = 0
        for k in range(len(signs) - period, -1, -1):
            same = same + 1 if k + period < len(signs) and signs[k] == signs[k + period] else 0
            times = same // period + 1
            worth = (times - 1) * period - times * MIN_REPEATED_LAUNCHES
            if worth > best:
                best, found = worth, (k, period, times)
    return found


def _merge_within_limits(
    launches: Sequence[Launch], where: Callable[[ArrayArgument], tuple[Any, int]], gpu: bool
) -> list[Megakernel]:
    """Merge launches into one kernel, or split them in halves if it has too many arguments (two per array on a GPU)."""
    group, half = Megakernel(launches, where, gpu), len(launches) // 2
    kinds = group.kernel.kinds
    if len(kinds) + gpu * kinds.count("a") <= MAX_ARGUMENTS or not half:
        return [group]
    return [*_merge_within_limits(launches[:half], where, gpu), *_merge_within_limits(launches[half:], where, gpu)]
