"""Samplers: the order in which the samples of a dataset are loaded, and how they are grouped into batches.

A random sampler draws one key from its generator at the start of an epoch and derives the order from it, so the order
is the same on every device and can be reproduced from the state of the generator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from math import inf
from typing import Any, Generic, TypeVar

from minigrad import random
from minigrad.core.deprecation import DeprecatedAlias
from minigrad.core.dtypes import float64, int64
from minigrad.core.errors import ArgumentError
from minigrad.core.tensor import Tensor
from minigrad.functional import cat
from minigrad.functional.creation import arange, tensor
from minigrad.random import Generator

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "TensorSampler",
    "WeightedRandomSampler",
    "check_batch_size",
    "fork_generator",
]


T_co = TypeVar("T_co", covariant=True)
CHUNK_SIZE = 1 << 20  # number of indices drawn at a time


def fork_generator(generator: Generator | None) -> Generator:
    """Return an independent generator, seeded with a key drawn from `generator` or the default generator."""
    return Generator((random.default_generator if generator is None else generator).next_key())


def check_batch_size(size: Any) -> None:
    """Raise ArgumentError if `size` is not a positive int."""
    if not _is_positive_int(size):
        raise ArgumentError(f"batch_size should be a positive integer value, but got batch_size={size!r}")


def _is_positive_int(n: Any, allow_none: bool = False) -> bool:
    return n is None if allow_none and n is None else isinstance(n, int) and not isinstance(n, bool) and n > 0


class Sampler(Generic[T_co]):
    """Base class of samplers: subclasses implement ``__iter__`` to yield sample indices."""

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the indices of one epoch."""
        raise NotImplementedError(f"{type(self).__name__}: implement __iter__ to yield sample indices.")


class TensorSampler(Sampler[int]):
    """Sampler that returns all indices of an epoch as a tensor."""

    def indices_tensor(self, device: str) -> Tensor:
        """Return the indices of one epoch as an int64 tensor on `device`."""
        raise NotImplementedError

    def index_chunks(self, device: str) -> Iterator[Tensor]:
        """Iterate over the indices of `indices_tensor` in chunks, each computed lazily.

        The key is drawn from the sampler's generator when this method is called.
        """
        return iter([self.indices_tensor(device)])

    def __iter__(self) -> Iterator[int]:
        for chunk in self.index_chunks("numpy"):
            yield from chunk.tolist()

    order = DeprecatedAlias("indices_tensor")
    pieces = DeprecatedAlias("index_chunks")


class SequentialSampler(TensorSampler):
    """Sampler that yields 0, 1, 2, …, in this order."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def indices_tensor(self, device: str) -> Tensor:
        """Return the indices in ascending order."""
        return arange(len(self), device=device)

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(TensorSampler):
    """Sampler that draws `num_samples` indices at random, with or without `replacement`.

    Without replacement, if `num_samples` exceeds the length, further permutations are appended.

    >>> import minigrad as mg
    >>> sorted(RandomSampler(range(4), generator=mg.Generator(0)))
    [0, 1, 2, 3]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source, self.replacement, self._num_samples, self.generator = (
            data_source,
            replacement,
            num_samples,
            generator,
        )
        if not _is_positive_int(num_samples, allow_none=True):
            raise ArgumentError(
                f"RandomSampler: num_samples should be a positive integer value, but got num_samples={num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """The number of samples per epoch; defaults to the length of the dataset."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def indices_tensor(self, device: str) -> Tensor:
        """Return the indices of one epoch, drawn on `device`."""
        chunks = list(self.index_chunks(device))
        return chunks[0] if len(chunks) == 1 else cat(chunks) if chunks else arange(0, device=device)

    def index_chunks(self, device: str) -> Iterator[Tensor]:
        """Iterate over the indices of `indices_tensor` in chunks. A chunk is a million indices with `replacement`, else
        one permutation."""
        n, total, generator = len(self.data_source), self.num_samples, fork_generator(self.generator)
        if not n and total:
            raise ArgumentError(f"RandomSampler: cannot draw {total} samples from an empty dataset.")
        step = CHUNK_SIZE if self.replacement else max(n, 1)

        def draw_chunk(count: int) -> Tensor:
            if self.replacement:
                return random.randint(n, (count,), generator=generator, device=device)
            permutation = random.randperm(n, generator=generator, device=device)
            return permutation if count == n else permutation[:count]

        return (draw_chunk(min(step, total - start)) for start in range(0, total, step))

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(TensorSampler):
    """Sampler that yields a random permutation of `indices`."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def indices_tensor(self, device: str) -> Tensor:
        """Return the indices of one epoch."""
        generator = fork_generator(self.generator)
        indices = tensor([int(k) for k in self.indices], dtype=int64, device=device)
        return indices[random.randperm(len(self.indices), generator=generator, device=device)]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(TensorSampler):
    """Sampler that draws `num_samples` indices with probabilities proportional to `weights`.

    Weights need not sum to 1. Raises ArgumentError if they are not a 1-D sequence of non-negative floats.
    """

    def __init__(
        self,
        weights: Sequence[float] | Tensor,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        if not _is_positive_int(num_samples):
            raise ArgumentError(
                "WeightedRandomSampler: num_samples should be a positive integer value, but got "
                f"num_samples={num_samples}"
            )
        rows = weights.tolist() if isinstance(weights, Tensor) else list(weights)
        if any(isinstance(row, list) for row in rows):
            raise ArgumentError("WeightedRandomSampler: weights should be a 1d sequence, with one weight per sample.")
        self.weights = [float(weight) for weight in rows]
        positive_count = sum(0 < weight < inf for weight in self.weights)
        if any(not 0 <= weight < inf for weight in self.weights) or not positive_count:
            raise ArgumentError(
                "WeightedRandomSampler: weights should be finite and non-negative, and at least one should be positive."
            )
        if not replacement and num_samples > positive_count:
            raise ArgumentError(
                f"WeightedRandomSampler: cannot sample {num_samples} indices without replacement from {positive_count} "
                "positive weights."
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def indices_tensor(self, device: str) -> Tensor:
        """Return the indices of one epoch, drawn by NumPy in float64, which not every device supports."""
        weights = tensor(self.weights, dtype=float64, device="numpy")
        indices = random.multinomial(
            weights, self.num_samples, self.replacement, generator=fork_generator(self.generator)
        )
        return indices.to(device)

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Sampler that groups the indices of `sampler` into batches; `drop_last` drops an incomplete last batch.

    >>> list(BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        check_batch_size(batch_size)
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
