"""Long runs: memory stays flat over 10,000 steps (4,000 in `make test`), and Ctrl-C leaves a usable state."""

import contextlib
import faulthandler
import json
import os
import select
import signal
import subprocess
import sys
import time
from itertools import cycle

import pytest

from needs import needs
from tiers import NIGHTLY

needs("numpy")

NEEDS_TAICHI = pytest.mark.needs("taichi")
DEVICES = ["numpy", pytest.param("cpu", marks=[NEEDS_TAICHI, pytest.mark.nightly])]
STEPS, WARMUP = (10_000, 2_000) if NIGHTLY else (4_000, 1_000)
INTERRUPTS = 25
GROWTH = 4 << 20  # bytes that the process may grow by: less than 400 bytes for each of 10,000 steps


def step(mg, parameters, x, labels):
    """Run one training step of a perceptron with one hidden layer, written out, and return the loss."""
    w1, b1, w2, b2 = parameters
    loss = mg.functional.cross_entropy(mg.tanh(x @ w1 + b1) @ w2 + b2, labels)
    loss.backward()
    with mg.no_grad():
        for p in parameters:
            p.sub_(p.grad, alpha=0.05)
            p.grad = None
    return loss.item()


def make_model(mg):
    mg.manual_seed(0)
    parameters = [mg.randn(*shape) * 0.3 for shape in ((8, 16), (16,), (16, 4), (4,))]
    for p in parameters:
        p.requires_grad_()
    x = mg.randn(32, 8)
    return parameters, x, x[:, :4].argmax(1)


def footprint(mg):
    import gc

    gc.collect()
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    usage = mg.memory()[mg.get_default_device()]
    return [usage.tensors, usage.bytes, usage.pooled, usage.peak, resident]


def trained(device):
    """In a child process: print the memory use and the loss after the first steps and after all."""
    import minigrad as mg

    mg.set_default_device(device)
    setup = make_model(mg)
    rows = []
    for k in range(WARMUP + STEPS + 1):
        loss = step(mg, *setup)
        if k in (WARMUP, WARMUP + STEPS):
            rows.append([*footprint(mg), loss])
    print(json.dumps(rows))


def interrupted(device):
    """In a child process: compute until enough interrupts arrived, also during kernel compilation, then train."""
    import minigrad as mg

    mg.set_default_device(device)
    faulthandler.register(signal.SIGUSR1)
    setup, interrupts, computing = make_model(mg), 0, False

    def interrupt(signal_number, frame):
        nonlocal interrupts, computing
        if computing:  # otherwise it would hit between the two lines of the loop below
            interrupts, computing = interrupts + 1, False
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    a = mg.rand(400, 400)
    print("ready", flush=True)
    ops = ["exp", "sin", "tanh", "sum", "var", "sort", "cumsum", "argmax", "softmax", "log1p", "erf", "logsumexp"]
    while interrupts < INTERRUPTS:
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                for name in ops:
                    computing = True  # again: Python ignores an exception raised in a destructor
                    args = (1,) if name in ("cumsum", "softmax", "logsumexp") else ()
                    getattr(a.double() if interrupts % 2 else a, name)(*args)
                    (a @ a).relu()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print(json.dumps([step(mg, *setup) for _ in range(20)]), flush=True)


def calm(device):
    """In a child process: run the same training without interrupts."""
    import minigrad as mg

    mg.set_default_device(device)
    setup = make_model(mg)
    print(json.dumps([step(mg, *setup) for _ in range(20)]))


def start_child(call):
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    env = {**os.environ, "PYTHONPATH": path}
    return subprocess.Popen(
        [sys.executable, "-c", f"import test_lasting; test_lasting.{call}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )


@pytest.mark.slow
@pytest.mark.needs("Linux")
@pytest.mark.nightly
@pytest.mark.parametrize("device", DEVICES)
def test_memory_stays_flat_over_thousands_of_steps(device):
    process = start_child(f"trained({device!r})")
    output, errors = process.communicate(timeout=900)
    assert process.returncode == 0, errors
    (*first, early), (*last, late) = json.loads(output)
    assert last[:4] == first[:4]  # tensors, their bytes, pooled bytes, peak bytes
    assert last[4] - first[4] < GROWTH
    assert late < early < 1.0  # the model learned


@pytest.mark.slow
@pytest.mark.needs("POSIX")
@pytest.mark.parametrize("device", DEVICES)
def test_ctrl_c_leaves_a_usable_state_at_any_time(device):
    process = start_child(f"interrupted({device!r})")
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    deadline = time.monotonic() + 240
    for wait in cycle([0.05, 0.063, 0.076, 0.089, 0.102, 0.115, 0.128]):
        if select.select([process.stdout], [], [], wait)[0]:  # it printed its losses or exited
            break
        if time.monotonic() > deadline:
            process.send_signal(signal.SIGUSR1)  # dump its traceback
            time.sleep(5)
            process.kill()
            break
        process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    calm = start_child(f"calm({device!r})")
    assert json.loads(output) == pytest.approx(json.loads(calm.communicate(timeout=300)[0]), rel=1e-6)
