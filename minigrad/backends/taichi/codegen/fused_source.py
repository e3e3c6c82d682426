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
from minigrad.backends.taichi.codegen.functions import required_functions, to_vector_form
from minigrad.backends.taichi.codegen.loops import ElementwiseLoop, MatrixProduct, OperandLayout
from minigrad.backends.taichi.codegen.simd import NUMBER, REDUCTIONS, VECTOR, kernel_source
from minigrad.backends.taichi.codegen.source import (
    CORES,
    MAX_SERIAL_VECTOR_ELEMENTS,
    VECTOR_SIZE,
    VECTORS_PER_ITERATION,
    Epilogue,
    KernelArgument,
    broadcast_line,
    row_walk,
    wrap_kernel,
)
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import Kernel, get_kernel
from minigrad.backends.taichi.runtime.launch_recording import ArrayArgument, Launch, Region
from minigrad.backends.taichi.runtime.vector_functions import cast_literals
from minigrad.core.symbolic import SymbolicScalar

__all__ = ["fuse_epilogue", "fuse_loops"]

FLOAT = "float32"
_ASSIGNED = re.compile(r"^(\w+) = ", re.MULTILINE)


def fuse_loops(loops: Sequence[ElementwiseLoop], stored: Callable[[Region], bool]) -> Launch:
    """Return the launch of one kernel for several loops. It stores the results that are `stored`, or the last result
    if none are."""
    stores = _storing_loops(loops, stored) or {loops[-1].y.key: len(loops) - 1}
    if any(x.y.row for x in loops):
        return _MultiPassWriter(loops, set(stores)).launch()
    y, bypasses_cache = next(iter(stores)), prod(loops[0].sizes) * VECTOR_SIZE >= source.CACHE_BYPASS_ELEMENTS
    writer = _VectorWriter(y, past=bypasses_cache) if source.VECTORIZED else _ScalarWriter(y, "i")
    for k, loop in enumerate(loops):
        writer.append_loop(loop, {key for key, storing_loop in stores.items() if storing_loop == k})
    return writer.launch(loops)


def _storing_loops(loops: Sequence[ElementwiseLoop], stored: Callable[[Region], bool]) -> dict[Any, int]:
    """Map the key of each result that is `stored` to the index of the last loop that computes it."""
    return {x.key: k for k, one in enumerate(loops) for x in one.results if stored(x.place.region)}


def fuse_epilogue(product: MatrixProduct, loops: Sequence[ElementwiseLoop], stored: Callable[[Region], bool]) -> Launch:
    """Return the launch of a product with an epilogue, which applies loops to the result tile by tile."""
    stores = _storing_loops(loops, stored)
    writer = _VectorWriter(product.y.key, "e")
    for k, loop in enumerate(loops):
        writer.append_loop(loop, {key for key, storing_loop in stores.items() if storing_loop == k})
    return writer.launch_with_epilogue(product, loops)


def _rename_operands(snippet: str, names: Mapping[str, str]) -> str:
    pattern = rf"(?<![\w.])({'|'.join(map(re.escape, names))})\b(?!\()"
    return re.sub(pattern, lambda found: names[found[1]], snippet) if names else snippet


