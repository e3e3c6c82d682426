"""Errors in the training function name its file and line."""

import sys

import pytest

from minigrad.core.errors import ArgumentError, MinigradError
from minigrad.distributed import sweep
from minigrad.distributed.sweeps import read_config
from needs import needs

needs("safetensors")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import nothing_of_this_name", "line 1 of swept.py raised ModuleNotFoundError"),
        ("x = 1\nx.y", "line 2 of swept.py raised AttributeError: 'int' object has no attribute 'y'"),
        ("def train(:", "line 1 of swept.py raised SyntaxError"),
        ("train = 3", "'train' in swept.py is an int, not a function"),
        ("def train(lr): pass", "train() has no parameter 'report' to report its metrics with"),
        ("", "swept.py has no 'train'; it defines no functions"),
    ],
)
def test_errors_in_the_function_name_the_line(source, message, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "swept.py").write_text(source, encoding="utf-8")
    (tmp_path / "s.toml").write_text('train = "swept.py:train"\ngoal = "min x"\n[grid]\nlr = [1]', encoding="utf-8")
    try:
        with pytest.raises(MinigradError) as raised:
            sweep(**read_config(tmp_path / "s.toml"))
    finally:
        sys.modules.pop("swept", None)
    assert message in str(raised.value)


def test_a_module_name_clash_raises(tmp_path):
    (tmp_path / "json.py").write_text("def train(lr, report): pass", encoding="utf-8")
    (tmp_path / "s.toml").write_text('train = "json.py:train"\ngoal = "min x"\n[grid]\nlr = [1]', encoding="utf-8")
    with pytest.raises(ArgumentError, match="another module 'json' is already imported"):
        sweep(**read_config(tmp_path / "s.toml"))
