"""Scans along a dimension: cumulative sums and products, and linear recurrences."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.backends.numpy.reduce import total
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.kernels.rows import along, stretched_to
from minigrad.backends.taichi.kernels.shape import in_rows
from minigrad.backends.taichi.runtime.array import DEVICE, empty
from minigrad.core.dispatch import kernel

__all__: list[str] = []


def _running(name: str, start: int, update: str, dtype: Any, reverse: bool, others: dict[str, Any], dim: int) -> Any:
    """Scan each line along `dim`: `update` combines the carry s with element m of the others."""
    a = next(iter(others.values()))
    kind = "f64" if dtype.kind == "f" else "i64"
    y = empty(a.shape, dtype)
    body = (
        f"s = ti.cast({start}, ti.{kind})\nfor k in range(n):\n"
        f"    m = at + {'(n - 1 - k)' if reverse else 'k'} * step\n"
        f"    s = {update}\n    y_[m] = ti.cast(s, ti.{source.TI[dtype.name]})\n"
    )
    along(f"{name}_reverse" if reverse else name, body, a.shape, dim, y, others)
    return y


@kernel("cumsum", DEVICE)
def cumsum(a: Any, *, dim: int, reverse: bool) -> Any:
    return _running("cumsum", 0, "s + a_[m]", np.dtype(total(a)), reverse, {"a": in_rows(a)}, dim)


@kernel("cumprod", DEVICE)
def cumprod(a: Any, *, dim: int, reverse: bool) -> Any:
    return _running("cumprod", 1, "s * a_[m]", np.dtype(total(a)), reverse, {"a": in_rows(a)}, dim)


@kernel("recur", DEVICE)
def recur(a: Any, b: Any, *, dim: int, reverse: bool) -> Any:
    arrays = {"b": in_rows(b), "a": stretched_to(a, b.shape)}
    # the initial carry is 0, but 0 times an infinite factor is nan
    update = "b_[m] + ti.select(k == 0, s, a_[m] * s)"
    return _running("recur", 0, update, b.dtype, reverse, arrays, dim)
