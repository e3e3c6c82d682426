"""Claim: a training step of a recurrent network takes at most 1.5 times PyTorch's time, and 0.8 when jitted.

The LSTM and the GRU are language models of two layers of 200, over 35 words, 20 sequences at a time, with 1,000 words;
the RNN reads the 28 rows of an image, 64 at a time. A step consists of forward pass, backward pass and SGD's update.
Both libraries start with the same weights, and the losses of their first ten steps must agree. bench_eager.py describes
the timing. --memory compares how much memory ten times the batch takes; --scale measures how time grows with the length
of the sequence and the batch, at 1, 10 and 100 times the smallest.

    python benchmarks/bench_recurrent.py

needs the extra 'parity', and two idle cores: see bench_train.py, also for --passive.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import bench_eager
import bench_train
from report import row

LANGUAGE_MODEL = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.rnn = nn.Embedding(WORDS, WIDTH), nn.KIND(WIDTH, WIDTH, LAYERS)
        self.head = nn.Linear(WIDTH, WORDS)
    def forward(self, x):
        return self.head(self.rnn(self.words(x))[0])
classes = WORDS
model, x, y = weights(Model()), numbers(WORDS, LENGTH, BATCH), numbers(WORDS, LENGTH, BATCH)
"""

ROWS = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.RNN(28, WIDTH), nn.Linear(WIDTH, 10)
    def forward(self, x):
        return self.head(self.rnn(x)[1][0])
classes = 10
model, x, y = weights(Model()), leaf(LENGTH, BATCH, 28).detach(), numbers(10, BATCH)
"""

TAIL = """
optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
def compute(x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x).view(-1, classes), y.view(-1))
    loss.backward()
    optimizer.step()
    return loss.detach()
if library == "minigrad jit":
    compute = lib.jit(compute)
def step():
    losses.append(compute(x, y))
    return losses[:10]
"""

PEAK = """
import resource
for _ in range(4):
    step()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": peak, "sums": [float(x) for x in losses]}))
"""


def model_code(kind: str, **sizes: int) -> str:
    """Return the code of a model, with its sizes substituted."""
    code = ROWS if kind == "RNN" else LANGUAGE_MODEL
    for name, size in {"KIND": kind, "WIDTH": 200, "LAYERS": 2, "WORDS": 1000, **sizes}.items():
        code = code.replace(name, str(size))
    return bench_train.HEAD + code + TAIL


SIZES = {
    "LSTM language model 2x200, 35 words, batch 20": {"LENGTH": 35, "BATCH": 20},
    "GRU language model 2x200, 35 words, batch 20": {"LENGTH": 35, "BATCH": 20},
    "RNN 128 over the 28 rows of an image, batch 64": {"LENGTH": 28, "BATCH": 64, "WIDTH": 128},
}
PARTS = {name: model_code(name.split()[0], **sizes) for name, sizes in SIZES.items()}


def measure_model(name: str, rounds: int, steps: int) -> bool:
    """Measure one model; return whether it misses a limit, or the losses differ."""
    variants = {"minigrad": ("", 1.5), "minigrad jit": (" jitted,", 0.8)}
    on_numpy = ""
    if os.environ["MINIGRAD_DEVICE"] == "numpy":  # the jit calls its kernels one by one
        on_numpy = " on numpy,"
        del variants["minigrad jit"]
    libraries = (*variants, "torch")
    seconds, worst = bench_eager.measure(PARTS[name], libraries, rounds, 10 + steps)
    times = ", ".join(f"{library} {seconds[library] * 1e3:.2f} ms" for library in libraries)
    missed = False
    for library, (label, limit) in variants.items():
        ratio = seconds[library] / seconds["torch"]
        comment = f"{times}; losses differ by {worst:.0e}"
        text = f"{name},{on_numpy}{label} minigrad's time / {bench_eager.PEER}'s"
        missed |= row(text, f"{ratio:.2f}", f"{limit:.2f}", is_wrong=worst > 1e-4, comment=comment)
    return missed


def measure_memory(name: str) -> bool:
    """Measure how much ten times the batch adds to the peak memory of a process, in which compilers cancel out."""
    peaks, losses = {}, []
    for library in ("minigrad", "torch"):
        code = model_code(name.split()[0], **{**SIZES[name], "BATCH": 10 * SIZES[name]["BATCH"]})
        small, large = [bench_eager.child(library, part + PEAK, 0, tail="") for part in (PARTS[name], code)]
        peaks[library] = (large["seconds"] - small["seconds"]) / 1024
        losses.append(large["sums"])
    worst = max(abs(a - b) / abs(b) for a, b in zip(*losses, strict=True))
    text = f"{name}, peak memory of ten times the batch, minigrad's / {bench_eager.PEER}'s"
    comment = f"{peaks['minigrad']:.0f} and {peaks['torch']:.0f} MiB more; losses differ by {worst:.0e}"
    return row(text, f"{peaks['minigrad'] / peaks['torch']:.2f}", "1.00", is_wrong=worst > 1e-4, comment=comment)


def measure_growth(kind: str, size: str, rounds: int) -> bool:
    """Measure the time of a step at 1, 10 and 100 times a size; return whether it grows faster than linearly."""
    base = {"LENGTH": 5, "BATCH": 4, "WIDTH": 64, "WORDS": 50}
    times: dict[str, list[float]] = {library: [] for library in ("minigrad", "torch")}
    for factor in (1, 10, 100):
        code = model_code(kind, **{**base, size: base[size] * factor})
        seconds, _ = bench_eager.measure(code, ("minigrad", "torch"), rounds, 10 + 200 // factor + 8)
        for library, found in times.items():
            found.append(seconds[library])
    exponents = {library: math.log(found[2] / found[1], 10) for library, found in times.items()}
    shown = "; ".join(f"{library} {', '.join(f'{t * 1e3:.2f}' for t in found)} ms" for library, found in times.items())
    text = f"{kind} 2x64 at 1, 10, 100 times {base[size]} {size.lower()}, exponent of time from 10 to 100 times"
    return row(text, f"{exponents['minigrad']:.2f}", "1.10", comment=f"{shown}; torch {exponents['torch']:.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60, help="after 10 warm-up steps")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="measure only the models whose name contains this")
    parser.add_argument("--memory", action="store_true", help="measure memory instead")
    parser.add_argument("--scale", action="store_true", help="measure the growth of time instead")
    parser.add_argument("--passive", action="store_true", help="PyTorch's threads sleep while waiting")
    options = parser.parse_args()
    os.environ["MINIGRAD_DEVICE"] = options.device  # read by the children
    if options.passive:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}, load {os.getloadavg()[0]:.1f}, on {options.device}")
    if options.scale:
        kinds = [(kind, size) for kind in ("LSTM", "GRU") for size in ("LENGTH", "BATCH")]
        missed = [measure_growth(kind, size, options.rounds) for kind, size in kinds if options.only in kind]
    else:
        names = [name for name in PARTS if options.only in name]
        missed = [
            measure_memory(name) if options.memory else measure_model(name, options.rounds, options.steps)
            for name in names
        ]
    return 1 if any(missed) else 0


if __name__ == "__main__":
    sys.exit(main())
