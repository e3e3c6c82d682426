"""Killed processes, interrupts and full disks: every file left is either the old or the new one, complete.

A case forks where it can: the child has the library loaded, and is killed at a time that depends on the case. The
device is `numpy` there, since Taichi's threads do not survive a fork; separate processes test Taichi's own files.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torture import Campaign

__all__ = ["CAMPAIGNS"]

NUMPY = (("MINIGRAD_DEVICE", "numpy"),)
RUN_CODE = (sys.executable, "-c")


def kill_during(generator: random.Random, work: Callable[[], Any], max_seconds: float) -> None:
    """Fork, let the child `work`, and kill it within `max_seconds` seconds."""
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            work()
        os._exit(0)
    time.sleep(generator.uniform(0, max_seconds))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def write_repeatedly(write: Callable[[int], Any]) -> None:
    for k in range(10**9):
        write(k % 2)


@functools.cache
def states() -> list[dict[str, Any]]:
    """Return two states of one layout, half a megabyte each."""
    import minigrad as mg

    mg.set_default_device("numpy")
    return [{"weight": mg.full((256, 500), float(k)), "bias": mg.full((500,), k + 0.5)} for k in (1, 2)]


def check_complete(path: Path) -> str | None:
    """Return what is wrong with a file that must contain one of the two states."""
    import minigrad as mg

    state = mg.load(path)
    sums = {name: x.unique().tolist() for name, x in state.items()}
    if sums not in ({"weight": [1.0], "bias": [1.5]}, {"weight": [2.0], "bias": [2.5]}):
        return f"{path.name} contains neither the old state nor the new one: {sums}"
    return None


def while_saving(case_number: int) -> str | None:
    import minigrad as mg

    generator, two_states = random.Random(f"saving{case_number}"), states()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("state.safetensors" if case_number % 2 else "state.pt")
        mg.save(two_states[0], path)
        kill_during(generator, lambda: write_repeatedly(lambda k: mg.save(two_states[k], path)), 0.05)
        if (wrong := check_complete(path)) is not None:
            return wrong
        if leftovers := [name for name in os.listdir(folder) if name != path.name and not name.endswith(".tmp")]:
            return f"files without the suffix .tmp were left: {leftovers}"
        mg.save(two_states[1], path)
        return check_complete(path)


def while_writing_data(case_number: int) -> str | None:
    import numpy as np

    from minigrad.data import read_idx, write_idx

    generator = random.Random(f"data{case_number}")
    two_arrays = [np.full((300, 28, 28), k, np.uint8) for k in (1, 2)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("images.gz" if case_number % 2 else "images")
        write_idx(path, two_arrays[0])
        kill_during(generator, lambda: write_repeatedly(lambda k: write_idx(path, two_arrays[k])), 0.03)
        stored = read_idx(path)
        if not any(np.array_equal(stored, one) for one in two_arrays):
            return f"{path.name} contains neither the old images nor the new ones"
    return None


def while_copying_lessons(case_number: int) -> str | None:
    from minigrad.cli.lessons import _copy_lessons, _lesson_files

    generator = random.Random(f"lessons{case_number}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "lessons"
        with open(os.devnull, "w", encoding="utf-8") as quiet, contextlib.redirect_stdout(quiet):
            kill_during(generator, lambda: _copy_lessons(folder), 0.25)
            _copy_lessons(folder)
        for file, data in _lesson_files("minigrad lab"):
            if (folder / file).read_bytes() != data:
                return f"{file} is not the lesson after the second copy"
    return None


def train_small(path: Path | None) -> bytes:
    """Train a small network, resuming from a checkpoint if there is one; return all weights as bytes."""
    import minigrad as mg
    from minigrad.training import fit

    mg.set_default_device("numpy")
    mg.manual_seed(3)
    model = mg.nn.Sequential(mg.nn.Linear(4, 16), mg.nn.Tanh(), mg.nn.Dropout(0.2), mg.nn.Linear(16, 2))
    inputs, targets = mg.randn(48, 4), mg.randn(48, 2)
    loader = mg.data.DataLoader(mg.data.TensorDataset(inputs, targets), batch_size=8, shuffle=True)
    options: dict[str, Any] = {} if path is None else {"checkpoint": path, "checkpoint_every": 1}
    optimizer = mg.optim.Adam(model.parameters(), lr=1e-2)
    fit(model, loader, optimizer, mg.functional.mse_loss, epochs=4, progress=False, seed=5, **options)
    return b"".join(x.numpy().tobytes() for x in model.state_dict().values())


@functools.cache
def uninterrupted_weights() -> bytes:
    return train_small(None)


def while_fitting(case_number: int) -> str | None:
    generator, expected = random.Random(f"fitting{case_number}"), uninterrupted_weights()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.safetensors"
        for _ in range(1 + case_number % 3):
            kill_during(generator, lambda: train_small(path), 0.25)
        if train_small(path) != expected:
            return "training that was killed and resumed ends with other weights"
    return None


COMPILES = """
import json, sys
import minigrad as mg
mg.set_default_device("cpu")
mg.manual_seed(0)
model, x = mg.nn.Linear(8, 4), mg.randn(16, 8)
optimizer = mg.optim.SGD(model.parameters(), lr=0.1)
@mg.jit
def step(x):
    optimizer.zero_grad()
    loss = (model(x).tanh() ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss
print("begins", flush=True)
losses = [step(x).item() for _ in range(20)]
print(json.dumps(losses), flush=True)
"""


@functools.cache
def expected_losses() -> tuple[list[float], float]:
    """Return the losses of the program without a kill, and the duration of compilation."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        losses = run_compiling(folder)
        return losses, time.monotonic() - start


def run_compiling(folder: str) -> list[float]:
    environment = {**os.environ, "TI_OFFLINE_CACHE_FILE_PATH": folder}
    child = subprocess.run([*RUN_CODE, COMPILES], env=environment, capture_output=True, text=True, check=False)
    if child.returncode:
        raise AssertionError(f"it exited with {child.returncode}: {child.stderr[-500:]}")
    losses: list[float] = json.loads(child.stdout.splitlines()[-1])
    return losses


def while_compiling(case_number: int) -> str | None:
    generator, (expected, duration) = random.Random(f"compiling{case_number}"), expected_losses()
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TI_OFFLINE_CACHE_FILE_PATH": folder}
        child = subprocess.Popen(
            [*RUN_CODE, COMPILES], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(generator.uniform(0, duration))  # including the end, when Taichi writes its files
        child.kill()
        child.communicate()
        if case_number % 2:  # truncate half of the files
            for path in sorted(Path(folder).rglob("*")):
                if path.is_file() and generator.random() < 0.5:
                    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        if (losses := run_compiling(folder)) != expected:
            return f"losses differ after a kill: {losses[:3]}, but {expected[:3]} without"
    return None


LOOPS = {
    "eager": "while True: (a @ a).tanh().sum()",
    "tiny": "while True: (b * b).sum()",
    "backward": "while True: (c * c).exp().mean().backward()",
    "jit": "while True: step(a)",
    "tape": "while True: tape.forward([0.5, 2.0]); tape.backward()",
    "values": "while True: ((u + v) * u).tanh().backward()",
}
SETUP = """
import minigrad as mg
a, b = mg.full((64, 64), 0.125), mg.tensor([1.0, 2.0])
c = mg.full((64, 64), 0.5, requires_grad=True)
step = mg.jit(lambda x: (x @ x).tanh().sum())
u, v = mg.Value(0.5), mg.Value(2.0)
tape = mg.Tape((u + v) * u)
for _ in range(20): step(a)
"""
CHECK = """
w = mg.Value(3.0)
((w * w) + 1).backward()
t = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
(t * t).sum().backward()
print((a @ a).sum().item(), step(a).item() == (a @ a).tanh().sum().item(), tape.forward([1.0, 2.0]), w.grad,
      t.grad.tolist(), mg.is_grad_enabled())
"""
EXPECTED_OUTPUT = "4096.0 True 3.0 6.0 [2.0, 4.0, 6.0] True"
MAX_INTERRUPTS = 5  # an interrupt in a destructor is lost, like any exception there


class JupyterKernel:
    """A Jupyter kernel, as behind a notebook."""

    def __init__(self) -> None:
        from jupyter_client.manager import start_new_kernel

        self.manager, self.client = start_new_kernel()
        self.run(SETUP)

    def start(self, code: str) -> str:
        # Otherwise Jupyter answers requests right after an error with "aborted".
        name: str = self.client.execute(code, stop_on_error=False)
        return name

    def wait(self, name: str, seconds: float) -> dict[str, Any] | None:
        """Return the reply to a cell, or None on timeout."""
        deadline = time.monotonic() + seconds
        while (remaining := deadline - time.monotonic()) > 0:
            with contextlib.suppress(Exception):  # queue.Empty, which jupyter_client raises
                reply = self.client.get_shell_msg(timeout=remaining)
                if reply["parent_header"].get("msg_id") == name:
                    content: dict[str, Any] = reply["content"]
                    return content
        return None

    def run(self, code: str) -> str:
        """Return what a cell prints. Raises AssertionError if it fails."""
        printed: list[str] = []

        def collect_output(message: Any) -> None:
            printed.append(message["content"].get("text", ""))

        reply = self.client.execute_interactive(code, timeout=120, output_hook=collect_output)["content"]
        assert reply["status"] == "ok", f"{reply.get('ename')}: {reply.get('evalue')}"
        return "".join(printed).strip()


@functools.cache
def kernel() -> JupyterKernel:
    return JupyterKernel()


def in_a_notebook(case_number: int) -> str | None:
    generator, running_kernel = random.Random(f"notebook{case_number}"), kernel()
    loop = sorted(LOOPS)[case_number % len(LOOPS)]
    cell = running_kernel.start(LOOPS[loop])
    reply = None
    for _ in range(MAX_INTERRUPTS):
        time.sleep(generator.uniform(0.02, 0.3))
        running_kernel.manager.interrupt_kernel()
        if (reply := running_kernel.wait(cell, 3.0)) is not None:
            break
    if reply is None:
        kernel.cache_clear()
        running_kernel.manager.shutdown_kernel(now=True)
        return f"{loop}: the cell still runs after {MAX_INTERRUPTS} interrupts"
    if reply.get("ename") != "KeyboardInterrupt":
        return f"{loop}: the cell ended with {reply.get('ename')}: {reply.get('evalue')}"
    if (output := running_kernel.run(CHECK)) != EXPECTED_OUTPUT:
        return f"{loop}: the next cell prints {output!r}"
    return None


def on_a_full_disk(case_number: int) -> str | None:
    """Simulate a full disk by a limit on the file size: writing beyond it fails in the same way."""
    import minigrad as mg

    generator, two_states = random.Random(f"full{case_number}"), states()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("state.safetensors" if case_number % 2 else "state.pt")
        mg.save(two_states[0], path)
        size = generator.randrange(path.stat().st_size)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _, hard_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard_limit))
        try:
            mg.save(two_states[1], path)
        except OSError as error:
            message = str(error)
        else:
            return f"no error though the disk is full after {size} bytes"
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard_limit, hard_limit))
        if mg.load(path)["bias"].unique().tolist() != [1.5]:
            return f"the old file is gone ({message})"
        if os.listdir(folder) != [path.name]:
            return f"a partial file was left: {os.listdir(folder)}"
    return None


