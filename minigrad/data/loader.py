"""DataLoader: the batches of a dataset, epoch after epoch.

What PyTorch's has, and three things more. A `TensorDataset` (or a `Subset` of one) is cut where its numbers are: an
epoch's order is drawn on the device, and a batch is one gather a tensor; with `device=` the rows go there once. Orders
follow from the seed on every device. `state_dict` says where an epoch stands, so that it can be gone on with exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count, islice
from types import GenericAlias
from typing import Any

import numpy as np

from minigrad import random
from minigrad.core.dtypes import int64
from minigrad.core.errors import ArgumentError, DTypeError, a_kind, check_function
from minigrad.core.storage import check_device
from minigrad.core.tensor import Tensor
from minigrad.data.collate import default_collate, default_convert, mapped
from minigrad.data.dataset import IterableDataset
from minigrad.data.resident import cut, held, resident
from minigrad.data.sampler import (
    BatchSampler,
    OrderedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    check_batch_size,
)
from minigrad.data.workers import LoaderJob, WorkerPool, batches_of, made, seed_of
from minigrad.functional import index_select
from minigrad.functional.creation import tensor
from minigrad.random import Generator

__all__ = ["DataLoader"]


class DataLoader:
    """The examples of `dataset` in batches of `batch_size`: ``for x, y in DataLoader(data, batch_size=32)``.

    `shuffle` takes them in another order each epoch. `sampler` says which to take, `batch_sampler` which to take
    together. A last batch of fewer is left out if `drop_last`. `collate_fn` makes a batch of a list of examples,
    `default_collate` unless said otherwise; ``batch_size=None`` gives examples one by one, not in batches. `generator`
    is where the order comes from, the default one for None: one key an epoch.

    `device` is where batches are to be. A `TensorDataset` goes there once, at the beginning, others batch by batch.

    `num_workers` processes make the batches, of which each has `prefetch_factor` (2) under way; they live for one
    epoch, or with `persistent_workers` as long as the loader. `worker_init_fn` is called in each with its number.
    `timeout`, in seconds, is how long to wait for a batch, 0 for ever. `pin_memory` is PyTorch's, and there is nothing
    to pin here. See `minigrad.data.workers` for what a worker may do.

    Raises ArgumentError for options that exclude each other or are out of range.

    >>> import minigrad as mg
    >>> data = mg.data.TensorDataset(mg.arange(5), mg.arange(5) * 10)
    >>> for x, y in DataLoader(data, batch_size=2):
    ...     print(x, y)
    tensor([0, 1]) tensor([ 0, 10])
    tensor([2, 3]) tensor([20, 30])
    tensor([4]) tensor([40])
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: str | None = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        device: str | None = None,
    ) -> None:
        self._iterable = isinstance(dataset, IterableDataset)
        if not self._iterable and not hasattr(dataset, "__getitem__"):
            raise DTypeError(
                f"DataLoader: {dataset!r:.100} is {a_kind(dataset)}, and a data set has examples by number.\n"
                "  Write data.TensorDataset(x, y), or a class with __getitem__ and __len__."
            )
        if collate_fn is not None:
            check_function(collate_fn, "DataLoader: collate_fn")
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        _check_order(self._iterable, batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.device = None if device is None else check_device(device, "DataLoader")
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.num_workers, self.timeout, self.worker_init_fn = num_workers, timeout, worker_init_fn
        self.pin_memory, self.prefetch_factor = pin_memory, prefetch_factor or 2
        self.persistent_workers, self.generator = persistent_workers, generator
        self.multiprocessing_context = multiprocessing_context
        if batch_sampler is not None:
            self.batch_size = None
        if sampler is None and not self._iterable and batch_sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.sampler = sampler
        if batch_sampler is None and batch_size is not None and not self._iterable:
            batch_sampler = BatchSampler(sampler or (), batch_size, drop_last)
        self.batch_sampler = batch_sampler
        batched = batch_sampler is not None or batch_size is not None
        self._resident = (
            None if collate_fn is not None or num_workers or not batched else resident(dataset, self.device)
        )
        self._holds = held(dataset)
        self.collate_fn: Callable[[Any], Any] = collate_fn or (default_collate if batched else default_convert)
        self._batched = batched
        self._pool: WorkerPool | None = None
        self._epoch, self._position = 0, 0
        self._start: list[int] | None = None
        self._resuming = False
        self._made_of = frozenset(_FIXED)

    __class_getitem__: Any = classmethod(GenericAlias)  # DataLoader[int], for who writes types

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an option that the next epoch is to have. Raises ArgumentError for those that its order is made of."""
        if name in self.__dict__.get("_made_of", ()):
            raise ArgumentError(
                f"DataLoader: {name} cannot be set after the loader was made: its order was made of it.\n"
                f"  Make another: DataLoader(dataset, {name}=…)."
            )
        if name in ("collate_fn", "num_workers") and "_made_of" in self.__dict__:
            self._resident = None  # batches are made of examples now
        object.__setattr__(self, name, value)

    def of_numbers(self) -> DataLoader:
        """A loader of the numbers of the examples in each batch, in this one's order: for who makes them elsewhere.

        Raises ArgumentError where examples have no numbers, or are not taken in batches.

        >>> list(DataLoader("abcde", batch_size=2).of_numbers())
        [[0, 1], [2, 3], [4]]
        """
        if self.batch_sampler is None:
            raise ArgumentError(
                "DataLoader: it gives examples one by one, or of an IterableDataset, which have no numbers.\n"
                "  Give it a data set with __getitem__ and __len__, and a batch_size."
            )
        numbers = range(len(self.dataset))
        return DataLoader(numbers, batch_sampler=self.batch_sampler, collate_fn=list, generator=self.generator)

    # --- how many, and where it stands ---

    def __len__(self) -> int:
        """How many batches an epoch has. Raises DTypeError where the dataset does not say how many examples it has."""
        if self._iterable:
            if not hasattr(self.dataset, "__len__"):
                raise DTypeError(f"DataLoader: {type(self.dataset).__name__} has no __len__, so nobody knows how many.")
            total = len(self.dataset)
            size = self.batch_size
            return total if size is None else total // size if self.drop_last else -(-total // size)
        chosen: Any = self.sampler if self.batch_sampler is None else self.batch_sampler
        return len(chosen)

    def state_dict(self) -> dict[str, Any]:
        """Where it stands: the epoch, how many of its batches were handed out, and how its order was drawn.

        Plain numbers, to be stored with a checkpoint; a loader made alike that loads them goes on with the next batch,
        in the same order. Where the order comes from the default generator, that one's state is to be stored as well
        (`mg.get_rng_state`). An order drawn by Python's or NumPy's generator is not known here.
        """
        own = self._source()
        begun = self._start if self._position else None
        now = None if own is random.default_generator else _state(own)
        return {"epoch": self._epoch, "position": self._position, "start": begun, "generator": now}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Let the next loop go on where `state_dict` was taken. Raises ArgumentError for what is not such a state."""
        if set(state_dict) != {"epoch", "position", "start", "generator"}:
            raise ArgumentError("DataLoader: this is not the state of a loader; give what its state_dict() returned.")
        own = self._source()
        if (state_dict["generator"] is None) != (own is random.default_generator):
            raise ArgumentError(
                "DataLoader: the state is of a loader "
                + ("without" if state_dict["generator"] is None else "with")
                + " a generator of its own, and this one is not.\n  Make both with the same generator=."
            )
        if state_dict["generator"] is not None:
            _go_to(own, state_dict["generator"])
        self._epoch, self._position = int(state_dict["epoch"]), int(state_dict["position"])
        self._start, self._resuming = state_dict["start"], bool(self._position)

    def _inner(self) -> Any:
        """The sampler of examples."""
        return getattr(self.batch_sampler, "sampler", self.sampler)

    def _source(self) -> Generator:
        """The generator that the order comes from."""
        for owner in (self._inner(), self.batch_sampler, self):
            if isinstance(found := getattr(owner, "generator", None), Generator):
                return found
        return random.default_generator

    # --- an epoch ---

    def __iter__(self) -> Iterator[Any]:
        skipped = self._begin()
        if self._resident is not None and any(
            a is not b for a, b in zip(held(self.dataset), self._holds, strict=False)
        ):
            self._resident, self._holds = resident(self.dataset, self.device), held(self.dataset)
        batches = self._gathered(skipped) if self._resident is not None else self._made(skipped)
        yield from self._counted(batches, skipped)

    def _begin(self) -> int:
        """Begin an epoch, or one again that is to be gone on with; returns how many batches of it have been."""
        if self._resuming:
            self._resuming = False
            return self._position
        if self._position:  # the loop before this one was left early
            self._epoch += 1
        source = self._source()
        if self.num_workers and not isinstance(
            self._inner(), RandomSampler | SubsetRandomSampler | WeightedRandomSampler
        ):
            source.next_key()  # the order draws nothing, and workers draw something else in each epoch
        self._position, self._start = 0, _state(source)
        return 0

    def _counted(self, batches: Iterator[Any], skipped: int) -> Iterator[Any]:
        epoch, state = self._epoch, self.__dict__  # which is quicker than __setattr__, for each batch
        for number, batch in enumerate(batches, skipped + 1):
            if self._epoch == epoch:
                state["_position"] = number
            yield batch
        if self._epoch == epoch:
            self._epoch, self._position, self._start = epoch + 1, 0, None

    def _drawn(self, order: Callable[[], Any], skipped: int) -> Any:
        """What `order` draws: from where the epoch began if it is gone on with, and then from where it stood."""
        if not skipped or self._start is None:
            return order()
        source = self._source()
        now = _state(source)
        _go_to(source, self._start)
        try:
            return order()
        finally:
            _go_to(source, now)

    def _gathered(self, skipped: int) -> Iterator[Any]:
        """The batches of rows of tensors, gathered on their device."""
        tensors, rows = self._resident or ((), None)
        sampler, place = self.sampler, tensors[0].device
        batches: Any = self.batch_sampler
        plain = type(batches) is BatchSampler and batches.sampler is sampler
        if not plain or not isinstance(sampler, OrderedSampler):  # what goes together is only known batch by batch
            total = len(self.dataset)
            for indices in self._chosen(skipped):
                at = tensor([k + total if k < 0 else k for k in map(int, indices)], dtype=int64, device=place)
                yield [index_select(x, 0, at if rows is None else rows[at]) for x in tensors]
            return
        size = batches.batch_size
        total = len(batches.sampler)
        end = total - total % size if batches.drop_last else total
        if isinstance(sampler, SequentialSampler) and rows is None:
            for start in range(skipped * size, end, size):
                yield [x[start : start + size].clone() for x in tensors]
            return
        pieces = self._drawn(lambda: sampler.pieces(place), skipped)
        for at in cut(pieces, range(skipped * size, end, size)):
            at = at if rows is None else rows[at]
            yield [index_select(x, 0, at) for x in tensors]

    def _chosen(self, skipped: int) -> Iterator[Any]:
        """The numbers of the examples of each batch, from batch `skipped` on."""
        chosen = iter(self.sampler or () if self.batch_sampler is None else self.batch_sampler)
        # A sampler draws when it is first asked.
        first = self._drawn(lambda: list(islice(chosen, skipped + 1))[skipped:], skipped)
        yield from first
        yield from chosen

    def _made(self, skipped: int) -> Iterator[Any]:
        """The batches of examples, made here or by workers."""
        job = LoaderJob(
            self.dataset, self.collate_fn, self.batch_size, self.drop_last, self.worker_init_fn, self._batched
        )
        batches: Iterator[Any]
        if self.num_workers:
            batches = self._by_workers(job, skipped)
        elif self._iterable:
            batches = islice(batches_of(job), skipped, None)
        else:
            batches = map(partial(made, job), self._chosen(skipped))
        if self.device is None:
            return batches
        place = self.device
        return (mapped(lambda x: x.to(place) if isinstance(x, Tensor) else x, batch) for batch in batches)

    def _by_workers(self, job: LoaderJob, skipped: int) -> Iterator[Any]:
        key = seed_of(*(self._start or _state(self._source())))
        pool = self._pool
        if pool is None or pool.busy:  # a second loop inside the first has workers of its own
            pool = WorkerPool(job, self.num_workers, self.prefetch_factor, self.timeout)
        kept = self.persistent_workers and self._pool in (None, pool)
        self._pool = pool if kept else self._pool
        pool.busy = True
        try:
            if self._iterable:
                yield from islice(pool.run(key, ((number, None) for number in count())), skipped, None)
            else:
                yield from pool.run(key, enumerate(map(_plain, self._chosen(skipped)), skipped))
        except GeneratorExit:  # the loop was left early: what is under way then is known by its key
            raise
        except BaseException:
            kept, self._pool = False, None if kept else self._pool
            raise
        finally:
            pool.busy = False
            if not kept:
                pool.close()


def _plain(indices: Any) -> Any:
    """Numbers of examples as ints, which cross to other processes."""
    if isinstance(indices, list | tuple | np.ndarray | Tensor):
        return [index.item() if isinstance(index, Tensor | np.generic) else index for index in indices]
    return indices


def _state(generator: Generator) -> list[int]:
    """Where a generator stands: its seed, and how many numbers it has drawn."""
    seed, drawn = generator.draw(0)
    return [seed, drawn]


def _go_to(generator: Generator, state: list[int]) -> None:
    seed, drawn = state
    generator.manual_seed(seed).draw(drawn)


_FIXED = ("dataset", "batch_size", "sampler", "batch_sampler", "drop_last", "persistent_workers", "device")


# --- checks ---


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool, context: str | None
) -> None:
    if num_workers < 0:
        raise ArgumentError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ArgumentError("timeout option should be non-negative")
    if not num_workers and prefetch_factor is not None:
        raise ArgumentError("prefetch_factor option could only be specified in multiprocessing: give num_workers=.")
    if prefetch_factor is not None and prefetch_factor < 1:
        raise ArgumentError("prefetch_factor option should be 1 or more")
    if persistent and not num_workers:
        raise ArgumentError("persistent_workers option needs num_workers > 0")
    if context not in (None, "spawn"):
        raise ArgumentError(
            f"multiprocessing_context={context!r}: workers are spawned, since a copy of a process in which Taichi or a "
            "GPU runs is broken.\n  Leave multiprocessing_context= out."
        )


def _check_order(
    iterable: bool, batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    if iterable and (shuffle or sampler is not None or batch_sampler is not None):
        option = "shuffle" if shuffle else "sampler" if sampler is not None else "batch_sampler"
        raise ArgumentError(
            f"DataLoader with IterableDataset: expected unspecified {option} option: its examples have no numbers.\n"
            "  Let its __iter__ yield them in the order that you want."
        )
    if sampler is not None and shuffle:
        raise ArgumentError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ArgumentError(
            "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
        )
    if batch_size is None and drop_last:
        raise ArgumentError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last: there is no last "
            "batch."
        )
    if batch_size is not None:
        check_batch_size(batch_size)
