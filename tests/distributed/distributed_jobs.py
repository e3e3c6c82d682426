"""Models and datasets for the tests of `minigrad.distributed`, imported by the workers."""

import os
import signal
import time
from pathlib import Path

import minigrad as mg
from minigrad import nn
from minigrad.data import DataLoader, Dataset, TensorDataset
from minigrad.functional import cross_entropy
from minigrad.optim import SGD, Adam, lr_scheduler


def points(count=41, seed=1):
    """Return `count` samples of three classes; with 41, the last batch of 10 has an empty shard."""
    x = mg.randn(count, 6, generator=mg.Generator(seed), dtype=mg.float64)
    return TensorDataset(x, (x @ mg.randn(6, 3, generator=mg.Generator(0), dtype=mg.float64)).argmax(1))


def loader(dataset=None):
    return DataLoader(dataset or points(), batch_size=10, shuffle=True)


def net(*middle):
    return nn.Sequential(nn.Linear(6, 8), *middle, nn.ReLU(), nn.Linear(8, 3)).double()


def momentum():
    model = net()
    return model, SGD(model.parameters(), lr=0.05, momentum=0.9), cross_entropy


def adam():
    model = net()
    optimizer = Adam(model.parameters(), lr=0.01, weight_decay=0.01)
    return model, optimizer, cross_entropy, lr_scheduler.StepLR(optimizer, 2, gamma=0.5)


def norm_in_eval():
    model = net(nn.BatchNorm1d(8))
    model[1].running_mean.copy_(mg.arange(8) / 8)
    model[1].eval()
    return model, Adam(model.parameters(), lr=0.01), cross_entropy


def norm():
    model = net(nn.BatchNorm1d(8))
    return model, SGD(model.parameters(), lr=0.05), cross_entropy


def dropout():
    model = net(nn.Dropout(0.3))
    return model, Adam(model.parameters(), lr=0.01), cross_entropy


class FaultyDataset(Dataset):
    """Dataset that injects faults: the worker that next reads a sample removes the file, and does what it contains."""

    def __init__(self, path):
        self.points, self.path = points(), Path(path)

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        try:
            fault = self.path.read_text(encoding="utf-8")
            self.path.unlink()
        except FileNotFoundError:  # no file, or another worker removed it
            return self.points[index]
        if fault == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "memory":
            raise MemoryError("no memory for this sample")
        if fault == "fill":
            self.allocate_until_killed()
        raise LookupError("this sample cannot be read")

    def allocate_until_killed(self):
        """Allocate 64 MB repeatedly until this process is killed, or it has 8 GB, which a file records."""
        blocks = []
        for _ in range(128):
            blocks.append(mg.ones(2**23, dtype=mg.float64))
            time.sleep(0.02)
        self.path.with_suffix(".full").touch()
        raise MemoryError("8 GB allocated without being killed")


class FaultInjector:
    """Callback that writes such a file after the given steps, counted from 1."""

    def __init__(self, path, fault, steps):
        self.path, self.fault, self.steps = Path(path), fault, steps

    def __call__(self, run):
        if run.step in self.steps:
            self.path.write_text(self.fault, encoding="utf-8")


class ProcessRecorder(Dataset):
    """Dataset that records the process ids of its readers as file names."""

    def __init__(self, folder):
        self.points, self.folder = points(), Path(folder)

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        (self.folder / str(os.getpid())).touch()
        return self.points[index]
