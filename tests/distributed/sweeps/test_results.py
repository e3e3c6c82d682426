"""Results of a sweep: saving, loading, and resuming only under the same plan."""

from pathlib import Path

import pytest

from minigrad.core.errors import ArgumentError, FileFormatError, MissingFileError
from minigrad.distributed import Halving, Sweep
from needs import needs
from sweeps import finished_sweep, make_plan, read_csv

needs("safetensors")


def test_a_trial_records_its_best_epoch_and_replaces_rerun_epochs():
    sweep = Sweep(make_plan(), Path())
    one = sweep.trials[0]
    for epoch, goal in ((1, 3.0), (2, 1.0), (3, 2.0)):
        one.record_epoch(sweep.plan, epoch, goal, {"val_loss": goal, "k": epoch})
    assert (one.goal, one.epoch, one.epochs, one.numbers) == (1.0, 2, 3, {"val_loss": 1.0, "k": 2})
    one.record_epoch(sweep.plan, 2, 2.5, {"val_loss": 2.5, "k": 2})  # resumed from a checkpoint of epoch 1
    assert (one.goal, one.epoch, one.curve) == (2.5, 2, [(1, 3.0), (2, 2.5)])
    one.record_epoch(sweep.plan, 1, 9.0, {"val_loss": 9.0})  # restarted
    assert (one.goal, one.epoch, one.epochs, one.curve) == (9.0, 1, 1, [(1, 9.0)])


def test_result_cells_are_escaped(tmp_path):
    values = ["=1+1", "+1", "-1", "@sum", "\t=1", "\r=1", "\x1b[31mred", "relu", "a=b"]
    sweep = Sweep(make_plan(grid={"name": values}), tmp_path)
    for trial in sweep.trials:
        trial.state, trial.goal, trial.numbers = "done", -0.5, {"val_loss": -0.5, "\x1b[2Jseen": 1, "=seen": 2}
        trial.error = "=cmd|' /C calc'!A0"
    sweep.save_results()
    content = (tmp_path / "results.csv").read_bytes()
    rows = read_csv(tmp_path / "results.csv")
    assert b"\x1b" not in content
    assert [row["name"] for row in rows] == [
        "'=1+1", "'+1", "'-1", "'@sum", "'\t=1", r"'\r=1", r"\x1b[31mred", "relu", "a=b",
    ]  # fmt: skip
    assert {row["val_loss"] for row in rows} == {"-0.5"}  # floats are not escaped
    assert {row["error"] for row in rows} == {"'=cmd|' /C calc'!A0"}
    assert {row[r"\x1b[2Jseen"] for row in rows} == {"1"}
    assert {row["'=seen"] for row in rows} == {"2"}
    assert sweep.trials[0].values == {"name": "=1+1"}  # the hyperparameter itself is unchanged


def test_results_have_a_row_per_finished_trial(tmp_path):
    sweep = finished_sweep(tmp_path, [0.5, 0.25, 0.75, 0.1], ["done", "stopped", "running", "failed"])
    sweep.trials[3].error = 'LookupError: "a", b'
    sweep.save_results()
    rows = read_csv(tmp_path / "results.csv")
    assert rows[0] == {
        "trial": "1",
        "state": "done",
        "lr": "0.1",
        "val_loss": "0.5",
        "best_epoch": "2",
        "last_epoch": "2",
        "seconds": "1.5",
        "val_accuracy": "0.5",
        "error": "",
    }
    assert [(row["trial"], row["state"]) for row in rows] == [("1", "done"), ("2", "stopped"), ("4", "failed")]
    assert rows[2]["error"] == 'LookupError: "a", b'
    assert sweep.best().number == 2


def test_a_sweep_round_trips(tmp_path):
    sweep = finished_sweep(
        tmp_path, [0.5, 0.25], random={"n": {"from": 1, "to": 3}}, samples=1, fixed={"a": [1]}, stop=Halving()
    )
    sweep.save()
    again = Sweep.read(tmp_path)
    assert (again.plan, again.trials, repr(again)) == (sweep.plan, sweep.trials, repr(sweep))
    with pytest.raises(MissingFileError, match="no sweep found in"):
        Sweep.read(tmp_path / "elsewhere")
    (tmp_path / "sweep.json").write_text('{"kind": 3}', encoding="utf-8")
    with pytest.raises(FileFormatError, match="is corrupt, or not a minigrad sweep"):
        Sweep.read(tmp_path)


def test_a_changed_plan_raises_but_more_samples_are_accepted(tmp_path):
    options = {"random": {"lr": {"from": 0.1, "to": 0.5}}, "grid": None}
    old = Sweep(make_plan(samples=2, **options), tmp_path)
    old.trials[0].state, old.trials[1].state = "done", "running"
    old.save()
    extended = Sweep(make_plan(samples=4, **options), tmp_path)
    extended.resume()
    assert [trial.state for trial in extended.trials] == ["done", "interrupted", "waiting", "waiting"]
    for changed, message in (
        (make_plan(samples=1, **options), "samples was 2 and is 1"),
        (make_plan(samples=2, seed=1, **options), "seed was 0 and is 1"),
        (
            make_plan(samples=2, grid=None, random={"lr": [1, 2]}),
            'random.lr was {"from": 0.1, "to": 0.5, "log": false} and',
        ),
        (make_plan(samples=2, goal="max val_loss", **options), 'goal was "min val_loss" and is "max val_loss"'),
        (make_plan(samples=2, stop=Halving(2), **options), "stop was null and is"),
        (make_plan(samples=2, fixed={"epochs": 3}, **options), "fixed.epochs was null and is 3"),
    ):
        with pytest.raises(ArgumentError) as raised:
            Sweep(changed, tmp_path).resume()
        assert message in str(raised.value)
        assert "Pass --anew (in Python anew=True) to delete them" in str(raised.value)


def test_a_changed_function_is_noted_and_resumed(tmp_path):
    old = finished_sweep(tmp_path, [0.5, 0.25])
    old.train, old.digest = "train.py:train", "1"
    old.save()
    new = Sweep(old.plan, tmp_path, "train.py:train", "2")
    new.resume()
    assert new.notes == ["train.py:train has changed since 2 trials finished."]


def test_two_sweeps_cannot_run_in_one_folder(tmp_path):
    needs("fcntl")
    sweep = finished_sweep(tmp_path, [0.5])
    with (
        sweep.lock_folder(),
        pytest.raises(ArgumentError, match="another process is running a sweep in"),
        sweep.lock_folder(),
    ):
        pass
    with sweep.lock_folder():
        pass


# --- tables ----------------------------------------------------------------------------------------------------------


def test_the_table_is_sorted_best_first(tmp_path):
    sweep = finished_sweep(tmp_path, [0.5, 0.25, 0.75, 0.1, 0.2], ["done", "stopped", "running", "diverged", "waiting"])
    assert repr(sweep).splitlines() == [
        "3 of 5 trials · 1 running · 1 stopped early · 1 diverged",
        "trial  state      lr  val_loss   epoch  seconds",
        "    2  stopped   0.2      0.25  2 of 2      1.5",
        "    1  done      0.1       0.5  2 of 2      1.5",
        "    3  running   0.3      0.75  2 of 2      1.5",
        "    4  diverged  0.4       0.1  2 of 2      1.5",
    ]
