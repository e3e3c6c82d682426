"""The second leg of CI deselects what passed in the first, unless a missing requirement could change the outcome."""

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
needs.NEEDS["gold"] = needs.Requirement(lambda: False, "dig")

def pytest_addoption(parser):
    parser.addoption("--leave")

def pytest_configure(config):
    config.pluginmanager.register(needs.SkipPolicy())
    config.pluginmanager.register(legs.CiLegs(config), "legs")
    config.addinivalue_line("markers", "needs(names)")

def pytest_collection_modifyitems(config, items):
    items[:], left = config.pluginmanager.get_plugin("legs").split(items)
    config.hook.pytest_deselected(items=left)
"""
FILE = """
import importlib.metadata, importlib.util, os, subprocess, sys
import pytest
from needs import is_available, needs

def test_plain(): assert 'CI_PASSED' not in os.environ

@pytest.mark.parametrize('k', [1, 2])
def test_cases(k): pass

@pytest.mark.parametrize('k', [1, 2])
def test_fails(k): assert k == 1

@pytest.mark.needs('gold')
def test_skips(): pass

@pytest.mark.parametrize('k', [1, 2])
def test_skips_once(k): k == 1 or needs('gold')

@pytest.fixture
def broken():
    yield
    raise ValueError

def test_teardown(broken): pass

def test_imports():
    with pytest.raises(ImportError): import gold.ring

def test_looks(): assert importlib.util.find_spec('gold') is None

def test_version():
    with pytest.raises(ImportError): importlib.metadata.version('gold')

def test_asks(): assert not is_available('gold')

def test_program(): subprocess.run([sys.executable, '-c', ''], check=True)
"""
FILES = {
    "one": FILE,
    "imported": (
        "from needs import is_available\nHERE = is_available('gold')\n\ndef test_one(): pass\n\ndef test_two(): pass\n"
    ),
    "fixture": "import pytest\nfrom needs import is_available\n\n@pytest.fixture(scope='module')\ndef here():\n"
    "    return is_available('gold')\n\ndef test_one(here): pass\n\ndef test_two(here): pass\n",
}


@pytest.fixture
def run(tmp_path):
    """Run pytest on these files; return the line for each test that ran, and the rest of the output."""
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
def test_only_tests_without_failed_lookups_are_deselected(run, tmp_path, options):
    run(FILES, *options, CI_PASSED=str(tmp_path / "passed.json"))
    passed = json.loads((tmp_path / "passed.json").read_text(encoding="utf-8"))
    cases = [f"test_one.py::test_cases[{k}]" for k in (1, 2)]
    assert passed == {"test_one.py::test_plain": ["test_one.py::test_plain"], "test_one.py::test_cases": cases}

    printed = run(FILES, *options, "--leave", "passed.json")
    assert "3 tests were deselected: they passed in the first leg." in printed
    assert "3 deselected" in printed.splitlines()[-1], printed
    assert "test_plain" not in printed
    assert "test_imported.py::test_two" in printed


def test_a_function_with_new_cases_runs(run, tmp_path):
    passed = {"test_it.py::test_one": ["test_it.py::test_one"], "test_it.py::test_two": ["test_it.py::test_two[1]"]}
    (tmp_path / "passed.json").write_text(json.dumps(passed), encoding="utf-8")
    two = "import pytest\n\n@pytest.mark.parametrize('k', [1, 2])\ndef test_two(k): assert k == 1\n"
    printed = run({"it": f"def test_one(): pass\n\n{two}"}, "--leave", "passed.json")
    assert printed.splitlines()[-1].strip("= ").startswith("1 failed, 1 passed, 1 deselected in "), printed
