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


def start_driver(mark, ending, path, epochs):
    """Start a driver in a new session, as in a terminal; its processes have `mark` in their environment."""
    python_path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": python_path, "MINIGRAD_TEST_MARK": mark}
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, ending, str(path), str(epochs)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def processes(mark, name=""):
    """Return the pids of processes with `mark` in their environment and `name` in their command line."""
    running = []
    for entry in Path("/proc").iterdir():
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                running += [(int(entry.name), command)] if name in command and command else []
        except (OSError, ValueError):  # not a process, or one that has just exited
            continue
    return running


def wait_for_exit(mark, seconds=180):
    """Return the processes still running after at most `seconds`."""
    end = time.monotonic() + seconds
    while (left := processes(mark)) and time.monotonic() < end:
        time.sleep(0.2)
    return left


def wait_for_step(child, step):
    for line in child.stdout:
        if line.strip() == str(step):
            return
    raise AssertionError(child.stderr.read())


def train_alone(epochs, path=None):
    mg.manual_seed(5)
    model, optimizer, loss = jobs.dropout()
    fit(model, jobs.loader(), optimizer, loss, epochs=epochs, seed=5, progress=False, checkpoint=path)
    return np.concatenate([x.numpy().ravel() for x in model.state_dict().values()])


@pytest.mark.parametrize(
    "ending", ["interrupt", *(pytest.param(ending, marks=pytest.mark.slow) for ending in ("end", "raise", "kill"))]
)
def test_no_orphans_and_checkpoints_resume(ending, tmp_path):
    mark, path = f"mark-{os.getpid()}-{ending}", tmp_path / "c"
    epochs = 1 if ending == "end" else 400
    child = start_driver(mark, ending, path, epochs)
    wait_for_step(child, 4)
    if ending in ("interrupt", "kill"):  # the others exit too early to check
        assert processes(mark, "raylet")
        assert len(processes(mark, "ray::ReplicaActor")) == 2
    if ending == "interrupt":
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does
    if ending == "kill":
        child.kill()
    written, errors = child.communicate(timeout=120)
    assert wait_for_exit(mark) == []
    assert child.returncode == {"end": 0, "raise": 1, "interrupt": -signal.SIGINT, "kill": -signal.SIGKILL}[ending], (
        errors
    )
    if ending == "raise":
        assert errors.rstrip().endswith("LookupError: enough")
    if ending == "interrupt":
        assert f"interrupted: run the same call again to resume from {path}" in written
    if ending == "end":
        assert "epoch 1/1: 100%" in errors
    state = mg.load(path)
    assert state["fit"]["step"] >= 3
    parameters = np.concatenate([x.numpy().ravel() for x in state["model"].values()]) if ending == "end" else None
    if parameters is None:  # resume in this process, without Ray
        epochs = state["fit"]["epoch"] + 2
        parameters = train_alone(epochs, path)
    np.testing.assert_allclose(parameters, train_alone(epochs), rtol=0, atol=1e-9)


@pytest.mark.slow
def test_killing_workers_at_20_moments_does_not_change_results(monkeypatch):
    mark, generator, kills = f"mark-{os.getpid()}-twenty", random.Random(0), []
    monkeypatch.setenv("MINIGRAD_TEST_MARK", mark)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    over = threading.Event()

    def kill():
        while len(kills) < 20 and not over.is_set():
            time.sleep(generator.uniform(0.1, 2))
            if workers := processes(mark, "ray::ReplicaActor"):
                pid, _ = generator.choice(workers)
                os.kill(pid, signal.SIGKILL)
                kills.append(pid)

    def patient(run):  # keep the last epoch running until all kills have happened
        if run.step == 1:
            thread.start()
        time.sleep(0.05 if len(kills) < 20 else 0)

    thread = threading.Thread(target=kill)
    options = {"workers": 2, "seed": 5, "progress": False, "restarts": 40}
    try:
        trained = mg.distributed.fit(jobs.dropout, jobs.loader(), epochs=160, callbacks=[patient], **options).model
    finally:
        over.set()
        thread.join()
    assert len(kills) == 20
    undisturbed = mg.distributed.fit(jobs.dropout, jobs.loader(), epochs=160, **options).model
    for a, b in zip(trained.parameters(), undisturbed.parameters(), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    assert wait_for_exit(mark) == []


@pytest.mark.slow
def test_out_of_memory_kills_do_not_change_results(monkeypatch, tmp_path):
    from ray._private.utils import get_system_memory, get_used_memory

    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    options = {"workers": 2, "seed": 5, "progress": False, "epochs": 8}
    undisturbed = mg.distributed.fit(jobs.dropout, jobs.loader(), **options).model
    monkeypatch.setenv("RAY_memory_usage_threshold", f"{(get_used_memory() + 3e9) / get_system_memory():.3f}")
    monkeypatch.setenv("RAY_memory_monitor_refresh_ms", "100")
    marking = jobs.FaultInjector(tmp_path / "mark", "fill", (7,))
    data = jobs.loader(jobs.FaultyDataset(tmp_path / "mark"))
    trained = mg.distributed.fit(jobs.dropout, data, callbacks=[marking], **options).model
    assert list(tmp_path.iterdir()) == []
    for a, b in zip(trained.parameters(), undisturbed.parameters(), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
