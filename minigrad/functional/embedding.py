"""Embedding lookup, embedding bags and one-hot encoding, with PyTorch's signatures."""

from __future__ import annotations

from typing import cast

from minigrad import ops
from minigrad.core.dtypes import int64
from minigrad.core.errors import ArgumentError, ShapeError
from minigrad.core.registry import register
from minigrad.core.shapes import numel
from minigrad.core.tensor import Tensor
from minigrad.functional.checks import check_floating, check_number, check_option, check_tensor, flatten_all
from minigrad.functional.creation import arange
from minigrad.functional.indexing import check_index
from minigrad.functional.scattering import scatter_reduce
from minigrad.functional.shape import repeat_interleave
from minigrad.functional.sorting import searchsorted
from minigrad.functional.subscript import check_index_range, renorm_rows


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
    """Look up the rows of `weight`, (n, m), at the indices `input`, (…). Returns (…, m).

    The row at `padding_idx` gets no gradient. With `max_norm`, rows that are looked up are first scaled down in place
    to this norm, of order `norm_type`, if they exceed it. `scale_grad_by_freq` divides the gradient of each row by its
    frequency in `input`. Raises ShapeError if `weight` is not 2-d or `padding_idx` is out of range, ArgumentError for
    `sparse`, which is not supported.
    """
    if sparse:
        raise ArgumentError("embedding: sparse gradients are not supported; omit sparse.")
    idx = check_index("embedding", input)
    if check_tensor(weight, "embedding", "weight").ndim != 2:
        raise ShapeError(f"embedding: weight must be 2-D, but got shape {weight.shape}.")
    rows = weight.shape[0]
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise ShapeError(f"embedding: padding_idx must be within the {rows} rows of weight, but got {padding_idx}.")
        padding_idx %= rows
    idx = check_index_range("embedding", idx, rows, 0)
    if max_norm is not None:
        renorm_rows(weight, idx, max_norm, norm_type)
    return cast(Tensor, ops.embedding(weight, idx, padding_idx=padding_idx, by_freq=scale_grad_by_freq))


@register
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Encode each index of `tensor`, (…), as a one-hot vector: int64, (…, num_classes).

    A `num_classes` of -1 means the maximum plus 1. Raises ShapeError for an index that is not a class.
    """
    idx = check_index("one_hot", tensor)
    check_number(num_classes, "one_hot", "num_classes", integer=True)
    if num_classes == -1:
        if not numel(idx.shape):
            raise ShapeError(
                "one_hot: can not infer total number of classes from an empty tensor.\n  Pass num_classes."
            )
        num_classes = max(int(idx.amax()), 0) + 1
    idx = check_index_range("one_hot", idx[..., None], num_classes, idx.ndim)
    classes = tensor.new_zeros(*tensor.shape, num_classes, dtype=int64)
    return cast(Tensor, ops.scatter(classes, idx, 1, dim=tensor.ndim))


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
    """Reduce rows of `weight`, (n, m), by "mean", "sum" or "max" over B bags. Returns (B, m), with 0 for empty bags.

    `input` has one bag per row, (B, N), or is 1-d with the start of each bag in `offsets`, (B,); with
    `include_last_offset`, the last offset is the end of the last bag. `per_sample_weights` has the shape of `input` and
    requires "sum". Indices equal to `padding_idx` are ignored. `max_norm` and `scale_grad_by_freq` are those of
    `embedding`; the latter requires "mean" or "sum". Raises ShapeError if `offsets` and `input` do not match, and
    ArgumentError for incompatible options.

    >>> import minigrad as mg
    >>> table = mg.tensor([[1.0], [2.0], [4.0]])
    >>> F = mg.nn.functional
    >>> F.embedding_bag(mg.tensor([0, 1, 2]), table, mg.tensor([0, 1]), mode="sum").tolist()
    [[1.0], [6.0]]
    """
    check_option(mode, ("mean", "sum", "max"), "embedding_bag", "mode")
    if sparse or (scale_grad_by_freq and mode == "max"):
        reason = "sparse gradients are not supported" if sparse else "max mode does not support scale_grad_by_freq"
        raise ArgumentError(f"embedding_bag: {reason}; omit {'sparse' if sparse else 'it'}.")
    if per_sample_weights is not None and mode != "sum":
        raise ArgumentError(f'embedding_bag: per_sample_weights is only supported for mode="sum" (got mode={mode!r}).')
    num_bags, bags = _assign_bags(check_tensor(input, "embedding_bag"), offsets, include_last_offset)
    idx, sample_weights = flatten_all(input), None if per_sample_weights is None else flatten_all(per_sample_weights)
    num_embeddings = check_floating(weight, "embedding_bag", "weight").shape[0]
    if max_norm is not None:
        renorm_rows(weight, check_index_range("embedding_bag", idx, num_embeddings, 0), max_norm, norm_type)
    if padding_idx is not None:
        if not -num_embeddings <= padding_idx < num_embeddings:
            raise ShapeError(
                f"embedding_bag: padding_idx must be within the {num_embeddings} rows of weight, but got {padding_idx}."
            )
        mask = idx != padding_idx % num_embeddings
        idx, bags, sample_weights = idx[mask], bags[mask], None if sample_weights is None else sample_weights[mask]
    rows = embedding(idx, weight, scale_grad_by_freq=scale_grad_by_freq)
    rows = rows if sample_weights is None else rows * sample_weights[:, None]
    bag_index = bags[:, None].expand(*rows.shape)
    reduce = "amax" if mode == "max" else mode
    return scatter_reduce(rows.new_zeros((num_bags, rows.shape[1])), 0, bag_index, rows, reduce, include_self=False)


def _assign_bags(input: Tensor, offsets: Tensor | None, include_last_offset: bool) -> tuple[int, Tensor]:
    """Return the number of bags, and the bag to which each index belongs."""
    if input.ndim not in (1, 2) or (input.ndim == 1) is (offsets is None):
        raise ShapeError(
            f"embedding_bag: got input of shape {input.shape} {'with' if offsets is not None else 'without'} offsets.\n"
            "  If input is 2D, then offsets has to be None; if it is 1D, offsets has to be a 1D tensor."
        )
    if offsets is None:
        rows, size = input.shape
        return rows, repeat_interleave(arange(rows, device=input.device), size)
    if bool((offsets > input.shape[0]).any()):
        raise ShapeError(
            f"embedding_bag: offsets exceed the {input.shape[0]} indices of input: {offsets.tolist()!r:.80}."
        )
    if include_last_offset and not offsets.shape[0]:
        raise ShapeError("embedding_bag: include_last_offset: number of offsets should be at least 1.")
    starts = offsets[:-1] if include_last_offset else offsets
    positions = arange(input.shape[0], device=input.device)
    return starts.shape[0], searchsorted(starts, positions.to(starts.dtype), right=True) - 1
