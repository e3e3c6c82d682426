"""Multi-head attention, after Vaswani et al., "Attention Is All You Need", 2017.

L is the target (query) length, S the source (key and value) length, N the batch size, E the embedding size. A bool mask
is True where attention is not allowed, the opposite of `functional.scaled_dot_product_attention`; a float mask is added
to the scores.
"""

from __future__ import annotations

from typing import Any

from minigrad import functional as F
from minigrad.core.dtypes import DType, as_dtype
from minigrad.core.errors import DTypeError, ShapeError
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_probability, check_tensor
from minigrad.functional.creation import empty
from minigrad.nn import init
from minigrad.nn.layer_utils import split_with_concat_grad
from minigrad.nn.linear import Linear
from minigrad.nn.module import Module, Parameter

__all__ = ["MultiheadAttention"]
__path__: list[str] = []  # no submodules; `pytorch.import_hooks` handles imports of missing submodules


class MultiheadAttention(Module):
    """Multi-head attention: `num_heads` scaled dot-product attentions over slices of E, and an output projection.

    ``forward(query, key, value)`` takes inputs (L, N, E), (S, N, kdim) and (S, N, vdim), with N first if `batch_first`,
    or unbatched inputs without N. It returns the output, (L, N, E), and the attention weights, (N, L, S). The weights
    are averaged over heads unless `average_attn_weights` is False; they are None if `need_weights` is False. Parameters
    have PyTorch's names and initialisation: one `in_proj_weight`, (3 E, E), or three weights if `kdim` or `vdim` is
    not E. `add_bias_kv` appends a learned key and value, `add_zero_attn` a key and value of zeros. Raises ShapeError
    for mismatched sizes.

    >>> import minigrad as mg
    >>> attention = mg.nn.MultiheadAttention(8, num_heads=2, batch_first=True)
    >>> x = mg.ones(3, 5, 8)
    >>> output, weights = attention(x, x, x)
    >>> output.shape, weights.shape
    ((3, 5, 8), (3, 5, 5))
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if min(embed_dim, num_heads) < 1 or embed_dim % num_heads:
            raise ShapeError(
                "MultiheadAttention: embed_dim must be divisible by num_heads, but got "
                f"embed_dim={embed_dim} and num_heads={num_heads}."
            )
        check_probability(dropout, "MultiheadAttention", "dropout")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}

        def make_parameter(*shape: int, enabled: bool) -> Parameter | None:
            return Parameter(empty(*shape, **factory_kwargs)) if enabled else None

        same_sizes = self.kdim == self.vdim == embed_dim
        for name, in_size in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
            self.register_parameter(f"{name}_proj_weight", make_parameter(embed_dim, in_size, enabled=not same_sizes))
        self.register_parameter("in_proj_weight", make_parameter(3 * embed_dim, embed_dim, enabled=same_sizes))
        self.register_parameter("in_proj_bias", make_parameter(3 * embed_dim, enabled=bias))
        self.out_proj = Linear(embed_dim, embed_dim, bias, **factory_kwargs)
        self.register_parameter("bias_k", make_parameter(1, 1, embed_dim, enabled=add_bias_kv))
        self.register_parameter("bias_v", make_parameter(1, 1, embed_dim, enabled=add_bias_kv))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Resample the weights, and reset the biases of the projections to 0."""
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the attention output and weights.

        `key_padding_mask` is (N, S), `attn_mask` (L, S) or (N · heads, L, S). `is_causal` is a hint that `attn_mask`,
        which is still required, is the mask of `Transformer.generate_square_subsequent_mask`.
        """
        if is_causal and attn_mask is None:
            raise ShapeError(
                "MultiheadAttention: need attn_mask if specifying the is_causal hint.\n"
                "  Pass attn_mask=nn.Transformer.generate_square_subsequent_mask(L) too."
            )
        self._check_inputs(query, key, value)
        is_unbatched = query.ndim == 2
        if is_unbatched:
            query, key, value = [x.unsqueeze(0) for x in (query, key, value)]
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            is_self_attention = query is key and key is value
            query = query.transpose(0, 1)
            key, value = (query, query) if is_self_attention else (key.transpose(0, 1), value.transpose(0, 1))
        q, k, v = self._in_projection(query, key, value)
        mask = self._merge_masks(attn_mask, key_padding_mask, query, key)
        k, v, mask = self._append_keys(k, v, mask)
        q, k, v = [self._split_heads(x) for x in (q, k, v)]
        dropout = self.dropout if self.training else 0.0
        if need_weights:
            attn_output, weights = _attend_with_weights(q, k, v, mask, dropout)
            attn_weights: Tensor | None = weights.mean(1) if average_attn_weights else weights
        else:
            attn_output, attn_weights = F.scaled_dot_product_attention(q, k, v, mask, dropout), None
        output = self.out_proj(attn_output.transpose(1, 2).flatten(2))
        if is_unbatched:
            return output.squeeze(0), None if attn_weights is None else attn_weights.squeeze(0)
        return output if self.batch_first else output.transpose(0, 1), attn_weights

    def _check_inputs(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        sizes = (self.embed_dim, self.kdim, self.vdim)
        inputs = [check_tensor(x, "MultiheadAttention", "query, key or value") for x in (query, key, value)]
        shapes_match = all(x.ndim == query.ndim and x.shape[-1] == n for x, n in zip(inputs, sizes, strict=True))
        if query.ndim not in (2, 3) or not shapes_match or key.shape[:-1] != value.shape[:-1]:
            layout = (
                "(N, L, {}), (N, S, {}) and (N, S, {})" if self.batch_first else "(L, N, {}), (S, N, {}) and (S, N, {})"
            )
            raise ShapeError(
                f"MultiheadAttention: expected query, key and value of shapes {layout.format(*sizes)}, or all without "
                f"N, but got {query.shape}, {key.shape} and {value.shape}."
            )

    def _in_projection(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Project query, key and value, in a single matrix product if they are the same tensor."""
        if self.in_proj_weight is not None and query is key and key is value:
            q, k, v = split_with_concat_grad(F.linear(query, self.in_proj_weight, self.in_proj_bias), 3)
            return q, k, v
        if self.in_proj_weight is not None:
            weights: Any = split_with_concat_grad(self.in_proj_weight, 3, 0)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None, None, None) if self.in_proj_bias is None else split_with_concat_grad(self.in_proj_bias, 3, 0)
        q, k, v = [F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]
        return q, k, v

    def _merge_masks(self, mask: Any, padding: Any, query: Tensor, key: Tensor) -> Tensor | None:
        """Merge both masks into a float mask of shape (N or 1, heads or 1, L or 1, S)."""
        n, length, source = query.shape[0], query.shape[1], key.shape[1]
        merged: Tensor | None = None
        if mask is not None:
            if check_tensor(mask, "MultiheadAttention", "attn_mask").shape not in (
                (length, source),
                (n * self.num_heads, length, source),
            ):
                raise ShapeError(
                    f"MultiheadAttention: the shape of attn_mask is {mask.shape}, but should be {(length, source)} or "
                    f"{(n * self.num_heads, length, source)}."
                )
            merged = _to_float_mask(mask, query).reshape(-1, self.num_heads if mask.ndim == 3 else 1, length, source)
        if padding is not None:
            if check_tensor(padding, "MultiheadAttention", "key_padding_mask").shape != (n, source):
                raise ShapeError(
                    "MultiheadAttention: the shape of key_padding_mask is "
                    f"{padding.shape}, but should be {(n, source)}."
                )
            padding_mask = _to_float_mask(padding, query)[:, None, None, :]
            merged = padding_mask if merged is None else merged + padding_mask
        return merged

    def _append_keys(self, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Append learned or zero keys and values, and pad the mask to allow attention to them."""
        num_added = 0
        if self.bias_k is not None and self.bias_v is not None:
            k, v = [F.cat([x, b.expand(x.shape[0], 1, -1)], 1) for x, b in ((k, self.bias_k), (v, self.bias_v))]
            num_added = 1
        if self.add_zero_attn:
            k, v = [F.cat([x, x.new_zeros((x.shape[0], 1, x.shape[2]))], 1) for x in (k, v)]
            num_added += 1
        return k, v, F.pad(mask, (0, num_added)) if mask is not None and num_added else mask

    def _split_heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)


def _to_float_mask(mask: Tensor, scores: Tensor) -> Tensor:
    """Convert a mask to a float mask to add to the scores. A bool mask is converted to -inf where it is True."""
    if mask.dtype is as_dtype(bool):
        return F.where(mask, float("-inf"), scores.new_zeros(()))
    if not mask.dtype.is_floating_point:
        raise DTypeError(
            f"MultiheadAttention: only bool and floating types of masks are supported, not {mask.dtype.name}."
        )
    return mask.to(scores.dtype)


def _attend_with_weights(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float) -> tuple[Tensor, Tensor]:
    """Compute `functional.scaled_dot_product_attention`. Return the output and the attention weights."""
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
    weights = F.softmax(scores if mask is None else scores + mask, -1)
    weights = F.dropout(weights, dropout)
    return weights @ v, weights
