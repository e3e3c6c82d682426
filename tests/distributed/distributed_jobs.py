"""What workers train in the tests of `minigrad.distributed`: they import it by its name."""

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
    """`count` examples of three classes; batches of 10 of 41 leave a last one that has a shard of none."""
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


class Marked(Dataset):
    """The points; where a file is put, the worker that next reads an example removes it, and then does what it says."""

    def __init__(self, path):
        self.points, self.path = points(), Path(path)

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        try:
            what = self.path.read_text(encoding="utf-8")
            self.path.unlink()
        except FileNotFoundError:  # it is not there, or another worker took it
            return self.points[index]
        if what == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "memory":
            raise MemoryError("no room for this example")
        if what == "fill":
            self.fill()
        raise LookupError("this example cannot be read")

    def fill(self):
        """Take 64 MB again and again until somebody ends this process, or it has 8 GB: that is told by a file."""
        held = []
        for _ in range(128):
            held.append(mg.ones(2**23, dtype=mg.float64))
            time.sleep(0.02)
        self.path.with_suffix(".full").touch()
        raise MemoryError("8 GB, and nobody minds")


class Marking:
    """A callback that puts such a file after some steps, counted from 1."""

    def __init__(self, path, what, steps):
        self.path, self.what, self.steps = Path(path), what, steps

    def __call__(self, run):
        if run.step in self.steps:
            self.path.write_text(self.what, encoding="utf-8")


class Signed(Dataset):
    """The points; who reads one leaves a file with the number of its process as its name."""

    def __init__(self, folder):
        self.points, self.folder = points(), Path(folder)

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        (self.folder / str(os.getpid())).touch()
        return self.points[index]
