"""Batches of sequences of different lengths: PyTorch's `nn.utils.rnn`.

Padded sequences are the rows of one tensor, filled to equal length. Packed sequences have no padding: they concatenate
the elements of all sequences at the first time step, longest sequence first, then at the second, and so on. A recurrent
layer then computes only the active sequences at each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple, cast

from minigrad.core.deprecation import DeprecatedAlias
from minigrad.core.dtypes import int64
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from minigrad.core.tensor import Tensor
from minigrad.functional import argsort, cat, stack
from minigrad.functional.checks import check_option, check_tensor
from minigrad.functional.creation import tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]
__path__: list[str] = []  # no submodules; `pytorch.import_hooks` handles imports of missing submodules


class _PackedFields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_PackedFields):
    """Packed sequences: `data`, (sum of lengths, …), and `batch_sizes`, the number of sequences at each time step.

    `sorted_indices` is the permutation that sorted the sequences by length, and `unsorted_indices` its inverse; both
    are None if the sequences were already sorted. Created by `pack_padded_sequence` and `pack_sequence`.
    """

    _sizes: list[int] | None = None

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Any = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            raise ArgumentError("PackedSequence: batch_sizes is missing.\n  Write pack_sequence(list) to compute it.")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    @property
    def sizes(self) -> list[int]:
        """`batch_sizes` as ints. They are cached during packing, so that `mg.jit` does not read the tensor."""
        return cast(list[int], self.batch_sizes.tolist()) if self._sizes is None else self._sizes

    def with_data(self, data: Tensor) -> PackedSequence:
        """Return a packed sequence with the same layout and new `data`, such as the output of a layer."""
        result = PackedSequence(data, *self[1:])
        result._sizes = self._sizes
        return result

    def to(self, *args: Any, **options: Any) -> PackedSequence:
        """Return a copy with `data` moved or converted as by ``Tensor.to``."""
        data = self.data.to(*args, **options)
        permutations = [None if x is None else x.to(data.device) for x in (self.sorted_indices, self.unsorted_indices)]
        return PackedSequence(data, self.batch_sizes, *permutations)

    def cpu(self) -> PackedSequence:
        """Return a copy with `data` on the CPU."""
        return self.to("cpu")

    def cuda(self) -> PackedSequence:
        """Return a copy with `data` on the device cuda."""
        return self.to("cuda")

    @property
    def is_cuda(self) -> bool:
        """Whether `data` is on the device cuda."""
        return self.data.is_cuda

    of = DeprecatedAlias("with_data")


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the inverse of `permutation`, or None if it is None."""
    return None if permutation is None else argsort(permutation)


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences, (L, N, …) or (N, L, …) if `batch_first`, with `lengths`, a list or tensor (N,).

    The sequences must be sorted by decreasing length unless `enforce_sorted` is False. Exporting a recurrent network
    requires sorted sequences. Raises ArgumentError if they are not sorted, and ShapeError unless there are N lengths
    from 1 to L.

    >>> import minigrad as mg
    >>> packed = pack_padded_sequence(mg.tensor([[1, 2, 3], [4, 0, 0]]), [3, 1], batch_first=True)
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1, 4, 2, 3], [2, 1, 1])
    """
    rows = check_tensor(input, "pack_padded_sequence")
    length_list = [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]
    if rows.ndim < 2:
        raise ShapeError(
            f"pack_padded_sequence: expected input (L, N, …), or (N, L, …) if batch_first, but got {rows.shape}."
        )
    max_length, batch_size = rows.shape[1::-1] if batch_first else rows.shape[:2]
    if len(length_list) != batch_size or not length_list or min(length_list) < 1 or max(length_list) > max_length:
        raise ShapeError(
            f"pack_padded_sequence: expected `len(lengths)` to be equal to batch_size={batch_size}, and lengths "
            f"greater than 0 and at most {max_length}, but got lengths={length_list}.\n"
            "  Leave out empty sequences: they cannot be packed."
        )
    permutation = sorted(range(batch_size), key=lambda k: -length_list[k])
    if enforce_sorted and permutation != list(range(batch_size)):
        raise ArgumentError(
            f"pack_padded_sequence: lengths must be sorted in decreasing order, but got {length_list}.\n"
            "  Write enforce_sorted=False to sort them; unpacking restores their order."
        )
    sizes = [sum(n > step for n in length_list) for step in range(max(length_list))]
    row_stride, step_stride = (max_length, 1) if batch_first else (1, batch_size)
    indices = [row_stride * k + step_stride * step for step, size in enumerate(sizes) for k in permutation[:size]]
    data = rows.flatten(0, 1).index_select(0, tensor(indices, dtype=int64, device=rows.device))
    sorted_indices = None if enforce_sorted else tensor(permutation, dtype=int64, device=rows.device)
    packed = PackedSequence(data, tensor(sizes, dtype=int64, device="cpu"), sorted_indices)
    packed._sizes = sizes
    return packed


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Pad packed sequences like `pad_sequence`. Return them in their original order, and int64 lengths (N,).

    `total_length` is the length after padding. Raises ShapeError if a sequence is longer.

    >>> import minigrad as mg
    >>> padded, lengths = pad_packed_sequence(pack_sequence([mg.tensor([1, 2, 3]), mg.tensor([4])]), batch_first=True)
    >>> padded.tolist(), lengths.tolist()
    ([[1, 2, 3], [4, 0, 0]], [3, 1])
    """
    if not isinstance(sequence, PackedSequence):
        raise DTypeError(f"pad_packed_sequence: expected a PackedSequence, but got {type(sequence).__name__}.")
    data, sizes = sequence.data, sequence.sizes
    length, batch_size = len(sizes) if total_length is None else total_length, sizes[0]
    if length < len(sizes):
        raise ShapeError(f"pad_packed_sequence: {total_length=}, but the longest sequence has length {len(sizes)}.")
    starts, padding_index = accumulate(sizes, initial=0), len(data)  # `padding_index` is a row of padding
    index_rows = [
        [k + start if k < n else padding_index for k in range(batch_size)]
        for n, start in zip(sizes, starts, strict=False)
    ]
    factory_kwargs: Any = {"dtype": int64, "device": data.device}
    indices = tensor(index_rows + [[padding_index] * batch_size] * (length - len(sizes)), **factory_kwargs)
    lengths = tensor([sum(n > rank for n in sizes) for rank in range(batch_size)], **factory_kwargs)
    if sequence.unsorted_indices is not None:
        indices = indices.index_select(1, sequence.unsorted_indices)
        lengths = lengths.index_select(0, sequence.unsorted_indices)
    indices = indices.T if batch_first else indices
    rows = cat([data, data.new_full((1, *data.shape[1:]), padding_value)])
    return rows.index_select(0, indices.flatten()).reshape(*indices.shape, *data.shape[1:]), lengths.to("cpu")


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (L₁, …), (L₂, …), …; see `pack_padded_sequence`."""
    return pack_padded_sequence(pad_sequence(sequences), [len(x) for x in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the sequences of a PackedSequence in their original order."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)


def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Stack sequences (L₁, …), (L₂, …), …, padded to the longest, into (L, N, …), or (N, L, …) if `batch_first`.

    Raises ArgumentError if there are no sequences, or if `padding_side` is not "right" or "left".

    >>> import minigrad as mg
    >>> pad_sequence([mg.tensor([1, 2, 3]), mg.tensor([4])], batch_first=True).tolist()
    [[1, 2, 3], [4, 0, 0]]
    """
    check_option(padding_side, ("right", "left"), "pad_sequence", "padding_side")
    rows = list(sequences)
    if not rows:
        raise ArgumentError("pad_sequence: expected at least one sequence, but got an empty list.")
    longest = max(len(x) for x in rows)
    padded = []
    for x in rows:
        padding = x.new_full((longest - len(x), *x.shape[1:]), padding_value)
        padded.append(cat([x, padding] if padding_side == "right" else [padding, x]))
    return stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Split a padded batch, (L, N, …), or (N, L, …) if `batch_first`, into sequences with `lengths` (N,)."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:length] for row, length in zip(rows, lengths.tolist(), strict=True)]


def __getattr__(name: str) -> Any:
    from minigrad.pytorch.import_hooks import resolve_missing

    return resolve_missing(__name__, name)
