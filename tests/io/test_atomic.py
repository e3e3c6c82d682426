"""Saving is atomic: a file is either the complete new one or the unchanged old one."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import minigrad as mg
from needs import needs

needs("safetensors")


# --- atomic saves ---


@pytest.mark.parametrize("moment", ["open", "fsync", "copymode", "replace"])
def test_a_failed_save_keeps_the_old_file(moment, tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    mg.save({"w": mg.ones(2)}, path)

    def fails(*_):
        raise KeyboardInterrupt if moment == "fsync" else OSError("the disk is full")

    from minigrad.io import atomic

    owner = {"open": atomic, "fsync": os, "copymode": atomic.shutil, "replace": os}[moment]
    monkeypatch.setattr(owner, moment, fails, raising=False)
    with pytest.raises(KeyboardInterrupt if moment == "fsync" else OSError):
        mg.save({"w": mg.zeros(2)}, path)
    monkeypatch.undo()
    assert (mg.load(path)["w"].tolist(), os.listdir(tmp_path)) == ([1.0, 1.0], [path.name])


KILLED_PROGRAM = """
import os, sys
import minigrad as mg
from minigrad.io import atomic

def killed(*_):
    os._exit(9)

setattr(os, sys.argv[2], killed)
mg.save({"w": mg.zeros(2, device="numpy")}, sys.argv[1])
"""


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_process_killed_while_saving_keeps_the_old_file(moment, tmp_path):
    path = tmp_path / "model.safetensors"
    mg.save({"w": mg.ones(2)}, path)
    root = str(Path(mg.__file__).parent.parent)
    child = subprocess.run(
        [sys.executable, "-c", KILLED_PROGRAM, str(path), moment], env={**os.environ, "PYTHONPATH": root}, timeout=300
    )
    assert (child.returncode, mg.load(path)["w"].tolist()) == (9, [1.0, 1.0])
    mg.save({"w": mg.zeros(2)}, path)
    assert mg.load(path)["w"].tolist() == [0.0, 0.0]


@pytest.mark.needs("POSIX")
def test_a_replaced_file_keeps_its_permissions_and_a_link_stays_a_link(tmp_path):
    path, link = tmp_path / "model", tmp_path / "link"
    path.write_bytes(b"")
    path.chmod(0o640)
    link.symlink_to(path)
    mg.save({"w": mg.ones(1)}, link)
    assert link.is_symlink()
    assert (stat.S_IMODE(path.stat().st_mode), mg.load(path)["w"].tolist()) == (0o640, [1.0])


# --- errors ---


def test_an_unwritable_path_is_named_in_the_error(tmp_path):
    with pytest.raises(FileNotFoundError) as missing:
        mg.save(mg.ones(2), tmp_path / "no" / "w.pt")
    assert missing.value.filename == str(tmp_path / "no" / "w.pt")
    with pytest.raises(IsADirectoryError) as folder:
        mg.save(mg.ones(2), tmp_path)
    assert folder.value.filename == str(tmp_path)
    assert list(tmp_path.iterdir()) == []
