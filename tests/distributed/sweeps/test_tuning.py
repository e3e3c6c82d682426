"""Receiver of trial results; and with Ray, running, early stopping and resuming."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import minigrad as mg
import sweep_jobs as jobs
from minigrad.core.errors import ArgumentError, WorkerError
from minigrad.distributed import Halving, Report, Sweep, sweep
from minigrad.distributed.sweeps import read_config
from minigrad.distributed.sweeps.tuning import TrialTracker
from needs import needs
from sweeps import JOBS, make_plan, read_csv

needs("safetensors")

PATIENCE = 180  # seconds until the last Ray process notices that its parent has exited


def test_three_failures_without_success_abort_the_sweep(tmp_path):
    sweep = Sweep(make_plan(grid={"lr": [0.1, 0.2, 0.3, 0.4, 0.5]}), tmp_path)
    notifications = []
    desk = TrialTracker(sweep, [notifications.append])
    for trial_number in (1, 2, 3, 4):
        desk.start_trial(trial_number)
    desk.record_result(4, {"epoch": 1, "goal": 0.5, "numbers": {"val_loss": 0.5}, "seconds": 1.0})
    for trial_number in (1, 2, 3):
        assert desk.config_error == ""
        desk.record_result(trial_number, {"end": "failed", "error": "LookupError: x", "seconds": 0.5})
        desk.end_trial(trial_number)
    assert desk.config_error.startswith("sweep: 3 trials have failed and none has succeeded: LookupError: x.\n")
    desk.end_trial(4)  # Tune then stops the running trials
    assert [trial.state for trial in sweep.trials] == [*["failed"] * 3, "interrupted", "waiting"]
    assert [trial.seconds for trial in sweep.trials] == [0.5, 0.5, 0.5, 1.0, 0.0]
    assert len(notifications) == 9
    assert Sweep.read(tmp_path).trials == sweep.trials


def test_seconds_accumulate_only_for_resumed_trials(tmp_path):
    sweep = Sweep(make_plan(), tmp_path)
    desk = TrialTracker(sweep, [])

    def epoch(at):
        desk.record_result(1, {"epoch": at, "goal": 1.0, "numbers": {"val_loss": 1.0}, "seconds": 2.0})
        return sweep.trials[0].seconds

    desk.start_trial(1)
    assert epoch(1) == 2.0
    desk.close()
    desk.start_trial(1)
    assert epoch(2) == 4.0
    desk.close()
    desk.start_trial(1)
    assert epoch(1) == 2.0


# --- with Ray --------------------------------------------------------------------------------------------------------


@pytest.fixture
def on_numpy():
    """Create tensors with NumPy, also in workers, which then do not load Taichi."""
    before = mg.get_default_device()
    mg.set_default_device("numpy")
    yield
    mg.set_default_device(str(before))


@pytest.mark.usefixtures("ray", "on_numpy")
def test_a_sweep_calls_the_function_for_each_point(tmp_path, capsys):
    result = sweep(
        jobs.net, "min val_loss", grid={"lr": [0.05, 0.5]}, random={"seed": [1, 2, 3]}, samples=2, folder=tmp_path
    )
    assert [trial.state for trial in result.trials] == ["done"] * 4
    for trial in result.trials:
        report = Report()
        jobs.net(**trial.values, report=report)
        losses = [row["val_loss"] for row in report.epochs]
        assert [goal for _, goal in trial.curve] == pytest.approx(losses, rel=1e-9)
        assert trial.goal == pytest.approx(min(losses), rel=1e-9)
        assert mg.load(tmp_path / "trials" / f"{trial.number:04d}" / "checkpoint")["fit"]["epoch"] == 3
    assert result.best().goal == min(trial.goal for trial in result.trials)
    rows = read_csv(tmp_path / "results.csv")
    assert [float(row["val_loss"]) for row in rows] == [trial.goal for trial in result.trials]
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-6:-4] == ["4 of 4 trials", repr(result).splitlines()[1]]
    assert (len(printed.out.splitlines()), printed.err) == (10, "")
    assert not (tmp_path / ".tune").exists()
    before = (tmp_path / "sweep.json").read_bytes()
    again = sweep(
        jobs.net, "min val_loss", grid={"lr": [0.05, 0.5]}, random={"seed": [1, 2, 3]}, samples=2, folder=tmp_path
    )
    assert again.trials == result.trials
    assert (tmp_path / "sweep.json").read_bytes() == before


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
def test_halving_counts_trials_of_earlier_runs(tmp_path):
    rates = [0.3, 0.2, 0.1, 0.05, 0.02, 0.01]  # best first: each later trial is worse at the first epoch
    options = {"stop": Halving(1, 2), "workers": 1, "progress": False, "fixed": {"epochs": 6}}
    result = sweep(jobs.bowl, "min val_loss", grid={"lr": rates}, folder=tmp_path, **options)
    assert [(trial.state, trial.epochs) for trial in result.trials] == [("done", 6), *[("stopped", 1)] * 5]
    result.trials[4].state = "interrupted"
    result.save()
    again = sweep(jobs.bowl, "min val_loss", grid={"lr": rates}, folder=tmp_path, **options)
    assert (again.trials[4].state, again.trials[4].epochs) == ("stopped", 1)
    assert again.trials[:4] == result.trials[:4]


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
def test_failed_dead_and_diverged_trials_do_not_stop_others(tmp_path):
    result = sweep(
        jobs.mixed,
        "min val_loss",
        grid={"outcome": ["well", "raise", "nan", "die", "once"]},
        workers=2,
        folder=tmp_path,
        progress=False,
    )
    states = [trial.state for trial in result.trials]
    assert states == ["done", "failed", "diverged", "failed", "done"]
    assert (result.trials[4].goal, result.trials[4].epochs) == (1.0, 1)  # from its first process
    assert result.trials[3].error.startswith("its process died twice")
    assert "Traceback" in (tmp_path / "trials" / "0002" / "output.txt").read_text(encoding="utf-8")


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
def test_an_unreported_goal_aborts_the_sweep(tmp_path):
    options = {"workers": 1, "folder": tmp_path, "progress": False}
    with pytest.raises(
        ArgumentError, match=r"the goal is loss, but train reported val_loss, x\.\n  Write report\(loss="
    ):
        sweep(jobs.bowl, "min loss", grid={"lr": [0.1, 0.2, 0.3, 0.4]}, **options)
    with pytest.raises(ArgumentError, match=r"train returned without reporting loss\.\n  Write fit\("):
        sweep(jobs.mixed, "min loss", grid={"outcome": ["silent", "well", "better", "best"]}, anew=True, **options)
    assert [trial.state for trial in Sweep.read(tmp_path).trials][1:] == ["waiting"] * 3


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
def test_unavailable_resources_raise_immediately(tmp_path):
    with pytest.raises(WorkerError, match=r"each trial requests abacus=2, but Ray has only abacus=0"):
        sweep(jobs.bowl, "min val_loss", grid={"lr": [0.1]}, resources={"abacus": 2}, folder=tmp_path)


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
def test_an_interrupted_sweep_leaves_no_processes_in_a_running_ray(tmp_path):
    def stop(current):
        if current.trials[0].curve:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(jobs.waits, "min pid", grid={"k": [1]}, folder=tmp_path, progress=False, callbacks=[stop])
    trial = Sweep.read(tmp_path).trials[0]
    assert trial.state == "interrupted"
    end = time.monotonic() + PATIENCE
    while Path(f"/proc/{trial.goal:.0f}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not Path(f"/proc/{trial.goal:.0f}").exists()


TOML = """
train = "{jobs}:slow"
goal = "max score"
workers = 2
[grid]
k = [1, 2, 3, 4]
[fixed]
log = "{log}"
"""


def processes(mark):
    pids = []
    for entry in Path("/proc").iterdir():
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                pids.append(int(entry.name))
        except OSError:  # not a process, or one that has just exited
            continue
    return pids


@pytest.mark.nightly
@pytest.mark.needs("Linux")
@pytest.mark.usefixtures("ray")
@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGKILL])
def test_the_same_command_resumes_and_leaves_no_processes(signal_number, tmp_path):
    log, file = tmp_path / "log", tmp_path / "sweep.toml"
    file.write_text(TOML.format(jobs=JOBS, log=log), encoding="utf-8")
    mark = f"mark-{os.getpid()}-{signal_number}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MINIGRAD_TEST_MARK": mark}
    command = [sys.executable, "-m", "minigrad", "sweep", str(file)]
    options = {"env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}

    child = subprocess.Popen(command, start_new_session=True, **options)
    for line in child.stdout:
        if line.startswith("trial 4 done"):
            break
    os.killpg(child.pid, signal_number) if signal_number == signal.SIGINT else child.kill()
    output, errors = child.communicate(timeout=120)
    end = time.monotonic() + PATIENCE
    while (left := processes(mark)) and time.monotonic() < end:
        time.sleep(0.1)
    assert left == []
    assert sorted(log.read_text(encoding="utf-8").split()) == ["1", "2", "3", "4"]
    if signal_number == signal.SIGINT:
        assert (child.returncode, errors) == (130, "")
        assert f"To resume, run: minigrad sweep {file}" in output
        assert Sweep.read(tmp_path / "sweep").trials[2].state == "interrupted"
    assert [row["trial"] for row in read_csv(tmp_path / "sweep" / "results.csv")] == ["1", "2", "4"]

    if signal_number == signal.SIGINT:
        sweep(**read_config(file), progress=False)  # in the Ray already running here, as starting it takes seconds
    else:
        done = subprocess.run(command, timeout=300, **options)
        assert (done.returncode, done.stderr) == (0, "")
        assert "trial 3 done after 2 epochs: k=3, score 3.5 at epoch 2" in done.stdout
        assert processes(mark) == []
    assert sorted(log.read_text(encoding="utf-8").split()) == ["1", "2", "3", "3", "4"]
    rows = read_csv(tmp_path / "sweep" / "results.csv")
    assert [(row["trial"], row["k"], row["score"]) for row in rows] == [(f"{k}", f"{k}", f"{k}.5") for k in range(1, 5)]
    assert (tmp_path / "sweep" / "parallel.svg").read_text(encoding="utf-8").startswith("<svg")
