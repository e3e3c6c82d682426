"""Datasets: what has examples, by number or one after another. Names and meaning are PyTorch's (`torch.utils.data`)."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

from minigrad.core.errors import ArgumentError, DTypeError, ShapeError, a_kind
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
    "example",
    "examples",
    "random_split",
]

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Examples by number: a subclass says what ``dataset[k]`` is, and mostly ``len(dataset)``. ``a + b`` joins two.

    >>> class Squares(Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, index):
    ...         return index * index
    >>> [(Squares() + Squares())[k] for k in (1, 3, 4, 6)]
    [1, 9, 0, 4]
    """

    def __getitem__(self, index: Any) -> T_co:
        """Example number `index`."""
        raise NotImplementedError(f"{type(self).__name__}: say in __getitem__ what example number {index} is.")

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Examples one after another: a subclass says in ``__iter__`` which. It has no numbers, so nothing shuffles it.

    With worker processes each goes through a copy of its own; `get_worker_info` says there which part to take.
    """

    def __iter__(self) -> Iterator[T_co]:
        """The examples, from the first."""
        raise NotImplementedError(f"{type(self).__name__}: yield its examples in __iter__.")

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The rows of one or more tensors: example k is ``(a[k], b[k], …)``. Raises ShapeError if they have not as many.

    A `DataLoader` takes a batch of them by one gather a tensor, on the device where they are.

    >>> import minigrad as mg
    >>> data = TensorDataset(mg.tensor([[1.0], [2.0]]), mg.tensor([0, 1]))
    >>> len(data), data[1]
    (2, (tensor([2.]), tensor(1)))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if not tensors:
            raise ArgumentError("TensorDataset: it takes one tensor or more, none were given.")
        for k, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor):
                raise DTypeError(
                    f"TensorDataset: argument {k} is {a_kind(tensor)}, not a tensor.\n  Write mg.tensor(…)."
                )
            if not tensor.ndim:
                raise ShapeError(f"TensorDataset: tensor {k} is one number, without rows.")
        if len({len(tensor) for tensor in tensors}) > 1:
            counts = ", ".join(str(len(tensor)) for tensor in tensors)
            raise ShapeError(f"TensorDataset: its tensors have {counts} rows, where all have as many.")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self) -> int:
        return len(self.tensors[0])

    def to(self, device: str) -> TensorDataset:
        """The same rows on `device`, to which they go once."""
        return TensorDataset(*[tensor.to(device) for tensor in self.tensors])


class StackDataset(Dataset[Any]):
    """Several datasets side by side: example k is ``(a[k], b[k], …)``, or a dict if they are given by name.

    Raises ArgumentError for none or for both ways at once, ShapeError if they have not as many examples.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ArgumentError("StackDataset: give datasets, either all by place or all by name.")
        self.datasets: Any = args or kwargs
        lengths = [len(dataset) for dataset in args or kwargs.values()]
        if len(set(lengths)) > 1:
            raise ShapeError(f"StackDataset: they have {lengths} examples, where all have as many.")
        self._length = lengths[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple([dataset[index] for dataset in self.datasets])

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """Several examples at once, from datasets that give those."""
        named = self.datasets if isinstance(self.datasets, dict) else dict(enumerate(self.datasets))
        columns = [examples(dataset, indices, "StackDataset") for dataset in named.values()]
        if isinstance(self.datasets, dict):
            return [dict(zip(named, row, strict=True)) for row in zip(*columns, strict=True)]
        return list(zip(*columns, strict=True))

    def __len__(self) -> int:
        return self._length


class Subset(Dataset[T_co]):
    """Some examples of a dataset, in the order of `indices`."""

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[k] for k in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """Several examples at once, from a dataset that gives those."""
        return examples(self.dataset, [self.indices[k] for k in indices], "Subset")

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset[T_co]):
    """Several datasets one after another. Raises ArgumentError for none, DTypeError for those without numbers."""

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ArgumentError("ConcatDataset: datasets should not be an empty iterable.")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise DTypeError("ConcatDataset: an IterableDataset has no example number k.\n  Write ChainDataset([…]).")
        self.cumulative_sizes = list(accumulate(_count(dataset, "ConcatDataset") for dataset in self.datasets))

    def __getitem__(self, index: Any) -> Any:
        if not -len(self) <= index < len(self):
            raise ShapeError(f"ConcatDataset: there is no example {index}: it has {len(self)}.")
        index %= len(self)
        which = bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset[T_co]):
    """Several iterable datasets one after another. Raises DTypeError where one is not iterable."""

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[T_co]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise DTypeError(f"ChainDataset: {type(dataset).__name__} is not an IterableDataset.")
            yield from dataset

    def __len__(self) -> int:
        return sum(_count(dataset, "ChainDataset") for dataset in self.datasets)


def random_split(
    dataset: Dataset[T_co], lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[T_co]]:
    """`dataset` cut at random into parts of the given lengths, or shares that add up to 1; what is left over of shares
    goes one each to the first parts. The same generator gives the same parts on every device.

    Raises ArgumentError if the lengths do not add up to the number of examples, or the shares to 1.

    >>> import minigrad as mg
    >>> train, test = random_split(range(10), [0.8, 0.2], generator=mg.Generator(0))
    >>> len(train), len(test), sorted([*train, *test]) == list(range(10))
    (8, 2, True)
    """
    count = _count(dataset, "random_split")
    sizes = _sizes(count, lengths)
    order = iter(randperm(count, generator=generator, device="numpy").tolist())
    return [Subset(dataset, [next(order) for _ in range(size)]) for size in sizes]


def _sizes(count: int, lengths: Sequence[int | float]) -> list[int]:
    if math.isclose(sum(lengths), 1) and any(isinstance(share, float) for share in lengths):
        if min(lengths) < 0:
            raise ArgumentError(f"random_split: shares are from 0 to 1, not {list(lengths)}.")
        sizes = [math.floor(count * share) for share in lengths]
        for k in range(count - sum(sizes)):
            sizes[k % len(sizes)] += 1
        if 0 in sizes:
            warnings.warn(f"random_split: of {count} examples, {sizes} leave a part empty.", stacklevel=3)
        return sizes
    if sum(lengths) != count or min(lengths, default=0) < 0 or not all(isinstance(n, int) for n in lengths):
        raise ArgumentError(
            f"random_split: the lengths {list(lengths)} add up to {sum(lengths)}, but there are {count} examples.\n"
            "  Give whole numbers that add up to that, or shares that add up to 1."
        )
    return [int(n) for n in lengths]


def examples(dataset: Any, indices: Iterable[Any], asked: str = "DataLoader") -> list[Any]:
    """The examples of these numbers, which a dataset with `__getitems__` gives at once. Raises as `example`."""
    together = getattr(dataset, "__getitems__", None)
    if not together:
        return [example(dataset, index) for index in indices]
    wanted = list(indices)
    found = list(together(wanted))
    if len(found) != len(wanted):
        raise ShapeError(
            f"{asked}: {len(wanted)} examples were asked of {type(dataset).__name__}.__getitems__, and it gave "
            f"{len(found)}."
        )
    return found


def example(dataset: Any, index: Any) -> Any:
    """Example `index`; what it raises says which it was."""
    try:
        return dataset[index]
    except Exception as error:
        error.add_note(f"It was raised by dataset[{index}] of {type(dataset).__name__}.")
        raise


def _count(dataset: Any, asked: str) -> int:
    if not hasattr(dataset, "__len__"):
        raise DTypeError(f"{asked}: {type(dataset).__name__} does not say how many examples it has, by __len__.")
    return len(dataset)
