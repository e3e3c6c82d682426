"""Deterministic scatter and scatter-add on a GPU: sort by index, so that one thread handles each destination.

A CPU core scatters elements sequentially. The threads of a GPU would collide, and atomics add in no fixed order. The
indices are therefore sorted stably, and a binary search finds the segment of each destination.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.walks import collapsed, stretched
from minigrad.backends.taichi.kernels.elementwise import arange, computed
from minigrad.backends.taichi.kernels.shape import in_rows
from minigrad.backends.taichi.kernels.sorting import order, taken
from minigrad.backends.taichi.runtime.array import DEVICE, pointer
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.kernel import compiled
from minigrad.core.dispatch import kernels_of

__all__ = ["walked_by_places"]


def walked_by_places(step: str, y: Any, x: Any, b: Any, shape: tuple[int, ...], dim: int, wrong: Any) -> None:
    """Scatter ("put") or scatter-add ("add") `x` to `y` at index `b` along `dim`; x and b broadcast to `shape`.

    An index out of range is skipped, and sets the flag `wrong`.
    """
    size = y.shape[dim]
    rest = [k for k in range(len(shape)) if k != dim]
    one_for_all = all(n == 1 or b.shape[k] == 1 or not b.strides[k] for k, n in enumerate(b.shape) if k != dim)
    if one_for_all:  # the same index for every line
        places = in_rows(b[tuple(slice(None) if k == dim else 0 for k in range(b.ndim))])
        x_steps = stretched(x, shape)
        by, apart = x_steps[dim], 0
    else:
        lines = arange(prod(shape[k] for k in rest)).reshape([1 if k == dim else n for k, n in enumerate(shape)])
        snippet = "ti.select((b >= 0) & (b < size), a * size + b, ti.i64(-1))"
        places = computed("places_in_lines", snippet, (lines, b), np.int64, attrs={"size": size})
        places = in_rows(np.broadcast_to(places, shape, subok=True)).reshape(-1)
        x = in_rows(np.broadcast_to(x, shape, subok=True)).reshape(-1)
        x_steps, by, apart = [0] * len(shape), 1, size
    at = order(places.reshape(1, -1))
    keys = taken(places.reshape(1, -1), at)
    y_steps = [one // y.itemsize for one in y.strides]
    sizes, (y_rest, x_rest) = collapsed(
        [shape[k] for k in rest], [[one[k] for k in rest] for one in (y_steps, x_steps)]
    )
    numbers = (prod(sizes), size, keys.size, apart, by, y_steps[dim], *y_rest, *x_rest, *sizes)
    made = _kernel(step, y.dtype.name, keys.dtype.name, len(sizes))
    made(pointer(y), pointer(x), pointer(keys), pointer(at), *numbers)
    outside = computed("outside", "(a < 0) | (a >= size)", (b,), np.bool_, attrs={"size": size})
    found = kernels_of("any")[DEVICE](outside, dim=tuple(range(outside.ndim)), keepdim=False)
    computed("noted", "ti.max(a, b)", (wrong, found), wrong.dtype, wrong)


@cached()
def _kernel(step: str, dtype: str, key: str, dims: int) -> Any:
    """Compile the kernel that finds the segment of each element of y in the sorted keys, and reduces it."""
    kind, each = source.TI[dtype], range(dims)
    taken = f"ti.cast(s {'|' if dtype == 'bool' else '+'} x, ti.{kind})" if step == "add" else "x"
    numbers = ["lines", "size", "count", "apart", "step", "along"]
    numbers += [f"{a}{k}" for a in "yxn" for k in each]
    takes = [f"y_: {source.array_of(dtype)}", f"x_: {source.array_of(dtype)}"]
    takes += [f"keys_: {source.array_of(key)}", f"at_: {source.array_of('int64')}", *[f"{n}: ti.i32" for n in numbers]]
    split = [f"        i{k} = rest % n{k}\n        rest = rest // n{k}\n" for k in reversed(each) if k]
    ends = ""
    for name, wanted in (("first", "key"), ("last", "key + ti.i64(1)")):
        ends += (
            f"        {name} = 0\n        high = count\n        while {name} < high:\n"
            f"            half = ({name} + high) // 2\n            if ti.i64(keys_[half]) < {wanted}:\n"
            f"                {name} = half + 1\n            else:\n                high = half\n"
        )
    text = (
        f"@ti.kernel\ndef {step}_by_places_kernel(\n    {', '.join(takes)}\n):\n    for i in range(lines * size):\n"
        f"        line = i // size\n        rest = line\n{''.join(split)}        i0 = rest\n"
        f"        key = ti.i64(line) * ti.i64(apart) + ti.i64(i % size)\n{ends}"
        f"        into = {' + '.join(f'i{k} * y{k}' for k in each)} + i % size * along\n"
        f"        begin = {' + '.join(f'i{k} * x{k}' for k in each)}\n        s = y_[into]\n"
        f"        for k in range({'first' if step == 'add' else 'ti.max(first, last - 1)'}, last):\n"
        f"            x = x_[begin + ti.cast(at_[k], ti.i32) * step]\n            s = {taken}\n"
        "        if first < last:\n            y_[into] = s\n"  # a line may alias another if it adds nothing
    )
    return compiled(f"{step}_by_places", text, "aaaa" + "i" * len(numbers))
