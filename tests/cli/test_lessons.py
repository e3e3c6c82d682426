"""`minigrad lab`, `course` and `doctor`: the files they copy, the files they leave alone, and their output."""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from minigrad import cli
from minigrad.cli import doctor
from needs import is_available, needs

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
LESSONS = sorted(path.name for path in NOTEBOOKS.glob("[0-9]*.ipynb"))


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = cli.main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_lab_copies_every_lesson_and_its_style(run, tmp_path):
    folder = tmp_path / "minigrad-lessons"
    assert run("lab", "--copy") == (0, f"{folder}: {len(LESSONS)} new.\n", "")
    assert sorted(path.name for path in folder.glob("[0-9]*")) == LESSONS
    for name in (*LESSONS, "lessons.mplstyle"):
        assert (folder / name).read_bytes() == (NOTEBOOKS / name).read_bytes()
    assert run("lab", "--copy") == (0, f"{folder}: {len(LESSONS)} unchanged.\n", "")


def test_lab_never_overwrites_changed_files(run, tmp_path):
    folder = tmp_path / "mine"
    run("lab", "mine", "--copy")
    (folder / LESSONS[0]).write_text("my work", encoding="utf-8")
    (folder / LESSONS[1]).unlink()
    output = run("lab", "mine", "--copy")[1]
    assert output == f"{folder}: 1 new, {len(LESSONS) - 2} unchanged, 1 changed by you.\n"
    assert (folder / LESSONS[0]).read_text(encoding="utf-8") == "my work"


def test_lab_updates_lessons_except_changed_ones(run, tmp_path):
    """An update of minigrad recognises earlier copies by their digests."""
    folder = tmp_path / "minigrad-lessons"
    run("lab", "--copy")
    note = folder / ".minigrad.json"
    known = json.loads(note.read_text(encoding="utf-8"))
    old = "7b5b5acb25a0fa3fe6eaf5b7b8c9d0ea0d0b8f2df3c3c0cb0b1a0a3d3a9b1c2d"
    for name in LESSONS[:2]:
        known[name] = old
    (folder / LESSONS[0]).write_bytes(b"an old lesson, as it was copied")
    known[LESSONS[0]] = __import__("hashlib").sha256(b"an old lesson, as it was copied").hexdigest()
    (folder / LESSONS[1]).write_text("an old lesson, with answers", encoding="utf-8")
    note.write_text(json.dumps(known), encoding="utf-8")
    output = run("lab", "--copy")[1].splitlines()
    assert output[0] == f"{folder}: 1 updated, {len(LESSONS) - 2} unchanged."
    assert output[1] == f"Changed by you, and newer in minigrad: {LESSONS[1]}. Rename yours to get the new ones."
    assert (folder / LESSONS[0]).read_bytes() == (NOTEBOOKS / LESSONS[0]).read_bytes()
    assert (folder / LESSONS[1]).read_text(encoding="utf-8") == "an old lesson, with answers"


@pytest.mark.parametrize("text", ["", "{", "[1, 2", "[]", "1", '{"a": []}', "[" * 100_000], ids="{:.9}".format)
def test_a_damaged_digest_file_overwrites_nothing(run, tmp_path, text):
    folder = tmp_path / "minigrad-lessons"
    run("lab", "--copy")
    (folder / ".minigrad.json").write_text(text, encoding="utf-8")
    (folder / LESSONS[0]).write_text("my work", encoding="utf-8")
    output = run("lab", "--copy")[1]
    assert f"newer in minigrad: {LESSONS[0]}." in output
    assert (folder / LESSONS[0]).read_text(encoding="utf-8") == "my work"


def test_lab_does_not_follow_links_or_block_on_pipes(run, tmp_path):
    folder = tmp_path / "minigrad-lessons"
    run("lab", "--copy")
    for name in LESSONS[:3]:
        (folder / name).unlink()
    (folder / LESSONS[0]).symlink_to(tmp_path / "new")
    (folder / LESSONS[1]).symlink_to(tmp_path / "old")
    os.mkfifo(folder / LESSONS[2])
    (tmp_path / "old").write_text("old", encoding="utf-8")
    note = folder / ".minigrad.json"
    known = json.loads(note.read_text(encoding="utf-8"))
    known[LESSONS[1]] = hashlib.sha256(b"old").hexdigest()
    del known[LESSONS[0]], known[LESSONS[2]]
    note.write_text(json.dumps(known), encoding="utf-8")
    assert f"newer in minigrad: {', '.join(LESSONS[:3])}." in run("lab", "--copy")[1]
    assert (tmp_path / "old").read_text(encoding="utf-8") == "old"
    assert not (tmp_path / "new").exists()


def test_lab_does_not_write_digests_through_a_link(run, tmp_path):
    note = tmp_path / "minigrad-lessons" / ".minigrad.json"
    note.parent.mkdir()
    (tmp_path / "precious").write_text("precious", encoding="utf-8")
    note.symlink_to(tmp_path / "precious")
    code, _, stderr = run("lab", "--copy")
    assert code == 2
    assert stderr.endswith(".minigrad.json is a link, or not a file; minigrad stores its digests there: move it away\n")
    assert (tmp_path / "precious").read_text(encoding="utf-8") == "precious"


def test_lab_opens_jupyterlab_on_localhost(run, tmp_path, monkeypatch):
    needs("jupyterlab")
    calls = []
    monkeypatch.setattr(subprocess, "call", lambda command: calls.append(command) or 7)
    assert run("lab", "mine")[0] == 7
    assert calls == [[sys.executable, "-m", "jupyter", "lab", "--ip=localhost", str(Path("mine", LESSONS[0]))]]
    assert (tmp_path / "mine" / LESSONS[0]).is_file()


