"""Normalisation and dropout kernels. The attribute `norm` contains the shape of the view and the reduced dimensions."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from minigrad.backends.taichi.codegen import simd, source
from minigrad.backends.taichi.kernels import channel_norms, simd_lines
from minigrad.backends.taichi.kernels.elementwise import array_argument, evaluate, full, param_of
from minigrad.backends.taichi.kernels.reduction import reduce_snippet
from minigrad.backends.taichi.kernels.rows import broadcast_contiguous
from minigrad.backends.taichi.kernels.shape import as_contiguous, reshape
from minigrad.backends.taichi.runtime.array import TAICHI, current_target, empty, reshape_owned
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.core.dispatch import kernel

__all__: list[str] = []


def _mean_over_norm(
    name: str, snippet: str, inputs: tuple[Any, ...], norm: Any, combine: str = "sum", dtype: Any = None
) -> Any:
    """Return the mean of the expression `snippet` over the normalised dimensions, with keepdim. If `combine` is
    "squares", return the mean of its squares."""
    count = {"n": float(prod([norm.shape[k] for k in norm.dim]))}
    return _sum_over_dims(name, snippet, inputs, norm.dim, norm, "s / n", count, combine, dtype)


def _sum_over_dims(
    name: str,
    snippet: str,
    inputs: tuple[Any, ...],
    dims: tuple[int, ...],
    norm: Any,
    epilogue: str,
    scalars: Any,
    combine: str = "sum",
    dtype: Any = None,
) -> Any:
    """Sum the expression `snippet` over `dims`, with keepdim. If the last dimension is long, it is summed first.

    Each row of the first sum is then contiguous, and arrays of smaller shape contribute one element per row.
    """
    dtype, last = dtype or _common_dtype(*inputs), len(norm.shape) - 1
    if len(dims) > 1 and last in dims and norm.shape[last] >= simd.MIN_ROW_LENGTH:
        shape = (*norm.shape[:-1], 1)
        inputs = tuple([x if x.shape == norm.shape else broadcast_contiguous(x, shape) for x in inputs])
        inputs = (reduce_snippet(f"{name}_last_dim", combine, snippet, inputs, (last,), True, np.float64),)
        snippet, combine, dims = "a", "sum", tuple([k for k in dims if k != last])
    return reduce_snippet(name, combine, snippet, inputs, dims, True, dtype, epilogue, scalars)


def _common_dtype(*arrays: Any) -> Any:
    types = [x.dtype for x in arrays if x is not None]
    return types[0] if all(dtype is types[0] for dtype in types) else np.result_type(*types)


def _evaluate(name: str, snippet: str, inputs: list[Any], shape: tuple[int, ...]) -> Any:
    """Evaluate the expression `snippet` on `inputs`, broadcast to `shape`."""
    y = empty(shape, _common_dtype(*inputs))
    return y if simd_lines.evaluate_broadcast(name, snippet, inputs, y) else evaluate(name, snippet, inputs, y.dtype, y)


def _reshape_parameter(weight: Any, norm: Any) -> Any:
    return reshape(weight, shape=tuple(size if k in norm.along else 1 for k, size in enumerate(norm.shape)))


def _normalise(a: Any, weight: Any, bias: Any, norm: Any) -> tuple[Any, Any, Any, Any]:
    """Return the output, mean, variance and reciprocal standard deviation. The last three are reduced with keepdim."""
    x = reshape(a, shape=norm.shape)
    mean = _mean_over_norm("mean", "a", (x,), norm) if norm.centred else full((), a.dtype)
    name, snippet, inputs = ("variance", "a - b", (x, mean)) if norm.centred else ("mean_square", "a", (x,))
    var = _mean_over_norm(
        name, snippet, inputs, norm, "squares", a.dtype if current_target().lacks_float64 else np.float64
    )
    rstd = evaluate("rstd", "1.0 / ti.sqrt(a + eps)", (var,), a.dtype, attrs={"eps": float(norm.eps)})
    result, operands = "(a - b) * c", [x, mean, rstd]
    for parameter, sign in ((weight, "*"), (bias, "+")):
        if parameter is not None:
            result += f" {sign} {source.LETTERS[len(operands)]}"
            operands.append(_reshape_parameter(parameter, norm))
    return _evaluate("normalize", result, operands, norm.shape).reshape(a.shape), mean, var, rstd


# One kernel normalises rows whose length is a multiple of 16. Three passes over a row, which stays in the cache,
# compute its mean, variance and output.
_SUM_LOOP = """        sums = ti.Vector([ti.cast(0, ti.f64) for j in range(16)])
        for k in range(n):
            x = {x}
            sums = sums + ti.Vector([{term} for j in range(16)])
