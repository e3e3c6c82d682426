"""Loss kernels. Class scores are along dimension 1; the other dimensions are positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.backends.numpy.loss import REDUCTIONS
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.kernels import simd_lines
from minigrad.backends.taichi.kernels.elementwise import array_argument, evaluate, full
from minigrad.backends.taichi.kernels.reduction import reduce_snippet
from minigrad.backends.taichi.kernels.rows import ROW_MAX, broadcast_contiguous, drop_dim, run_lines, substitute_dtype
from minigrad.backends.taichi.kernels.shape import as_contiguous
from minigrad.backends.taichi.runtime.array import TAICHI, current_recorder, empty
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.deferred_checks import check_elements, check_index, check_slot, error_slot
from minigrad.backends.taichi.runtime.driver import check_serial_iterations
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.core.dispatch import get_kernels, kernel
from minigrad.core.errors import ShapeError

__all__: list[str] = []


MAX_SERIAL = 256  # maximum number of losses that one thread sums
_SUM_OF_EXP = """for k in range(n):
    s = s + ti.exp(a_[offset + k * step] - row_max)
"""
# An out-of-bounds class sets the error flag and is read as class 0. Racing writes of the flag store the same value.
_TARGET_BODY = """target = b_[i]
is_counted = (target == ignore) == 0
if target == ignore:
    target = target * 0
if (target < 0) | (target >= n):
    error_[0] = 1
    target = target * 0
targets_[i] = ti.cast(target, ti.i64)
weight_[i] = ti.select(is_counted, {weight}, 0)
y_[i] = ti.select(is_counted, ti.cast(log_sum + (shift - a_[offset + target * step]), {type}) * weight_[i], 0)
"""


def _class_loss(
    name: str, formula: str, a: Any, b: Any, c: Any, ignore_index: int, reduction: str, extra_arrays: dict[str, Any]
) -> tuple[Any, ...]:
    """Return the reduced loss, and the class and weight of each position. Raises ShapeError for an invalid class."""
    divides = REDUCTIONS[reduction]
    y, weights = empty(b.shape, a.dtype), empty(b.shape, a.dtype)
    classes = empty(b.shape, np.int64)
    error_args = ShapeError, name.removesuffix("_from_sums") + ": target is out of bounds"
    check_index(b, a.shape[1], *error_args, allowed=ignore_index)
    error_flag = error_slot(*error_args)
    others = {"weight": weights, "targets": classes, "error": error_flag, **extra_arrays, "a": a, "b": as_contiguous(b)}
    if c is not None:
        others["c"] = as_contiguous(c)
    body = formula + _TARGET_BODY.replace("{weight}", "1" if c is None else "c_[target]")
    run_lines(name, substitute_dtype(body, a.dtype), a.shape, 1, y, {**others, "ignore": ignore_index})
    check_slot(error_flag, *error_args)
    loss = y if divides is None else _reduce_losses(y, weights, others["b"], ignore_index, divides)
    return loss, classes, weights


def _constant_array(shape: tuple[int, ...], dtype: Any, value: float) -> Any:
    """Create a small constant array for a kernel, written by the host if possible."""
    if not source.VECTORIZED or current_recorder():
        return full(shape, dtype, value)
    out = empty(shape, dtype)
    out.view(np.ndarray).fill(value)
    return out


_SUM_BODY = """        s = ti.cast(0, ti.f64)
        total_weight = ti.cast(0, ti.f64)
        for k in range(n):
            s = s + a_[k]
            total_weight = total_weight + b_[k]
        y_[0] = ti.cast(s{weight}, {type})
"""
_NORMALISE_BODY = """        for k in range(n):
            b_[k] = ti.cast(ti.select(c_[k] == ignore, 0, b_[k] / total_weight), {type})
"""


@arch_cache()
def _sum_source(dtype: Any, target: str, mean: bool) -> tuple[str, str]:
    compute_dtype = dtype.name
    params = [
        source.KernelArgument("a", "a", compute_dtype),
        source.KernelArgument("a", "b", compute_dtype),
        source.KernelArgument("a", "c", target),
    ]
    body = substitute_dtype(
        _SUM_BODY.replace("{weight}", " / total_weight" if mean else "") + (_NORMALISE_BODY if mean else ""), dtype
    )
    params.append(source.KernelArgument("i", "ignore", "int64"))
    return source.wrap_kernel(
        "mean_loss" if mean else "sum_loss", params, compute_dtype, compute_dtype, ["n"], "1", body, True
    )


def _reduce_losses(losses: Any, weights: Any, classes: Any, ignore: int, mean: bool) -> Any:
    """Return the sum of the losses, or their mean, which also divides `weights` by the total weight.

    If the total weight is 0, the mean is nan, and so is `weights` at positions that are not ignored. Few losses are
    summed in one sequential loop; a GPU reduces many losses in parallel.
    """
    if not source.VECTORIZED and losses.size > MAX_SERIAL:
        total, total_weight = [
            reduce_snippet("sum_losses", "sum", "a", (x,), None, False, np.float64) for x in (losses, weights)
        ]
        if not mean:
            return evaluate("sum_loss", "a", (total,), losses.dtype)
        snippet, attrs = "ti.select(c == ignore, 0, a / b)", {"ignore": ignore}
        evaluate("normalize_loss_weights", snippet, (weights, total_weight, classes), weights.dtype, weights, attrs)
        return evaluate("mean_loss", "a / b", (total, total_weight), losses.dtype)
    y = empty((), losses.dtype)
    compiled_kernel = get_kernel("mean_loss" if mean else "sum_loss", *_sum_source(y.dtype, classes.dtype.name, mean))
    check_serial_iterations("losses", losses.size)
    compiled_kernel(
        array_argument(y), array_argument(losses), array_argument(weights), array_argument(classes), ignore, losses.size
    )
    return y


@kernel("cross_entropy", TAICHI)
def cross_entropy(a: Any, b: Any, c: Any, *, ignore_index: int, reduction: str) -> tuple[Any, ...]:
    a, kept_shape = as_contiguous(a), drop_dim(a.shape, 1, True)
    extra_arrays = {"row_max": empty(kept_shape, a.dtype), "sum_exp": empty(kept_shape, a.dtype)}
    name, formula = (
        "cross_entropy",
        f"{ROW_MAX}{_SUM_OF_EXP}row_max_[i] = row_max\nsum_exp_[i] = ti.cast(s, {{type}})\n",
    )
    if simd_lines.has_vector_rows(a, 1):
        simd_lines.row_max_and_sum(a, **extra_arrays)
        name, formula = "cross_entropy_from_sums", "row_max = row_max_[i]\ns = ti.cast(sum_exp_[i], ti.f64)\n"
    formula += "log_sum = ti.log(s)\nshift = row_max\n"
    outputs = _class_loss(name, formula, a, b, c, ignore_index, reduction, extra_arrays)
    return (*outputs, extra_arrays["row_max"], extra_arrays["sum_exp"])


@kernel("nll_loss", TAICHI)
def nll_loss(a: Any, b: Any, c: Any, *, ignore_index: int, reduction: str) -> tuple[Any, ...]:
    return _class_loss(
        "nll_loss", "log_sum = {type}(0.0)\nshift = log_sum\n", as_contiguous(a), b, c, ignore_index, reduction, {}
    )


_BACKWARD_BODY = """row_max = row_max_[i]
scale = grad_[i * grad_stride] * weight_[i * weight_stride]
factor = scale / sum_exp_[i]
for k in range(n):
    y_[offset + k * step] = ti.cast(ti.exp(a_[offset + k * step] - row_max) * factor, {type})
