"""Claims: Taichi's compiled kernels are as fast as NumPy's on two cores, and not far from CUDA's own on a GPU.

Unless its label says otherwise, each line is a ratio, the peer's time divided by minigrad's: 2 means that minigrad is
twice as fast. The two libraries alternate in one process, with a pause before each turn. The time of a turn is that of
its fastest call, since OpenBLAS is 100 times slower if another process occupies one of its cores; the result is the
median of the turns. Results must agree. As minigrad writes into pooled memory, NumPy writes into an existing array
(``out=``), so that neither waits for new pages. sigmoid and gelu are written as NumPy users write them, including
temporaries. On the CPU, PyTorch runs in a separate process, because its threads spin while they wait.

    python benchmarks/bench_kernels.py
    python benchmarks/bench_kernels.py --device cuda

The first command needs the extra 'parity' and two idle cores; the second needs an NVIDIA GPU, numpy, torch and taichi.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from report import row

THREADS = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2", "TI_CPU_MAX_NUM_THREADS": "2"}
os.environ.update(THREADS)  # before NumPy reads them

import bench_eager  # noqa: E402
import numpy as np  # noqa: E402

import minigrad as mg  # noqa: E402
from minigrad.backends.taichi.runtime import kernel  # noqa: E402
from minigrad.backends.taichi.runtime.array import array_argument  # noqa: E402

PEERS = "numpy 2.4, torch 2.13.0"
PAUSE = 0.2  # seconds until the other library's threads sleep; those of OpenBLAS spin for 0.1 s

generator = np.random.default_rng(7)
missed_labels: list[str] = []


def report(name: str, figure: float, bar: float, at_most: bool = False, worst: float = 0.0) -> None:
    """Print a figure and whether it is within its limit. Results that differ by more than 1e-4 count as a miss."""
    differ = f"results differ by {worst:.0e}" if worst else ""
    if row(name, f"{figure:.2f}", f"{bar:g}", at_least=not at_most, is_wrong=worst >= 1e-4, comment=differ):
        missed_labels.append(name)


def random_array(*shape: int) -> Any:
    return generator.normal(size=shape).astype("float32")


def difference(a: Any, b: Any) -> float:
    """Return the largest difference, relative to the largest element."""
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30))


def alternate(calls: list[Callable[[], Any]], rounds: int, run: Callable[[Callable[[], Any]], float]) -> Any:
    """Return the median of what `run` measures for each call, over alternating rounds."""
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, times in zip(calls, seconds, strict=True):
            time.sleep(PAUSE)
            times.append(run(call))
    return [statistics.median(times) for times in seconds]


def time_fastest(call: Callable[[], Any], min_seconds: float = 0.02) -> float:
    """Return the seconds of a synchronous call: the best of several after the first."""
    call()
    times: list[float] = []
    while len(times) < 3 or sum(times) < min_seconds:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


# --- cpu -------------------------------------------------------------------------------------------------------------


def compare_with_numpy(
    name: str, bar: float, candidate: Callable[[], Any], peer: Callable[[], Any], rounds: int
) -> None:
    worst = difference(candidate().numpy(), peer())
    minigrad_seconds, numpy_seconds = alternate([candidate, peer], rounds, time_fastest)
    report(f"{name}, NumPy", numpy_seconds / minigrad_seconds, bar, worst=worst)


def time_launch(x: Any, w: Any, count: int = 50) -> float:
    """Return the microseconds per operation on tensors that require grad, called in sequence."""
    start = time.perf_counter()
    for _ in range(count):
        y = x * w  # noqa: F841 -- the graph of one is freed while the next is made, as in a training step
    return (time.perf_counter() - start) / count * 1e6


def time_kernel_only(x: Any) -> Callable[[], float]:
    """Return a function that measures the kernel of x + x without the engine's overhead."""
    kernels: list[Any] = []
    with kernel.observe_launches(kernels.append):
        y = x + x
    arguments = (*[array_argument(t._array) for t in (y, x, x)], x.numel())

    def call(count: int = 50) -> float:
        start = time.perf_counter()
        for _ in range(count):
            kernels[0].launch(*arguments)
        return (time.perf_counter() - start) / count * 1e6

    return call