def test_lab_without_jupyterlab_says_so_and_copies_nothing(run, tmp_path, monkeypatch):
    monkeypatch.setattr("minigrad.cli.lessons.find_spec", lambda name: None)
    message = "minigrad lab: JupyterLab is missing; install it with: pip install 'seegrad[lab]'\n"
    assert run("lab") == (2, "", message)
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_folder_prints_one_line(run, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    code, out, err = run("lab", "file", "--copy")
    assert (code, out) == (2, "")
    assert re.fullmatch(r"minigrad lab: cannot (read|write) file/.*: (Not a directory|File exists)\n", err)


def test_course_is_a_folder_for_nbgrader_and_is_not_overwritten_either(run, tmp_path):
    code, out, _ = run("course", "course")
    assert (code, out.splitlines()[0]) == (0, f"course: {len(LESSONS)} lessons added, 0 left unchanged.")
    source = tmp_path / "course" / "source"
    assert sorted(path.name for path in source.iterdir()) == [name.removesuffix(".ipynb") for name in LESSONS]
    first = source / LESSONS[0].removesuffix(".ipynb") / LESSONS[0]
    first.write_text("a teacher's own", encoding="utf-8")
    assert run("course", "course")[1].startswith("course: 0 lessons added, 1 left unchanged.\n")
    assert first.read_text(encoding="utf-8") == "a teacher's own"


def test_doctor_lists_installed_packages(run):
    needs("jupyterlab")
    code, out, err = run("doctor")
    assert (code, err) == (0, "")
    lines = [line.strip() for line in out.splitlines()]
    assert re.match(r"minigrad 0\.1\.0, Python 3\.1[1-9]\.", lines[0])
    for name in ("NumPy", "device numpy", "matplotlib", "JupyterLab", "anywidget", "ipywidgets", "the player"):
        assert any(re.match(rf"ok +{name}", line) for line in lines), name
    assert any(re.match(r"(ok|no) +device cuda", line) for line in lines) == any("ok      Taichi" in x for x in lines)
    exception = "" if is_available("torch") else " except 18"
    assert lines[-1] == f"All lessons{exception} can run here. To start: minigrad lab"


@pytest.mark.parametrize(("installed", "runnable"), [("2.13.0", "All lessons"), (None, "All lessons except 18")])
def test_doctor_checks_for_pytorch(run, monkeypatch, installed, runnable):
    monkeypatch.setattr(doctor, "_installed_version", lambda package: installed)
    monkeypatch.setattr(doctor, "find_spec", lambda name: name)
    monkeypatch.setattr(doctor, "_run_checks", lambda: [doctor._check_torch()])
    code, out, _ = run("doctor")
    assert code == 0
    assert ("ok      PyTorch 2.13.0" in out) == (installed is not None)
    assert ("no      PyTorch\n          Only lesson 18" in out) == (installed is None)
    assert out.splitlines()[-1] == f"{runnable} can run here. To start: minigrad lab"


def test_doctor_reports_unsupported_versions(monkeypatch):
    monkeypatch.setattr(doctor, "_installed_version", lambda package: "1.26.4")
    check = doctor._check_package("numpy", "NumPy", "")
    assert (check.state, check.item) == ("missing", "NumPy 1.26.4, but minigrad requires numpy>=2.1")
    assert doctor._check_taichi() == ("no", "Taichi 1.26.4, but minigrad requires taichi>=1.7.4,<1.8", "")


def test_doctor_reports_picture_packages(monkeypatch):
    versions = {"typst": "0.15.2", "av": "18.1.0"}
    monkeypatch.setattr(doctor, "_installed_version", versions.get)
    assert doctor._check_picture_packages() == ("ok", "images and videos, by typst 0.15.2 and av 18.1.0", "")
    versions["av"] = "9.0"
    assert doctor._check_picture_packages()[:2] == (
        "no",
        "typst and av, for PNG, PDF, GIF and MP4: typst 0.15.2, av 9.0, but minigrad requires av>=13.0",
    )
    versions.clear()
    state, packages, advice = doctor._check_picture_packages()
    assert (state, packages) == ("no", "typst and av, for PNG, PDF, GIF and MP4")
    assert advice.endswith("Install them with: pip install 'seegrad[pictures]'")


def test_doctor_advises_on_missing_packages(run, monkeypatch):
    monkeypatch.setattr(doctor, "_installed_version", lambda package: None)
    monkeypatch.setattr(doctor, "_test_device", lambda device: "no kernel")
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    code, out, _ = run("doctor")
    assert code == 1
    assert (
        "  missing NumPy\n          Without it there are Values but no tensors. Install it with: pip install 'numpy'"
        in out
    )
    assert "  no      Taichi\n          NumPy runs the tensor kernels instead." in out
    assert "  no      device numpy: no kernel\n" in out
    assert (
        "  missing JupyterLab\n          Or open the lessons in VS Code or Jupyter Notebook. Install it with: pip"
        in out
    )
    assert (
        "  missing anywidget\n          Players and sliders remain static images. Install it with: pip install" in out
    )
    assert "  no      dot, from Graphviz\n          Only drawings by Graphviz require it" in out
    assert out.endswith("\nLessons require the missing packages.\n")


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("print(1.0)", "the process exited with code 0"),
        ("raise ValueError('cuda: no driver')", "no driver"),
        ("import os; os._exit(3)", "the process exited with code 3"),
    ],
    ids=["another number", "an error", "a crash"],
)
def test_a_failing_device_is_reported_with_its_reason(monkeypatch, code, why):
    monkeypatch.setattr(doctor, "DEVICE_TEST", code)
    assert doctor._test_device("cuda") == why
