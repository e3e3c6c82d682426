"""Datasets that worker processes can import, and loaders of rows."""

import os
import random
import sys

import numpy as np

import minigrad as mg
from minigrad.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info


class Squares(Dataset):
    """The pairs k and k * k, as NumPy scalars."""

    def __init__(self, count=10):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        return np.float32(index), index * index


class Broken(Squares):
    """A dataset whose sample 7 raises."""

    def __getitem__(self, index):
        if index == 7:
            raise ValueError("seven is missing")
        return super().__getitem__(index)


class Exiting(Squares):
    """A dataset whose sample 3 ends the process."""

    def __getitem__(self, index):
        if index == 3:
            os._exit(41)
        return super().__getitem__(index)


class Random(Squares):
    """Random samples from each of the three generators."""

    def __getitem__(self, index):
        return index, mg.rand(2), np.random.random(), random.random()  # noqa: NPY002 -- as users write it


class WorkerInfo(Squares):
    """Samples that report the worker's process and device."""

    def __init__(self, x):
        super().__init__(len(x))
        self.x = x

    def __getitem__(self, index):
        loaded = sys.modules.get("taichi") is not None
        return {"row": self.x[index] * 2, "pid": os.getpid(), "where": str(self.x.device), "taichi": loaded}


class Stream(IterableDataset):
    """The integers below `count`, split among the workers."""

    def __init__(self, count=10):
        self.count = count

    def __iter__(self):
        worker = get_worker_info()
        return iter(range(self.count)) if worker is None else iter(range(worker.id, self.count, worker.num_workers))


class Slow(Squares):
    """Samples that take a minute each."""

    def __getitem__(self, index):
        import time

        time.sleep(60)


def print_worker(worker_id):
    """Print the worker's index, as a worker_init_fn."""
    os.write(1, f"{worker_id}\n".encode())  # in one piece: others write to the same pipe


def store_worker(worker_id):
    """Store the worker's index in the environment, as a worker_init_fn."""
    os.environ["WORKER"] = str(worker_id)


class Remembered(Squares):
    """The index that `store_worker` stored."""

    def __getitem__(self, index):
        return int(os.environ["WORKER"])


def row_dataset(n=10):
    """Return samples of k as a row of one element, and 10 * k."""
    return TensorDataset(mg.arange(n, dtype=mg.float32).reshape(n, 1), mg.arange(n) * 10)


def targets(loader):
    """Return the targets of each batch of an epoch, as lists."""
    return [batch[1].tolist() for batch in loader]


def shuffled_loader(seed=0, **options):
    """Return a loader that shuffles the rows."""
    return DataLoader(row_dataset(), batch_size=3, shuffle=True, generator=mg.Generator(seed), **options)