"""
_AS_FLOAT64 = "ti.cast(x[j], ti.f64)"
_MEAN = _SUM_LOOP.format(x="a_[i * n + k]", term=_AS_FLOAT64)
_MEAN += "        mean = ti.cast(sums.sum() / count, ti.f32)\n        mean_[i] = mean\n"
_ROW = """        rstd = ti.cast(1.0 / ti.sqrt(sums.sum() / count + eps), ti.f32)
        rstd_[i] = rstd
        for k in range(n):
            y_[i * n + k] = {result}
"""


@arch_cache()
def _row_norm_kernel(centred: bool, param_names: tuple[str, ...], serial: bool) -> Any:
    x = "(a_[i * n + k] - mean)" if centred else "a_[i * n + k]"
    result = f"{x} * rstd" + " * weight_[k]" * ("weight" in param_names) + " + bias_[k]" * ("bias" in param_names)
    body = (
        (_MEAN if centred else "")
        + _SUM_LOOP.format(x=x, term=f"{_AS_FLOAT64} * {_AS_FLOAT64}")
        + _ROW.format(result=result)
    )
    arguments = [("y_", simd.VECTOR), ("a_", simd.VECTOR), ("rstd_", simd.NUMBER)]
    arguments += [("mean_", simd.NUMBER)] if centred else []
    arguments += [(f"{x}_", simd.VECTOR) for x in param_names] + [("count", "ti.f64"), ("eps", "ti.f64")]
    code = simd.kernel_source(
        "normalize_rows", [*arguments, ("lines", "ti.i32"), ("n", "ti.i32")], "lines", body, serial
    )
    return get_kernel("normalize_rows", *code)


def _normalise_rows(a: Any, parameters: dict[str, Any], norm: Any) -> tuple[Any, Any, Any] | None:
    """Normalise contiguous rows whose length is a multiple of 16. Return the output, mean and reciprocal standard
    deviation, or None for any other layout."""
    n, last = norm.shape[-1], len(norm.shape) - 1
    fits_vectors = norm.dim == norm.along == (last,) and a.size and n % 16 == 0
    if not fits_vectors or not all(
        simd_lines.is_vector_aligned(x) and x.flags.c_contiguous for x in (a, *parameters.values())
    ):
        return None
    y, shape = empty(a.shape, a.dtype), (*norm.shape[:-1], 1)
    rstd, mean = empty(shape, a.dtype), empty(shape, a.dtype) if norm.centred else full((), a.dtype)
    arrays = (y, a, rstd, *([mean] if norm.centred else []), *parameters.values())
    compiled_kernel = _row_norm_kernel(norm.centred, tuple(parameters), a.size <= simd_lines.MAX_SERIAL)
    compiled_kernel.launch(*map(array_argument, arrays), float(n), norm.eps, a.size // n, n // 16)
    return y, mean, rstd


_ROW_BACKWARD = """        mean = {mean}
        rstd = rstd_[i]
        dots = ti.Vector([ti.cast(0, ti.f64) for j in range(16)])
        sums = ti.Vector([ti.cast(0, ti.f64) for j in range(16)])
        for k in range(n):
            h = u_[i * n + k]{weighted}
            x = h * ((a_[i * n + k] - mean) * rstd)
            dots = dots + ti.Vector([ti.cast(x[j], ti.f64) for j in range(16)])
            sums = sums + ti.Vector([ti.cast(h[j], ti.f64) for j in range(16)])
        dot = ti.cast(dots.sum() / count, ti.f32)
        mean_grad = ti.cast(sums.sum() / count, ti.f32)
        for k in range(n):
            h = u_[i * n + k]{weighted}
            y_[i * n + k] = (h - (a_[i * n + k] - mean) * rstd * dot{centred}) * rstd
