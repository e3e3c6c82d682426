"""Results of a sweep: saving, loading, and resuming only under the same plan."""

from pathlib import Path

import pytest

from minigrad.core.errors import ArgumentError, FileFormatError, MissingFileError
from minigrad.distributed import Halving, Sweep
from needs import needs
from sweeps import ended, plan, read

needs("safetensors")


def test_the_goal_of_a_trial_is_that_of_its_best_epoch_and_what_comes_again_takes_its_place():
    made = Sweep(plan(), Path())
    one = made.trials[0]
    for epoch, goal in ((1, 3.0), (2, 1.0), (3, 2.0)):
        one.hear(made.plan, epoch, goal, {"val_loss": goal, "k": epoch})
    assert (one.goal, one.epoch, one.epochs, one.numbers) == (1.0, 2, 3, {"val_loss": 1.0, "k": 2})
    one.hear(made.plan, 2, 2.5, {"val_loss": 2.5, "k": 2})  # resumed from a checkpoint of epoch 1
    assert (one.goal, one.epoch, one.curve) == (2.5, 2, [(1, 3.0), (2, 2.5)])
    one.hear(made.plan, 1, 9.0, {"val_loss": 9.0})  # restarted
    assert (one.goal, one.epoch, one.epochs, one.curve) == (9.0, 1, 1, [(1, 9.0)])


def test_no_cell_of_the_results_is_computed_by_a_spreadsheet_or_obeyed_by_a_terminal(tmp_path):
    texts = ["=1+1", "+1", "-1", "@sum", "\t=1", "\r=1", "\x1b[31mred", "relu", "a=b"]
    made = Sweep(plan(grid={"name": texts}), tmp_path)
    for trial in made.trials:
        trial.state, trial.goal, trial.numbers = "done", -0.5, {"val_loss": -0.5, "\x1b[2Jseen": 1, "=seen": 2}
        trial.error = "=cmd|' /C calc'!A0"
    made.save_results()
    content = (tmp_path / "results.csv").read_bytes()
    rows = read(tmp_path / "results.csv")
    assert b"\x1b" not in content
    assert [row["name"] for row in rows] == [
        "'=1+1", "'+1", "'-1", "'@sum", "'\t=1", r"'\r=1", r"\x1b[31mred", "relu", "a=b",
    ]  # fmt: skip
    assert {row["val_loss"] for row in rows} == {"-0.5"}  # floats are not escaped
    assert {row["error"] for row in rows} == {"'=cmd|' /C calc'!A0"}
    assert {row[r"\x1b[2Jseen"] for row in rows} == {"1"}
    assert {row["'=seen"] for row in rows} == {"2"}
    assert made.trials[0].values == {"name": "=1+1"}  # the hyperparameter itself is unchanged


def test_results_are_a_row_for_each_trial_that_ended(tmp_path):
    made = ended(tmp_path, [0.5, 0.25, 0.75, 0.1], ["done", "stopped", "running", "failed"])
    made.trials[3].error = 'LookupError: "a", b'
    made.save_results()
    rows = read(tmp_path / "results.csv")
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
    assert made.best().number == 2


def test_a_sweep_that_was_saved_is_read_as_it_was(tmp_path):
    made = ended(tmp_path, [0.5, 0.25], random={"n": {"from": 1, "to": 3}}, samples=1, fixed={"a": [1]}, stop=Halving())
    made.save()
    again = Sweep.read(tmp_path)
    assert (again.plan, again.trials, repr(again)) == (made.plan, made.trials, repr(made))
    with pytest.raises(MissingFileError, match="no sweep found in"):
        Sweep.read(tmp_path / "elsewhere")
    (tmp_path / "sweep.json").write_text('{"kind": 3}', encoding="utf-8")
    with pytest.raises(FileFormatError, match="is corrupt, or not a minigrad sweep"):
        Sweep.read(tmp_path)


def test_another_plan_is_refused_by_what_has_changed_and_more_samples_are_not(tmp_path):
    options = {"random": {"lr": {"from": 0.1, "to": 0.5}}, "grid": None}
    old = Sweep(plan(samples=2, **options), tmp_path)
    old.trials[0].state, old.trials[1].state = "done", "running"
    old.save()
    more = Sweep(plan(samples=4, **options), tmp_path)
    more.go_on()
    assert [trial.state for trial in more.trials] == ["done", "interrupted", "waiting", "waiting"]
    for changed, said in (
        (plan(samples=1, **options), "samples was 2 and is 1"),
        (plan(samples=2, seed=1, **options), "seed was 0 and is 1"),
        (plan(samples=2, grid=None, random={"lr": [1, 2]}), 'random.lr was {"from": 0.1, "to": 0.5, "log": false} and'),
        (plan(samples=2, goal="max val_loss", **options), 'goal was "min val_loss" and is "max val_loss"'),
        (plan(samples=2, stop=Halving(2), **options), "stop was null and is"),
        (plan(samples=2, fixed={"epochs": 3}, **options), "fixed.epochs was null and is 3"),
    ):
        with pytest.raises(ArgumentError) as raised:
            Sweep(changed, tmp_path).go_on()
        assert said in str(raised.value)
        assert "Pass --anew (in Python anew=True) to delete them" in str(raised.value)


def test_a_function_that_changed_since_is_told_and_gone_on_with(tmp_path):
    old = ended(tmp_path, [0.5, 0.25])
    old.train, old.digest = "train.py:train", "1"
    old.save()
    new = Sweep(old.plan, tmp_path, "train.py:train", "2")
    new.go_on()
    assert new.notes == ["train.py:train has changed since 2 trials finished."]


def test_two_sweeps_cannot_run_in_one_folder(tmp_path):
    needs("fcntl")
    made = ended(tmp_path, [0.5])
    with made.held(), pytest.raises(ArgumentError, match="another process is running a sweep in"), made.held():
        pass
    with made.held():
        pass


# --- tables ----------------------------------------------------------------------------------------------------------


def test_the_table_has_the_best_first_and_what_has_no_number_last(tmp_path):
    made = ended(tmp_path, [0.5, 0.25, 0.75, 0.1, 0.2], ["done", "stopped", "running", "diverged", "waiting"])
    assert repr(made).splitlines() == [
        "3 of 5 trials · 1 running · 1 stopped early · 1 diverged",
        "trial  state      lr  val_loss   epoch  seconds",
        "    2  stopped   0.2      0.25  2 of 2      1.5",
        "    1  done      0.1       0.5  2 of 2      1.5",
        "    3  running   0.3      0.75  2 of 2      1.5",
        "    4  diverged  0.4       0.1  2 of 2      1.5",
    ]
