"""Claim: a training step takes at most PyTorch's time for a small CNN and a small GPT, 1.5 times for ResNet-18.

Two perceptrons, of 64-32-10 and 784-128-10, read 32 digits at a time, and are updated by SGD and Adam. The other models
are those of examples/: the convolutional network reads digits of 8x8 pixels, 50 at a time; the GPT, of 4 layers, 128
wide, reads contexts of 128 characters; AdamW updates both. ResNet-18 (He et al. 2016) reads 8 images of 64x64 pixels,
and its step has no update. Both libraries start with the same weights, and the losses of their first ten steps must
agree. bench_eager.py describes the timing.

The memory of a model is what it and its first steps add to the peak memory of the process, after a first operation.

    python benchmarks/bench_train.py
    python benchmarks/bench_train.py --growth    # how time grows with the batch and the width, up to 100 times

needs the extra 'parity', and two idle cores: PyTorch's threads spin while they wait for each other, so that with a
third busy process its steps take up to 50 times as long. --passive lets them sleep (OMP_WAIT_POLICY=PASSIVE).
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import sys
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
import bench_eager
from report import row

HEAD = """
nn = lib.nn
losses = []
def weights(model):
    with lib.no_grad():
        for p in model.parameters():
            x = generator.normal(size=p.shape).astype("float32")
            p.copy_(lib.tensor(x * (x.size / len(x)) ** -0.5 if x.ndim > 1 else 1 + x * 0.1))
    return model
def numbers(high, *shape):
    return lib.tensor(generator.integers(high, size=shape))
"""

UPDATE = """
optimizer = lib.optim.AdamW(model.parameters(), lr=1e-3)
def step():
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x).view(-1, classes), y.view(-1))
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
    return losses[:10]
"""

NO_UPDATE = """
def step():
    model.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    losses.append(loss.detach())
    return losses[:10]
"""

BEFORE_MEMORY = """
import resource
(leaf(2, 2) @ leaf(2, 2)).sum().backward()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
"""

# Ends the process before bench_eager's own steps.
MEMORY = """
for _ in range(3):
    results = step()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(json.dumps({"seconds": peak / 1024, "sums": [float(x) for x in results]}))
sys.exit()
"""

MLP = """
classes = 10
x, y = leaf(BATCH, INPUTS).detach(), numbers(10, BATCH)
model = weights(nn.Sequential(nn.Linear(INPUTS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 10)))
"""
SMALL_MLP, LARGE_MLP = MLP.replace("INPUTS", "64"), MLP.replace("INPUTS", "784")

CNN = """
classes = 10
x, y = leaf(BATCH, 1, 8, 8).detach(), numbers(10, BATCH)
model = weights(nn.Sequential(
    nn.Conv2d(1, WIDTH, 3, padding=1), nn.ReLU(), nn.Conv2d(WIDTH, 2 * WIDTH, 3, padding=1), nn.ReLU(),
    nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * WIDTH, 10),
))
"""

RESNET = """
x, y = leaf(BATCH, 3, 64, 64).detach(), numbers(10, BATCH)
class Residual(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer)
        self.conv2, self.norm2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer)
        self.shortcut = nn.Sequential()
        if stride > 1:
            self.shortcut = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))
    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))
