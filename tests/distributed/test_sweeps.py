"""Sweeps: what is asked for, refused, kept and shown; and with Ray, what is run, stopped and gone on with."""

import csv
import io
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
import sweep_jobs as jobs
from minigrad import cli
from minigrad.core.errors import (
    ArgumentError,
    DivergedError,
    DTypeError,
    FileFormatError,
    MinigradError,
    MissingFileError,
    MissingPackageError,
    WorkerError,
)
from minigrad.distributed import Halving, Report, Sweep, sweep
from minigrad.distributed.sweeps import Shown, asked
from minigrad.distributed.sweeps.plan import Axis, planned
from minigrad.distributed.sweeps.trial import TrialJob, tried
from minigrad.distributed.sweeps.tuning import Desk
from needs import needs

needs("safetensors")

HERE = Path(__file__).parent
JOBS = HERE / "sweep_jobs.py"
PATIENCE = 180  # seconds until the last of Ray's processes has seen that the one which started it is gone


def plan(**options):
    return planned("sweep", **{"goal": "min val_loss", "grid": {"lr": [0.1, 0.2, 0.4]}, **options})


def ended(folder, goals, states=(), **options):
    """A sweep over lr whose trials ended with these goals, each after an epoch with a worse one."""
    made = Sweep(plan(grid={"lr": [0.1 * k for k in range(1, len(goals) + 1)]}, **options), Path(folder))
    for trial, goal in zip(made.trials, goals, strict=True):
        trial.hear(made.plan, 1, goal + 1.0, {"val_loss": goal + 1.0})
        trial.hear(made.plan, 2, goal, {"val_loss": goal, "val_accuracy": 1 - goal})
        trial.state, trial.seconds = "done", 1.5
    for trial, state in zip(made.trials, states, strict=False):
        trial.state = state
    return made


def read(path):
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


# --- what is tried ---------------------------------------------------------------------------------------------------


def test_of_each_sample_the_whole_grid_is_tried_and_more_samples_leave_the_first_as_they_are():
    options = {"grid": {"width": [8, 16], "act": ["relu", "tanh"]}, "random": {"lr": {"from": 1e-4, "to": 1.0}}}
    few, many = plan(samples=2, **options), plan(samples=5, **options)
    assert (len(few), len(many)) == (8, 20)
    assert [few.values(k) for k in range(1, 9)] == [many.values(k) for k in range(1, 9)]
    first = [few.values(k) for k in range(1, 5)]
    assert [(x["width"], x["act"]) for x in first] == [(8, "relu"), (8, "tanh"), (16, "relu"), (16, "tanh")]
    assert len({x["lr"] for x in first}) == 1
    assert few.values(5)["lr"] != first[0]["lr"]


def test_draws_fill_their_span_evenly_by_ratio_where_log_and_depend_on_the_seed():
    logs = Axis("lr", low=1e-4, high=1e-1, log=True)
    drawn = [logs.draw(0, k) for k in range(3000)]
    assert all(1e-4 <= x <= 1e-1 for x in drawn)
    assert all(x == float(f"{x:.4g}") for x in drawn)
    shares = [sum(10.0**-k <= x < 10.0 ** (1 - k) for x in drawn) / 3000 for k in (4, 3, 2)]
    assert shares == pytest.approx([1 / 3] * 3, abs=0.03)
    whole = [Axis("n", low=3, high=6).draw(1, k) for k in range(3000)]
    assert [whole.count(x) / 3000 for x in (3, 4, 5, 6)] == pytest.approx([0.25] * 4, abs=0.03)
    assert logs.draw(0, 0) != logs.draw(1, 0)
    assert logs.draw(0, 0) != Axis("eps", low=1e-4, high=1e-1, log=True).draw(0, 0)
    assert {Axis("w", low=16, high=128, log=True).draw(0, k) for k in range(3000)} >= {16, 64, 128}


