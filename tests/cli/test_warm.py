"""`minigrad doctor --warm`: the kernels that it compiles, and what it says where it cannot."""

import re
import subprocess
import sys

import pytest

from minigrad import cli
from minigrad.cli import warm

FIRST = "import minigrad as mg; x = mg.ones(3, requires_grad=True, device='cpu'); (x * 2 + 1).sum().backward()"
STEP = """
import minigrad as mg
mg.set_default_device("cpu")
model = mg.nn.Sequential(mg.nn.Linear(5, 7), mg.nn.ReLU(), mg.nn.Linear(7, 3))
optimizer = mg.optim.Adam(model.parameters())
mg.nn.functional.cross_entropy(model(mg.randn(4, 5)), mg.arange(4) % 3).backward()
optimizer.step()
"""


def cached(folder):
    return sorted((path.name, path.stat().st_mtime_ns) for path in folder.rglob("*.tic"))


@pytest.mark.needs("taichi")
def test_a_first_operation_after_it_compiles_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TI_OFFLINE_CACHE_FILE_PATH", str(tmp_path))
    assert cli.main(["doctor", "--warm"]) == 0
    captured = capsys.readouterr()
    found = re.fullmatch(r"(\d+) kernels are compiled, and cached in (.*)\n", captured.out)
    assert (found[2], captured.err) == (str(tmp_path), "")
    before = cached(tmp_path)
    assert len(before) >= int(found[1]) > 20
    subprocess.run([sys.executable, "-c", FIRST], check=True, timeout=300)
    assert cached(tmp_path) == before
    subprocess.run([sys.executable, "-c", STEP], check=True, timeout=300)
    # a step of other shapes may need the variant of a matrix product for narrow matrices
    assert len(set(cached(tmp_path)) - set(before)) < 4


@pytest.mark.needs("taichi")
def test_an_unwritable_cache_is_reported(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TI_OFFLINE_CACHE_FILE_PATH", str(tmp_path / "file" / "cache"))
    assert cli.main(["doctor", "--warm"]) == 1
    warning = f"Compiled kernels cannot be cached in {tmp_path}/file/cache (Not a directory), "
    assert capsys.readouterr() == ("", warning + "so each process compiles them again.\n")


@pytest.mark.needs("taichi")
def test_a_failing_process_is_reported(monkeypatch, capsys):
    monkeypatch.setattr(warm, "PROGRAM", "raise RuntimeError('no memory')")
    assert cli.main(["doctor", "--warm"]) == 2
    assert capsys.readouterr().err == "minigrad doctor --warm: RuntimeError: no memory\n"


def test_without_taichi_there_is_nothing_to_compile(monkeypatch, capsys):
    monkeypatch.setattr(warm, "find_spec", lambda name: None)
    assert cli.main(["doctor", "--warm"]) == 0
    assert capsys.readouterr().out == "Taichi is not installed, so there are no kernels to compile.\n"