def measure_elementwise(rounds: int) -> None:
    many, few = 16_000_000, 1_000_000
    a, b, out = random_array(many), random_array(many), np.zeros(many, np.float32)
    x, y = mg.tensor(a), mg.tensor(b)
    compare_with_numpy("add, 16 M floats", 0.9, lambda: x + y, lambda: np.add(a, b, out=out), rounds)
    compare_with_numpy("mul, 16 M floats", 0.9, lambda: x * y, lambda: np.multiply(a, b, out=out), rounds)
    compare_with_numpy("relu, 16 M floats", 0.9, x.relu, lambda: np.maximum(a, 0, out=out), rounds)
    a, out = a[:few].copy(), out[:few].copy()
    z = mg.tensor(a)
    compare_with_numpy("exp, 1 M floats", 1.0, z.exp, lambda: np.exp(a, out=out), rounds)
    compare_with_numpy("tanh, 1 M floats", 1.0, z.tanh, lambda: np.tanh(a, out=out), rounds)
    compare_with_numpy(
        "sigmoid, 1 M floats, 1 / (1 + np.exp(-x))", 1.0, z.sigmoid, lambda: 1 / (1 + np.exp(-a)), rounds
    )

    def gelu() -> Any:
        return 0.5 * a * (1 + np.tanh(0.7978845608 * (a + 0.044715 * a * a * a)))

    name = "gelu of tanh, 1 M floats, 0.5 * x * (1 + np.tanh(0.798 * (x + 0.0447 * x * x * x)))"
    compare_with_numpy(name, 1.0, lambda: mg.functional.gelu(z, approximate="tanh"), gelu, rounds)


def measure_rows(rounds: int) -> None:
    a, out = random_array(1000, 1000), np.zeros((1000, 1000), np.float32)
    one = np.zeros((1000, 1), np.float32)
    x = mg.tensor(a)

    def softmax() -> Any:
        np.subtract(a, np.max(a, axis=1, keepdims=True, out=one), out=out)
        np.exp(out, out=out)
        return np.divide(out, np.sum(out, axis=1, keepdims=True, out=one), out=out)

    line = np.zeros(1000, np.float32)
    compare_with_numpy("sum, 1,000 rows of 1,000", 1.5, lambda: x.sum(1), lambda: np.sum(a, axis=1, out=line), rounds)
    compare_with_numpy("softmax, 1,000 rows of 1,000", 1.5, lambda: x.softmax(1), softmax, rounds)