BASE = 'train = "sweep_jobs.py:bowl"\ngoal = "min val_loss"\n'
GRID = BASE + "[grid]\nlr = [0.1, 0.2]\n"
MISTAKES = {
    "no toml": ("train = ", FileFormatError, "sweep.toml is no TOML: "),
    "unknown key": ('gaol = "x"\n' + GRID, ArgumentError, "sweep.toml: gaol is not known.\n  Did you mean goal?"),
    "no train": ('goal = "min x"', ArgumentError, 'there is no train.\n  Write train = "train.py:train"'),
    "no goal": ('train = "a.py:b"', ArgumentError, 'there is no goal.\n  Write goal = "min val_loss"'),
    "no function in a file": ('train = "bowl"\ngoal = "min x"', ArgumentError, "train='bowl' is no function in a file"),
    "no file": ('train = "a.py:b"\ngoal = "min x"', MissingFileError, "a.py, where train='a.py:b' is looked for"),
    "no such function": (
        GRID.replace("bowl", "bowls"),
        ArgumentError,
        "sweep_jobs.py has no 'bowls'; it has bowl, net, slow, waits, mixed.",
    ),
    "goal": (GRID.replace("min val_loss", "val_loss"), ArgumentError, "goal='val_loss' does not say what is best"),
    "nothing swept": (BASE, ArgumentError, "nothing is swept.\n  Write width = [16, 32, 64] under [grid]"),
    "grid is a number": (BASE + "grid = 3", DTypeError, "grid is an int, not a table.\n  Write [grid]"),
    "no list": (BASE + "[grid]\nlr = 0.1", DTypeError, "grid.lr is 0.1, not a list.\n  Write lr = [0.1]"),
    "empty list": (BASE + "[grid]\nlr = []", ArgumentError, "grid.lr is an empty list.\n  Write what is to be tried"),
    "twice": (
        BASE + "[grid]\nlr = [1, 1]",
        ArgumentError,
        "grid.lr has 1 twice.\n  To try it again, sweep over a seed",
    ),
    "a date": (BASE + "[grid]\nlr = [2020-01-01]", DTypeError, "grid.lr[0] is a date, and results are kept as numbers"),
    "nan": (BASE + "[grid]\nlr = [nan]", ArgumentError, "grid.lr[0] is nan, which is no number to try"),
    "two tables": (GRID + "[fixed]\nlr = 3", ArgumentError, "lr is under [grid] and under [fixed].\n  Take one away"),
    "reserved": (BASE + "[grid]\nreport = [1]", ArgumentError, "grid.report: the sweep itself gives train its report"),
    "no name": (BASE + '[grid]\n"a b" = [1]', ArgumentError, "grid.a b cannot be a parameter of a Python function"),
    "a column": (BASE + "[grid]\nstate = [1]", ArgumentError, "state is a column of the results already.\n  Take"),
    "no samples": (
        BASE + "[random]\nlr = [1, 2]",
        ArgumentError,
        "random has no end of its own.\n  Write samples = 20",
    ),
    "samples": (
        "samples = 0\n" + BASE + "[random]\nlr = [1, 2]",
        ArgumentError,
        "samples=0 is not a whole number of 1",
    ),
    "no random": ("samples = 3\n" + GRID, ArgumentError, "samples=3 says how often random is drawn, and there is no"),
    "span": (BASE + "[random]\nlr = 3", DTypeError, "random.lr is 3, and it is what is drawn from.\n  Write lr = {"),
    "key of a span": (
        BASE + "[random]\nlr = { from = 0.1, too = 1.0 }",
        ArgumentError,
        "random.lr.too is not known.\n  Did you mean to?",
    ),
    "no end": (BASE + "[random]\nlr = { from = 0.1 }", ArgumentError, "random.lr.to is None, not a number"),
    "wrong order": (BASE + "[random]\nlr = { from = 1, to = 1 }", ArgumentError, "random.lr goes from 1 to 1.\n  Let"),
    "log of 0": (BASE + "[random]\nlr = { from = 0, to = 1, log = true }", ArgumentError, "0 has no logarithm"),
    "log": (BASE + "[random]\nlr = { from = 1, to = 2, log = 1 }", DTypeError, "random.lr.log is 1, neither true nor"),
    "stop": ("stop = true\n" + GRID, DTypeError, "stop is a bool, not a table.\n  Write [stop]"),
    "key of stop": (
        GRID + "[stop]\ngrace = 1",
        ArgumentError,
        "stop.grace is not known.\n  Did you mean grace_period?",
    ),
    "grace": (
        GRID + "[stop]\ngrace_period = 0",
        ArgumentError,
        "stop.grace_period=0 is not a whole number of 1 or more",
    ),
    "factor": (GRID + "[stop]\nreduction_factor = 1", ArgumentError, "stop.reduction_factor=1 is not a number above 1"),
    "workers": ("workers = 0\n" + GRID, ArgumentError, "workers=0 is not a whole number of 1 or more"),
    "resources": ("resources = 2\n" + GRID, DTypeError, "resources is an int, not a table.\n  Write [resources]"),
    "no GPU": (GRID + "[resources]\nGPU = 0", ArgumentError, "resources['GPU'] is 0, and it is how much"),
    "folder": ("folder = 3\n" + GRID, DTypeError, 'folder is 3, not a path.\n  Write folder = "results"'),
    "no such parameter": (
        BASE + "[grid]\nlr = [1]\ndepth = [1]",
        ArgumentError,
        "bowl has no parameter 'depth', which is swept or fixed.\n  Write def bowl(lr, depth, report)",
    ),
    "a parameter that nobody gives": (
        BASE + "[grid]\nwidth = [1]",
        ArgumentError,
        "bowl wants 'lr', which nobody gives it.\n  Write lr = … under [grid], [random] or [fixed]",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_in_the_file_is_one_sentence_that_says_what_to_write(case, tmp_path, monkeypatch, capsys):
    text, kind, said = MISTAKES[case]
    monkeypatch.setitem(sys.modules, "ray", None)  # before Ray is asked for
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "sweep_jobs")
    (tmp_path / "sweep_jobs.py").write_text(JOBS.read_text(encoding="utf-8"), encoding="utf-8")
    path = tmp_path / "sweep.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(kind) as raised:
        sweep(**asked(path))
    assert said in str(raised.value)
    assert str(raised.value).startswith(("sweep.toml", "sweep: there"))
    assert not (tmp_path / "sweep" / "sweep.json").exists()
    monkeypatch.delitem(sys.modules, "sweep_jobs", raising=False)
    assert cli.main(["sweep", str(path)]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import nothing_of_this_name", "line 1 of swept.py raises ModuleNotFoundError"),
        ("x = 1\nx.y", "line 2 of swept.py raises AttributeError: 'int' object has no attribute 'y'"),
        ("def train(:", "line 1 of swept.py raises SyntaxError"),
        ("train = 3", "'train' in swept.py is an int, not a function"),
        ("def train(lr): pass", "train has no parameter 'report', by which it says how good it is"),
        ("", "swept.py has no 'train'; it has no function"),
    ],
)
def test_what_is_wrong_with_the_function_is_told_with_its_line(source, said, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "swept.py").write_text(source, encoding="utf-8")
    (tmp_path / "s.toml").write_text('train = "swept.py:train"\ngoal = "min x"\n[grid]\nlr = [1]', encoding="utf-8")
    try:
        with pytest.raises(MinigradError) as raised:
            sweep(**asked(tmp_path / "s.toml"))
    finally:
        sys.modules.pop("swept", None)
    assert said in str(raised.value)


