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
    check_same_type,
    check_share,
    check_stretches,
    floats_of,
    line,
    one_dim_of,
    shaped,
    tensor_as,
    tensor_of,
)


@register(method=True)
def softmax(input: Tensor, dim: int | None = None, dtype: DType | None = None) -> Tensor:
    """``exp(input) / sum(exp(input))`` along `dim`: positive numbers whose sum along it is 1. Computed as `dtype`.

    A line that is -inf everywhere gives nan. Raises DTypeError for ints and bools without a float `dtype`, and
    ArgumentError without a `dim`, which PyTorch would guess.

    >>> import minigrad as mg
    >>> mg.tensor([[0.0, 0.0], [1.0, 1.0]]).softmax(dim=1).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    return _softmax("softmax", tensor_as(input, dtype, "softmax"), dim)


@register(method=True)
def log_softmax(input: Tensor, dim: int | None = None, dtype: DType | None = None) -> Tensor:
    """``log(softmax(input))`` along `dim`, also where the softmax is too small for a float. Raises as `softmax`."""
    return _softmax("log_softmax", tensor_as(input, dtype, "log_softmax"), dim)


@register
def softmin(input: Tensor, dim: int | None = None, dtype: DType | None = None) -> Tensor:
    """``softmax(-input)`` along `dim`. Raises as `softmax`."""
    return _softmax("softmax", -floats_of(tensor_as(input, dtype, "softmin"), "softmin"), dim, "softmin")


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
    """``softmax(scale * query @ key.T + attn_mask) @ value``: for each query a mean of the values, Vaswani et al. 2017.

    `query` has shape (…, L, E), `key` (…, S, E) and `value` (…, S, V); gives (…, L, V), where … are batches, which
    broadcast. `scale` is 1 / sqrt(E) unless given. `attn_mask` broadcasts to (…, L, S): of bools, where True takes
    part, or of floats, which are added. With `is_causal` query l sees only the keys 0 to l. A query that sees no key
    gets zeros. Each weight is dropped with probability `dropout_p`, whether or not a model is in training. With
    `enable_gqa` dimension -3 counts heads, and each of key and value serves several heads of the query in a row.

    Raises ShapeError where sizes do not fit, DTypeError for types that differ or are not floats, and ArgumentError for
    a mask beside `is_causal`, and for a probability that is none.
    """
    name = "scaled_dot_product_attention"
    check_same_type(name, query=floats_of(query, name, "query"), key=key, value=value)
    check_share(dropout_p, name, "dropout_p")
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise ShapeError(
            f"{name}: query, key and value have shapes {query.shape}, {key.shape} and {value.shape}, but each must be "
            "(…, number of tokens, size).\n  x[None] adds a dimension in front."
        )
    if enable_gqa:
        key, value = _repeated(name, "key", key, query), _repeated(name, "value", value, query)
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise ShapeError(
            f"{name}: query {query.shape}, key {key.shape} and value {value.shape} do not fit: query (…, L, E) and key "
            "(…, S, E) must share E, key and value (…, S, V) must share S."
        )
    batch = broadcast_shapes(query.shape[:-2], key.shape[:-2], op=name)
    broadcast_shapes(batch, value.shape[:-2], op=name)
    mask = _mask(name, attn_mask, is_causal, query, (*batch, query.shape[-2], key.shape[-2]))
    if scale is None:
        scale = max(query.shape[-1], 1) ** -0.5
    seed = random.default_generator.next_key() if dropout_p else 0
    attrs = {"is_causal": bool(is_causal), "scale": apply(float, scale), "p": apply(float, dropout_p), "seed": seed}
    result: Tensor = OPS[name](query, key, value, mask, **attrs)[0]
    return result


def _softmax(name: str, x: Tensor, dim: int | None, asked: str = "") -> Tensor:
    asked = asked or name
    if dim is None:
        raise ArgumentError(
            f"{asked}: along which dimension are the numbers to be compared?\n"
            f"  Write {asked}(x, dim=-1) for the last one."
        )
    k = one_dim_of(dim, x, asked)
    return shaped(OPS[name](line(floats_of(x, asked)), dim=k), x.shape)


def _mask(name: str, mask: Any, is_causal: bool, query: Tensor, shape: tuple[int, ...]) -> Tensor | None:
    if mask is None:
        return None
    if is_causal:
        raise ArgumentError(
            f"{name}: attn_mask and is_causal=True exclude each other.\n  Make one mask: attn_mask & causal, of bools."
        )
    if tensor_of(mask, name, "attn_mask").dtype not in (as_dtype(bool), float32, query.dtype):
        raise DTypeError(
            f"{name}: attn_mask holds {mask.dtype.name}; it must be a tensor of bools, where True takes part, or of "
            f"{query.dtype.name}, which is added to the scores."
        )
    check_stretches(mask, shape, name, "attn_mask")
    return cast(Tensor, mask if mask.dtype is as_dtype(bool) else mask.to(query.dtype))


def _repeated(name: str, label: str, x: Tensor, query: Tensor) -> Tensor:
    """`x`, each head repeated so that there are as many as in `query`."""
    if min(x.ndim, query.ndim) < 3 or not x.shape[-3] or query.shape[-3] % x.shape[-3]:
        raise ShapeError(
            f"{name}: enable_gqa=True, but query has shape {query.shape} and {label} {x.shape}: dimension -3, the "
            f"heads, must be there, and that of query a multiple of that of {label}."
        )
    *batch, heads, tokens, size = x.shape
    times = query.shape[-3] // heads
    return shaped(x[..., None, :, :].expand(*batch, heads, times, tokens, size), (*batch, heads * times, tokens, size))
