"""Claim: a tape runs a graph of Values forward and backward at least 1,000 times faster than micrograd.

The network is that of `bench_value.py`: a 2-16-16-1 perceptron with relu over 100 samples and a max-margin loss, about
65,000 nodes. micrograd has to rebuild the graph for each pass. The tape is compiled from the graph once; the compile
time is printed but not counted. Each library runs in its own child process, alternating. A round's time is the median
of its passes after the first ones; the ratio compares the medians of all rounds. Loss and gradients must agree to 1e-9.
Also printed are the CPU time per row, which other processes affect less than wall-clock time, and one network over
samples as a batch.

    python benchmarks/bench_tape.py
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
from functools import partial

import bench_value
from report import row

RATIO, NANOSECONDS = 1000.0, 8.0

CHILD = (
    bench_value.NETWORK
    + """
passes, skipped = int(sys.argv[2]), int(sys.argv[3])
report = {}
if library == "micrograd":
    def run():
        loss = mean_loss()
        model.zero_grad()
        loss.backward()
        return loss.data
    found = lambda: [parameter.grad for parameter in model.parameters()]
else:
    import minigrad as mg
    loss = mean_loss()
    start = time.perf_counter()
    tape = mg.Tape(loss, parameters=model.parameters())
    report["made"] = time.perf_counter() - start
    report["nodes"] = len(tape)
    start = time.perf_counter()
    tape.forward(), tape.backward()
    report["first"] = time.perf_counter() - start
    def run():
        number = tape.forward()
        tape.backward()
        return number
    found = lambda: [tape.gradients[parameter] for parameter in model.parameters()]
times, cpu = [], []
for _ in range(passes):
    start, busy = time.perf_counter(), time.process_time()
    number = run()
    times.append(time.perf_counter() - start)
    cpu.append(time.process_time() - busy)
median = lambda x: sorted(x[skipped:])[len(x[skipped:]) // 2]
report |= {"seconds": median(times), "cpu": median(cpu), "loss": number, "gradients": found()}
if library != "micrograd":
    x, y = Value(0.0, "x"), Value(0.0, "y")
    one = mg.Tape(score([x, y]), parameters=model.parameters())
    columns = {name: [generator.uniform(-1, 1) for _ in range(10_000)] for name in "xy"}
    import numpy as np
    columns = {name: np.array(column) for name, column in columns.items()}
    times = []
    for _ in range(12):
        start = time.perf_counter()
        one.batch(columns)
        one.backward()
        times.append(time.perf_counter() - start)
    report["batch"] = sorted(times[2:])[5] / 10_000 / len(one)
print(json.dumps(report))
"""
)


def main() -> int:
    child = partial(bench_value.child, CHILD)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}")
    rounds = [(child("micrograd", "8", "3"), child("tape", "300", "20")) for _ in range(options.rounds)]
    micrograd_seconds, micrograd_cpu = (statistics.median(a[key] for a, _ in rounds) for key in ("seconds", "cpu"))
    tape_seconds, tape_cpu, compile_seconds, first, batch = (
        statistics.median(b[key] for _, b in rounds) for key in ("seconds", "cpu", "made", "first", "batch")
    )
    nodes = rounds[0][1]["nodes"]
    worst = max(
        abs(x - y)
        for a, b in rounds
        for x, y in zip([a["loss"], *a["gradients"]], [b["loss"], *b["gradients"]], strict=True)
    )
    per_node = tape_seconds / nodes * 1e9
    best = min(b["seconds"] for _, b in rounds) / nodes * 1e9
    label = f"forward and backward of {nodes:,} rows, micrograd 0.1.0's time / the tape's"
    comment = f"{micrograd_cpu / tape_cpu:,.0f} in CPU time; loss and gradients differ by {worst:.0e}"
    has_missed = row(
        label,
        f"{micrograd_seconds / tape_seconds:,.0f}",
        f"{RATIO:,.0f}",
        at_least=True,
        is_wrong=worst > 1e-9,
        comment=comment,
    )
    comment = f"{best:.1f} in the best round; {tape_cpu / nodes * 1e9:.1f} ns of CPU time"
    has_missed |= row("a row", f"{per_node:.1f} ns", f"{NANOSECONDS:.0f}", comment=comment)
    row("compiling the tape, relative to a pass of micrograd", f"{compile_seconds / micrograd_seconds:.2f}")
    row("its first run, relative to a pass of micrograd", f"{first / micrograd_seconds:.2f}")
    row("a row and sample of a batch of 10,000 samples, on all cores", f"{batch * 1e9:.1f} ns")
    return 1 if has_missed else 0


if __name__ == "__main__":
    sys.exit(main())
