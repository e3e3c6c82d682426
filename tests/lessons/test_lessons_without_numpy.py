"""Lessons 1 to 5 run whole where NumPy, Taichi and matplotlib are missing, as in a web page."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from needs import needs

needs("nbclient")

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
LESSONS = sorted(NOTEBOOKS.glob("0[1-5]_*.py"))
MISSING = ("matplotlib", "numpy", "taichi")
RUN = f"""
import sys
from importlib import util

class Missing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {MISSING}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

find = util.find_spec
util.find_spec = lambda name, *more: None if name in {MISSING} else find(name, *more)
sys.meta_path.insert(0, Missing)

import jupytext
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
cells = [cell.source for cell in jupytext.read(sys.argv[1]).cells if cell.cell_type == "code"]
failed = [source for source in cells if not shell.run_cell(source).success]
print("failed:", failed, "loaded:", [name for name in {MISSING} if name in sys.modules])
"""


@pytest.mark.slow
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_runs_without_numpy_taichi_and_matplotlib(lesson, tmp_path):
    child = subprocess.run(
        [sys.executable, "-c", RUN, str(lesson)],
        cwd=NOTEBOOKS,
        env=os.environ | {"IPYTHONDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert child.stdout.splitlines()[-1:] == ["failed: [] loaded: []"], child.stdout[-3000:] + child.stderr[-3000:]
    assert "Traceback" not in child.stdout + child.stderr  # a display that fails
