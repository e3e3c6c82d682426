"""Sequences of different lengths in one tensor: PyTorch's `nn.utils.rnn`, without packing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad._tensor import Tensor
from minigrad.errors import ArgumentError
from minigrad.functional import cat, stack
from minigrad.functional.checks import check_option

__all__ = ["pad_sequence", "unpad_sequence"]


def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences (L₁, …), (L₂, …), … as one tensor (L, N, …), or (N, L, …) if `batch_first`, filled up to the longest.

    Raises ArgumentError where there is none, or for a side that is not "right" or "left".

    >>> import minigrad as mg
    >>> pad_sequence([mg.tensor([1, 2, 3]), mg.tensor([4])], batch_first=True).tolist()
    [[1, 2, 3], [4, 0, 0]]
    """
    check_option(padding_side, ("right", "left"), "pad_sequence", "padding_side")
    rows = list(sequences)
    if not rows:
        raise ArgumentError("pad_sequence: there is no sequence, so no length.")
    longest = max(len(x) for x in rows)
    filled = []
    for x in rows:
        space = x.new_full((longest - len(x), *x.shape[1:]), padding_value)
        filled.append(cat([x, space] if padding_side == "right" else [space, x]))
    return stack(filled, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences, of those `lengths` (N,), that `pad_sequence` put into (L, N, …), or (N, L, …) if `batch_first`."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:length] for row, length in zip(rows, lengths.tolist(), strict=True)]


def __getattr__(name: str) -> Any:
    from minigrad.pytorch.advice import missing

    more = missing("torch.nn.utils.rnn", name)
    raise AttributeError(f"module 'minigrad.nn.utils.rnn' has no attribute {name!r}{more}", name=name)
