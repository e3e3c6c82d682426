"""Configuration of a sweep in TOML or Python: errors are one sentence, and the documented examples run."""

import sys
from pathlib import Path

import pytest

import sweep_jobs as jobs
from minigrad import cli
from minigrad.core.errors import ArgumentError, DTypeError, FileFormatError, MissingFileError, MissingPackageError
from minigrad.distributed import Halving, Report, sweep
from minigrad.distributed.sweeps import read_config
from needs import needs
from sweeps import JOBS, make_plan

needs("safetensors")

EXAMPLES = Path(__file__).parents[3] / "examples"
BASE = 'train = "sweep_jobs.py:bowl"\ngoal = "min val_loss"\n'
GRID = BASE + "[grid]\nlr = [0.1, 0.2]\n"
MISTAKES = {
    "no toml": ("train = ", FileFormatError, "sweep.toml is not valid TOML: "),
    "unknown key": ('gaol = "x"\n' + GRID, ArgumentError, "sweep.toml: unknown key gaol.\n  Did you mean goal?"),
    "no train": ('goal = "min x"', ArgumentError, "missing key 'train'.\n  Write train = \"train.py:train\""),
    "no goal": ('train = "a.py:b"', ArgumentError, "missing key 'goal'.\n  Write goal = \"min val_loss\""),
    "no function in a file": ('train = "bowl"\ngoal = "min x"', ArgumentError, "train='bowl' is not of the form"),
    "no file": ('train = "a.py:b"\ngoal = "min x"', MissingFileError, "a.py, from train='a.py:b'"),
    "no such function": (
        GRID.replace("bowl", "bowls"),
        ArgumentError,
        "sweep_jobs.py has no 'bowls'; it defines bowl, net, slow, waits, mixed.",
    ),
    "goal": (GRID.replace("min val_loss", "val_loss"), ArgumentError, "goal='val_loss' is invalid"),
    "nothing swept": (BASE, ArgumentError, "nothing is swept.\n  Write width = [16, 32, 64] under [grid]"),
    "grid is a number": (
        BASE + "grid = 3",
        DTypeError,
        "expected grid to be a table, but got an int.\n  Write a table [grid]",
    ),
    "no list": (
        BASE + "[grid]\nlr = 0.1",
        DTypeError,
        "expected grid.lr to be a list, but got 0.1.\n  Write lr = [0.1]",
    ),
    "empty list": (BASE + "[grid]\nlr = []", ArgumentError, "grid.lr is an empty list.\n  Write the values to try"),
    "twice": (
        BASE + "[grid]\nlr = [1, 1]",
        ArgumentError,
        "grid.lr contains 1 twice.\n  To repeat trials, sweep over a seed",
    ),
    "a date": (
        BASE + "[grid]\nlr = [2020-01-01]",
        DTypeError,
        "grid.lr[0] should be a number, bool, string or list, but got a date",
    ),
    "nan": (BASE + "[grid]\nlr = [nan]", ArgumentError, "grid.lr[0] should be finite, but got nan"),
    "two tables": (GRID + "[fixed]\nlr = 3", ArgumentError, "lr is in both [grid] and [fixed].\n  Remove one of them"),
    "reserved": (
        BASE + "[grid]\nreport = [1]",
        ArgumentError,
        "grid.report is reserved: the sweep passes report to train",
    ),
    "no name": (BASE + '[grid]\n"a b" = [1]', ArgumentError, "grid.a b is not a valid Python identifier"),
    "a column": (
        BASE + "[grid]\nstate = [1]",
        ArgumentError,
        "parameter state conflicts with a column of the results.\n  Rename",
    ),
    "no samples": (
        BASE + "[random]\nlr = [1, 2]",
        ArgumentError,
        "random requires the number of samples to draw.\n  Write samples = 20",
    ),
    "samples": (
        "samples = 0\n" + BASE + "[random]\nlr = [1, 2]",
        ArgumentError,
        "samples should be an int >= 1, but got samples=0",
    ),
    "no random": ("samples = 3\n" + GRID, ArgumentError, "samples=3 has no effect without [random]"),
    "span": (
        BASE + "[random]\nlr = 3",
        DTypeError,
        "expected random.lr to be a range or a list, but got 3.\n  Write lr = {",
    ),
    "key of a span": (
        BASE + "[random]\nlr = { from = 0.1, too = 1.0 }",
        ArgumentError,
        "unknown key random.lr.too.\n  Did you mean to?",
    ),
    "no end": (BASE + "[random]\nlr = { from = 0.1 }", ArgumentError, "random.lr.to should be a number, but got None"),
    "wrong order": (
        BASE + "[random]\nlr = { from = 1, to = 1 }",
        ArgumentError,
        "random.lr should have from < to, but got from = 1, to = 1",
    ),
    "log of 0": (
        BASE + "[random]\nlr = { from = 0, to = 1, log = true }",
        ArgumentError,
        "random.lr with log = true requires from > 0, but got 0",
    ),
    "log": (
        BASE + "[random]\nlr = { from = 1, to = 2, log = 1 }",
        DTypeError,
        "random.lr.log should be true or false, but got 1",
    ),
    "stop": (
        "stop = true\n" + GRID,
        DTypeError,
        "expected stop to be a table, but got a bool.\n  Write a table [stop]",
    ),
    "key of stop": (
        GRID + "[stop]\ngrace = 1",
        ArgumentError,
        "unknown key stop.grace.\n  Did you mean grace_period?",
    ),
    "grace": (
        GRID + "[stop]\ngrace_period = 0",
        ArgumentError,
        "stop.grace_period should be an int >= 1, but got stop.grace_period=0",
    ),
    "factor": (
        GRID + "[stop]\nreduction_factor = 1",
        ArgumentError,
        "stop.reduction_factor should be a number greater than 1, but got 1",
    ),
    "workers": (
        "workers = 0\n" + GRID,
        ArgumentError,
        "workers, the number of concurrent trials, should be an int >= 1, not 0",
    ),
    "resources": (
        "resources = 2\n" + GRID,
        DTypeError,
        "expected resources to be a table, but got an int.\n  Write a table [resources]",
    ),
    "no GPU": (
        GRID + "[resources]\nGPU = 0",
        ArgumentError,
        "resources['GPU'] should be a positive amount per worker, but got 0",
    ),
    "folder": (
        "folder = 3\n" + GRID,
        DTypeError,
        'expected folder to be a path, but got 3.\n  Write folder = "results"',
    ),
    "no such parameter": (
        BASE + "[grid]\nlr = [1]\ndepth = [1]",
        ArgumentError,
        "bowl() got an unexpected keyword argument 'depth'.\n  Write def bowl(lr, depth, report)",
    ),
    "a missing argument": (
        BASE + "[grid]\nwidth = [1]",
        ArgumentError,
        "bowl() missing required argument 'lr'.\n  Write lr = … under [grid], [random] or [fixed]",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_configuration_errors_are_one_sentence_with_advice(case, tmp_path, monkeypatch, capsys):
    text, kind, message = MISTAKES[case]
    monkeypatch.setitem(sys.modules, "ray", None)  # errors are raised before Ray is imported
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "sweep_jobs")
    (tmp_path / "sweep_jobs.py").write_text(JOBS.read_text(encoding="utf-8"), encoding="utf-8")
    path = tmp_path / "sweep.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(kind) as raised:
        sweep(**read_config(path))
    assert message in str(raised.value)
    assert str(raised.value).startswith(("sweep.toml", "sweep: no such file"))
    assert not (tmp_path / "sweep" / "sweep.json").exists()
    monkeypatch.delitem(sys.modules, "sweep_jobs", raising=False)
    assert cli.main(["sweep", str(path)]) == 2
    assert message in capsys.readouterr().err


def test_documented_examples_are_valid(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", [*sys.path])
    try:
        arguments = read_config(EXAMPLES / "sweep" / "sweep.toml")
        train = arguments.pop("train")
        options = {name: arguments[name] for name in ("goal", "random", "fixed", "samples", "stop")}
        plan, report = make_plan(grid=None, **options), Report("val_loss")
        train(**plan.values(2), **plan.fixed, epochs=2, report=report)
    finally:
        sys.modules.pop("train", None)
    assert (len(plan), plan.stop) == (24, Halving(2, 3))
    assert report.epochs[1]["val_loss"] < report.epochs[0]["val_loss"] < 2.4
    with pytest.raises(SystemExit):
        cli.main(["sweep", "--help"])
    shown = capsys.readouterr().out.partition("a file:\n")[2]
    (tmp_path / "train.py").touch()
    (tmp_path / "sweep.toml").write_text(shown, encoding="utf-8")
    config = read_config(tmp_path / "sweep.toml")
    assert len(make_plan(**{name: config[name] for name in ("goal", "grid", "random", "samples", "stop")})) == 40


def test_the_default_folder_is_named_after_the_file(tmp_path):
    (tmp_path / "rates.toml").write_text(GRID.replace("sweep_jobs.py", str(JOBS)), encoding="utf-8")
    assert read_config(tmp_path / "rates.toml")["folder"] == tmp_path / "rates"


def test_without_ray_the_error_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPackageError) as raised:
        sweep(jobs.bowl, "min val_loss", grid={"lr": [0.1]}, folder=tmp_path)
    assert str(raised.value) == "sweep: the package ray is not installed.\n  Run: pip install 'seegrad[ray]'"
