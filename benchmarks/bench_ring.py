"""Claim: the times of a message and a shard predict the step time of two workers to within 25%, as in lesson 17.

Two single-threaded processes, connected by pipes, sum arrays in a ring, as the lesson builds it. The benchmark measures
three times. A message is half of such a sum: it is sent while another one is received, and then added or copied. A
shard is the gradient of one of n shards of 1,024 rows, for a 784-512-512-10 network, while the other process waits. A
step is the gradient of half the rows in each process, and the sum of both. Each time is the best median of --rounds
rounds. The latency and the time per byte of a message are fitted by least squares of the relative error.

    python benchmarks/bench_ring.py

also prints the values of the lesson's tables, and needs two idle cores.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import numpy as np
from report import row

import minigrad as mg
from minigrad import nn

ROWS = 1024
SIZES = [1 << k for k in range(10, 22)]  # bytes, 1 KB to 2 MB: a piece of the gradient is smaller
SHARDS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
WORKERS = 2


class Ring:
    """A worker: its rank, the pipe from its left neighbour, and the pipe to its right one."""

    def __init__(self, rank: int, left: Any, right: Any) -> None:
        self.rank, self.left, self.right = rank, left, right
        self.sender = ThreadPoolExecutor(1)  # otherwise all workers would send and none would receive

    def sum(self, array: Any) -> None:
        """Sum `array` over all workers, in place."""
        pieces = np.array_split(array, WORKERS)
        buffer = np.empty_like(pieces[0])
        for step in range(2 * (WORKERS - 1)):
            sent = self.sender.submit(self.right.send_bytes, pieces[(self.rank - step) % WORKERS])
            self.left.recv_bytes_into(buffer)
            piece = pieces[(self.rank - step - 1) % WORKERS]
            if step < WORKERS - 1:
                piece += buffer[: piece.size]
            else:
                piece[:] = buffer[: piece.size]
            sent.result()


def time_calls(work: Callable[[], Any], times: int) -> float:
    """Return the median seconds of a function, after two warm-up calls."""
    seconds = []
    for _ in range(times + 2):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return median(seconds[2:])


def measure_worker(rank: int, left: Any, right: Any, barrier: Any, answers: Any, rounds: int) -> None:
    """Measure everything in one worker. The first worker reports the results."""
    mg.set_default_device("numpy")
    mg.manual_seed(0)
    layers = nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    model, ring = nn.Sequential(*layers), Ring(rank, left, right)
    images, labels = mg.randn(ROWS, 784), mg.randint(10, (ROWS,))

    def gradient(rows: int) -> Any:
        for parameter in model.parameters():
            parameter.grad = None
        nn.functional.cross_entropy(model(images[:rows]), labels[:rows]).backward()
        return np.concatenate([parameter.grad.numpy().reshape(-1) for parameter in model.parameters()])

    tasks: dict[Any, tuple[Callable[[], Any], int]] = {}
    for size in SIZES:
        array = np.zeros(WORKERS * size // 4, np.float32)
        tasks["message", size] = partial(ring.sum, array), 400 if size < 1e5 else 40
    for count in SHARDS:
        tasks["shard", count] = partial(gradient, ROWS // count), min(20 + count, 200)
    tasks["step", WORKERS] = (lambda: ring.sum(gradient(ROWS // WORKERS))), 30
    seconds_by_task = dict.fromkeys(tasks, float("inf"))
    for _ in range(rounds):
        for task, (work, times) in tasks.items():
            barrier.wait()
            if task[0] != "shard" or rank == 0:  # a shard runs alone
                seconds_by_task[task] = min(seconds_by_task[task], time_calls(work, times))
    if rank == 0:
        answers.put((seconds_by_task, gradient(1).nbytes))
    ring.sender.shutdown()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}, NumPy {np.__version__}, load {os.getloadavg()[0]:.1f}")
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # for the children
    # malloc keeps freed memory, as minigrad's pool does: new pages from the system would take half of a step.
    os.environ |= dict.fromkeys(("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), str(1 << 30))
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(WORKERS), context.Queue()
    pipes = [context.Pipe(duplex=False) for _ in range(WORKERS)]  # pipe k leads to worker k from its left neighbour
    children = [
        context.Process(
            target=measure_worker, args=(k, pipes[k][0], pipes[(k + 1) % WORKERS][1], barrier, answers, rounds)
        )
        for k in range(WORKERS)
    ]
    for child in children:
        child.start()
    seconds_by_task, size = answers.get()
    for child in children:
        child.join()
    messages = {size: seconds / 2 for (kind, size), seconds in seconds_by_task.items() if kind == "message"}
    shards = {count: seconds for (kind, count), seconds in seconds_by_task.items() if kind == "shard"}
    step = seconds_by_task["step", WORKERS]
    print("messages:", ", ".join(f"{size} B {seconds * 1e3:.3g} ms" for size, seconds in messages.items()))
    print("shards:", ", ".join(f"1/{count} {seconds * 1e3:.3g} ms" for count, seconds in shards.items()))
    sizes, seconds = np.array(list(messages)), np.array(list(messages.values()))
    design_matrix = np.stack([np.ones(len(sizes)), sizes], axis=1) / seconds[:, None]
    (latency, seconds_per_byte), *_ = np.linalg.lstsq(design_matrix, np.ones(len(sizes)), rcond=None)
    predicted = shards[WORKERS] + 2 * (WORKERS - 1) * (latency + seconds_per_byte * size / WORKERS)
    comment = (
        f"{step * 1e3:.1f} ms, {predicted * 1e3:.1f} predicted, {shards[1] * 1e3:.1f} alone; a message "
        f"{latency * 1e6:.0f} µs and {1e-9 / seconds_per_byte:.2f} GB a second; the gradient {size / 1e6:.2f} MB"
    )
    ratio = max(step / predicted, predicted / step)
    missed = row("ring, two workers, a step and its prediction", f"{ratio:.2f}", "1.25", comment=comment)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
