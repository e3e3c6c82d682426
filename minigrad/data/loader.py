"""DataLoader: iterate over the batches of a dataset.

It has PyTorch's interface and three additions. A `TensorDataset` (or a `Subset` of one) is batched on its device: the
permutation of an epoch is drawn there and a batch is one gather per tensor; `device=` copies the tensors there once.
The order for a seed is the same on every device. `state_dict` stores the position in an epoch, to resume exactly.
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
from minigrad.core.errors import ArgumentError, DTypeError, check_callable, describe_type
from minigrad.core.storage import check_device
from minigrad.core.tensor import Tensor
from minigrad.data.collate import default_collate, default_convert, map_nested
from minigrad.data.dataset import IterableDataset
from minigrad.data.resident import rechunk, resident_tensors, row_sources
from minigrad.data.sampler import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    TensorSampler,
    WeightedRandomSampler,
    check_batch_size,
)
from minigrad.data.workers import LoaderJob, WorkerPool, derive_seed, iterate_batches, load_batch
from minigrad.functional import index_select
from minigrad.functional.creation import tensor
from minigrad.random import Generator

__all__ = ["DataLoader"]


class DataLoader:
    """Iterable over `dataset` in batches of `batch_size` samples: ``for x, y in DataLoader(data, batch_size=32)``.

    `shuffle` reshuffles the data at every epoch. `sampler` yields sample indices, and `batch_sampler` yields lists of
    sample indices. `drop_last` drops an incomplete last batch. `collate_fn` merges a list of samples into a batch
    (default: `default_collate`); ``batch_size=None`` disables automatic batching. `generator` (default: the global one)
    seeds the order, with one key per epoch.

    `device` is the device of the batches. A `TensorDataset` is copied there once, other datasets batch by batch.

    `num_workers` subprocesses load the batches, each prefetching `prefetch_factor` (2) batches; they shut down after an
    epoch unless `persistent_workers` is set. `worker_init_fn` is called in each worker with its id. `timeout` is the
    maximum time, in seconds, to wait for a batch; 0 disables it. `pin_memory` is accepted for compatibility and has
    no effect. See `minigrad.data.workers` for the limits of workers.

    Raises ArgumentError for options that are mutually exclusive or out of range.

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
                f"DataLoader: expected a dataset, but got {describe_type(dataset)}: {dataset!r:.100}.\n"
                "  Pass data.TensorDataset(x, y), or an object with __getitem__ and __len__."
            )
        if collate_fn is not None:
            check_callable(collate_fn, "DataLoader: collate_fn")
        _check_worker_options(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        _check_sampling_options(self._iterable, batch_size, shuffle, sampler, batch_sampler, drop_last)
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
        self._resident_tensors = (
            None if collate_fn is not None or num_workers or not batched else resident_tensors(dataset, self.device)
        )
        self._row_sources = row_sources(dataset)
        self.collate_fn: Callable[[Any], Any] = collate_fn or (default_collate if batched else default_convert)
        self._batched = batched
        self._pool: WorkerPool | None = None
        self._epoch, self._position = 0, 0
        self._epoch_start_state: list[int] | None = None
        self._resuming = False
        self._fixed_options = frozenset(_FIXED_OPTIONS)

    __class_getitem__: Any = classmethod(GenericAlias)  # DataLoader[int], for annotations

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an option for the next epoch. Raises ArgumentError for options that are fixed at construction."""
        if name in self.__dict__.get("_fixed_options", ()):
            raise ArgumentError(
                f"DataLoader: {name} attribute should not be set after DataLoader is initialized.\n"
                f"  Create a new loader: DataLoader(dataset, {name}=…)."
            )
        if name in ("collate_fn", "num_workers") and "_fixed_options" in self.__dict__:
            self._resident_tensors = None  # gathering tensors bypasses collate_fn and workers
        object.__setattr__(self, name, value)

    def of_numbers(self) -> DataLoader:
        """Return a loader whose batches are lists of sample indices, in the order of this loader.

        Raises ArgumentError for an iterable-style dataset, or if automatic batching is disabled.

        >>> list(DataLoader("abcde", batch_size=2).of_numbers())
        [[0, 1], [2, 3], [4]]
        """
        if self.batch_sampler is None:
            raise ArgumentError(
                "DataLoader: an IterableDataset has no indices, and batch_size=None yields no batches.\n"
                "  Use a dataset with __getitem__ and __len__, and a batch_size."
            )
        indices = range(len(self.dataset))
        return DataLoader(indices, batch_sampler=self.batch_sampler, collate_fn=list, generator=self.generator)

    # --- length and state ---

    def __len__(self) -> int:
        """Return the number of batches per epoch. Raises DTypeError if the dataset has no ``__len__``."""
        if self._iterable:
            if not hasattr(self.dataset, "__len__"):
                raise DTypeError(f"DataLoader: object of type {type(self.dataset).__name__} has no len().")
            total = len(self.dataset)
            size = self.batch_size
            return total if size is None else total // size if self.drop_last else -(-total // size)
        sampler: Any = self.sampler if self.batch_sampler is None else self.batch_sampler
        return len(sampler)

    def state_dict(self) -> dict[str, Any]:
        """Return the epoch, the number of batches already yielded, and the state of the generator.

        The state holds plain ints, to be saved in a checkpoint; a loader with the same arguments that loads it resumes
        at the next batch, in the same order. A loader with the default generator needs the state of that generator too
        (`mg.get_rng_state`). The states of Python's and NumPy's generators are not included.
        """
        generator = self._order_generator()
        start_state = self._epoch_start_state if self._position else None
        generator_state = None if generator is random.default_generator else _generator_state(generator)
        return {"epoch": self._epoch, "position": self._position, "start": start_state, "generator": generator_state}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Resume the next iteration from `state_dict`. Raises ArgumentError for an invalid state."""
        if set(state_dict) != {"epoch", "position", "start", "generator"}:
            raise ArgumentError("DataLoader: not the state dict of a loader; pass the result of its state_dict().")
        generator = self._order_generator()
        if (state_dict["generator"] is None) != (generator is random.default_generator):
            raise ArgumentError(
                "DataLoader: the state was saved by a loader "
                + ("without" if state_dict["generator"] is None else "with")
                + " a generator, unlike this loader.\n  Create both with the same generator= argument."
            )
        if state_dict["generator"] is not None:
            _restore_generator(generator, state_dict["generator"])
        self._epoch, self._position = int(state_dict["epoch"]), int(state_dict["position"])
        self._epoch_start_state, self._resuming = state_dict["start"], bool(self._position)

    def _index_sampler(self) -> Any:
        return getattr(self.batch_sampler, "sampler", self.sampler)

    def _order_generator(self) -> Generator:
        """Return the generator from which the order is drawn."""
        for owner in (self._index_sampler(), self.batch_sampler, self):
            if isinstance(generator := getattr(owner, "generator", None), Generator):
                return generator
        return random.default_generator

    # --- an epoch ---

    def __iter__(self) -> Iterator[Any]:
        skipped = self._begin_epoch()
        if self._resident_tensors is not None and any(
            a is not b for a, b in zip(row_sources(self.dataset), self._row_sources, strict=False)
        ):
            self._resident_tensors, self._row_sources = (
                resident_tensors(self.dataset, self.device),
                row_sources(self.dataset),
            )
        batches = (
            self._gather_batches(skipped) if self._resident_tensors is not None else self._collated_batches(skipped)
        )
        yield from self._track_position(batches, skipped)

    def _begin_epoch(self) -> int:
        """Start or resume an epoch, and return the number of its batches to skip."""
        if self._resuming:
            self._resuming = False
            return self._position
        if self._position:  # the previous loop was left early
            self._epoch += 1
        source = self._order_generator()
        if self.num_workers and not isinstance(
            self._index_sampler(), RandomSampler | SubsetRandomSampler | WeightedRandomSampler
        ):
            source.next_key()  # these samplers draw no numbers, but workers need a new seed per epoch
        self._position, self._epoch_start_state = 0, _generator_state(source)
        return 0

    def _track_position(self, batches: Iterator[Any], skipped: int) -> Iterator[Any]:
        epoch, attributes = self._epoch, self.__dict__  # bypasses __setattr__, which is slow for every batch
        for position, batch in enumerate(batches, skipped + 1):
            if self._epoch == epoch:
                attributes["_position"] = position
            yield batch
        if self._epoch == epoch:
            self._epoch, self._position, self._epoch_start_state = epoch + 1, 0, None

    def _draw_order(self, order: Callable[[], Any], skipped: int) -> Any:
        """Call `order`. When resuming, the generator is temporarily reset to its state at the start of the epoch."""
        if not skipped or self._epoch_start_state is None:
            return order()
        source = self._order_generator()
        current_state = _generator_state(source)
        _restore_generator(source, self._epoch_start_state)
        try:
            return order()
        finally:
            _restore_generator(source, current_state)

    def _gather_batches(self, skipped: int) -> Iterator[Any]:
        """Yield batches gathered from the tensors of the dataset on their device."""
        tensors, rows = self._resident_tensors or ((), None)
        sampler, device = self.sampler, tensors[0].device
        batches: Any = self.batch_sampler
        is_plain_batching = type(batches) is BatchSampler and batches.sampler is sampler
        if not is_plain_batching or not isinstance(
            sampler, TensorSampler
        ):  # a custom sampler yields its indices batch by batch
            total = len(self.dataset)
            for indices in self._batch_indices(skipped):
                row_indices = tensor([k + total if k < 0 else k for k in map(int, indices)], dtype=int64, device=device)
                yield [index_select(x, 0, row_indices if rows is None else rows[row_indices]) for x in tensors]
            return
        size = batches.batch_size
        total = len(batches.sampler)
        end = total - total % size if batches.drop_last else total
        if isinstance(sampler, SequentialSampler) and rows is None:
            for start in range(skipped * size, end, size):
                yield [x[start : start + size].clone() for x in tensors]
            return
        index_chunks = self._draw_order(lambda: sampler.index_chunks(device), skipped)
        for row_indices in rechunk(index_chunks, range(skipped * size, end, size)):
            row_indices = row_indices if rows is None else rows[row_indices]
            yield [index_select(x, 0, row_indices) for x in tensors]

    def _batch_indices(self, skipped: int) -> Iterator[Any]:
        """Yield the sample indices of each batch, starting at batch `skipped`."""
        indices = iter(self.sampler or () if self.batch_sampler is None else self.batch_sampler)
        # A sampler draws its permutation on the first next().
        resumed_batch = self._draw_order(lambda: list(islice(indices, skipped + 1))[skipped:], skipped)
        yield from resumed_batch
        yield from indices

    def _collated_batches(self, skipped: int) -> Iterator[Any]:
        """Yield collated batches, loaded in this process or by workers."""
        job = LoaderJob(
            self.dataset, self.collate_fn, self.batch_size, self.drop_last, self.worker_init_fn, self._batched
        )
        batches: Iterator[Any]
        if self.num_workers:
            batches = self._worker_batches(job, skipped)
        elif self._iterable:
            batches = islice(iterate_batches(job), skipped, None)
        else:
            batches = map(partial(load_batch, job), self._batch_indices(skipped))
        if self.device is None:
            return batches
        device = self.device
        return (map_nested(lambda x: x.to(device) if isinstance(x, Tensor) else x, batch) for batch in batches)

    def _worker_batches(self, job: LoaderJob, skipped: int) -> Iterator[Any]:
        key = derive_seed(*(self._epoch_start_state or _generator_state(self._order_generator())))
        pool = self._pool
        if pool is None or pool.is_busy:  # a nested loop over the same loader needs its own workers
            pool = WorkerPool(job, self.num_workers, self.prefetch_factor, self.timeout)
        keep_pool = self.persistent_workers and self._pool in (None, pool)
        self._pool = pool if keep_pool else self._pool
        pool.is_busy = True
        try:
            if self._iterable:
                yield from islice(pool.run(key, ((batch_index, None) for batch_index in count())), skipped, None)
            else:
                yield from pool.run(key, enumerate(map(_to_python_ints, self._batch_indices(skipped)), skipped))
        except GeneratorExit:  # early exit: the pool discards results in flight, which contain the epoch key
            raise
        except BaseException:
            keep_pool, self._pool = False, None if keep_pool else self._pool
            raise
        finally:
            pool.is_busy = False
            if not keep_pool:
                pool.close()


def _to_python_ints(indices: Any) -> Any:
    """Convert sample indices to Python ints, so that they can be sent to other processes."""
    if isinstance(indices, list | tuple | np.ndarray | Tensor):
        return [index.item() if isinstance(index, Tensor | np.generic) else index for index in indices]
    return indices


def _generator_state(generator: Generator) -> list[int]:
    """Return the state of a generator: its seed and the count of values drawn."""
    seed, draw_count = generator.draw(0)
    return [seed, draw_count]


def _restore_generator(generator: Generator, state: list[int]) -> None:
    seed, draw_count = state
    generator.manual_seed(seed).draw(draw_count)


_FIXED_OPTIONS = ("dataset", "batch_size", "sampler", "batch_sampler", "drop_last", "persistent_workers", "device")


# --- checks ---


def _check_worker_options(
    num_workers: int,
    timeout: float,
    prefetch_factor: int | None,
    persistent_workers: bool,
    multiprocessing_context: str | None,
) -> None:
    if num_workers < 0:
        raise ArgumentError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ArgumentError("timeout option should be non-negative")
    if not num_workers and prefetch_factor is not None:
        raise ArgumentError("prefetch_factor option could only be specified in multiprocessing: set num_workers > 0.")
    if prefetch_factor is not None and prefetch_factor < 1:
        raise ArgumentError("prefetch_factor option should be at least 1")
    if persistent_workers and not num_workers:
        raise ArgumentError("persistent_workers option needs num_workers > 0")
    if multiprocessing_context not in (None, "spawn"):
        raise ArgumentError(
            f"multiprocessing_context={multiprocessing_context!r}: only 'spawn' is supported, as Taichi and GPU "
            "runtimes do not survive a fork.\n  Omit multiprocessing_context."
        )


def _check_sampling_options(
    iterable: bool, batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    if iterable and (shuffle or sampler is not None or batch_sampler is not None):
        option = "shuffle" if shuffle else "sampler" if sampler is not None else "batch_sampler"
        raise ArgumentError(
            f"DataLoader with IterableDataset: expected unspecified {option} option: its samples have no indices.\n"
            "  Yield the samples in the order you want from its __iter__."
        )
    if sampler is not None and shuffle:
        raise ArgumentError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ArgumentError(
            "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
        )
    if batch_size is None and drop_last:
        raise ArgumentError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
    if batch_size is not None:
        check_batch_size(batch_size)