class _VectorWriter:
    """Generator of a vectorised kernel. `y` is the key of the output array, and `at` a template for the index of the
    current vector in an array. If `past`, arrays that are only stored bypass the cache."""

    def __init__(self, y: Any, at: str = "{name}_row + i", past: bool = False) -> None:
        self._output_key, self._index, self._bypasses_cache = y, at, past
        self._bypassing: set[Any] = set()  # keys of arrays that bypass the cache
        self._arrays: dict[Any, tuple[str, OperandLayout]] = {}
        self._scalars: dict[Any, tuple[str, Any]] = {}
        self._register_of: dict[Any, str] = {}  # maps keys to registers with the current vector
        self._prologue = self._body = ""
        self._registers = (f"v{k}" for k in count())

    @staticmethod
    def _lines(text: str) -> str:
        """Return statements in vector form."""
        return to_vector_form(text)

    @staticmethod
    def _result(text: str) -> str:
        """Return a snippet in vector form."""
        return to_vector_form(text)

    def append_loop(self, loop: ElementwiseLoop, stored: Collection[Any]) -> None:
        """Append a loop, which stores the results whose keys are in `stored`."""
        work = loop.work
        names = {
            operand.name: self._operand_register(x) for operand, x in zip(work.arguments, loop.operands, strict=True)
        }
        if work.written:
            for name in [
                one.name for one in work.arguments if one.kind == "a"
            ]:  # the statements may assign any of these
                before, names[name] = names[name], next(self._registers)
                self._line(f"{names[name]} = {before}")
            names |= {name: next(self._registers) for name in _ASSIGNED.findall(work.snippet) if name not in names}
            for line in self._lines(_rename_operands(work.snippet, names)).splitlines():
                self._line(line)
            result_registers = [names[name] for name in work.written]
        else:
            result_registers = [next(self._registers)]
            self._line(f"{result_registers[0]} = {self._result(_rename_operands(work.snippet, names))}")
        for x, register in zip(loop.results, result_registers, strict=True):
            self._register_of[x.key] = register
            if x.key in stored:
                if self._bypasses_cache and x.key not in self._arrays:
                    self._bypassing.add(x.key)
                name = self._array(x)
                lines = source.store_lines(name, self._index.format(name=name), register, x.key in self._bypassing)
                for line in lines.splitlines():
                    self._line(line)

    def _line(self, text: str) -> None:
        self._body += f"            {text}\n"

    def _array(self, x: OperandLayout) -> str:
        name = "y" if x.key == self._output_key else f"p{len(self._arrays)}"
        return self._arrays.setdefault(x.key, (name, x))[0]

    def _operand_register(self, x: Any) -> str:
        """Return the register of an operand."""
        if not isinstance(x, OperandLayout):
            key = id(x) if type(x) is SymbolicScalar else float(x).hex()
            return self._scalars.setdefault(key, (f"x{len(self._scalars)}", x))[0]
        if x.key not in self._register_of:
            name = self._array(x)
            register = self._register_of[x.key] = next(self._registers)
            if x.row:
                self._prologue += broadcast_line(f"{name}_[{name}_row]", register, VECTOR_SIZE)
            else:
                self._line(f"{register} = {name}_[{self._index.format(name=name)}]")
        return self._register_of[x.key]

    def launch(self, loops: Sequence[ElementwiseLoop]) -> Launch:
        """Return the launch of the kernel."""
        sizes = loops[0].sizes
        arrays = sorted(self._arrays.values(), key=lambda one: one[0] != "y")
        begin, names, rounds = row_walk([name for name, _ in arrays], len(sizes), VECTORS_PER_ITERATION)
        spread = "".join(broadcast_line(f"{name}_", name, VECTOR_SIZE) for name, _ in self._scalars.values())
        inner = (
            f"        for i in range(first, ti.min(n{len(sizes) - 1}, first + {VECTORS_PER_ITERATION})):\n{self._body}"
        )
        takes = [
            KernelArgument("p", name, "int64")
            if x.key in self._bypassing
            else KernelArgument("a" if x.row else "v", name, FLOAT)
            for name, x in arrays[1:]
        ]
        takes += [KernelArgument("f", name, FLOAT) for name, _ in self._scalars.values()]
        serial = prod(sizes) * VECTOR_SIZE <= MAX_SERIAL_VECTOR_ELEMENTS
        y, body = (
            source.ADDRESS if self._output_key in self._bypassing else FLOAT,
            f"{begin}{spread}{self._prologue}{inner}",
        )
        arguments = y, FLOAT, names, rounds, body, serial, VECTOR_SIZE, True
        text, kinds = wrap_kernel("fused", takes, *arguments)
        strides = [by for _, x in arrays for by in x.strides]
        args = *[x.place for _, x in arrays], *[x for _, x in self._scalars.values()], *strides, *sizes
        return _launch(text, kinds, args, loops)

    def launch_with_epilogue(self, product: MatrixProduct, loops: Sequence[ElementwiseLoop]) -> Launch:
        """Return the launch of a product with the generated statements as its epilogue."""
        arrays = [one for one in self._arrays.values() if one[0] != "y"]
        scalars, lines = list(self._scalars.values()), dedent(self._body)
        end = Epilogue(
            cast_literals(lines, "f32"),
            tuple([name for name, _ in arrays]),
            tuple([name for name, _ in scalars]),
            required_functions(lines, "f32", True),
        )
        args = *product.launch.args, *[x.place for _, x in arrays], *[x for _, x in scalars]
        calls = *product.launch.calls, *[call for loop in loops for call in loop.launch.calls]
        kernel = product.launch.kernel.work.kernel(end)
        name = f"product_{crc32(kernel.source.encode()):08x}"
        text = kernel.source.replace(f"def {kernel.name}_kernel(", f"def {name}_kernel(")
        return Launch(get_kernel(name, text, kernel.kinds), args, calls)