def measure_products(rounds: int) -> None:
    for m, k, n in ((256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (32, 784, 128)):
        a, b, out = random_array(m, k), random_array(k, n), np.zeros((m, n), np.float32)
        x, y = mg.tensor(a), mg.tensor(b)
        compare_with_numpy(
            f"matmul {m}x{k}x{n}",
            0.8,
            lambda x=x, y=y: x @ y,
            lambda a=a, b=b, out=out: np.matmul(a, b, out=out),
            rounds,
        )


def on_cpu(rounds: int) -> None:
    mg.set_default_device("cpu")
    x, w = mg.tensor(random_array(8), requires_grad=True), mg.tensor(random_array(8), requires_grad=True)
    time_launch(x, w)
    (microseconds,) = alternate([lambda: time_launch(x, w)], rounds, lambda call: min(call() for _ in range(40)))
    report("µs for a small recorded operation", microseconds, 15, at_most=True)
    measure_elementwise(rounds)
    measure_rows(rounds)
    measure_products(rounds)
    os.environ["MINIGRAD_DEVICE"] = "cpu"  # read by the children
    seconds, worst = bench_eager.measure(bench_eager.CONV, ("minigrad", "torch"), 3, 60)
    name = f"conv2d 32x16x28x28 to 32 channels and its gradients, {bench_eager.PEER}"
    report(name, seconds["torch"] / seconds["minigrad"], 0.5, worst=worst)


# --- cuda ------------------------------------------------------------------------------------------------------------


def on_cuda(rounds: int) -> None:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    mg.set_default_device("cuda")

    def synchronize() -> None:
        mg.synchronize()
        torch.cuda.synchronize()

    def batch(call: Callable[[], Any], min_seconds: float = 0.03) -> float:
        """Return the seconds per call, over enough calls to amortise the synchronisation."""
        count = 1
        while True:
            synchronize()
            start = time.perf_counter()
            for _ in range(count):
                call()
            synchronize()
            took = time.perf_counter() - start
            if took > min_seconds:
                return took / count
            count *= 2

    def against_torch(name: str, bar: float, candidate: Callable[[], Any], peer: Callable[[], Any]) -> None:
        worst = difference(candidate().numpy(), peer().detach().cpu().numpy())
        minigrad_seconds, torch_seconds = alternate([candidate, peer], rounds, batch)
        report(f"{name}, torch {torch.__version__}", torch_seconds / minigrad_seconds, bar, worst=worst)

    def pair(*shape: int) -> tuple[Any, Any]:
        host = random_array(*shape)
        return mg.tensor(host), torch.from_numpy(host).cuda()

    print(torch.cuda.get_device_name())
    x, w = mg.tensor(random_array(8), requires_grad=True), mg.tensor(random_array(8), requires_grad=True)
    time_launch(x, w)
    (microseconds,) = alternate([lambda: time_launch(x, w)], rounds, lambda call: min(call() for _ in range(40)))
    alone = time_kernel_only(x.detach())
    (kernel_microseconds,) = alternate([alone], rounds, lambda call: min(call() for _ in range(40)))
    report("µs for a launch", kernel_microseconds, 25, at_most=True)
    report("µs for a small recorded operation", microseconds, 25, at_most=True)
    (x, a), (y, b) = pair(1 << 26), pair(1 << 26)
    worst = difference((x + y).numpy(), (a + b).cpu().numpy())
    copied = torch.empty_like(a)
    # a copy moves 2 elements where an addition moves 3
    added, copy, peer = alternate([lambda: x + y, lambda: copied.copy_(a), lambda: a + b], rounds, batch)
    report("add, 2**26 floats, of the bandwidth of copy_", 1.5 * copy / added, 0.85, worst=worst)
    row("add, 2**26 floats, PyTorch's, of the bandwidth of copy_", f"{1.5 * copy / peer:.2f}")
    x, a = pair(8192, 4096)
    against_torch("softmax 8192x4096", 1.0, lambda: x.softmax(1), lambda: a.softmax(1))
    (x, a), (y, b) = pair(4096, 4096), pair(4096, 4096)
    against_torch("matmul 4096x4096x4096 without TF32", 0.6, lambda: x @ y, lambda: a @ b)
    (x, a), (y, b) = pair(32, 16, 28, 28), pair(32, 16, 3, 3)
    small = "conv2d 32x16x28x28 to 32 channels"
    conv2d, peer = mg.functional.conv2d, torch.nn.functional.conv2d
    against_torch(small, 0.3, lambda: conv2d(x, y, padding=1), lambda: peer(a, b, padding=1))
    (x, a), (y, b) = pair(64, 64, 56, 56), pair(64, 64, 3, 3)
    large = "conv2d 64x64x56x56 to 64 channels"
    against_torch(large, 0.3, lambda: conv2d(x, y, padding=1), lambda: peer(a, b, padding=1))
    upstream, torch_upstream = pair(64, 64, 56, 56)
    for t in (x, y, a, b):
        t.requires_grad_()

    def train(conv: Callable[..., Any], x: Any, w: Any, upstream: Any) -> Any:
        x.grad = w.grad = None
        conv(x, w, padding=1).backward(upstream)
        return w.grad

    name = f"{large} and its gradients"
    against_torch(name, 0.3, lambda: train(conv2d, x, y, upstream), lambda: train(peer, a, b, torch_upstream))
    measure_transfers()


def measure_transfers() -> None:
    """Count the transfers of a training loop to or from the GPU after its first step."""
    functional = mg.functional
    images, classes = mg.tensor(random_array(1024, 784)), mg.tensor(generator.integers(10, size=1024))
    parameters = [
        mg.tensor(0.03 * random_array(*shape), requires_grad=True) for shape in ((128, 784), (128,), (10, 128))
    ]

    def step(first: int) -> None:
        w1, b1, w2 = parameters
        x, y = images[first : first + 64], classes[first : first + 64]
        functional.cross_entropy(functional.linear(functional.relu(functional.linear(x, w1, b1)), w2), y).backward()
        with mg.no_grad():
            for p in parameters:
                p.sub_(p.grad, alpha=0.01)
                p.grad = None

    step(0)
    before = mg.memory()
    for first in range(64, 1024, 64):
        step(first)
    after = mg.memory()
    count = sum(x[0] - y[0] for x, y in ((after.uploads, before.uploads), (after.downloads, before.downloads)))
    report("transfers in 15 steps of training after the first", count, 0, at_most=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    environment = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {PEERS}"
    print(f"{environment}, load {os.getloadavg()[0]:.1f}, {datetime.date.today()}")
    print("what | peer's time / minigrad's, or as it says | bar | held or NOT")
    (on_cpu if options.device == "cpu" else on_cuda)(options.rounds)
    return 1 if missed_labels else 0


if __name__ == "__main__":
    sys.exit(main())
