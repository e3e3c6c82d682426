"""Kernel source: a snippet for each element, inside loops that depend on the memory layout.

A snippet is a Taichi expression of the operands a, b, c, … and the attributes of an operation. The same snippet is used
in loops over contiguous memory, elementwise or in vectors of sixteen, and in strided loops. Sizes and strides are
arguments, so that one kernel handles all shapes; dtypes and the number of dimensions are compiled in.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent
from typing import NamedTuple

from minigrad.backends.taichi.codegen.functions import has_vector_form, required_functions, to_vector_form
from minigrad.backends.taichi.runtime.muladd import FUSED
from minigrad.backends.taichi.runtime.types import TAICHI_NAMES
from minigrad.backends.taichi.runtime.vector_functions import cast_literals

__all__ = [
    "ADDRESS",
    "LETTERS",
    "SERIALIZE",
    "SERIAL_LIMIT",
    "TAICHI_NAMES",
    "Computation",
    "KernelArgument",
    "array_annotation",
    "block_loop",
    "broadcast_line",
    "configure_loops",
    "flat_kernel",
    "format_parameters",
    "is_width_independent",
    "parallel_loop",
    "partitioned_loop",
    "row_walk",
    "serial_limit",
    "store_lines",
    "strided_kernel",
    "vector_kernel",
    "wrap_kernel",
]

LETTERS = "abcdefhijk"


def serial_limit(limit: int) -> int:
    """Return the number of elements up to which a loop runs on one core, from the number for the threads of
    thread_pool.c. Waking Taichi's own threads takes much longer, and the cores are better left alone."""
    return limit if FUSED else 8 * limit


MAX_SERIAL_ELEMENTS = serial_limit(1 << 12)  # maximum number of elements for one core
SERIAL_LIMIT = MAX_SERIAL_ELEMENTS  # current value of this limit, set by `configure_loops`
ROW_CHUNK = 1024  # elements of a row per iteration of a loop
UNROLLS_BY_FOUR = False  # whether a thread processes four elements
VECTORIZED = True  # whether loops process vectors of sixteen elements


def _has_avx512() -> bool:
    """Return whether the CPU has AVX-512, with 32 registers of 64 bytes."""
    try:
        return FUSED and " avx512f " in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False


HAS_AVX512 = _has_avx512()
VECTOR_SIZE = 16  # elements of a vector
VECTORS_PER_ITERATION = 64  # vectors per iteration of a loop
MAX_SERIAL_VECTOR_ELEMENTS = serial_limit(1 << 14)  # maximum number of elements for one core in vectorised loops
CACHE_BYPASS_ELEMENTS = 1 << 24 if FUSED else sys.maxsize  # minimum size of results that bypass the cache
SERIALIZE = "    ti.loop_config(serialize=True)\n"  # makes the next loop serial
ADDRESS = "ti.i64"  # type of the address of an array that bypasses the cache


def configure_loops(arch: str) -> None:
    """Configure loops for `arch`. On a GPU each thread processes one element, and adjacent threads process
    adjacent elements."""
    global SERIAL_LIMIT, ROW_CHUNK, VECTORIZED, UNROLLS_BY_FOUR
    SERIAL_LIMIT, ROW_CHUNK, VECTORIZED = (
        (MAX_SERIAL_ELEMENTS, VECTORS_PER_ITERATION * VECTOR_SIZE, True) if arch == "cpu" else (0, 1, False)
    )
    UNROLLS_BY_FOUR = arch == "cuda"


def store_lines(array: str, index: str, vector: str, bypasses_cache: bool) -> str:
    """Return the lines that store a vector in an array. If `bypasses_cache`, the store bypasses the cache, and the
    kernel's argument is the array's address."""
    if not bypasses_cache:
        return f"{array}_[{index}] = {vector}\n"
    address, operand = f"{array}_address", f"{array}_vector"
    lines = f"{address} = {array}_ + ti.cast({index}, ti.i64) * {VECTOR_SIZE * 4}\n{operand} = {vector}\n"
    return f"{lines}muladd.stream_store({address}, {operand})\n"


class KernelArgument(NamedTuple):
    """An argument of a kernel: its kind, its name in the snippet, and its dtype. The kind is "a" for an array, "v" for
    an array of vectors, "p" for an address, or "f" or "i" for a scalar."""

    kind: str
    name: str
    dtype: str