USES = """
import minigrad as mg
from minigrad_viz import draw
x = mg.full((8, 8), 0.5, requires_grad=True)
step = mg.jit(lambda x: (x @ x).tanh().sum())
for _ in range(18): y = step(x)
y = (x @ x).sum(); y.backward()
assert x.grad.tolist()[0][0] == 8.0
assert draw((mg.Value(2.0, "a") * 3).tanh()).svg().startswith("<svg")
print("works")
"""


def without_a_home(case_number: int) -> str | None:
    """Set a home or cache folder that is not writable, is missing, or is a file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "file"
        file.write_text("no folder", encoding="utf-8")
        missing = {"HOME": str(folder / "missing" / "home")}
        environments: list[dict[str, str]] = [
            missing,
            {"HOME": "/proc"},  # not even root can write here
            {"HOME": str(file)},
            {"HOME": "/dev/null"},
            {"HOME": name, "TI_OFFLINE_CACHE_FILE_PATH": str(file)},
            {"HOME": name, "TI_OFFLINE_CACHE_FILE_PATH": "/proc/taichi"},
            {**missing, "XDG_CACHE_HOME": "/proc"},
            {"HOME": name, "TMPDIR": "/proc"},
        ]
        variables = environments[case_number % len(environments)]
        environ = {key: text for key, text in os.environ.items() if key != "TI_OFFLINE_CACHE_FILE_PATH"}
        environment = {**environ, **variables}
        child = subprocess.run([*RUN_CODE, USES], env=environment, cwd="/", capture_output=True, text=True, check=False)
        if child.returncode or child.stdout.strip().splitlines()[-1:] != ["works"]:
            output = (child.stdout + child.stderr).strip()[-600:]
            return f"with {sorted(variables.items())} it exits with {child.returncode}: {output}"
    return None


CAMPAIGNS = [
    Campaign("killed saving", "kill -9 while a state is saved, as safetensors and as .pt", while_saving, 100, 8),
    Campaign("killed data", "kill -9 while a data file is written", while_writing_data, 100, 6),
    Campaign("killed lessons", "kill -9 while the lessons are copied", while_copying_lessons, 100, 3),
    Campaign(
        "killed training",
        "kill -9 one to three times while `fit` trains and saves, then resume to the same bits",
        while_fitting,
        100,
        4,
        environment=NUMPY,
    ),
    Campaign(
        "killed compiling",
        "kill -9 while Taichi compiles and caches kernels; every other case also truncates half of the files",
        while_compiling,
        100,
        0,
        seconds=300,
    ),
    Campaign(
        "interrupted cells",
        "interrupts (Ctrl-C) of cells in eager code, backward, a jitted step, a tape, Values; then the next cell",
        in_a_notebook,
        300,
        3,
        seconds=200,
        needs=("ipykernel",),
    ),
    Campaign("full disk", "the disk is full at a random byte while a file is overwritten", on_a_full_disk, 100, 10),
    Campaign(
        "no home",
        "home and cache folders that are not writable, are missing, or are files",
        without_a_home,
        8,
        0,
        seconds=200,
    ),
]
