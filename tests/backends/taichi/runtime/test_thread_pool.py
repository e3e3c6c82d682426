"""The threads of parallel loops: started when a loop needs them, kept when Taichi restarts, and stopped at exit."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import minigrad as mg
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.runtime import thread_pool

pytestmark = pytest.mark.needs("taichi", "free cores")

LARGE = 8 * source.MAX_SERIAL_VECTOR_ELEMENTS


def run(code):
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return [line for line in done.stdout.splitlines() if not line.startswith("[Taichi]")]


THREADS = """
import os, time
import minigrad as mg
from minigrad.backends.taichi.runtime import driver, thread_pool

def pinned_threads():
    return {{int(name) for name in os.listdir("/proc/self/task") if len(os.sched_getaffinity(int(name))) == 1}}

before = pinned_threads()
x = mg.ones(2, device="cpu") * 2
print(pinned_threads() - before, x.tolist())
{use_threads}
count = len(os.sched_getaffinity(0)) - 1
deadline = time.monotonic() + 60
while len(pinned_threads() - before) < count and time.monotonic() < deadline:
    time.sleep(0.001)
print(pinned_threads() - before == set(thread_pool.state.pool["threads"][:count, 0].tolist()))
"""


@pytest.mark.parametrize(
    "use_threads",
    [f"mg.ones({LARGE}, device='cpu') * 2", "with driver.user_kernels('cpu'): pass"],
    ids=["parallel loop", "custom kernel"],
)
def test_threads_start_before_their_first_use_only(use_threads):
    """Starting them takes a kernel of its own, which a program of small operations does not pay for."""
    assert run(THREADS.format(use_threads=use_threads)) == ["set() [2.0, 2.0]", "True"]


def test_loops_after_any_pause_compute_every_element():
    rng = np.random.default_rng(0)
    x = mg.tensor(rng.normal(size=LARGE).astype("float32"), device="cpu")
    expected = x.numpy() * np.float32(3)
    for k in range(400):
        if k % 8 == 0:
            time.sleep(rng.uniform(0, 4e-4))  # the threads spin for 0.2 ms and then sleep
        np.testing.assert_array_equal((x * 3.0).numpy(), expected)


def test_loops_of_several_threads_of_python():
    x = mg.arange(LARGE, dtype=mg.float32, device="cpu")
    wrong = []

    def compute(factor):
        for _ in range(100):
            if not np.array_equal((x * factor).numpy(), np.arange(LARGE, dtype="float32") * np.float32(factor)):
                wrong.append(factor)

    threads = [threading.Thread(target=compute, args=(float(k),)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_threads_survive_restarts_of_taichi_and_stop_at_exit():
    """The threads execute code that the first program compiled. They still spin when the process ends."""
    assert run(f"""
import taichi as ti
import minigrad as mg
for _ in range(3):
    print(float((mg.ones({LARGE}, device="cpu") * 2).sum()))
    ti.init(arch=ti.cpu, log_level="error")
    field = ti.field(ti.f32, shape={LARGE})
    field.fill(1)
    print(float(field.to_numpy().sum()))
print(float((mg.ones({LARGE}, device="cpu") * 2).sum()))
""") == [f"{2.0 * LARGE}", f"{1.0 * LARGE}"] * 3 + [f"{2.0 * LARGE}"]


def test_a_program_of_one_thread_runs_loops_by_itself():
    code = f"""
import taichi as ti
ti.init(arch=ti.cpu, log_level="error", cpu_max_num_threads=1)
import minigrad as mg
print(float((mg.ones({LARGE}, device="cpu") * 2).sum()))
"""
    assert run(code) == [f"{2.0 * LARGE}"]


def test_only_linux_on_x86_64_has_the_pool(monkeypatch):
    assert thread_pool.install()
    monkeypatch.setattr(thread_pool, "FUSED", False)
    assert not thread_pool.install()
