"""Claim: a tensor that is computed at once, operation by operation, is not much slower than PyTorch's.

Each part gives both libraries the same numbers, on 2 threads, in child processes that take turns. A round's time is the
median of its steps after the first 10; the ratio is of the medians of the rounds. Results must agree.

    python benchmarks/bench_eager.py

needs the extra 'parity', and two cores that nobody else uses: a third busy process makes each library wait for the
thread that was put aside, at each of its meeting points.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

PEER = "torch 2.13.0"

HEAD = """
import json, sys, time
import numpy as np
library, steps = sys.argv[1], int(sys.argv[2])
if library == "torch":
    import torch as lib
    lib.set_num_threads(2)
    F = lib.nn.functional
else:
    import minigrad as lib
    F = lib.functional
generator = np.random.default_rng(7)
def leaf(*shape):
    return lib.tensor(generator.normal(size=shape).astype("float32")).requires_grad_()
"""

TAIL = """
times = []
for _ in range(steps):
    start = time.perf_counter()
    results = step()
    times.append(time.perf_counter() - start)
sums = [float((x.detach() * x.detach()).sum()) for x in results]
print(json.dumps({"seconds": sorted(times[10:])[len(times[10:]) // 2], "sums": sums}))
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


def child(library: str, code: str, steps: int) -> dict:
    """Run the part `code` with `library` in a fresh interpreter, and return the JSON that it prints."""
    threads = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    command = [sys.executable, "-c", HEAD + code + TAIL, library, str(steps)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **threads})
    return json.loads(finished.stdout)


def ratio(code: str, rounds: int, steps: int) -> tuple[float, float, float]:
    """The medians of our seconds a step and of PyTorch's over alternating rounds, and how far results differ."""
    seconds: dict[str, list[float]] = {"minigrad": [], "torch": []}
    worst = 0.0
    for _ in range(rounds):
        result = {library: child(library, code, steps) for library in seconds}
        for library in seconds:
            seconds[library].append(result[library]["seconds"])
        pairs = zip(result["minigrad"]["sums"], result["torch"]["sums"], strict=True)
        worst = max(worst, *(abs(a - b) / abs(b) for a, b in pairs))
    return statistics.median(seconds["minigrad"]), statistics.median(seconds["torch"]), worst


def conv(rounds: int, steps: int) -> bool:
    """(c) A 3 x 3 convolution of 32 images, 16 channels to 32, 28 x 28, padding 1: forward, and all three gradients."""
    ours, theirs, worst = ratio(CONV, rounds, steps)
    print(
        f"conv2d, 32x16x28x28 to 32 channels, forward and backward: minigrad takes {ours / theirs:.2f} x the time of "
        f"{PEER} (bar 2.0; {ours * 1e3:.1f} and {theirs * 1e3:.1f} ms); results differ by {worst:.0e}"
    )
    return ours / theirs > 2.0 or worst > 1e-4


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=60, help="the first 10 are not counted")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}")
    missed = [part(options.rounds, options.steps) for part in (conv,)]
    return 1 if any(missed) else 0


if __name__ == "__main__":
    sys.exit(main())
