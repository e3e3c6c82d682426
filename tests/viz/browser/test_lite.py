"""Lessons in a page without a server: Pyodide runs them in Chromium and in Firefox, with the network cut off."""

import json
import shutil
from pathlib import Path

import pytest

from firefox import Firefox
from lab import FIND_FAULTS, RUN_ALL_CELLS
from lite import COMMAND_TIMEOUT, NOTEBOOK_IS_READY, ROOT, Site, add_package, build

LESSONS = [path.stem for path in sorted((ROOT / "notebooks").glob("0[1-5]_*.ipynb"))]
MAX_SITE, MAX_VISIT, MAX_WHEEL = 100e6, 22e6, 1.3e6  # bytes
HAS_ENDED = "() => window.ended !== null"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build(tmp_path_factory.mktemp("lite") / "site")


@pytest.fixture(scope="module")
def site(folder):
    with Site(folder) as site:
        yield site


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    with Firefox(tmp_path_factory.mktemp("firefox")) as firefox:
        yield firefox


def open_notebook(watched, site, name):
    page = watched(servers=(site.address,), expects_errors=None)
    page.goto(site.lesson(name))
    page.wait_for_function(NOTEBOOK_IS_READY, timeout=COMMAND_TIMEOUT * 1000)
    return page


def run_all_cells(page):
    page.evaluate(RUN_ALL_CELLS)
    page.wait_for_function(HAS_ENDED, timeout=COMMAND_TIMEOUT * 1000)
    return page.evaluate(FIND_FAULTS)


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_runs_in_chromium(watched, site, lesson):
    page = open_notebook(watched, site, lesson)
    assert page.locator(".jp-Dialog").count() == 0
    assert run_all_cells(page) == []
    assert page.evaluate("() => window.ended") is True
    assert not [path for path, _ in site.sent if "numpy" in path]


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_runs_in_firefox(firefox, site, lesson):
    firefox.goto(site.lesson(lesson))
    firefox.wait_for(NOTEBOOK_IS_READY, COMMAND_TIMEOUT)
    firefox.evaluate(RUN_ALL_CELLS)
    firefox.wait_for(HAS_ENDED, COMMAND_TIMEOUT)
    assert firefox.evaluate(FIND_FAULTS) == []
    assert firefox.evaluate("() => window.ended") is True


def test_changes_stay_in_the_browser(watched, site):
    page = open_notebook(watched, site, LESSONS[0])
    first_code_cell = "window.jupyterapp.shell.currentWidget.content.widgets.find((cell) => cell.model.type === 'code')"
    page.evaluate(f"() => {first_code_cell}.model.sharedModel.setSource('mine = 6 * 7')")
    page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    page.reload()
    page.wait_for_function(NOTEBOOK_IS_READY, timeout=COMMAND_TIMEOUT * 1000)
    assert page.evaluate(f"() => {first_code_cell}.model.sharedModel.getSource()") == "mine = 6 * 7"


def test_the_first_visit_and_the_site_are_small(chrome, folder):
    context = chrome.new_context()  # that intercepts no requests, since Chromium caches none that are intercepted
    with Site(folder) as site:
        page = context.new_page()
        page.goto(site.lesson(LESSONS[0]))
        page.wait_for_function(NOTEBOOK_IS_READY, timeout=COMMAND_TIMEOUT * 1000)
        assert run_all_cells(page) == []
        context.close()
        assert sum(size for _, size in site.sent) < MAX_VISIT
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < MAX_SITE
    (wheel,) = (folder / "static" / "pyodide").glob("seegrad-*.whl")
    assert wheel.stat().st_size < MAX_WHEEL


def test_a_package_of_the_distribution_is_loaded_when_minigrad_first_imports_it(watched, folder, tmp_path):
    copy = Path(shutil.copytree(folder, tmp_path / "site"))
    add_package(copy / "static" / "pyodide", "numpy", "__version__ = '2.4.6'\n")
    source = ["import minigrad as mg\n", "\n", "mg.tensor([1.0])"]
    notebook = json.loads((ROOT / "notebooks" / f"{LESSONS[0]}.ipynb").read_text(encoding="utf-8"))
    cell = {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None, "id": "only"}
    kernel = {"kernelspec": {"display_name": "Python", "language": "python", "name": "python"}}
    (copy / "files" / f"{LESSONS[0]}.ipynb").write_text(json.dumps(notebook | {"cells": [cell], "metadata": kernel}))
    with Site(copy) as site:
        (fault,) = run_all_cells(open_notebook(watched, site, LESSONS[0]))
    assert "MissingPackageError" in fault
    assert "numpy 2.4.6 has no" in fault  # it is a stand-in, so what is missing from it is reported
