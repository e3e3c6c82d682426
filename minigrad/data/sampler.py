"""Samplers: in which order the examples of a dataset are taken, and how they are cut into batches.

One that draws at random takes a key from its generator whenever an epoch begins, and orders by that: so the order is
the same on every device, and whoever knows where the generator stood can have it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from math import inf
from typing import Any, Generic, TypeVar

from minigrad import random
from minigrad.core.dtypes import float64, int64
from minigrad.core.errors import ArgumentError
from minigrad.core.tensor import Tensor
from minigrad.functional import cat
from minigrad.functional.creation import arange, tensor
from minigrad.random import Generator

__all__ = [
    "BatchSampler",
    "OrderedSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
    "check_batch_size",
    "key_of",
]


T_co = TypeVar("T_co", covariant=True)
PIECE = 1 << 20  # as many numbers are drawn at once


def key_of(generator: Generator | None) -> Generator:
    """A generator whose numbers nobody else has, by a key drawn from `generator`, or from the default one."""
    return Generator((random.default_generator if generator is None else generator).next_key())


def check_batch_size(size: Any) -> None:
    """Raise ArgumentError if `size` is not an int of 1 or more."""
    if not _is_positive(size):
        raise ArgumentError(f"batch_size should be a positive integer value, but got batch_size={size!r}")


def _is_positive(n: Any, none: bool = False) -> bool:
    return n is None if none and n is None else isinstance(n, int) and not isinstance(n, bool) and n > 0


class Sampler(Generic[T_co]):
    """Numbers of examples, in the order in which to take them: a subclass yields them in ``__iter__``."""

    def __iter__(self) -> Iterator[Any]:
        """The numbers of one epoch."""
        raise NotImplementedError(f"{type(self).__name__}: yield the numbers of examples in __iter__.")


class OrderedSampler(Sampler[int]):
    """One whose epoch is known at its beginning, as a tensor."""

    def order(self, device: str) -> Tensor:
        """The numbers of one epoch, as int64 on `device`."""
        raise NotImplementedError

    def pieces(self, device: str) -> Iterator[Tensor]:
        """The numbers of `order` one piece after another, each computed when it is asked for.

        What is drawn from the sampler's generator is drawn when this is called.
        """
        return iter([self.order(device)])

    def __iter__(self) -> Iterator[int]:
        for piece in self.pieces("numpy"):
            yield from piece.tolist()


class SequentialSampler(OrderedSampler):
    """0, 1, 2, …: the examples as they stand."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def order(self, device: str) -> Tensor:
        """The numbers from 0 to the last."""
        return arange(len(self), device=device)

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(OrderedSampler):
    """Each example once in random order; with `replacement` each time any of them. `num_samples` in all.

    Without replacement more samples than there are examples go through them again, in another order.

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
        self.data_source, self.replacement, self._asked, self.generator = (
            data_source,
            replacement,
            num_samples,
            generator,
        )
        if not _is_positive(num_samples, none=True):
            raise ArgumentError(
                f"RandomSampler: num_samples should be a positive integer value, but got num_samples={num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """How many examples an epoch has: as many as there are, unless said otherwise."""
        return len(self.data_source) if self._asked is None else self._asked

    def order(self, device: str) -> Tensor:
        """The numbers of one epoch, drawn where they are to be."""
        found = list(self.pieces(device))
        return found[0] if len(found) == 1 else cat(found) if found else arange(0, device=device)

    def pieces(self, device: str) -> Iterator[Tensor]:
        """The numbers of `order`: with `replacement` a million at a time, else a round through all at a time."""
        n, wanted, source = len(self.data_source), self.num_samples, key_of(self.generator)
        if not n and wanted:
            raise ArgumentError(f"RandomSampler: {wanted} samples of no examples.")
        step = PIECE if self.replacement else max(n, 1)

        def drawn(count: int) -> Tensor:
            if self.replacement:
                return random.randint(n, (count,), generator=source, device=device)
            found = random.randperm(n, generator=source, device=device)
            return found if count == n else found[:count]

        return (drawn(min(step, wanted - start)) for start in range(0, wanted, step))

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(OrderedSampler):
    """The numbers in `indices`, each once in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def order(self, device: str) -> Tensor:
        """The numbers of one epoch."""
        source = key_of(self.generator)
        chosen = tensor([int(k) for k in self.indices], dtype=int64, device=device)
        return chosen[random.randperm(len(self.indices), generator=source, device=device)]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(OrderedSampler):
    """`num_samples` numbers, k as often as ``weights[k]`` is large; without `replacement` each at most once.

    Weights need not add up to 1. Raises ArgumentError if they are not one row of numbers, 0 or more.
    """

    def __init__(
        self,
        weights: Sequence[float] | Tensor,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        if not _is_positive(num_samples):
            raise ArgumentError(
                "WeightedRandomSampler: num_samples should be a positive integer value, but got "
                f"num_samples={num_samples}"
            )
        rows = weights.tolist() if isinstance(weights, Tensor) else list(weights)
        if any(isinstance(row, list) for row in rows):
            raise ArgumentError("WeightedRandomSampler: weights are one row of numbers, a weight an example.")
        self.weights = [float(weight) for weight in rows]
        above = sum(0 < weight < inf for weight in self.weights)
        if any(not 0 <= weight < inf for weight in self.weights) or not above:
            raise ArgumentError("WeightedRandomSampler: weights are finite, 0 or more, and at least one is above 0.")
        if not replacement and num_samples > above:
            raise ArgumentError(
                f"WeightedRandomSampler: {num_samples} numbers cannot be drawn from {above} weights above 0 without "
                "replacement."
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def order(self, device: str) -> Tensor:
        """The numbers of one epoch, drawn by NumPy in float64, which not every device has."""
        weights = tensor(self.weights, dtype=float64, device="numpy")
        drawn = random.multinomial(weights, self.num_samples, self.replacement, generator=key_of(self.generator))
        return drawn.to(device)

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The numbers of another sampler, `batch_size` at a time; a last batch of fewer is left out if `drop_last`.

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
