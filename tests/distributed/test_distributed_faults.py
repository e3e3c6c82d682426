"""distributed.fit when the terminal, driver or a worker dies: the same results, and no orphaned processes."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import distributed_jobs as jobs
import minigrad as mg
from minigrad.training import fit

pytestmark = [pytest.mark.nightly, pytest.mark.needs("Linux", "ray", "Ray's processes")]

CHILD = """
import sys
import distributed_jobs as jobs
import minigrad as mg

def told(run):
    print(run.step, flush=True)
    if sys.argv[1] == "raise" and run.step == 4:
        raise LookupError("enough")

options = {"epochs": int(sys.argv[3]), "checkpoint": sys.argv[2], "checkpoint_every": 1}
mg.distributed.fit(jobs.dropout, jobs.loader(), seed=5, callbacks=[told], **options)
"""


def begun(mark, what, path, epochs):
    """Start a driver in a new session, as in a terminal; its processes have `mark` in their environment."""
    places = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": places, "MINIGRAD_TEST_MARK": mark}
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, what, str(path), str(epochs)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def processes(mark, name=""):
    """Return the pids of processes with `mark` in their environment and `name` in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found += [(int(entry.name), command)] if name in command and command else []
        except (OSError, ValueError):  # not a process, or one that has just exited
            continue
    return found


def gone(mark, seconds=180):
    """Return the processes still running after at most `seconds`."""
    end = time.monotonic() + seconds
    while (left := processes(mark)) and time.monotonic() < end:
        time.sleep(0.2)
    return left


def until(child, step):
    for line in child.stdout:
        if line.strip() == str(step):
            return
    raise AssertionError(child.stderr.read())


def alone(epochs, path=None):
    mg.manual_seed(5)
    model, optimizer, loss = jobs.dropout()
    fit(model, jobs.loader(), optimizer, loss, epochs=epochs, seed=5, progress=False, checkpoint=path)
    return np.concatenate([x.numpy().ravel() for x in model.state_dict().values()])


@pytest.mark.parametrize(
    "what", ["interrupt", *(pytest.param(what, marks=pytest.mark.slow) for what in ("end", "raise", "kill"))]
)
def test_no_process_stays_and_the_checkpoint_goes_on(what, tmp_path):
    mark, path = f"mark-{os.getpid()}-{what}", tmp_path / "c"
    epochs = 1 if what == "end" else 400
    child = begun(mark, what, path, epochs)
    until(child, 4)
    if what in ("interrupt", "kill"):  # the others exit too early to check
        assert processes(mark, "raylet")
        assert len(processes(mark, "ray::Worker")) == 2
    if what == "interrupt":
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does
    if what == "kill":
        child.kill()
    written, said = child.communicate(timeout=120)
    assert gone(mark) == []
    assert child.returncode == {"end": 0, "raise": 1, "interrupt": -signal.SIGINT, "kill": -signal.SIGKILL}[what], said
    if what == "raise":
        assert said.rstrip().endswith("LookupError: enough")
    if what == "interrupt":
        assert f"interrupted: run the same call again to resume from {path}" in written
    if what == "end":
        assert "epoch 1/1: 100%" in said
    state = mg.load(path)
    assert state["fit"]["step"] >= 3
    found = np.concatenate([x.numpy().ravel() for x in state["model"].values()]) if what == "end" else None
    if found is None:  # resume in this process, without Ray
        epochs = state["fit"]["epoch"] + 2
        found = alone(epochs, path)
    np.testing.assert_allclose(found, alone(epochs), rtol=0, atol=1e-9)


@pytest.mark.slow
def test_a_worker_killed_at_20_moments_changes_no_digit(monkeypatch):
    mark, generator, kills = f"mark-{os.getpid()}-twenty", random.Random(0), []
    monkeypatch.setenv("MINIGRAD_TEST_MARK", mark)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    over = threading.Event()

    def kill():
        while len(kills) < 20 and not over.is_set():
            time.sleep(generator.uniform(0.1, 2))
            if there := processes(mark, "ray::Worker"):
                pid, _ = generator.choice(there)
                os.kill(pid, signal.SIGKILL)
                kills.append(pid)

    def patient(run):  # keep the last epoch running until all kills have happened
        if run.step == 1:
            thread.start()
        time.sleep(0.05 if len(kills) < 20 else 0)

    thread = threading.Thread(target=kill)
    options = {"workers": 2, "seed": 5, "progress": False, "restarts": 40}
    try:
        found = mg.distributed.fit(jobs.dropout, jobs.loader(), epochs=160, callbacks=[patient], **options).model
    finally:
        over.set()
        thread.join()
    assert len(kills) == 20
    undisturbed = mg.distributed.fit(jobs.dropout, jobs.loader(), epochs=160, **options).model
    for a, b in zip(found.parameters(), undisturbed.parameters(), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    assert gone(mark) == []


@pytest.mark.slow
def test_a_worker_that_ray_ends_for_its_memory_changes_no_digit(monkeypatch, tmp_path):
    from ray._private.utils import get_system_memory, get_used_memory

    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    options = {"workers": 2, "seed": 5, "progress": False, "epochs": 8}
    undisturbed = mg.distributed.fit(jobs.dropout, jobs.loader(), **options).model
    monkeypatch.setenv("RAY_memory_usage_threshold", f"{(get_used_memory() + 3e9) / get_system_memory():.3f}")
    monkeypatch.setenv("RAY_memory_monitor_refresh_ms", "100")
    marking = jobs.Marking(tmp_path / "mark", "fill", (7,))
    data = jobs.loader(jobs.Marked(tmp_path / "mark"))
    found = mg.distributed.fit(jobs.dropout, data, callbacks=[marking], **options).model
    assert list(tmp_path.iterdir()) == []
    for a, b in zip(found.parameters(), undisturbed.parameters(), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
