"""The second leg of CI leaves out files that passed in the first, and those alone that nothing missing could change."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CONFTEST = """
import needs
import legs
needs.NEEDS["gold"] = needs.Need(lambda: False, "dig")

def pytest_addoption(parser):
    parser.addoption("--leave")

def pytest_configure(config):
    config.pluginmanager.register(needs.Skips())
    config.pluginmanager.register(legs.Legs(config), "legs")
    config.addinivalue_line("markers", "needs(names)")

def pytest_collection_modifyitems(config, items):
    items[:], left = config.pluginmanager.get_plugin("legs").leave(items)
    config.hook.pytest_deselected(items=left)
"""
FILES = {
    "plain": "import os\n\ndef test_one(): assert 'CI_PASSED' not in os.environ\n\ndef test_two(): pass\n",
    "fails": "def test_one(): pass\n\ndef test_two(): raise ValueError\n",
    "skips": "import pytest\n\ndef test_one(): pass\n\n@pytest.mark.needs('gold')\ndef test_two(): pass\n",
    "teardown": "import pytest\n\n@pytest.fixture\ndef one():\n    yield\n    raise ValueError\n\n"
    "def test_one(one): pass\n",
    "imports": "def test_one():\n    try:\n        import gold.ring\n    except ImportError: pass\n",
    "looks": "def test_one():\n    from importlib.util import find_spec\n    assert find_spec('gold') is None\n",
    "version": "import importlib.metadata as m\n\ndef test_one():\n"
    "    try: m.version('gold')\n    except m.PackageNotFoundError: pass\n",
    "asks": "from needs import is_here\n\ndef test_one(): assert not is_here('gold')\n",
    "collected": "from needs import is_here\nHERE = is_here('gold')\n\ndef test_one(): pass\n\ndef test_two(): pass\n",
    "program": "import subprocess, sys\n\ndef test_one(): subprocess.run([sys.executable, '-c', ''], check=True)\n",
}


@pytest.fixture
def run(tmp_path):
    """Runs pytest on these files; returns the line for each test that ran, and what else is printed."""
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")

    def run(files, *options, **environment):
        for name, text in files.items():
            (tmp_path / f"test_{name}.py").write_text(text, encoding="utf-8")
        child = subprocess.run(
            [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-p", "no:nbval", *options],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(TESTS / "helpers"), "COLUMNS": "200", **environment},
            capture_output=True,
            text=True,
            timeout=300,
        )
        return child.stdout

    return run


@pytest.mark.parametrize("options", [pytest.param((), marks=pytest.mark.nightly), ("-n2",)], ids=["alone", "workers"])
def test_only_files_that_nothing_missing_changes_are_left(run, tmp_path, options):
    run(FILES, *options, CI_PASSED=str(tmp_path / "passed.json"))
    passed = json.loads((tmp_path / "passed.json").read_text(encoding="utf-8"))
    assert passed == {"test_plain.py": ["test_plain.py::test_one", "test_plain.py::test_two"]}

    printed = run(FILES, *options, "--leave", "passed.json")
    assert "2 tests of 1 file were left to the first leg." in printed
    assert "2 deselected" in printed.splitlines()[-1], printed
    assert "test_plain.py::" not in printed
    assert "test_collected.py::test_two" in printed


def test_a_file_that_has_another_test_now_runs(run, tmp_path):
    known = {"test_one.py": ["test_one.py::test_one"], "test_two.py": ["test_two.py::test_one"]}
    (tmp_path / "passed.json").write_text(json.dumps(known), encoding="utf-8")
    files = {"one": "def test_one(): pass\n", "two": "def test_one(): pass\n\ndef test_two(): raise ValueError\n"}
    printed = run(files, "--leave", "passed.json")
    assert printed.splitlines()[-1].strip("= ").startswith("1 failed, 1 passed, 1 deselected in "), printed
