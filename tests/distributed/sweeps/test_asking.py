"""What is asked for in a file or in Python: mistakes are one sentence, and the examples are sweeps."""

import sys
from pathlib import Path

import pytest

import sweep_jobs as jobs
from minigrad import cli
from minigrad.core.errors import ArgumentError, DTypeError, FileFormatError, MissingFileError, MissingPackageError
from minigrad.distributed import Halving, Report, sweep
from minigrad.distributed.sweeps import asked
from needs import needs
from sweeps import JOBS, plan

needs("safetensors")

EXAMPLES = Path(__file__).parents[3] / "examples"
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


def test_the_example_and_the_help_of_the_command_are_sweeps(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", [*sys.path])
    try:
        arguments = asked(EXAMPLES / "sweep" / "sweep.toml")
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
