"""Row kernels on CUDA, one thread block per row. Threads keep elements in registers, so that a row is read once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.kernels.wide_lines import Line
from minigrad.backends.taichi.runtime import driver
from minigrad.backends.taichi.runtime.array import pointer
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.kernel import compiled
from minigrad.backends.taichi.runtime.types import FLOAT
from minigrad.backends.taichi.runtime.vector_functions import typed

__all__ = ["rows", "serves_rows"]

THREADS = 256  # threads per block, and therefore per row
MOST = 32  # maximum elements per thread in registers; longer rows are read again
LEAST = 128  # minimum length of a row; a single thread processes a shorter one


def serves_rows(arrays: Sequence[Any], dim: int) -> bool:
    """Return whether the lines of the arrays along `dim` are contiguous rows worth a thread block."""
    return driver.arch() == "cuda" and all(
        x.dtype == FLOAT and dim == x.ndim - 1 and x.shape[dim] >= LEAST and x.size and x.flags.c_contiguous
        for x in arrays
    )


def _shared(join: str, s: str, first: int) -> str:
    """Generate the block-wide reduction of `s`, by warp shuffles and then shared memory from `first` on."""
    take, merge = ("ti.max({}, {})", "ti.max") if join == "max" else ("({} + {})", "")
    near = take.format(s, f"ti.simt.warp.shfl_down_f32(ti.u32(0xFFFFFFFF), {s}, by)")
    warps = [f"near[{first + w}]" for w in range(THREADS // 32)]
    whole = warps[0]
    for w in warps[1:]:
        whole = f"{merge}({whole}, {w})" if merge else f"({whole} + {w})"
    return (
        f"        for by in ti.static((16, 8, 4, 2, 1)):\n            {s} = {near}\n"
        f"        if lane % 32 == 0:\n            near[{first} + lane // 32] = {s}\n"
        f"        ti.simt.block.sync()\n        {s} = {whole}\n"
    )


@cached()
def _rows(
    name: str, arrays: tuple[str, ...], ones: tuple[str, ...], line: Line, each: int, few: bool
) -> tuple[str, str]:
    """Generate the kernel; a thread keeps `each` elements in registers, or rereads its elements if that is 0."""
    result, summed, after = [text.replace("exp16(", "ti.exp(") for text in line[:3]]
    top = line.top

    def read(k: Any, at: str, indent: int) -> str:
        pad = " " * indent
        zero = "ti.f32(-inf)" if top else "ti.f32(0.0)"
        lines = [f"{pad}{x}{k} = {zero if x == 'a' else 'ti.f32(0.0)'}\n" for x in arrays]
        lines.append(f"{pad}if {at} < n:\n" + "".join(f"{pad}    {x}{k} = {x}_[start + {at}]\n" for x in arrays))
        return "".join(lines)

    def named(text: str, k: Any) -> str:
        for x in arrays:
            text = _renamed(text, x, f"{x}{k}")
        return text

    def loop(lines: Any) -> str:
        """Generate lines for each element of the thread, unrolled, or in a loop that loads it first."""
        if each:
            return "".join(lines(k, f"lane + {k * THREADS}", 8) for k in range(each))
        head = (
            f"        for turn in range((n + {THREADS - 1}) // {THREADS}):\n            at = lane + turn * {THREADS}\n"
        )
        return f"{head}{read('', 'at', 12)}{lines('', 'at', 12)}"

    body = f"        ti.simt.block.sync()\n        start = t // {THREADS} * n\n        lane = t % {THREADS}\n"
    body += f"        near = ti.simt.block.SharedArray(({2 * THREADS // 32},), ti.f32)\n"
    body += "".join(f"        {x} = {x}_[t // {THREADS}]\n" for x in ones)
    body += "".join(read(k, f"lane + {k * THREADS}", 8) for k in range(each))
    if top:
        body += "        top = ti.f32(-inf)\n"
        body += loop(lambda k, at, pad: f"{' ' * pad}top = ti.max(top, a{k})\n") + _shared("max", "top", 0)
    if summed:
        body += "        total = ti.f32(0.0)\n"
        body += loop(lambda k, at, pad: f"{' ' * pad}x{k} = {named(summed, k)}\n{' ' * pad}total = total + x{k}\n")
        body += _shared("sum", "total", THREADS // 32)
        body += f"        s64 = ti.cast(total, ti.f64)\n        whole = ti.cast({after}, ti.f32)\n"

    def store(k: Any, at: str, pad: int) -> str:
        again = "" if each or not summed else f"{' ' * pad}x = {named(summed, '')}\n"
        value = _renamed(named(result, k), "x", f"x{k}")
        return f"{again}{' ' * pad}if {at} < n:\n{' ' * pad}    y_[start + {at}] = {value}\n"

    body += loop(store)
    takes = [f"{x}_: {source.array_of('float32')}" for x in ("y", *arrays, *ones)]
    blocks = source.blocks("lines", THREADS, typed(body, "f32"), few)
    return (
        f"@ti.kernel\ndef {name}_kernel({', '.join(takes)}, lines: ti.i32, n: ti.i32):\n{blocks}",
        "a" * len(takes) + "ii",
    )


def _renamed(text: str, name: str, to: str) -> str:
    return re.sub(rf"(?<![\w.]){name}(?!\w)", to, text)


def rows(
    name: str, arrays: Mapping[str, Any], y: Any, line: Line, ones: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """Compute the rows of `y`, along its last dimension, as `wide_lines.rows` does."""
    n = y.shape[-1]
    each, lines = -(-n // THREADS), y.size // n
    kept = each if each <= MOST else 0
    made = _rows(f"{name}_by_blocks", tuple(arrays), tuple(ones), line, kept, lines <= source.FEW_BLOCKS)
    given = [pointer(x) for x in (*arrays.values(), *ones.values())]
    compiled(f"{name}_by_blocks", *made)(pointer(y), *given, lines, n)