class Computation(NamedTuple):
    """The computation of a kernel, in vectors of `VECTOR_SIZE`, or elementwise on a GPU. `arguments` are the
    arguments after the result y.

    `last_strides` is empty if all arrays are contiguous; otherwise it contains the number of dimensions, and the last
    stride of each array. With a `reduction`, the snippet is reduced over each row, the expression `end` of `scalars` is
    applied to the result, and `last_strides` contains 1 for each array with full rows and 0 for other arrays. If some
    arguments are `written`, the snippet consists of statements, and there is no y.
    """

    snippet: str
    arguments: tuple[KernelArgument, ...]
    last_strides: tuple[int, ...]
    reduction: str = ""
    end: str = ""
    scalars: tuple[str, ...] = ()
    written: tuple[str, ...] = ()


class Epilogue(NamedTuple):
    """The epilogue of a product: statements applied to each vector, at index `e`, their array and scalar arguments, and
    the functions that they call."""

    lines: str
    arrays: tuple[str, ...]
    scalars: tuple[str, ...]
    functions: str


NO_EPILOGUE = Epilogue("", (), (), "")


def flat_kernel(
    name: str, snippet: str, arguments: tuple[KernelArgument, ...], out: str, work: str, serial: bool
) -> tuple[str, str]:
    """Return a kernel over contiguous arrays, and the kinds of its arguments: y, `arguments`, and the number of
    elements.

    `out` is the dtype of the result, and `work` the dtype of float literals in the snippet.
    """
    reads = [f"        {argument.name} = {argument.name}_[i]\n" for argument in arguments if argument.kind == "a"]
    store = f"y_[i] = ti.cast({snippet}, ti.{TAICHI_NAMES[out]})\n"
    if not UNROLLS_BY_FOUR:
        return wrap_kernel(name, arguments, out, work, ["n"], "n", f"{''.join(reads)}        {store}", serial)
    arrays = [one.name for one in arguments if one.kind == "a"]
    return wrap_kernel(
        name,
        arguments,
        out,
        work,
        ["n"],
        "(n + 1023) // 1024 * 256",
        _unrolled_body(arrays, snippet, store, out),
        serial,
        has_long_iterations=True,
    )


def _unrolled_body(arrays: Sequence[str], snippet: str, store: str, out: str) -> str:
    """Return a loop body that processes four elements, 256 apart. Accesses are coalesced, and all loads precede the
    first store."""
    read = "".join(f"            {x}{k} = {x}_[first + {256 * k}]\n" for x in arrays for k in range(4))
    computed = "".join(
        f"            i = first + {256 * k}\n"
        + "".join(f"            {x} = {x}{k}\n" for x in arrays)
        + f"            result{k} = ti.cast({snippet}, ti.{TAICHI_NAMES[out]})\n"
        for k in range(4)
    )
    written = "".join(f"            y_[first + {256 * k}] = result{k}\n" for k in range(4))
    rest = "".join(f"                {x} = {x}_[i]\n" for x in arrays)
    return (
        f"        first = t // 256 * 1024 + t % 256\n        if first + 768 < n:\n{read}{computed}{written}"
        "        else:\n            for k in range((n - first + 255) // 256):\n"
        f"                i = first + k * 256\n{rest}                {store}"
    )


def vector_kernel(
    name: str, snippet: str, arguments: tuple[KernelArgument, ...], serial: bool, bypasses_cache: bool = False
) -> tuple[str, str]:
    """Return a float32 kernel over vectors of sixteen elements, whose stores bypass the cache if `bypasses_cache`.

    Arrays are aligned to 64 bytes and padded to full vectors. An iteration processes `VECTORS_PER_ITERATION` vectors.
    """
    reads = [f"            {one.name} = {one.name}_[i]\n" for one in arguments if one.kind == "a"]
    body = (
        f"{''.join(broadcast_line(f'{one.name}_', one.name, VECTOR_SIZE) for one in arguments if one.kind == 'f')}"
        f"        for i in range(t * {VECTORS_PER_ITERATION}, ti.min(n, t * {VECTORS_PER_ITERATION} + "
        f"{VECTORS_PER_ITERATION})):\n"
        f"{''.join(reads)}{indent(store_lines('y', 'i', to_vector_form(snippet), bypasses_cache), STEP * 3)}"
    )
    count = f"(n + {VECTORS_PER_ITERATION - 1}) // {VECTORS_PER_ITERATION}"
    wide = tuple([one._replace(kind="v") if one.kind == "a" else one for one in arguments])
    return wrap_kernel(
        name, wide, ADDRESS if bypasses_cache else "float32", "float32", ["n"], count, body, serial, VECTOR_SIZE, True
    )


def broadcast_line(scalar: str, name: str, wide: int) -> str:
    """Return the line that broadcasts a scalar to a vector, which vector functions require."""
    return f"        {name} = ti.Vector([{scalar} for j in range({wide})])\n"


