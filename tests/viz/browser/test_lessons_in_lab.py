"""Every lesson in JupyterLab from top to bottom: no error, and no empty widget."""

import os
import shutil
from pathlib import Path

import pytest

from lab import FIND_FAULTS, RUN_ALL_CELLS, Lab
from needs import needs_of_lesson
from web_server import START_TIMEOUT

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"
LESSONS = sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))
SCREENSHOTS = os.environ.get("MINIGRAD_PICTURES")  # a folder for screenshots of the executed lessons, for review
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lessons")
    for path in (*LESSONS, NOTEBOOKS / "lessons.mplstyle"):
        shutil.copy(path, folder)
    with Lab(folder) as lab:
        yield lab


@pytest.mark.nightly  # nbval runs them without a browser
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_runs_from_top_to_bottom(lab, watched, path):
    needs_of_lesson(path.stem)
    page = lab.open_notebook(watched, path.name, width=1100, height=1400)
    page.evaluate(RUN_ALL_CELLS)
    page.wait_for_function("() => window.ended !== null", timeout=START_TIMEOUT * 1000)
    if SCREENSHOTS:
        _take_screenshots(page, Path(SCREENSHOTS), path.stem)
    assert page.evaluate(FIND_FAULTS) == []


def _take_screenshots(page, folder, name):
    """Take screenshots of the entire notebook, each as high as the window."""
    folder.mkdir(parents=True, exist_ok=True)
    page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    box = page.locator(".jp-WindowedPanel-outer").first
    step, end = box.evaluate("one => [one.clientHeight - 40, one.scrollHeight]")
    for k in range(-(-end // step)):
        box.evaluate("(one, top) => { one.scrollTop = top; }", k * step)
        page.wait_for_timeout(200)
        page.screenshot(path=folder / f"{name}_{k:02}.png")
