"""Scans along a dimension: cumulative sums and products, and linear recurrences."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.backends.numpy.reduce import sum_dtype
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.kernels.rows import broadcast_contiguous, run_lines
from minigrad.backends.taichi.kernels.shape import as_contiguous
from minigrad.backends.taichi.runtime.array import TAICHI, empty
from minigrad.core.dispatch import kernel

__all__: list[str] = []


def _scan(name: str, initial: int, update: str, dtype: Any, reverse: bool, operands: dict[str, Any], dim: int) -> Any:
    """Scan each line along `dim`. `update` is an expression that combines the carry ``s`` with the elements of
    `operands` at ``m``."""
    a = next(iter(operands.values()))
    kind = "f64" if dtype.kind == "f" else "i64"
    y = empty(a.shape, dtype)
    body = (
        f"s = ti.cast({initial}, ti.{kind})\nfor k in range(n):\n"
        f"    m = offset + {'(n - 1 - k)' if reverse else 'k'} * step\n"
        f"    s = {update}\n    y_[m] = ti.cast(s, ti.{source.TAICHI_NAMES[dtype.name]})\n"
    )
    run_lines(f"{name}_reverse" if reverse else name, body, a.shape, dim, y, operands)
    return y


@kernel("cumsum", TAICHI)
def cumsum(a: Any, *, dim: int, reverse: bool) -> Any:
    return _scan("cumsum", 0, "s + a_[m]", np.dtype(sum_dtype(a)), reverse, {"a": as_contiguous(a)}, dim)


@kernel("cumprod", TAICHI)
def cumprod(a: Any, *, dim: int, reverse: bool) -> Any:
    return _scan("cumprod", 1, "s * a_[m]", np.dtype(sum_dtype(a)), reverse, {"a": as_contiguous(a)}, dim)


@kernel("recur", TAICHI)
def recur(a: Any, b: Any, *, dim: int, reverse: bool) -> Any:
    arrays = {"b": as_contiguous(b), "a": broadcast_contiguous(a, b.shape)}
    # The initial carry is 0, but its product with an infinite factor would be NaN.
    update = "b_[m] + ti.select(k == 0, s, a_[m] * s)"
    return _scan("recur", 0, update, b.dtype, reverse, arrays, dim)
