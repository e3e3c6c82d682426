"""Transformer layers and stacks of them, after Vaswani et al., "Attention Is All You Need", 2017.

Shapes and masks are those of `nn.MultiheadAttention`: a bool mask is True where attention is not allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from minigrad import functional as F
from minigrad.core.dtypes import DType
from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.core.tensor import Tensor
from minigrad.functional.creation import full
from minigrad.nn import init
from minigrad.nn.attention import MultiheadAttention
from minigrad.nn.containers import ModuleList
from minigrad.nn.dropout import Dropout
from minigrad.nn.linear import Linear
from minigrad.nn.module import Module
from minigrad.nn.norm import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Activation = str | Callable[[Tensor], Tensor]


class _TransformerLayer(Module):
    """Base class of layers with attentions, a feedforward network of two linear layers, and norms."""

    _attentions: tuple[str, ...]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        activations: dict[Any, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}
        if not callable(activation) and activation not in activations:
            raise ArgumentError(
                f"{type(self).__name__}: activation should be 'relu', 'gelu' or a callable, not {activation!r}."
            )
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        for name in self._attentions:
            attention = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **factory_kwargs)
            self.add_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **factory_kwargs)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **factory_kwargs)
        self.norm_first = norm_first
        count = len(self._attentions) + 1
        for k in range(1, count + 1):
            self.add_module(f"norm{k}", LayerNorm(d_model, layer_norm_eps, bias=bias, **factory_kwargs))
        for k in range(1, count + 1):
            self.add_module(f"dropout{k}", Dropout(dropout))
        self.activation = activation if callable(activation) else activations[activation]

    def _residual_block(self, k: int, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply the residual block ``x + sublayer(x)`` and then norm `k`.

        If `norm_first`, the norm is instead applied to the input of `sublayer`.
        """
        norm, dropout = getattr(self, f"norm{k}"), getattr(self, f"dropout{k}")
        result: Tensor = x + dropout(sublayer(norm(x))) if self.norm_first else norm(x + dropout(sublayer(x)))
        return result

    def _ff_block(self, x: Tensor) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention and a feedforward network: ``x + attention(x)``, ``x + W_2 activation(W_1 x)``, with norms.

    The norms follow each sum or, with `norm_first`, precede each sublayer (Xiong et al. 2020). The input is
    (L, N, d_model), N first if `batch_first`. `activation` is "relu", "gelu" or a callable.

    >>> import minigrad as mg
    >>> layer = mg.nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> layer(mg.ones(3, 5, 8)).shape
    (3, 5, 8)
    """

    _attentions = ("self_attn",)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Pass the input through the layer. `is_causal` is a hint about `src_mask`."""

        def self_attention(x: Tensor) -> Any:
            return self.self_attn(x, x, x, src_key_padding_mask, False, src_mask)[0]

        return self._residual_block(2, self._residual_block(1, src, self_attention), self._ff_block)


class TransformerDecoderLayer(_TransformerLayer):
    """A `TransformerEncoderLayer` with an additional attention to `memory`, the output of an encoder."""

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Pass the input through the layer. `tgt_is_causal` and `memory_is_causal` are hints about the masks."""

        def self_attention(x: Tensor) -> Any:
            return self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask)[0]

        def cross_attention(x: Tensor) -> Any:
            return self.multihead_attn(x, memory, memory, memory_key_padding_mask, False, memory_mask)[0]

        return self._residual_block(
            3, self._residual_block(2, self._residual_block(1, tgt, self_attention), cross_attention), self._ff_block
        )


class _LayerStack(Module):
    """Base class of stacks of `num_layers` copies of a layer, with an optional final norm."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        super().__init__()
        if num_layers < 0:
            raise ShapeError(f"{type(self).__name__}: num_layers must not be negative, but got {num_layers}.")
        self.layers = ModuleList([deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def _apply_layers(self, x: Tensor, *args: Any) -> Tensor:
        for layer in self.layers:
            x = layer(x, *args)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_LayerStack):
    """A stack of `num_layers` copies of an encoder layer, with an optional final `norm`.

    PyTorch's `enable_nested_tensor` and `mask_check` are accepted and have no effect.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Pass the input through all layers."""
        return self._apply_layers(src, mask, src_key_padding_mask)


class TransformerDecoder(_LayerStack):
    """A stack of `num_layers` copies of a decoder layer, with an optional final `norm`."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Pass the input through all layers."""
        return self._apply_layers(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)


class Transformer(Module):
    """An encoder of the source sequence, and a decoder that attends to its output. Vaswani et al. 2017.

    Matrices are initialised by `init.xavier_uniform_`. `custom_encoder` and `custom_decoder` replace the defaults.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        options = (layer_norm_eps, batch_first, norm_first, bias, device, dtype)
        layer_args: Any = (d_model, nhead, dim_feedforward, dropout, activation, *options)

        def make_norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*layer_args), num_encoder_layers, make_norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*layer_args), num_decoder_layers, make_norm()
        )
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        """Return the decoder's output for the target sequence."""
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        result: Tensor = self.decoder(tgt, memory, *masks)
        return result

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: str | None = None, dtype: DType | None = None) -> Tensor:
        """Return a causal mask: 0 on and below the diagonal, -inf above.

        >>> Transformer.generate_square_subsequent_mask(2).tolist()
        [[0.0, -inf], [0.0, 0.0]]
        """
        return full((sz, sz), float("-inf"), device=device, dtype=dtype).triu(1)
