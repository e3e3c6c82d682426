"""Claims: two single-threaded workers are at least 1.6 times as fast as one; Ray adds at most 10% to the time of one.

The model is the convolutional network of examples/idx_cnn.py, on random 28x28 images, 256 per step; with one thread, a
step takes about 50 ms. All runs have the same global batches, and their losses must agree. A time is the median of the
steps after the first ten. The three runs alternate for --rounds rounds, and the best time of each is compared.

    python benchmarks/bench_distributed.py

needs the extra 'ray' and two idle cores: the driver, which averages the gradients and takes the same steps, is a third
process. --workers sets another number of workers.

    python benchmarks/bench_distributed.py --gpus

measures the GPT of bench_jit.py (6 layers, 384 wide, 256 characters), with 32 contexts per step, one GPU per worker and
jitted steps (jit=True). The limit is 1.7 times the tokens per second of one worker.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import bench_jit
import bench_train
from report import row

import minigrad as mg
from minigrad import nn
from minigrad.data import DataLoader, TensorDataset

WARMUP = 10
JIT_WARMUP = 30  # the first steps of the GPT, until captured launches are merged into one kernel
GPT = f"def leaf(*shape):\n    return lib.zeros(shape)\n{bench_train.HEAD}{bench_jit.LARGE}"


def make() -> tuple[Any, Any, Any]:
    """Return the network of examples/idx_cnn.py, its optimizer and its loss."""
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 10),
    )
    return model, mg.optim.Adam(model.parameters(), lr=1e-3), nn.functional.cross_entropy


def make_gpt(source: str = GPT) -> tuple[Any, Any, Any]:
    """Return the GPT of bench_jit.py. Workers receive it by value, so it includes its source."""
    import numpy as np

    space = {"lib": mg, "F": nn.functional, "generator": np.random.default_rng(0)}
    exec(source, space)

    def loss(output: Any, target: Any) -> Any:
        return nn.functional.cross_entropy(output.view(-1, output.shape[-1]), target.view(-1))

    return space["model"], mg.optim.Adam(space["model"].parameters(), lr=1e-4), loss


def data_of(gpt: bool, batch: int) -> TensorDataset:
    """Return eight batches."""
    generator = mg.Generator(0)
    if gpt:
        return TensorDataset(*[mg.randint(120, (batch * 8, 256), generator=generator) for _ in range(2)])
    return TensorDataset(
        mg.randn(batch * 8, 1, 28, 28, generator=generator), mg.randint(10, (batch * 8,), generator=generator)
    )


def train(workers: int, steps: int, batch: int, gpus: float) -> tuple[float, list[float]]:
    """Return the median seconds per step, and the losses. Without workers, measure plain training."""
    loader, times = DataLoader(data_of(bool(gpus), batch), batch_size=batch, shuffle=True), []

    def record_time(run: Any) -> None:
        times.append(time.perf_counter())

    options: dict[str, Any] = {"epochs": -(-steps // 8), "seed": 1, "callbacks": [record_time], "progress": False}
    if workers:
        resources = {"GPU": gpus} if gpus else {"CPU": 1}
        make_model = make_gpt if gpus else make
        history = mg.distributed.fit(
            make_model, loader, workers=workers, resources=resources, jit=bool(gpus), **options
        ).history
    else:
        mg.manual_seed(1)
        model, optimizer, loss = make()
        history = mg.training.fit(model, loader, optimizer, loss, **options)
    first = JIT_WARMUP if gpus else WARMUP
    return median(b - a for a, b in zip(times[first:], times[first + 1 :], strict=False)), history.steps


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--batch", type=int, help="256 pictures, or 32 contexts")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--gpus", type=float, nargs="?", const=1.0, default=0.0, help="GPUs per worker")
    parser.add_argument("--alone", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    batch = options.batch or (32 if options.gpus else 256)
    if options.alone is not None:
        print(json.dumps(train(options.alone, options.steps, batch, options.gpus)))
        return 0
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    kinds = [*([] if options.gpus else [0]), 1, options.workers]
    seconds_by_workers: dict[int, list[float]] = {kind: [] for kind in kinds}
    losses: dict[int, list[float]] = {}
    threads = {"TI_CPU_MAX_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for _ in range(options.rounds):
        for kind in kinds:
            command = [sys.executable, __file__, "--alone", str(kind), "--steps", str(options.steps)]
            command += ["--batch", str(batch), "--gpus", str(options.gpus)]
            environment = {**os.environ, **threads}
            child = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            seconds, losses[kind] = json.loads(child.stdout.splitlines()[-1])
            seconds_by_workers[kind].append(seconds)
    best = {kind: min(times) for kind, times in seconds_by_workers.items()}
    worst = max(abs(a - b) for kind in kinds for a, b in zip(losses[kind], losses[1], strict=True))
    ms = ", ".join(f"{kind or 'no'} worker{'s' * (kind != 1)} {seconds * 1e3:.1f}" for kind, seconds in best.items())
    comment = f"ms a step: {ms}; losses differ by {worst:.0e}"
    label = f"{'GPT' if options.gpus else 'CNN'}, {options.workers} workers, one worker's time / theirs"
    limit = "1.7" if options.gpus else "1.6"
    has_missed = row(
        label, f"{best[1] / best[options.workers]:.2f}", limit, at_least=True, is_wrong=worst > 1e-3, comment=comment
    )
    if 0 in best:
        has_missed |= row("CNN, one worker's time / plain fit's", f"{best[1] / best[0]:.2f}", "1.10")
    return 1 if has_missed else 0


if __name__ == "__main__":
    sys.exit(main())
