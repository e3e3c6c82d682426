"""Row kernels on CUDA, one thread block per row. Threads keep elements in registers, so that a row is read once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.kernels.simd_lines import LineSpec
from minigrad.backends.taichi.runtime import driver
from minigrad.backends.taichi.runtime.array import array_argument
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.backends.taichi.runtime.types import FLOAT
from minigrad.backends.taichi.runtime.vector_functions import cast_literals

__all__ = ["can_use_blocks", "run_rows"]

THREADS_PER_ROW = 256  # threads per block, and therefore per row
MAX_PER_THREAD = 32  # maximum elements per thread in registers; longer rows are read again
MIN_ROW_LENGTH = 128  # minimum length of a row; a shorter row is processed by a single thread


def can_use_blocks(arrays: Sequence[Any], dim: int) -> bool:
    """Return whether the lines along `dim` are contiguous rows, long enough for a thread block."""
    return driver.arch() == "cuda" and all(
        x.dtype == FLOAT and dim == x.ndim - 1 and x.shape[dim] >= MIN_ROW_LENGTH and x.size and x.flags.c_contiguous
        for x in arrays
    )


def _block_reduce_source(combine: str, s: str, first: int) -> str:
    """Generate the block-wide reduction of `s`, by warp shuffles and then in shared memory starting at `first`."""
    template, merge = ("ti.max({}, {})", "ti.max") if combine == "max" else ("({} + {})", "")
    shuffled = template.format(s, f"ti.simt.warp.shfl_down_f32(ti.u32(0xFFFFFFFF), {s}, delta)")
    warps = [f"shared[{first + w}]" for w in range(THREADS_PER_ROW // 32)]
    total = warps[0]
    for w in warps[1:]:
        total = f"{merge}({total}, {w})" if merge else f"({total} + {w})"
    return (
        f"        for delta in ti.static((16, 8, 4, 2, 1)):\n            {s} = {shuffled}\n"
        f"        if lane % 32 == 0:\n            shared[{first} + lane // 32] = {s}\n"
        f"        ti.simt.block.sync()\n        {s} = {total}\n"
    )


@arch_cache()
def _rows_source(
    name: str, arrays: tuple[str, ...], row_arrays: tuple[str, ...], line: LineSpec, per_thread: int, few_blocks: bool
) -> tuple[str, str]:
    """Generate the kernel. A thread keeps `per_thread` elements in registers, or if this is 0, rereads its elements."""
    result, summand, finish = [text.replace("exp16(", "ti.exp(") for text in line[:3]]
    needs_max = line.needs_max

    def load_source(k: Any, at: str, indent: int) -> str:
        pad = " " * indent
        zero = "ti.f32(-inf)" if needs_max else "ti.f32(0.0)"
        lines = [f"{pad}{x}{k} = {zero if x == 'a' else 'ti.f32(0.0)'}\n" for x in arrays]
        lines.append(f"{pad}if {at} < n:\n" + "".join(f"{pad}    {x}{k} = {x}_[start + {at}]\n" for x in arrays))
        return "".join(lines)

    def rename_operands(text: str, k: Any) -> str:
        for x in arrays:
            text = _rename(text, x, f"{x}{k}")
        return text

    def for_each_element(lines: Any) -> str:
        """Generate the lines for each element of the thread, either unrolled or in a loop that first loads the
        element."""
        if per_thread:
            return "".join(lines(k, f"lane + {k * THREADS_PER_ROW}", 8) for k in range(per_thread))
        head = (
            f"        for iteration in range((n + {THREADS_PER_ROW - 1}) // {THREADS_PER_ROW}):\n"
            f"            index = lane + iteration * {THREADS_PER_ROW}\n"
        )
        return f"{head}{load_source('', 'index', 12)}{lines('', 'index', 12)}"

    body = f"        ti.simt.block.sync()\n        start = t // {THREADS_PER_ROW} * n\n"
    body += f"        lane = t % {THREADS_PER_ROW}\n"
    body += f"        shared = ti.simt.block.SharedArray(({2 * THREADS_PER_ROW // 32},), ti.f32)\n"
    body += "".join(f"        {x} = {x}_[t // {THREADS_PER_ROW}]\n" for x in row_arrays)
    body += "".join(load_source(k, f"lane + {k * THREADS_PER_ROW}", 8) for k in range(per_thread))
    if needs_max:
        body += "        row_max = ti.f32(-inf)\n"
        body += for_each_element(
            lambda k, at, pad: f"{' ' * pad}row_max = ti.max(row_max, a{k})\n"
        ) + _block_reduce_source("max", "row_max", 0)
    if summand:
        body += "        total = ti.f32(0.0)\n"
        body += for_each_element(
            lambda k, at, pad: f"{' ' * pad}x{k} = {rename_operands(summand, k)}\n{' ' * pad}total = total + x{k}\n"
        )
        body += _block_reduce_source("sum", "total", THREADS_PER_ROW // 32)
        body += f"        s64 = ti.cast(total, ti.f64)\n        normalizer = ti.cast({finish}, ti.f32)\n"

    def store_source(k: Any, at: str, pad: int) -> str:
        again = "" if per_thread or not summand else f"{' ' * pad}x = {rename_operands(summand, '')}\n"
        value = _rename(rename_operands(result, k), "x", f"x{k}")
        return f"{again}{' ' * pad}if {at} < n:\n{' ' * pad}    y_[start + {at}] = {value}\n"

    body += for_each_element(store_source)
    params = [f"{x}_: {source.array_annotation('float32')}" for x in ("y", *arrays, *row_arrays)]
    blocks = source.block_loop("lines", THREADS_PER_ROW, cast_literals(body, "f32"), few_blocks)
    return (
        f"@ti.kernel\ndef {name}_kernel({', '.join(params)}, lines: ti.i32, n: ti.i32):\n{blocks}",
        "a" * len(params) + "ii",
    )


def _rename(text: str, name: str, new_name: str) -> str:
    return re.sub(rf"(?<![\w.]){name}(?!\w)", new_name, text)


def run_rows(
    name: str, arrays: Mapping[str, Any], y: Any, line: LineSpec, row_arrays: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """Compute the rows of `y`, along its last dimension, as `simd_lines.run_rows` does."""
    n = y.shape[-1]
    per_thread, lines = -(-n // THREADS_PER_ROW), y.size // n
    in_registers = per_thread if per_thread <= MAX_PER_THREAD else 0
    code = _rows_source(
        f"{name}_rows_block",
        tuple(arrays),
        tuple(row_arrays),
        line,
        in_registers,
        lines <= source.MAX_SINGLE_LAUNCH_BLOCKS,
    )
    pointers = [array_argument(x) for x in (*arrays.values(), *row_arrays.values())]
    get_kernel(f"{name}_rows_block", *code)(array_argument(y), *pointers, lines, n)
