"""Attention, composed of matmuls, reductions and snippets. The weights of a fully masked row are 0."""

from __future__ import annotations

from typing import Any

from minigrad.backends.taichi.codegen import simd
from minigrad.backends.taichi.kernels import simd_lines
from minigrad.backends.taichi.kernels.elementwise import arange, array_argument, evaluate
from minigrad.backends.taichi.kernels.matmul import matmul
from minigrad.backends.taichi.kernels.reduce import sum_to
from minigrad.backends.taichi.kernels.reduction import reduce_snippet
from minigrad.backends.taichi.runtime.array import TAICHI
from minigrad.backends.taichi.runtime.caches import arch_cache
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.core.dispatch import get_kernels, kernel

__all__: list[str] = []


def _dropout(x: Any, p: float, seed: int) -> Any:
    return get_kernels("dropout")[TAICHI](x, p=p, key=seed) if p else x


# In-place softmax of one row of scores, `n` vectors, at a time. Row r of causal attention reads only its first r + 1
# scores.
_MAX = simd.REDUCTIONS["max"]
_WEIGHTS = f"""        offset = i * n
        visible = {{visible}}
        last = (visible - 1) // 16
        high = ti.cast(visible - last * 16, ti.f32)
        lanes = ti.Vector([ti.cast(j, ti.f32) for j in range(16)])
        zeros = lanes * 0.0
        identity = {_MAX.identity}
{_MAX.lines(_MAX.start, 8)}        for k in range(last):
            x = y_[offset + k]
{_MAX.lines(_MAX.add, 12)}        x = ti.select(lanes < high, y_[offset + last], identity)
{_MAX.lines(_MAX.add + chr(10) + _MAX.finish + chr(10) + _MAX.reduce_lanes, 8)}\
        row_max = ti.select(s == -inf, 0, s)
        sums_exp = ti.Vector([ti.cast(0, ti.f64) for j in range(16)])
        for k in range(last + 1):
            x = exp16(y_[offset + k] - row_max)
            x = ti.select((lanes < high) | (k < last), x, zeros)
            y_[offset + k] = x
            sums_exp = sums_exp + ti.Vector([ti.cast(x[j], ti.f64) for j in range(16)])
        sum_exp = sums_exp.sum()
        normalizer = ti.cast(1 / ti.select(sum_exp == 0, 1, sum_exp), ti.f32)
        for k in range(last + 1):
            y_[offset + k] = y_[offset + k] * normalizer
        for k in range(last + 1, n):
            y_[offset + k] = zeros
"""


@arch_cache()
def _softmax_kernel(is_causal: bool, serial: bool) -> Any:
    body = _WEIGHTS.replace("{visible}", "ti.min(i % length + 1, n * 16)" if is_causal else "n * 16")
    arguments = [("y_", simd.VECTOR), *[(x, "ti.i32") for x in ("lines", "length", "n")]]
    return get_kernel(
        "attention_softmax_rows", *simd.kernel_source("attention_softmax_rows", arguments, "lines", body, serial)
    )


def _masked_softmax(scores: Any, is_causal: bool, mask: Any) -> Any:
    """Return the softmax of the scores, computed in place where possible; 0 in rows that are all -inf."""
    length, n = scores.shape[-2:]
    if (
        mask is None
        and scores.size
        and n % 16 == 0
        and scores.flags.c_contiguous
        and simd_lines.is_vector_aligned(scores)
    ):
        compiled_kernel = _softmax_kernel(is_causal, scores.size <= simd_lines.MAX_SERIAL)
        compiled_kernel.launch(array_argument(scores), scores.size // n, length, n // 16)
        return scores
    if is_causal:
        scores = evaluate(
            "mask_causal", "ti.select(b >= c, a, -inf)", (scores, arange(length)[:, None], arange(n)), scores.dtype
        )
    elif mask is not None:
        snippet = "a + b" if mask.dtype.kind == "f" else "ti.select(b != 0, a, -inf)"
        scores = evaluate("mask_scores", snippet, (scores, mask), scores.dtype)
    last, dtype = (scores.ndim - 1,), scores.dtype
    top = reduce_snippet("max_score", "max", "a", (scores,), last, True, dtype, "ti.select(s == -inf, 0, s)")
    weights = evaluate("exp_shifted", "ti.exp(a - b)", (scores, top), dtype, scores)
    summed = reduce_snippet("sum_exp", "sum", "a", (weights,), last, True, dtype, "ti.select(s == 0, 1, s)")
    return evaluate("attention_weights", "a / b", (weights, summed), dtype, weights)


@kernel("scaled_dot_product_attention", TAICHI)
def attention(
    query: Any, key: Any, value: Any, mask: Any, *, is_causal: bool, scale: float, p: float, seed: int
) -> tuple[Any, Any]:
    scores = matmul(
        evaluate("scaled", "a * scale", (query,), query.dtype, attrs={"scale": scale}), key.swapaxes(-1, -2)
    )
    weights = _masked_softmax(scores, is_causal, mask)
    return matmul(_dropout(weights, p, seed), value), weights


@kernel("attention_backward", TAICHI)
def attention_backward(
    u: Any, query: Any, key: Any, value: Any, weights: Any, *, scale: float, p: float, seed: int
) -> tuple[Any, ...]:
    grad_weights = _dropout(matmul(u, value.swapaxes(-1, -2)), p, seed)
    if grad_weights.shape != weights.shape:  # value has batch dimensions that query and key lack
        grad_weights = sum_to(grad_weights, shape=weights.shape)
    grad_scores = get_kernels("softmax_backward")[TAICHI](grad_weights, weights, dim=weights.ndim - 1)
    scaled_gradients = matmul(grad_scores, key), matmul(grad_scores.swapaxes(-1, -2), query)
    grad_query, grad_key = (
        evaluate("scaled", "a * scale", (x,), x.dtype, x, {"scale": scale}) for x in scaled_gradients
    )
    return grad_query, grad_key, matmul(_dropout(weights, p, seed).swapaxes(-1, -2), u), grad_scores