"""


@arch_cache()
def _row_backward_kernel(centred: bool, weighted: bool, serial: bool) -> Any:
    body = _ROW_BACKWARD.format(
        mean="mean_[i]" if centred else "0.0",
        weighted=" * weight_[k]" if weighted else "",
        centred=" - mean_grad" if centred else "",
    )
    arguments = [("y_", simd.VECTOR), ("u_", simd.VECTOR), ("a_", simd.VECTOR), ("rstd_", simd.NUMBER)]
    arguments += [("mean_", simd.NUMBER)] * centred + [("weight_", simd.VECTOR)] * weighted
    arguments += [("count", "ti.f64"), ("lines", "ti.i32"), ("n", "ti.i32")]
    name = "normalize_rows_backward"
    return get_kernel(name, *simd.kernel_source(name, arguments, "lines", body, serial))


def _normalise_rows_backward(u: Any, a: Any, weight: Any, mean: Any, rstd: Any, norm: Any) -> Any:
    """Return the gradient for the input of `_normalise_rows`, or None for any other layout."""
    n, last = norm.shape[-1], len(norm.shape) - 1
    vectors = (u, a) if weight is None else (u, a, weight)
    rows = (rstd, mean) if norm.centred else (rstd,)
    if norm.dim != (last,) or norm.along != (last,) or not a.size or n % 16:
        return None
    if not all(simd_lines.is_vector_aligned(x) and x.flags.c_contiguous for x in vectors):
        return None
    if not all(x.dtype == a.dtype and x.flags.c_contiguous for x in rows):
        return None
    y = empty(a.shape, a.dtype)
    arrays = (y, u, a, *rows, *([] if weight is None else [weight]))
    compiled_kernel = _row_backward_kernel(norm.centred, weight is not None, a.size <= simd_lines.MAX_SERIAL)
    compiled_kernel.launch(*map(array_argument, arrays), float(n), a.size // n, n // 16)
    return y


@kernel("layer_norm", TAICHI)
@kernel("group_norm", TAICHI)
@kernel("rms_norm", TAICHI)
def norm(a: Any, weight: Any, bias: Any = None, *, norm: Any) -> tuple[Any, Any, Any]:
    row_result = _normalise_rows(a, {k: x for k, x in (("weight", weight), ("bias", bias)) if x is not None}, norm)
    if row_result is not None:
        return row_result
    y, mean, _, rstd = _normalise(a, weight, bias, norm)
    return y, mean, rstd


@kernel("batch_norm", TAICHI)
@kernel("instance_norm", TAICHI)
def norm_with_statistics(a: Any, weight: Any, bias: Any, *, norm: Any) -> tuple[Any, ...]:
    result = channel_norms.normalise_channels(a, weight, bias, norm)
    if result is not None:
        y, mean, var, rstd = result
        return y, mean, var, mean, rstd
    y, mean, var, rstd = _normalise(a, weight, bias, norm)
    return y, mean, evaluate("as_type", "a", (var,), a.dtype), mean, rstd


@kernel("norm_backward", TAICHI)
def norm_backward(u: Any, a: Any, weight: Any, mean: Any, rstd: Any, *, norm: Any) -> Any:
    y = channel_norms.normalise_channels_backward(u, a, weight, mean, rstd, norm)
    if y is None:
        y = _normalise_rows_backward(u, a, weight, mean, rstd, norm)
    return _norm_backward(u, a, weight, mean, rstd, norm) if y is None else y


def _norm_backward(u: Any, a: Any, weight: Any, mean: Any, rstd: Any, norm: Any) -> Any:
    x, weighted_grad = reshape(a, shape=norm.shape), reshape(u, shape=norm.shape)
    if weight is not None:
        weighted_grad = _evaluate(
            "weighted_grad", "a * b", [weighted_grad, _reshape_parameter(weight, norm)], norm.shape
        )
    inputs = [
        weighted_grad,
        x,
        mean,
        rstd,
        _mean_over_norm("norm_backward_dot", "a * ((b - c) * d)", (weighted_grad, x, mean, rstd), norm),
    ]
    snippet = "(a - (b - c) * d * e) * d"
    if norm.centred:
        inputs.append(_mean_over_norm("norm_backward_mean", "a", (weighted_grad,), norm))
        snippet = "(a - (b - c) * d * e - f) * d"
    return _evaluate("norm_backward", snippet, inputs, norm.shape).reshape(a.shape)


@kernel("norm_weight", TAICHI)
def norm_weight(u: Any, a: Any, mean: Any, rstd: Any, *, to: tuple[int, ...], norm: Any) -> Any:
    y = channel_norms.sum_to_channels(u, a, mean, rstd, to, norm)
    if y is not None:
        return y
    inputs = (reshape(u, shape=norm.shape), reshape(a, shape=norm.shape), mean, rstd)
    rest = tuple(k for k in range(len(norm.shape)) if k not in norm.along)
    return reshape_owned(_sum_over_dims("norm_weight", "a * ((b - c) * d)", inputs, rest, norm, "s", {}), to)


# One Philox4x32-10 block supplies the random words of four elements, as in `minigrad.backends.numpy.random`.
_ROUNDS = 10
_DROPOUT = f"""        w0, w1, w2, w3 = ti.u64(i), ti.u64(0), ti.u64(0), ti.u64(0)
        k0, k1 = ti.u64(low), ti.u64(high)
        for _ in ti.static(range({_ROUNDS})):
            p0 = w0 * ti.u64(0xD2511F53)
            p1 = w2 * ti.u64(0xCD9E8D57)
            w0, w1, w2, w3 = (p1 >> 32) ^ w1 ^ k0, p1 & mask, (p0 >> 32) ^ w3 ^ k1, p0 & mask
            k0, k1 = (k0 + ti.u64(0x9E3779B9)) & mask, (k1 + ti.u64(0xBB67AE85)) & mask
