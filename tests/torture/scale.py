"""Large scale: long graphs, large tensors, many steps, concurrent processes and threads, forks.

The limits of memory and time are loose enough for a busy machine, and tight enough to reveal twice the work per node,
an extra copy or a leak.
"""

from __future__ import annotations

import gc
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torture import Campaign, Skip

__all__ = ["CAMPAIGNS"]

NUMPY = (("MINIGRAD_DEVICE", "numpy"),)
CPU = (("MINIGRAD_DEVICE", "cpu"),)
VALUES, VALUE_BYTES = 1_000_000, 600  # per recorded Value: the object, its operands, data, gradient
TENSORS, TENSOR_BYTES = 100_000, 3_000  # per recorded tensor of 4 elements: also its storage and saved tensors
LARGE = 10**8
STEPS = 10_000
GROWTH = 8 * 2**20


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def need_memory(gigabytes: float) -> None:
    """Raise Skip if less memory is free."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable") and int(line.split()[1]) < gigabytes * 2**20:
            raise Skip(f"needs {gigabytes:g} GiB of free memory")


def check_growth(build: Callable[[int], Any], nodes: int, max_bytes: int) -> str | None:
    """Build a graph, run backward and free it; return what is wrong with its memory or its time.

    The time per node must not grow with the number of nodes: twice that of a hundredth, for cache misses.
    """
    times = []
    for count in (nodes // 100, nodes):
        gc.collect()
        memory_before, start = resident_bytes(), time.process_time()
        x, y = build(count)
        bytes_per_node = (resident_bytes() - memory_before) / count
        y.backward()
        gradient = float(x.grad if isinstance(x.grad, float) else x.grad[0])
        if gradient != 1.0:
            return f"the gradient through {count:,} nodes is {gradient}, not 1"
        del x, y
        gc.collect()
        times.append((time.process_time() - start) / count)
    if bytes_per_node > max_bytes:
        return f"a node takes {bytes_per_node:.0f} bytes, limit {max_bytes}"
    if times[1] > 4 * times[0]:
        return f"a node of {nodes:,} takes {times[1] / times[0]:.1f} times as long as one of {nodes // 100:,}"
    if (leaked := resident_bytes() - memory_before) > nodes * max_bytes / 4:
        return f"{leaked / nodes:.0f} bytes per node are leaked after the graph is freed"
    return None


def check_values(case_number: int) -> str | None:
    import minigrad as mg

    def chain(count: int) -> Any:
        x = y = mg.Value(1.0)
        for k in range(count // 2):
            y = (y * 1.0) if case_number else (y + float(k % 2)) - float(k % 2)
        return x, y

    return check_growth(chain, VALUES, VALUE_BYTES)


def check_tensors(case_number: int) -> str | None:
    import minigrad as mg

    def chain(count: int) -> Any:
        x = mg.zeros(4, requires_grad=True)
        y = x
        for _ in range(count):
            y = y * 1.0 if case_number else y + 1.0
        return x, y[0]

    return check_growth(chain, TENSORS, TENSOR_BYTES)


def check_large(case_number: int) -> str | None:
    """Run functions of 10**8 elements: check the results, and that memory does not exceed operands and results."""
    import minigrad as mg

    need_memory(8)
    functions: list[
        tuple[str, Callable[[Any], Any], float, float]
    ] = [  # peak memory only rises: order by expected peak
        ("sum", lambda x: x.sum(), LARGE / 2, 1.1),
        ("mean", lambda x: x.mean(), 0.5, 1.1),
        ("amax", lambda x: x.view(10_000, 10_000).amax(1).sum(), 5_000.0, 1.1),
        ("index", lambda x: x[mg.tensor([0, LARGE - 1])].sum(), 1.0, 1.1),
        ("write", lambda x: x.mul_(2.0)[-1] / 2, 0.5, 1.1),
        ("add", lambda x: (x + 1.0)[-1], 1.5, 2.1),
        ("tanh", lambda x: x.tanh()[-1], 0.46211715726, 2.1),
        ("softmax", lambda x: mg.functional.softmax(x.view(10_000, 10_000), 1)[-1, -1] * 10_000, 1.0, 2.1),
        ("cumsum", lambda x: x.view(10_000, 10_000).cumsum(1)[-1, -1], 5_000.0, 2.1),
        ("transposed", lambda x: x.view(10_000, 10_000).T.contiguous()[-1, -1], 0.5, 2.1),
        ("backward", _gradient, 0.5, 4.2),
    ]
    name, function, expected, max_factor = functions[case_number % len(functions)]
    x = mg.full((LARGE,), 0.5)
    result = float(function(x))
    if abs(result - expected) > 1e-6 * expected:
        return f"{name} of {LARGE:,} elements returns {result}, not {expected}"
    peak = mg.memory()[x.device].peak / (4 * LARGE)
    return f"{name} used {peak:.1f} times the operand's memory, limit {max_factor}" if peak > max_factor else None


def _gradient(x: Any) -> Any:
    x.requires_grad_()
    (x * x).sum().backward()
    return x.grad[-1] / 2


def check_steps(case_number: int) -> str | None:
    """Train for 10,000 steps: memory and the number of tensors stay as after the first thousand."""
    import minigrad as mg

    mg.manual_seed(case_number)
    is_jitted = case_number % 2 == 1
    model = mg.nn.Sequential(mg.nn.Linear(8, 16), mg.nn.ReLU(), mg.nn.Linear(16, 2))
    optimizer = mg.optim.Adam(model.parameters(), lr=1e-3)
    x, y = mg.randn(16, 8), mg.randint(0, 2, (16,))

    def step() -> Any:
        optimizer.zero_grad()
        loss = mg.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    if is_jitted:
        step = mg.jit(step)
    early = late = (0, 0, 0)
    for k in range(STEPS):
        float(step())
        if k in (999, STEPS - 1):
            gc.collect()
            counts = mg.memory()[x.device]
            early, late = late, (counts.tensors, counts.bytes, resident_bytes())
    if early[:2] != late[:2]:
        return f"tensors and their bytes grew from {early[:2]} to {late[:2]}"
    if late[2] - early[2] > GROWTH:
        return f"the process grew by {(late[2] - early[2]) / 2**20:.1f} MiB in {STEPS - 1000:,} steps"
    return None


SHARED = """
import json, minigrad as mg
mg.set_default_device("cpu"); mg.manual_seed(0)
x = mg.randn(32, 32)
step = mg.jit(lambda x: ((x @ x).tanh().sum(1) * 0.5).exp().sum())
print(json.dumps([step(x).item() for _ in range(18)] + [x.sort(1)[0].cumsum(1).sum().item(), x.erf().var().item()]))
"""


def check_shared_cache(case_number: int) -> str | None:
    """Start eight processes at once with one empty kernel cache; a ninth finds it full."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TI_OFFLINE_CACHE_FILE_PATH": folder}

        def start() -> subprocess.Popen[str]:
            options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            return subprocess.Popen([sys.executable, "-c", SHARED], env=environment, **options)

        children = [start() for _ in range(8)]
        results_by_process = [(*child.communicate(), child.returncode) for child in children]
        last = start()
        results_by_process.append((*last.communicate(), last.returncode))
    if wrong := [error[-300:] for _, error, code in results_by_process if code]:
        return f"{len(wrong)} of 9 processes failed: {wrong[0]}"
    results = {json.dumps(json.loads(output.splitlines()[-1])) for output, _, _ in results_by_process}
    return None if len(results) == 1 else f"the processes computed different results: {sorted(results)}"


