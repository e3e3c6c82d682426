"""Skips have one standard message, and the end of a run lists each missing requirement with how to get it."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from needs import NEEDS, WORDING, needs, reason

TESTS = Path(__file__).parents[1]
CONFTEST = """
import needs
needs.NEEDS["gold"] = needs.Need(lambda: False, "dig")
needs.NEEDS["nopackage"] = needs.Need(lambda: False, "make nopackage")
needs.NEEDS["moon"] = needs.Need(lambda: False, "a rocket", of_machine=True)

def pytest_configure(config):
    config.pluginmanager.register(needs.Skips())
    config.addinivalue_line("markers", "needs(names)")
"""


@pytest.fixture
def run(tmp_path):
    """Run pytest on a file with this source; return its exit status and its output."""

    def run(source, *options, **environment):
        (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
        (tmp_path / "test_it.py").write_text(source, encoding="utf-8")
        outside = {name: value for name, value in os.environ.items() if name != "CI_SKIPS_NOTHING"}
        child = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:nbval", *options, "test_it.py"],
            cwd=tmp_path,
            env={**outside, "PYTHONPATH": str(TESTS / "helpers"), **environment},
            capture_output=True,
            text=True,
            timeout=300,
        )
        return child.returncode, child.stdout

    return run


FOUR = """
import pytest
from needs import needs

@pytest.mark.needs("gold")
def test_mark(): pass

def test_call(): needs("gold")

def test_import(): import nopackage.part

@pytest.mark.needs("moon")
def test_machine(): pass
"""


@pytest.mark.parametrize("options", [(), pytest.param(("-n2",), marks=pytest.mark.nightly)], ids=["alone", "workers"])
def test_each_missing_thing_has_a_line_with_its_tests_and_what_brings_it(run, options):
    status, printed = run(FOUR, *options)
    lines = [line for line in printed.splitlines() if " skipped: " in line]
    assert (status, lines) == (
        0,
        [
            "2 tests skipped: gold is missing. To run them: dig",
            "1 test skipped: nopackage is missing. To run them: make nopackage",
            "1 test skipped: moon is missing. They run on a rocket.",
        ],
    ), printed
    assert re.search(r"^4 skipped in ", printed.splitlines()[-1]), printed


@pytest.mark.parametrize("options", [pytest.param((), marks=pytest.mark.nightly), ("-n2",)], ids=["alone", "workers"])
def test_each_module_that_needs_a_thing_or_imports_it_is_counted(run, tmp_path, options):
    heads = {"gold": "from needs import needs\nneeds('gold')", "nopackage": "import nopackage"}
    files = [f"test_{name}_{k}.py" for name in heads for k in (1, 2)]
    for file in files:
        (tmp_path / file).write_text(f"{heads[file.split('_')[1]]}\ndef test(): pass", encoding="utf-8")
    status, printed = run("", *files, *options)
    assert status == 5, printed  # pytest's status for no collected tests
    for name in heads:
        assert f"2 files skipped: {name} is missing. To run them: " in printed


def test_in_ci_only_what_the_machine_lacks_may_be_missing(run):
    status, printed = run(FOUR, CI_SKIPS_NOTHING="1")
    assert status == 1, printed
    assert "no requirement may be missing in this run: needs gold: dig" in printed
    assert re.search(r"^2 failed, 1 skipped, 1 error in ", printed.splitlines()[-1]), printed


SKIPS = [
    "import pytest\ndef test(): pytest.skip('not today')",
    "import pytest\n@pytest.mark.skip(reason='not today')\ndef test(): pass",
    "import pytest\n@pytest.mark.skipif(True, reason='needs silver: mine')\ndef test(): pass",
    "import pytest\npytest.skip('not today', allow_module_level=True)",
    "import pytest\npytest.importorskip('nopackage')",
]


def test_a_skip_in_words_of_its_own_fails(run, tmp_path):
    files = [f"test_{k}.py" for k in range(len(SKIPS))]
    for file, skip in zip(files, SKIPS, strict=True):
        (tmp_path / file).write_text(skip, encoding="utf-8")
    status, printed = run("def test(): pass", "--continue-on-collection-errors", *files)
    assert status == 1
    assert sorted(re.findall(r"^(?:FAILED|ERROR) (test_\d\.py)", printed, re.MULTILINE)) == files, printed
    assert len(re.findall(r"^skipped with a non-standard message", printed, re.MULTILINE)) == len(SKIPS), printed
    assert re.search(r"^1 failed, 1 passed, 4 errors in ", printed.splitlines()[-1]), printed


def test_a_missing_import_inside_the_package_is_a_failure(run, tmp_path):
    (tmp_path / "package.py").write_text("import nopackage", encoding="utf-8")
    status, printed = run("def test():\n    import package", PYTHONPATH=f"{TESTS / 'helpers'}{os.pathsep}{tmp_path}")
    assert status == 1, printed
    assert "No module named 'nopackage'" in printed


def test_no_other_file_of_tests_decides_about_skips():
    """A skip with another message fails only where it happens, which is never on a machine that has everything."""
    may = {
        TESTS / f"{name}.py" for name in ("helpers/needs", "helpers/cases", "project/test_needs", "project/test_cases")
    }
    ways = {"importorskip", "skip", "skipif", "SkipTest"}
    found = [
        f"{path.relative_to(TESTS)}:{node.lineno}: {node.attr}"
        for path in sorted(TESTS.rglob("*.py"))
        if path not in may
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr in ways
        and ast.unparse(node).startswith(("pytest.", "unittest."))
    ]
    assert found == []


def test_a_failure_that_a_missing_import_caused_is_a_failure(run):
    source = "def test():\n    try:\n        import nopackage\n    except ImportError as error:\n"
    status, printed = run(f"{source}        raise AssertionError('wrong') from error")
    assert status == 1, printed
    assert "AssertionError: wrong" in printed


def test_the_table_has_the_wording_of_each_name():
    for name in NEEDS:
        found = WORDING.fullmatch(reason(name))
        assert found, name
        assert (found[1], found[2]) == (name, NEEDS[name].brings)
    with pytest.raises(KeyError):
        needs("no such thing")


def test_to_ask_for_a_package_does_not_import_it():
    asked = "import needs, sys; print([n for n in ('taichi', 'torch', 'ray', 'matplotlib') if needs.is_here(n) * 0])"
    asked += "; print([n for n in ('taichi', 'torch', 'ray', 'matplotlib') if n in sys.modules])"
    child = subprocess.run(
        [sys.executable, "-c", asked], cwd=TESTS / "helpers", capture_output=True, text=True, check=True
    )
    assert child.stdout == "[]\n[]\n"
