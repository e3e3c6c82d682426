"""Datasets that worker processes can import, and loaders of rows."""

import os
import random
import sys

import numpy as np

import minigrad as mg
from minigrad.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info


class Squares(Dataset):
    """k and k * k, as NumPy's numbers."""

    def __init__(self, count=10):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        return np.float32(index), index * index


class Broken(Squares):
    """One example of which cannot be had."""

    def __getitem__(self, index):
        if index == 7:
            raise ValueError("seven is missing")
        return super().__getitem__(index)


class Deadly(Squares):
    """One example of which ends the process."""

    def __getitem__(self, index):
        if index == 3:
            os._exit(41)
        return super().__getitem__(index)


class Noisy(Squares):
    """Examples of random numbers, of each of the three generators."""

    def __getitem__(self, index):
        return index, mg.rand(2), np.random.random(), random.random()  # noqa: NPY002 -- as readers write it


class Tensors(Squares):
    """What an example is made of inside a worker."""

    def __init__(self, x):
        super().__init__(len(x))
        self.x = x

    def __getitem__(self, index):
        loaded = sys.modules.get("taichi") is not None
        return {"row": self.x[index] * 2, "pid": os.getpid(), "where": str(self.x.device), "taichi": loaded}


class Stream(IterableDataset):
    """The numbers below `count`, shared out among the workers."""

    def __init__(self, count=10):
        self.count = count

    def __iter__(self):
        worker = get_worker_info()
        return iter(range(self.count)) if worker is None else iter(range(worker.id, self.count, worker.num_workers))


class Slow(Squares):
    """Examples that take for ever."""

    def __getitem__(self, index):
        import time

        time.sleep(60)


def announce(number):
    """A worker_init_fn that says that its worker works."""
    os.write(1, f"{number}\n".encode())  # in one piece: others write to the same pipe


def remember(number):
    """A worker_init_fn that leaves a mark."""
    os.environ["WORKER"] = str(number)


class Marked(Squares):
    """What `remember` left."""

    def __getitem__(self, index):
        return int(os.environ["WORKER"])


def rows(n=10):
    """k as a row of one number, and ten times k."""
    return TensorDataset(mg.arange(n, dtype=mg.float32).reshape(n, 1), mg.arange(n) * 10)


def seen(loader):
    """The second parts of an epoch, as lists."""
    return [batch[1].tolist() for batch in loader]


def drawn(seed=0, **options):
    """A loader that shuffles rows."""
    return DataLoader(rows(), batch_size=3, shuffle=True, generator=mg.Generator(seed), **options)
