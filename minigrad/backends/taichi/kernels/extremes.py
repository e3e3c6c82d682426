"""Maximum and minimum along a dimension, with their index. The first of equal elements wins, and nan beats all."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from minigrad.backends.taichi.codegen import source, wide
from minigrad.backends.taichi.kernels import wide_lines
from minigrad.backends.taichi.kernels.elementwise import pointer
from minigrad.backends.taichi.kernels.rows import along, without
from minigrad.backends.taichi.kernels.shape import in_rows
from minigrad.backends.taichi.runtime.array import DEVICE, empty
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.kernel import compiled
from minigrad.core.dispatch import kernel

__all__: list[str] = []

MOST = 2**24  # the maximum exact index in float32

_PLAIN = """best = a_[at]
place = 0
for k in range(1, n):
    x = a_[at + k * step]
    if (best == best) & ((x SIGN best) | ((x == x) == 0)):
        best = x
        place = k
y_[i] = ti.cast(place, ti.i64)
best_[i] = best
"""

# float32, vectorised by 16: the best element of each lane, and the index of its vector, as a float32. `odd` only
# detects nan, which a second pass then locates.
_TAKEN = """{pad}x = {x}
{pad}at = ti.select(x SIGN best, none + ti.cast({k}, ti.f32), at)
{pad}best = ti.select(x SIGN best, x, best)
{pad}odd = ti.select(x == x, odd, x)
"""
_IN_ROW = f"""        start = i * n
        end = start + n
{wide.EDGES}        worst = none + WORST
        best = ti.select((lanes >= low) & (lanes < ti.select(first < last, 16.0, high)), a_[first], worst)
        odd = ti.select(best == best, none, best)
        best = ti.select(best == best, best, worst)
        at = none
        for k in range(first + 1, last):
{_TAKEN.format(pad=" " * 12, x="a_[k]", k="k - first")}        if first < last:
{_TAKEN.format(pad=" " * 12, x="ti.select(lanes < high, a_[last], worst)", k="last - first")}        place = 0
        top = ti.cast(WORST, ti.f32)
        for j in ti.static(range(16)):
            here = (first + ti.cast(at[j], ti.i32)) * 16 + j - start
            if (here >= 0) & (here < n) & ((best[j] SIGN top) | ((best[j] == top) & (here < place))):
                place = here
                top = best[j]
        whole = odd.sum()
        if (whole == whole) == 0:
            for k in range(n):
                x = b_[start + k]
                if (top == top) & ((x == x) == 0):
                    place = k
                    top = x
        y_[i] = ti.cast(place, ti.i64)
        z_[i] = top
"""
_IN_COLUMN = f"""        start = i // step * n * step + i % step
        none = ti.Vector([ti.cast(0, ti.f32) for j in range(16)])
        best = a_[start]
        odd = ti.select(best == best, none, best)
        best = ti.select(best == best, best, none + WORST)
        at = none
        for k in range(1, n):
{_TAKEN.format(pad=" " * 12, x="a_[start + k * step]", k="k")}        for j in ti.static(range(16)):
            place = ti.cast(at[j], ti.i32)
            top = best[j]
            if (odd[j] == odd[j]) == 0:
                for k in range(n):
                    x = b_[(start + k * step) * 16 + j]
                    if (top == top) & ((x == x) == 0):
                        place = k
                        top = x
            y_[i * 16 + j] = ti.cast(place, ti.i64)
            z_[i * 16 + j] = top
"""


@cached()
def _in_vectors(name: str, in_rows: bool, serial: bool) -> Any:
    sign, worst = {"max": (">", "-inf"), "min": ("<", "inf")}[name]
    body = (_IN_ROW if in_rows else _IN_COLUMN).replace("SIGN", sign).replace("WORST", worst)
    arguments = [("y_", source.array_of("int64")), ("z_", wide.NUMBER), ("a_", wide.VECTOR), ("b_", wide.NUMBER)]
    arguments += [(x, "ti.i32") for x in ("count", "n", "step")]
    name = f"{name}_in_{'row' if in_rows else 'column'}"
    return compiled(name, *wide.text_of(name, arguments, "count", body, serial))


def _found(name: str, a: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    shape, a = without(a.shape, dim, keepdim), in_rows(a)
    at, best = empty(shape, np.int64), empty(shape, a.dtype)
    n, step, rows = a.shape[dim], prod(a.shape[dim + 1 :]), wide_lines.in_rows_of(a, dim)
    if n < MOST and (rows or wide_lines.in_columns_of(a, dim)):
        sizes = (best.size, n, 1) if rows else (best.size // 16, n, step // 16)
        made = _in_vectors(name, rows, a.size <= wide.SERIAL_LINES)
        made.launch(*map(pointer, (at, best, a, a)), *sizes)
    else:
        body = _PLAIN.replace("SIGN", ">" if name == "max" else "<")
        along(name, body, a.shape, dim, at, {"best": best, "a": a})
    return best, at


def _register(name: str) -> None:
    @kernel(f"arg{name}", DEVICE)
    def place(a: Any, *, dim: int, keepdim: bool) -> Any:
        return _found(name, a, dim, keepdim)[1]

    @kernel(name, DEVICE)
    def value_and_place(a: Any, *, dim: int, keepdim: bool) -> Any:
        return _found(name, a, dim, keepdim)


_register("max")
_register("min")
