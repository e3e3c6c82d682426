"""Kernels along one dimension, and the softmax family.

A line is a 1-d slice of an array along one dimension. The body of a kernel processes one line: it accesses element k at
``at + k * step``, and per-line values at ``i``.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.kernels import cuda_rows, wide_lines
from minigrad.backends.taichi.kernels.elementwise import pointer, taken
from minigrad.backends.taichi.kernels.shape import contiguous, in_rows
from minigrad.backends.taichi.kernels.wide_lines import Line
from minigrad.backends.taichi.runtime.array import DEVICE, empty
from minigrad.backends.taichi.runtime.caches import Remembered, cached
from minigrad.backends.taichi.runtime.driver import check_rounds
from minigrad.backends.taichi.runtime.kernel import compiled
from minigrad.core.dispatch import kernel

__all__ = ["along", "stretched_to", "typed_as", "without"]

Shape = tuple[int, ...]


def along(name: str, body: str, shape: Shape, dim: int, y: Any, others: Mapping[str, Any]) -> None:
    """Run `body` for each line of `shape` along `dim`.

    The body refers to the contiguous arrays `y`, the first result, and `others` by their names with a "_" appended, to
    scalars in `others` by their names, and to the length of a line as `n`.
    """
    lines = prod(shape[:dim]) * prod(shape[dim + 1 :])
    if not lines:
        return
    n, step = shape[dim], prod(shape[dim + 1 :])
    check_rounds(name, n)
    given = [pointer(x) if isinstance(x, np.ndarray) else x for x in others.values()]
    types = [x.dtype if isinstance(x, np.ndarray) else x.__class__ for x in others.values()]
    key = (name, body, y.dtype, *others, *types, lines * n <= source.SERIAL)
    made = _kernels.get(key)
    if made is None:
        made = _kernels[key] = _made(name, body, y, others, key[-1])
    made(pointer(y), *given, lines, n, step)


def _made(name: str, body: str, y: Any, others: Mapping[str, Any], serial: bool) -> Any:
    floats = [x.dtype for x in (y, *others.values()) if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
    work = np.result_type(*floats).name if floats else "float64"
    takes = [taken(letter, x, work) for letter, x in others.items()]
    start = "        i = t\n        at = i // step * (n * step) + i % step\n"
    lined = start + "".join(f"        {line}\n" for line in body.splitlines())
    text = source.wrapped(name, takes, y.dtype.name, work, ["lines", "n", "step"], "lines", lined, serial, 1, True)
    return compiled(name, *text)


_kernels: dict[Any, Any] = Remembered()


def stretched_to(x: Any, shape: Shape) -> Any:
    """Return `x` broadcast to `shape` as a contiguous array."""
    return in_rows(x) if x.shape == shape else contiguous(np.broadcast_to(x, shape, subok=True))


def without(shape: Shape, dim: int, keepdim: bool = False) -> Shape:
    """Return `shape` without dimension `dim`, or with size 1 there."""
    return (*shape[:dim], *((1,) if keepdim else ()), *shape[dim + 1 :])


# --- softmax ---

TOP = """top = {type}(-inf)
for k in range(n):
    x = {type}(a_[at + k * step])
    top = ti.select((x > top) | ((x == x) == 0), x, top)
s = ti.cast(0, ti.f64)
"""
_SOFTMAX = """for k in range(n):
    x = ti.exp(a_[at + k * step] - top)
    y_[at + k * step] = x
    s = s + x
for k in range(n):
    y_[at + k * step] = ti.cast(y_[at + k * step] / s, {type})
"""
_LOG_SOFTMAX = """for k in range(n):
    s = s + ti.exp(a_[at + k * step] - top)
s = ti.log(s)
for k in range(n):
    y_[at + k * step] = ti.cast(a_[at + k * step] - top - s, {type})
"""
_SOFTMAX_BACKWARD = """s = ti.cast(0, ti.f64)
for k in range(n):
    s = s + u_[at + k * step] * ti.cast(s_[at + k * step], ti.f64)
whole = ti.cast(s, {type})
for k in range(n):
    y_[at + k * step] = (u_[at + k * step] - whole) * s_[at + k * step]
"""
_LOG_SOFTMAX_BACKWARD = """s = ti.cast(0, ti.f64)
for k in range(n):
    s = s + u_[at + k * step]
whole = ti.cast(s, {type})
for k in range(n):
    y_[at + k * step] = u_[at + k * step] - ti.exp(s_[at + k * step]) * whole
"""


@cached()
def typed_as(body: str, dtype: Any) -> str:
    """Substitute the dtype of the result in a body."""
    return body.replace("{type}", f"ti.{source.TI[dtype.name]}")


def _row_wise(name: str, body: str, dim: int, y: Any, arrays: dict[str, Any], line: Line) -> Any:
    if cuda_rows.serves_rows([y, *arrays.values()], dim):
        cuda_rows.rows(name, arrays, y, line)
    elif all(wide_lines.in_rows_of(x, dim) for x in arrays.values()):
        wide_lines.rows(name, arrays, y, line)
    elif all(wide_lines.in_columns_of(x, dim) for x in arrays.values()):
        wide_lines.columns(name, arrays, dim, y, line)
    else:
        along(name, typed_as(body, y.dtype), y.shape, dim, y, arrays)
    return y


def _of_scores(name: str, body: str, line: Line) -> None:
    @kernel(name, DEVICE)
    def run(a: Any, *, dim: int) -> Any:
        return _row_wise(name, TOP + body, dim, empty(a.shape, a.dtype), {"a": in_rows(a)}, line)


def _of_slopes(name: str, body: str, line: Line) -> None:
    @kernel(name, DEVICE)
    def run(u: Any, s: Any, *, dim: int) -> Any:
        y = empty(s.shape, np.result_type(u, s))
        return _row_wise(name, body, dim, y, {"u": stretched_to(u, s.shape), "s": in_rows(s)}, line)


_exp = "exp16(a - top)"
_of_scores("softmax", _SOFTMAX, Line("x * whole", _exp, "1 / s64", top=True, kept=True))
_of_scores("log_softmax", _LOG_SOFTMAX, Line("(a - top) - whole", _exp, "ti.log(s64)", top=True))
_of_slopes("softmax_backward", _SOFTMAX_BACKWARD, Line("(u - whole) * s", "u * s"))
_of_slopes("log_softmax_backward", _LOG_SOFTMAX_BACKWARD, Line("u - exp16(s) * whole", "u"))