def test_a_file_with_the_name_of_a_module_is_told_to_take_another(tmp_path):
    (tmp_path / "json.py").write_text("def train(lr, report): pass", encoding="utf-8")
    (tmp_path / "s.toml").write_text('train = "json.py:train"\ngoal = "min x"\n[grid]\nlr = [1]', encoding="utf-8")
    with pytest.raises(ArgumentError, match="Python has a module 'json' already"):
        sweep(**asked(tmp_path / "s.toml"))


def test_the_example_and_the_help_of_the_command_are_sweeps(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", [*sys.path])
    try:
        arguments = asked(HERE.parents[1] / "examples" / "sweep" / "sweep.toml")
        train = arguments.pop("train")
        options = {name: arguments[name] for name in ("goal", "random", "fixed", "samples", "stop")}
        made, report = plan(grid=None, **options), Report("val_loss")
        train(**made.values(2), **made.fixed, epochs=2, report=report)
    finally:
        sys.modules.pop("train", None)
    assert (len(made), made.stop) == (24, Halving(2, 3))
    assert report.epochs[1]["val_loss"] < report.epochs[0]["val_loss"] < 2.4
    with pytest.raises(SystemExit):
        cli.main(["sweep", "--help"])
    shown = capsys.readouterr().out.partition("a file:\n")[2]
    (tmp_path / "train.py").touch()
    (tmp_path / "sweep.toml").write_text(shown, encoding="utf-8")
    found = asked(tmp_path / "sweep.toml")
    assert len(plan(**{name: found[name] for name in ("goal", "grid", "random", "samples", "stop")})) == 40


def test_the_folder_is_beside_the_file_and_named_after_it(tmp_path):
    (tmp_path / "rates.toml").write_text(GRID.replace("sweep_jobs.py", str(JOBS)), encoding="utf-8")
    assert asked(tmp_path / "rates.toml")["folder"] == tmp_path / "rates"


def test_where_ray_is_not_installed_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPackageError) as raised:
        sweep(jobs.bowl, "min val_loss", grid={"lr": [0.1]}, folder=tmp_path)
    assert str(raised.value) == "sweep: the package ray is not installed.\n  Write: pip install 'seegrad[ray]'"


