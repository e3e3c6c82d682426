"""Claim: `watch` slows the training of a small model by less than a tenth.

Two models on the 8x8 digits are each trained with and without a watch, alternating in one process. The time of a turn
is that of its steps, including drawing. The ratios compare the medians of the training thread's CPU time, which other
processes affect least, and of wall-clock time. Small models are the hard case, because their step takes no longer than
inspecting all their layers once.

    python benchmarks/bench_watch.py
    python benchmarks/bench_watch.py --device numpy
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any

from report import row

MAX_RATIO = 1.1
BATCH, STEPS = 32, 400  # per turn, enough for several pictures, so that medians include them


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()

    import minigrad as mg
    from minigrad_viz.widget import watcher

    mg.set_default_device(options.device)
    watcher._in_notebook = lambda: True  # so that pictures are rendered as in a notebook
    nn, data = mg.nn, mg.data.digits()

    def mlp() -> Any:
        return nn.Sequential(
            nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)
        )

    def cnn() -> Any:
        first = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        second = [nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(128, 10))

    offsets = range(0, len(data.train_x) - BATCH + 1, BATCH)
    batches = [(data.train_x[k : k + BATCH], data.train_y[k : k + BATCH]) for k in offsets]

    def turn(model: Any, optimizer: Any, watch: Any) -> tuple[float, float]:
        """Return the wall-clock and CPU seconds of a turn."""
        wall, busy = time.perf_counter(), time.thread_time()
        for k in range(STEPS):
            x, t = batches[k % len(batches)]
            optimizer.zero_grad()
            loss = mg.functional.cross_entropy(model(x), t)
            loss.backward()
            optimizer.step()
            if watch is not None:
                watch.log(loss)
        mg.synchronize()
        return time.perf_counter() - wall, time.thread_time() - busy

    has_missed = False
    for name, build in (("MLP", mlp), ("CNN", cnn)):
        models = [build(), build()]
        optimizers = [mg.optim.Adam(model.parameters(), lr=1e-3) for model in models]
        display, watch = _Display(), watcher.watch(models[0])
        watch._display = display
        sides = list(zip(models, optimizers, (watch, None), strict=True))
        times: list[list[tuple[float, float]]] = [[], []]
        for k in range(options.rounds + 2):
            if k == 2:  # kernels are compiled
                before = watch.measured_count, display.times
            for side, side_times in zip(sides, times, strict=True):
                watch._clock.end_work()  # exclude the other model's turn from this watch
                side_times.append(turn(*side))
        wall, busy = (
            statistics.median(one[k] for one in times[0][2:]) / statistics.median(one[k] for one in times[1][2:])
            for k in (0, 1)
        )
        measured, drawn = watch.measured_count - before[0], display.times - before[1]
        comment = (
            f"{wall:.3f} of the clock's; {measured} of {STEPS * options.rounds} steps measured, {drawn} pictures; "
            f"a step takes {statistics.median(one[0] for one in times[1][2:]) / STEPS * 1e3:.2f} ms on {options.device}"
        )
        has_missed |= row(
            f"{name}, thread time relative to training without watch", f"{busy:.3f}", f"{MAX_RATIO}", comment=comment
        )
        watch._remove_probe()
    return int(has_missed)


class _Display:
    """Renders pictures as a notebook does, as HTML and text."""

    times = 0

    def update(self, displayed: Any) -> None:
        displayed._repr_mimebundle_()
        self.times += 1


if __name__ == "__main__":
    sys.exit(main())
