"""Attention, from products of matrices, reductions and snippets. A row that is masked as a whole has weights of 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.backends.taichi.array import DEVICE
from minigrad.backends.taichi.elementwise import arange, computed
from minigrad.backends.taichi.matmul import matmul
from minigrad.backends.taichi.reduce import reduced, sum_to
from minigrad.kernels import kernel, kernels_of

__all__: list[str] = []


def _dropped(x: Any, p: float, seed: int) -> Any:
    return kernels_of("dropout")[DEVICE](x, p=p, key=seed) if p else x


@kernel("scaled_dot_product_attention", DEVICE)
def attention(
    query: Any, key: Any, value: Any, mask: Any, *, is_causal: bool, scale: float, p: float, seed: int
) -> tuple[Any, Any]:
    scores = matmul(
        computed("scaled", "a * scale", (query,), query.dtype, attrs={"scale": scale}), key.swapaxes(-1, -2)
    )
    if is_causal:
        rows, columns = arange(scores.shape[-2])[:, None], arange(scores.shape[-1])
        scores = computed("causal", "ti.select(b >= c, a, -inf)", (scores, rows, columns), scores.dtype)
    elif mask is not None:
        snippet = "a + b" if mask.dtype.kind == "f" else "ti.select(b != 0, a, -inf)"
        scores = computed("masked", snippet, (scores, mask), scores.dtype)
    last, dtype = (scores.ndim - 1,), scores.dtype
    top = reduced("top_score", "max", "a", (scores,), last, True, dtype, "ti.select(s == -inf, 0, s)")
    weights = computed("exp_below_top", "ti.exp(a - b)", (scores, top), dtype, scores)
    summed = reduced("sum_of_weights", "sum", "a", (weights,), last, True, dtype, "ti.select(s == 0, 1, s)")
    weights = computed("weights", "a / b", (weights, summed), dtype, weights)
    return matmul(_dropped(weights, p, seed), value), weights


@kernel("attention_backward", DEVICE)
def attention_backward(
    u: Any, query: Any, key: Any, value: Any, weights: Any, *, scale: float, p: float, seed: int
) -> tuple[Any, ...]:
    by_weights = _dropped(matmul(u, value.swapaxes(-1, -2)), p, seed)
    if by_weights.shape != weights.shape:  # value has batches that query and key have not
        by_weights = sum_to(by_weights, shape=weights.shape)
    dtype = np.result_type(by_weights.dtype, weights.dtype)
    sums = reduced("dot", "sum", "a * b", (by_weights, weights), (weights.ndim - 1,), True, dtype)
    scores = computed("softmax_backward", "b * (a - c)", (by_weights, weights, sums), dtype)
    found = matmul(scores, key), matmul(scores.swapaxes(-1, -2), query)
    by_query, by_key = (computed("scaled", "a * scale", (x,), x.dtype, x, {"scale": scale}) for x in found)
    return by_query, by_key, matmul(_dropped(weights, p, seed).swapaxes(-1, -2), u), scores
