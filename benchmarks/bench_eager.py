"""Claim: eager execution is not much slower than PyTorch's.

Each part runs both libraries on the same inputs, with 2 threads, in child processes that alternate. A round's time is
the median of its steps after the first 10; the ratio compares the medians of all rounds. Results must agree. The limits
apply to the engine and its NumPy kernels, the device "numpy"; --device measures another.

    python benchmarks/bench_eager.py

needs the extra 'parity', and two idle cores: with a third busy process each library waits at its barriers for the
thread that was descheduled.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
from itertools import pairwise

from report import row

PEER = "torch 2.13.0"
PYTHONS: dict[str, str] = {}  # interpreters for libraries that the current one lacks

HEAD = """
import json, os, sys, time
import numpy as np
library, steps = sys.argv[1], int(sys.argv[2])
often, wait = 1, lambda: None
on_cuda = os.environ.get("MINIGRAD_DEVICE") == "cuda"
if library.startswith("torch"):
    import torch as lib
    lib.set_num_threads(2)
    F = lib.nn.functional
    if on_cuda:
        lib.set_default_device("cuda")
        lib.backends.cudnn.allow_tf32 = lib.backends.cuda.matmul.allow_tf32 = False
        often, wait = 10, lib.cuda.synchronize
elif library.startswith("minigrad"):
    import minigrad as lib
    lib.set_default_device(os.environ["MINIGRAD_DEVICE"])
    F = lib.functional
    if on_cuda:
        often, wait = 10, lib.synchronize
generator = np.random.default_rng(7)
def leaf(*shape):
    return lib.tensor(generator.normal(size=shape).astype("float32")).requires_grad_()
"""

TAIL = """
times = []
for _ in range(steps):
    start = time.perf_counter()
    for _ in range(often):
        results = step()
    wait()
    times.append((time.perf_counter() - start) / often)
