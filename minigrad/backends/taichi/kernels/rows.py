"""Kernels along one dimension, and the softmax family.

A line is a 1-d slice of an array along one dimension. The body of a kernel processes one line: it accesses element k at
``offset + k * step``, and per-line values at ``i``.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.kernels import cuda_rows, simd_lines
from minigrad.backends.taichi.kernels.elementwise import array_argument, param_of
from minigrad.backends.taichi.kernels.shape import as_contiguous, contiguous
from minigrad.backends.taichi.kernels.simd_lines import LineSpec
from minigrad.backends.taichi.runtime.array import TAICHI, empty
from minigrad.backends.taichi.runtime.caches import ArchDict, arch_cache
from minigrad.backends.taichi.runtime.driver import check_serial_iterations
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.core.dispatch import kernel

__all__ = ["broadcast_contiguous", "drop_dim", "run_lines", "substitute_dtype"]

Shape = tuple[int, ...]


def run_lines(name: str, body: str, shape: Shape, dim: int, y: Any, others: Mapping[str, Any]) -> None:
    """Run `body` for each line of `shape` along `dim`.

    In the body, a contiguous array (the output `y` or an array of `others`) has its name followed by "_", a scalar of
    `others` has its own name, and `n` is the length of a line.
    """
    lines = prod(shape[:dim]) * prod(shape[dim + 1 :])
    if not lines:
        return
    n, step = shape[dim], prod(shape[dim + 1 :])
    check_serial_iterations(name, n)
    arguments = [array_argument(x) if isinstance(x, np.ndarray) else x for x in others.values()]
    types = [x.dtype if isinstance(x, np.ndarray) else x.__class__ for x in others.values()]
    key = (name, body, y.dtype, *others, *types, lines * n <= source.SERIAL_LIMIT)
    compiled_kernel = _kernels.get(key)
    if compiled_kernel is None:
        compiled_kernel = _kernels[key] = _compile_lines(name, body, y, others, key[-1])
    compiled_kernel(array_argument(y), *arguments, lines, n, step)


def _compile_lines(name: str, body: str, y: Any, others: Mapping[str, Any], serial: bool) -> Any:
    floats = [x.dtype for x in (y, *others.values()) if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
    compute_dtype = np.result_type(*floats).name if floats else "float64"
    params = [param_of(letter, x, compute_dtype) for letter, x in others.items()]
    start = "        i = t\n        offset = i // step * (n * step) + i % step\n"
    loop_body = start + "".join(f"        {line}\n" for line in body.splitlines())
    code = source.wrap_kernel(
        name, params, y.dtype.name, compute_dtype, ["lines", "n", "step"], "lines", loop_body, serial, 1, True
    )
    return get_kernel(name, *code)


_kernels: dict[Any, Any] = ArchDict()


def broadcast_contiguous(x: Any, shape: Shape) -> Any:
    """Return `x` broadcast to `shape` as a contiguous array."""
    return as_contiguous(x) if x.shape == shape else contiguous(np.broadcast_to(x, shape, subok=True))


def drop_dim(shape: Shape, dim: int, keepdim: bool = False) -> Shape:
    """Return `shape` without dimension `dim`, or with size 1 in that dimension if `keepdim`."""
    return (*shape[:dim], *((1,) if keepdim else ()), *shape[dim + 1 :])


# --- softmax ---

ROW_MAX = """row_max = {type}(-inf)
for k in range(n):
    x = {type}(a_[offset + k * step])
    row_max = ti.select((x > row_max) | ((x == x) == 0), x, row_max)
s = ti.cast(0, ti.f64)
"""
_SOFTMAX = """for k in range(n):
    x = ti.exp(a_[offset + k * step] - row_max)
    y_[offset + k * step] = x
    s = s + x
for k in range(n):
    y_[offset + k * step] = ti.cast(y_[offset + k * step] / s, {type})
"""
_LOG_SOFTMAX = """for k in range(n):
    s = s + ti.exp(a_[offset + k * step] - row_max)
s = ti.log(s)
for k in range(n):
    y_[offset + k * step] = ti.cast(a_[offset + k * step] - row_max - s, {type})
"""
_SOFTMAX_BACKWARD = """s = ti.cast(0, ti.f64)
for k in range(n):
    s = s + u_[offset + k * step] * ti.cast(s_[offset + k * step], ti.f64)
total = ti.cast(s, {type})
for k in range(n):
    y_[offset + k * step] = (u_[offset + k * step] - total) * s_[offset + k * step]
"""
_LOG_SOFTMAX_BACKWARD = """s = ti.cast(0, ti.f64)
for k in range(n):
    s = s + u_[offset + k * step]
total = ti.cast(s, {type})
for k in range(n):
    y_[offset + k * step] = u_[offset + k * step] - ti.exp(s_[offset + k * step]) * total
"""


@arch_cache()
def substitute_dtype(body: str, dtype: Any) -> str:
    """Replace the placeholder {type} in `body` by the Taichi type of `dtype`."""
    return body.replace("{type}", f"ti.{source.TAICHI_NAMES[dtype.name]}")


def _run_softmax(name: str, body: str, dim: int, y: Any, arrays: dict[str, Any], line: LineSpec) -> Any:
    if cuda_rows.can_use_blocks([y, *arrays.values()], dim):
        cuda_rows.run_rows(name, arrays, y, line)
    elif all(simd_lines.has_vector_rows(x, dim) for x in arrays.values()):
        simd_lines.run_rows(name, arrays, y, line)
    elif all(simd_lines.has_vector_columns(x, dim) for x in arrays.values()):
        simd_lines.run_columns(name, arrays, dim, y, line)
    else:
        run_lines(name, substitute_dtype(body, y.dtype), y.shape, dim, y, arrays)
    return y


def _register_forward(name: str, body: str, line: LineSpec) -> None:
    @kernel(name, TAICHI)
    def run(a: Any, *, dim: int) -> Any:
        return _run_softmax(name, ROW_MAX + body, dim, empty(a.shape, a.dtype), {"a": as_contiguous(a)}, line)


def _register_backward(name: str, body: str, line: LineSpec) -> None:
    @kernel(name, TAICHI)
    def run(u: Any, s: Any, *, dim: int) -> Any:
        y = empty(s.shape, np.result_type(u, s))
        return _run_softmax(name, body, dim, y, {"u": broadcast_contiguous(u, s.shape), "s": as_contiguous(s)}, line)


_EXP = "exp16(a - row_max)"
_register_forward("softmax", _SOFTMAX, LineSpec("x * normalizer", _EXP, "1 / s64", needs_max=True, store_summand=True))
_register_forward(
    "log_softmax", _LOG_SOFTMAX, LineSpec("(a - row_max) - normalizer", _EXP, "ti.log(s64)", needs_max=True)
)
_register_backward("softmax_backward", _SOFTMAX_BACKWARD, LineSpec("(u - normalizer) * s", "u * s"))
_register_backward("log_softmax_backward", _LOG_SOFTMAX_BACKWARD, LineSpec("u - exp16(s) * normalizer", "u"))
