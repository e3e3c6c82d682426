"""Reduction kernels, sums, means, extrema and norms: each is a snippet, a combiner and an epilogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod as product
from typing import Any

import numpy as np

from minigrad.backends.numpy.reduce import total
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.kernels.elementwise import computed
from minigrad.backends.taichi.kernels.reduction import reduced
from minigrad.backends.taichi.runtime.array import DEVICE, CpuArray, current, recorder
from minigrad.core.dispatch import kernel

__all__ = ["sum_to"]


@kernel("sum", DEVICE)
def sum(a: Any, *, dim: Sequence[int], keepdim: bool) -> Any:
    return reduced("sum", "sum", "a", (a,), dim, keepdim, total(a))


@kernel("sum_to", DEVICE)
def sum_to(a: Any, *, shape: tuple[int, ...]) -> Any:
    extra = a.ndim - len(shape)
    dims = tuple(k for k in range(a.ndim) if k < extra or (shape[k - extra] == 1 and a.shape[k] != 1))
    return reduced("sum", "sum", "a", (a,), dims, True, total(a)).reshape(shape)


@kernel("mean", DEVICE)
def mean(a: Any, *, dim: Sequence[int], keepdim: bool) -> Any:
    n = float(product(a.shape[k] for k in dim))
    return reduced("mean", "sum", "a", (a,), dim, keepdim, a.dtype, "s / n", {"n": n})


@kernel("var", DEVICE)
def var(a: Any, *, dim: Sequence[int], correction: float, keepdim: bool, end: str = "s / freedom") -> Any:
    count = product(a.shape[k] for k in dim)
    given, rooted = {"freedom": float(max(count - correction, 0))}, "sqrt" in end
    how = (
        ("squares", "a - b") if rooted else ("sum", "(a - b) * (a - b)")
    )  # the root may be in range even if the square is not
    if a.dtype == np.float64 or current().narrow or count <= 1:
        inputs = (a, mean(a, dim=dim, keepdim=True))
        if rooted and not current().narrow:
            return _length("std", "a - b", inputs, 2.0, dim, keepdim, "ti.sqrt(s / freedom)", given)
        return reduced("var", *how, inputs, dim, keepdim, a.dtype, end, given)
    # Compute the mean relative to the first element, and subtract its rounding error from the squares.
    first = computed("first", "a", (a[tuple([slice(1 if k in dim else None) for k in range(a.ndim)])],), a.dtype)
    beside = reduced("beside", "sum", "a - b", (a, first), dim, True, np.float64, "s / n", {"n": float(count)})
    around = computed("around", "a + b", (beside, first), a.dtype)
    squares = reduced("squares", *how, (a, around), dim, True, np.float64)
    end = end.replace("s /", "(a - many * ((b + d - c) * (b + d - c))) /")
    attrs = {"many": float(count), **given}
    out = computed("var", end, (squares, beside, around, first), a.dtype, attrs=attrs)
    return out if keepdim else out.reshape([m for k, m in enumerate(a.shape) if k not in dim])


@kernel("std", DEVICE)
def std(a: Any, *, dim: Sequence[int], correction: float, keepdim: bool) -> Any:
    return var(a, dim=dim, correction=correction, keepdim=keepdim, end="ti.sqrt(s / freedom)")


@kernel("logsumexp", DEVICE)
def logsumexp(a: Any, *, dim: Sequence[int], keepdim: bool) -> Any:
    top = reduced("top", "max", "a", (a,), dim, True, a.dtype, "ti.select((s == inf) | (s == -inf), 0, s)")
    summed = reduced("sum_of_exp", "sum", "ti.exp(a - b)", (a, top), dim, True, a.dtype)
    out = computed("log_of_sum", "ti.log(a) + b", (summed, top), a.dtype)
    return out if keepdim else out.reshape([n for k, n in enumerate(a.shape) if k not in dim])


@kernel("norm", DEVICE)
def norm(a: Any, *, p: float, dim: Sequence[int], keepdim: bool) -> Any:
    if p == 0:
        return reduced("norm0", "sum", "ti.f64((a == 0) == 0)", (a,), dim, keepdim, a.dtype)
    if p == 2 and a.dtype == np.float32:
        return reduced("norm2", "squares", "a", (a,), dim, keepdim, a.dtype, "ti.sqrt(s)")
    return _length("norm", "a", (a,), p, dim, keepdim, "ti.sqrt(s)" if p == 2 else "ti.pow(s, 1 / p)", {"p": float(p)})


def _length(
    name: str, snippet: str, inputs: tuple[Any, ...], p: float, dim: Sequence[int], keepdim: bool, root: str,
    attrs: Mapping[str, float],
) -> Any:  # fmt: skip
    """Return `root` of s, the sum of the p-th powers of a snippet, without overflow or underflow.

    Divide by the maximum, or by the minimum for p < 0, if its powers are out of range; otherwise by 1, which adds no
    rounding. Skip this pass if the host can read the result and finds it in range.
    """
    dtype = inputs[0].dtype
    size, bound = f"ti.abs({snippet})", 2.0 ** ((900 if dtype.itemsize == 8 else 100) / max(abs(p), 1))

    def total(text: str, given: tuple[Any, ...], keepdim: bool, end: str, numbers: Mapping[str, float]) -> Any:
        if p == 2:
            return reduced(name, "squares", text, given, dim, keepdim, dtype, end, numbers)
        powers = computed("power", f"ti.pow(ti.abs({text}), p)", given, dtype, attrs={"p": float(p)})
        return reduced(name, "sum", "a", (powers,), dim, keepdim, dtype, end, numbers)

    if recorder() is None and issubclass(current().array, CpuArray):
        found = total(snippet, inputs, keepdim, root, attrs)
        seen = found.view(np.ndarray)
        if ((seen > 1 / bound) & (seen < bound)).all():
            return found
    far = "ti.select((s > 0) & (s < inf) & ((s > bound) | (s * bound < 1)), s, 1)"
    by = reduced(f"{name}_by", "max" if p > 0 else "min", size, inputs, dim, True, dtype, far, {"bound": bound})
    scaled = total(f"({snippet}) / {source.LETTERS[len(inputs)]}", (*inputs, by), True, root, attrs)
    out = computed(f"{name}_end", "a * b", (scaled, by), dtype)
    return out if keepdim else out.reshape([m for k, m in enumerate(inputs[0].shape) if k not in dim])


for _name, _join in (("amax", "max"), ("amin", "min")):

    def _extreme(a: Any, *, dim: Sequence[int], keepdim: bool, name: str = _name, join: str = _join) -> Any:
        return reduced(name, join, "a", (a,), dim, keepdim, a.dtype)

    kernel(_name, DEVICE)(_extreme)

for _name in ("any", "all"):

    def _truth(a: Any, *, dim: Sequence[int], keepdim: bool, name: str = _name) -> Any:
        return reduced(name, name, "a", (a,), dim, keepdim, np.uint8 if a.dtype == np.uint8 else np.bool_)

    kernel(_name, DEVICE)(_truth)


@kernel("prod", DEVICE)
def prod(a: Any, *, dim: int, keepdim: bool) -> Any:
    return reduced("prod", "prod", "a", (a,), (dim,), keepdim, total(a))
