"""Maximum and minimum along a dimension, with their index. The first of equal elements is returned; nan propagates."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from minigrad.backends.taichi.codegen import simd, source
from minigrad.backends.taichi.kernels import simd_lines
from minigrad.backends.taichi.kernels.elementwise import array_argument
from minigrad.backends.taichi.kernels.rows import drop_dim, run_lines
from minigrad.backends.taichi.kernels.shape import as_contiguous
from minigrad.backends.taichi.runtime.array import TAICHI, empty
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.core.dispatch import kernel

__all__: list[str] = []

MAX_LENGTH = 2**24  # largest index that float32 represents exactly

_SCALAR_BODY = """best = a_[offset]
index = 0
for k in range(1, n):
    x = a_[offset + k * step]
    if (best == best) & ((x SIGN best) | ((x == x) == 0)):
        best = x
        index = k
y_[i] = ti.cast(index, ti.i64)
best_[i] = best
"""

# For float32, vectorised by 16: update the best element of each lane, and the index of its vector as a float32.
# `nan_lanes` only detects nan, which a second pass then locates.
_UPDATE_LANES = """{pad}x = {x}
{pad}best_index = ti.select(x SIGN best, zeros + ti.cast({k}, ti.f32), best_index)
{pad}best = ti.select(x SIGN best, x, best)
{pad}nan_lanes = ti.select(x == x, nan_lanes, x)
"""
_ROW_BODY = f"""        start = i * n
        end = start + n
{simd.EDGES}        identity = zeros + IDENTITY
        best = ti.select((lanes >= low) & (lanes < ti.select(first < last, 16.0, high)), a_[first], identity)
        nan_lanes = ti.select(best == best, zeros, best)
        best = ti.select(best == best, best, identity)
        best_index = zeros
        for k in range(first + 1, last):
{_UPDATE_LANES.format(pad=" " * 12, x="a_[k]", k="k - first")}        if first < last:
{_UPDATE_LANES.format(pad=" " * 12, x="ti.select(lanes < high, a_[last], identity)", k="last - first")}        index = 0
        best_value = ti.cast(IDENTITY, ti.f32)
        for j in ti.static(range(16)):
            candidate = (first + ti.cast(best_index[j], ti.i32)) * 16 + j - start
            if (candidate >= 0) & (candidate < n)\
 & ((best[j] SIGN best_value) | ((best[j] == best_value) & (candidate < index))):
                index = candidate
                best_value = best[j]
        nan_sum = nan_lanes.sum()
        if (nan_sum == nan_sum) == 0:
            for k in range(n):
                x = b_[start + k]
                if (best_value == best_value) & ((x == x) == 0):
                    index = k
                    best_value = x
        y_[i] = ti.cast(index, ti.i64)
        z_[i] = best_value
"""
_COLUMN_BODY = f"""        start = i // step * n * step + i % step
        zeros = ti.Vector([ti.cast(0, ti.f32) for j in range(16)])
        best = a_[start]
        nan_lanes = ti.select(best == best, zeros, best)
        best = ti.select(best == best, best, zeros + IDENTITY)
        best_index = zeros
        for k in range(1, n):
{_UPDATE_LANES.format(pad=" " * 12, x="a_[start + k * step]", k="k")}        for j in ti.static(range(16)):
            index = ti.cast(best_index[j], ti.i32)
            best_value = best[j]
            if (nan_lanes[j] == nan_lanes[j]) == 0:
                for k in range(n):
                    x = b_[(start + k * step) * 16 + j]
                    if (best_value == best_value) & ((x == x) == 0):
                        index = k
                        best_value = x
            y_[i * 16 + j] = ti.cast(index, ti.i64)
            z_[i * 16 + j] = best_value
"""


@arch_cache()
def _vector_kernel(name: str, along_rows: bool, serial: bool) -> Any:
    sign, identity = {"max": (">", "-inf"), "min": ("<", "inf")}[name]
    body = (_ROW_BODY if along_rows else _COLUMN_BODY).replace("SIGN", sign).replace("IDENTITY", identity)
    arguments = [
        ("y_", source.array_annotation("int64")),
        ("z_", simd.NUMBER),
        ("a_", simd.VECTOR),
        ("b_", simd.NUMBER),
    ]
    arguments += [(x, "ti.i32") for x in ("count", "n", "step")]
    name = f"arg{name}_{'rows' if along_rows else 'columns'}"
    return get_kernel(name, *simd.kernel_source(name, arguments, "count", body, serial))


def _extremum(name: str, a: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    shape, a = drop_dim(a.shape, dim, keepdim), as_contiguous(a)
    indices, best = empty(shape, np.int64), empty(shape, a.dtype)
    n, step, rows = a.shape[dim], prod(a.shape[dim + 1 :]), simd_lines.has_vector_rows(a, dim)
    if n < MAX_LENGTH and (rows or simd_lines.has_vector_columns(a, dim)):
        sizes = (best.size, n, 1) if rows else (best.size // 16, n, step // 16)
        compiled_kernel = _vector_kernel(name, rows, a.size <= simd.MAX_SERIAL_ROW_ELEMENTS)
        compiled_kernel.launch(*map(array_argument, (indices, best, a, a)), *sizes)
    else:
        body = _SCALAR_BODY.replace("SIGN", ">" if name == "max" else "<")
        run_lines(name, body, a.shape, dim, indices, {"best": best, "a": a})
    return best, indices


def _register(name: str) -> None:
    @kernel(f"arg{name}", TAICHI)
    def arg_kernel(a: Any, *, dim: int, keepdim: bool) -> Any:
        return _extremum(name, a, dim, keepdim)[1]

    @kernel(name, TAICHI)
    def value_kernel(a: Any, *, dim: int, keepdim: bool) -> Any:
        return _extremum(name, a, dim, keepdim)


_register("max")
_register("min")
