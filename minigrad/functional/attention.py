"""Softmax and attention, with PyTorch's signatures."""

from __future__ import annotations

from typing import Any, cast

from minigrad import random
from minigrad.core.dtypes import DType, as_dtype, float32
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from minigrad.core.op import OPS
from minigrad.core.registry import register
from minigrad.core.shapes import broadcast_shapes
from minigrad.core.symbolic import apply
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import (
    at_least_1d,
    cast_tensor,
    check_broadcastable,
    check_floating,
    check_probability,
    check_same_dtype,
    check_single_dim,
    check_tensor,
    reshape_to,
)


@register(method=True)
def softmax(input: Tensor, dim: int | None = None, dtype: DType | None = None) -> Tensor:
    """Return ``exp(input) / sum(exp(input))`` along `dim`, computed in `dtype`: positive values that sum to 1.

    If all elements along `dim` are -inf, the result is nan. Raises DTypeError for ints and bools without a float
    `dtype`, and ArgumentError without a `dim`, which PyTorch would infer.

    >>> import minigrad as mg
    >>> mg.tensor([[0.0, 0.0], [1.0, 1.0]]).softmax(dim=1).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    return _softmax("softmax", cast_tensor(input, dtype, "softmax"), dim)


@register(method=True)
def log_softmax(input: Tensor, dim: int | None = None, dtype: DType | None = None) -> Tensor:
    """Return ``log(softmax(input))`` along `dim`, without underflow. Raises the same errors as `softmax`."""
    return _softmax("log_softmax", cast_tensor(input, dtype, "log_softmax"), dim)


@register
def softmin(input: Tensor, dim: int | None = None, dtype: DType | None = None) -> Tensor:
    """Return ``softmax(-input)`` along `dim`. Raises the same errors as `softmax`."""
    return _softmax("softmax", -check_floating(cast_tensor(input, dtype, "softmin"), "softmin"), dim, "softmin")


@register
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return ``softmax(scale * query @ key.T + attn_mask) @ value``, scaled dot-product attention. Vaswani et al. 2017.

    `query` has shape (…, L, E), `key` (…, S, E) and `value` (…, S, V); the result has (…, L, V). Batch dimensions …
    broadcast. `scale` defaults to 1 / sqrt(E). `attn_mask` broadcasts to (…, L, S). If bool, True marks the keys to
    attend to; if floating point, it is added to the scores. With `is_causal` query l attends only to keys 0 to l. The
    result for a query that attends to no key is zero. Each weight is dropped with probability `dropout_p`, whether the
    model is training or not. With `enable_gqa`, dimension -3 is the head dimension, and each head of key and value is
    shared by several consecutive heads of query.

    Raises ShapeError for sizes that do not match, DTypeError for dtypes that differ or are not floating point, and
    ArgumentError if `attn_mask` is combined with `is_causal`, or for an invalid probability.
    """
    name = "scaled_dot_product_attention"
    check_same_dtype(name, query=check_floating(query, name, "query"), key=key, value=value)
    check_probability(dropout_p, name, "dropout_p")
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise ShapeError(
            f"{name}: expected query, key and value to all be at least 2-dimensional, (…, tokens, features), but got "
            f"{query.shape}, {key.shape} and {value.shape}.\n  x[None] adds a leading dimension."
        )
    if enable_gqa:
        key, value = _repeat_heads(name, "key", key, query), _repeat_heads(name, "value", value, query)
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise ShapeError(
            f"{name}: shapes of query {query.shape}, key {key.shape} and value {value.shape} do not match: query "
            "(…, L, E) and key (…, S, E) must have the same E, key and value (…, S, V) the same S."
        )
    batch = broadcast_shapes(query.shape[:-2], key.shape[:-2], op=name)
    broadcast_shapes(batch, value.shape[:-2], op=name)
    mask = _prepare_mask(name, attn_mask, is_causal, query, (*batch, query.shape[-2], key.shape[-2]))
    if scale is None:
        scale = max(query.shape[-1], 1) ** -0.5
    seed = random.default_generator.next_key() if dropout_p else 0
    attrs = {"is_causal": bool(is_causal), "scale": apply(float, scale), "p": apply(float, dropout_p), "seed": seed}
    result: Tensor = OPS[name](query, key, value, mask, **attrs)[0]
    return result


def _softmax(name: str, x: Tensor, dim: int | None, func_name: str = "") -> Tensor:
    func_name = func_name or name
    if dim is None:
        raise ArgumentError(
            f"{func_name}: implicit dimension choice is not supported.\n"
            f"  Write {func_name}(x, dim=-1) for the last dimension."
        )
    k = check_single_dim(dim, x, func_name)
    return reshape_to(OPS[name](at_least_1d(check_floating(x, func_name)), dim=k), x.shape)


def _prepare_mask(name: str, mask: Any, is_causal: bool, query: Tensor, shape: tuple[int, ...]) -> Tensor | None:
    if mask is None:
        return None
    if is_causal:
        raise ArgumentError(
            f"{name}: attn_mask should not be set when is_causal=True.\n  Combine two bool masks: attn_mask & causal."
        )
    if check_tensor(mask, name, "attn_mask").dtype not in (as_dtype(bool), float32, query.dtype):
        raise DTypeError(
            f"{name}: expected attn_mask dtype to be bool (True takes part) or {query.dtype.name} (added to the "
            f"scores), but got {mask.dtype.name}."
        )
    check_broadcastable(mask, shape, name, "attn_mask")
    return cast(Tensor, mask if mask.dtype is as_dtype(bool) else mask.to(query.dtype))


def _repeat_heads(name: str, label: str, x: Tensor, query: Tensor) -> Tensor:
    """Repeat each head of `x` to match the number of heads of `query`."""
    if min(x.ndim, query.ndim) < 3 or not x.shape[-3] or query.shape[-3] % x.shape[-3]:
        raise ShapeError(
            f"{name}: with enable_gqa=True the number of heads (dimension -3) of {label} must divide that of query, "
            f"but got {label} {x.shape} and query {query.shape}."
        )
    *batch, heads, tokens, head_size = x.shape
    repeats = query.shape[-3] // heads
    return reshape_to(
        x[..., None, :, :].expand(*batch, heads, repeats, tokens, head_size),
        (*batch, heads * repeats, tokens, head_size),
    )