# --- what a function reports -----------------------------------------------------------------------------------------


def test_a_report_is_a_callback_of_fit_and_can_be_called_by_hand():
    report = Report("val_loss")
    jobs.net(0.1, 0, report)
    assert [sorted(row) for row in report.epochs] == [["loss", "lr", "val_loss"]] * 3
    report = Report()
    report(loss=mg.tensor(2.0), epoch=3)
    report(loss=np.float32(1.0))
    assert (report.epoch, report.epochs) == (4, [{"loss": 2.0}, {"loss": 1.0}])


@pytest.mark.parametrize(
    ("numbers", "kind", "said"),
    [
        ({"loss": 1.0}, ArgumentError, "train reports loss, and the goal is val_loss.\n  Write report(val_loss=…)"),
        ({}, ArgumentError, "train reports nothing, and the goal is val_loss"),
        ({"val_loss": "low"}, DTypeError, "report: val_loss is a str, not a number"),
        ({"val_loss": math.inf}, DivergedError, "report: val_loss is inf in epoch 2"),
        ({"val_loss": 1.0, "epoch": 1}, ArgumentError, "report: epoch=1 does not come after 1"),
    ],
)
def test_a_report_without_its_goal_is_refused(numbers, kind, said):
    report = Report("val_loss")
    report(val_loss=1.0)
    with pytest.raises(kind) as raised:
        report(**numbers)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("how", "end", "error"),
    [
        ("well", "done", ""),
        ("raise", "failed", "LookupError: no such thing"),
        ("nan", "diverged", "report: val_loss is nan in epoch 2."),
        ("other", "mistake", "sweep: train reports loss, and the goal is val_loss."),
        ("silent", "silent", ""),
    ],
)
def test_a_trial_tells_how_it_ended_and_keeps_what_it_printed(how, end, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    state = mg.get_rng_state()
    sent = []
    device, here = str(mg.get_default_device()), str(tmp_path)
    job = TrialJob(jobs.mixed, ("report",), {}, "val_loss", 3, device, "float32", 1, here, here)
    tried(job, 7, {"how": how}, sent.append)
    mg.set_rng_state(state)
    assert (sent[-1]["end"], sent[-1]["error"].partition("\n")[0]) == (end, error)
    goals = {"well": [1.0, 0.5], "raise": [1.0], "nan": [1.0]}
    assert [one["goal"] for one in sent[:-1]] == goals.get(how, [])
    printed = (tmp_path / "0007" / "output.txt").read_text(encoding="utf-8")
    assert printed.startswith(f"this is {how}\n")
    assert ("Traceback" in printed) is (end in ("failed", "mistake"))


# --- what is kept ----------------------------------------------------------------------------------------------------


def test_the_goal_of_a_trial_is_that_of_its_best_epoch_and_what_comes_again_takes_its_place():
    made = Sweep(plan(), Path())
    one = made.trials[0]
    for epoch, goal in ((1, 3.0), (2, 1.0), (3, 2.0)):
        one.hear(made.plan, epoch, goal, {"val_loss": goal, "k": epoch})
    assert (one.goal, one.epoch, one.epochs, one.numbers) == (1.0, 2, 3, {"val_loss": 1.0, "k": 2})
    one.hear(made.plan, 2, 2.5, {"val_loss": 2.5, "k": 2})  # it went on from a checkpoint of epoch 1
    assert (one.goal, one.epoch, one.curve) == (2.5, 2, [(1, 3.0), (2, 2.5)])
    one.hear(made.plan, 1, 9.0, {"val_loss": 9.0})  # it began again
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
    assert {row["val_loss"] for row in rows} == {"-0.5"}  # a number is one
    assert {row["error"] for row in rows} == {"'=cmd|' /C calc'!A0"}
    assert {row[r"\x1b[2Jseen"] for row in rows} == {"1"}
    assert {row["'=seen"] for row in rows} == {"2"}
    assert made.trials[0].values == {"name": "=1+1"}  # what is trained with is as it was


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
    with pytest.raises(MissingFileError, match="there is no sweep in"):
        Sweep.read(tmp_path / "elsewhere")
    (tmp_path / "sweep.json").write_text('{"kind": 3}', encoding="utf-8")
    with pytest.raises(FileFormatError, match="is damaged, or no sweep of minigrad's"):
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
        assert "Write --anew (in Python anew=True) to delete them" in str(raised.value)


def test_a_function_that_changed_since_is_told_and_gone_on_with(tmp_path):
    old = ended(tmp_path, [0.5, 0.25])
    old.train, old.digest = "train.py:train", "1"
    old.save()
    new = Sweep(old.plan, tmp_path, "train.py:train", "2")
    new.go_on()
    assert new.notes == ["train.py:train has changed: 2 trials ended with the old one."]


def test_two_sweeps_cannot_run_in_one_folder(tmp_path):
    needs("fcntl")
    made = ended(tmp_path, [0.5])
    with made.held(), pytest.raises(ArgumentError, match="another process runs a sweep in"), made.held():
        pass
    with made.held():
        pass


def test_three_that_fail_end_a_sweep_of_which_none_has_ended_well(tmp_path):
    made = Sweep(plan(grid={"lr": [0.1, 0.2, 0.3, 0.4, 0.5]}), tmp_path)
    told = []
    desk = Desk(made, [told.append])
    for number in (1, 2, 3, 4):
        desk.start(number)
    desk.hear(4, {"epoch": 1, "goal": 0.5, "numbers": {"val_loss": 0.5}, "seconds": 1.0})
    for number in (1, 2, 3):
        assert desk.mistake == ""
        desk.hear(number, {"end": "failed", "error": "LookupError: x", "seconds": 0.5})
        desk.end(number)
    assert desk.mistake.startswith("sweep: 3 trials have failed, and none has ended well: LookupError: x.\n")
    desk.end(4)  # as Tune ends what runs then
    assert [trial.state for trial in made.trials] == [*["failed"] * 3, "interrupted", "waiting"]
    assert [trial.seconds for trial in made.trials] == [0.5, 0.5, 0.5, 1.0, 0.0]
    assert len(told) == 9
    assert Sweep.read(tmp_path).trials == made.trials


def test_seconds_are_those_of_all_runs_only_where_a_trial_goes_on(tmp_path):
    made = Sweep(plan(), tmp_path)
    desk = Desk(made, [])

    def epoch(at):
        desk.hear(1, {"epoch": at, "goal": 1.0, "numbers": {"val_loss": 1.0}, "seconds": 2.0})
        return made.trials[0].seconds

    desk.start(1)
    assert epoch(1) == 2.0
    desk.close()
    desk.start(1)
    assert epoch(2) == 4.0
    desk.close()
    desk.start(1)
    assert epoch(1) == 2.0


# --- what is shown ---------------------------------------------------------------------------------------------------


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


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_on_a_terminal_the_table_is_drawn_in_place_and_fits(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "18")
    made = ended(tmp_path, [0.5 + k for k in range(30)])
    stream = Terminal()
    shown = Shown(stream)
    shown(made)
    first = stream.getvalue()
    assert first.startswith("\x1b[J30 of 30 trials\ntrial  state")
    lines = first.splitlines()
    assert len(lines) <= 18
    assert lines[-1] == "… and 18 more"
    assert lines[1].split() == ["trial", "state", "lr", "val_loss", "epoch"]
    assert all(len(one.removeprefix("\x1b[J")) < 40 for one in lines)
    shown(made)  # at once: there is nothing to see yet
    assert stream.getvalue() == first
    shown(made, last=True)
    assert stream.getvalue()[len(first) :].startswith(f"\x1b[{len(lines)}F\x1b[J30 of 30 trials\n")
    assert stream.getvalue().count("\n") == len(lines) + 32


def test_where_there_is_no_terminal_each_trial_is_a_line_when_it_has_ended(tmp_path):
    made = ended(tmp_path, [0.5, 0.25], ["done", "running"])
    stream = io.StringIO()
    shown = Shown(stream)
    shown(made)
    shown(made)
    assert stream.getvalue() == "trial 1 done after 2 epochs: lr=0.1, val_loss 0.5 at epoch 2\n"
    made.trials[1].state, made.trials[1].error = "failed", "LookupError: \x1b[31m"
    shown(made)
    assert stream.getvalue().endswith("at epoch 2: LookupError: \\x1b[31m\n")
    assert "\x1b" not in stream.getvalue()


@pytest.fixture
def on_numpy():
    """Tensors are made there, also by workers, which then load no Taichi."""
    before = mg.get_default_device()
    mg.set_default_device("numpy")
    yield
    mg.set_default_device(str(before))


# --- with Ray --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("ray", "on_numpy")
def test_a_sweep_is_the_function_called_for_each_point(tmp_path, capsys):
    found = sweep(
        jobs.net, "min val_loss", grid={"lr": [0.05, 0.5]}, random={"seed": [1, 2, 3]}, samples=2, folder=tmp_path
    )
    assert [trial.state for trial in found.trials] == ["done"] * 4
    for trial in found.trials:
        report = Report()
        jobs.net(**trial.values, report=report)
        losses = [row["val_loss"] for row in report.epochs]
        assert [goal for _, goal in trial.curve] == pytest.approx(losses, rel=1e-9)
        assert trial.goal == pytest.approx(min(losses), rel=1e-9)
        assert mg.load(tmp_path / "trials" / f"{trial.number:04d}" / "checkpoint")["fit"]["epoch"] == 3
    assert found.best().goal == min(trial.goal for trial in found.trials)
    rows = read(tmp_path / "results.csv")
    assert [float(row["val_loss"]) for row in rows] == [trial.goal for trial in found.trials]
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-6:-4] == ["4 of 4 trials", repr(found).splitlines()[1]]
    assert (len(printed.out.splitlines()), printed.err) == (10, "")
    assert not (tmp_path / ".tune").exists()
    before = (tmp_path / "sweep.json").read_bytes()
    again = sweep(
        jobs.net, "min val_loss", grid={"lr": [0.05, 0.5]}, random={"seed": [1, 2, 3]}, samples=2, folder=tmp_path
    )
    assert again.trials == found.trials
    assert (tmp_path / "sweep.json").read_bytes() == before


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
def test_halving_stops_what_is_behind_also_what_came_before_it_was_interrupted(tmp_path):
    rates = [0.3, 0.2, 0.1, 0.05, 0.02, 0.01]  # from the best on: each later one is behind at the first epoch
    options = {"stop": Halving(1, 2), "workers": 1, "progress": False, "fixed": {"epochs": 6}}
    found = sweep(jobs.bowl, "min val_loss", grid={"lr": rates}, folder=tmp_path, **options)
    assert [(trial.state, trial.epochs) for trial in found.trials] == [("done", 6), *[("stopped", 1)] * 5]
    found.trials[4].state = "interrupted"
    found.save()
    again = sweep(jobs.bowl, "min val_loss", grid={"lr": rates}, folder=tmp_path, **options)
    assert (again.trials[4].state, again.trials[4].epochs) == ("stopped", 1)
    assert again.trials[:4] == found.trials[:4]


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
def test_a_trial_that_fails_dies_or_diverges_is_told_and_the_others_go_on(tmp_path):
    found = sweep(
        jobs.mixed,
        "min val_loss",
        grid={"how": ["well", "raise", "nan", "die", "once"]},
        workers=2,
        folder=tmp_path,
        progress=False,
    )
    states = [trial.state for trial in found.trials]
    assert states == ["done", "failed", "diverged", "failed", "done"]
    assert (found.trials[4].goal, found.trials[4].epochs) == (1.0, 1)  # of its first process
    assert found.trials[3].error.startswith("its process died twice")
    assert "Traceback" in (tmp_path / "trials" / "0002" / "output.txt").read_text(encoding="utf-8")


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
def test_a_goal_that_is_never_reported_ends_the_sweep_with_one_sentence(tmp_path):
    options = {"workers": 1, "folder": tmp_path, "progress": False}
    with pytest.raises(
        ArgumentError, match=r"train reports val_loss, x, and the goal is loss\.\n  Write report\(loss="
    ):
        sweep(jobs.bowl, "min loss", grid={"lr": [0.1, 0.2, 0.3, 0.4]}, **options)
    with pytest.raises(
        ArgumentError, match=r"train ended and had reported nothing, so there is no loss\.\n  Write fit\("
    ):
        sweep(jobs.mixed, "min loss", grid={"how": ["silent", "well", "better", "best"]}, anew=True, **options)
    assert [trial.state for trial in Sweep.read(tmp_path).trials][1:] == ["waiting"] * 3


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
def test_what_no_trial_would_ever_have_is_told_at_once(tmp_path):
    with pytest.raises(WorkerError, match=r"each trial asks for abacus=2, and Ray has 0 of it here"):
        sweep(jobs.bowl, "min val_loss", grid={"lr": [0.1]}, resources={"abacus": 2}, folder=tmp_path)


