"""Deterministic scatter and scatter-add on a GPU, by sorting the indices, so that one thread handles each destination.

A CPU core scatters elements sequentially. On a GPU, writes of different threads would collide, and the order of atomic
additions is not fixed. The indices are therefore sorted stably, and a binary search finds the segment of each
destination.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.strided_walk import broadcast_strides, collapse_dimensions
from minigrad.backends.taichi.kernels.elementwise import arange, evaluate
from minigrad.backends.taichi.kernels.shape import as_contiguous
from minigrad.backends.taichi.kernels.sorting import argsort_lines, gather_lines
from minigrad.backends.taichi.runtime.array import TAICHI, array_argument
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.core.dispatch import get_kernels

__all__ = ["scatter_by_sorting"]


def scatter_by_sorting(step: str, y: Any, x: Any, b: Any, shape: tuple[int, ...], dim: int, error_flag: Any) -> None:
    """Scatter ("put") or scatter-add ("add") `x` to `y` at index `b` along `dim`; x and b broadcast to `shape`.

    Indices out of range are skipped, and set `error_flag`.
    """
    size = y.shape[dim]
    rest = [k for k in range(len(shape)) if k != dim]
    same_for_all_lines = all(n == 1 or b.shape[k] == 1 or not b.strides[k] for k, n in enumerate(b.shape) if k != dim)
    if same_for_all_lines:  # all lines have the same indices
        destinations = as_contiguous(b[tuple(slice(None) if k == dim else 0 for k in range(b.ndim))])
        x_steps = broadcast_strides(x, shape)
        x_stride, line_stride = x_steps[dim], 0
    else:
        lines = arange(prod(shape[k] for k in rest)).reshape([1 if k == dim else n for k, n in enumerate(shape)])
        snippet = "ti.select((b >= 0) & (b < size), a * size + b, ti.i64(-1))"
        destinations = evaluate("flat_indices", snippet, (lines, b), np.int64, attrs={"size": size})
        destinations = as_contiguous(np.broadcast_to(destinations, shape, subok=True)).reshape(-1)
        x = as_contiguous(np.broadcast_to(x, shape, subok=True)).reshape(-1)
        x_steps, x_stride, line_stride = [0] * len(shape), 1, size
    permutation = argsort_lines(destinations.reshape(1, -1))
    keys = gather_lines(destinations.reshape(1, -1), permutation)
    y_steps = [one // y.itemsize for one in y.strides]
    sizes, (y_rest, x_rest) = collapse_dimensions(
        [shape[k] for k in rest], [[one[k] for k in rest] for one in (y_steps, x_steps)]
    )
    scalars = (prod(sizes), size, keys.size, line_stride, x_stride, y_steps[dim], *y_rest, *x_rest, *sizes)
    compiled_kernel = _compile_kernel(step, y.dtype.name, keys.dtype.name, len(sizes))
    compiled_kernel(array_argument(y), array_argument(x), array_argument(keys), array_argument(permutation), *scalars)
    outside = evaluate("out_of_range", "(a < 0) | (a >= size)", (b,), np.bool_, attrs={"size": size})
    any_outside = get_kernels("any")[TAICHI](outside, dim=tuple(range(outside.ndim)), keepdim=False)
    evaluate("set_error_flag", "ti.max(a, b)", (error_flag, any_outside), error_flag.dtype, error_flag)


@arch_cache()
def _compile_kernel(step: str, dtype: str, key: str, dims: int) -> Any:
    """Return the kernel that finds, for each element of y, its segment of the sorted keys, and reduces that segment."""
    name = "scatter_add" if step == "add" else "scatter"
    kind, each = source.TAICHI_NAMES[dtype], range(dims)
    update = f"ti.cast(s {'|' if dtype == 'bool' else '+'} x, ti.{kind})" if step == "add" else "x"
    size_names = ["lines", "size", "count", "line_stride", "x_stride", "y_stride"]
    size_names += [f"{a}{k}" for a in "yxn" for k in each]
    params = [f"y_: {source.array_annotation(dtype)}", f"x_: {source.array_annotation(dtype)}"]
    params += [
        f"keys_: {source.array_annotation(key)}",
        f"permutation_: {source.array_annotation('int64')}",
        *[f"{n}: ti.i32" for n in size_names],
    ]
    split = [f"        i{k} = rest % n{k}\n        rest = rest // n{k}\n" for k in reversed(each) if k]
    ends = ""
    for limit, bound in (("first", "key"), ("last", "key + ti.i64(1)")):
        ends += (
            f"        {limit} = 0\n        high = count\n        while {limit} < high:\n"
            f"            middle = ({limit} + high) // 2\n            if ti.i64(keys_[middle]) < {bound}:\n"
            f"                {limit} = middle + 1\n            else:\n                high = middle\n"
        )
    code = (
        f"@ti.kernel\ndef {name}_sorted_kernel(\n    {', '.join(params)}\n):\n    for i in range(lines * size):\n"
        f"        line = i // size\n        rest = line\n{''.join(split)}        i0 = rest\n"
        f"        key = ti.i64(line) * ti.i64(line_stride) + ti.i64(i % size)\n{ends}"
        f"        target = {' + '.join(f'i{k} * y{k}' for k in each)} + i % size * y_stride\n"
        f"        begin = {' + '.join(f'i{k} * x{k}' for k in each)}\n        s = y_[target]\n"
        f"        for k in range({'first' if step == 'add' else 'ti.max(first, last - 1)'}, last):\n"
        f"            x = x_[begin + ti.cast(permutation_[k], ti.i32) * x_stride]\n            s = {update}\n"
        "        if first < last:\n            y_[target] = s\n"  # a line without additions may alias another
    )
    return get_kernel(f"{name}_sorted", code, "aaaa" + "i" * len(size_names))
