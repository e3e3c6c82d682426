"""Attention, composed of matmuls, reductions and snippets. A fully masked row has weights of 0."""

from __future__ import annotations

from typing import Any

from minigrad.backends.taichi.codegen import wide
from minigrad.backends.taichi.kernels import wide_lines
from minigrad.backends.taichi.kernels.elementwise import arange, computed, pointer
from minigrad.backends.taichi.kernels.matmul import matmul
from minigrad.backends.taichi.kernels.reduce import sum_to
from minigrad.backends.taichi.kernels.reduction import reduced
from minigrad.backends.taichi.runtime.array import DEVICE
from minigrad.backends.taichi.runtime.caches import cached
from minigrad.backends.taichi.runtime.kernel import compiled
from minigrad.core.dispatch import kernel, kernels_of

__all__: list[str] = []


def _dropped(x: Any, p: float, seed: int) -> Any:
    return kernels_of("dropout")[DEVICE](x, p=p, key=seed) if p else x


# In-place softmax of one row of scores, `n` vectors, at a time. Row r of causal attention reads only its first r + 1
# scores.
_MOST = wide.JOINS["max"]
_WEIGHTS = f"""        at = i * n
        seen = {{seen}}
        last = (seen - 1) // 16
        high = ti.cast(seen - last * 16, ti.f32)
        lanes = ti.Vector([ti.cast(j, ti.f32) for j in range(16)])
        none = lanes * 0.0
        nothing = {_MOST.nothing}
{_MOST.lines(_MOST.start, 8)}        for k in range(last):
            x = y_[at + k]
{_MOST.lines(_MOST.add, 12)}        x = ti.select(lanes < high, y_[at + last], nothing)
{_MOST.lines(_MOST.add + chr(10) + _MOST.ready + chr(10) + _MOST.end, 8)}        top = ti.select(s == -inf, 0, s)
        added = ti.Vector([ti.cast(0, ti.f64) for j in range(16)])
        for k in range(last + 1):
            x = exp16(y_[at + k] - top)
            x = ti.select((lanes < high) | (k < last), x, none)
            y_[at + k] = x
            added = added + ti.Vector([ti.cast(x[j], ti.f64) for j in range(16)])
        total = added.sum()
        share = ti.cast(1 / ti.select(total == 0, 1, total), ti.f32)
        for k in range(last + 1):
            y_[at + k] = y_[at + k] * share
        for k in range(last + 1, n):
            y_[at + k] = none
"""


@cached()
def _weighing(is_causal: bool, serial: bool) -> Any:
    body = _WEIGHTS.replace("{seen}", "ti.min(i % length + 1, n * 16)" if is_causal else "n * 16")
    arguments = [("y_", wide.VECTOR), *[(x, "ti.i32") for x in ("lines", "length", "n")]]
    return compiled("weights_of_rows", *wide.text_of("weights_of_rows", arguments, "lines", body, serial))


def _weighed(scores: Any, is_causal: bool, mask: Any) -> Any:
    """Return the softmax of the scores, computed in place where possible; 0 in rows that are all -inf."""
    length, n = scores.shape[-2:]
    if mask is None and scores.size and n % 16 == 0 and scores.flags.c_contiguous and wide_lines.aligned(scores):
        made = _weighing(is_causal, scores.size <= wide_lines.SERIAL_ROWS)
        made.launch(pointer(scores), scores.size // n, length, n // 16)
        return scores
    if is_causal:
        scores = computed(
            "causal", "ti.select(b >= c, a, -inf)", (scores, arange(length)[:, None], arange(n)), scores.dtype
        )
    elif mask is not None:
        snippet = "a + b" if mask.dtype.kind == "f" else "ti.select(b != 0, a, -inf)"
        scores = computed("masked", snippet, (scores, mask), scores.dtype)
    last, dtype = (scores.ndim - 1,), scores.dtype
    top = reduced("top_score", "max", "a", (scores,), last, True, dtype, "ti.select(s == -inf, 0, s)")
    weights = computed("exp_below_top", "ti.exp(a - b)", (scores, top), dtype, scores)
    summed = reduced("sum_of_weights", "sum", "a", (weights,), last, True, dtype, "ti.select(s == 0, 1, s)")
    return computed("weights", "a / b", (weights, summed), dtype, weights)


@kernel("scaled_dot_product_attention", DEVICE)
def attention(
    query: Any, key: Any, value: Any, mask: Any, *, is_causal: bool, scale: float, p: float, seed: int
) -> tuple[Any, Any]:
    scores = matmul(
        computed("scaled", "a * scale", (query,), query.dtype, attrs={"scale": scale}), key.swapaxes(-1, -2)
    )
    weights = _weighed(scores, is_causal, mask)
    return matmul(_dropped(weights, p, seed), value), weights


@kernel("attention_backward", DEVICE)
def attention_backward(
    u: Any, query: Any, key: Any, value: Any, weights: Any, *, scale: float, p: float, seed: int
) -> tuple[Any, ...]:
    by_weights = _dropped(matmul(u, value.swapaxes(-1, -2)), p, seed)
    if by_weights.shape != weights.shape:  # value has batch dimensions that query and key lack
        by_weights = sum_to(by_weights, shape=weights.shape)
    scores = kernels_of("softmax_backward")[DEVICE](by_weights, weights, dim=weights.ndim - 1)
    found = matmul(scores, key), matmul(scores.swapaxes(-1, -2), query)
    by_query, by_key = (computed("scaled", "a * scale", (x,), x.dtype, x, {"scale": scale}) for x in found)
    return by_query, by_key, matmul(_dropped(weights, p, seed).swapaxes(-1, -2), u), scores
