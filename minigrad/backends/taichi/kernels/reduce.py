"""Reduction kernels: sums, means, extrema and norms. Each consists of a snippet, a combiner and an epilogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod as product
from typing import Any

import numpy as np

from minigrad.backends.numpy.reduce import sum_dtype
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.kernels.elementwise import evaluate
from minigrad.backends.taichi.kernels.reduction import reduce_snippet
from minigrad.backends.taichi.runtime.array import TAICHI, CpuArray, current_recorder, current_target, reshape_owned
from minigrad.core.dispatch import kernel

__all__ = ["sum_to"]


@kernel("sum", TAICHI)
def sum(a: Any, *, dim: Sequence[int], keepdim: bool) -> Any:
    return reduce_snippet("sum", "sum", "a", (a,), dim, keepdim, sum_dtype(a))


@kernel("sum_to", TAICHI)
def sum_to(a: Any, *, shape: tuple[int, ...]) -> Any:
    extra = a.ndim - len(shape)
    dims = tuple(k for k in range(a.ndim) if k < extra or (shape[k - extra] == 1 and a.shape[k] != 1))
    return reshape_owned(reduce_snippet("sum", "sum", "a", (a,), dims, True, sum_dtype(a)), shape)


@kernel("mean", TAICHI)
def mean(a: Any, *, dim: Sequence[int], keepdim: bool) -> Any:
    n = float(product(a.shape[k] for k in dim))
    return reduce_snippet("mean", "sum", "a", (a,), dim, keepdim, a.dtype, "s / n", {"n": n})


@kernel("var", TAICHI)
def var(a: Any, *, dim: Sequence[int], correction: float, keepdim: bool, epilogue: str = "s / dof") -> Any:
    count = product(a.shape[k] for k in dim)
    scalars, takes_root = {"dof": float(max(count - correction, 0))}, "sqrt" in epilogue
    # The standard deviation may be representable even if the variance overflows or underflows.
    combine_and_snippet = ("squares", "a - b") if takes_root else ("sum", "(a - b) * (a - b)")
    if a.dtype == np.float64 or current_target().lacks_float64 or count <= 1:
        inputs = (a, mean(a, dim=dim, keepdim=True))
        if takes_root and not current_target().lacks_float64:
            return _scaled_norm("std", "a - b", inputs, 2.0, dim, keepdim, "ti.sqrt(s / dof)", scalars)
        return reduce_snippet("var", *combine_and_snippet, inputs, dim, keepdim, a.dtype, epilogue, scalars)
    # Compute the mean relative to the first element, and subtract its rounding error from the squares.
    first = evaluate(
        "var_reference", "a", (a[tuple([slice(1 if k in dim else None) for k in range(a.ndim)])],), a.dtype
    )
    relative_mean = reduce_snippet(
        "var_relative_mean", "sum", "a - b", (a, first), dim, True, np.float64, "s / n", {"n": float(count)}
    )
    rounded_mean = evaluate("var_mean", "a + b", (relative_mean, first), a.dtype)
    squares = reduce_snippet("var_squares", *combine_and_snippet, (a, rounded_mean), dim, True, np.float64)
    epilogue = epilogue.replace("s /", "(a - count * ((b + d - c) * (b + d - c))) /")
    attrs = {"count": float(count), **scalars}
    out = evaluate("var", epilogue, (squares, relative_mean, rounded_mean, first), a.dtype, attrs=attrs)
    return out if keepdim else out.reshape([m for k, m in enumerate(a.shape) if k not in dim])


@kernel("std", TAICHI)
def std(a: Any, *, dim: Sequence[int], correction: float, keepdim: bool) -> Any:
    return var(a, dim=dim, correction=correction, keepdim=keepdim, epilogue="ti.sqrt(s / dof)")


@kernel("logsumexp", TAICHI)
def logsumexp(a: Any, *, dim: Sequence[int], keepdim: bool) -> Any:
    top = reduce_snippet(
        "max_finite", "max", "a", (a,), dim, True, a.dtype, "ti.select((s == inf) | (s == -inf), 0, s)"
    )
    summed = reduce_snippet("sum_exp", "sum", "ti.exp(a - b)", (a, top), dim, True, a.dtype)
    out = evaluate("log_sum_exp", "ti.log(a) + b", (summed, top), a.dtype)
    return out if keepdim else out.reshape([n for k, n in enumerate(a.shape) if k not in dim])


@kernel("norm", TAICHI)
def norm(a: Any, *, p: float, dim: Sequence[int], keepdim: bool) -> Any:
    if p == 0:
        return reduce_snippet("norm0", "sum", "ti.f64((a == 0) == 0)", (a,), dim, keepdim, a.dtype)
    if p == 2 and a.dtype == np.float32:
        return reduce_snippet("norm2", "squares", "a", (a,), dim, keepdim, a.dtype, "ti.sqrt(s)")
    return _scaled_norm(
        "norm", "a", (a,), p, dim, keepdim, "ti.sqrt(s)" if p == 2 else "ti.pow(s, 1 / p)", {"p": float(p)}
    )


def _scaled_norm(
    name: str, snippet: str, inputs: tuple[Any, ...], p: float, dim: Sequence[int], keepdim: bool, root: str,
    attrs: Mapping[str, float],
) -> Any:  # fmt: skip
    """Return `root` of s, the sum of the p-th powers of a snippet, without overflow or underflow.

    Elements are divided by the maximum, or by the minimum for p < 0, if its powers are out of range; otherwise by 1,
    which adds no rounding error. The division is skipped if the result is in host memory and within range.
    """
    dtype = inputs[0].dtype
    magnitude, bound = f"ti.abs({snippet})", 2.0 ** ((900 if dtype.itemsize == 8 else 100) / max(abs(p), 1))

    def sum_powers(
        expression: str, operands: tuple[Any, ...], keepdim: bool, epilogue: str, scalars: Mapping[str, float]
    ) -> Any:
        if p == 2:
            return reduce_snippet(name, "squares", expression, operands, dim, keepdim, dtype, epilogue, scalars)
        powers = evaluate("power", f"ti.pow(ti.abs({expression}), p)", operands, dtype, attrs={"p": float(p)})
        return reduce_snippet(name, "sum", "a", (powers,), dim, keepdim, dtype, epilogue, scalars)

    if current_recorder() is None and issubclass(current_target().array, CpuArray):
        result = sum_powers(snippet, inputs, keepdim, root, attrs)
        values = result.view(np.ndarray)
        if ((values > 1 / bound) & (values < bound)).all():
            return result
    scale_snippet = "ti.select((s > 0) & (s < inf) & ((s > bound) | (s * bound < 1)), s, 1)"
    divisor = reduce_snippet(
        f"{name}_scale", "max" if p > 0 else "min", magnitude, inputs, dim, True, dtype, scale_snippet, {"bound": bound}
    )
    scaled = sum_powers(f"({snippet}) / {source.LETTERS[len(inputs)]}", (*inputs, divisor), True, root, attrs)
    out = evaluate(f"{name}_rescale", "a * b", (scaled, divisor), dtype)
    return out if keepdim else out.reshape([m for k, m in enumerate(inputs[0].shape) if k not in dim])


for _name, _combine in (("amax", "max"), ("amin", "min")):

    def _extremum_kernel(
        a: Any, *, dim: Sequence[int], keepdim: bool, name: str = _name, combine: str = _combine
    ) -> Any:
        return reduce_snippet(name, combine, "a", (a,), dim, keepdim, a.dtype)

    kernel(_name, TAICHI)(_extremum_kernel)

for _name in ("any", "all"):

    def _logical_kernel(a: Any, *, dim: Sequence[int], keepdim: bool, op_name: str = _name) -> Any:
        return reduce_snippet(op_name, op_name, "a", (a,), dim, keepdim, np.uint8 if a.dtype == np.uint8 else np.bool_)

    kernel(_name, TAICHI)(_logical_kernel)


@kernel("prod", TAICHI)
def prod(a: Any, *, dim: int, keepdim: bool) -> Any:
    return reduce_snippet("prod", "prod", "a", (a,), (dim,), keepdim, sum_dtype(a))
