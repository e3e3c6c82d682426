"""Which lessons run in a page: `python tests/helpers/page_lessons.py` prints a table, a row for each lesson.

Each lesson's cells run in order, in a process like a page (see `page`), in IPython, as JupyterLite does. matplotlib is
there, since Pyodide has it. After an error the other cells still run, so a row counts the cells that fail.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from page import ROOT, run_in_page

__all__ = ["Row", "run_lesson", "table"]

PROGRAM = """
import contextlib, io, json, sys, time, warnings
from pathlib import Path
import matplotlib
matplotlib.use("Agg")
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

warnings.simplefilter("default")
shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
cells = json.loads(Path(PATH).read_text(encoding="utf-8"))["cells"]
sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
failures, start = [], time.perf_counter()
for number, source in enumerate(sources, 1):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        result = shell.run_cell(source, store_history=False)
    error = result.error_before_exec or result.error_in_exec
    if error is not None:
        failures.append((number, type(error).__name__, str(error).partition("\\n")[0]))
print(json.dumps([len(sources), failures, time.perf_counter() - start]))
"""


class Row(NamedTuple):
    """How a lesson ran: its name, its code cells, (cell, class, message) of each error, and the seconds it took."""

    lesson: str
    cells: int
    failures: list[tuple[int, str, str]]
    seconds: float

    def __str__(self) -> str:
        runs, why = f"{self.cells - len(self.failures)} of {self.cells}", "–"
        if self.failures:
            cell, kind, message = self.failures[0]
            why = f"cell {cell}: {kind}: {message}"
        return f"| {self.lesson} | {runs} | {why} | {self.seconds:.1f} |"


def run_lesson(path: Path, *missing: str) -> Row:
    """Run the cells of a lesson in a page, also without the packages `missing`."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(path.parent / "lessons.mplstyle", folder)
        # matplotlib lists its fonts once, with a thread; Pyodide's has them listed.
        subprocess.run([sys.executable, "-c", "import matplotlib.font_manager"], check=True)
        printed = run_in_page(PROGRAM.replace("PATH", repr(str(path)), 1), *missing, folder=Path(folder), timeout=1800)
    cells, failures, seconds = json.loads(printed.splitlines()[-1])
    return Row(path.stem, cells, [tuple(failure) for failure in failures], seconds)


def table(lessons: list[Path]) -> list[str]:
    """Return the table's lines, in Markdown."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("MPLCONFIGDIR", folder)  # without it, the folder depends on the platform
        rows = [str(run_lesson(path)) for path in lessons]
    return ["| Lesson | Cells that run | The first that does not | Seconds |", "|---|---:|---|---:|", *rows]


if __name__ == "__main__":
    wanted = sys.argv[1:] or [""]
    paths = [path for path in sorted((ROOT / "notebooks").glob("*.ipynb")) if path.name.startswith(tuple(wanted))]
    print("\n".join(table(paths)))