"""
_MASKED_STORE = """        if 4 * i + {k} < n:
            kept = ti.cast(w{k} >> 8, ti.f32) * ti.f32(5.9604644775390625e-08) >= ti.cast(p, ti.f32)
            y_[4 * i + {k}] = ti.select(kept, a_[4 * i + {k}] / (1 - p), 0)
"""


@kernel("dropout", TAICHI)
def dropout(a: Any, *, p: float, key: int) -> Any:
    y, compute_dtype = empty(a.shape, a.dtype), a.dtype.name
    if not a.size:
        return y
    arguments = {"a": as_contiguous(a), "p": float(p), "low": key & 0xFFFFFFFF, "high": key >> 32}
    params = [param_of(name, x, compute_dtype) for name, x in arguments.items()]
    body = (
        "        mask = ti.u64(0xFFFFFFFF)\n"
        + _DROPOUT
        + "".join(_MASKED_STORE.replace("{k}", str(k)) for k in range(4))
    )
    code = source.wrap_kernel(
        "dropout", params, compute_dtype, compute_dtype, ["n"], "(n + 3) // 4", body, a.size <= source.SERIAL_LIMIT
    )
    get_kernel("dropout", *code)(
        array_argument(y), array_argument(arguments["a"]), p, arguments["low"], arguments["high"], a.size
    )
    return y
