"""Claim: a training step of a small network of Values is at least 3 times faster than micrograd's.

A step is the forward pass, backward pass and SGD update of a 2-16-16-1 perceptron with relu over 100 samples and a
max-margin loss, about 65,000 nodes. Both libraries build the same operations from the same weights, each in its own
child process, alternating. A round's time is the median of its steps after the first 8, in which CPython still
specialises long loops; the ratio compares the medians of all rounds. The losses must agree to 1e-9. minigrad's neurons
create the nodes of their products when somebody reads the graph, which no step does. Therefore the step is also timed
with neurons that a user writes with the operators of Values, which create every node.

    python benchmarks/bench_value.py

measures with Python's default garbage collector, then without it, then chains of 10,000 to 1,000,000 operations and 1,
10 and 100 times as many samples, which must take linear time without the collector. With it, the time includes that of
traversing the growing graph whenever it has grown by a quarter.
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

from report import row

LIMITS = {"collector on": 6.0, "collector off": 3.0}
GROWTH_LIMIT = 1.2  # of the time per operation in a chain, from 10,000 to 1,000,000

NETWORK = """
import json, random, sys, time
library = sys.argv[1]
generator = random.Random(7)
weights = [generator.uniform(-1, 1) for _ in range(2 * 16 + 16 + 16 * 16 + 16 + 16 + 1)]
count = int(sys.argv[4]) if len(sys.argv) > 4 else 100
samples = [(generator.uniform(-1, 1), generator.uniform(-1, 1)) for _ in range(count)]
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
    if library == "operators":
        def score(x):
            for layer in model.layers:
                x = [sum((w * y for w, y in zip(n.w, x)), n.b) for n in layer.neurons]
                if layer is not model.layers[-1]:
                    x = [y.relu() for y in x]
            return x[0]
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
import gc, json, sys, time
if sys.argv[1] == "off":
    gc.disable()
from minigrad import Value
times = []
for _ in range(REPEATS):
    start = time.perf_counter()
    y = Value(0.5)
    for _ in range(LENGTH):
        y = y * 0.999 + 0.001
    y.backward()
    del y
    times.append(time.perf_counter() - start)
print(json.dumps(sorted(times)[len(times) // 2]))
"""


def child(code: str, *arguments: str) -> dict | float:
    """Run `code` in a fresh interpreter and return the JSON that it prints."""
    finished = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return json.loads(finished.stdout)


def compare(collector: str, rounds: int, steps: int, ours: str = "minigrad") -> tuple[float, float, float]:
    """Return micrograd's and our median seconds per step over alternating rounds, and how much losses differ."""
    seconds: dict[str, list[float]] = {"micrograd": [], ours: []}
    worst = 0.0
    for _ in range(rounds):
        result = {library: child(CHILD, library, collector, str(steps)) for library in seconds}
        for library in seconds:
            seconds[library].append(result[library]["seconds"])
        pairs = zip(result["micrograd"]["losses"], result[ours]["losses"], strict=True)
        worst = max(worst, *(abs(a - b) for a, b in pairs))
    return statistics.median(seconds["micrograd"]), statistics.median(seconds[ours]), worst


def chain(length: int, collector: str) -> float:
    """Return the median seconds of a chain of `length` operations: creating, propagating and freeing it."""
    code = CHAIN.replace("LENGTH", str(length // 2)).replace("REPEATS", "3" if length > 100_000 else "9")
    return child(code, collector)


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
    micrograd_seconds, seconds, worst = compare("off", options.rounds, options.steps, "operators")
    label = "the same with neurons written with operators, collector off"
    has_missed |= row(label, f"{micrograd_seconds / seconds:.2f}", is_wrong=worst > 1e-9)
    for collector in ("on", "off"):
        per_op = {n: chain(n, collector) / n for n in (10_000, 100_000, 1_000_000)}
        for n in (100_000, 1_000_000):
            label = f"a chain of {n:,} operations, time per operation relative to 10,000, collector {collector}"
            bound = f"{GROWTH_LIMIT}" if collector == "off" and n == 1_000_000 else None
            exponent = 1 + math.log(per_op[n] / per_op[10_000], n / 10_000)
            comment = f"{per_op[n] * 1e9:.0f} ns; exponent {exponent:.3f}, linear is 1"
            has_missed |= row(label, f"{per_op[n] / per_op[10_000]:.2f}", bound, comment=comment)
    step = {n: child(CHILD, "minigrad", "off", "14", str(n))["seconds"] / n for n in (10, 100, 1_000)}
    for n in (100, 1_000):
        label = f"a step of {n:,} samples, time per sample relative to 10, collector off"
        comment = f"{step[n] * 1e6:.0f} µs; exponent {1 + math.log(step[n] / step[10], n / 10):.3f}"
        row(label, f"{step[n] / step[10]:.2f}", comment=comment)
    return 1 if has_missed else 0


if __name__ == "__main__":
    sys.exit(main())