def check_threads(case_number: int) -> str | None:
    """Run eight threads at once on separate data: eager, backward, a jitted step, Values."""
    import minigrad as mg

    generator = random.Random(case_number)
    a = [mg.full((n, n), 0.25) for n in (3, 8, 17, 32, 64, 5, 9, 40)]
    jitted = mg.jit(lambda x: (x @ x).tanh().sum())

    def work(k: int) -> float:
        x = a[k].clone().requires_grad_()
        (x @ x).tanh().sum().backward()
        v = mg.Value(0.5)
        (v * v).tanh().backward()
        total = float(x.grad.sum()) + v.grad + float((a[k] * 2).exp().sum())
        return total + (float(jitted(a[k])) if k % 2 else float((a[k] @ a[k]).tanh().sum()))

    alone = [work(k) for k in range(len(a))]
    results: list[list[float]] = [[] for _ in a]
    errors: list[str] = []

    def run(k: int) -> None:
        try:
            results[k] += [work(k) for _ in range(15)]
        except Exception as error:  # noqa: BLE001 -- any exception is reported
            errors.append(f"{type(error).__name__}: {error}")

    pool = [threading.Thread(target=run, args=(k,)) for k in generator.sample(range(len(a)), len(a))]
    for one in pool:
        one.start()
    for one in pool:
        one.join()
    if errors:
        return f"{len(errors)} threads failed, the first with {errors[0]}"
    for k, losses in enumerate(results):
        if any(abs(one - alone[k]) > 1e-6 * abs(alone[k]) for one in losses):
            return f"thread {k} computed {losses[:3]}…, but {alone[k]} alone"
    return None


