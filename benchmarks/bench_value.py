"""Claim: a training step of a small network of Values is at least 6 times faster than micrograd's.

A step is the forward pass, backward pass and SGD update of a 2-16-16-1 perceptron with relu over 100 samples and a
max-margin loss, about 65,000 nodes. Both libraries build the same operations from the same weights, each in its own
child process, alternating. A round's time is the median of its steps after the first 8, in which CPython still
specialises long loops; the ratio compares the medians of all rounds. The losses must agree to 1e-9.

    python benchmarks/bench_value.py

measures with Python's default garbage collector, then without it, then a chain of operations, which must take linear
time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

from report import row

LIMITS = {"collector on": 6.0, "collector off": 1.5}

NETWORK = """
import json, random, sys, time
library = sys.argv[1]
generator = random.Random(7)
weights = [generator.uniform(-1, 1) for _ in range(2 * 16 + 16 + 16 * 16 + 16 + 16 + 1)]
samples = [(generator.uniform(-1, 1), generator.uniform(-1, 1)) for _ in range(100)]
signs = [1.0 if x * y > 0 else -1.0 for x, y in samples]
if library == "micrograd":
    from micrograd.engine import Value
    from micrograd.nn import MLP
    model = MLP(2, [16, 16, 1])
    score = model
else:
    from minigrad import Value
    from minigrad.nn.scalar import MLP
    model = MLP([2, 16, 16, 1], "relu")
    score = lambda x: model(x)[0]
for parameter, weight in zip(model.parameters(), weights):
    parameter.data = weight
def mean_loss():
    scores = [score([Value(x), Value(y)]) for x, y in samples]
    margins = [(1 + -sign * s).relu() for sign, s in zip(signs, scores)]
    return sum(margins) * (1.0 / len(margins))
"""

CHILD = f"""{NETWORK}
import gc
if sys.argv[2] == "off":
    gc.disable()
times, losses = [], []
for _ in range(int(sys.argv[3])):
    start = time.perf_counter()
    loss = mean_loss()
    model.zero_grad()
    loss.backward()
    for parameter in model.parameters():
        parameter.data -= 0.05 * parameter.grad
    times.append(time.perf_counter() - start)
    losses.append(loss.data)
print(json.dumps({{"seconds": sorted(times[8:])[len(times[8:]) // 2], "losses": losses}}))
"""

CHAIN = """
import json, time
from minigrad import Value
times = []
for _ in range(5):
    start = time.perf_counter()
    y = Value(0.5)
    for _ in range(LENGTH):
        y = y * 0.999 + 0.001
    y.backward()
    del y
    times.append(time.perf_counter() - start)
print(json.dumps(sorted(times)[2]))
"""


def child(code: str, *arguments: str) -> dict | float:
    """Run `code` in a fresh interpreter and return the JSON that it prints."""
    finished = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return json.loads(finished.stdout)


def compare(collector: str, rounds: int, steps: int) -> tuple[float, float, float]:
    """Return micrograd's and minigrad's median seconds per step over alternating rounds, and how much losses differ."""
    seconds: dict[str, list[float]] = {"micrograd": [], "minigrad": []}
    worst = 0.0
    for _ in range(rounds):
        result = {library: child(CHILD, library, collector, str(steps)) for library in seconds}
        for library in seconds:
            seconds[library].append(result[library]["seconds"])
        pairs = zip(result["micrograd"]["losses"], result["minigrad"]["losses"], strict=True)
        worst = max(worst, *(abs(a - b) for a, b in pairs))
    return statistics.median(seconds["micrograd"]), statistics.median(seconds["minigrad"]), worst


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20, help="including 8 warm-up steps")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}")
    has_missed = False
    for name, bar in LIMITS.items():
        micrograd_seconds, minigrad_seconds, worst = compare(name.split()[1], options.rounds, options.steps)
        label, comment = f"a step, micrograd 0.1.0's time / minigrad's, {name}", f"losses differ by {worst:.0e}"
        has_missed |= row(
            label,
            f"{micrograd_seconds / minigrad_seconds:.2f}",
            f"{bar}",
            at_least=True,
            is_wrong=worst > 1e-9,
            comment=comment,
        )
    per_op = {n: child(CHAIN.replace("LENGTH", str(n // 2))) / n for n in (1_000, 10_000, 100_000)}
    growth = per_op[100_000] / per_op[10_000]
    label = "a chain of 100,000 operations, time per operation relative to one of 10,000"
    has_missed |= row(label, f"{growth:.2f}", "1.5", comment="linear is 1")
    return 1 if has_missed else 0


if __name__ == "__main__":
    sys.exit(main())