def can_vectorize(snippet: str, takes: Sequence[KernelArgument], out: str) -> bool:
    """Return whether a snippet can be vectorised: all dtypes are float32, and all its functions can be lowered."""
    return VECTORIZED and out == "float32" and all(x.dtype == "float32" for x in takes) and has_vector_form(snippet)


def is_width_independent(snippet: str) -> bool:
    """Return whether a vectorised snippet contains only arithmetic, so that it also works on shorter vectors."""
    return "16(" not in to_vector_form(snippet) + required_functions(to_vector_form(snippet), "f32", True)


def strided_kernel(
    name: str,
    snippet: str,
    takes: tuple[KernelArgument, ...],
    out: str,
    work: str,
    ndim: int,
    serial: bool,
    last_strides: Sequence[int] | None = None,
    wide: int = VECTOR_SIZE,
) -> tuple[str, str]:
    """Return a kernel over strided arrays. Its arguments are y, `takes`, `ndim` strides of y and of each array, and the
    sizes. The inner loop is over the last dimension, so that row offsets are computed once per row.

    With `last_strides`, the kernel is vectorised: y and arrays whose last stride is 1 are accessed in vectors along the
    last dimension, and arrays whose last stride is 0 have one element per row. Strides and the last size are then in
    vectors of `wide` elements.
    """
    arrays = ["y", *[one.name for one in takes if one.kind == "a"]]
    vectors = last_strides is not None
    last, length = ndim - 1, VECTORS_PER_ITERATION if vectors else ROW_CHUNK
    body, numbers, count = row_walk(arrays, ndim, length)
    inner = f"        for i in range(first, ti.min(n{last}, first + {length})):\n"
    in_rows = {one for one, by in zip(arrays[1:], last_strides or (), strict=False) if by}
    for one in arrays[1:]:
        if vectors and one not in in_rows:
            body += broadcast_line(f"{one}_[{one}_row]", one, wide)
        else:
            inner += f"            {one} = {one}_[{one}_row + i{'' if vectors else f' * {one}{last}'}]\n"
    if vectors:
        body += "".join(broadcast_line(f"{one.name}_", one.name, wide) for one in takes if one.kind == "f")
        inner += f"            y_[y_row + i] = {to_vector_form(snippet)}\n"
    else:
        inner += f"            y_[y_row + i * y{last}] = ti.cast({snippet}, ti.{TAICHI_NAMES[out]})\n"
    read = tuple([one._replace(kind="v") if one.name in in_rows else one for one in takes])
    return wrap_kernel(name, read, out, work, numbers, count, body + inner, serial, wide if vectors else 1, True)


def row_walk(arrays: Sequence[str], ndim: int, length: int) -> tuple[str, list[str], str]:
    """Return the lines that compute ``first`` and a row offset for each array, such as ``y_row``, in iteration t over
    `length` elements of a row. Also return the names of the stride and size arguments, and an expression for
    the number of iterations."""
    last = ndim - 1
    steps = [f"        i{k} = row % n{k}\n        row = row // n{k}\n" for k in reversed(range(1, last))]
    begins = {one: " + ".join(f"i{k} * {one}{k}" for k in range(last)) or "0" for one in arrays}
    lines = (
        f"        chunks = (n{last} + {length - 1}) // {length}\n        row = t // chunks\n"
        f"        first = t % chunks * {length}\n{''.join(steps)}        i0 = row\n"
        + "".join(f"        {one}_row = {begins[one]}\n" for one in arrays)
    )
    numbers = [f"{one}{k}" for one in arrays for k in range(ndim)] + [f"n{k}" for k in range(ndim)]
    return lines, numbers, " * ".join([*[f"n{k}" for k in range(last)], f"((n{last} + {length - 1}) // {length})"])