y_[offset + targets_[i] * step] = ti.cast(y_[offset + targets_[i] * step] - scale, {type})
"""
_TARGET_BACKWARD_BODY = """scale = grad_[i * grad_stride] * weight_[i * weight_stride]
y_[offset + targets_[i] * step] = ti.cast(y_[offset + targets_[i] * step] - scale, {type})
"""


@kernel("cross_entropy_backward", TAICHI)
def cross_entropy_backward(grad: Any, a: Any, classes: Any, weights: Any, top: Any, total: Any) -> Any:
    grad = grad if isinstance(grad, np.ndarray) else _constant_array((), weights.dtype, grad)
    y = empty(a.shape, np.result_type(a.dtype, grad.dtype, weights.dtype))
    grad, weights = (
        as_contiguous(x) if x.size == 1 else broadcast_contiguous(x, classes.shape) for x in (grad, weights)
    )
    others = {"grad": grad, "weight": weights, "targets": as_contiguous(classes)}
    scores = {"a": as_contiguous(a), "row_max": as_contiguous(top), "sum_exp": as_contiguous(total)}
    name, body = "cross_entropy_backward", _BACKWARD_BODY
    if simd_lines.has_vector_rows(scores["a"], 1) and all(map(simd_lines.is_vector_aligned, (y, top, total))):
        factor = evaluate("div", "a / b", (weights.reshape(-1, 1), total.reshape(-1, 1)), y.dtype)
        factor = evaluate("mul", "a * b", (grad.reshape(-1, 1), factor), y.dtype)
        row_arrays = {"m": scores["row_max"], "b": factor}
        simd_lines.run_rows(name, {"a": scores["a"]}, y, simd_lines.LineSpec("exp16(a - m) * b"), row_arrays)
        name, body, scores = f"{name}_target", _TARGET_BACKWARD_BODY, {}
    steps = {"grad_stride": int(grad.size > 1), "weight_stride": int(weights.size > 1)}
    run_lines(name, substitute_dtype(body, y.dtype), a.shape, 1, y, {**others, **scores, **steps})
    return y


_SOFT_BODY = """s = ti.log(s)
loss = ti.cast(0, ti.f64)
for k in range(n):
    loss = loss + b_[offset + k * step] * (s - (a_[offset + k * step] - row_max))
y_[i] = ti.cast(loss, {type})
"""


@kernel("soft_cross_entropy", TAICHI)
def soft_cross_entropy(a: Any, b: Any) -> Any:
    y = empty(drop_dim(a.shape, 1), np.result_type(a, b))
    body = substitute_dtype(ROW_MAX + _SUM_OF_EXP + _SOFT_BODY, y.dtype)
    run_lines("soft_cross_entropy", body, a.shape, 1, y, {"a": as_contiguous(a), "b": broadcast_contiguous(b, a.shape)})
    return y


@kernel("binary_cross_entropy", TAICHI)
def binary_cross_entropy(a: Any, b: Any) -> Any:
    outside = evaluate("out_of_range", "((a >= 0) & (a <= 1)) == 0", (a,), np.bool_)
    error_args = ValueError, "binary_cross_entropy: all elements of input should be between 0 and 1"
    check_elements(a, lambda numbers: ~((numbers >= 0) & (numbers <= 1)), *error_args)
    error_flag = error_slot(*error_args)
    any_outside = get_kernels("any")[TAICHI](outside, dim=None, keepdim=False)
    evaluate("set_error_flag", "ti.max(a, b)", (error_flag, any_outside), error_flag.dtype, error_flag)
    check_slot(error_flag, *error_args)
    snippet = "(b - 1) * ti.max(log1p(a * -1), -100.0) - b * ti.max(ti.log(a), -100.0)"
    return evaluate("binary_cross_entropy", snippet, (a, b), a.dtype)
