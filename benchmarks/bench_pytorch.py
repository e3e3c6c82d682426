"""Claim: a recorded step of a PyTorch model takes less than 1.5 times the plain step, and less than 1.3 times its
memory; its drawing takes less than two seconds and shows at most 150 blocks.

A step is the forward and the backward pass of ResNet-18 or of GPT-2 with 124 million parameters, recorded with
summaries of all values and gradients. Plain and recorded steps alternate in one process; the ratio is that of the
medians. Peak memory is that of two processes, each of which runs two steps. `watch` is compared for a
summary every 50 steps, from the medians of steps with a summary, without one, and without `watch`.

    python benchmarks/bench_pytorch.py
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from typing import Any

from report import row

NETS = {"ResNet-18": "resnet18", "GPT-2, 124 M parameters": "gpt2"}
MAX_TIME, MAX_MEMORY, MAX_DRAW_SECONDS, MAX_BLOCKS, MAX_WATCH = "1.5", "1.3", "2", "150", "1.05"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--memory", nargs=2, help="print the peak memory of two steps: of which net, and is it recorded"
    )
    options = parser.parse_args()
    if options.memory:
        name, mode = options.memory
        step = step_of(name)
        for _ in range(2):
            step(mode == "recorded")
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        return 0
    peaks = {name: [int(run(name, mode)) for mode in ("recorded", "plain")] for name in NETS.values()}
    missed = [measure(label, name, options.rounds, *peaks[name]) for label, name in NETS.items()]
    return sum(missed) + watched()


def step_of(name: str) -> Any:
    """Return a function that runs a step of a net, recorded or not, and returns its loss."""
    import torch
    import torch_nets

    from minigrad_viz import record

    torch.manual_seed(0)
    torch.set_num_threads(2)
    model, loss_of = getattr(torch_nets, name)()

    def step(recorded: bool) -> Any:
        model.zero_grad()
        if not recorded:
            loss = loss_of()
            loss.backward()
            return loss
        with record():
            loss = loss_of()
            loss.backward()
        return loss

    return step


def measure(label: str, name: str, rounds: int, recorded_peak: int, plain_peak: int) -> int:
    from minigrad_viz import draw
    from minigrad_viz.trace.modules import initially_open_blocks

    step = step_of(name)
    times: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(2 * rounds + 2):
        start = time.perf_counter()
        loss = step(bool(turn % 2))
        if turn > 1:
            times[bool(turn % 2)].append(time.perf_counter() - start)
    ratio = statistics.median(times[True]) / statistics.median(times[False])
    start = time.perf_counter()
    drawing = draw(loss)
    drawing.svg()
    seconds = time.perf_counter() - start
    trace = drawing.trace
    opened = initially_open_blocks(trace, 40)
    visible = sum(block.outer in opened for block in trace.blocks) + sum(block in opened for block in trace.block)
    size = f"{len(trace.kinds):,} nodes, {len(trace.passes[0].edge):,} backward steps"
    missed = [
        row(f"{label}, recorded step over plain step, time", f"{ratio:.2f}", MAX_TIME, comment=size),
        row(f"{label}, recorded step over plain step, peak memory", f"{recorded_peak / plain_peak:.2f}", MAX_MEMORY),
        row(f"{label}, draw", f"{seconds:.2f} s", MAX_DRAW_SECONDS),
        row(f"{label}, blocks and nodes visible at first", str(visible), MAX_BLOCKS),
    ]
    return sum(missed)


def run(name: str, mode: str) -> str:
    """Return the peak memory of a process; it is at least that of this process when it starts the other."""
    command = [sys.executable, __file__, "--memory", name, mode]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def watched() -> int:
    """Compare the training of ResNet-18 on small images with and without `watch`, if one of 50 steps is summarised."""
    import torch
    import torch_nets

    from minigrad_viz import watch

    torch.manual_seed(0)
    model, _ = torch_nets.resnet18()
    images, labels = torch.randn(16, 3, 64, 64), torch.arange(16)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    times: dict[str, list[float]] = {"plain": [], "unmeasured": [], "measured": []}

    def train(seen: Any) -> None:
        for turn in range(20):
            start = time.perf_counter()
            count = 0 if seen is None else seen.measured_count
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            if seen is not None:
                seen.log(loss)
            kind = "plain" if seen is None else "measured" if seen.measured_count > count else "unmeasured"
            if turn:
                times[kind].append(time.perf_counter() - start)

    train(None)
    for _ in range(6):
        train(None)
        with watch(model, share=0.5) as seen:
            train(seen)
    medians = {kind: statistics.median(seconds) for kind, seconds in times.items()}
    ratio = (49 * medians["unmeasured"] + medians["measured"]) / (50 * medians["plain"])
    comment = f"a step with a summary takes {medians['measured'] / medians['plain']:.2f} times a step without watch"
    return row("ResNet-18, training with watch over without", f"{ratio:.3f}", MAX_WATCH, comment=comment)


if __name__ == "__main__":
    sys.exit(main())
