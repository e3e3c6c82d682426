"""Map-style and iterable-style datasets, with the names and semantics of `torch.utils.data`."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

from minigrad.core.errors import ArgumentError, DTypeError, ShapeError, describe_type
from minigrad.core.tensor import Tensor
from minigrad.random import Generator, randperm

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "fetch_sample",
    "fetch_samples",
    "random_split",
]

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Base class of map-style datasets: subclasses implement `__getitem__` and usually `__len__`.

    ``a + b`` concatenates two datasets.

    >>> class Squares(Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, index):
    ...         return index * index
    >>> [(Squares() + Squares())[k] for k in (1, 3, 4, 6)]
    [1, 9, 0, 4]
    """

    def __getitem__(self, index: Any) -> T_co:
        """Return sample `index`."""
        raise NotImplementedError(
            f"{type(self).__name__}: implement __getitem__ to return the sample at index {index}."
        )

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Base class of iterable-style datasets: subclasses implement `__iter__`. Samples cannot be indexed or shuffled.

    Each worker process iterates over its own copy; use `get_worker_info` there to select the worker's shard.
    """

    def __iter__(self) -> Iterator[T_co]:
        """Iterate over the samples."""
        raise NotImplementedError(f"{type(self).__name__}: implement __iter__ to yield the samples.")

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Dataset wrapping tensors: sample k is ``(a[k], b[k], …)``. Raises ShapeError if their first dimensions differ.

    A `DataLoader` fetches a batch with one gather per tensor, on the tensors' device.

    >>> import minigrad as mg
    >>> data = TensorDataset(mg.tensor([[1.0], [2.0]]), mg.tensor([0, 1]))
    >>> len(data), data[1]
    (2, (tensor([2.]), tensor(1)))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if not tensors:
            raise ArgumentError("TensorDataset: expected at least one tensor, but got none.")
        for k, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor):
                raise DTypeError(
                    f"TensorDataset: expected argument {k} to be a tensor, but got {describe_type(tensor)}.\n"
                    "  Write mg.tensor(…)."
                )
            if not tensor.ndim:
                raise ShapeError(f"TensorDataset: tensor {k} is 0-dimensional, so it has no rows to index.")
        if len({len(tensor) for tensor in tensors}) > 1:
            sizes = ", ".join(str(len(tensor)) for tensor in tensors)
            raise ShapeError(f"TensorDataset: size mismatch between tensors: their first dimensions are {sizes}.")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self) -> int:
        return len(self.tensors[0])

    def to(self, device: str) -> TensorDataset:
        """Return a dataset with the tensors copied to `device`."""
        return TensorDataset(*[tensor.to(device) for tensor in self.tensors])


class StackDataset(Dataset[Any]):
    """Dataset zipping several datasets: sample k is ``(a[k], b[k], …)``, or a dict for keyword arguments.

    Raises ArgumentError for no datasets, or if they are passed in both ways; ShapeError if the lengths differ.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ArgumentError("StackDataset: pass datasets either all as positional or all as keyword arguments.")
        self.datasets: Any = args or kwargs
        lengths = [len(dataset) for dataset in args or kwargs.values()]
        if len(set(lengths)) > 1:
            raise ShapeError(f"StackDataset: size mismatch between datasets: their lengths are {lengths}.")
        self._length = lengths[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple([dataset[index] for dataset in self.datasets])

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """Return the samples at `indices`, fetched in one call from datasets with `__getitems__`."""
        datasets = self.datasets if isinstance(self.datasets, dict) else dict(enumerate(self.datasets))
        columns = [fetch_samples(dataset, indices, "StackDataset") for dataset in datasets.values()]
        if isinstance(self.datasets, dict):
            return [dict(zip(datasets, row, strict=True)) for row in zip(*columns, strict=True)]
        return list(zip(*columns, strict=True))

    def __len__(self) -> int:
        return self._length


class Subset(Dataset[T_co]):
    """Subset of a dataset at `indices`, in that order."""

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[k] for k in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """Return the samples at `indices`, fetched in one call if the dataset has `__getitems__`."""
        return fetch_samples(self.dataset, [self.indices[k] for k in indices], "Subset")

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset[T_co]):
    """Concatenation of map-style datasets. Raises ArgumentError for none, DTypeError for an iterable-style dataset."""

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ArgumentError("ConcatDataset: datasets should not be an empty iterable.")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise DTypeError("ConcatDataset does not support IterableDataset.\n  Write ChainDataset([…]).")
        self.cumulative_sizes = list(accumulate(_checked_len(dataset, "ConcatDataset") for dataset in self.datasets))

    def __getitem__(self, index: Any) -> Any:
        if not -len(self) <= index < len(self):
            raise ShapeError(f"ConcatDataset: index {index} is out of range for a dataset of length {len(self)}.")
        index %= len(self)
        dataset_index = bisect_right(self.cumulative_sizes, index)
        return self.datasets[dataset_index][index - (self.cumulative_sizes[dataset_index - 1] if dataset_index else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset[T_co]):
    """Concatenation of iterable-style datasets. Raises DTypeError for other datasets."""

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[T_co]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise DTypeError(f"ChainDataset only supports IterableDataset, but got {type(dataset).__name__}.")
            yield from dataset

    def __len__(self) -> int:
        return sum(_checked_len(dataset, "ChainDataset") for dataset in self.datasets)


def random_split(
    dataset: Dataset[T_co], lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[T_co]]:
    """Randomly split `dataset` into non-overlapping subsets of the given lengths, or fractions that sum to 1.

    Lengths from fractions are rounded down, and the remaining samples are assigned to the first subsets, one each. The
    split depends only on the generator, not on the device. Raises ArgumentError if the lengths sum neither to the
    dataset's length nor to 1.

    >>> import minigrad as mg
    >>> train, test = random_split(range(10), [0.8, 0.2], generator=mg.Generator(0))
    >>> len(train), len(test), sorted([*train, *test]) == list(range(10))
    (8, 2, True)
    """
    count = _checked_len(dataset, "random_split")
    sizes = _split_sizes(count, lengths)
    order = iter(randperm(count, generator=generator, device="numpy").tolist())
    return [Subset(dataset, [next(order) for _ in range(size)]) for size in sizes]


def _split_sizes(count: int, lengths: Sequence[int | float]) -> list[int]:
    if math.isclose(sum(lengths), 1) and any(isinstance(fraction, float) for fraction in lengths):
        if min(lengths) < 0:
            raise ArgumentError(f"random_split: fractions must be between 0 and 1, but got {list(lengths)}.")
        sizes = [math.floor(count * share) for share in lengths]
        for k in range(count - sum(sizes)):
            sizes[k % len(sizes)] += 1
        if 0 in sizes:
            warnings.warn(
                f"random_split: splitting {count} samples into lengths {sizes} results in an empty dataset.",
                stacklevel=3,
            )
        return sizes
    if sum(lengths) != count or min(lengths, default=0) < 0 or not all(isinstance(n, int) for n in lengths):
        raise ArgumentError(
            f"random_split: the sum of lengths {list(lengths)} is {sum(lengths)}, but the dataset has length {count}.\n"
            "  Pass integers that sum to that length, or fractions that sum to 1."
        )
    return [int(n) for n in lengths]


def fetch_samples(dataset: Any, indices: Iterable[Any], caller: str = "DataLoader") -> list[Any]:
    """Return the samples at `indices`, fetched in one call by `__getitems__` if it exists, else by `fetch_sample`."""
    getitems = getattr(dataset, "__getitems__", None)
    if not getitems:
        return [fetch_sample(dataset, index) for index in indices]
    index_list = list(indices)
    samples = list(getitems(index_list))
    if len(samples) != len(index_list):
        raise ShapeError(
            f"{caller}: {type(dataset).__name__}.__getitems__ returned {len(samples)} samples for {len(index_list)} "
            "indices."
        )
    return samples


def fetch_sample(dataset: Any, index: Any) -> Any:
    """Return ``dataset[index]``. If it raises an exception, a note with the index is added."""
    try:
        return dataset[index]
    except Exception as error:
        error.add_note(f"Raised by dataset[{index}] of {type(dataset).__name__}.")
        raise


def _checked_len(dataset: Any, caller: str) -> int:
    if not hasattr(dataset, "__len__"):
        raise DTypeError(f"{caller}: object of type {type(dataset).__name__} has no len(); implement __len__.")
    return len(dataset)
