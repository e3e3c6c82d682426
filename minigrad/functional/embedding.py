"""Embedding look-ups, bags of embeddings and one-hot encoding, with PyTorch's signatures."""

from __future__ import annotations

from typing import cast

from minigrad import ops
from minigrad.core.dtypes import int64
from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.core.registry import register
from minigrad.core.shapes import numel
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_number, check_option, flat, floats_of, tensor_of
from minigrad.functional.creation import arange
from minigrad.functional.indexing import index_tensor
from minigrad.functional.scattering import scatter_reduce
from minigrad.functional.shape import repeat_interleave
from minigrad.functional.sorting import searchsorted
from minigrad.functional.subscript import in_range, shorten


@register
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight`, (n, m), at the ints of `input`, (…): gives (…, m).

    The row at `padding_idx` gets no gradient. With `max_norm` the rows that are looked up are first, in place, scaled
    down to that norm, of order `norm_type`, where theirs is larger. With `scale_grad_by_freq` the gradient of a row is
    divided by how often it stands in `input`. Raises ShapeError if `weight` is no matrix or `padding_idx` no row of it,
    ArgumentError for `sparse`, which is not here.
    """
    if sparse:
        raise ArgumentError("embedding: sparse gradients are not here: leave sparse out.")
    at = index_tensor("embedding", input)
    if tensor_of(weight, "embedding", "weight").ndim != 2:
        raise ShapeError(f"embedding: weight is a matrix, a row for each int; it has shape {weight.shape}.")
    rows = weight.shape[0]
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise ShapeError(f"embedding: padding_idx={padding_idx} is not one of the {rows} rows of weight.")
        padding_idx %= rows
    at = in_range("embedding", at, rows, 0)
    if max_norm is not None:
        shorten(weight, at, max_norm, norm_type)
    return cast(Tensor, ops.embedding(weight, at, padding_idx=padding_idx, by_freq=scale_grad_by_freq))


@register
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """For each int k of `tensor`, (…), `num_classes` ints that are 0 but for a 1 at k: int64, (…, num_classes).

    -1 is one class more than the largest int. Raises ShapeError for an int that is none of the classes.
    """
    at = index_tensor("one_hot", tensor)
    check_number(num_classes, "one_hot", "num_classes", whole=True)
    if num_classes == -1:
        if not numel(at.shape):
            raise ShapeError("one_hot: no ints, so that the number of classes cannot be seen.\n  Give num_classes.")
        num_classes = max(int(at.amax()), 0) + 1
    at = in_range("one_hot", at[..., None], num_classes, at.ndim)
    classes = tensor.new_zeros(*tensor.shape, num_classes, dtype=int64)
    return cast(Tensor, ops.scatter(classes, at, 1, dim=tensor.ndim))


@register
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The "mean", "sum" or "max" of the rows of `weight`, (n, m), in each of B bags: (B, m), 0 for an empty bag.

    `input` has a bag a row, (B, N), or all of them in a line, cut by `offsets` (B,), where each begins; with
    `include_last_offset` the last of these is the end. `per_sample_weights`, of the shape of `input`, go with "sum".
    Ints that are `padding_idx` are left out. Raises ShapeError where `offsets` and `input` do not go together, and
    ArgumentError for options that do not go together. `max_norm` and `scale_grad_by_freq` are those of `embedding`; the
    latter goes with "mean" and "sum".

    >>> import minigrad as mg
    >>> table = mg.tensor([[1.0], [2.0], [4.0]])
    >>> F = mg.nn.functional
    >>> F.embedding_bag(mg.tensor([0, 1, 2]), table, mg.tensor([0, 1]), mode="sum").tolist()
    [[1.0], [6.0]]
    """
    check_option(mode, ("mean", "sum", "max"), "embedding_bag", "mode")
    if sparse or (scale_grad_by_freq and mode == "max"):
        what = "sparse gradients are not here" if sparse else 'scale_grad_by_freq goes with "mean" and "sum"'
        raise ArgumentError(f"embedding_bag: {what}: leave {'sparse' if sparse else 'it'} out.")
    if per_sample_weights is not None and mode != "sum":
        raise ArgumentError(f'embedding_bag: per_sample_weights go with mode="sum", not {mode!r}.')
    count, bags = _bags(tensor_of(input, "embedding_bag"), offsets, include_last_offset)
    at, factors = flat(input), None if per_sample_weights is None else flat(per_sample_weights)
    size = floats_of(weight, "embedding_bag", "weight").shape[0]
    if max_norm is not None:
        shorten(weight, in_range("embedding_bag", at, size, 0), max_norm, norm_type)
    if padding_idx is not None:
        if not -size <= padding_idx < size:
            raise ShapeError(f"embedding_bag: padding_idx={padding_idx} is not one of the {size} rows of weight.")
        there = at != padding_idx % size
        at, bags, factors = at[there], bags[there], None if factors is None else factors[there]
    rows = embedding(at, weight, scale_grad_by_freq=scale_grad_by_freq)
    rows = rows if factors is None else rows * factors[:, None]
    places = bags[:, None].expand(*rows.shape)
    reduce = "amax" if mode == "max" else mode
    return scatter_reduce(rows.new_zeros((count, rows.shape[1])), 0, places, rows, reduce, include_self=False)


def _bags(input: Tensor, offsets: Tensor | None, include_last_offset: bool) -> tuple[int, Tensor]:
    """How many bags there are, and in which of them each int is."""
    if input.ndim not in (1, 2) or (input.ndim == 1) is (offsets is None):
        raise ShapeError(
            f"embedding_bag: input has shape {input.shape} and offsets {'are' if offsets is not None else 'are not'} "
            "given.\n  Bags of one size are rows (B, N) without offsets; others stand in one line, with them."
        )
    if offsets is None:
        rows, size = input.shape
        return rows, repeat_interleave(arange(rows, device=input.device), size)
    if bool((offsets > input.shape[0]).any()):
        raise ShapeError(
            f"embedding_bag: offsets go beyond the {input.shape[0]} ints of input: {offsets.tolist()!r:.80}."
        )
    if include_last_offset and not offsets.shape[0]:
        raise ShapeError("embedding_bag: with include_last_offset there is one offset at least, the end.")
    starts = offsets[:-1] if include_last_offset else offsets
    places = arange(input.shape[0], device=input.device)
    return starts.shape[0], searchsorted(starts, places.to(starts.dtype), right=True) - 1
