"""Sequences of different lengths in one tensor: PyTorch's `nn.utils.rnn`.

Padded ones stand in the rows of a table, filled up to the longest. Packed ones have no filling: their numbers stand
place by place, those of all sequences at the first place, the longest sequence first, then those at the second, …, so
that a recurrent layer computes with so many rows at each place as there are sequences left.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple, cast

from minigrad.core.dtypes import int64
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError
from minigrad.core.tensor import Tensor
from minigrad.functional import argsort, cat, stack
from minigrad.functional.checks import check_option, tensor_of
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
__path__: list[str] = []  # no folder: what is imported from here and is not here, `pytorch.modules` answers for


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Packed sequences: `data`, (numbers of places in all, …), and `batch_sizes`, how many sequences have each place.

    `sorted_indices` are the sequences, the longest first, and `unsorted_indices` say where each is among them; both are
    None where they came in that order. Made by `pack_padded_sequence` and `pack_sequence`.
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
            raise ArgumentError(
                "PackedSequence: without batch_sizes data is no sequences.\n  Write pack_sequence(list)."
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    @property
    def sizes(self) -> list[int]:
        """`batch_sizes` as ints, known since packing: a step that `mg.jit` records need not read them."""
        return cast(list[int], self.batch_sizes.tolist()) if self._sizes is None else self._sizes

    def of(self, data: Tensor) -> PackedSequence:
        """Other `data` for the same places of the same sequences, such as what a layer makes of them."""
        found = PackedSequence(data, *self[1:])
        found._sizes = self._sizes
        return found

    def to(self, *args: Any, **options: Any) -> PackedSequence:
        """The same with `data` moved or converted, as ``Tensor.to`` does."""
        data = self.data.to(*args, **options)
        order = [None if x is None else x.to(data.device) for x in (self.sorted_indices, self.unsorted_indices)]
        return PackedSequence(data, self.batch_sizes, *order)

    def cpu(self) -> PackedSequence:
        """The same on the device cpu."""
        return self.to("cpu")

    def cuda(self) -> PackedSequence:
        """The same on the device cuda."""
        return self.to("cuda")

    @property
    def is_cuda(self) -> bool:
        """Whether `data` is on the device cuda."""
        return self.data.is_cuda


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Where each index from 0 on stands in `permutation`; None for None."""
    return None if permutation is None else argsort(permutation)


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """The sequences of `lengths`, a list or a tensor (N,), in `input`, (L, N, …) or if `batch_first` (N, L, …), packed.

    They stand from the longest to the shortest, as a recurrent network that is to be exported needs; else say
    ``enforce_sorted=False``. Raises ArgumentError if they do not, and ShapeError for lengths that are not from 1 to L,
    or not N.

    >>> import minigrad as mg
    >>> packed = pack_padded_sequence(mg.tensor([[1, 2, 3], [4, 0, 0]]), [3, 1], batch_first=True)
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1, 4, 2, 3], [2, 1, 1])
    """
    rows = tensor_of(input, "pack_padded_sequence")
    counts = [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]
    if rows.ndim < 2:
        raise ShapeError(f"pack_padded_sequence: input is (L, N, …), or (N, L, …) if batch_first; here {rows.shape}.")
    longest, many = rows.shape[1::-1] if batch_first else rows.shape[:2]
    if len(counts) != many or not counts or min(counts) < 1 or max(counts) > longest:
        raise ShapeError(
            f"pack_padded_sequence: lengths={counts}, of {many} sequences of up to {longest} places: one for each "
            "sequence, from 1 on.\n  A sequence of no place cannot be packed: leave it out."
        )
    order = sorted(range(many), key=lambda k: -counts[k])
    if enforce_sorted and order != list(range(many)):
        raise ArgumentError(
            f"pack_padded_sequence: lengths={counts} are not from the longest to the shortest.\n"
            "  Write enforce_sorted=False: they are sorted then, and come back in their own order."
        )
    sizes = [sum(n > place for n in counts) for place in range(max(counts))]
    by_row, by_place = (longest, 1) if batch_first else (1, many)
    at = [by_row * k + by_place * place for place, size in enumerate(sizes) for k in order[:size]]
    data = rows.flatten(0, 1).index_select(0, tensor(at, dtype=int64, device=rows.device))
    ranks = None if enforce_sorted else tensor(order, dtype=int64, device=rows.device)
    packed = PackedSequence(data, tensor(sizes, dtype=int64, device="cpu"), ranks)
    packed._sizes = sizes
    return packed


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Packed sequences as `pad_sequence` puts them, in the order in which they came, and their lengths, (N,), int64.

    With `total_length` filled up to that, which ShapeError is raised for if a sequence is longer.

    >>> import minigrad as mg
    >>> padded, lengths = pad_packed_sequence(pack_sequence([mg.tensor([1, 2, 3]), mg.tensor([4])]), batch_first=True)
    >>> padded.tolist(), lengths.tolist()
    ([[1, 2, 3], [4, 0, 0]], [3, 1])
    """
    if not isinstance(sequence, PackedSequence):
        raise DTypeError(f"pad_packed_sequence: {type(sequence).__name__} is no PackedSequence.")
    data, sizes = sequence.data, sequence.sizes
    length, many = len(sizes) if total_length is None else total_length, sizes[0]
    if length < len(sizes):
        raise ShapeError(f"pad_packed_sequence: total_length={total_length}, but a sequence has {len(sizes)} places.")
    starts, none = accumulate(sizes, initial=0), len(data)  # the row of padding stands after all others
    at = [[k + start if k < n else none for k in range(many)] for n, start in zip(sizes, starts, strict=False)]
    like: Any = {"dtype": int64, "device": data.device}
    places = tensor(at + [[none] * many] * (length - len(sizes)), **like)
    lengths = tensor([sum(n > rank for n in sizes) for rank in range(many)], **like)
    if sequence.unsorted_indices is not None:
        places = places.index_select(1, sequence.unsorted_indices)
        lengths = lengths.index_select(0, sequence.unsorted_indices)
    places = places.T if batch_first else places
    rows = cat([data, data.new_full((1, *data.shape[1:]), padding_value)])
    return rows.index_select(0, places.flatten()).reshape(*places.shape, *data.shape[1:]), lengths.to("cpu")


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences (L₁, …), (L₂, …), … packed; see `pack_padded_sequence`."""
    return pack_padded_sequence(pad_sequence(sequences), [len(x) for x in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that were packed, in the order in which they came."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)


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
    from minigrad.pytorch.modules import absent

    return absent(__name__, name)
