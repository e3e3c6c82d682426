"""Counter-based random numbers (Philox4x32-10). The streams are bitwise identical to those on the device ``numpy``.

One block of the generator consists of four 32-bit words, which yield four 32-bit or two 64-bit samples. Each block
depends only on its index.
"""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from minigrad.backends.numpy.random import BITS, KEY_STEPS, LOW_WORD, MULTIPLIERS, NORMAL, NORMAL64, UNIFORM, UNIFORM64
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.kernels.elementwise import array_argument, evaluate
from minigrad.backends.taichi.kernels.shape import as_contiguous
from minigrad.backends.taichi.kernels.sorting import argsort_lines
from minigrad.backends.taichi.runtime.array import TAICHI, empty
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.driver import check_serial_iterations
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.core.dispatch import kernel

__all__: list[str] = []

Shape = tuple[int, ...]

_PHILOX = f"""@ti.func
def philox(block, stream, key_low, key_high):
    a, b = ti.cast(block, ti.u32), ti.cast(block >> ti.i64(32), ti.u32)
    c, d = ti.cast(stream, ti.u32), ti.cast(0, ti.u32)
    low, high = ti.cast(key_low, ti.u32), ti.cast(key_high, ti.u32)
    for _ in ti.static(range(10)):
        p = ti.cast(a, ti.u64) * ti.u64({MULTIPLIERS[0]})
        q = ti.cast(c, ti.u64) * ti.u64({MULTIPLIERS[1]})
        a = ti.cast(q >> ti.u64(32), ti.u32) ^ b ^ low
        c = ti.cast(p >> ti.u64(32), ti.u32) ^ d ^ high
        b, d = ti.cast(q, ti.u32), ti.cast(p, ti.u32)
        low += ti.u32({KEY_STEPS[0]})
        high += ti.u32({KEY_STEPS[1]})
    return a, b, c, d


"""
_PAIRS = """        s = (ti.cast(b, ti.u64) << ti.u64(32)) | ti.cast(a, ti.u64)
        t = (ti.cast(d, ti.u64) << ti.u64(32)) | ti.cast(c, ti.u64)
"""
# Samples of U[0, 1) are exact multiples of 2**-24 or 2**-53.
_UNIFORM_BODIES = {
    "float32": "".join(
        f"        e{k} = ti.cast({w} >> ti.u32(8), ti.f32) * ti.f32({2.0**-24!r})\n" for k, w in enumerate("abcd")
    ),
    "float64": _PAIRS
    + "".join(
        f"        e{k} = ti.cast(ti.cast({w} >> ti.u64(11), ti.i64), ti.f64) * ti.f64({2.0**-53!r})\n"
        for k, w in enumerate("st")
    ),
}
_INTEGER_BODIES = {False: _PAIRS, True: _PAIRS + "        s %= span\n        t %= span\n"}


def _box_muller_source(real: str, count: int) -> str:
    """Return source that applies the Box-Muller transform to pairs of uniform samples."""
    lines = ""
    for k in range(0, count, 2):
        lines += f"        r{k} = ti.sqrt(ti.{real}(-2.0) * ti.log(ti.{real}(1.0) - e{k}))\n"
        lines += f"        w{k} = e{k + 1} * ti.{real}({2 * pi!r})\n"
        lines += f"        z{k}, z{k + 1} = r{k} * ti.cos(w{k}), r{k} * ti.sin(w{k})\n"
    return lines


@arch_cache()
def _generator_kernel(kind: str, dtype: str, serial: bool) -> Any:
    """Return the kernel that generates samples of a kind: "uniform", "normal", "int" (in a range) or "bits" (any
    int64). Each iteration computes one block."""
    type_name = source.TAICHI_NAMES[dtype]
    if kind in ("uniform", "normal"):
        per_block = 4 if dtype == "float32" else 2
        body = _UNIFORM_BODIES[dtype] + (_box_muller_source(type_name, per_block) if kind == "normal" else "")
        values = [f"{'z' if kind == 'normal' else 'e'}{k}" for k in range(per_block)]
    else:
        per_block, body = 2, _INTEGER_BODIES[kind == "int"]
        values = [f"ti.cast(ti.cast({x}, ti.i64) + low, ti.{type_name})" for x in "st"]
    stores = "".join(
        f"        if (index + {k} >= 0) & (index + {k} < count):\n            y_[index + {k}] = {value}\n"
        for k, value in enumerate(values)
    )
    names = ["first", "stream", "key_low", "key_high", "span_low", "span_high", "low"]
    code = (
        f"{_PHILOX}@ti.kernel\ndef random_{kind}_kernel(\n    y_: {source.array_annotation(dtype)}, "
        f"{', '.join(f'{name}: ti.i64' for name in names)}, skipped: ti.i32, blocks: ti.i32, count: ti.i32\n):\n"
        "    span = (ti.cast(span_high, ti.u64) << ti.u64(32)) | ti.cast(span_low, ti.u64)\n"
        + (source.SERIALIZE if serial else "")
        + "    for i in range(blocks):\n"
        + "        a, b, c, d = philox(first + ti.cast(i, ti.i64), stream, key_low, key_high)\n"
        + f"{body}        index = i * {per_block} - skipped\n{stores}"
    )
    return get_kernel(f"random_{kind}", code, "a" + "i" * (len(names) + 3))