@pytest.mark.nightly
@pytest.mark.usefixtures("ray")
def test_where_ray_goes_on_an_interrupted_sweep_leaves_none_of_its_processes(tmp_path):
    def stop(found):
        if found.trials[0].curve:
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
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:  # no process, or one that has just ended
            continue
    return found


@pytest.mark.nightly
@pytest.mark.needs("Linux")
@pytest.mark.usefixtures("ray")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_the_same_command_goes_on_after_an_end_and_no_process_stays(how, tmp_path):
    log, file = tmp_path / "log", tmp_path / "sweep.toml"
    file.write_text(TOML.format(jobs=JOBS, log=log), encoding="utf-8")
    mark = f"mark-{os.getpid()}-{how}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MINIGRAD_TEST_MARK": mark}
    command = [sys.executable, "-m", "minigrad", "sweep", str(file)]
    options = {"env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}

    child = subprocess.Popen(command, start_new_session=True, **options)
    for line in child.stdout:
        if line.startswith("trial 4 done"):
            break
    os.killpg(child.pid, how) if how == signal.SIGINT else child.kill()
    said, errors = child.communicate(timeout=120)
    end = time.monotonic() + PATIENCE
    while (left := processes(mark)) and time.monotonic() < end:
        time.sleep(0.1)
    assert left == []
    assert sorted(log.read_text(encoding="utf-8").split()) == ["1", "2", "3", "4"]
    if how == signal.SIGINT:
        assert (child.returncode, errors) == (130, "")
        assert f"The same command goes on: minigrad sweep {file}" in said
        assert Sweep.read(tmp_path / "sweep").trials[2].state == "interrupted"
    assert [row["trial"] for row in read(tmp_path / "sweep" / "results.csv")] == ["1", "2", "4"]

    if how == signal.SIGINT:
        sweep(**asked(file), progress=False)  # in Ray that runs here: to start it takes seconds
    else:
        done = subprocess.run(command, timeout=300, **options)
        assert (done.returncode, done.stderr) == (0, "")
        assert "trial 3 done after 2 epochs: k=3, score 3.5 at epoch 2" in done.stdout
        assert processes(mark) == []
    assert sorted(log.read_text(encoding="utf-8").split()) == ["1", "2", "3", "3", "4"]
    rows = read(tmp_path / "sweep" / "results.csv")
    assert [(row["trial"], row["k"], row["score"]) for row in rows] == [(f"{k}", f"{k}", f"{k}.5") for k in range(1, 5)]
    assert (tmp_path / "sweep" / "parallel.svg").read_text(encoding="utf-8").startswith("<svg")