model = weights(nn.Sequential(
    nn.Conv2d(3, WIDTH, 7, 2, 3, bias=False), nn.BatchNorm2d(WIDTH), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
    Residual(WIDTH, WIDTH, 1), Residual(WIDTH, WIDTH, 1),
    *[Residual(WIDTH << k, WIDTH << k + j, 2 - (j == 0)) for k, j in ((0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0))],
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTH * 8, 10),
))
"""

GPT = """
classes, width, heads = 120, WIDTH, 4
x, y = numbers(classes, BATCH, 128), numbers(classes, BATCH, 128)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = (y.view(n, t, heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(n, t, width))
        return x + self.mlp(self.norm2(x))
class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.characters, self.places = nn.Embedding(classes, width), nn.Embedding(128, width)
        self.blocks = nn.Sequential(*[Block() for _ in range(4)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes, bias=False)
        self.head.weight = self.characters.weight
    def forward(self, x):
        return self.head(self.norm(self.blocks(self.characters(x) + self.places(lib.arange(x.shape[1])))))
model = weights(GPT())
"""


class Part(NamedTuple):
    """A model: its code with its batch and width, the limit of its time relative to PyTorch's, and the number of
    repetitions of a run's steps."""

    code: str
    batch: int
    width: int
    bar: float | None
    repeats: int
    tail: str = UPDATE

    def source(self, batch: int = 1, width: int = 1) -> str:
        """Return the code of the model with a batch and a width that are `batch` and `width` times as large."""
        code = self.code.replace("BATCH", str(self.batch * batch)).replace("WIDTH", str(self.width * width))
        return HEAD + code + self.tail


PARTS = {
    "MLP 32x64x32x10, SGD": Part(SMALL_MLP, 32, 32, 1.0, 20, UPDATE.replace("AdamW", "SGD")),
    "MLP 32x784x128x10, Adam": Part(LARGE_MLP, 32, 128, 1.0, 10, UPDATE.replace("AdamW", "Adam")),
    "CNN of two convolutions, 50 digits": Part(CNN, 50, 16, 1.0, 4),
    "ResNet-18, 8 images of 64x64, without update": Part(RESNET, 8, 64, 1.5, 1, NO_UPDATE),
    "GPT 4x128, 8 contexts of 128": Part(GPT, 8, 128, 1.0, 1),
    "GPT 4x128, 16 contexts of 128": Part(GPT, 16, 128, 1.0, 1),
}

# How many times the batch and the width are enlarged, from a batch of `batch`.
GROWTH = {
    "MLP 64-32-10, SGD": (PARTS["MLP 32x64x32x10, SGD"], (1, 10, 100), (1, 10, 100)),
    "MLP 784-128-10, Adam": (PARTS["MLP 32x784x128x10, Adam"], (1, 10, 100), (1, 10)),
    "CNN of two convolutions": (PARTS["CNN of two convolutions, 50 digits"], (1, 10, 100), (1, 10)),
    "ResNet-18": (PARTS["ResNet-18, 8 images of 64x64, without update"]._replace(batch=1), (1, 10, 100), (1,)),
    "GPT 4x128": (PARTS["GPT 4x128, 8 contexts of 128"]._replace(batch=1), (1, 10, 100), (1, 10)),
}


def measure_model(name: str, rounds: int, steps: int) -> bool:
    """Measure one model; return whether it misses its limit, or the losses differ."""
    part = PARTS[name]
    seconds, worst = bench_eager.measure(part.source(), ("minigrad", "torch"), rounds, 10 + steps * part.repeats)
    ratio = seconds["minigrad"] / seconds["torch"]
    times = f"{seconds['minigrad'] * 1e3:.2f} ms a step, torch {seconds['torch'] * 1e3:.2f}"
    label, bars = f"{name}, minigrad's time / {bench_eager.PEER}'s", None if part.bar is None else f"{part.bar:.2f}"
    return row(label, f"{ratio:.2f}", bars, is_wrong=worst > 1e-4, comment=f"{times}; losses differ by {worst:.0e}")


def measure_memory(name: str) -> bool:
    """Measure how much a model and three steps add to the peak memory; return whether it is more than PyTorch's."""
    code = BEFORE_MEMORY + PARTS[name].source() + MEMORY
    peaks, worst = bench_eager.measure(code, ("minigrad", "torch"), 3, 0)
    sizes = f"{peaks['minigrad']:.0f} MiB, torch {peaks['torch']:.0f}; losses differ by {worst:.0e}"
    ratio = f"{peaks['minigrad'] / peaks['torch']:.2f}"
    return row(f"{name}, peak memory, minigrad's / {bench_eager.PEER}'s", ratio, "1.00", comment=sizes)


def measure_growth(name: str, rounds: int) -> None:
    """Print how the time of a step grows with the batch and the width: the exponent for each factor of ten."""
    part, batches, widths = GROWTH[name]
    for what, factors in (("batch", batches), ("width", widths)):
        times = [
            bench_eager.measure(part.source(**{what: k}), ("minigrad", "torch"), rounds, 13 if k > 1 else 30)[0]
            for k in (factors if len(factors) > 1 else ())
        ]
        for k, (before, after) in enumerate(pairwise(times)):
            ours, theirs = (math.log10(after[library] / before[library]) for library in ("minigrad", "torch"))
            ms = (
                f"{before['minigrad'] * 1e3:.2f} to {after['minigrad'] * 1e3:.2f} ms, torch {before['torch'] * 1e3:.2f}"
            )
            label = f"{name}, exponent of the time, {what} {getattr(part, what) * factors[k]} times 10"
            row(label, f"{ours:.2f}", comment=f"torch {theirs:.2f}; {ms} to {after['torch'] * 1e3:.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40, help="after 10 warm-up steps; smaller models run more")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="part of the name of the models to measure")
    parser.add_argument("--growth", action="store_true", help="measure how time grows instead")
    parser.add_argument(
        "--passive", action="store_true", help="for a busy machine: PyTorch's threads sleep while waiting"
    )
    options = parser.parse_args()
    os.environ["MINIGRAD_DEVICE"] = options.device  # read by the children
    if options.passive:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    passive = ", PyTorch's threads sleep while waiting" if options.passive else ""
    print(f"{machine}, load {os.getloadavg()[0]:.1f}, on {options.device}{passive}")
    if options.growth:
        for name in GROWTH:
            if options.only in name:
                measure_growth(name, options.rounds)
        return 0
    names = [name for name in PARTS if options.only in name]
    missed = [measure_model(name, options.rounds, options.steps) for name in names]
    missed += [measure_memory(name) for name in names]
    return 1 if any(missed) else 0


if __name__ == "__main__":
    sys.exit(main())