sums = [float((x * x).sum()) for x in results]
print(json.dumps({"seconds": sorted(times[10:])[len(times[10:]) // 2], "sums": sums}))
"""

OPS = """
a, b = np.linspace(0.1, 0.9, 8).astype("float32"), np.linspace(0.6, 0.9, 8).astype("float32")
def chain(x, w, lib):
    for _ in range(ROUNDS):
        x = lib.tanh(x * w + w)
        x = lib.sin((x - w) * 1.2)
        x = (-(x / 0.7) + 1.0) * w
    return x
if library == "autograd":
    import autograd.numpy
    gradients = autograd.grad(lambda x, w: autograd.numpy.sum(chain(x, w, autograd.numpy)), (0, 1))
    def step():
        return gradients(a, b)
else:
    upstream = lib.tensor(np.ones(8, "float32"))
    def step():
        x, w = lib.tensor(a, requires_grad=True), lib.tensor(b, requires_grad=True)
        chain(x, w, lib).backward(upstream)
        return x.grad, w.grad
"""

MLP = """
x = lib.tensor(generator.normal(size=(32, 784)).astype("float32"))
y = lib.tensor(generator.integers(10, size=32))
parameters = [leaf(128, 784), leaf(128), leaf(10, 128), leaf(10)]
with lib.no_grad():
    for p in parameters:
        p.mul_(0.03)
def step():
    w1, b1, w2, b2 = parameters
    loss = F.cross_entropy(F.linear(F.relu(F.linear(x, w1, b1)), w2, b2), y)
    loss.backward()
    with lib.no_grad():
        for p in parameters:
            p.sub_(p.grad, alpha=0.01)
            p.grad = None
    return loss, *parameters
"""

CONV = """
x, w, b = leaf(32, 16, 28, 28), leaf(32, 16, 3, 3), leaf(32)
upstream = leaf(32, 32, 28, 28).detach()
def step():
    x.grad = w.grad = b.grad = None
    y = F.conv2d(x, w, b, padding=1)
    y.backward(upstream)
    return y, x.grad, w.grad, b.grad
"""

MEMORY = """
import resource
x, w, b = leaf(1000, 1000), leaf(1000), leaf(1000)
def step():
    x.grad = w.grad = b.grad = None
    y = x
    for _ in range(100):
        y = (y * w + b).tanh()
    y.sum().backward()
    return x.grad, w.grad, b.grad
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
results = step()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(json.dumps({"seconds": peak, "sums": [float((x * x).sum()) for x in results]}))
"""


def child(library: str, code: str, steps: int, tail: str | None = None) -> dict:
    """Run the part `code` with `library` in a fresh interpreter, and return the JSON that it prints."""
    threads = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    tail = ("" if code is MEMORY else TAIL) if tail is None else tail
    command = [PYTHONS.get(library, sys.executable), "-c", HEAD + code + tail, library, str(steps)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **threads})
    return json.loads(finished.stdout)


def measure(code: str, libraries: tuple[str, ...], rounds: int, steps: int) -> tuple[dict[str, float], float]:
    """Return the median seconds per step of each library over alternating rounds, and how much their results differ."""
    seconds: dict[str, list[float]] = {library: [] for library in libraries}
    worst = 0.0
    for _ in range(rounds):
        result = {library: child(library, code, steps) for library in libraries}
        for library in libraries:
            seconds[library].append(result[library]["seconds"])
            pairs = zip(result["minigrad"]["sums"], result[library]["sums"], strict=True)
            worst = max(worst, *(abs(a - b) / (abs(b) or 1.0) for a, b in pairs))
    return {library: statistics.median(times) for library, times in seconds.items()}, worst


def print_ratio(label: str, ratio: float, limit: float, worst: float) -> bool:
    """Print a ratio; return whether it misses its limit, or the results differ."""
    differ = f"results differ by {worst:.0e}"
    return row(label, f"{ratio:.2f}", f"{limit:.2f}", is_wrong=worst > 1e-4, comment=differ)


def small_ops(rounds: int, steps: int) -> bool:
    """(a) Measure 200 elementwise operations on 8 elements, forward and backward."""
    code = OPS.replace("ROUNDS", "20")
    seconds, worst = measure(code, ("minigrad", "torch", "autograd"), rounds, steps)
    missed = print_ratio(
        f"200 small operations, minigrad's time / {PEER}'s", seconds["minigrad"] / seconds["torch"], 0.8, worst
    )
    ratio = seconds["minigrad"] / seconds["autograd"]
    return print_ratio("200 small operations, minigrad's time / autograd 1.9.1's", ratio, 1 / 1.2, worst) or missed


def small_ops_growth(rounds: int) -> None:
    """Print how the time grows with the number of small operations, from 200 to 20,000: the exponent for each ten."""
    lengths = (20, 200, 2000)
    times = [measure(OPS.replace("ROUNDS", str(k)), ("minigrad", "torch"), rounds, 13 + 400 // k)[0] for k in lengths]
    for k, (before, after) in zip(lengths, pairwise(times), strict=False):
        ours, theirs = (math.log10(after[library] / before[library]) for library in ("minigrad", "torch"))
        label = f"{10 * k:,} small operations times 10, exponent of the time"
        row(label, f"{ours:.2f}", comment=f"torch {theirs:.2f}; {after['minigrad'] / after['torch']:.2f} of its time")


def mlp(rounds: int, steps: int) -> bool:
    """(b) Measure a training step of a 784-128-10 perceptron on 32 images: forward, backward, update."""
    seconds, worst = measure(MLP, ("minigrad", "torch"), rounds, steps)
    return print_ratio(
        f"MLP 32x784x128x10, minigrad's time / {PEER}'s", seconds["minigrad"] / seconds["torch"], 1.0, worst
    )


def conv(rounds: int, steps: int) -> bool:
    """(c) Measure a 3 x 3 convolution of 32 images, 16 channels to 32, 28 x 28, padding 1: forward, gradients."""
    seconds, worst = measure(CONV, ("minigrad", "torch"), rounds, steps)
    return print_ratio(
        f"conv2d 32x16x28x28 to 32 channels, minigrad's time / {PEER}'s",
        seconds["minigrad"] / seconds["torch"],
        2.0,
        worst,
    )


def memory(rounds: int, steps: int) -> bool:
    """(d) Measure how much a chain of 100 layers on a million elements adds to the peak memory of the process."""
    peaks, worst = measure(MEMORY, ("minigrad", "torch"), 1, steps)
    name = f"memory of 100 layers, {peaks['minigrad'] / 1024:.0f} MiB, minigrad's / {PEER}'s"
    return print_ratio(name, peaks["minigrad"] / peaks["torch"], 1.2, worst)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=110, help="including 10 warm-up steps")
    parser.add_argument("--device", default="numpy")
    parser.add_argument("--growth", action="store_true", help="measure how the time of small operations grows instead")
    options = parser.parse_args()
    os.environ["MINIGRAD_DEVICE"] = options.device  # read by the children
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}, load {os.getloadavg()[0]:.1f}, on {options.device}")
    if options.growth:
        small_ops_growth(options.rounds)
        return 0
    results = [part(options.rounds, options.steps) for part in (small_ops, mlp, conv, memory)]
    return 1 if any(results) else 0


if __name__ == "__main__":
    sys.exit(main())
