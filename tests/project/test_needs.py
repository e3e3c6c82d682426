"""Skips have one standard message, and the end of a run lists each missing requirement with how to get it."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from needs import NEEDS, SKIP_MESSAGE, needs, reason

TESTS = Path(__file__).parents[1]
CONFTEST = """
import needs
needs.NEEDS["gold"] = needs.Requirement(lambda: False, "dig")
needs.NEEDS["nopackage"] = needs.Requirement(lambda: False, "make nopackage")
needs.NEEDS["moon"] = needs.Requirement(lambda: False, "a rocket", is_machine_specific=True)

def pytest_configure(config):
    config.pluginmanager.register(needs.SkipPolicy())
    config.addinivalue_line("markers", "needs(names)")
"""


@pytest.fixture
def run(tmp_path):
    """Run pytest on a file with this source; return its exit status and its output."""

    def run(source, *options, **environment):
        (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
        (tmp_path / "test_it.py").write_text(source, encoding="utf-8")
        environ = {name: value for name, value in os.environ.items() if name != "CI_SKIPS_NOTHING"}
        child = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:nbval", *options, "test_it.py"],
            cwd=tmp_path,
            env={**environ, "PYTHONPATH": str(TESTS / "helpers"), **environment},
            capture_output=True,
            text=True,
            timeout=300,
        )
        return child.returncode, child.stdout

    return run


FOUR_SKIPS = """
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
def test_the_summary_lists_each_missing_requirement(run, options):
    status, printed = run(FOUR_SKIPS, *options)
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
def test_skipped_modules_are_counted(run, tmp_path, options):
    heads = {"gold": "from needs import needs\nneeds('gold')", "nopackage": "import nopackage"}
    files = [f"test_{name}_{k}.py" for name in heads for k in (1, 2)]
    for file in files:
        (tmp_path / file).write_text(f"{heads[file.split('_')[1]]}\ndef test(): pass", encoding="utf-8")
    status, printed = run("", *files, *options)
    assert status == 5, printed  # pytest's status for no collected tests
    for name in heads:
        assert f"2 files skipped: {name} is missing. To run them: " in printed


def test_in_ci_only_machine_requirements_may_be_missing(run):
    status, printed = run(FOUR_SKIPS, CI_SKIPS_NOTHING="1")
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


def test_a_skip_with_another_message_fails(run, tmp_path):
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


def test_no_other_test_file_skips_directly():
    """A skip with another message fails only where it happens, which is never on a machine that has everything."""
    allowed = {
        TESTS / f"{name}.py" for name in ("helpers/needs", "helpers/cases", "project/test_needs", "project/test_cases")
    }
    functions = {"importorskip", "skip", "skipif", "SkipTest"}
    skips = [
        f"{path.relative_to(TESTS)}:{node.lineno}: {node.attr}"
        for path in sorted(TESTS.rglob("*.py"))
        if path not in allowed
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr in functions
        and ast.unparse(node).startswith(("pytest.", "unittest."))
    ]
    assert skips == []


def test_a_failure_that_a_missing_import_caused_is_a_failure(run):
    source = "def test():\n    try:\n        import nopackage\n    except ImportError as error:\n"
    status, printed = run(f"{source}        raise AssertionError('wrong') from error")
    assert status == 1, printed
    assert "AssertionError: wrong" in printed


def test_each_requirement_has_the_standard_message():
    for name in NEEDS:
        match = SKIP_MESSAGE.fullmatch(reason(name))
        assert match, name
        assert (match[1], match[2]) == (name, NEEDS[name].how_to_get)
    with pytest.raises(KeyError):
        needs("no such thing")


def test_checking_for_a_package_does_not_import_it():
    code = (
        "import needs, sys; print([n for n in ('taichi', 'torch', 'ray', 'matplotlib') if needs.is_available(n) * 0])"
    )
    code += "; print([n for n in ('taichi', 'torch', 'ray', 'matplotlib') if n in sys.modules])"
    child = subprocess.run(
        [sys.executable, "-c", code], cwd=TESTS / "helpers", capture_output=True, text=True, check=True
    )
    assert child.stdout == "[]\n[]\n"
