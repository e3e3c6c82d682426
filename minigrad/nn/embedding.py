"""Embedding layers, which look up rows of a table by index, individually or in bags."""

from __future__ import annotations

from typing import Any

from minigrad import functional as F
from minigrad.core.dtypes import DType
from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.core.grad_mode import no_grad
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_floating, check_option
from minigrad.functional.creation import empty
from minigrad.nn import init
from minigrad.nn.module import Module, Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class _EmbeddingBase(Module):
    """Base class of embeddings. Rows are initialised from N(0, 1), and the row at `padding_idx` to 0."""

    weight: Parameter

    def _init_weight(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, sparse: bool, device: Any, dtype: Any
    ) -> None:
        """Validate and store the common options, and create the weight."""
        name = type(self).__name__
        if sparse:
            raise ArgumentError(f"{name}: sparse gradients are not supported: leave sparse out.")
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ShapeError(
                f"{name}: padding_idx must be within num_embeddings, but got {padding_idx} of {num_embeddings}."
            )
        self.num_embeddings, self.embedding_dim, self.sparse = num_embeddings, embedding_dim, sparse
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = Parameter(empty(num_embeddings, embedding_dim, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Resample all rows, except that the row at `padding_idx` is 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].zero_()


class Embedding(_EmbeddingBase):
    """Looks up rows of `weight`, (num_embeddings, embedding_dim), at indices (…). Returns (…, embedding_dim).

    Rows are initialised from N(0, 1); the row at `padding_idx` is 0 and receives no gradient. For `max_norm`,
    `norm_type` and `scale_grad_by_freq` see `functional.embedding`. Raises ShapeError if `padding_idx` is out of range,
    ArgumentError for `sparse`, which is not supported.

    >>> import minigrad as mg
    >>> table = mg.nn.Embedding(10, 3, padding_idx=0)
    >>> table(mg.tensor([[0, 7]])).shape, table.weight[0].tolist()
    ((1, 2, 3), [0.0, 0.0, 0.0])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        device: str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self._init_weight(num_embeddings, embedding_dim, padding_idx, sparse, device, dtype)
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """Create an embedding with the matrix `embeddings` as weight, which is trainable unless `freeze`."""
        rows, size = _matrix_shape(embeddings)
        module = cls(rows, size, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        module.weight = Parameter(embeddings, not freeze)
        return module

    def forward(self, input: Tensor) -> Any:
        options = (self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)
        return F.embedding(input, self.weight, self.padding_idx, *options)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}{_format_options(self)}"


class EmbeddingBag(_EmbeddingBase):
    """Computes the "mean", "sum" or "max" of bags of rows of `weight`: see `functional.embedding_bag`.

    Bags are the rows of (B, N), or slices of a 1-D input that begin at `offsets`. Rows are initialised from N(0, 1);
    the row at `padding_idx` is 0 and excluded. Raises ArgumentError for options that cannot be combined.

    >>> import minigrad as mg
    >>> bag = mg.nn.EmbeddingBag(10, 3, mode="sum")
    >>> bag(mg.tensor([1, 2, 4, 5]), mg.tensor([0, 3])).shape
    (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        check_option(mode, ("mean", "sum", "max"), "EmbeddingBag", "mode")
        self._init_weight(num_embeddings, embedding_dim, padding_idx, sparse, device, dtype)
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.mode, self.include_last_offset = mode, include_last_offset

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """Create an embedding with the matrix `embeddings` as weight, which is trainable unless `freeze`."""
        rows, size = _matrix_shape(embeddings)
        options = (max_norm, norm_type, scale_grad_by_freq, mode, sparse, include_last_offset, padding_idx)
        module = cls(rows, size, *options)
        module.weight = Parameter(embeddings, not freeze)
        return module

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        options: Any = {"include_last_offset": self.include_last_offset, "padding_idx": self.padding_idx}
        options |= {name: getattr(self, name) for name in ("max_norm", "norm_type", "scale_grad_by_freq", "sparse")}
        return F.embedding_bag(
            input, self.weight, offsets, mode=self.mode, per_sample_weights=per_sample_weights, **options
        )

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}{_format_options(self)}"


def _matrix_shape(embeddings: Tensor) -> tuple[int, int]:
    if check_floating(embeddings, "from_pretrained", "embeddings").ndim != 2:
        raise ShapeError(f"from_pretrained: expected embeddings to be 2-dimensional, but got shape {embeddings.shape}.")
    rows, size = embeddings.shape
    return rows, size


def _format_options(module: Any) -> str:
    """Return the options that differ from their defaults, as in PyTorch's `repr`."""
    defaults = {"padding_idx": None, "max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False}
    return "".join(f", {name}={getattr(module, name)}" for name, x in defaults.items() if getattr(module, name) != x)
