"""A lesson as an nbgrader assignment: it is released unchanged, and each passing check is a point."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from minigrad import cli, lessons
from needs import needs

needs("nbgrader")


LESSON = "01_one_neuron"
SOLUTION = Path(__file__).parents[2] / "notebooks" / "solutions" / f"{LESSON}.py"
RIGHT = {
    "1": 'answer = {"w": 0.125, "x": 1.0, "b": 0.25}',
    "2": "def slope(f, x):\n    return (f(x + 1e-5) - f(x - 1e-5)) / 2e-5",
    "3": "def division(a, b):\n    return a / b, 1 / b, -a / b**2",
}


def nbgrader(course, *arguments):
    """Run nbgrader in a course, isolated from the user's settings."""
    settings = {f"JUPYTER_{kind}_DIR": str(course / "jupyter" / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
    # Nbgrader runs alembic from there.
    settings["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, **settings, "IPYTHONDIR": str(course / "ipython"), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m", "nbgrader", *arguments]
    child = subprocess.run(command, cwd=course, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert child.returncode == 0, child.stdout + child.stderr
    return child.stdout + child.stderr


def answer_of(cell):
    return cell.metadata.get("nbgrader", {}).get("grade_id", "").removeprefix("answer-01-")


def submit(course, student, answers):
    """Submit the released lesson with some answers."""
    notebook = nbformat.read(course / "release" / LESSON / f"{LESSON}.ipynb", as_version=4)
    for cell in notebook.cells:
        if answer_of(cell) in answers:
            name = cell.source.partition("(")[0].removeprefix("def ").split(" = ")[0].strip()
            cell.source = answers[answer_of(cell)].replace("answer", name)
    folder = course / "submitted" / student / LESSON
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / f"{LESSON}.ipynb")


@pytest.mark.nightly
@pytest.mark.slow
def test_a_lesson_is_released_unchanged_and_graded_by_its_checks(tmp_path, capsys):
    assert cli.main(["course", str(tmp_path)]) == 0
    nbgrader(tmp_path, "generate_assignment", LESSON, "--create")
    released = nbformat.read(tmp_path / "release" / LESSON / f"{LESSON}.ipynb", as_version=4)
    stored = nbformat.read(SOLUTION.parents[1] / f"{LESSON}.ipynb", as_version=4)
    assert [cell.source for cell in released.cells] == [cell.source for cell in stored.cells], "answers stay open"

    submit(tmp_path, "all", RIGHT)
    submit(tmp_path, "one", {"1": RIGHT["1"].replace("1.0", "-1.0"), "2": RIGHT["2"]})
    submit(tmp_path, "none", {})
    nbgrader(tmp_path, "autograde", LESSON, "--create")
    nbgrader(tmp_path, "export", "--to", "grades.csv")
    header, *rows = (line.split(",") for line in (tmp_path / "grades.csv").read_text(encoding="utf-8").splitlines())
    student, score, max_score = map(header.index, ("student_id", "score", "max_score"))
    assert {row[student]: (float(row[score]), float(row[max_score])) for row in rows} == {
        "all": (3.0, 3.0),
        "one": (1.0, 3.0),
        "none": (0.0, 3.0),
    }


def test_a_check_raises_only_during_grading(monkeypatch, capsys):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    with pytest.raises(AssertionError, match=r"01\.1 is open"):
        lessons.check("01.1", ...)
    with pytest.raises(AssertionError, match=r"01\.1 is wrong"):
        lessons.check("01.1", {"w": 1, "x": 1, "b": 1})
    runpy.run_path(str(SOLUTION))
    assert capsys.readouterr().out.splitlines()[2:] == [
        f"01.{k} right: {lessons.EXERCISES[f'01.{k}'].explanation}" for k in (1, 2, 3)
    ]