def _sample(
    kind: str, stream: int, key: int, offset: int, shape: Shape, dtype: str, span: int = 0, low: int = 0
) -> Any:
    """Return an array of `shape` with consecutive samples of a stream, starting at `offset`."""
    out = empty(shape, dtype)
    if not out.size:
        return out
    per_block = 4 if kind in ("uniform", "normal") and dtype == "float32" else 2
    first, skipped = divmod(offset, per_block)
    _generator_kernel(kind, dtype, out.size <= source.SERIAL_LIMIT)(
        array_argument(out), first, stream, key & LOW_WORD, key >> 32, span & LOW_WORD, span >> 32, low,
        skipped, -(-(skipped + out.size) // per_block), out.size,
    )  # fmt: skip
    return out


@kernel("random_uniform", TAICHI)
def random_uniform(*, key: int, offset: int, shape: Shape, dtype: Any) -> Any:
    return _sample("uniform", UNIFORM if dtype.name == "float32" else UNIFORM64, key, offset, shape, dtype.name)


@kernel("random_normal", TAICHI)
def random_normal(*, key: int, offset: int, shape: Shape, dtype: Any) -> Any:
    return _sample("normal", NORMAL if dtype.name == "float32" else NORMAL64, key, offset, shape, dtype.name)


@kernel("random_int", TAICHI)
def random_int(*, key: int, offset: int, shape: Shape, low: int, high: int, dtype: Any) -> Any:
    kind, span = ("int", high - low) if high - low < 2**64 else ("bits", 0)
    return _sample(kind, BITS, key, offset, shape, dtype.name, span, low)


@kernel("random_permutation", TAICHI)
def random_permutation(*, key: int, offset: int, count: int) -> Any:
    # the offset maps uint64 to int64 in order
    keys = _sample("bits", BITS, key, offset, (1, count), "int64", low=-(2**63))
    return argsort_lines(keys).reshape(count)


@kernel("random_choice", TAICHI)
def random_choice(a: Any, *, key: int, offset: int, count: int, replacement: bool) -> Any:
    """Sample indices into the last dimension, with probabilities proportional to `a`. The samples equal those of the
    device ``numpy``."""
    size = a.shape[-1]
    weights = as_contiguous(a).reshape(-1, size)
    lines = len(weights)
    if not replacement:
        draws = _sample("uniform", UNIFORM64, key, offset, weights.shape, "float64")
        times = evaluate("exponential_race", "-log1p(-a) / ti.f64(b)", (draws, weights), np.float64)
        return as_contiguous(argsort_lines(times)[:, :count]).reshape(*a.shape[:-1], count)
    cumulative, out = empty(weights.shape, np.float64), empty((*a.shape[:-1], count), np.int64)
    draws = _sample("uniform", UNIFORM64, key, offset, (lines, count), "float64")
    if out.size:
        serial = weights.size <= source.SERIAL_LIMIT
        check_serial_iterations("random_choice", size)
        _cumulative_kernel(weights.dtype.name, serial)(array_argument(cumulative), array_argument(weights), lines, size)
        _search_kernel(out.size <= source.SERIAL_LIMIT)(
            array_argument(out), array_argument(cumulative), array_argument(draws), out.size, count, size
        )
    return out


@arch_cache()
def _cumulative_kernel(dtype: str, serial: bool) -> Any:
    """Return the kernel that computes the cumulative distribution of each row. Its last element is exactly 1, so that
    it exceeds every draw."""
    code = f"""@ti.kernel
def cumulative_probabilities_kernel(\
y_: {source.array_annotation("float64")}, x_: {source.array_annotation(dtype)}, lines: ti.i32,
    size: ti.i32):
{source.SERIALIZE * serial}    for i in range(lines):
        total = ti.cast(0, ti.f64)
        for k in range(i * size, i * size + size):
            total += ti.cast(x_[k], ti.f64)
            y_[k] = total
        for k in range(i * size, i * size + size):
            y_[k] = y_[k] / total
"""
    return get_kernel("cumulative_probabilities", code, "aaii")


@arch_cache()
def _search_kernel(serial: bool) -> Any:
    """Return the kernel that finds, by binary search, the first index whose cumulative probability exceeds the draw."""
    code = f"""@ti.kernel
def search_cumulative_kernel(
    y_: {source.array_annotation("int64")}, cumulative_: {source.array_annotation("float64")},
    uniform_: {source.array_annotation("float64")},
    draws: ti.i32, count: ti.i32, size: ti.i32
):
{source.SERIALIZE * serial}    for i in range(draws):
        line = i // count * size
        low, high = 0, size
        while low < high:
            middle = (low + high) // 2
            if cumulative_[line + middle] > uniform_[i]:
                high = middle
            else:
                low = middle + 1
        y_[i] = ti.cast(low, ti.i64)
"""
    return get_kernel("search_cumulative", code, "aaaiii")