def wrap_kernel(
    name: str,
    takes: Sequence[KernelArgument],
    out: str,
    work: str,
    numbers: Sequence[str],
    count: str,
    body: str,
    serial: bool,
    wide: int = 1,
    has_long_iterations: bool = False,
    threads: tuple[int, bool] | None = None,
) -> tuple[str, str]:
    """Return a kernel that runs a body for `count` iterations, where `count` is an expression. The loop index is i, or
    t if `has_long_iterations`. With `threads`, the loop is over thread blocks; see `block_loop`.

    The elements of y, and of arrays of kind "v", are vectors of `wide` elements. If `out` is `ADDRESS`, y is an
    address.
    """
    bypasses_cache = out == ADDRESS
    arguments = [f"y_: {ADDRESS if bypasses_cache else array_annotation(out, wide)}"]
    for x in takes:
        array = array_annotation(x.dtype, wide if x.kind == "v" else 1)
        name_of = x.name if x.kind not in "av" and wide == 1 else f"{x.name}_"
        arguments.append(f"{name_of}: {array if x.kind in 'av' else f'ti.{TAICHI_NAMES[x.dtype]}'}")
    arguments += [f"{number}: ti.i32" for number in numbers]
    body, before = cast_literals(body, TAICHI_NAMES[work]), required_functions(body, TAICHI_NAMES[work], wide > 1)
    once = SERIALIZE if serial else ""
    loop = parallel_loop(count, body, serial) if has_long_iterations else f"{once}    for i in range({count}):\n{body}"
    if threads:
        loop = block_loop(count, threads[0], body, threads[1])
    text = f"{before}@ti.kernel\ndef {name}_kernel(\n{format_parameters(arguments)}):\n{loop}"
    return text, "ap"[bypasses_cache] + "".join([x.kind for x in takes]).replace("v", "a") + "i" * len(numbers)


def format_parameters(arguments: Sequence[str]) -> str:
    """Return the parameter list of a kernel, with one array or up to eight scalars per line.

    >>> print(format_parameters(["y_: ti.types.ndarray(dtype=ti.f32, ndim=1)", "n: ti.i32", "m: ti.i32"]), end="")
        y_: ti.types.ndarray(dtype=ti.f32, ndim=1),
        n: ti.i32, m: ti.i32,
    """
    lines: list[list[str]] = []
    for one in arguments:
        if "ndarray" in one or not lines or "ndarray" in lines[-1][0] or len(lines[-1]) == 8:
            lines.append([])
        lines[-1].append(one)
    return "".join(f"    {', '.join(line)},\n" for line in lines)


def parallel_loop(count: str, body: str, serial: bool) -> str:
    """Return a parallel loop over t with `count` iterations, which are few but long.

    Taichi divides a loop between cores in chunks of at least 512 iterations. Each core therefore gets 512 iterations,
    of which only the first does any work.
    """
    if serial:
        return f"{SERIALIZE}    for t in range({count}):\n{body}"
    if not VECTORIZED:
        return f"    for t in range({count}):\n{body}"
    length = f"({count} + {CORES - 1}) // {CORES}"
    return (
        f"    for core in range({CORES} * 512):\n        if core % 512 == 0:\n"
        f"            first_t = core // 512 * ({length})\n"
        f"            for t in range(first_t, ti.min({count}, first_t + {length})):\n"
        f"{indent(body, ' ' * 8)}" + "            muladd.store_fence()\n" * ("muladd.stream_store(" in body)
    )


MAX_SINGLE_LAUNCH_BLOCKS = 2048  # maximum number of blocks in a single launch


def block_loop(count: str, threads: int, body: str, is_few: bool) -> str:
    """Return a loop over `count` thread blocks. If `is_few`, the loop bound is a constant, since Taichi computes any
    other bound in an extra launch."""
    head = f"    ti.loop_config(block_dim={threads})\n"
    if not is_few:
        return f"{head}    for t in range(({count}) * {threads}):\n{body}"
    body = f"        if t < ({count}) * {threads}:\n{indent(body, STEP)}"
    return f"{head}    for t in range({MAX_SINGLE_LAUNCH_BLOCKS * threads}):\n{body}"


STEP = "    "
CORES = os.cpu_count() or 1


def partitioned_loop(count: str, body: str, serial: bool, setup: str = "") -> str:
    """Return a loop over ``count`` iterations split among the cores: core ``core_id`` runs iterations ``first_t`` to
    ``last_t``. `setup` is code that computes variables used in ``count``."""
    cores = 1 if serial else CORES
    once = SERIALIZE if serial else ""
    return (
        f"{once}    for core in range({cores * 512}):\n        if core % 512 == 0:\n{setup}"
        f"            core_id = core // 512\n            per_core = ({count} + {cores - 1}) // {cores}\n"
        f"            first_t = core_id * per_core\n            last_t = ti.min({count}, first_t + per_core)\n{body}"
    )


def array_annotation(dtype: str, wide: int = 1) -> str:
    """Return the annotation of a contiguous array of elements, or of vectors of `wide` elements."""
    element = f"ti.{TAICHI_NAMES[dtype]}" if wide == 1 else f"ti.types.vector({wide}, ti.{TAICHI_NAMES[dtype]})"
    return f"ti.types.ndarray(dtype={element}, ndim=1)"