FORKS = """
import os, sys
import minigrad as mg
device, way = sys.argv[1:]
a = mg.full((8, 8), 0.5, device=device)
(a @ a).sum().item()
child = os.fork()
if not child:
    try:
        if way == "device":
            print((a @ a).sum().item(), flush=True)
        elif way == "numpy":
            print((mg.ones(3, device="numpy") * 2).tolist(), flush=True)
        else:
            v = mg.Value(3.0); (v * v).backward(); print(v.grad, flush=True)
    except mg.errors.DeviceError as error:
        print("DeviceError:", str(error).splitlines()[0], flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
print(status, (a @ a).sum().item(), flush=True)
"""


def check_fork(case_number: int) -> str | None:
    """Fork after use: the child works, or raises a clear error where it cannot, and the parent continues."""
    device, work = ("numpy", "cpu")[case_number % 2], ("device", "numpy", "values")[case_number // 2 % 3]
    child = subprocess.run(
        [sys.executable, "-c", FORKS, device, work], capture_output=True, text=True, timeout=120, check=False
    )
    error = "DeviceError: Taichi does not survive a fork"
    expected = {"numpy": "[2.0, 2.0, 2.0]", "values": "6.0", "device": "128.0" if device == "numpy" else error}[work]
    lines = child.stdout.splitlines()
    if child.returncode or len(lines) != 2 or not lines[0].startswith(expected) or lines[1] != "0 128.0":
        return f"{work} after a fork on {device}: {lines}, {child.stderr[-300:]}"
    return None


CAMPAIGNS = [
    Campaign(
        "values", f"a chain of {VALUES:,} Values: bytes and time per node, freeing", check_values, 2, 1, seconds=300
    ),
    Campaign(
        "tensors", f"a chain of {TENSORS:,} tensors: the same", check_tensors, 2, 1, seconds=300, environment=NUMPY
    ),
    Campaign("large", "functions of 10⁸ elements on cpu: results and memory", check_large, 11, 1, 300, CPU),
    Campaign("steps", f"{STEPS:,} training steps, eager and jitted: flat memory", check_steps, 2, 0, 600, NUMPY),
    Campaign("steps on cpu", "the same with Taichi's kernels", check_steps, 2, 0, 600, CPU),
    Campaign("sharing", "eight concurrent processes with one empty kernel cache", check_shared_cache, 10, 0, 300, CPU),
    Campaign("threads", "eight threads that compute concurrently", check_threads, 30, 1, 300, CPU),
    Campaign("threads on numpy", "the same on the device numpy", check_threads, 30, 0, 300, NUMPY),
    Campaign("forks", "a fork after use: numpy, cpu, Values in the child", check_fork, 6, 1, 150),
]