class _ScalarWriter(_VectorWriter):
    """Generator of a GPU kernel, with one thread per element."""

    @staticmethod
    def _lines(text: str) -> str:
        return text

    @staticmethod
    def _result(text: str) -> str:
        return f"ti.cast({text}, ti.f32)"

    def launch(self, loops: Sequence[ElementwiseLoop]) -> Launch:
        arrays = sorted(self._arrays.values(), key=lambda one: one[0] != "y")
        takes = [KernelArgument("a", name, FLOAT) for name, _ in arrays[1:]]
        takes += [KernelArgument("f", name, FLOAT) for name, _ in self._scalars.values()]
        text, kinds = wrap_kernel("fused", takes, FLOAT, FLOAT, ["n"], "n", indent(dedent(self._body), " " * 8), False)
        args = *[x.place for _, x in arrays], *[x for _, x in self._scalars.values()], *loops[0].sizes
        return _launch(text, kinds, args, loops)


class _MultiPassWriter:
    """Generator of a kernel with several passes over each row. The result of a reduction is available in the next pass.
    Elements that a later pass reads are stored, in one scratch row per core if no other kernel reads them."""

    def __init__(self, loops: Sequence[ElementwiseLoop], stored: set[Any]) -> None:
        self._loops, self._stored = loops, stored
        self._serial = prod(loops[0].sizes) * VECTOR_SIZE <= MAX_SERIAL_VECTOR_ELEMENTS
        self._bypassing: set[Any] = set()  # keys of arrays that bypass the cache
        self._arrays: dict[Any, tuple[str, OperandLayout]] = {}
        self._scalars: dict[Any, tuple[str, Any]] = {}
        self._rows: dict[Any, str] = {}  # maps keys to vectors with a broadcast scalar of the row
        self._available_pass: dict[Any, int] = {}  # maps keys of results to the first pass that can read them
        self._passes: list[int] = []
        scratch: set[Any] = set()
        for loop in loops:
            keys = [x.key for x in loop.reads]
            pass_index = max((self._available_pass.get(key, 0) for key in keys), default=0)
            scratch.update(key for key in keys if self._available_pass.get(key, pass_index) < pass_index and not key[3])
            self._passes.append(pass_index)
            self._available_pass[loop.y.key] = pass_index + bool(loop.work.reduction)
        self._scratch = scratch - stored
        if prod(loops[0].sizes) * VECTOR_SIZE >= source.CACHE_BYPASS_ELEMENTS:
            self._bypassing = {x.y.key for x in loops if x.y.key in stored - scratch and not x.y.row}
        self._body = "".join([self._pass(turn) for turn in range(max(self._passes) + 1)])

    def _pass(self, pass_index: int) -> str:
        """Return the statements of one pass."""
        self._heads = self._inner = self._after = ""
        self._starts = self._quad_updates = ""
        self._quad_sums: list[str] = []
        self._register_of: dict[Any, str] = {}
        for k, loop in enumerate(self._loops):
            if self._passes[k] == pass_index:
                self._compute(k, loop)
        through = f"        for k in range(n):\n{self._inner}" if self._inner else ""
        if self._quad_sums:
            through = f"        for iteration in range((n + 3) // 4):\n{''.join(self._quad_sums)}"
            through += "            for k in range(iteration * 4, ti.min(n, iteration * 4 + 4)):\n"
            through += indent(self._inner, "    ") + self._quad_updates
        return self._heads + self._starts + through + self._after

    def _compute(self, k: int, loop: ElementwiseLoop) -> None:
        work = loop.work
        names = {one.name: self._operand_register(x) for one, x in zip(work.arguments, loop.operands, strict=True)}
        snippet = to_vector_form(_rename_operands(work.snippet, names))
        if work.reduction:
            how = REDUCTIONS[work.reduction]
            sums, s = f"sums{k}", f"s{k}"
            self._starts += how.lines(how.start, 8, sums)
            term, partial = f"term{k}", f"partial{k}"
            self._inner += f"            {term} = {snippet}\n"
            if how.adds_by_four:  # adds in the same order as the separate kernel of this sum
                self._quad_sums.append(broadcast_line("0.0", f"    {partial}", VECTOR_SIZE))
                self._inner += f"            {partial} = {partial} + {term}\n"
                self._quad_updates += how.lines(how.add, 12, sums, partial)
            else:
                self._inner += how.lines(how.add, 12, sums, term)
            ends = {"s": s, **{name: self._scalar_name(x) for name, x in loop.end_scalars.items()}}
            self._after += re.sub(r"\bs\b", s, how.lines(f"{how.finish}\n{how.reduce_lanes}", 8, sums))
            self._after += f"        result{k} = ti.cast({_rename_operands(work.end, ends)}, ti.f32)\n"
            self._after += broadcast_line(f"result{k}", f"r{k}", VECTOR_SIZE) + self._store(loop.y, f"result{k}", 8)
            self._rows[loop.y.key] = f"r{k}"
        elif loop.y.row:
            # All lanes are equal. For one lane LLVM would compare vectors of size 1, which AVX-512 lacks, and abort.
            self._heads += f"        r{k} = {snippet}\n{self._store(loop.y, f'r{k}.max()', 8)}"
            self._rows[loop.y.key] = f"r{k}"
        else:
            self._inner += f"            r{k} = {snippet}\n{self._store(loop.y, f'r{k}', 12)}"
            self._register_of[loop.y.key] = f"r{k}"

    def _store(self, y: OperandLayout, value: str, depth: int) -> str:
        if y.key not in self._stored | self._scratch:
            return ""
        if y.key in self._bypassing:
            name = self._array(y)
            return indent(source.store_lines(name, f"{name}_row + k", value, True), " " * depth)
        return f"{' ' * depth}{self._element_expression(y)} = {value}\n"

    def _element_expression(self, x: OperandLayout) -> str:
        """Return the expression that accesses a row's scalar, or its current vector, in memory."""
        name = self._array(x)
        row = f"{name}_row"
        if x.key in self._scratch:
            row = "0" if self._serial else "core // 512 * n"
        return f"{name}_[{row}]" if x.row else f"{name}_[{row} + k]"

    def _array(self, x: OperandLayout) -> str:
        return self._arrays.setdefault(x.key, (f"p{len(self._arrays)}", x))[0]

    def _annotation(self, x: OperandLayout) -> str:
        return source.ADDRESS if x.key in self._bypassing else NUMBER if x.row else VECTOR

    def _scalar_name(self, x: Any) -> str:
        key = id(x) if type(x) is SymbolicScalar else float(x).hex()
        return self._scalars.setdefault(key, (f"x{len(self._scalars)}", x))[0]

    def _operand_register(self, x: Any) -> str:
        """Return the vector register of an operand."""
        if not isinstance(x, OperandLayout):
            return f"{self._scalar_name(x)}_"
        if x.row:
            if x.key not in self._rows:
                self._rows[x.key] = f"{self._array(x)}_scalar"
                self._heads += broadcast_line(self._element_expression(x), self._rows[x.key], VECTOR_SIZE)
            return self._rows[x.key]
        if x.key not in self._register_of:
            self._register_of[x.key] = f"{self._array(x)}_value"
            self._inner += f"            {self._register_of[x.key]} = {self._element_expression(x)}\n"
        return self._register_of[x.key]

    def launch(self) -> Launch:
        """Return the launch of the kernel."""
        arrays, numbers = list(self._arrays.values()), list(self._scalars.values())
        strides = [(name, x.strides[0]) for name, x in arrays if x.key not in self._scratch]
        begin = "".join(f"        {name}_row = i * {name}0\n" for name, _ in strides)
        spread = "".join(broadcast_line(f"ti.cast({name}, ti.f32)", f"{name}_", VECTOR_SIZE) for name, _ in numbers)
        takes = [(f"{name}_", self._annotation(x)) for name, x in arrays]
        takes += [(name, "ti.f64") for name, _ in numbers]
        takes += [(name, "ti.i32") for name in (*[f"{name}0" for name, _ in strides], "rows", "n")]
        text, kinds = kernel_source("fused", takes, "rows", f"{begin}{spread}{self._body}", self._serial)
        places = [self._scratch_memory(x.place) if x.key in self._scratch else x.place for _, x in arrays]
        args = *places, *[x for _, x in numbers], *[by for _, by in strides], *self._loops[0].sizes
        return _launch(text, kinds, args, self._loops)

    def _scratch_memory(self, place: ArrayArgument) -> ArrayArgument:
        """Return the scratch memory of an array that is not stored: one row per core."""
        items = self._loops[0].sizes[1] * VECTOR_SIZE * (1 if self._serial else CORES)
        return ArrayArgument(place.region._replace(size=items * 4), 0, items, items * 4)


@arch_cache(1024)
def _kernel(text: str, kinds: str) -> Kernel:
    name = f"fused_{crc32(text.encode()):08x}"
    return get_kernel(name, text.replace("def fused_kernel(", f"def {name}_kernel("), kinds)


def _launch(text: str, kinds: str, args: tuple[Any, ...], loops: Sequence[ElementwiseLoop]) -> Launch:
    """Return the launch of a kernel with this source. The kernel's name contains the hash of the source."""
    return Launch(_kernel(text, kinds), args, tuple([call for loop in loops for call in loop.launch.calls]))
